"""The last batch that a query committed to a table, found without replaying its files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from delta_ds.kernel.actions import Action
from delta_ds.kernel.log.checkpoint import UnreadableCheckpointError, read_single_actions
from delta_ds.kernel.log.commit import read_commits
from delta_ds.kernel.snapshot import Snapshot

# Commits read at once, newest first: the last batch is mostly in the last few.
_COMMITS = 16


def last_batch(snapshot: Snapshot, query_id: str) -> int | None:
    """The highest batch of a query that the version has; None for none.

    Reads the commits after the checkpoint, newest first, up to the one that says so; else the transactions of the
    checkpoint.
    """
    storage, segment = snapshot.storage, snapshot.segment
    for end in range(len(segment.commits), 0, -_COMMITS):
        files = segment.commits[max(0, end - _COMMITS) : end]
        for commit in reversed(read_commits(storage, files)):
            found = max(_batches(commit.find("txn"), query_id), default=None)
            if found is not None:
                return found
    if segment.checkpoint is None:
        return None
    try:
        return max(
            _batches(read_single_actions(storage, segment.checkpoint, ("txn",)), query_id), default=None
        )
    except UnreadableCheckpointError:
        # The snapshot knows how to do without it.
        return snapshot.txns.get(query_id)


def _batches(actions: Iterable[Action], query_id: str) -> Iterator[int]:
    for action in actions:
        txn = action.get("txn")
        if isinstance(txn, Mapping) and txn.get("appId") == query_id and isinstance(txn.get("version"), int):
            yield txn["version"]
