"""Materialize rows that a command reads twice and that could differ the second time.

In classic sessions the values of expressions are fixed when they are resolved (`DmlTarget.context`). A client of Spark
Connect cannot do that: the server resolves expressions anew for each query, with the time of that query.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from delta_ds.spark.commands.engines.choice import engine_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# As Spark shows, in plans, what it settles for each query; also by the words that are timestamps as text.
_CHANGING = re.compile(
    r"\b(current_\w+|now|localtimestamp|curdate|user|session_user|today|tomorrow|yesterday)\b", re.IGNORECASE
)

# The condition of Spark's error.
_LOST = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"


def may_change(frame: DataFrame, expressions: Iterable[Column]) -> bool:
    """Whether some expressions over a frame may have other values in the next query of the command.

    False in classic sessions, where their values are fixed. On Spark Connect the server is asked for the plan, in which
    functions of users are spelled out; a column that is called like a timestamp counts as one.
    """
    if engine_of(frame.sparkSession).fixes_values:
        return False
    asked: Any = frame.select(*(value.alias(f"v{at}") for at, value in enumerate(expressions)))
    return _CHANGING.search(asked._explain_string(mode="extended")) is not None


def materialize(frame: DataFrame, *, replicated: bool = False) -> DataFrame:
    """The rows of a frame, materialized; lost partitions fail the query instead of being computed again.

    Parameters
    ----------
    replicated
        On two executors each, where there are two.
    """
    if replicated:
        from pyspark import StorageLevel

        return frame.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY_2)
    return frame.localCheckpoint(eager=True)


def lost_rows(error: BaseException) -> bool:
    """Whether a query failed because materialized rows went with their executor: all has to begin anew."""
    return _LOST in str(error)
