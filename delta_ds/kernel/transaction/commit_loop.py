"""The commit loop: publish, and after losing a version check the winning commits, rebase and retry.

Source: PROTOCOL.md, "Creation of New Log Entries"; conflict-matrix section 2.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from delta_ds.conditions.transaction import ACTION_NOT_JSON
from delta_ds.events.log import COMMIT_FOUND_AFTER_LOST_ANSWER, COMMIT_REBASED
from delta_ds.exceptions import CommitFailedError, DeltaError
from delta_ds.kernel.base.json_text import to_json
from delta_ds.kernel.format.actions import CommitInfo, counted_rows, without_nulls
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import log_store_for
from delta_ds.kernel.storage.staging import Outcome, Staging
from delta_ds.kernel.transaction import conflicts, origin
from delta_ds.kernel.transaction.pending import IsolationLevel, Pending
from delta_ds.kernel.transaction.winning_commit import WinningCommit, read_winning_commits
from delta_ds.reporting import listeners
from delta_ds.reporting.reports import CommitReport

# --- the `commitInfo` action, with delta-spark's fields
# Source: PROTOCOL.md, "Commit Provenance Information"; protocol-checklist CI-*; conflict-matrix section 10.


def default_engine() -> str:
    """`engineInfo` of commits that the kernel makes by itself."""
    from delta_ds._version import __version__

    return f"delta_ds/{__version__}"


def build_commit_info(
    pending: Pending,
    *,
    timestamp: int,
    txn_id: str,
    engine_info: str,
    parameters: Mapping[str, Any] | None,
    metrics: Mapping[str, Any] | None,
    user_metadata: str | None,
    tags: Mapping[str, Any] | None,
) -> CommitInfo:
    """`commitInfo` with its fields in delta-spark's order, without `inCommitTimestamp`.

    Parameters
    ----------
    timestamp
        Milliseconds since 1970.
    parameters
        Of the operation. Texts, numbers, truth values and None stay; lists and maps become JSON text.
    metrics
        Of the operation; None values are left out, all others become text.
    """
    version = pending.snapshot.version if pending.snapshot is not None else None
    level = pending.level
    if not pending.operation.rebased:
        # Serializable whatever the table says, and with a version read even for a new table.
        level, version = IsolationLevel.SERIALIZABLE, -1 if version is None else version
    known = {key: value for key, value in (metrics or {}).items() if value is not None}
    made_by = origin.current().fields()
    info: CommitInfo = {
        "timestamp": timestamp,
        "userName": made_by["userName"],
        "operation": pending.operation.name,
        "operationParameters": _written_properties(
            pending.table, "operationParameters", parameters, _parameter
        ),
        "job": made_by["job"],
        "notebook": made_by["notebook"],
        "clusterId": made_by["clusterId"],
        "readVersion": version,
        "isolationLevel": level.value,
        "isBlindAppend": pending.blind,
        "operationMetrics": _written_properties(pending.table, "operationMetrics", known, as_text),
        "userMetadata": user_metadata,
        "tags": _written_properties(pending.table, "tags", tags, as_text) if tags else None,
        "engineInfo": engine_info,
        "txnId": txn_id,
        "application": made_by["application"],
    }
    return without_nulls(info)


def _written_properties(
    table: str, name: str, values: Mapping[str, Any] | None, as_: Callable[[Any], Any]
) -> dict[str, Any]:
    try:
        return {key: as_(value) for key, value in (values or {}).items()}
    except ValueError as error:
        raise not_json(table, f"commitInfo action ({name})", error) from error


def not_json(table: str, action: str, error: ValueError) -> CommitFailedError:
    """The error for an action that JSON cannot hold, such as one with NaN."""
    return ACTION_NOT_JSON(action=action, table=table, reason=error)


def as_text(value: Any) -> str:
    """A value as delta-spark spells it in maps of texts: `true`, not `True`."""
    return value if isinstance(value, str) else to_json(value)


def _parameter(value: Any) -> Any:
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return to_json(list(value) if isinstance(value, (tuple, set, frozenset)) else value)


# --- the course of a commit in numbers, and the report of it for whoever listens


class CommitCourse:
    """What a commit notes on its way: a few numbers, whether anybody listens or not."""

    __slots__ = ("attempts", "prepared", "rebased_on", "seconds", "size", "started")

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.prepared = 0.0
        self.attempts = 0
        self.size = 0
        self.rebased_on: list[tuple[int, str]] = []
        self.seconds = {"publish": 0.0, "conflict": 0.0, "post_commit": 0.0}

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Count the time of the block to a step: `publish`, `conflict` or `post_commit`."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] += time.perf_counter() - started

    def is_prepared(self) -> None:
        """Checks are done, and the first request comes next."""
        self.prepared = time.perf_counter() - self.started

    def tell(self, pending: Pending, read_version: int, error: BaseException | None = None) -> None:
        """Report a commit that is done or has failed."""
        if not listeners.is_wanted(CommitReport):
            return
        seconds = time.perf_counter() - self.started
        try:
            report = _report(self, pending, read_version, error, seconds)
        except Exception as problem:  # noqa: BLE001 - the commit is done, or its own error is under way
            from delta_ds.events.commands import REPORT_FAILED

            REPORT_FAILED.log_traceback(table=pending.table, reason=problem)
            return
        listeners.report(report)


def _report(
    course: CommitCourse, pending: Pending, read_version: int, error: BaseException | None, seconds: float
) -> CommitReport:
    live = [removes.table for removes in pending.live_removes]
    condition = None
    if error is not None:
        condition = error.condition if isinstance(error, DeltaError) else type(error).__name__
    metrics = pending.commit_info.get("operationMetrics") or {}
    return CommitReport(
        table=pending.table,
        operation=str(pending.operation),
        version=None if error is not None else pending.version,
        read_version=read_version,
        error=condition,
        attempts=course.attempts,
        rebased_on=tuple(course.rebased_on),
        seconds=seconds,
        prepare_seconds=course.prepared or seconds,
        publish_seconds=course.seconds["publish"],
        conflict_seconds=course.seconds["conflict"],
        post_commit_seconds=course.seconds["post_commit"],
        commit_bytes=course.size,
        files_added=len(pending.adds),
        bytes_added=sum(int(add["size"]) for add in pending.adds),
        rows_added=_rows(pending.adds),
        files_removed=len(pending.removes) + sum(table.num_rows for table in live),
        bytes_removed=_bytes_removed(pending),
        rows_removed=None if live else _rows(pending.removes),
        change_files=len(pending.changes),
        metrics={name: str(value) for name, value in metrics.items()},
    )


def _bytes_removed(pending: Pending) -> int | None:
    sizes = [remove.get("size") for remove in pending.removes]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None
    return sum(known) + sum(removes.size for removes in pending.live_removes)


def _rows(bodies: Sequence[Any]) -> int | None:
    """The rows of files as their statistics count them, without deleted ones; None where one does not."""
    total = 0
    for body in bodies:
        count = counted_rows(body.get("stats"))
        vector = body.get("deletionVector")
        deleted = vector.get("cardinality") if vector else 0
        if count is None or deleted is None:
            return None
        total += count - deleted
    return total


# --- the commit loop: publish, and after losing a version check the winning commits, rebase and retry

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
        f"This commit has failed as it has been tried {max_attempts} times but did not succeed: each time another "
        f"commit was quicker than this {pending.operation} on table {pending.table} (from version {first} to "
        f"{pending.version - 1}, in {time.monotonic() - started:.1f} s). Nothing was written; run it again when fewer "
        "others write",
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
