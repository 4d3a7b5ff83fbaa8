"""Methods of `DeltaTable` that change its description: properties, protocol, columns, constraints, clustering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import EllipsisType
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql.types import StructField as SparkStructField

from delta_ds.api.delta_log import DeltaLog
from delta_ds.conditions.columns import NEW_CHECK_CONSTRAINT_VIOLATION
from delta_ds.conditions.data import UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT
from delta_ds.exceptions import InvalidArgumentError, UnsupportedFeatureError
from delta_ds.kernel.commands import drop_feature
from delta_ds.kernel.commands.optimize.request import OptimizeRequest
from delta_ds.kernel.format.options.settings import DROP_IF_EXISTS
from delta_ds.kernel.format.properties import COLUMN_MAPPING_MODE
from delta_ds.kernel.format.schema.char_varchar import declared_type
from delta_ds.kernel.transaction.alter import clustering, definitions
from delta_ds.kernel.transaction.alter import columns as alter_columns
from delta_ds.kernel.transaction.alter import properties as alter_properties
from delta_ds.kernel.transaction.alter.change_column import alter_column
from delta_ds.records import replace
from delta_ds.spark.base.kinds.session_facts import property_rules
from delta_ds.spark.base.schema import spark_type, to_kernel
from delta_ds.spark.base.session_conf import is_set, time_zone
from delta_ds.spark.commands.handle import Handle
from delta_ds.spark.commands.optimize import run_optimize
from delta_ds.spark.engines.arguments import public_methods
from delta_ds.spark.engines.connect import log_calls
from delta_ds.spark.engines.connect.connect_bridge import ask, run
from delta_ds.spark.errors.translation import delta_errors
from delta_ds.spark.session.reading import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType as SparkDataType
    from pyspark.sql.types import StructType as SparkStructType


@public_methods
class TableDescription:
    """The methods of `DeltaTable` that change no rows; most of them are SQL in delta-spark."""

    def __init__(self, handle: Handle) -> None:
        given: object = handle
        if not isinstance(given, Handle):
            with delta_errors():
                raise InvalidArgumentError(
                    "a DeltaTable is got by DeltaTable.forPath(spark, path) or DeltaTable.forName(spark, name), and "
                    f"not by DeltaTable({given!r:.100})",
                    parameters={
                        "arg_name": "handle",
                        "expected_type": "Handle",
                        "arg_type": type(given).__name__,
                    },
                )
        self._handle = handle

    # --- properties and protocol

    def setProperties(self, properties: Mapping[str, str]) -> None:
        """Set table properties, as `ALTER TABLE ... SET TBLPROPERTIES`; features they need are added.

        Setting `delta.columnMapping.mode` to `none` rewrites the files first, in a separate commit.

        Parameters
        ----------
        properties
            Values as text, by name. `docs/properties.md` lists those that begin with `delta.`; you may add others.

        Raises
        ------
        InvalidOptionError
            The property does not exist, or the value is invalid; the message names the nearest.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.setProperties({"delta.appendOnly": "true", "team": "sales"})
        >>> table.detail().first().properties["team"]
        'sales'
        """
        modes = [name for name in properties if name.lower() == COLUMN_MAPPING_MODE.name.lower()]
        if modes and str(properties[modes[0]]).lower() == "none":
            self._remove_mapping("none")
            properties = {name: text for name, text in properties.items() if name not in modes}
            if not properties:
                return
        run(self._handle.log, alter_properties.set_properties, properties, property_rules(self._handle.spark))

    def unsetProperties(self, keys: Sequence[str]) -> None:
        """Remove table properties, as `ALTER TABLE ... UNSET TBLPROPERTIES`.

        Without `delta.columnMapping.mode` the table has no column mapping: its files are rewritten first.

        Parameters
        ----------
        keys
            Names of properties; unset ones are ignored.

        Raises
        ------
        InvalidOptionError
            One is a CHECK constraint: use `dropConstraint`.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.unsetProperties(["delta.enableChangeDataFeed"])
        >>> table.detail().first().properties
        {}
        """
        named = [keys] if isinstance(keys, str) else keys
        rest = [key for key in named if key.lower() != COLUMN_MAPPING_MODE.name.lower()]
        if len(rest) < len(named):
            self._remove_mapping(None)
            if not rest:
                return
        run(self._handle.log, alter_properties.unset_properties, rest)

    def _remove_mapping(self, mode: str | None) -> None:
        self._rewrite(ask(self._handle.log, drop_feature.unmapping_request, mode))

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Raise the protocol to these versions; it is never lowered.

        Parameters
        ----------
        readerVersion
            1 to 3: what readers of the table must know.
        writerVersion
            2 to 7: what writers must know.

        Raises
        ------
        UnsupportedFeatureError
            The versions do not exist, or cannot be combined.

        Examples
        --------
        >>> table = DeltaTable.create(spark).location("/data/visits").addColumn("page", "string").execute()
        >>> table.upgradeTableProtocol(1, 4)
        >>> table.detail().first().minWriterVersion
        4
        """
        run(self._handle.log, alter_properties.upgrade_table_protocol, readerVersion, writerVersion)

    def addFeatureSupport(self, featureName: str) -> None:
        """Add a feature, and the features it depends on, to the table's protocol.

        Older readers and writers that do not know it refuse the table from then on.

        Parameters
        ----------
        featureName
            In any case; `docs/protocol-checklist.md` lists the features.

        Raises
        ------
        UnsupportedFeatureError
            The feature does not exist, or tables with it cannot be written.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.addFeatureSupport("deletionVectors")
        >>> "deletionVectors" in table.detail().first().tableFeatures
        True
        """
        run(self._handle.log, alter_properties.add_feature_support, featureName)

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Drop a feature; files that use it are rewritten first, in separate commits.

        Parameters
        ----------
        featureName
            In any case.
        truncateHistory
            For features that readers must support: True removes the versions that used it, once they are old
            enough.

        Raises
        ------
        UnsupportedFeatureError
            The feature is unknown, not in use, needed by another one, or cannot be removed.
        UnsupportedOperationError
            The table, or a version that would have to be removed, still uses it; the message says what to do.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.addFeatureSupport("checkConstraints")
        >>> table.dropFeatureSupport("checkConstraints")
        >>> "checkConstraints" in table.detail().first().tableFeatures
        False
        """
        log, truncate = self._handle.log, bool(truncateHistory)
        run(log, drop_feature.switch_off, featureName, truncate)
        self._rewrite(ask(log, drop_feature.rewrite_request, featureName))
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
            Names, types and comments. Existing rows get null.
        first
            Whether they come before all others.
        after
            The name of the column that they come after; None: at the end.

        Raises
        ------
        SchemaError
            The column already exists (case does not count), or `after` does not.

        Examples
        --------
        >>> from pyspark.sql.types import StructType
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.addColumns(StructType().add("city", "string"), after="country")
        >>> table.toDF().columns
        ['id', 'country', 'city', 'amount']
        """
        run(self._handle.log, alter_columns.add_columns, to_kernel(columns.fields), first, after)

    def renameColumn(self, old: str, new: str) -> None:
        """Rename a column without touching data files; needs column mapping.

        Parameters
        ----------
        old
            As in Spark SQL: `s.a` for a field of a struct.
        new
            A plain name.

        Raises
        ------
        UnsupportedOperationError
            The table has no column mapping; or a constraint or a generated column uses the column.
        SchemaError
            The column does not exist, or the new name is in use.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.setProperties({"delta.columnMapping.mode": "name"})
        >>> table.renameColumn("amount", "price")
        >>> table.toDF().columns
        ['id', 'country', 'price']
        """
        run(self._handle.log, alter_columns.rename_column, old, new)

    def dropColumns(self, names: Sequence[str]) -> None:
        """Drop columns without touching data files; needs column mapping.

        Parameters
        ----------
        names
            As in Spark SQL: `s.a` for a field of a struct.

        Raises
        ------
        UnsupportedOperationError
            The table has no column mapping, or would be left without columns.
        SchemaError
            The column does not exist, or another part of the table uses it.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.setProperties({"delta.columnMapping.mode": "name"})
        >>> table.dropColumns(["amount"])
        >>> table.toDF().columns
        ['id', 'country']
        """
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
            SQL text of the new default; None removes it.
        first, after
            The new position among its neighbours.

        Raises
        ------
        SchemaError, UnsupportedOperationError
            The column does not exist, or the change is not possible; the message gives the reason and what is
            possible.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.alterColumn("amount", comment="in euro", first=True)
        >>> table.toDF().schema.fields[0].metadata["comment"]
        'in euro'
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
        """Continue an identity column after the values that rows brought with them, as `SYNC IDENTITY`.

        Parameters
        ----------
        name
            The column.

        Raises
        ------
        UnsupportedOperationError
            The column is not an identity column.

        Examples
        --------
        >>> from delta_ds import IdentityGenerator
        >>> made = DeltaTable.create(spark).location("/data/numbered").addColumn("name", "string")
        >>> table = made.addColumn("id", "long", generatedByDefaultAs=IdentityGenerator()).execute()
        >>> old = spark.createDataFrame([("a", 7)], "name string, id long")
        >>> old.write.format("pydelta").mode("append").save("/data/numbered")
        >>> table.syncIdentity("id")
        >>> new = spark.createDataFrame([("b",)], "name string")
        >>> new.write.format("pydelta").mode("append").save("/data/numbered")
        >>> table.toDF().where("name = 'b'").first().id > 7
        True
        """
        from pyspark.sql import functions as F

        spark, log = self._handle.spark, self._handle.log
        step = ask(log, log_calls.identity_step, name)
        rows = read(spark, self._handle.options)
        furthest = F.max(name) if step > 0 else F.min(name)
        with delta_errors():
            value = rows.agg(furthest).collect()[0][0]
        run(log, alter_columns.sync_identity, name, value)

    # --- constraints and clustering

    def addConstraint(self, name: str, expression: str) -> None:
        """Add a CHECK constraint: writes of rows for which it is not true fail from then on.

        Parameters
        ----------
        name
            The name of the constraint, in any case.
        expression
            Spark SQL over the columns of the table.

        Raises
        ------
        InvariantViolationError
            An existing row violates it.
        SchemaError
            The name is in use, or the expression does not fit the table.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.addConstraint("has_price", "amount > 0")
        >>> table.update("id = 1", {"amount": "-1"})
        Traceback (most recent call last):
        ...
        delta_ds...InvariantViolationError: [DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] ...
        """
        try:
            self._add_constraint(name, expression)
        except UnsupportedFeatureError as error:
            if error.condition == UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT.name:
                # That rows which are there break it is told first, as far as Spark can tell.
                with suppress(PySparkException):
                    self._check(read(self._handle.spark, self._handle.options), name, expression)
            raise

    def _add_constraint(self, name: str, expression: str) -> None:
        spark, log = self._handle.spark, self._handle.log
        if isinstance(log, DeltaLog):
            definitions.add_constraint(
                log, name, expression, lambda text: self._check(read(spark, self._handle.options), name, text)
            )
            return
        version = log.ask(log_calls.constraint_to_check, name, expression)
        options = {**self._handle.options, "versionAsOf": str(version)}
        self._check(read(spark, options), name, expression)
        log.run(log_calls.add_checked_constraint, name, expression, version)

    def dropConstraint(self, name: str, ifExists: bool = False) -> None:
        """Drop a CHECK constraint.

        Parameters
        ----------
        name
            The name of the constraint, in any case.
        ifExists
            Whether the constraint may be missing; the history records that.

        Raises
        ------
        InvalidOptionError
            There is no such constraint; the message names the existing ones.

        Examples
        --------
        >>> table = DeltaTable.forPath(spark, "/data/orders")
        >>> table.addConstraint("has_price", "amount > 0")
        >>> table.dropConstraint("has_price")
        >>> table.update("id = 1", {"amount": "-1"}).first().num_affected_rows
        1
        """
        if_exists = ifExists or is_set(self._handle.spark, DROP_IF_EXISTS.full_name, False)
        run(self._handle.log, definitions.drop_constraint, name, if_exists=if_exists)

    def clusterBy(self, columns: Sequence[str]) -> None:
        """Change the clustering columns of a clustered table; without columns, clustering ends.

        The next `optimize().executeCompaction()` arranges files by the new columns.

        Parameters
        ----------
        columns
            As in Spark SQL: `s.a` for a field of a struct; at most 4.

        Raises
        ------
        UnsupportedOperationError
            The table has partitions, or a column has no statistics or no order.

        Examples
        --------
        >>> made = DeltaTable.create(spark).location("/data/visits").addColumn("day", "date")
        >>> table = made.addColumn("page", "string").clusterBy("day").execute()
        >>> table.clusterBy(["page", "day"])
        >>> table.detail().first().clusteringColumns
        ['page', 'day']
        """
        run(self._handle.log, clustering.cluster_by, columns)

    def _check(self, rows: DataFrame, name: str, expression: str) -> None:
        with delta_errors():
            broken = rows.where(f"NOT coalesce(({expression}), false)").limit(1).count()
        if broken:
            raise NEW_CHECK_CONSTRAINT_VIOLATION(
                table=self._handle.where, constraint=name, expression=expression
            )
