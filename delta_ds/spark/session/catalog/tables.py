"""Tables as Spark's catalogs and sources know them: opened once, described, and read."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakValueDictionary

from delta_ds.conditions.catalog import UNSUPPORTED_STATEMENT
from delta_ds.conditions.record import ENTRY_WITHOUT_TABLE
from delta_ds.events.spark import ENTRY_WITHOUT_COLUMNS
from delta_ds.exceptions import DeltaError, NotADeltaTableError
from delta_ds.kernel.commands.changes.commit import CHANGE_TYPE
from delta_ds.kernel.format.options.parsing import is_of_store
from delta_ds.kernel.transaction.alter.protocol import protocol_properties
from delta_ds.spark.base import schema as schemas
from delta_ds.spark.base.kinds.session_facts import parse_options_of_read
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.engines.classic.jvm import Jvm, NotNative
from delta_ds.spark.engines.classic.load import Reading, frame_of, open_reading
from delta_ds.spark.engines.portable.batch import Changes
from delta_ds.spark.engines.portable.source import open_read
from delta_ds.spark.session.catalog.entries import Entry, check_address
from delta_ds.spark.session.catalog.updates import clustering_property, follow
from delta_ds.spark.session.reading import read
from delta_ds.spark.session.writes.write import insert_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_ds.kernel.format.options.read import ReadOptions
    from delta_ds.kernel.format.schema.types import StructType
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.spark.base.kinds.java_object import JavaObject

# --- objects of Python that the JVM holds, and gives back when it asks

# py4j gives a stand-in back, and not the object; those that the JVM holds are alive.
_held: WeakValueDictionary[str, Held] = WeakValueDictionary()


class Held:
    """An object that lives as long as the JVM holds this.

    Attributes
    ----------
    id
        By which it is found again.
    """

    def __init__(self, value: Any = None) -> None:
        self.id = uuid.uuid4().hex
        self.value = value
        _held[self.id] = self

    def get(self) -> str:
        """The id, which is all that the JVM can be told."""
        return self.id

    class Java:
        implements: ClassVar[list[str]] = ["java.util.function.Supplier"]


def held(id: str) -> Held:
    """What the JVM holds under an id."""
    return _held[id]


# --- tables as Spark's catalogs and sources know them: opened once, described, and read

_OF_TIME_TRAVEL = ("versionAsOf", "timestampAsOf")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class OpenTable(Held):
    """A table that a query or statement names, at the version that was the newest then, or the one it names.

    Attributes
    ----------
    name
        As Spark shows it.
    options
        Of a read: `path`, and the version or timestamp where one is named.
    entry
        Of the metastore; None for a table that is named by its path.
    """

    # Its full name in a catalog beside the session's.
    catalog_name: str | None = None

    def __init__(self, name: str, options: Mapping[str, str], entry: Entry | None, reading: Reading) -> None:
        super().__init__()
        self.name = name
        self.options = dict(options)
        self.entry = entry
        self.reading = reading

    @property
    def path(self) -> str:
        """Where the table is, as its user or the metastore says."""
        return self.options["path"]

    @property
    def store(self) -> dict[str, str]:
        """The options of its store, and of the coordinator of its commits, which belong to every use of the path."""
        return {name: text for name, text in self.options.items() if is_of_store(name)}

    @property
    def is_historical(self) -> bool:
        """Whether a version or timestamp is named, and not the newest version meant."""
        return any(name in self.options for name in _OF_TIME_TRAVEL)

    @property
    def shows_changes(self) -> bool:
        """Whether its columns are those of a change feed."""
        return isinstance(self.reading.rows, Changes)

    @property
    def snapshot(self) -> Snapshot:
        """The version."""
        rows = self.reading.rows
        assert not isinstance(rows, Changes)
        return rows.snapshot

    def get(self) -> str:
        """The table as the JVM knows it, in JSON."""
        rows = self.reading.rows
        if isinstance(rows, Changes):
            return _told(self, rows.schema)
        return _told(
            self,
            rows.schema,
            self.snapshot.metadata.partition_columns,
            [".".join(map(quoted, path)) for path in self.snapshot.clustering_columns],
            _properties(self, self.snapshot),
        )


class StreamedTable(OpenTable):
    """A table as a stream shows it: by options that make no sense for a batch."""

    def __init__(self, name: str, options: Mapping[str, str], columns: StructType) -> None:
        Held.__init__(self)
        self.name = name
        self.options = dict(options)
        self.entry = None
        self._columns = columns

    @property
    def shows_changes(self) -> bool:
        """See above."""
        return self._columns.find(CHANGE_TYPE) is not None

    def get(self) -> str:
        """See above; what a source tells of a stream are its columns."""
        return _told(self, self._columns)


def open_table(
    spark: SparkSession,
    path: str | None,
    name: str,
    entry: Entry | None,
    version: str | None = None,
    timestamp: str | None = None,
    store: Mapping[str, str] | None = None,
) -> OpenTable:
    """Open a table for Spark's analyser.

    Parameters
    ----------
    path
        As in ``delta.`/path` ``; None for an entry of the metastore.
    name, entry
        See `OpenTable`.
    version
        The version that a query names, as it stands there.
    timestamp
        The timestamp that a query names, in microseconds since 1970.
    store
        Options of its store, and of the coordinator of its commits.

    Raises
    ------
    NotADeltaTableError
        There is none at the path, or where the entry says.
    InvalidOptionError
        The path holds a login.
    """
    if entry is None:
        check_address(str(path))
    options = {**(store or {}), "path": entry.path if entry is not None else str(path)}
    if version is not None:
        options["versionAsOf"] = version
    if timestamp is not None:
        options["timestampAsOf"] = (_EPOCH + timedelta(microseconds=int(timestamp))).isoformat()
    try:
        opened = open_options(spark, name, options, entry)
    except NotADeltaTableError:
        if entry is None:
            raise
        raise ENTRY_WITHOUT_TABLE(tableName=name, location=entry.path) from None
    if entry is not None:
        follow(spark, entry, {**(store or {}), "path": entry.path}, opened.snapshot)
    return opened


def open_options(
    spark: SparkSession, name: str, options: Mapping[str, str], entry: Entry | None = None
) -> OpenTable:
    """Open the table, or the changes, that read options name."""
    return OpenTable(name, options, entry, open_reading(spark, options))


def described_table(spark: SparkSession, name: str, options: Mapping[str, str]) -> OpenTable:
    """The table at the path of options, whatever else they say."""
    place = {key: text for key, text in options.items() if key.lower() == "path" or is_of_store(key)}
    return OpenTable(name, options, None, open_reading(spark, place))


# How many logs are read beside each other, as a store takes its time for each.
_LOGS_AT_ONCE = 16


def entry_columns(spark: SparkSession, entries: str) -> str:
    """The columns and the comments of tables in the metastore, by their logs, in JSON.

    One whose log cannot be read is null, as it is not to hide all others of a list.
    """
    with ThreadPoolExecutor(_LOGS_AT_ONCE) as readers:
        # What the session says of each is asked here: the JVM answers this thread.
        found = [
            readers.submit(_columns_of, entry.full_name, parse_options_of_read(spark, {"path": entry.path}))
            for entry in (Entry(**said) for said in json.loads(entries))
        ]
        return json.dumps({"entries": [one.result() for one in found]})


def _columns_of(name: str, options: ReadOptions) -> dict[str, Any] | None:
    try:
        rows = open_read(options, None)
    except DeltaError as error:
        ENTRY_WITHOUT_COLUMNS.log(table=name, reason=error)
        return None
    assert not isinstance(rows, Changes)
    return {"schema": schemas.to_spark(rows.schema).json(), "comment": rows.snapshot.metadata.description}


def table_held(id: str) -> OpenTable:
    """The table that the JVM holds under an id."""
    table = held(id)
    assert isinstance(table, OpenTable)
    return table


def opened(jtable: JavaObject) -> OpenTable:
    """The table behind one of the JVM's."""
    return table_held(jtable.id())


def _told(
    table: OpenTable,
    columns: StructType,
    partitions: Sequence[str] = (),
    clustering: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
) -> str:
    description = {
        "name": table.name,
        "id": table.id,
        "schema": schemas.to_spark(columns).json(),
        "partitions": list(partitions),
        "clusteredBy": list(clustering),
        "properties": dict(properties or {}),
    }
    return json.dumps(description, ensure_ascii=False)


def _properties(table: OpenTable, snapshot: Snapshot) -> dict[str, str]:
    """What DESCRIBE and SHOW tell of a table: its properties, and what Spark keeps among them."""
    properties = {**snapshot.metadata.configuration, **protocol_properties(snapshot.protocol)}
    properties |= clustering_property(snapshot)
    properties["provider"] = "delta"
    if snapshot.metadata.description is not None:
        properties["comment"] = snapshot.metadata.description
    properties["location"] = table.entry.location if table.entry is not None else table.path
    if table.entry is not None:
        properties |= table.entry.reserved
    return properties


def scanned(spark: SparkSession, table: OpenTable, options: Mapping[str, str]) -> JavaObject:
    """The plan that reads a table.

    Parameters
    ----------
    options
        Of the read itself, as in `spark.read.option(...).table(...)`.
    """
    jvm = Jvm.of(spark)
    complete = {**table.options, **options}
    reading = open_reading(spark, complete) if options else table.reading
    if isinstance(reading.rows, Changes) and not table.shows_changes:
        # Spark has the columns of the table already, and these are others.
        raise UNSUPPORTED_STATEMENT(
            table=table.name, statement="readChangeFeed in WITH (...), not table_changes,"
        )
    try:
        frame = frame_of(spark, reading, complete, insert=insert_rows)
    except NotNative:
        frame = read(spark, complete)
    return jvm.logical_plan(frame)
