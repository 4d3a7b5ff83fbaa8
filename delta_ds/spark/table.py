"""`DeltaTable`: a table in a Spark session, with the methods of `delta.tables.DeltaTable`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from delta_ds.exceptions import InvalidOptionError, NotADeltaTableError
from delta_ds.kernel.delta_log import DeltaLog
from delta_ds.kernel.options.read import parse_read_options
from delta_ds.spark.source import FORMAT
from delta_ds.spark.timezone import machine_time_zone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    """A Delta table by its path; made by `forPath`.

    History and detail are read from the log in this process, rows by the data source.
    """

    def __init__(
        self, spark: SparkSession, log: DeltaLog, options: Mapping[str, str], alias: str | None = None
    ) -> None:
        self._spark = spark
        self._log = log
        self._options = dict(options)
        self._alias = alias

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
        log = _open_log(path, options)
        try:
            log.snapshot()
        except NotADeltaTableError as error:
            raise NotADeltaTableError(
                f"`{log.storage.url}` is not a Delta table: {error.text}",
                condition="DELTA_MISSING_DELTA_TABLE",
            ) from error
        return cls(sparkSession, log, {**options, "path": str(path)})

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether a path is that of a table, or of a folder inside one."""
        log = _open_log(identifier, {})
        parent = log.storage.url.rstrip("/").rpartition("/")[0]
        try:
            log.snapshot()
        except NotADeltaTableError:
            at_the_top = not parent or parent.endswith((":", "/"))
            return not at_the_top and cls.isDeltaTable(sparkSession, parent)
        return True

    def toDF(self) -> DataFrame:
        """The rows of the latest version."""
        df = self._spark.read.format(FORMAT).options(**self._options).load()
        return df.alias(self._alias) if self._alias else df

    def alias(self, aliasName: str) -> DeltaTable:
        """The same table under a name that expressions can use."""
        return DeltaTable(self._spark, self._log, self._options, aliasName)

    def history(self, limit: int | None = None) -> DataFrame:
        """What was committed, newest first, under the 15 columns of delta-spark.

        Parameters
        ----------
        limit
            At most so many commits; None for all that the log still holds.
        """
        if limit is not None and limit < 1:
            raise InvalidOptionError(f"history needs a limit of at least 1, not {limit}")
        return self._frame(self._log.history(limit), _HISTORY)

    def detail(self) -> DataFrame:
        """One row about the latest version: location, size, properties, protocol."""
        detail = self._log.snapshot().detail()
        location = detail["location"]
        if location.startswith("/"):
            detail["location"] = f"file:{location}"
        for column in ("createdAt", "lastModified"):
            if isinstance(detail[column], int):
                detail[column] = datetime.fromtimestamp(detail[column] / 1000, timezone.utc)
        return self._frame([detail], _DETAIL)

    def _frame(self, rows: list[dict[str, Any]], columns: Mapping[str, str]) -> DataFrame:
        schema = ", ".join(f"{name} {data_type}" for name, data_type in columns.items())
        return self._spark.createDataFrame([tuple(row[name] for name in columns) for row in rows], schema)

    def __repr__(self) -> str:
        return f"DeltaTable({self._log.storage.url!r})"


def _open_log(path: str, options: Mapping[str, str]) -> DeltaLog:
    parsed = parse_read_options({**options, "path": path}, machine_time_zone())
    return DeltaLog(parsed.path, parsed.storage_options)
