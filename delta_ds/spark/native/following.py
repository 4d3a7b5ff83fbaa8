"""DataFrames that follow their table: each execution reads the newest version.

The analysed plan holds a relation that only names the table. When a query is optimised, a rule (`FollowedTables.java`)
asks here for the scan of one version in its place, of the same version for all relations of a table in that query.
"""

from __future__ import annotations

import logging
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakValueDictionary

from delta_ds.conditions.session import SCHEMA_CHANGE_SINCE_ANALYSIS, TABLE_GONE_SINCE_ANALYSIS
from delta_ds.exceptions import DeltaError, NotADeltaTableError, SchemaError, UnsupportedOperationError
from delta_ds.kernel.schema.read_compatibility import columns_as_before
from delta_ds.kernel.snapshot import Snapshot, open_snapshot
from delta_ds.kernel.transaction.current import Current
from delta_ds.spark.native.columns import scan_columns, spark_schema
from delta_ds.spark.native.compiler import compile_class
from delta_ds.spark.native.insert import Insert
from delta_ds.spark.native.jvm import Jvm, NotNative, java_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.kernel.schema.types import StructType
    from delta_ds.kernel.storage.filesystem import Storage

logger = logging.getLogger("delta_ds")

_MAKE_ANEW = "Make the DataFrame or view anew"

# Versions that some plan reads, by their names: queries that have settled on one find it here.
_settled: WeakValueDictionary[str, Snapshot] = WeakValueDictionary()
# A property of a thread of the JVM and its children: the command whose queries they run.
_COMMAND = "spark.pydelta.command"
_commands: dict[str, Reading] = {}


class Reading:
    """The versions that the queries of one command read, by the addresses of the tables."""

    def __init__(self, target: Snapshot | None) -> None:
        self._lock = threading.Lock()
        self._versions = {} if target is None else {address_of(target.storage): target}
        self._read: set[str] = set()

    def reads(self, storage: Storage) -> bool:
        """Whether a query has read a table."""
        return address_of(storage) in self._read

    def version(self, address: str, newest: Callable[[], Snapshot]) -> Snapshot:
        """The version of a table: the newest at the first use."""
        with self._lock:
            self._read.add(address)
            if address not in self._versions:
                self._versions[address] = newest()
            return self._versions[address]


@contextmanager
def reading(spark: SparkSession, target: Snapshot | None) -> Iterator[Reading]:
    """Let all queries of this thread read the same version of each table, as one command has to that runs several.

    Parameters
    ----------
    spark
        A classic session.
    target
        The version of the table that the command changes, which it reads as well; None where there is none yet.
    """
    context, name = spark.sparkContext, uuid.uuid4().hex
    before = context.getLocalProperty(_COMMAND)
    _commands[name] = Reading(target)
    context.setLocalProperty(_COMMAND, name)
    try:
        yield _commands[name]
    finally:
        context.setLocalProperty(_COMMAND, before)  # type: ignore[arg-type]
        del _commands[name]


def address_of(storage: Storage) -> str:
    """Where a table is, in one spelling."""
    return os.path.realpath(storage.url) if storage.address.scheme == "file" else storage.url


def name_of(snapshot: Snapshot) -> str:
    """A version by its number, what differs where a table is deleted and made anew, and its table."""
    modified = snapshot.segment.last_commit.status.modified_ms
    return f"{snapshot.version} {snapshot.metadata.id} {modified} {address_of(snapshot.storage)}"


class Followed:
    """A table that frames follow: `java.util.function.BiFunction` from a version's name to the scan of it.

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
        self._made_of = name_of(snapshot)

    @property
    def identity(self) -> str:
        """The text by which Spark compares two frames."""
        zone = f" {self._timezone}" if self._timezone is not None else ""
        return f"pydelta[newest after {self._made_of}{zone}]"

    def apply(self, wanted: str | None, known: str | None) -> Any:
        """The version to read.

        Parameters
        ----------
        wanted
            The name of a version, or `command` and the name of one; None for the newest.
        known
            The name of the version that the relation has the plan of; None for none.

        Returns
        -------
        str or py4j.java_gateway.JavaObject
            `known`, a `Tuple2` of the version's name and its plan, or the exception to throw.
        """
        from py4j.protocol import Py4JJavaError

        try:
            snapshot = self._version(wanted)
            name = name_of(snapshot)
            return known if name == known else self._jvm.jvm.scala.Tuple2(name, self._plan(snapshot))
        except DeltaError as error:
            functions = compile_class(self._jvm.jvm, self._jvm.gateway, "PathFunction")
            parameters = self._jvm.map({key: str(value) for key, value in error.parameters.items()})
            return functions.error(str(error), error.condition, parameters)
        except Exception as error:
            told = java_error(error)
            if isinstance(told, Py4JJavaError):
                return told.java_exception
            raise

    class Java:
        implements: ClassVar[list[str]] = ["java.util.function.BiFunction"]

    def _version(self, wanted: str | None) -> Snapshot:
        if wanted is None or wanted.startswith("command "):
            command = _commands.get((wanted or "").removeprefix("command "))
            found = self._newest() if command is None else command.version(self.address, self._newest)
            return _settled.setdefault(name_of(found), found)
        kept = _settled.get(wanted)
        if kept is None:
            kept = open_snapshot(self._storage, int(wanted.partition(" ")[0]))
            if name_of(kept) != wanted:
                raise self._changed("it was deleted and made anew while a query over it was planned")
        return kept

    def _newest(self) -> Snapshot:
        try:
            with self._lock:
                return self._current.snapshot(quick=True)
        except NotADeltaTableError as error:
            raise TABLE_GONE_SINCE_ANALYSIS(table=self._storage.url) from error

    def _plan(self, snapshot: Snapshot) -> Any:
        """The analysed plan of a version with the columns that frames were made of."""
        from delta_ds.spark.native.scan import scan

        columns = columns_as_before(self._schema, snapshot.schema)
        if isinstance(columns, list):
            raise self._changed(f"in version {snapshot.version} {', '.join(columns)}")
        try:
            frame = scan(
                self._jvm.spark,
                snapshot,
                root=self._root,
                hadoop_options=self._hadoop_options,
                columns=columns,
                timezone=self._timezone,
            )
        except NotNative as why:
            raise UnsupportedOperationError(
                f"version {snapshot.version} of {self._storage.url} cannot be read by the scan that the DataFrame has: "
                f"{why.reason}. {_MAKE_ANEW}"
            ) from why
        return self._jvm.logical_plan(frame)

    def _changed(self, what: str) -> SchemaError:
        return SCHEMA_CHANGE_SINCE_ANALYSIS(table=self._storage.url, change=what)


def follow(
    jvm: Jvm,
    snapshot: Snapshot,
    root: str | None,
    hadoop_options: Mapping[str, str],
    timezone: str | None,
) -> DataFrame:
    """A frame with the columns of a version whose executions read the newest one.

    Parameters
    ----------
    root, hadoop_options, timezone
        See `scan`.

    Raises
    ------
    NotNative
        The portable path has to read this table, or Spark takes no rule.
    """
    from delta_ds.spark.native.scan import READER_OPTIONS, check_names, local_root

    scan_columns(snapshot)  # whether the scan can read them
    if root is None:
        check_names(snapshot)
    followed = Followed(jvm, snapshot, root, hadoop_options, timezone)
    tables = _installed(jvm)
    schema = jvm.struct(spark_schema(_public(snapshot.schema)))
    relation = tables.of(
        followed.identity,
        followed.address,
        root or local_root(snapshot),
        jvm.spark._jsparkSession.sessionState().conf().defaultSizeInBytes(),
        schema,
        jvm.ParquetFileFormat(),
        jvm.map({**READER_OPTIONS, **hadoop_options}),
        jvm.spark._jsparkSession,
        followed,
        Insert(jvm, snapshot.storage.url, hadoop_options),
    )
    attributes = jvm.DataTypeUtils.toAttributes(schema)
    return jvm.data_frame(jvm.LogicalRelation.apply(relation, attributes, jvm.none, False, jvm.none))


def _installed(jvm: Jvm) -> Any:
    from py4j.protocol import Py4JError

    tables = compile_class(jvm.jvm, jvm.gateway, "FollowedTables")
    try:
        tables.install(jvm.spark._jsparkSession)
    except Py4JError as error:
        raise NotNative(f"Spark {jvm.spark.version} takes no rules in a running session: {error}") from error
    return tables


def _public(schema: StructType) -> list[Any]:
    from delta_ds.spark.schema import public_field

    return [public_field(field) for field in schema]


def renew_cached(spark: SparkSession, root: str) -> None:
    """Let rows of a table that a session has cached be computed anew when they are next used, as after each change.

    Parameters
    ----------
    root
        The table's folder.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        if not spark._jsparkSession.sharedState().cacheManager().isEmpty():
            spark.catalog.refreshByPath(f"file:{root}" if root.startswith("/") else root)
    except (Py4JError, PySparkException) as error:
        logger.warning("cached_rows_not_renewed table=%s reason=%s", root, error)
