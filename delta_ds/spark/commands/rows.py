"""Write a command's rows to files of the table, on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from delta_ds.kernel.commands.dml.plan import DmlPlan
from delta_ds.kernel.commands.dml.task import ACTION, BEFORE, DELETE, write_changed_rows
from delta_ds.kernel.options.settings import USER_METADATA
from delta_ds.kernel.storage.staging import Staging
from delta_ds.kernel.write.task import TaskResult
from delta_ds.spark import wire
from delta_ds.spark.commands.dml_target import DmlTarget, is_hidden
from delta_ds.spark.engines.frames import map_in_arrow
from delta_ds.spark.errors import as_delta_error
from delta_ds.spark.schema import quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame


def write_rows(
    frame: DataFrame, plan: DmlPlan, target: DmlTarget, portable: Callable[[], DmlPlan]
) -> list[TaskResult]:
    """Write the rows of a command to files.

    Parameters
    ----------
    frame
        See `write_changed_rows`. Rows whose `ACTION` is `DELETE` only come to be change files.
    plan
        Of the change.
    target
        The table.
    portable
        The same plan for tasks that evaluate the table's expressions themselves.

    Returns
    -------
    list of TaskResult
        What was written, into folders of the plan's own. Nothing refers to it yet.

    Raises
    ------
    InvariantViolationError
        A row breaks a constraint.
    """
    native = _native(frame, plan, target)
    if native is not None:
        return [native]
    # Whoever makes a function of columns parses their names, which may be any.
    plain = frame.toDF(*(f"c{at}" for at in range(len(frame.columns))))
    results = map_in_arrow(plain, _task(portable(), frame.columns), "result string").collect()
    return [wire.decode(row[0]) for row in results]


def _native(frame: DataFrame, plan: DmlPlan, target: DmlTarget) -> TaskResult | None:
    """By Spark's own writer; None where that cannot."""
    problem = None
    if plan.records_changes:
        problem = "rows of the change data feed are written along with the rows"
    elif plan.tracked:
        problem = "rows keep their ids"
    if ACTION in frame.columns:
        from pyspark.sql import functions as F

        frame = frame.where(frame[ACTION] != F.lit(DELETE))
    rows = frame.select(*[frame[quoted(name)] for name in frame.columns if not is_hidden(name)])
    return target.engine.write(rows, plan.write, target.handle.options, plan.folder, problem)


def before_columns(target: DmlTarget, frame: DataFrame) -> list[Column]:
    """The rows of a frame as they are, for change files."""
    return [column.alias(f"{BEFORE}{n}") for n, column in enumerate(target.columns(frame))]


def _task(plan: DmlPlan, names: list[str]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        named = (batch.rename_columns(names) for batch in batches)
        result = write_changed_rows(plan, named, context.partitionId() if context else 0)
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
