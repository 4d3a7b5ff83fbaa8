"""New rows of a command, written by tasks; who owns what a command writes, and what its session says of commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from delta_ds.kernel.options.settings import USER_METADATA
from delta_ds.kernel.storage.staging import Staging
from delta_ds.kernel.write.plan import WritePlan
from delta_ds.kernel.write.task import TaskResult, write_rows
from delta_ds.spark import wire
from delta_ds.spark.commands.dml_target import DmlTarget
from delta_ds.spark.engines.frames import map_in_arrow
from delta_ds.spark.errors import as_delta_error

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def insert_by_tasks(frame: DataFrame, plan: WritePlan, folder: str) -> list[TaskResult]:
    """Write new rows by tasks with this package; arguments as of the kernel's `write_rows`.

    Returns
    -------
    list of TaskResult
        What was written. Nothing refers to it yet.

    Raises
    ------
    InvariantViolationError
        A row breaks a constraint.
    """
    # Whoever makes a function of columns parses their names, which may be any.
    plain = frame.toDF(*(f"c{at}" for at in range(len(frame.columns))))
    results = map_in_arrow(plain, _task(plan, frame.columns, folder), "result string").collect()
    return [wire.decode(row[0]) for row in results]


def _task(
    plan: WritePlan, names: list[str], folder: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        named = (batch.rename_columns(names) for batch in batches)
        result = write_rows(plan, named, context.partitionId() if context else 0, folder=folder)
        yield pa.RecordBatch.from_pydict({"result": [wire.encode(result)]})

    return write


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


def session_metadata(target: DmlTarget) -> Mapping[str, str | None]:
    """`user_metadata` and `engine_info` of the session's commits."""
    from delta_ds.spark.engines.origin import engine_info

    return {
        "user_metadata": target.facts.settings.get(USER_METADATA.full_name),
        "engine_info": engine_info(),
    }
