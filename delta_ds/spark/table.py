"""`DeltaTable`: a table in a Spark session, with the methods of `delta.tables.DeltaTable`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructField as SparkStructField

from delta_ds.exceptions import InvalidOptionError, InvariantViolationError
from delta_ds.kernel.alter import clustering, constraints, create
from delta_ds.kernel.alter import columns as alter_columns
from delta_ds.kernel.alter import properties as alter_properties
from delta_ds.kernel.alter.change_column import alter_column
from delta_ds.kernel.alter.drop_feature import drop_feature_support
from delta_ds.kernel.delta_log import DeltaLog
from delta_ds.kernel.schema.char_varchar import declared
from delta_ds.spark import log_calls
from delta_ds.spark.builder import DeltaTableBuilder, spark_type, to_kernel
from delta_ds.spark.errors import delta_errors
from delta_ds.spark.server import Log, ask, open_log, run
from delta_ds.spark.session.reading import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType as SparkDataType
    from pyspark.sql.types import StructType as SparkStructType

# Column for column what delta-spark 4.4 answers.
_HISTORY = {
    "version": "long",
    "timestamp": "timestamp",
    "userId": "string",
    "userName": "string",
    "operation": "string",
    "operationParameters": "map<string,string>",
    "job": "struct<jobId:string,jobName:string,jobRunId:string,runId:string,jobOwnerId:string,"
    "triggerType:string>",
    "notebook": "struct<notebookId:string>",
    "clusterId": "string",
    "readVersion": "long",
    "isolationLevel": "string",
    "isBlindAppend": "boolean",
    "operationMetrics": "map<string,string>",
    "userMetadata": "string",
    "engineInfo": "string",
}
_DETAIL = {
    "format": "string",
    "id": "string",
    "name": "string",
    "description": "string",
    "location": "string",
    "createdAt": "timestamp",
    "lastModified": "timestamp",
    "partitionColumns": "array<string>",
    "clusteringColumns": "array<string>",
    "numFiles": "long",
    "sizeInBytes": "long",
    "properties": "map<string,string>",
    "minReaderVersion": "int",
    "minWriterVersion": "int",
    "tableFeatures": "array<string>",
}


class DeltaTable:
    """A Delta table by its path; made by `forPath` or by a builder.

    In a classic session the log is read and committed to in this process, in one of Spark Connect by Python of the
    server. Rows are read by the data source.
    """

    def __init__(
        self,
        spark: SparkSession,
        log: Log,
        options: Mapping[str, str],
        alias: str | None = None,
        *,
        where: str,
    ) -> None:
        self._spark = spark
        self._log = log
        self._options = dict(options)
        self._alias = alias
        self._where = where

    @classmethod
    def forPath(
        cls, sparkSession: SparkSession, path: str, hadoopConf: Mapping[str, str] | None = None
    ) -> DeltaTable:
        """The table at a path.

        Parameters
        ----------
        sparkSession
            A classic session or one of Spark Connect.
        path
            A local path or URL.
        hadoopConf
            Hadoop's `fs.*` settings, or `storage.*` options, for the filesystem.

        Raises
        ------
        NotADeltaTableError
            There is no table.

        >>> DeltaTable.forPath(spark, "examples/data/sales").toDF().count()  # doctest: +SKIP
        """
        options = dict(hadoopConf or {})
        log = open_log(sparkSession, path, options)
        where = ask(log, log_calls.location)
        return cls(
            sparkSession, log, {**options, "path": where if where.startswith("/") else str(path)}, where=where
        )

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether a path is that of a table, or of a folder inside one."""
        return bool(ask(open_log(sparkSession, identifier, {}), log_calls.belongs_to_a_table))

    def toDF(self) -> DataFrame:
        """The rows of the latest version."""
        df = read(self._spark, self._options)
        return df.alias(self._alias) if self._alias else df

    def alias(self, aliasName: str) -> DeltaTable:
        """The same table under a name that expressions can use."""
        return DeltaTable(self._spark, self._log, self._options, aliasName, where=self._where)

    def history(self, limit: int | None = None) -> DataFrame:
        """What was committed, newest first, under the 15 columns of delta-spark.

        Parameters
        ----------
        limit
            At most so many commits; None for all that the log still holds.
        """
        if limit is not None and limit < 1:
            raise InvalidOptionError(f"history needs a limit of at least 1, not {limit}")
        return self._frame(ask(self._log, DeltaLog.history, limit), _HISTORY)

    def detail(self) -> DataFrame:
        """One row about the latest version: location, size, properties, protocol."""
        detail = ask(self._log, log_calls.detail)
        location = detail["location"]
        if location.startswith("/"):
            detail["location"] = f"file:{location}"
        for column in ("createdAt", "lastModified"):
            if isinstance(detail[column], int):
                detail[column] = datetime.fromtimestamp(detail[column] / 1000, timezone.utc)
        return self._frame([detail], _DETAIL)

    # --- making tables

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """A builder of a new table; there must be none at its location."""
        return DeltaTableBuilder(_session(sparkSession), create.CREATE)

    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """A builder of a new table; one that is there already stays as it is."""
        return DeltaTableBuilder(_session(sparkSession), create.IF_NOT_EXISTS)

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """A builder of a table in place of one that must be there; older versions stay."""
        return DeltaTableBuilder(_session(sparkSession), create.REPLACE)

    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder:
        """A builder of a table in place of one that may be there; older versions stay."""
        return DeltaTableBuilder(_session(sparkSession), create.CREATE_OR_REPLACE)

    # --- properties and protocol

    def setProperties(self, properties: Mapping[str, str]) -> None:
        """Set table properties, as `ALTER TABLE ... SET TBLPROPERTIES`; features they need are added."""
        run(self._log, alter_properties.set_properties, properties)

    def unsetProperties(self, keys: Sequence[str]) -> None:
        """Take table properties away, as `ALTER TABLE ... UNSET TBLPROPERTIES`."""
        run(self._log, alter_properties.unset_properties, keys)

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Raise the protocol to these versions; it is never lowered."""
        run(self._log, alter_properties.upgrade_table_protocol, readerVersion, writerVersion)

    def addFeatureSupport(self, featureName: str) -> None:
        """Make the table support a feature and what it depends on."""
        run(self._log, alter_properties.add_feature_support, featureName)

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Take the support of a feature away once nothing uses it; see `drop_feature.drop_feature_support`."""
        run(self._log, drop_feature_support, featureName, truncate_history=bool(truncateHistory))

    # --- columns

    def addColumns(self, columns: SparkStructType, first: bool = False, after: str | None = None) -> None:
        """Add columns: at the end, first, or after another one.

        Parameters
        ----------
        columns
            Names, types and comments. Rows that are there have null in them.
        """
        run(self._log, alter_columns.add_columns, to_kernel(columns.fields), first, after)

    def renameColumn(self, old: str, new: str) -> None:
        """Rename a column (`s.a` for a field of a struct) to a plain name; needs column mapping."""
        run(self._log, alter_columns.rename_column, old, new)

    def dropColumns(self, names: Sequence[str]) -> None:
        """Drop columns without touching data files; needs column mapping."""
        run(self._log, alter_columns.drop_columns, names)

    def alterColumn(
        self,
        name: str,
        dataType: str | SparkDataType | None = None,
        nullable: bool | None = None,
        comment: str | None = None,
        default: str | EllipsisType | None = ...,
        first: bool = False,
        after: str | None = None,
    ) -> None:
        """Change a column; each thing given is one commit.

        Parameters
        ----------
        name
            As in Spark SQL: `s.a`, `` `a.b` ``, `l.element`.
        dataType
            A wider type, if `delta.enableTypeWidening` is set.
        nullable
            True drops NOT NULL.
        comment
            The new comment.
        default
            SQL text of the new default; None takes it away.
        first, after
            The new place among its neighbours.
        """
        field = (
            None if dataType is None else to_kernel([SparkStructField("c", spark_type(dataType))]).fields[0]
        )
        run(
            self._log,
            alter_column,
            name,
            data_type=field.type if field else None,
            char_varchar=declared(field) if field else None,
            nullable=nullable,
            comment=comment,
            default=default,
            first=first,
            after=after,
        )

    # --- constraints and clustering

    def addConstraint(self, name: str, expression: str) -> None:
        """Add a CHECK constraint; fails if a row that is there breaks it."""
        log = self._log
        if isinstance(log, DeltaLog):
            constraints.add_constraint(
                log, name, expression, lambda text: self._check(self.toDF(), name, text)
            )
            return
        version = log.ask(log_calls.constraint_to_check, name, expression)
        options = {**self._options, "versionAsOf": str(version)}
        self._check(read(self._spark, options), name, expression)
        log.run(log_calls.add_checked_constraint, name, expression, version)

    def dropConstraint(self, name: str) -> None:
        """Drop a CHECK constraint."""
        run(self._log, constraints.drop_constraint, name)

    def clusterBy(self, columns: Sequence[str]) -> None:
        """Change the clustering columns of a clustered table; none: no clustering any more."""
        run(self._log, clustering.cluster_by, columns)

    def checkpoint(self) -> None:
        """Write a checkpoint of the latest version now."""
        run(self._log, DeltaLog.checkpoint)

    def _check(self, rows: DataFrame, name: str, expression: str) -> None:
        with delta_errors():
            broken = rows.where(f"NOT coalesce(({expression}), false)").limit(1).count()
        if broken:
            raise InvariantViolationError(
                f"rows of {self._where} break the new CHECK constraint {name} ({expression}); "
                "correct or delete them first. Nothing was written",
                condition="DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
                parameters={"constraint": name, "expression": expression},
            )

    def _frame(self, rows: list[dict[str, Any]], columns: Mapping[str, str]) -> DataFrame:
        schema = ", ".join(f"{name} {data_type}" for name, data_type in columns.items())
        return self._spark.createDataFrame([tuple(row[name] for name in columns) for row in rows], schema)

    def __repr__(self) -> str:
        return f"DeltaTable({self._where!r})"


def _session(spark: SparkSession | None) -> SparkSession:
    if spark is not None:
        return spark
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    if found is None:
        raise InvalidOptionError("there is no active Spark session: give one, as in DeltaTable.create(spark)")
    return found
