"""Commits through a coordinator beside plain ones: how many a second, alone and by four writers, and opening the table.

    python -m benchmarks.coordinated_commits --commits 200

Sides take turns in one run, on the same disk. Prints Markdown.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import delta_ds
from delta_ds import DeltaLog

NAME = "main.bench.t"
WRITERS = 4
Open = Callable[[], DeltaLog]


def plain(path: str) -> DeltaLog:
    return DeltaLog(path)


def managed(path: str) -> DeltaLog:
    return delta_ds.catalog("sqlite", f"{path}.db").log(NAME)


SIDES = {"put-if-absent": plain, "coordinator `sqlite`": managed}


def made(folder: str, number: int) -> dict[str, str]:
    """A new table of each side, with in-commit timestamps on both."""
    rows = pa.table({"id": [0]})
    paths = {side: str(Path(folder, f"{at}-{number}")) for at, side in enumerate(SIDES)}
    DeltaLog(paths["put-if-absent"]).write(rows, options={"delta.enableInCommitTimestamps": "true"})
    path = paths["coordinator `sqlite`"]
    delta_ds.catalog("sqlite", f"{path}.db").create(NAME, path).write(rows)
    return paths


def commit(log: DeltaLog, commits: int) -> None:
    """Commits without data files: what is measured is how they are decided."""
    for number in range(commits):
        log.start_transaction().set_txn("bench", number).commit("WRITE")


def race(side: str, path: str, commits: int, writer: int) -> None:
    log = SIDES[side](path)
    for number in range(commits):
        log.start_transaction().set_txn(f"writer {writer}", number).commit("WRITE", max_attempts=10_000)


def seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def together(side: str, path: str, commits: int) -> float:
    """Four processes at once; the time from the first commit to the last one by the log."""
    fork = multiprocessing.get_context("fork")
    jobs = [fork.Process(target=race, args=(side, path, commits, writer)) for writer in range(WRITERS)]
    return seconds(lambda: ([job.start() for job in jobs], [job.join() for job in jobs]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    alone: dict[str, list[float]] = {side: [] for side in SIDES}
    racing: dict[str, list[float]] = {side: [] for side in SIDES}
    opened: dict[str, list[float]] = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(given.rounds):
            paths = made(folder, number)
            for side, path in paths.items():
                racing[side].append(together(side, path, given.commits // WRITERS))
            for side, path in paths.items():
                log = SIDES[side](path)
                alone[side].append(seconds(lambda log=log: commit(log, given.commits)))
            for side, path in paths.items():
                opened[side] += [seconds(lambda: SIDES[side](path).snapshot()) for _ in range(20)]  # noqa: B023
    print("| | commits a second, one writer | four writers | opening the newest version |")
    print("|---|---:|---:|---:|")
    for side in SIDES:
        one = given.commits / statistics.median(alone[side])
        four = given.commits / statistics.median(racing[side])
        print(f"| {side} | {one:.0f} | {four:.0f} | {1000 * statistics.median(opened[side]):.1f} ms |")


if __name__ == "__main__":
    main()
