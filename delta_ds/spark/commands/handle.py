"""`Handle`: a table in a session as commands hold it, opened by path or by name."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from delta_ds.conditions.session import MISSING_DELTA_TABLE_NAME
from delta_ds.spark import log_calls, settings
from delta_ds.spark.connect_bridge import ask, open_log
from delta_ds.spark.table_names import FORMAT, format_and_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.spark.connect_bridge import Log


@dataclass(frozen=True)
class Handle:
    """A table as `DeltaTable` holds it.

    Attributes
    ----------
    spark
        The session, classic or of Spark Connect.
    log
        The table's log: of this process, or of the server.
    where
        The table as messages name it: a full path or URL without secrets.
    options
        Read options: `path`, and `storage.*` and `fs.*` settings.
    alias
        The name by which expressions may call the table.
    given
        The newest of the DataFrames of the table that its user was given: expressions may hold columns of them.
    """

    spark: SparkSession
    log: Log
    where: str
    options: Mapping[str, str] = field(repr=False)
    alias: str | None = None
    given: deque[DataFrame] = field(default_factory=partial(deque, maxlen=16), repr=False, compare=False)


_OURS = (FORMAT, "delta")


def open_handle(
    spark: SparkSession, path: str, options: Mapping[str, str], alias: str | None = None
) -> Handle:
    """The table at a path.

    Parameters
    ----------
    spark
        A classic session or one of Spark Connect.
    path
        A local path or URL.
    options
        `storage.*` and `fs.*` settings.
    alias
        The name by which expressions may call it.

    Raises
    ------
    NotADeltaTableError
        There is no table.
    """
    settings.session_settings(spark)  # tells of those without effect
    log = open_log(spark, path, options)
    where = ask(log, log_calls.location)
    return Handle(
        spark, log, where, {**options, "path": where if where.startswith("/") else str(path)}, alias
    )


def open_name(spark: SparkSession, name: str) -> Handle:
    """The table that a name stands for: ``pydelta.`/path` `` or ``delta.`/path` ``.

    Raises
    ------
    UnsupportedOperationError
        A name that only a catalog could know.
    NotADeltaTableError
        There is no table at the path.
    """
    source, path = format_and_path(name)
    if source not in _OURS:
        raise MISSING_DELTA_TABLE_NAME(tableName=name)
    return open_handle(spark, path, {})
