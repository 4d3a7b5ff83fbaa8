"""The part `kernel`: reads, changes of rows and compaction in one process without Spark, beside deltalake."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness import (
    HERE,
    Command,
    OnCopy,
    as_table,
    expect,
    in_turn,
    in_turn_on_copies,
    made_once,
)
from benchmarks.kernel_cases import CHANGES, READS, SMALL_CHANGES
from benchmarks.measure import Measurement
from benchmarks.native_tables import write_wide_table

FILES = 100
SMALL_ROWS = 400_000
SMALL_FILES = 1000
_OURS = [sys.executable, "-m", "benchmarks.kernel_ours"]


def kernel(options: argparse.Namespace, folder: Path) -> list[str]:
    """Scans and changes of one table, and compaction of a table of small files."""
    files = min(FILES, options.rows)
    rows = [line for title, measure in measures(options, folder).items() for line in _lines(title, measure())]
    head = ["work", "by", "time", "CPU", "peak", "CPU ratio"]
    note = (
        "*time* and *CPU* (seconds of all threads) are of the work alone: the table is open, all is imported. "
        "deltalake reads by its `QueryBuilder`, whose texts are views."
    )
    title = f"## Without Spark: {options.rows:,} rows of 10 columns in {files} files\n"
    return [title, note, "", *as_table(head, rows)]


def measures(options: argparse.Namespace, folder: Path) -> dict[str, Callable[[], dict[str, Measurement]]]:
    """What is measured, by title; each measures all sides when it is called."""
    small = min(SMALL_FILES, options.rows // 1000)

    def measured(
        of: Callable[[argparse.Namespace, str, str, Path], dict[str, Measurement]],
        case: str,
        title: str,
        rows: int = options.rows,
    ) -> dict[str, Measurement]:
        files = min(FILES, rows)
        table = made_once(folder / f"kernel-{rows}", lambda path: write_wide_table(path, rows, files))
        return of(options, case, title, table)

    def compact() -> dict[str, Measurement]:
        many = made_once(
            folder / f"kernel-small-{small}", lambda path: write_wide_table(path, 1000 * small, small)
        )
        commands = {"delta_ds": OnCopy([*_OURS, "compact"], many)}
        if options.peer_python:
            commands["deltalake"] = OnCopy([*_peer(options), "compact"], many)
        return in_turn_on_copies(commands, options.rounds)

    reads = {title: functools.partial(measured, _read, case, title) for case, title in READS.items()}
    changes = {title: functools.partial(measured, _change, case, title) for case, title in CHANGES.items()}
    for case in SMALL_CHANGES:
        rows = min(SMALL_ROWS, options.rows)
        title = f"{CHANGES[case]}, {rows // FILES:,} rows each"
        changes[title] = functools.partial(measured, _change, case, title, rows)
    return {**reads, **changes, f"compaction of {small:,} files of 1,000 rows": compact}


def _read(options: argparse.Namespace, case: str, title: str, table: Path) -> dict[str, Measurement]:
    commands: dict[str, Command] = {"delta_ds": ([*_OURS, case, str(table)], {})}
    if options.peer_python:
        commands["deltalake"] = ([*_peer(options), case, str(table)], {})
    found = in_turn(commands, options.rounds)
    for name, measured in found.items():
        expect(measured, found["delta_ds"].answer, f"{title} by {name}")
    return found


def _change(options: argparse.Namespace, case: str, title: str, table: Path) -> dict[str, Measurement]:
    commands = {"delta_ds": OnCopy([*_OURS, case], table)}
    if options.peer_python:
        commands["deltalake"] = OnCopy([*_peer(options), case], table)
    found = in_turn_on_copies(commands, options.rounds)
    for name, measured in found.items():
        expect(measured, found["delta_ds"].answer, f"{title} by {name}")
    return found


def _lines(title: str, found: dict[str, Measurement]) -> list[list[object]]:
    yardstick = found.get("deltalake", found["delta_ds"])
    return [
        [title, name, f"{m.work_s:.2f} s", f"{m.cpu_s:.2f} s", f"{m.peak_mb:.0f} MiB"]
        + [f"{m.cpu_s / max(yardstick.cpu_s, 1e-3):.2f}"]
        for name, m in found.items()
    ]


def _peer(options: argparse.Namespace) -> list[str]:
    return [options.peer_python, str(HERE / "kernel_peer.py")]
