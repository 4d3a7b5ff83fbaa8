"""The part `curve`: what loading and planning cost against the number of files, and of commits since the checkpoint."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.harness import HERE, OURS, Command, as_table, expect, in_turn, made_once
from benchmarks.large_logs import live_files, write_large_log
from benchmarks.log_tables import ROWS_PER_FILE
from benchmarks.measure import Measurement

_STEPS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_COMMITS = (0, 100, 1_000, 10_000)
_KEPT = 21


def curve(options: argparse.Namespace, folder: Path) -> list[str]:
    """Tables of 10^3 files and more, up to `--files`; then commits after a checkpoint of that many."""
    steps = [n for n in _STEPS if n < options.files] + [options.files]
    rows = [line for files in steps for line in _of_table(options, folder, files, 0)]
    commits = [n for n in _COMMITS if 20 * n <= options.files]
    tails = [line for n in commits for line in _of_table(options, folder, options.files, n)]
    head = ["files", "commits", "work", "by", "time", "CPU", "peak", "time ratio", "memory ratio"]
    note = (
        "V2 checkpoint with sidecars of 50,000 files, statistics of eight columns as text. *time* is of the work "
        "alone, from opening the table; *CPU* (seconds of all threads) and *peak* are of the whole process. *again* "
        "is a second filter on the same column and handle."
    )
    by_files = ["## Loading and planning by number of files\n", note, "", *as_table(head, rows)]
    return [*by_files, "", "## The same by commits since the checkpoint\n", *as_table(head, tails)]


def _of_table(options: argparse.Namespace, folder: Path, files: int, commits: int) -> list[list[object]]:
    table = str(
        made_once(folder / f"large-log-{files}-{commits}", lambda path: write_large_log(path, files, commits))
    )
    middle = ROWS_PER_FILE * (files // 2)
    statistics = f"id BETWEEN {middle} AND {middle + ROWS_PER_FILE * (_KEPT - 1)}"
    cases = {
        "load": ["load", table],
        "partition filter": ["plan", table, "day = '2025-01-03'"],
        "statistics filter": ["plan", table, statistics],
        "statistics filter again": ["again", table, statistics],
    }
    out: list[list[object]] = []
    for title, case in cases.items():
        commands: dict[str, Command] = {"delta_ds": ([*OURS, *case], {"DELTA_DS_CACHE": "off"})}
        if options.peer_python:
            commands["deltalake"] = ([options.peer_python, str(HERE / "peer.py"), *case], {})
        found = in_turn(commands, options.rounds)
        if title == "load":
            expect(found["delta_ds"], live_files(files, commits), title)
        else:
            for name, measured in found.items():
                expect(measured, found["delta_ds"].answer, f"{title} by {name}")
        out += [[f"{files:,}", f"{commits:,}", title, *line] for line in _lines(found)]
    return out


def _lines(found: dict[str, Measurement]) -> list[list[object]]:
    yardstick = found.get("deltalake", found["delta_ds"])
    return [
        [
            name, f"{m.work_s:.2f} s", f"{m.cpu_s:.2f} s", f"{m.peak_mb:.0f} MiB",
            f"{m.work_s / yardstick.work_s:.2f}", f"{m.peak_mb / yardstick.peak_mb:.2f}",
        ]
        for name, m in found.items()
    ]  # fmt: skip
