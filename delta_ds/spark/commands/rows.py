"""Rows of a command, handed to tasks, and who owns the files that are made of them.

Rows that a command reads more than once, and that have to be the same each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from delta_ds.kernel.storage.staging import Staging
from delta_ds.spark.base.kinds.frames import active
from delta_ds.spark.base.session_conf import is_little
from delta_ds.spark.errors.translation import as_delta_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.spark.engines.seam.engine import Jobs


@contextmanager
def staging(table: str) -> Iterator[Staging]:
    """The owner of a command's files; errors of Spark are translated within the block.

    Parameters
    ----------
    table
        Its address, for messages.
    """
    with Staging(table) as staged:
        try:
            yield staged
        except BaseException as error:
            ours = as_delta_error(error)
            if ours is None or ours is error:
                raise
            raise ours from error


def in_threads(spark: SparkSession, jobs: Jobs, size: int, files: int, share: int = 1) -> bool:
    """Whether threads of this process rewrite files, not tasks: where those would run here too, or little is rewritten.

    Parameters
    ----------
    size, files, share
        As of `is_little`.

    Raises
    ------
    InvalidOptionError
        `LOCAL_OPTIMIZE_CONF` is no size.
    """
    if not (is_little(spark, 1, 0) and jobs.runs_small_jobs()):
        return False
    return jobs.runs_tasks_here() or is_little(spark, size, files, share)


# The condition of Spark's error.
_LOST = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"


def materialize(frame: DataFrame, *, replicated: bool = False) -> DataFrame:
    """The rows of a frame, materialized; lost partitions fail the query instead of being computed again.

    Parameters
    ----------
    replicated
        On two executors each, where there are two.
    """
    with active(frame.sparkSession):
        if replicated:
            from pyspark import StorageLevel

            return frame.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY_2)
        return frame.localCheckpoint(eager=True)


def lost_rows(error: BaseException) -> bool:
    """Whether a query failed because materialized rows went with their executor: all has to begin anew."""
    return _LOST in str(error)
