"""The batch writer: planned on the driver, written by tasks, committed on the driver.

Spark runs planning, each task and the commit in Python processes of their own; the writer travels between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from delta_ds.kernel.alter.place import check_place_is_free
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.options.write import WriteOptions
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.storage.staging import discard
from delta_ds.kernel.transaction.origin import carried
from delta_ds.kernel.write.finish import finish_write, keeps_existing_table
from delta_ds.kernel.write.plan import WritePlan, has_transaction, newest_snapshot
from delta_ds.kernel.write.task import TaskResult, write_rows
from delta_ds.records import dataclass
from delta_ds.reporting.mailbox import leave_reports
from delta_ds.spark.engines.origin import engine_info
from delta_ds.spark.errors import with_error_parameters
from delta_ds.spark.same_version import same_version
from delta_ds.spark.timezone import task_time_zone

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class TaskMessage(WriterCommitMessage):
    """The message of a task to the driver."""

    result: TaskResult


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """The table that a write goes to.

    Attributes
    ----------
    storage
        The table's, or where it shall be.
    snapshot
        The newest version; None for a new table.
    nothing_to_do
        The table has the write's transaction already, or the save mode is `ignore` and there is a table.
    """

    storage: Storage
    snapshot: Snapshot | None
    nothing_to_do: bool


def find_target(options: WriteOptions) -> WriteTarget:
    """The table that a write with these options goes to.

    Raises
    ------
    TableExistsError
        The save mode is `errorifexists`, and there is one; or a statement creates a table where other files are.
    """
    storage = open_storage(options.path, options.storage_options)
    snapshot = newest_snapshot(storage)
    if snapshot is None and options.definition is not None and options.if_exists is not None:
        check_place_is_free(storage)
    nothing = snapshot is not None and (
        has_transaction(snapshot, options.txn) or keeps_existing_table(options, snapshot.version, storage.url)
    )
    return WriteTarget(storage, snapshot, nothing)


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
        from pyspark import TaskContext

        context = TaskContext.get()
        plan = self._plan
        if plan.options.known_zone is None:
            plan = plan.in_time_zone(task_time_zone())
        return TaskMessage(write_rows(plan, iterator, context.partitionId() if context else 0))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Publish the files of all tasks as one version.

        Raises
        ------
        DeltaConcurrentModificationException
            Another commit came first and contradicts the write; its files are deleted.
        """
        results = [message.result for message in messages if isinstance(message, TaskMessage)]
        plan = self._plan
        version = finish_write(plan, results, engine_info=engine_info())
        if version is not None and plan.options.data_change:
            with leave_reports(plan.options.report_folder):
                compact_as_planned(plan, results)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete what the tasks of a failed job have written."""
        if all(message is not None for message in messages):
            # Every task was done, so it is the commit that failed: it has cleaned up itself, or left the files
            # because it cannot know whether a version refers to them.
            return
        results = [message.result for message in messages if isinstance(message, TaskMessage)]
        discard(self._plan.storage, [path for result in results for path in result.paths])


def compact_as_planned(plan: WritePlan, results: Sequence[TaskResult]) -> None:
    """What follows a commit where there is no session to ask: the options of the write hold what that says."""
    from delta_ds.kernel.commands.optimize.auto_compact import auto_compaction_of
    from delta_ds.spark.auto_compaction import compact_after

    compaction = auto_compaction_of(plan.options.facts.settings)
    with carried(plan.options.facts.settings):
        compact_after(plan.storage, plan.state.metadata, results, compaction, plan.rows.timezone)
