"""Progress of long commands, as bars on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from delta_ds.cli import output
from delta_ds.kernel.base import environment
from delta_ds.kernel.base.terminal import visible
from delta_ds.kernel.base.work import silence
from delta_ds.reporting.listeners import add_listener

if TYPE_CHECKING:
    from delta_ds.reporting.reports import ProgressReport


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
    quiet = json or off or not output.errors.is_terminal
    with silence(), Progress(*columns, console=output.errors, transient=True, disable=quiet) as bar:
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
