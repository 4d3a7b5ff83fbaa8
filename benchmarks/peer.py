"""The measured process for deltalake, run by its own environment's interpreter: `python peer.py CASE ...`.

load TABLE                    state of the latest version, as `DeltaTable(path)` loads it
list TABLE                    the same and its files as an Arrow table (`get_add_actions`)
plan TABLE PREDICATE          the files that may match, from a cold start
again TABLE PREDICATE         the same with a handle that has planned the same filter before
replan TABLE PREDICATE        the same with the state already loaded
"""

from __future__ import annotations

import sys
import time

from deltalake import DeltaTable
from measure import report  # beside this file


def load(table: str) -> None:
    start = time.perf_counter()
    found = DeltaTable(table)
    seconds = time.perf_counter() - start
    report(seconds, found.version())


def list_files(table: str) -> None:
    start = time.perf_counter()
    files = DeltaTable(table).get_add_actions().num_rows
    report(time.perf_counter() - start, files)


def plan(table: str, predicate: str) -> None:
    start = time.perf_counter()
    files = len(DeltaTable(table).file_uris(file_pruning_predicate=predicate))
    report(time.perf_counter() - start, files)


def again(table: str, predicate: str) -> None:
    found = DeltaTable(table)
    found.file_uris(file_pruning_predicate=predicate)
    start = time.perf_counter()
    files = len(found.file_uris(file_pruning_predicate=predicate))
    report(time.perf_counter() - start, files)


def replan(table: str, predicate: str) -> None:
    found = DeltaTable(table)
    start = time.perf_counter()
    files = len(found.file_uris(file_pruning_predicate=predicate))
    report(time.perf_counter() - start, files)


if __name__ == "__main__":
    {"load": load, "list": list_files, "plan": plan, "again": again, "replan": replan}[sys.argv[1]](
        *sys.argv[2:]
    )
