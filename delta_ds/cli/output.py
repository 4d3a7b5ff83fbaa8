"""What commands print: text for people, or one JSON value for programs; and bars of progress on a terminal.

Nothing else of the command line prints: whatever comes from a table is spelled out here before a terminal sees it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from delta_ds.cli.json_values import error_body, plain, shown
from delta_ds.cli.streams import tell, writing
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.base import environment
from delta_ds.kernel.base.card import visible
from delta_ds.kernel.base.work import silence
from delta_ds.reporting.listeners import add_listener

if TYPE_CHECKING:
    from delta_ds.reporting.reports import ProgressReport


DONE, FOUND, USAGE, FAILED, INTERRUPTED, UNREAD = 0, 1, 2, 3, 130, 141
# What each exit status says.
STATUSES = {
    DONE: "the command did what it was asked to",
    FOUND: "`fsck` found damage, `health` missing files, `diff --exit-code` a difference; a commit of somebody else "
    "contradicted a step of `maintain`",
    USAGE: "the command line is wrong: nothing was done",
    FAILED: "the command failed, or its output could not be written, as on a full disk",
    INTERRUPTED: "Ctrl+C, or a signal to end: the table is at a version that it had, or at a whole new one",
    UNREAD: "the reader of the output has gone, as `head` does",
}
# Lines that stand for themselves before the rest is only counted.
MOST_LINES = 20

# What is no terminal takes lines of any length.
_WIDE = 10_000


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the caller; rich itself would end the program, with the status of findings."""
        raise  # noqa: PLE0704 - called while the error is handled


_console = _Console(
    highlight=False, soft_wrap=True, width=None if sys.stdout is not None and sys.stdout.isatty() else _WIDE
)
# Bars are drawn on it.
errors = _Console(stderr=True, highlight=False, soft_wrap=True)


def text_of(value: Any, style: str = "") -> Text:
    """A value as a terminal is shown it, on one line: nothing in it is a command, markup or an emoji."""
    return Text(visible(shown(value)), style)


def print_line(text: str = "", style: str = "") -> None:
    """Print a line.

    Raises
    ------
    OutputError
        The output stream does not take it.
    """
    with writing():
        _console.print(text_of(text, style))


def print_warning(text: str, style: str = "") -> None:
    """Print a line on the error stream, if that takes it."""
    with suppress(OSError):
        errors.print(text_of(text, style))


def print_json(value: Any) -> None:
    """Print a value as JSON.

    Raises
    ------
    OutputError
        The output stream does not take it.
    """
    with writing():
        sys.stdout.write(_json(value, sys.stdout.encoding, indent=2) + "\n")


def _json(value: Any, encoding: str | None, indent: int | None = None) -> str:
    text = json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False)
    # Of what is to be spelled out JSON leaves some as it is; in a string it may be written so as well.
    text = "\n".join(visible(line, "\\u{:04x}") for line in text.split("\n"))
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(plain(value), indent=indent, allow_nan=False)
    return text


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[str] = ()) -> None:
    """Print rows below their columns' names.

    Parameters
    ----------
    right
        Columns of numbers.

    Raises
    ------
    OutputError
        The output stream does not take it.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(text_of(name), justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(text_of, row))
    with writing():
        _console.print(table)


def cut(text: str, cells: int) -> str:
    """A text as a terminal is shown it, of so many cells at most."""
    shown_text = text_of(text)
    shown_text.truncate(cells, overflow="ellipsis")
    return shown_text.plain


def cells_of(text: str) -> int:
    """How wide a terminal shows a text."""
    return text_of(text).cell_len


def print_record(record: Mapping[str, Any]) -> None:
    """Print a value below its name, line by line.

    Raises
    ------
    OutputError
        The output stream does not take it.
    """
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in record.items():
        table.add_row(text_of(name), text_of(value))
    with writing():
        _console.print(table)


def print_error(error: DeltaError, as_json: bool) -> None:
    """Print what failed, on the error stream, if that takes it."""
    if as_json:
        tell(_json(error_body(error), sys.stderr.encoding))
        return
    with suppress(OSError):
        errors.print(Text.assemble(("error: ", "bold red"), text_of(f"[{error.condition}] {error.text}")))


@contextmanager
def progress_bar(json: bool) -> Iterator[Callable[[str, int, int | None], None]]:
    """Bars of the phases of commands, and of phases without reports, on the error stream of a terminal only."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    off = environment.PROGRESS.text().strip().lower() == "off"
    quiet = json or off or not errors.is_terminal
    with silence(), Progress(*columns, console=errors, transient=True, disable=quiet) as bar:
        tasks: dict[str, Any] = {}

        def tell(what: str, done: int, total: int | None) -> None:
            task = tasks.get(what)
            if task is None:
                task = tasks[what] = bar.add_task(visible(what), total=total)
            bar.update(task, completed=done, total=total)

        if quiet:
            yield tell
            return
        with add_listener(_Bars(tell)):
            yield tell


class _Bars:
    """Shows the phases of commands."""

    def __init__(self, tell: Callable[[str, int, int | None], None]) -> None:
        self._tell = tell

    def on_progress(self, report: ProgressReport) -> None:
        total = report.done if report.finished and report.total is None else report.total
        self._tell(f"{report.command}: {report.phase}", report.done, total)
