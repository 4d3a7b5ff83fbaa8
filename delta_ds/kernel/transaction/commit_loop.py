"""The commit loop: publish, and after losing a version check the winning commits, rebase and retry.

Source: PROTOCOL.md, "Creation of New Log Entries"; conflict-matrix section 2.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from typing import Any, cast

from delta_ds.events.transactions import COMMIT_FOUND_AFTER_LOST_ANSWER, COMMIT_REBASED
from delta_ds.exceptions import CommitFailedError
from delta_ds.kernel.actions import without_nulls
from delta_ds.kernel.json_text import to_json
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import log_store_for
from delta_ds.kernel.storage.staging import Outcome, Staging
from delta_ds.kernel.transaction import conflicts
from delta_ds.kernel.transaction.commit_course import CommitCourse
from delta_ds.kernel.transaction.commit_info import not_json
from delta_ds.kernel.transaction.pending import Pending
from delta_ds.kernel.transaction.winning_commit import WinningCommit, read_winning_commits

# Losing once is no reason to wait: the winning commit is done. Whoever loses again and again gives way for a while.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.002, 0.5


def publish(
    storage: Storage,
    pending: Pending,
    staged: Staging,
    course: CommitCourse,
    *,
    retry: bool,
    max_attempts: int,
) -> int:
    """Commit at the next free version, which `pending.version` is afterwards.

    Parameters
    ----------
    staged
        What was written for the commit; hears what becomes of it.
    course
        Notes attempts and times.
    retry
        Whether another version than the first one will do.
    max_attempts
        How often to try at most.

    Returns
    -------
    int
        The size of the commit file, bytes.

    Raises
    ------
    DeltaConcurrentModificationException
        A commit that came first contradicts this one.
    CommitFailedError
        So many others were quicker, or see `conflicts.check_and_rebase`.
    StorageError
        The storage refused; nothing was written, unless it is an `UncertainWriteError`.
    """
    started, first = time.monotonic(), pending.version
    store = log_store_for(storage)
    for attempt in range(1, max_attempts + 1):
        data = serialise(pending)
        if attempt == 1:
            course.is_prepared()
        course.attempts, course.size = attempt, len(data)
        try:
            with course.timed("publish"), staged.publishing():
                store.publish(pending.version, data)
            return len(data)
        except FileExistsError:
            with course.timed("conflict"):
                if attempt > 1:
                    time.sleep(_pause(attempt))
                own = _catch_up(storage, pending, staged, course, retry)
        if own is not None:
            # An attempt whose answer was lost had worked after all.
            COMMIT_FOUND_AFTER_LOST_ANSWER.log(table=pending.table, version=own.version)
            staged.outcome = Outcome.PUBLISHED
            pending.version = own.version
            return len(own.data)
    raise CommitFailedError(
        f"table {pending.table}: this {pending.operation} has been tried {max_attempts} times, and each time another "
        f"commit was quicker (from version {first} to {pending.version - 1}, in {time.monotonic() - started:.1f} s). "
        "Nothing was written; run it again when fewer others write",
        parameters={"numAttempts": max_attempts, "startVersion": first, "failVersion": pending.version - 1},
    )


def _pause(attempt: int) -> float:
    longest = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(attempt, 20))
    return random.uniform(0, longest)


def _catch_up(
    storage: Storage, pending: Pending, staged: Staging, course: CommitCourse, retry: bool
) -> WinningCommit | None:
    """Check and rebase on every commit that came first; returns the one that was this transaction's own."""
    columns = pending.snapshot.physical_partition_columns if pending.snapshot is not None else ()
    for winning_commit in read_winning_commits(storage, pending.version, columns):
        if winning_commit.info.get("txnId") == pending.commit_info["txnId"]:
            return winning_commit
        if staged.is_named_in(winning_commit.data):
            # The same files were committed before, by one who was told that it is not known whether they were.
            staged.outcome = Outcome.PUBLISHED
        if not retry:
            raise conflicts.cannot_repeat(pending, winning_commit)
        conflicts.check_and_rebase(pending, winning_commit)
        course.rebased_on.append((winning_commit.version, str(winning_commit.operation)))
        COMMIT_REBASED.log(table=pending.table, version=pending.version, winner=winning_commit.operation)
    return None


def serialise(pending: Pending) -> bytes:
    """The commit as it is to be published: one action a line."""
    pieces = list(_lines(pending))
    return b"".join(pieces)


def _lines(pending: Pending) -> Iterator[bytes]:
    for action in pending.actions():
        ((name, body),) = action.items()
        try:
            # What a `commitInfo` holds is its own matter; optional fields of the others that are not set are left out.
            text = to_json(body if name == "commitInfo" else without_nulls(cast("Mapping[str, Any]", body)))
        except ValueError as error:
            raise not_json(pending.table, f"{name} action", error) from error
        yield f'{{"{name}":{text}}}\n'.encode()
    for removes in pending.live_removes:
        yield from removes.lines()
