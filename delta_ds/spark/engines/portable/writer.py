"""The writers of batches and of streams: planned on the driver, written by tasks, committed on the driver.

Spark runs planning, each task and the commit in Python processes of their own; the writer travels between them. Each
micro-batch of a stream is committed once. Spark commits it in yet another process, where it makes a new writer. So the
plan comes to the commit in the messages of the tasks, and with it the id of the query, which Spark tells to tasks only.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.commands.optimize.auto_compact import compact_as_planned
from delta_ds.kernel.commands.streaming.sink import commit_batch
from delta_ds.kernel.format.schema.char_varchar import schema_of
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.storage.staging import discard
from delta_ds.kernel.transaction.write.finish import finish_write
from delta_ds.kernel.transaction.write.intent import APPEND, COMPLETE, find_target, stream_intent
from delta_ds.kernel.transaction.write.plan import WritePlan, plan_write
from delta_ds.kernel.transaction.write.task import TaskResult, WriteSign, write_rows
from delta_ds.records import dataclass
from delta_ds.spark.base.kinds.session_facts import engine_info
from delta_ds.spark.base.processes import machine_time_zone, same_version, task_time_zone
from delta_ds.spark.errors.translation import with_error_parameters

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType as SparkStructType

    from delta_ds.kernel.storage.filesystem import Storage

# Source: Spark, StreamExecution.QUERY_ID_KEY.
_QUERY_ID = "sql.streaming.queryId"
_COMMIT_WORKER = "pyspark.sql.worker.python_streaming_sink_runner"


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


@dataclass
class BatchMessage(TaskMessage):
    """The message of a task of a micro-batch to the driver.

    Attributes
    ----------
    query_id
        Of the streaming query, the same after a restart from its checkpoint.
    plan
        What all tasks went by; of the first task only.
    """

    query_id: str | None
    plan: WritePlan | None


@same_version
@with_error_parameters
class DeltaStreamWriter(DataSourceStreamArrowWriter):
    """Writes micro-batches; nothing counts before `commit`.

    Parameters
    ----------
    options
        As of `df.writeStream`, `path` among them.
    schema
        Of the rows.
    complete
        The output mode is `complete`: a batch takes the place of what the table holds.

    Raises
    ------
    DeltaError
        The rows do not fit the table, or it cannot be written.
    """

    def __init__(self, options: Mapping[str, Any], schema: SparkStructType, *, complete: bool) -> None:
        mode = COMPLETE if complete else APPEND
        intent = stream_intent(options, mode, time_zone=machine_time_zone())
        self._plan: WritePlan | None = None
        # There the plan of the tasks is what counts.
        if _in_commit_worker():
            self._storage = open_storage(intent.options.path, intent.options.storage_options)
        else:
            target = find_target(intent)
            self._storage, self._plan = target.storage, plan_write(target, schema_of(schema.jsonValue()))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> BatchMessage:
        """One task: rows to data files.

        Raises
        ------
        InvariantViolationError
            A row breaks a constraint. The files of the task are deleted.
        """
        from pyspark import TaskContext

        context = TaskContext.get()
        plan = self._plan
        assert context is not None and plan is not None
        result = write_in_task(plan, iterator)
        query_id = context.getLocalProperty(_QUERY_ID)
        return BatchMessage(result, query_id, plan if context.partitionId() == 0 else None)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Publish the files of all tasks as one version, unless the table has the batch already.

        Raises
        ------
        DeltaConcurrentModificationException
            Another commit came first and contradicts the batch; its files are deleted.
        """
        reports = [message for message in messages if isinstance(message, BatchMessage)]
        results = results_of(reports)
        plan = next((message.plan for message in reports if message.plan is not None), None)
        query_id = next((message.query_id for message in reports if message.query_id), None)
        if plan is None or query_id is None:
            discard(self._storage, [path for result in results for path in result.paths])
            raise DeltaError(
                f"batch {batchId} for {self._storage.url} came without the id of its query, so it cannot be written "
                "exactly once. Nothing was written; use foreachBatch with the options txnAppId and txnVersion"
            )
        version = commit_batch(plan, results, query_id, batchId, engine_info=engine_info())
        if version is not None:
            compact_as_planned(plan, results, engine_info())

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Delete what the tasks of a failed batch have written."""
        discard_failed(self._storage, messages)


def _in_commit_worker() -> bool:
    """Whether this process is one in which Spark commits micro-batches."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    # Its daemon imports it by name; without a daemon (on Windows) it is the main module.
    return _COMMIT_WORKER in sys.modules or getattr(main, "name", None) == _COMMIT_WORKER
