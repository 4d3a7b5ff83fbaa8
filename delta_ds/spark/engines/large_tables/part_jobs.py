"""Jobs whose tasks each take a part of a checkpoint and answer with a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.log.checkpoint_files import CheckpointReplacedError, UnreadableCheckpointError
from delta_ds.kernel.log.segment import LogFileGoneError
from delta_ds.spark.base.kinds.environment import explain_failure
from delta_ds.spark.base.kinds.frames import map_in_arrow
from delta_ds.spark.engines.large_tables.bound import driver_plans
from delta_ds.spark.errors.translation import delta_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from delta_ds.kernel.log.parts import Part
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
