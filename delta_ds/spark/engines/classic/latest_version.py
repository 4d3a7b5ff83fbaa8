"""DataFrames whose every execution reads the newest version of their table.

The analysed plan holds a relation that only names the table. When a query is optimised, the rule of
`ResolveLatestVersion.java` asks here for the scan of one version in its place, of the same version for all relations of
a table in that query.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, TypeAlias
from weakref import WeakValueDictionary

from delta_ds.conditions.session import SCHEMA_CHANGE_SINCE_ANALYSIS, TABLE_GONE_SINCE_ANALYSIS
from delta_ds.exceptions import NotADeltaTableError, SchemaError, UnsupportedOperationError
from delta_ds.kernel.format.schema.version_changes import columns_as_before
from delta_ds.kernel.log.snapshot import Snapshot, open_snapshot
from delta_ds.kernel.transaction.table_log import Current
from delta_ds.spark.base.kinds.session_kind import answers_jvm
from delta_ds.spark.base.schema import public_field
from delta_ds.spark.engines.classic.columns import scan_columns, spark_schema
from delta_ds.spark.engines.classic.hadoop import check_names, local_root
from delta_ds.spark.engines.classic.jvm import Jvm, NotNative, compile_class, errors_to_jvm, java_exception
from delta_ds.spark.engines.classic.scan import READER_OPTIONS, scan
from delta_ds.spark.engines.classic.snapshot_isolation import address_of, made_ms, snapshot_of_command

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_ds.kernel.format.schema.types import StructField, StructType
    from delta_ds.spark.base.kinds.java_object import JavaObject, JavaValue

_TRACKED = "tracked "
_MAKE_ANEW = "Make the DataFrame or view anew"

# Writes rows to the table of the options; the last argument: overwrite what is there.
InsertRows: TypeAlias = Callable[["DataFrame", Mapping[str, str], bool], None]

# Versions that some plan reads, by their names: queries find those that they read here.
_snapshots: WeakValueDictionary[str, Snapshot] = WeakValueDictionary()


def snapshot_name(snapshot: Snapshot) -> str:
    """A version by its number, what differs where a table is deleted and made anew, and its table."""
    return f"{snapshot.version} {snapshot.metadata.id} {made_ms(snapshot)} {address_of(snapshot.storage)}"


@answers_jvm
class LatestVersion:
    """A table whose newest version frames read.

    A `java.util.function.BiFunction` from a version's name to the scan of it.

    Parameters
    ----------
    snapshot
        The version that frames take their columns from.
    root, hadoop_options, timezone
        See `scan`.
    """

    def __init__(
        self,
        jvm: Jvm,
        snapshot: Snapshot,
        root: str | None,
        hadoop_options: Mapping[str, str],
        timezone: str | None,
    ) -> None:
        self._jvm = jvm
        self._schema = snapshot.schema
        self._storage = snapshot.storage
        self.address = address_of(snapshot.storage)
        self._root = root
        self._hadoop_options = hadoop_options
        self._timezone = timezone
        self._current = Current(snapshot.storage, snapshot)
        self._lock = threading.Lock()
        self._made_of = snapshot_name(snapshot)

    @property
    def identity(self) -> str:
        """The text by which Spark compares two frames."""
        zone = f" {self._timezone}" if self._timezone is not None else ""
        return f"pydelta[newest after {self._made_of}{zone}]"

    def apply(self, asked: str | None, planned: str | None) -> JavaValue:
        """The version to read.

        Parameters
        ----------
        asked
            The name of a version, or `command` and the name of one; None for the newest. `tracked` and the name of one:
            with the columns that `scan` has for row tracking.
        planned
            The name of the version that the relation has the plan of; None for none.

        Returns
        -------
        str or py4j.java_gateway.JavaObject
            `planned`, a `Tuple2` of the version's name and its plan, or the exception to throw.
        """
        try:
            tracked = asked is not None and asked.startswith(_TRACKED)
            snapshot = self._version(asked.removeprefix(_TRACKED) if asked is not None else None)
            name = snapshot_name(snapshot)
            return (
                planned
                if name == planned
                else self._jvm.jvm.scala.Tuple2(name, self._plan(snapshot, tracked))
            )
        except Exception as error:
            return java_exception(self._jvm, error)

    class Java:
        implements: ClassVar[list[str]] = ["java.util.function.BiFunction"]

    def _version(self, asked: str | None) -> Snapshot:
        if asked is None or asked.startswith("command "):
            command = (asked or "").removeprefix("command ")
            current = snapshot_of_command(command, self.address, self._newest)
            return _snapshots.setdefault(snapshot_name(current), current)
        snapshot = _snapshots.get(asked)
        if snapshot is None:
            snapshot = open_snapshot(self._storage, int(asked.partition(" ")[0]))
            if snapshot_name(snapshot) != asked:
                raise self._change_error("it was deleted and made anew while a query over it was planned")
        return snapshot

    def _newest(self) -> Snapshot:
        try:
            with self._lock:
                return self._current.snapshot(quick=True)
        except NotADeltaTableError as error:
            raise TABLE_GONE_SINCE_ANALYSIS(table=self._storage.url) from error

    def _plan(self, snapshot: Snapshot, tracked: bool) -> JavaObject:
        """The analysed plan of a version with the columns that frames were made of."""
        columns = columns_as_before(self._schema, snapshot.schema)
        if isinstance(columns, list):
            raise self._change_error(f"in version {snapshot.version} {', '.join(columns)}")
        try:
            frame = scan(
                self._jvm.spark,
                snapshot,
                root=self._root,
                hadoop_options=self._hadoop_options,
                columns=columns,
                tracked=tracked,
                timezone=self._timezone,
            )
        except NotNative as why:
            raise UnsupportedOperationError(
                f"version {snapshot.version} of {self._storage.url} cannot be read by the scan that the DataFrame has: "
                f"{why.reason}. {_MAKE_ANEW}"
            ) from why
        return self._jvm.logical_plan(frame)

    def _change_error(self, what: str) -> SchemaError:
        return SCHEMA_CHANGE_SINCE_ANALYSIS(table=self._storage.url, change=what)


@answers_jvm
class _Insert:
    """`INSERT INTO` and `INSERT OVERWRITE` on a view of a table: a write like every other.

    A `java.util.function.BiFunction` of rows, whose columns Spark has put in the order of the table, and whether to
    overwrite.
    """

    def __init__(self, jvm: Jvm, options: Mapping[str, str], insert: InsertRows) -> None:
        self._jvm = jvm
        self._insert = insert
        self._options = options

    def apply(self, rows: JavaObject, overwrite: bool) -> None:
        with errors_to_jvm(self._jvm):
            from pyspark.sql import DataFrame

            self._insert(DataFrame(rows, self._jvm.spark), self._options, overwrite)

    class Java:
        implements: ClassVar[list[str]] = ["java.util.function.BiFunction"]


def latest_relation(
    jvm: Jvm,
    snapshot: Snapshot,
    root: str | None,
    hadoop_options: Mapping[str, str],
    timezone: str | None,
    insert: InsertRows,
) -> DataFrame:
    """A frame with the columns of a version whose executions read the newest one.

    Parameters
    ----------
    root, hadoop_options, timezone
        See `scan`.
    insert
        See `load`.

    Raises
    ------
    NotNative
        The portable path has to read this table, or Spark takes no rule.
    """
    scan_columns(snapshot)  # whether the scan can read them
    if root is None:
        check_names(jvm.spark, snapshot)
    table = LatestVersion(jvm, snapshot, root, hadoop_options, timezone)
    rule = _install_rule(jvm)
    schema = jvm.struct(spark_schema(_public(snapshot.schema)))
    options = {**hadoop_options, "path": snapshot.storage.address.as_written}
    relation = rule.of(
        table.identity,
        table.address,
        root or local_root(snapshot),
        jvm.default_size,
        schema,
        bool(snapshot.table_state.row_tracking_columns),
        jvm.map({**READER_OPTIONS, **hadoop_options}),
        jvm.spark._jsparkSession,
        table,
        _Insert(jvm, options, insert),
        json.dumps(options),
    )
    attributes = jvm.DataTypeUtils.toAttributes(schema)
    return jvm.data_frame(jvm.LogicalRelation.apply(relation, attributes, jvm.none, False, jvm.none))


def _install_rule(jvm: Jvm) -> JavaObject:
    from py4j.protocol import Py4JError

    rule = compile_class(jvm.jvm, jvm.gateway, "ResolveLatestVersion")
    try:
        rule.install(jvm.spark._jsparkSession)
    except Py4JError as error:
        raise NotNative(f"Spark {jvm.spark.version} takes no rules in a running session: {error}") from error
    return rule


def _public(schema: StructType) -> list[StructField]:
    return [public_field(field) for field in schema]
