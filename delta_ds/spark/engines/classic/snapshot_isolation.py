"""One version of each table for all queries of a command; and rows that are cached, computed anew after it."""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from delta_ds.events.spark import CACHED_ROWS_NOT_RENEWED
from delta_ds.spark.base.table_names import is_read
from delta_ds.spark.engines.classic.jvm import Jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.filesystem import Storage

# A property of a thread of the JVM and its children: the command whose queries they run.
_COMMAND = "spark.pydelta.command"
_commands: dict[str, CommandSnapshots] = {}


class CommandSnapshots:
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


def reads_table(frame: DataFrame, path: str) -> bool:
    """Whether a query reads the newest version of a table, by Spark's own reader or by the data source.

    Not where rows are cached, or of a version that is named: these are the same whoever commits.

    Parameters
    ----------
    frame
        Of a classic session.
    path
        The table's, as its user writes it.
    """
    jvm = Jvm.of(frame.sparkSession)
    readings = jvm.relations.readings(frame._jdf.queryExecution().withCachedData())
    return is_read(path, map(json.loads, readings))


@contextmanager
def pin_snapshots(spark: SparkSession, target: Snapshot | None) -> Iterator[CommandSnapshots]:
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
    _commands[name] = CommandSnapshots(target)
    context.setLocalProperty(_COMMAND, name)
    try:
        yield _commands[name]
    finally:
        context.setLocalProperty(_COMMAND, before)  # type: ignore[arg-type]
        del _commands[name]


def snapshot_of_command(command: str, address: str, newest: Callable[[], Snapshot]) -> Snapshot:
    """The version of a table that a command reads, by the name in `_COMMAND`; the newest outside of every command."""
    found = _commands.get(command)
    return newest() if found is None else found.version(address, newest)


def made_ms(snapshot: Snapshot) -> int:
    """What differs where a table is deleted and made anew with the same id: when the file of its commit was written.

    Of a catalog-managed table that changes when the commit is published, and its id is enough.
    """
    return 0 if snapshot.storage.managed else snapshot.segment.last_commit.status.modified_ms


def address_of(storage: Storage) -> str:
    """Where a table is, in one spelling."""
    return os.path.realpath(storage.url) if storage.address.scheme == "file" else storage.url


def refresh_cached_rows(spark: SparkSession, root: str) -> None:
    """Let rows of a table that a session has cached be computed anew when they are next used, as after each change.

    Parameters
    ----------
    root
        The table's folder.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        if caches_rows(spark):
            spark.catalog.refreshByPath(f"file:{root}" if root.startswith("/") else root)
    except (Py4JError, PySparkException) as error:
        CACHED_ROWS_NOT_RENEWED.log(table=root, reason=error)


def caches_rows(spark: SparkSession) -> bool:
    """Whether a session has cached rows of any table or query."""
    return not spark._jsparkSession.sharedState().cacheManager().isEmpty()
