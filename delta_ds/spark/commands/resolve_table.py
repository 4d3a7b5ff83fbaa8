"""Find a table by path or name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_ds.conditions.session import MISSING_DELTA_TABLE_NAME
from delta_ds.spark import log_calls, settings
from delta_ds.spark.commands.handle import Handle
from delta_ds.spark.connect_bridge import ask, open_log
from delta_ds.spark.source import FORMAT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# As Spark takes them: the format plain or quoted, the path quoted, the session's own catalog in front or not.
_BY_PATH = re.compile(
    r"\s*(?:(?:spark_catalog|`spark_catalog`)\s*\.\s*)?(?P<quote>`?)(?P<format>\w+)(?P=quote)\s*\.\s*"
    r"`(?P<path>(?:[^`]|``)+)`\s*",
    re.IGNORECASE,
)
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
    settings.given(spark)  # tells of those without effect
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


def format_and_path(identifier: str) -> tuple[str, str]:
    """The format and path of a name such as ``parquet.`/path` ``; empty for any other name.

    >>> format_and_path("Parquet.`/data/sales`")
    ('parquet', '/data/sales')
    >>> format_and_path("sales")
    ('', '')
    """
    match = _BY_PATH.fullmatch(identifier)
    return (match["format"].lower(), match["path"].replace("``", "`")) if match else ("", "")


def filesystem_options(handle: Handle) -> dict[str, str]:
    """The settings of the filesystem that a table was opened with, for another place on it."""
    return {name: text for name, text in handle.options.items() if name.lower() != "path"}
