"""`spark.read` of a table where Spark's own Parquet reader can be used: the newest version at every execution.

The analysed plan holds a relation that only names the table. When a query is optimised, the rule of
`ResolveLatestVersion.java` asks here for the scan of one version in its place, of the same version for all relations of
a table in that query.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NoReturn, TypeAlias
from weakref import WeakValueDictionary

from delta_ds.conditions.data import READ_TABLE_WITHOUT_COLUMNS
from delta_ds.conditions.session import SCHEMA_CHANGE_SINCE_ANALYSIS, TABLE_GONE_SINCE_ANALYSIS
from delta_ds.exceptions import NotADeltaTableError, SchemaError, UnsupportedOperationError
from delta_ds.kernel.format.options.read import ReadOptions
from delta_ds.kernel.format.schema.version_changes import columns_as_before
from delta_ds.kernel.log.snapshot import Snapshot, open_snapshot
from delta_ds.kernel.storage.store_options import is_hadoop_setting
from delta_ds.kernel.transaction.table_log import Current
from delta_ds.records import dataclass
from delta_ds.spark.base import schema as schemas
from delta_ds.spark.base.kinds.session_facts import parse_options_of_read
from delta_ds.spark.base.kinds.session_kind import answers_jvm
from delta_ds.spark.base.schema import public_field
from delta_ds.spark.base.table_names import check_path
from delta_ds.spark.engines.classic.columns import scan_columns, spark_schema
from delta_ds.spark.engines.classic.hadoop import check_names, hadoop_root, local_root
from delta_ds.spark.engines.classic.jvm import Jvm, NotNative, compile_class, errors_to_jvm, java_exception
from delta_ds.spark.engines.classic.projection import ColumnAt, project
from delta_ds.spark.engines.classic.scan import READER_OPTIONS, insert_refusal, scan
from delta_ds.spark.engines.classic.snapshot_isolation import address_of, made_ms, snapshot_of_command
from delta_ds.spark.engines.portable.batch import Changes, Rows
from delta_ds.spark.engines.portable.source import open_read, select_read_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType as SparkStructType

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
    """A table whose newest version frames read, or one version of it.

    A `java.util.function.BiFunction` from a version's name to the scan of it.

    Parameters
    ----------
    snapshot
        The version that frames take their columns from.
    root, hadoop_options, timezone
        See `scan`.
    pinned
        Frames read that version and no other.
    """

    def __init__(
        self,
        jvm: Jvm,
        snapshot: Snapshot,
        root: str | None,
        hadoop_options: Mapping[str, str],
        timezone: str | None,
        pinned: bool = False,
    ) -> None:
        self._jvm = jvm
        self._schema = snapshot.schema
        self._storage = snapshot.storage
        self._pinned = snapshot if pinned else None
        self._address = address_of(snapshot.storage)
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
        which = "newest after" if self._pinned is None else "version"
        return f"pydelta[{which} {self._made_of}{zone}]"

    @property
    def place(self) -> str:
        """The text of all relations that read the same version in one query."""
        return self._address if self._pinned is None else f"{self._address} {self._made_of}"

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
        if self._pinned is not None:
            return self._pinned
        if asked is None or asked.startswith("command "):
            command = (asked or "").removeprefix("command ")
            current = snapshot_of_command(command, self._address, self._newest)
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
        if not self._schema.fields:
            raise READ_TABLE_WITHOUT_COLUMNS(table=self._storage.url, version=snapshot.version)
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
    *,
    pinned: bool = False,
) -> DataFrame:
    """A frame with the columns of a version whose executions read the newest one.

    Parameters
    ----------
    root, hadoop_options, timezone
        See `scan`.
    insert
        See `load`.
    pinned
        Executions read that version, into which no row goes.

    Raises
    ------
    NotNative
        The portable path has to read this table, or Spark takes no rule.
    """
    scan_columns(snapshot)  # whether the scan can read them
    if root is None:
        check_names(jvm.spark, snapshot)
    table = LatestVersion(jvm, snapshot, root, hadoop_options, timezone, pinned)
    rule = _install_rule(jvm)
    schema = jvm.struct(spark_schema(_public(snapshot.schema)))
    options = {**hadoop_options, "path": snapshot.storage.address.as_written}
    if pinned:
        options["versionAsOf"] = str(snapshot.version)
        insert = partial(_refuse_rows, snapshot)
    relation = rule.of(
        table.identity,
        table.place,
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


def _refuse_rows(snapshot: Snapshot, *_: object) -> NoReturn:
    raise insert_refusal(snapshot)


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


_PORTABLE_OPTIONS = {"metadatacolumns": "metadataColumns", "maxpartitionbytes": "maxPartitionBytes"}


def load(
    spark: SparkSession,
    options: Mapping[str, str],
    schema: SparkStructType | None = None,
    *,
    insert: InsertRows,
) -> DataFrame:
    """The rows that read options ask for, of the newest version at each execution unless they name one.

    Parameters
    ----------
    spark
        A classic session.
    options
        As of `spark.read`, `path` among them.
    schema
        Columns to read, as given to `spark.read.schema(...)`; None for all, or for what `columns` says.
    insert
        Writes the rows of an `INSERT INTO` a view of the result.

    Raises
    ------
    NotNative
        The portable path has to read this.
    DeltaError
        No table there, a version or timestamp out of reach, a feature or option that is not known.
    """
    return frame_of(spark, open_reading(spark, options), options, schema, insert=insert)


@dataclass(frozen=True)
class Reading:
    """A table that is open to be read: what options ask for, and the version that they name.

    Attributes
    ----------
    parsed
        The options of the read.
    rows
        The version, or the changes.
    """

    parsed: ReadOptions
    rows: Rows | Changes


def open_reading(spark: SparkSession, options: Mapping[str, str]) -> Reading:
    """Open the table that read options name; see `load` and `open_read`."""
    check_path(options)
    # Hadoop has what the session says already, and looks it up each time.
    parsed = parse_options_of_read(spark, options)
    return Reading(parsed, open_read(parsed, None))


def frame_of(
    spark: SparkSession,
    opened: Reading,
    options: Mapping[str, str],
    schema: SparkStructType | None = None,
    *,
    insert: InsertRows,
) -> DataFrame:
    """The rows of a table that is open; arguments and errors as for `load`."""
    for name in options:
        if name.lower() in _PORTABLE_OPTIONS:
            raise NotNative(f"the option {_PORTABLE_OPTIONS[name.lower()]} is the portable reader's")
    jvm = Jvm.of(spark)
    parsed, reading = opened.parsed, opened.rows
    if isinstance(reading, Changes):
        raise NotNative("a change feed is read file by file")
    root = hadoop_root(jvm, options, parsed.path)
    hadoop_options = {k: v for k, v in options.items() if is_hadoop_setting(k)}
    zone, found = parsed.time_zone, reading.snapshot
    # Without columns there is no scan, but a frame whose execution says so, as `LatestVersion` does.
    if reading.travels and found.schema.fields and not found.table_state.row_tracking_columns:
        frame = scan(spark, found, root=root, hadoop_options=hadoop_options, timezone=zone)
    else:
        # Only this relation has the fields of row tracking in `_metadata`.
        frame = latest_relation(jvm, found, root, hadoop_options, zone, insert, pinned=reading.travels)
    if schema is not None:
        names = schemas.find_columns(schema, reading.schema, reading.table)
        shown = schema.names
    elif parsed.columns is not None:
        names = shown = select_read_schema(reading.schema, parsed, reading.table).names
    else:
        return frame
    positions = {name: at for at, name in enumerate(reading.schema.names)}
    # A schema that the user gave may write a name in another case, which then is that of the column.
    chosen = [
        ColumnAt(positions[name], None if name == other else other)
        for name, other in zip(names, shown, strict=True)
    ]
    return project(jvm, frame, chosen)
