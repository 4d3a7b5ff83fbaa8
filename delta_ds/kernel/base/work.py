"""`Work`: a command of several phases, timed, and its progress told to listeners and as one line to the terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Protocol, TypeVar

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.base import environment
from delta_ds.kernel.base.card import visible
from delta_ds.reporting import listeners
from delta_ds.reporting.reports import CommandReport, ProgressReport

T = TypeVar("T")


class _Rows(Protocol):
    @property
    def num_rows(self) -> int: ...


B = TypeVar("B", bound=_Rows)

# Often enough for a person, and seldom enough to cost nothing.
_BETWEEN_S = 0.1
# What is done sooner needs no line.
_FROM_S = 1.0
_CLEAR = "\r\x1b[K"

_lock = threading.Lock()
_is_line_there = False
_silent: ContextVar[bool] = ContextVar("silent", default=False)


class Phase:
    """One phase of a command, which says how far it is. Threads may share it."""

    def __init__(self, work: Work, name: str, total: int | None, unit: str) -> None:
        self._work = work
        self._name = name
        self._total = total
        self._unit = unit
        self._done = 0
        self._started = self._told = time.perf_counter()
        self._lock = threading.Lock()

    def advance(self, count: int = 1) -> None:
        """So much more is done."""
        with self._lock:
            self._done += count
            if time.perf_counter() - self._told < _BETWEEN_S:
                return
            self._told = time.perf_counter()
        self.tell()

    def reach(self, done: int, total: int | None = None) -> None:
        """So much is done, of as much."""
        self._total = total
        self.advance(done - self._done)

    def each(self, things: Iterable[T]) -> Iterator[T]:
        """Go through things, and count them."""
        for thing in things:
            yield thing
            self.advance()

    def rows(self, batches: Iterable[B]) -> Iterator[B]:
        """Go through batches, and count their rows."""
        for batch in batches:
            yield batch
            self.advance(batch.num_rows)

    @property
    def is_told(self) -> bool:
        """Whether anybody wants to know."""
        return self._work.is_shown or listeners.is_wanted(ProgressReport)

    def tell(self, finished: bool = False) -> None:
        """Report how far it is."""
        if not self.is_told:
            return
        report = ProgressReport(
            table=self._work.table,
            command=self._work.command,
            phase=self._name,
            done=self._done,
            total=self._total,
            unit=self._unit,
            seconds=time.perf_counter() - self._started,
            finished=finished,
        )
        listeners.report(report)
        if self._work.is_shown:
            show(report, time.perf_counter() - self._work.started)


class Work:
    """A command on a table, from its first phase to its report.

    Parameters
    ----------
    command
        `OPTIMIZE`, `VACUUM`, ...
    table
        Its address, without secrets.

    >>> with Work("OPTIMIZE", "/data/t") as work, work.phase("rewriting", total=2) as phase:
    ...     for number in phase.each([1, 2]):
    ...         pass
    """

    def __init__(self, command: str, table: str) -> None:
        self.command = command
        self.table = table
        self.is_shown = is_wanted()
        self.started = time.perf_counter()
        self._phases: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str, *, total: int | None = None, unit: str = "files") -> Iterator[Phase]:
        """Do a phase; one of the same name counts to the first."""
        started = time.perf_counter()
        phase = Phase(self, name, total, unit)
        phase.tell()
        try:
            yield phase
        finally:
            phase.tell(finished=True)
            self._phases[name] = self._phases.get(name, 0.0) + time.perf_counter() - started

    def __enter__(self) -> Work:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_shown:
            clear()
        if listeners.is_wanted(CommandReport):
            condition = None
            if error is not None:
                condition = error.condition if isinstance(error, DeltaError) else type(error).__name__
            seconds = time.perf_counter() - self.started
            listeners.report(CommandReport(self.table, self.command, seconds, dict(self._phases), condition))


# --- the line of a terminal


@contextmanager
def silence(wanted: bool = True) -> Iterator[None]:
    """Show no line in a block: somebody shows progress in a way of its own, or a session wants none."""
    token = _silent.set(wanted or _silent.get())
    try:
        yield
    finally:
        _silent.reset(token)


def is_wanted() -> bool:
    """Whether anybody sees progress: the error stream is a terminal, and `DELTA_DS_PROGRESS` is not `off`."""
    if _silent.get():
        return False
    stream = sys.stderr
    if stream is None or stream.closed or not stream.isatty():
        return False
    return environment.PROGRESS.text().strip().lower() != "off"


def show(report: ProgressReport, running_s: float) -> None:
    """Show how far a phase is, in place of the line before.

    Parameters
    ----------
    running_s
        How long the whole command runs already, seconds.
    """
    global _is_line_there
    if running_s < _FROM_S:
        return
    with _lock:
        sys.stderr.write(_CLEAR + visible(line_of(report)))
        sys.stderr.flush()
        _is_line_there = True


def clear() -> None:
    """Take the line away."""
    global _is_line_there
    with _lock:
        if _is_line_there:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
            _is_line_there = False


def line_of(report: ProgressReport) -> str:
    """The line of a report, without colours.

    >>> from delta_ds.reporting.reports import ProgressReport
    >>> line_of(ProgressReport("/data/t", "VACUUM", "deleting", 3000, 12000, "files", 6.0))
    'VACUUM /data/t: deleting 3,000 of 12,000 files, 25%, 500 a second, 00:18 left'
    """
    text = f"{report.command} {report.table}: {report.phase}"
    if not report.done and report.total is None:
        return text
    text += f" {report.done:,}" + (f" of {report.total:,}" if report.total is not None else "")
    text += f" {report.unit}"
    if report.total:
        text += f", {report.done / report.total:.0%}"
    rate, left = report.rate, report.remaining_seconds
    if rate is not None:
        text += f", {rate:,.0f} a second" if rate >= 1 else f", {1 / rate:,.0f} s each"
    if left is not None:
        text += f", {_clock(left)} left"
    return text


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"
