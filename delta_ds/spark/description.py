"""Methods of `DeltaTable` that change its description: properties, protocol, columns, constraints, clustering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING

from pyspark.sql.types import StructField as SparkStructField

from delta_ds.conditions.session import NEW_CHECK_CONSTRAINT_VIOLATION
from delta_ds.kernel.alter import clustering, constraints, identity
from delta_ds.kernel.alter import columns as alter_columns
from delta_ds.kernel.alter import properties as alter_properties
from delta_ds.kernel.alter.change_column import alter_column
from delta_ds.kernel.commands import drop_feature
from delta_ds.kernel.commands.optimize.request import OptimizeRequest
from delta_ds.kernel.delta_log import DeltaLog
from delta_ds.kernel.options.settings import ARBITRARY_PROPERTIES, DROP_IF_EXISTS
from delta_ds.kernel.properties import COLUMN_MAPPING_MODE
from delta_ds.kernel.schema.char_varchar import declared_type
from delta_ds.records import replace
from delta_ds.spark import log_calls
from delta_ds.spark.arguments import public_methods
from delta_ds.spark.commands.handle import Handle
from delta_ds.spark.commands.optimize import run_optimize
from delta_ds.spark.connect_bridge import ask, fetch, run
from delta_ds.spark.ddl_types import spark_type, to_kernel
from delta_ds.spark.errors import delta_errors
from delta_ds.spark.session.reading import read
from delta_ds.spark.session_conf import is_set, time_zone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType as SparkDataType
    from pyspark.sql.types import StructType as SparkStructType


@public_methods
class TableDescription:
    """The methods of `DeltaTable` that change no rows; most of them are SQL in delta-spark."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    # --- properties and protocol

    def setProperties(self, properties: Mapping[str, str]) -> None:
        """Set table properties, as `ALTER TABLE ... SET TBLPROPERTIES`; features they need are added.

        `delta.columnMapping.mode` set to `none` rewrites the files, as a commit of its own that comes first.
        """
        modes = [name for name in properties if name.lower() == COLUMN_MAPPING_MODE.name.lower()]
        if modes and str(properties[modes[0]]).lower() == "none":
            self._remove_mapping("none")
            properties = {name: text for name, text in properties.items() if name not in modes}
            if not properties:
                return
        unknown = is_set(self._handle.spark, ARBITRARY_PROPERTIES.full_name, False)
        run(self._handle.log, alter_properties.set_properties, properties, unknown=unknown)

    def unsetProperties(self, keys: Sequence[str]) -> None:
        """Remove table properties, as `ALTER TABLE ... UNSET TBLPROPERTIES`.

        Without `delta.columnMapping.mode` the table has no column mapping: its files are rewritten first.
        """
        named = [keys] if isinstance(keys, str) else keys
        rest = [key for key in named if key.lower() != COLUMN_MAPPING_MODE.name.lower()]
        if len(rest) < len(named):
            self._remove_mapping(None)
            if not rest:
                return
        run(self._handle.log, alter_properties.unset_properties, rest)

    def _remove_mapping(self, mode: str | None) -> None:
        self._rewrite(fetch(self._handle.log, drop_feature.unmapping_request, mode))

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Raise the protocol to these versions; it is never lowered."""
        run(self._handle.log, alter_properties.upgrade_table_protocol, readerVersion, writerVersion)

    def addFeatureSupport(self, featureName: str) -> None:
        """Add a feature, and the features it depends on, to the table's protocol."""
        run(self._handle.log, alter_properties.add_feature_support, featureName)

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Take the support of a feature away; what files hold of it is rewritten first, as commits of their own.

        Parameters
        ----------
        featureName
            In any case.
        truncateHistory
            For features that readers must know: True cuts off the versions that used it, once they are old enough.

        Raises
        ------
        UnsupportedFeatureError
            The feature is unknown, not there, needed by another one, or cannot be removed.
        UnsupportedOperationError
            The table, or a version that would have to be cut off, still uses it; the message says what to do.
        """
        log, truncate = self._handle.log, bool(truncateHistory)
        run(log, drop_feature.switch_off, featureName, truncate)
        self._rewrite(fetch(log, drop_feature.rewrite_request, featureName))
        run(log, drop_feature.finish_dropping, featureName, truncate)

    def _rewrite(self, request: OptimizeRequest | None) -> None:
        if request is not None:
            run_optimize(self._handle, replace(request, timezone=time_zone(self._handle.spark)))

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
        """Change a column; every change is one commit.

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
            char_varchar=declared_type(field) if field else None,
            nullable=nullable,
            comment=comment,
            default=default,
            first=first,
            after=after,
        )

    def syncIdentity(self, name: str) -> None:
        """Let an identity column go on behind the values that rows brought with them, as `SYNC IDENTITY`.

        Raises
        ------
        UnsupportedOperationError
            The column is no identity column.
        """
        from pyspark.sql import functions as F

        spark, log = self._handle.spark, self._handle.log
        step = ask(log, log_calls.identity_step, name)
        rows = read(spark, self._handle.options)
        furthest = F.max(name) if step > 0 else F.min(name)
        with delta_errors():
            value = rows.agg(furthest).collect()[0][0]
        run(log, identity.sync_identity, name, value)

    # --- constraints and clustering

    def addConstraint(self, name: str, expression: str) -> None:
        """Add a CHECK constraint; fails if an existing row violates it."""
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

    def dropConstraint(self, name: str, ifExists: bool = False) -> None:
        """Drop a CHECK constraint; with `ifExists` one of that name may be missing, and the history says so."""
        if_exists = ifExists or is_set(self._handle.spark, DROP_IF_EXISTS.full_name, False)
        run(self._handle.log, constraints.drop_constraint, name, if_exists=if_exists)

    def clusterBy(self, columns: Sequence[str]) -> None:
        """Change the clustering columns of a clustered table; without columns, clustering ends."""
        run(self._handle.log, clustering.cluster_by, columns)

    def _check(self, rows: DataFrame, name: str, expression: str) -> None:
        with delta_errors():
            broken = rows.where(f"NOT coalesce(({expression}), false)").limit(1).count()
        if broken:
            raise NEW_CHECK_CONSTRAINT_VIOLATION(
                table=self._handle.where, constraint=name, expression=expression
            )
