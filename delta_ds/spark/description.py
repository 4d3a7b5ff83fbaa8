"""What of `DeltaTable` changes a table's description: properties, protocol, columns, constraints, clustering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING

from pyspark.sql.types import StructField as SparkStructField

from delta_ds.exceptions import InvariantViolationError
from delta_ds.kernel.alter import clustering, constraints
from delta_ds.kernel.alter import columns as alter_columns
from delta_ds.kernel.alter import properties as alter_properties
from delta_ds.kernel.alter.change_column import alter_column
from delta_ds.kernel.alter.drop_feature import drop_feature_support
from delta_ds.kernel.delta_log import DeltaLog
from delta_ds.kernel.schema.char_varchar import declared
from delta_ds.spark import log_calls
from delta_ds.spark.builder import spark_type, to_kernel
from delta_ds.spark.commands.handle import Handle
from delta_ds.spark.errors import delta_errors
from delta_ds.spark.server import run
from delta_ds.spark.session.reading import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType as SparkDataType
    from pyspark.sql.types import StructType as SparkStructType


class TableDescription:
    """The half of `DeltaTable` that leaves rows alone; most of it is SQL in delta-spark."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    # --- properties and protocol

    def setProperties(self, properties: Mapping[str, str]) -> None:
        """Set table properties, as `ALTER TABLE ... SET TBLPROPERTIES`; features they need are added."""
        run(self._handle.log, alter_properties.set_properties, properties)

    def unsetProperties(self, keys: Sequence[str]) -> None:
        """Take table properties away, as `ALTER TABLE ... UNSET TBLPROPERTIES`."""
        run(self._handle.log, alter_properties.unset_properties, keys)

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Raise the protocol to these versions; it is never lowered."""
        run(self._handle.log, alter_properties.upgrade_table_protocol, readerVersion, writerVersion)

    def addFeatureSupport(self, featureName: str) -> None:
        """Make the table support a feature and what it depends on."""
        run(self._handle.log, alter_properties.add_feature_support, featureName)

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Take the support of a feature away once nothing uses it; see `drop_feature.drop_feature_support`."""
        run(self._handle.log, drop_feature_support, featureName, truncate_history=bool(truncateHistory))

    # --- columns

    def addColumns(self, columns: SparkStructType, first: bool = False, after: str | None = None) -> None:
        """Add columns: at the end, first, or after another one.

        Parameters
        ----------
        columns
            Names, types and comments. Rows that are there have null in them.
        """
        run(self._handle.log, alter_columns.add_columns, to_kernel(columns.fields), first, after)

    def renameColumn(self, old: str, new: str) -> None:
        """Rename a column (`s.a` for a field of a struct) to a plain name; needs column mapping."""
        run(self._handle.log, alter_columns.rename_column, old, new)

    def dropColumns(self, names: Sequence[str]) -> None:
        """Drop columns without touching data files; needs column mapping."""
        run(self._handle.log, alter_columns.drop_columns, names)

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
            self._handle.log,
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
        spark, log = self._handle.spark, self._handle.log
        if isinstance(log, DeltaLog):
            constraints.add_constraint(
                log, name, expression, lambda text: self._check(read(spark, self._handle.options), name, text)
            )
            return
        version = log.ask(log_calls.constraint_to_check, name, expression)
        options = {**self._handle.options, "versionAsOf": str(version)}
        self._check(read(spark, options), name, expression)
        log.run(log_calls.add_checked_constraint, name, expression, version)

    def dropConstraint(self, name: str) -> None:
        """Drop a CHECK constraint."""
        run(self._handle.log, constraints.drop_constraint, name)

    def clusterBy(self, columns: Sequence[str]) -> None:
        """Change the clustering columns of a clustered table; none: no clustering any more."""
        run(self._handle.log, clustering.cluster_by, columns)

    def _check(self, rows: DataFrame, name: str, expression: str) -> None:
        with delta_errors():
            broken = rows.where(f"NOT coalesce(({expression}), false)").limit(1).count()
        if broken:
            raise InvariantViolationError(
                f"rows of {self._handle.where} break the new CHECK constraint {name} ({expression}); "
                "correct or delete them first. Nothing was written",
                condition="DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
                parameters={"constraint": name, "expression": expression},
            )
