"""The handle every command gets: a table, its session, and its alias."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

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
