"""What a terminal is shown: texts of strangers spelled out, and the progress of long work as one line."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from delta_ds.kernel.base import environment

if TYPE_CHECKING:
    from delta_ds.reporting.reports import ProgressReport

# What is done sooner needs no line.
_FROM_S = 1.0
_CLEAR = "\r\x1b[K"
# What steers a terminal (C0, C1), turns the direction or the line of what is read, or has no bytes in UTF-8.
_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)

_lock = threading.Lock()
_is_line_there = False
_silent: ContextVar[bool] = ContextVar("silent", default=False)


def visible(text: str, pattern: str = "\\x{:02x}") -> str:
    r"""A text as a terminal may be shown it: what would steer the terminal is spelled out.

    Parameters
    ----------
    text
        One line: line feeds are spelled out as well.
    pattern
        How characters below U+0100 are spelled; others are `\uNNNN`.

    >>> print(visible("\x1b[2Jall is well\u202e"))
    \x1b[2Jall is well\u202e
    """
    if text.isascii() and text.isprintable():
        return text

    def spelled(found: re.Match[str]) -> str:
        code = ord(found[0])
        return (pattern if code < 0x100 else "\\u{:04x}").format(code)

    return _STEERING.sub(spelled, text)


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
