"""In-commit timestamps: strictly increasing, also after a rebase.

Source: PROTOCOL.md, "In-Commit Timestamps"; protocol-checklist ICT-W-01, 02, 05; conflict-matrix section 5.
"""

from __future__ import annotations

from delta_ds.kernel.features import IN_COMMIT_TIMESTAMP
from delta_ds.kernel.properties import (
    ICT_ENABLEMENT_TIMESTAMP,
    ICT_ENABLEMENT_VERSION,
)
from delta_ds.kernel.table_state import TableState
from delta_ds.kernel.transaction.pending import Pending
from delta_ds.kernel.transaction.winning_commit import WinningCommit
from delta_ds.records import replace


def stamp(pending: Pending, now: int) -> None:
    """Set the timestamp of the first attempt, and record the enablement of timestamps.

    Parameters
    ----------
    now
        Milliseconds since 1970.
    """
    if not pending.state.enabled(IN_COMMIT_TIMESTAMP):
        return
    snapshot = pending.snapshot
    pending.in_commit_timestamp = now if snapshot is None else max(now, snapshot.timestamp + 1)
    _record_enablement(pending, snapshot.table_state if snapshot is not None else None)


def rebase(pending: Pending, winning_commit: WinningCommit) -> None:
    """Move the timestamp past that of the winning commit; one without a timestamp counts by its file's time."""
    if not pending.state.enabled(IN_COMMIT_TIMESTAMP):
        return
    won = winning_commit.info.get("inCommitTimestamp")
    if isinstance(won, bool) or not isinstance(won, int):
        won = winning_commit.file.status.modified_ms
    own = pending.in_commit_timestamp
    if own is None:
        own = int(pending.commit_info["timestamp"])
    pending.in_commit_timestamp = max(own, won + 1)
    before = pending.snapshot.table_state if pending.snapshot is not None else None
    if before is not None:
        before = before.after(winning_commit.version, winning_commit.protocol, winning_commit.metadata)
    _record_enablement(pending, before)


def _record_enablement(pending: Pending, before: TableState | None) -> None:
    """The commit that enables timestamps on a table that exists says so; a later one keeps what was said."""
    new = pending.new_metadata
    if new is None or before is None or not pending.state.enabled(IN_COMMIT_TIMESTAMP):
        return
    if not before.enabled(IN_COMMIT_TIMESTAMP):
        since = {
            ICT_ENABLEMENT_VERSION.name: str(pending.version),
            ICT_ENABLEMENT_TIMESTAMP.name: str(pending.in_commit_timestamp),
        }
    elif (
        ICT_ENABLEMENT_VERSION.name in before.properties
        and ICT_ENABLEMENT_VERSION.name not in new.configuration
    ):
        since = {
            k: v
            for k, v in before.properties.items()
            if k in (ICT_ENABLEMENT_VERSION.name, ICT_ENABLEMENT_TIMESTAMP.name)
        }
    else:
        return
    pending.new_metadata = pending.metadata = replace(new, configuration={**new.configuration, **since})
