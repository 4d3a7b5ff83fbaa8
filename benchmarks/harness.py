"""What the parts have in common: rounds taken in turn, the commands of the measured processes, and Markdown."""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.log_tables import write_commit, write_log_table
from benchmarks.measure import MARK, Measurement, middle, run_once
from benchmarks.write_tables import commits_of

HERE = Path(__file__).resolve().parent
WORK = HERE / ".work"
OURS = [sys.executable, "-m", "benchmarks.ours"]
WRITES = [sys.executable, str(HERE / "write_ours.py")]

Command = tuple[Sequence[str], Mapping[str, str]]


@contextmanager
def work_folder(keep: bool) -> Iterator[Path]:
    """Where tables are made: gone at the end, unless they are to be kept for the next run."""
    WORK.mkdir(exist_ok=True)
    if keep:
        yield WORK
        return
    folder = tempfile.mkdtemp(dir=WORK)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder)


def compile_package() -> None:
    """Have bytecode of the package beside its modules, as after an installation: no process compiles it then."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compileall.compile_dir(HERE.parent / "delta_ds", quiet=2)


def made_once(root: Path, make: Callable[[Path], Path]) -> Path:
    """The table at a path; what is there already is whole and stays."""
    if not root.exists():
        partial = root.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        make(partial).rename(root)
    return root


def log_table(folder: Path, layout: str, files: int) -> str:
    """A table of so many files that is only a log."""

    def make(path: Path) -> Path:
        return write_log_table(path, layout, files, commits=min(100, files), tail=min(1000, files // 20))

    return str(made_once(folder / f"log-{files}-{layout}", make))


def in_turn(commands: Mapping[str, Command], rounds: int) -> dict[str, Measurement]:
    """The medians of every competitor; each round goes through all of them."""
    taken: dict[str, list[Measurement]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, (command, environment) in commands.items():
            taken[name].append(run_once(command, environment))
    return {name: middle(measured) for name, measured in taken.items()}


@dataclass(frozen=True)
class OnCopy:
    """A command whose last argument is to be a copy of a table, with one more commit if `extra` is given."""

    command: Sequence[str]
    source: Path
    extra: Sequence[str] | None = None


def in_turn_on_copies(commands: Mapping[str, OnCopy], rounds: int) -> dict[str, Measurement]:
    """As `in_turn`, for what changes a table: every measurement gets a fresh copy."""
    taken: dict[str, list[Measurement]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, on in commands.items():
            with fresh_copy(on.source, on.extra) as copy:
                taken[name].append(run_once([*on.command, str(copy)]))
    return {name: middle(measured) for name, measured in taken.items()}


@contextmanager
def fresh_copy(source: Path, extra: Sequence[str] | None = None) -> Iterator[Path]:
    """A copy of a table, on disk before anything is measured, and gone afterwards.

    `extra`: the lines of one more commit that the copy gets.
    """
    with tempfile.TemporaryDirectory(dir=source.parent) as folder:
        copy = Path(folder) / "table"
        shutil.copytree(source, copy)
        if extra is not None:
            write_commit(copy / "_delta_log", commits_of(copy)[-1] + 1, extra)
        os.sync()
        yield copy


def spark_seconds(command: Sequence[str]) -> dict[str, Any]:
    """Run a process that measures in a Spark session of its own; what it printed.

    Raises
    ------
    RuntimeError
        The process failed; the message ends with what it printed.
    """
    done = subprocess.run(list(command), capture_output=True, text=True, cwd=HERE.parent)
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not lines:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(lines[-1][len(MARK) :])
    return found


def expect(measured: Measurement, answer: object, what: str) -> None:
    """See that the work was done.

    Raises
    ------
    RuntimeError
        It was not.
    """
    if measured.answer != answer:
        raise RuntimeError(f"{what} found {measured.answer}, not {answer}")


def as_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """The lines of a Markdown table."""
    return [_row(*head), _row(*["---"] * len(head)), *(_row(*row) for row in rows)]


def _row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def cost(m: Measurement) -> list[str]:
    """The cells work, process and peak."""
    return [f"{m.work_s:.2f} s", f"{m.process_s:.2f} s", f"{m.peak_mb:.0f} MiB"]
