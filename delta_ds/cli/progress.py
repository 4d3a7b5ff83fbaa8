"""Progress of long commands, as bars on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from delta_ds.cli import output


@contextmanager
def progress_bar(json: bool) -> Iterator[Callable[[str, int, int | None], None]]:
    """A bar on the error stream of a terminal; nowhere else."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    quiet = json or not output.errors.is_terminal
    with Progress(*columns, console=output.errors, transient=True, disable=quiet) as bar:
        tasks: dict[str, Any] = {}

        def tell(what: str, done: int, total: int | None) -> None:
            task = tasks.get(what)
            if task is None:
                task = tasks[what] = bar.add_task(what, total=total)
            bar.update(task, completed=done, total=total)

        yield tell
