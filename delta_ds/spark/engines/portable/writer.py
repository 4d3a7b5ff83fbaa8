"""The batch writer: planned on the driver, written by tasks, committed on the driver.

Spark runs planning, each task and the commit in Python processes of their own; the writer travels between them.

Auto compaction after writes, where the table or the session asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from delta_ds.events.commands import AUTO_COMPACTION_FAILED
from delta_ds.kernel.commands.optimize.auto_compact import (
    AutoCompaction,
    auto_compact,
    is_enabled,
)
from delta_ds.kernel.format.actions import Metadata
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.staging import discard
from delta_ds.kernel.transaction.origin import carried
from delta_ds.kernel.transaction.table_log import TableLog
from delta_ds.kernel.transaction.write.finish import finish_write
from delta_ds.kernel.transaction.write.plan import WritePlan
from delta_ds.kernel.transaction.write.task import TaskResult, write_rows
from delta_ds.records import dataclass
from delta_ds.reporting.listeners import leave_reports
from delta_ds.spark.base.kinds.origin import engine_info
from delta_ds.spark.base.same_version import same_version
from delta_ds.spark.base.timezone import task_time_zone
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

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """One task: rows to data files.

        Raises
        ------
        InvariantViolationError
            A row breaks a constraint. The files of the task are deleted.
        """
        return TaskMessage(write_in_task(self._plan, iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Publish the files of all tasks as one version.

        Raises
        ------
        DeltaConcurrentModificationException
            Another commit came first and contradicts the write; its files are deleted.
        """
        results = results_of(messages)
        version = finish_write(self._plan, results, engine_info=engine_info())
        if version is not None:
            compact_as_planned(self._plan, results)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete what the tasks of a failed job have written."""
        discard_failed(self._plan.storage, messages)


def write_in_task(plan: WritePlan, rows: Iterator[pa.RecordBatch]) -> TaskResult:
    """The rows of the task that runs here, written to data files."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if plan.intent.said_time_zone is None:
        plan = plan.in_time_zone(task_time_zone())
    return write_rows(plan, rows, context.partitionId() if context else 0)


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


def compact_as_planned(plan: WritePlan, results: Sequence[TaskResult]) -> None:
    """What follows a commit, by what the session said when the write began."""
    from delta_ds.kernel.commands.optimize.auto_compact import auto_compaction_of

    options = plan.options
    if not options.data_change:
        return
    compaction = auto_compaction_of(options.facts.settings)
    with leave_reports(options.report_folder), carried(options.facts.settings):
        compact_after(plan.storage, plan.state.metadata, results, compaction, plan.rows.timezone)


def compact_after(
    storage: Storage,
    metadata: Metadata,
    results: Iterable[TaskResult],
    compaction: AutoCompaction,
    timezone: str,
) -> None:
    """Compact partitions that a commit has added files to, if that is wanted and they have many small ones.

    Never fails: what goes wrong is logged.

    Parameters
    ----------
    storage, metadata
        The table, after the commit.
    results
        What was written.
    compaction
        What the session says.
    """
    try:
        if not is_enabled(metadata.configuration, compaction):
            return
        partitions = _distinct(add["partitionValues"] for result in results for add in result.adds)
        auto_compact(TableLog(storage), partitions, compaction, timezone=timezone, engine_info=engine_info())
    except Exception as error:
        # The version is there: whoever is told of a failure now would take its files for leftovers.
        AUTO_COMPACTION_FAILED.log(table=storage.url, reason=error)


def _distinct(partitions: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return list({tuple(sorted(p.items())): p for p in partitions}.values())
