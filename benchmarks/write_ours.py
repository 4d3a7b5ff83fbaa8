"""The measured process for writes of delta_ds' kernel: `python write_ours.py [--no-flush] CASE ...`.

    commits COUNT HANDLE TABLE     commits of one `add` each; HANDLE is kept (one for all) or anew (one for each)
    appends COUNT HANDLE TABLE     appends of ten rows each; HANDLE as for commits
    checkpoint TABLE               a checkpoint of the newest version
    vacuum MODE HOW TABLE          MODE is full or lite, HOW is dry or real
    settled TABLE                  a compaction of a table whose files are all large enough
    writer KIND COUNT TABLE        one of many writers: says READY, waits for a line, then commits or appends

The first commit loads what is needed and does not count. `--no-flush` turns off what makes files durable, to
compare with a peer that does not.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

if __package__ is None or __package__ == "":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import MARK, failures, report
from benchmarks.write_tables import add_body, commits_of, on_small_table, rows


def committer(table: str, handle: str) -> Callable[[], object]:
    from delta_ds import DeltaLog

    kept = DeltaLog(table)

    def commit() -> object:
        log = kept if handle == "kept" else DeltaLog(table)
        return log.start_transaction().add(add_body()).commit("WRITE", {"mode": "Append"})

    return commit


def appender(table: str, handle: str) -> Callable[[], object]:
    from delta_ds import DeltaLog

    kept, data = DeltaLog(table), rows()
    return lambda: (kept if handle == "kept" else DeltaLog(table)).write(data)


MAKERS = {"commits": committer, "appends": appender}


def repeat(kind: str, count: str, handle: str, table: str) -> None:
    step = MAKERS[kind](table, handle)
    step()
    start = time.perf_counter()
    for _ in range(int(count)):
        step()
    report(time.perf_counter() - start, len(commits_of(Path(table))))


def checkpoint(table: str) -> None:
    import pyarrow.json  # noqa: F401

    from delta_ds.kernel.log.segment import find_segment
    from delta_ds.kernel.storage.open import open_storage
    from delta_ds.kernel.transaction.post_commit import write_checkpoint

    start = time.perf_counter()
    storage = open_storage(table)
    adds = write_checkpoint(storage, find_segment(storage)).num_adds
    report(time.perf_counter() - start, adds)


def vacuum(mode: Literal["full", "lite"], how: str, table: str) -> None:
    from delta_ds import DeltaLog
    from delta_ds.kernel.commands.vacuum.command import vacuum

    def run(path: str) -> int:
        return vacuum(DeltaLog(path), mode=mode, dry_run=how == "dry").num_files

    timed(run, table)


def settled(table: str) -> None:
    from delta_ds import DeltaLog
    from delta_ds.kernel.commands.optimize.command import optimize
    from delta_ds.kernel.commands.optimize.request import OptimizeRequest

    request = OptimizeRequest().with_settings(min_file_size=1)

    def run(path: str) -> int:
        return int(optimize(DeltaLog(path), request).metrics["numFilesRemoved"])

    timed(run, table)


def writer(kind: str, count: str, table: str) -> None:
    step = MAKERS[kind](table, "kept")
    warm_up(kind, table)
    print("READY", flush=True)
    sys.stdin.readline()
    print(MARK + json.dumps(failures(step, int(count))), flush=True)


def warm_up(kind: str, table: str) -> None:
    """Load what is needed, on a table of its own."""
    on_small_table(table, lambda path: MAKERS[kind](path, "kept")())


def timed(run: Callable[[str], int], table: str) -> None:
    """Time something on a table, and on another one before, which loads what is needed."""
    on_small_table(table, run)
    start = time.perf_counter()
    answer = run(table)
    report(time.perf_counter() - start, answer)


def _no_flush() -> None:
    """Before delta_ds is imported, which keeps these functions by name."""
    for name in ("fsync", "fdatasync"):
        setattr(os, name, lambda file: None)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--no-flush"]:
        _no_flush()
        arguments = arguments[1:]
    match arguments:
        case ["commits" | "appends" as kind, count, handle, table]:
            repeat(kind, count, handle, table)
        case ["checkpoint", table]:
            checkpoint(table)
        case ["vacuum", "full" | "lite" as mode, how, table]:
            vacuum(mode, how, table)
        case ["settled", table]:
            settled(table)
        case ["writer", kind, count, table]:
            writer(kind, count, table)
        case other:
            sys.exit(f"unknown case {other}; see the head of this file")
