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
from delta_ds.kernel.options.stream_write import APPEND, COMPLETE, parse_stream_write_options
from delta_ds.kernel.schema.char_varchar import schema_of
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.storage.staging import discard
from delta_ds.kernel.streaming.sink import commit_batch
from delta_ds.kernel.write.plan import WritePlan, newest_snapshot, plan_write
from delta_ds.kernel.write.task import TaskResult, write_rows
from delta_ds.records import dataclass
from delta_ds.spark.engines.origin import engine_info
from delta_ds.spark.errors import with_error_parameters
from delta_ds.spark.same_version import same_version
from delta_ds.spark.timezone import machine_time_zone, task_time_zone
from delta_ds.spark.writer import compact_as_planned

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType as SparkStructType

# Source: Spark, StreamExecution.QUERY_ID_KEY.
_QUERY_ID = "sql.streaming.queryId"
_COMMIT_WORKER = "pyspark.sql.worker.python_streaming_sink_runner"


@dataclass
class BatchMessage(WriterCommitMessage):
    """The message of a task of a micro-batch to the driver.

    Attributes
    ----------
    result
        What it wrote.
    query_id
        Of the streaming query, the same after a restart from its checkpoint.
    plan
        What all tasks went by; of the first task only.
    """

    result: TaskResult
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
        self._mode = COMPLETE if complete else APPEND
        zone = machine_time_zone()
        parsed = parse_stream_write_options(options, mode=self._mode, session_time_zone=zone)
        self._storage = open_storage(parsed.path, parsed.storage_options)
        self._plan: WritePlan | None = None
        # There the plan of the tasks is what counts.
        if not _in_commit_worker():
            data = schema_of(schema.jsonValue())
            snapshot = newest_snapshot(self._storage)
            self._plan = plan_write(
                self._storage, snapshot, data, parsed, overwrite=complete, timezone=zone, streaming=True
            )

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
        if plan.options.known_zone is None:
            plan = plan.in_time_zone(task_time_zone())
        task = context.partitionId()
        result = write_rows(plan, iterator, task)
        query_id = context.getLocalProperty(_QUERY_ID)
        return BatchMessage(result, query_id, self._plan if task == 0 else None)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Publish the files of all tasks as one version, unless the table has the batch already.

        Raises
        ------
        DeltaConcurrentModificationException
            Another commit came first and contradicts the batch; its files are deleted.
        """
        reports = [message for message in messages if isinstance(message, BatchMessage)]
        results = [message.result for message in reports]
        plan = next((message.plan for message in reports if message.plan is not None), None)
        query_id = next((message.query_id for message in reports if message.query_id), None)
        if plan is None or query_id is None:
            discard(self._storage, _files(reports))
            raise DeltaError(
                f"batch {batchId} for {self._storage.url} came without the id of its query, so it cannot be written "
                "exactly once. Nothing was written; use foreachBatch with the options txnAppId and txnVersion"
            )
        version = commit_batch(plan, results, query_id, batchId, self._mode, engine_info=engine_info())
        if version is not None:
            compact_as_planned(plan, results)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Delete what the tasks of a failed batch have written."""
        if all(message is not None for message in messages):
            # Every task was done, so it is the commit that failed: it has cleaned up itself, or left the files
            # because it cannot know whether a version refers to them.
            return
        discard(self._storage, _files([m for m in messages if isinstance(m, BatchMessage)]))


def _files(messages: Sequence[BatchMessage]) -> list[str]:
    return [path for message in messages for path in message.result.paths]


def _in_commit_worker() -> bool:
    """Whether this process is one in which Spark commits micro-batches."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    # Its daemon imports it by name; without a daemon (on Windows) it is the main module.
    return _COMMIT_WORKER in sys.modules or getattr(main, "name", None) == _COMMIT_WORKER
