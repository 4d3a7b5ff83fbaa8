"""The course of a commit in numbers, and the report of it for whoever listens."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.actions import counted_rows
from delta_ds.reporting import listeners
from delta_ds.reporting.reports import CommitReport

if TYPE_CHECKING:
    from delta_ds.kernel.transaction.pending import Pending


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


def tell(
    course: CommitCourse, pending: Pending, read_version: int, error: BaseException | None = None
) -> None:
    """Report a commit that is done or has failed."""
    if not listeners.is_wanted(CommitReport):
        return
    seconds = time.perf_counter() - course.started
    try:
        report = _report(course, pending, read_version, error, seconds)
    except Exception as problem:  # noqa: BLE001 - the commit is done, or its own error is under way
        from delta_ds.events.listeners import REPORT_FAILED

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
