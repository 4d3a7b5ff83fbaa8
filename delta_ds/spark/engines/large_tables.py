"""Tables whose logs are too long for the driver: which they are, and what the tasks of Spark jobs plan for them.

Each task takes a part of a checkpoint and answers with a table.

The files of a large table that VACUUM must leave: tasks name them from the checkpoint, the driver keeps hashes.

The files of a large table that may hold matching rows: its checkpoint is replayed and filtered in tasks.

Each task takes some parts of the checkpoint, reads the columns that are needed, leaves out what newer commits added or
removed (their keys travel with the task: no shuffle), and skips files as the kernel does, by the kernel's own code.
Only what is left comes to the driver.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from delta_ds.conditions.options import INVALID_CONF_VALUE
from delta_ds.events.spark import DISTRIBUTED_PLANNING_NOT_USED
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.base.arrow_buffers import integers, numbers
from delta_ds.kernel.commands.vacuum.command import exactly_needed
from delta_ds.kernel.commands.vacuum.references import (
    Needed,
    NeededHashes,
    PathHashes,
    needed_by_commits,
    needed_in_part,
)
from delta_ds.kernel.files.scan.skipping import part_filter
from delta_ds.kernel.files.write.live_actions import with_statistics_text
from delta_ds.kernel.format.features import V2_CHECKPOINT
from delta_ds.kernel.log import replay
from delta_ds.kernel.log.checkpoint_files import CheckpointReplacedError, UnreadableCheckpointError
from delta_ds.kernel.log.parts import Map, Part, holds_actions, parts_for_tasks
from delta_ds.kernel.log.reconcile import select
from delta_ds.kernel.log.replay import load_head, with_older
from delta_ds.kernel.log.segment import LogFileGoneError, LogListing
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.spark.base.kinds.environment import explain_failure, tasks_problem
from delta_ds.spark.base.kinds.frames import map_in_arrow
from delta_ds.spark.base.session_conf import LARGE_TABLE_CONF, LARGE_TABLE_FILES
from delta_ds.spark.errors.translation import delta_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from delta_ds.kernel.commands.vacuum.references import Needed
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.log.segment import LogListing
    from delta_ds.kernel.log.snapshot import Snapshot

_T = TypeVar("_T")

# In one message from a task to the driver.
_ROWS_AT_ONCE = 50_000


def map_in_tasks(
    spark: SparkSession, function: Callable[[Part], pa.Table], parts: Sequence[Part]
) -> list[pa.Table]:
    """What a function makes of each of some parts, in a task each, in order; see `Map`.

    Parameters
    ----------
    spark
        A classic session.

    Raises
    ------
    DeltaError
        What a task raised.
    """
    import pyarrow as pa

    if not parts:
        return []
    jobs = spark.range(0, len(parts), 1, len(parts))
    with delta_errors():
        rows = map_in_arrow(jobs, _task(function, parts), "part bigint, message binary").collect()
    # Tasks answer in any order, a task its messages one after the other.
    rows.sort(key=lambda row: row[0])
    return [pa.ipc.open_stream(bytes(row[1])).read_all() for row in rows]


def _task(
    function: Callable[[Part], pa.Table], parts: Sequence[Part]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for number in batch.column(0).to_pylist():
                for message in _messages(function(parts[number])):
                    arrays = [pa.array([number], pa.int64()), pa.array([message], pa.binary())]
                    yield pa.RecordBatch.from_arrays(arrays, names=["part", "message"])

    return task


def _messages(rows: pa.Table) -> Iterator[bytes]:
    import pyarrow as pa

    # Paths of one table compress well.
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    for start in range(0, rows.num_rows, _ROWS_AT_ONCE):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema, options=options) as stream:
            # A slice is written with what belongs to it only.
            stream.write_table(rows.slice(start, _ROWS_AT_ONCE).combine_chunks())
        yield sink.getvalue().to_pybytes()


def in_tasks(snapshot: Snapshot, plan: Callable[[], _T], *, again: bool = True) -> _T | None:
    """What tasks find out.

    Parameters
    ----------
    plan
        Begins with the log, and runs the tasks.
    again
        Whether to begin once more where a checkpoint was written again meanwhile.

    Returns
    -------
    answer or None
        None where the driver has to do it, which is logged.

    Raises
    ------
    DeltaError
        The log cannot be read.
    """
    try:
        return plan()
    except Exception as error:
        if again and _is(error, CheckpointReplacedError):
            return in_tasks(snapshot, plan, again=False)
        reason = why_driver(error)
        if reason is None:
            raise
        driver_plans(snapshot, reason)
        return None


def why_driver(error: Exception) -> str | None:
    """Why the driver can do what failed in tasks; None where it cannot."""
    missing = explain_failure(error)
    if missing is not None:
        return missing.text
    if any(
        _is(error, kind) for kind in (UnreadableCheckpointError, CheckpointReplacedError, LogFileGoneError)
    ):
        return "a checkpoint cannot be read, another one may do"
    return None


def _is(error: Exception, kind: type[DeltaError]) -> bool:
    """Whether an error is of a class, here or in the task that Spark tells of."""
    return isinstance(error, kind) or kind.__name__ in str(error)


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


# --- which tables are large: those whose log the driver does not read by itself


def is_large(spark: SparkSession, snapshot: Snapshot) -> bool:
    """Whether the files of a version are to be found by the tasks of a job; see `LARGE_TABLE_CONF`.

    Not where its files are known already, nor where tasks cannot run this package, which is logged.

    Raises
    ------
    InvalidOptionError
        The setting is no number.
    """
    if snapshot.is_loaded or snapshot.selection is not None:
        return False
    sidecars = snapshot.table_state.supports(V2_CHECKPOINT)
    try:
        if not holds_actions(snapshot.storage, snapshot.segment, _bound(spark), sidecars=sidecars):
            return False
    except UnreadableCheckpointError:
        return False  # the driver takes an older one, and says so
    reason = tasks_problem(spark)
    if reason is not None:
        driver_plans(snapshot, reason)
    return reason is None


def driver_plans(snapshot: Snapshot, reason: str) -> None:
    """Log why the driver reads the log of a large table by itself."""
    DISTRIBUTED_PLANNING_NOT_USED.log(table=snapshot.storage.url, reason=reason)


def _bound(spark: SparkSession) -> int:
    text = str(spark.conf.get(LARGE_TABLE_CONF, str(LARGE_TABLE_FILES)))
    try:
        return int(text)
    except ValueError as error:
        raise INVALID_CONF_VALUE(setting=LARGE_TABLE_CONF, value=text, reason=error) from error


def needed_in_parts(snapshot: Snapshot, listing: LogListing, cutoff_ms: int, map: Map) -> Needed:
    """What must stay; see `needed_paths`.

    Parameters
    ----------
    snapshot, listing, cutoff_ms
        See `needed_paths`.
    map
        Calls what names the files of a part; that can be pickled by value.

    Raises
    ------
    DeltaError
        As `needed_paths`; UnreadableCheckpointError where another checkpoint would have to be looked at.
    """
    storage = snapshot.storage
    head = replay.load_head(storage, snapshot.segment)
    older = head.older
    if older is None:
        return exactly_needed(snapshot, listing, cutoff_ms)
    seed = secrets.randbits(64)

    def hashes(part: Part) -> pa.Table:
        known = np.unique(PathHashes(seed).of(needed_in_part(older, part, cutoff_ms)))
        return pa.table({"hash": integers(known.view(np.int64))})

    tables = map(hashes, parts_for_tasks(storage, older.checkpoint))
    own = PathHashes(seed)
    recent = own.of(needed_by_commits(snapshot, head, listing, cutoff_ms))
    return NeededHashes(own, [recent, *(numbers(table["hash"]).view(np.uint64) for table in tables)])
