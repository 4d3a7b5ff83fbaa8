"""The files of a large table that may hold matching rows: its checkpoint is replayed and filtered in tasks.

Each task takes some parts of the checkpoint, reads the columns that are needed, leaves out what newer commits added or
removed (their keys travel with the task: no shuffle), and skips files as the kernel does, by the kernel's own code.
Only what is left comes to the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from delta_ds.kernel.files.scan.part_scan import part_filter
from delta_ds.kernel.files.write.live_adds import with_statistics_text
from delta_ds.kernel.log.file_selection import select
from delta_ds.kernel.log.parts import Part, parts_for_tasks
from delta_ds.kernel.log.replay import load_head, with_older
from delta_ds.spark.engines.large_tables.part_jobs import in_tasks, map_in_tasks

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.log.snapshot import Snapshot


def matching_files(
    spark: SparkSession,
    snapshot: Snapshot,
    predicate: Expression | None,
    timezone: str | None,
    *,
    statistics: bool,
) -> Snapshot:
    """A version with the files that may hold rows for which a predicate is true.

    Parameters
    ----------
    spark
        A classic session.
    snapshot
        The version.
    predicate
        Bound to its schema; None for all live files.
    timezone
        See `prune`.
    statistics
        Whether the files are to have their statistics.

    Returns
    -------
    Snapshot
        A selection of its files; the version itself where the driver has to do it, which is logged.

    Raises
    ------
    DeltaError
        The log cannot be read.
    """

    def plan() -> Snapshot:
        keep = part_filter(snapshot, predicate, timezone)
        head = load_head(snapshot.storage, snapshot.segment)
        older: Iterable[pa.Table] = []
        if head.older is not None:
            parts = parts_for_tasks(snapshot.storage, head.older.checkpoint)
            older = select(head.older, parts, keep, partial(_with_text, spark), statistics=statistics)
        return snapshot.with_files(with_older(head, older, keep))

    return in_tasks(snapshot, plan) or snapshot


def _with_text(
    spark: SparkSession, files_of: Callable[[Part], pa.Table], parts: Sequence[Part]
) -> list[pa.Table]:
    return map_in_tasks(spark, lambda part: with_statistics_text(files_of(part)), parts)
