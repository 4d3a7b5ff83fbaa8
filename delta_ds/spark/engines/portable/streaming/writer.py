"""The stream writer: each micro-batch planned, written by tasks, committed once.

Spark plans each batch in one process, runs its tasks in others and commits it in yet another, where it makes a new
writer. So the plan comes to the commit in the messages of the tasks, and with it the id of the query, which Spark tells
to tasks only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.commands.optimize.auto_compact import compact_as_planned
from delta_ds.kernel.commands.streaming.sink import commit_batch
from delta_ds.kernel.format.schema.char_varchar import schema_of
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.storage.staging import discard
from delta_ds.kernel.transaction.write.intent import APPEND, COMPLETE, find_target, stream_intent
from delta_ds.kernel.transaction.write.plan import WritePlan, plan_write
from delta_ds.records import dataclass
from delta_ds.spark.base.kinds.session_facts import engine_info
from delta_ds.spark.base.processes import machine_time_zone, same_version
from delta_ds.spark.engines.portable.writer import (
    TaskMessage,
    discard_failed,
    results_of,
    write_in_task,
)
from delta_ds.spark.errors.translation import with_error_parameters

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType as SparkStructType

# Source: Spark, StreamExecution.QUERY_ID_KEY.
_QUERY_ID = "sql.streaming.queryId"
_COMMIT_WORKER = "pyspark.sql.worker.python_streaming_sink_runner"


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
