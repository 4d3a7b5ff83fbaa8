"""`commit_batch`: every batch of a streaming query is one commit, once.

The commit carries the query's id and the batch's number as an application transaction, so that a batch that is tried
again after a crash is found to be there.

Source: delta-spark, `DeltaSink`; protocol-checklist TXN-W-02.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from delta_ds.conditions.transaction import TABLE_REPLACED_BEFORE_BATCH
from delta_ds.events.commands import BATCH_IS_THERE, BATCH_NOT_READ_BACK
from delta_ds.exceptions import StorageError
from delta_ds.kernel.format.actions import Action
from delta_ds.kernel.format.operations import STREAMING_UPDATE
from delta_ds.kernel.log.checkpoint import read_single_actions
from delta_ds.kernel.log.checkpoint_files import UnreadableCheckpointError
from delta_ds.kernel.log.commit import read_commits
from delta_ds.kernel.log.segment import LogFileGoneError, LogSegment
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.log_store import relative_commit_path
from delta_ds.kernel.storage.staging import Outcome, StagedFiles
from delta_ds.kernel.transaction.transaction import Transaction
from delta_ds.kernel.transaction.write.finish import OperationDetails, finish_write, staged_files
from delta_ds.kernel.transaction.write.intent import newest_snapshot
from delta_ds.kernel.transaction.write.plan import WritePlan
from delta_ds.kernel.transaction.write.task import TaskResult
from delta_ds.records import replace

# As the history shows them, by whether a batch takes the place of all that the table holds.
_MODES = {False: "Append", True: "Complete"}


def commit_batch(
    plan: WritePlan,
    results: Sequence[TaskResult],
    query_id: str,
    batch_id: int,
    *,
    engine_info: str | None = None,
) -> int | None:
    """Commit what the tasks of a batch have written, unless the table has the batch already.

    Parameters
    ----------
    plan
        From `plan_write`, of a `stream_intent`. One made
        for an earlier batch will do as long as nothing but rows has changed in the table since.
    results
        Of every task.
    query_id
        Of the streaming query, which keeps it over restarts from its checkpoint.
    batch_id
        The number of the batch (Spark's epoch).
    engine_info
        Who writes, for the history.

    Returns
    -------
    int or None
        The version; None where nothing was committed: the table has the batch, or the batch is empty and changes
        neither schema nor rows.

    Raises
    ------
    ConcurrentTransactionException
        The query runs twice at once, and the other one was first.
    DeltaConcurrentModificationException
        Another commit contradicts the batch. As with every other failure the files of the batch are deleted, except
        where a version may name them.
    """
    paths = [path for result in results for path in result.paths]
    plan = replace(plan, intent=plan.intent.with_transaction(query_id, batch_id))
    with staged_files(plan, results) as staged:
        # Until the log has been read, an earlier attempt at this batch may have published its files.
        staged.outcome = Outcome.UNKNOWN
        snapshot = newest_snapshot(plan.storage)
        if snapshot is not None and _is_there(plan, snapshot, query_id, batch_id):
            staged.outcome = _outcome(plan, snapshot, staged)
            return None
        staged.outcome = Outcome.NOT_PUBLISHED
        _check_table(plan, snapshot)
        plan, transaction = _move_to_newest(plan, snapshot, engine_info)
        if not paths and not _matters(plan, snapshot):
            return None
        return finish_write(
            plan,
            results,
            transaction,
            operation=OperationDetails(
                STREAMING_UPDATE.name,
                {"outputMode": _MODES[plan.intent.overwrite], "queryId": query_id, "epochId": str(batch_id)},
                _metrics,
            ),
            engine_info=engine_info,
            staged=staged,
        )


def _is_there(plan: WritePlan, snapshot: Snapshot, query_id: str, batch_id: int) -> bool:
    known = last_batch(snapshot, query_id)
    if known is None or known < batch_id:
        return False
    BATCH_IS_THERE.log(table=plan.storage.url, query=query_id, batch=batch_id)
    return True


def _outcome(plan: WritePlan, snapshot: Snapshot, staged: StagedFiles) -> Outcome:
    """The fate of staged files whose batch is committed already: of a retried commit, they may be the ones named."""
    # They were written after the plan was made.
    since = [relative_commit_path(version) for version in range(plan.read_version + 1, snapshot.version + 1)]
    try:
        named = any(staged.is_named_in(plan.storage.read_whole(path)) for path in since)
    except (FileNotFoundError, StorageError) as error:
        BATCH_NOT_READ_BACK.log(table=plan.storage.url, reason=error)
        return Outcome.UNKNOWN
    return Outcome.PUBLISHED if named else Outcome.NOT_PUBLISHED


def _check_table(plan: WritePlan, snapshot: Snapshot | None) -> None:
    """Refuse a table that was created anew since the batch was planned: its rows need not fit, nor belong there."""
    if snapshot is None or plan.read_version < 0 or snapshot.metadata.id == plan.state.metadata.id:
        return
    raise TABLE_REPLACED_BEFORE_BATCH(
        table=plan.storage.url,
        id=snapshot.metadata.id,
        planned_id=plan.state.metadata.id,
        version=snapshot.version,
    )


def _move_to_newest(
    plan: WritePlan, snapshot: Snapshot | None, engine_info: str | None
) -> tuple[WritePlan, Transaction | None]:
    """The plan on the newest version where that has the protocol and metadata that it was made for.

    Otherwise on its own version: what came since is checked for conflicts.
    """
    if (
        snapshot is None
        or snapshot.protocol != plan.state.protocol
        or snapshot.metadata != plan.state.metadata
    ):
        return plan, None
    plan = replace(plan, state=snapshot.table_state, new_protocol=False, new_metadata=False, domains={})
    return plan, Transaction(plan.storage, snapshot, engine_info=engine_info)


def _matters(plan: WritePlan, snapshot: Snapshot | None) -> bool:
    """Whether a batch without rows still changes the table."""
    if plan.new_metadata or plan.new_protocol:
        return True
    return plan.intent.overwrite and snapshot is not None and snapshot.live_files().num_rows > 0


def _metrics(metrics: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metrics of a plain write under the names of a streaming one."""
    return {
        "numRemovedFiles": metrics.get("numRemovedFiles", 0),
        "numOutputRows": metrics.get("numOutputRows", 0),
        "numOutputBytes": metrics["numOutputBytes"],
        "numAddedFiles": metrics["numFiles"],
    }


# Commits read at once, newest first: the last batch is mostly in the last few.
_COMMITS = 16


def last_batch(snapshot: Snapshot, query_id: str) -> int | None:
    """The highest batch of a query that the version has; None for none.

    Reads the commits after the checkpoint, newest first, up to the one that says so; else the transactions of the
    checkpoint.
    """
    try:
        return _last_batch_in(snapshot.storage, snapshot.segment, query_id)
    except (UnreadableCheckpointError, LogFileGoneError):
        # The snapshot knows how to do without it.
        return snapshot.txns.get(query_id)


def _last_batch_in(storage: Storage, segment: LogSegment, query_id: str) -> int | None:
    for end in range(len(segment.commits), 0, -_COMMITS):
        files = segment.commits[max(0, end - _COMMITS) : end]
        for commit in reversed(read_commits(storage, files)):
            found = max(_batches(commit.find("txn"), query_id), default=None)
            if found is not None:
                return found
    if segment.checkpoint is None:
        return None
    transactions = read_single_actions(storage, segment.checkpoint, ("txn",))
    return max(_batches(transactions, query_id), default=None)


def _batches(actions: Iterable[Action], query_id: str) -> Iterator[int]:
    for action in actions:
        txn = action.get("txn")
        if isinstance(txn, Mapping) and txn.get("appId") == query_id and isinstance(txn.get("version"), int):
            yield txn["version"]
