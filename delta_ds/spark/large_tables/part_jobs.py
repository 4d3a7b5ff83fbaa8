"""Jobs whose tasks each take parts of a checkpoint and answer with messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from delta_ds.kernel.log.checkpoint import UnreadableCheckpointError
from delta_ds.spark.environment import explain_failure
from delta_ds.spark.errors import delta_errors
from delta_ds.spark.frames import map_in_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from delta_ds.kernel.log.checkpoint import CheckpointFiles


def run_parts(
    spark: SparkSession,
    parts: Sequence[CheckpointFiles],
    work: Callable[[CheckpointFiles], Iterable[bytes]],
) -> list[bytes]:
    """The messages of all parts, in the order of the parts.

    Parameters
    ----------
    spark
        A classic session.
    work
        Runs in the tasks.

    Raises
    ------
    DeltaError
        What a task raised.
    """
    jobs = spark.range(0, len(parts), 1, len(parts))
    with delta_errors():
        rows = map_in_arrow(jobs, _task(parts, work), "part bigint, message binary").collect()
    # Tasks answer in any order, a task its messages one after the other.
    rows.sort(key=lambda row: row[0])
    return [bytes(row[1]) for row in rows]


def _task(
    parts: Sequence[CheckpointFiles], work: Callable[[CheckpointFiles], Iterable[bytes]]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for number in batch.column(0).to_pylist():
                for message in work(parts[number]):
                    arrays = [pa.array([number], pa.int64()), pa.array([message], pa.binary())]
                    yield pa.RecordBatch.from_arrays(arrays, names=["part", "message"])

    return task


def why_driver(error: Exception) -> str | None:
    """Why the driver can do what failed in tasks; None where it cannot."""
    missing = explain_failure(error)
    if missing is not None:
        return missing.text
    if isinstance(error, UnreadableCheckpointError) or UnreadableCheckpointError.__name__ in str(error):
        return "a checkpoint cannot be read, another one may do"
    return None
