"""The batch writer: planned on the driver, written by tasks, committed on the driver.

Spark runs planning, each task and the commit in Python processes of their own; the writer travels between them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from delta_ds.kernel.commands.optimize.auto_compact import compact_as_planned
from delta_ds.kernel.storage.staging import discard
from delta_ds.kernel.transaction.write.finish import finish_write
from delta_ds.kernel.transaction.write.plan import WritePlan
from delta_ds.kernel.transaction.write.task import TaskResult, WriteSign, write_rows
from delta_ds.records import dataclass
from delta_ds.spark.base.kinds.session_facts import engine_info
from delta_ds.spark.base.processes import same_version, task_time_zone
from delta_ds.spark.errors.translation import with_error_parameters

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.storage.filesystem import Storage


@dataclass
class TaskMessage(WriterCommitMessage):
    """The message of a task to the driver."""

    result: TaskResult


@same_version
@with_error_parameters
class DeltaWriter(DataSourceArrowWriter):
    """Carries out a `WritePlan`; nothing counts before `commit`."""

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan
        # Spark may run a task twice, and still run one after its query has failed.
        self._sign = WriteSign.of(plan.storage, str(uuid.uuid4()))
        self._sign.put()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """One task: rows to data files.

        Raises
        ------
        InvariantViolationError
            A row breaks a constraint. The files of the task are deleted.
        """
        return TaskMessage(write_in_task(self._plan, iterator, self._sign))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Publish the files of all tasks as one version.

        Raises
        ------
        DeltaConcurrentModificationException
            Another commit came first and contradicts the write; its files are deleted.
        """
        results = results_of(messages)
        self._sign.remove()
        self._sign.discard_others(results)
        paths = [path for result in results for path in result.paths]
        try:
            version = finish_write(self._plan, results, engine_info=engine_info())
        finally:
            self._sign.tidy(paths)
        if version is not None:
            compact_as_planned(self._plan, results, engine_info())

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete what the tasks of a failed job have written."""
        self._sign.remove()
        results = results_of(messages)
        if len(results) < len(messages):  # Else it is the commit that failed, which cleans up itself.
            self._sign.discard_others(())
        self._sign.tidy([path for result in results for path in result.paths])


def write_in_task(
    plan: WritePlan, rows: Iterator[pa.RecordBatch], sign: WriteSign | None = None
) -> TaskResult:
    """The rows of the task that runs here, written to data files: below the folder of the sign, if there is one."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if plan.intent.said_time_zone is None:
        plan = plan.in_time_zone(task_time_zone())
    task, folder = context.partitionId() if context else 0, sign.folder if sign else ""
    return write_rows(plan, rows, task, folder=folder, sign=sign)


def results_of(messages: Sequence[WriterCommitMessage | None]) -> list[TaskResult]:
    """What tasks have written, by the messages of those that were done."""
    return [message.result for message in messages if isinstance(message, TaskMessage)]


def discard_failed(storage: Storage, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Delete what the tasks of a failed job have written."""
    if all(message is not None for message in messages):
        # Every task was done, so it is the commit that failed: it has cleaned up itself, or left the files
        # because it cannot know whether a version refers to them.
        return
    discard(storage, [path for result in results_of(messages) for path in result.paths])
