"""Rows that a command reads more than once, and that have to be the same each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The condition of Spark's error.
_LOST = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"


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
