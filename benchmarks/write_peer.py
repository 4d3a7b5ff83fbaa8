"""The measured process for writes of deltalake, run by its own environment: `python write_peer.py CASE ...`.

The cases are those of `write_ours.py`: commits, appends, checkpoint, vacuum, settled and writer. For commits and
appends HANDLE is kept (one `DeltaTable` for all) or anew (the path for each).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction
from measure import MARK, failures, report  # beside this file
from write_tables import add_body, commits_of, on_small_table, rows


def committer(table: str, handle: str) -> Callable[[], object]:
    kept = DeltaTable(table)
    schema = kept.schema()

    def commit() -> object:
        body = add_body()
        if handle == "kept":
            kept.update_incremental()
        found = kept if handle == "kept" else DeltaTable(table)
        add = AddAction(body["path"], body["size"], {}, body["modificationTime"], True, body["stats"])
        return found.create_write_transaction([add], mode="append", schema=schema)

    return commit


def appender(table: str, handle: str) -> Callable[[], object]:
    kept = DeltaTable(table)
    data = rows()
    return lambda: write_deltalake(kept if handle == "kept" else table, data, mode="append")


MAKERS = {"commits": committer, "appends": appender}


def repeat(kind: str, count: str, handle: str, table: str) -> None:
    step = MAKERS[kind](table, handle)
    step()
    start = time.perf_counter()
    for _ in range(int(count)):
        step()
    report(time.perf_counter() - start, len(commits_of(Path(table))))


def checkpoint(table: str) -> None:
    start = time.perf_counter()
    DeltaTable(table).create_checkpoint()
    seconds = time.perf_counter() - start
    hint = json.loads((Path(table) / "_delta_log" / "_last_checkpoint").read_text())
    report(seconds, int(hint["numOfAddFiles"]))


def vacuum(mode: str, how: str, table: str) -> None:
    timed(lambda path: len(DeltaTable(path).vacuum(dry_run=how == "dry", full=mode == "full")), table)


def settled(table: str) -> None:
    timed(lambda path: int(DeltaTable(path).optimize.compact(target_size=1)["numFilesRemoved"]), table)


def timed(run: Callable[[str], int], table: str) -> None:
    on_small_table(table, run)
    start = time.perf_counter()
    answer = run(table)
    report(time.perf_counter() - start, answer)


def writer(kind: str, count: str, table: str) -> None:
    step = MAKERS[kind](table, "kept")
    on_small_table(table, lambda path: MAKERS[kind](path, "kept")())
    print("READY", flush=True)
    sys.stdin.readline()
    print(MARK + json.dumps(failures(step, int(count))), flush=True)


if __name__ == "__main__":
    cases = {"checkpoint": checkpoint, "vacuum": vacuum, "settled": settled, "writer": writer}
    kind = sys.argv[1]
    if kind in MAKERS:
        repeat(*sys.argv[1:])
    else:
        cases[kind](*sys.argv[2:])
