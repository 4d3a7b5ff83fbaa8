"""The files of a large table that may hold matching rows: its checkpoint is replayed and filtered in tasks.

Each task takes some parts of the checkpoint, reads the columns that are needed, leaves out what newer commits added or
removed (their keys travel with the task: no shuffle), and skips files as the kernel does, by the kernel's own code.
Only what is left comes to the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from delta_ds.kernel.live_adds import with_statistics_text
from delta_ds.kernel.log.file_selection import select
from delta_ds.kernel.log.parts import Part, parts_for_tasks
from delta_ds.kernel.log.replay import load_head, with_older
from delta_ds.kernel.scan.part_scan import part_filter
from delta_ds.spark.large_tables.part_jobs import in_tasks, run_parts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from delta_ds.kernel.expressions.tree import Expression
    from delta_ds.kernel.log.snapshot import Snapshot

# Files in one message from a task to the driver.
_FILES_AT_ONCE = 50_000


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
            older = select(head.older, parts, keep, partial(_map_in_tasks, spark), statistics=statistics)
        return snapshot.with_files(with_older(head, older, keep))

    return in_tasks(snapshot, plan) or snapshot


def _map_in_tasks(
    spark: SparkSession, files_of: Callable[[Part], pa.Table], parts: Sequence[Part]
) -> list[pa.Table]:
    """The files of all parts, in order, their statistics as text."""
    import pyarrow as pa

    messages = run_parts(spark, parts, lambda part: _messages(with_statistics_text(files_of(part))))
    return [pa.ipc.open_stream(message).read_all() for message in messages]


def _messages(files: pa.Table) -> Iterator[bytes]:
    import pyarrow as pa

    # Paths of one table compress well.
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    for start in range(0, files.num_rows, _FILES_AT_ONCE):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, files.schema, options=options) as stream:
            # A slice is written with what belongs to it only.
            stream.write_table(files.slice(start, _FILES_AT_ONCE).combine_chunks())
        yield sink.getvalue().to_pybytes()
