"""The measured process for delta_ds' kernel: `python -m benchmarks.ours CASE ...`.

load TABLE                    state of the latest version, all live files
list TABLE                    the same and its files in Arrow, statistics text included
plan TABLE PREDICATE          the slices of files that may match, from a cold start
again TABLE PREDICATE         the same with a handle that has planned a filter on the same columns before
replan TABLE PREDICATE        the same with the state already loaded
imports                       modules that `import delta_ds` and planning a read pull in
"""

from __future__ import annotations

import sys
import time

from benchmarks.measure import report

# What a program that only wants to read should not pay for.
HEAVY = ("pyspark", "pandas", "sqlglot", "pyarrow.dataset")


def load(table: str) -> None:
    from delta_ds import DeltaLog

    _import_for_loading()
    start = time.perf_counter()
    files = DeltaLog(table).open_snapshot().live_files().num_rows
    report(time.perf_counter() - start, files)


def list_files(table: str) -> None:
    from delta_ds import DeltaLog

    _import_for_planning()
    start = time.perf_counter()
    files = DeltaLog(table).snapshot().files().num_rows
    report(time.perf_counter() - start, files)


def plan(table: str, predicate: str) -> None:
    from delta_ds import DeltaLog

    _import_for_planning()
    start = time.perf_counter()
    files = len(DeltaLog(table).snapshot().scan(predicate).slices())
    report(time.perf_counter() - start, files)


def again(table: str, predicate: str) -> None:
    from delta_ds import DeltaLog

    _import_for_planning()
    snapshot = DeltaLog(table).snapshot()
    snapshot.scan(predicate).slices()
    start = time.perf_counter()
    files = len(snapshot.scan(predicate).slices())
    report(time.perf_counter() - start, files)


def replan(table: str, predicate: str) -> None:
    from delta_ds import DeltaLog

    _import_for_planning()
    snapshot = DeltaLog(table).snapshot()
    snapshot.scan().num_files  # noqa: B018 - replays
    start = time.perf_counter()
    files = len(snapshot.scan(predicate).slices())
    report(time.perf_counter() - start, files)


def imports(table: str) -> None:
    """Which heavy modules are there after `import delta_ds`, and after planning a read of a table."""
    import delta_ds

    after_import = [name for name in HEAVY if name in sys.modules]
    from delta_ds.kernel.format.expressions.tree import Call, Column, Literal

    start = time.perf_counter()
    snapshot = delta_ds.DeltaLog(table).snapshot()
    by_statistics = Call("<", (Column(("id",)), Literal(5000)))
    by_partition = Call("<>", (Column(("day",)), Literal("2025-01-01")))
    snapshot.scan(Call("and", (by_statistics, by_partition))).tasks()
    after_plan = [name for name in HEAVY if name in sys.modules]
    report(time.perf_counter() - start, {"import delta_ds": after_import, "plan": after_plan})


def _import_for_loading() -> None:
    """Load lazily imported libraries now, so that the time of the work is the time of the work alone."""
    import pyarrow.compute
    import pyarrow.ipc
    import pyarrow.json
    import pyarrow.parquet  # noqa: F401

    import delta_ds.api.delta_log  # noqa: F401


def _import_for_planning() -> None:
    _import_for_loading()
    import delta_ds.kernel.files.scan.scan  # noqa: F401
    from delta_ds.kernel.format.expressions.sql import parse_predicate

    parse_predicate("a = 1")  # sqlglot loads its Spark dialect on first use


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["load", table]:
            load(table)
        case ["list", table]:
            list_files(table)
        case ["plan", table, predicate]:
            plan(table, predicate)
        case ["again", table, predicate]:
            again(table, predicate)
        case ["replan", table, predicate]:
            replan(table, predicate)
        case ["imports", table]:
            imports(table)
        case other:
            sys.exit(f"unknown case {other}; see the head of this file")
