"""The files of a large table that VACUUM must leave: tasks name them from the checkpoint, the driver keeps hashes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from delta_ds.kernel.commands.vacuum.command import exactly_needed
from delta_ds.kernel.commands.vacuum.needed_in_parts import needed_in_parts
from delta_ds.spark.engines.large_tables.bound import is_large
from delta_ds.spark.engines.large_tables.part_jobs import in_tasks, map_in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_ds.kernel.commands.vacuum.needed import Needed
    from delta_ds.kernel.log.segment import LogListing
    from delta_ds.kernel.log.snapshot import Snapshot


def find_needed_files(spark: SparkSession, snapshot: Snapshot, listing: LogListing, cutoff_ms: int) -> Needed:
    """What `vacuum` must leave; of a table that is not large as the kernel finds it.

    Parameters
    ----------
    spark
        A classic session.
    snapshot, listing, cutoff_ms
        See `needed_paths`.

    Raises
    ------
    DeltaError
        As `needed_paths`.
    """
    if not is_large(spark, snapshot):
        return exactly_needed(snapshot, listing, cutoff_ms)
    needed = in_tasks(
        snapshot, lambda: needed_in_parts(snapshot, listing, cutoff_ms, partial(map_in_tasks, spark))
    )
    return exactly_needed(snapshot, listing, cutoff_ms) if needed is None else needed
