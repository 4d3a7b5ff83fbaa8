"""Run the benchmarks side by side and print Markdown: `python -m benchmarks.run` (or `make bench`).

    --only PART      imports, start, load, plan, curve, kernel, scan, native, append, partitioned, copies,
                     columns, stores, commits, writers, checkpoint, commands, streams, sql, connect, large or lhbench;
                     may be repeated
    --files N        files of the tables that are only a log (300,000; 10,000,000 for large)
    --rows N         rows of large reads and writes (10,000,000; 20,000,000 for native, whose appends take half);
                     partitioned writes take a fifth and a fiftieth, sql a fifth, connect
                     half
    --commits N      commits one after the other (200)
    --writers N      writers at the same time (8), with
    --appends N      appends each (25)
    --rounds N       rounds of every measurement; medians are shown (3; 1 for commands)
    --command NAME   of commands only delete, update, merge, compaction, zorder, planning or vacuum; may be repeated
    --scale X        size of the tables of commands, streams and lhbench (1)
    --warmups N      runs of commands on a small table (two at least), and of streams, that do not count (1)
    --peer-python P  interpreter of an environment with deltalake; left out: no peer columns
    --delta-spark-python P   interpreter of an environment with a pyspark that delta-spark supports, and
    --delta-spark-jars J     its jars with commas between: delta-spark as one more peer of the parts in Spark but scan
    --tpcds-python P   interpreter of an environment with duckdb, duckdb-extension-tpcds of the same release and
                     sqlglot, which makes the tables of lhbench
    --s3-endpoint U  a server that speaks S3's language, for the part stores, with a bucket
    --s3-bucket B    (tables), and --s3-key and --s3-secret, which open it
    --keep           keep the generated tables in benchmarks/.work for the next run

The rounds of a case go through all competitors in turn, so that whatever else the machine does hits all of
them. Files are in the operating system's cache for everybody: what is compared is work, not disks.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks import (
    command_parts,
    connect_parts,
    copy_parts,
    kernel_parts,
    large_parts,
    lhbench_parts,
    native_parts,
    planning_parts,
    spark_parts,
    sql_parts,
    start_parts,
    store_parts,
    stream_parts,
    write_parts,
)
from benchmarks.harness import (
    HERE,
    OURS,
    WORK,
    Command,
    as_table,
    compile_package,
    cost,
    expect,
    in_turn,
    log_table,
    work_folder,
)
from benchmarks.measure import run_once

LAYOUTS = {
    "json": "JSON commits",
    "v1": "V1 checkpoint",
    "v2": "V2 checkpoint, sidecars",
    "v1_tail": "V1 checkpoint + 1,000 commits",
}


def main() -> None:
    parts = {
        "imports": imports,
        "start": start_parts.start,
        "load": load,
        "plan": plan,
        "curve": planning_parts.curve,
        "kernel": kernel_parts.kernel,
        "scan": spark_parts.scan,
        "native": native_parts.native,
        "append": spark_parts.append,
        "partitioned": spark_parts.partitioned,
        "copies": copy_parts.copies,
        "columns": copy_parts.columns,
        "stores": store_parts.stores,
        "commits": commits,
        "writers": writers,
        "checkpoint": write_parts.checkpoint,
        "commands": command_parts.commands,
        "streams": stream_parts.streams,
        "sql": sql_parts.sql,
        "connect": connect_parts.connect,
        "large": large_parts.large,
        "lhbench": lhbench_parts.lhbench,
    }
    options = _arguments(list(parts))
    compile_package()
    print(f"# Benchmarks of delta_ds\n\n{_machine(options)}\n")
    with work_folder(options.keep) as folder:
        for name in options.only or parts:
            print("\n".join(parts[name](_of_part(options, name), folder)), "\n", flush=True)


def _arguments(parts: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.run", description=__doc__.split("\n")[0])
    parser.add_argument("--only", action="append", choices=parts)
    parser.add_argument("--files", type=int)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--commits", type=int, default=200)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--appends", type=int, default=25)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--command", action="append", choices=command_parts.TABLES)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--warmups", type=int, default=1)
    parser.add_argument("--peer-python")
    parser.add_argument("--delta-spark-python")
    parser.add_argument("--delta-spark-jars", default="")
    parser.add_argument("--tpcds-python")
    parser.add_argument("--s3-endpoint")
    parser.add_argument("--s3-bucket", default="tables")
    parser.add_argument("--s3-key")
    parser.add_argument("--s3-secret")
    parser.add_argument("--keep", action="store_true")
    return parser.parse_args()


def _of_part(options: argparse.Namespace, part: str) -> argparse.Namespace:
    """The options with the numbers of files, rows and rounds that the part takes unless told otherwise."""
    most = 5_000_000 if part == "stores" else 10_000_000
    rows = options.rows or (20_000_000 if part in ("native", "kernel") else most)
    rounds = options.rounds or (1 if part == "commands" else 3)
    files = options.files or (10_000_000 if part == "large" else 300_000)
    return argparse.Namespace(**{**vars(options), "rows": rows, "rounds": rounds, "files": files})


def _machine(options: argparse.Namespace) -> str:
    import pyarrow as pa

    versions = f"Python {platform.python_version()}, pyarrow {pa.__version__}"
    if options.peer_python:
        code = "import deltalake; print(deltalake.__version__)"
        found = subprocess.run([options.peer_python, "-c", code], capture_output=True, text=True, check=True)
        versions += f", deltalake {found.stdout.strip()}"
    today = time.strftime("%Y-%m-%d")
    return (
        f"{today}, {os.cpu_count()} cores, {versions}. {_rounds(options)} taken in turn, "
        "files in the page cache; outside Spark every measurement is a process of its own. *work* leaves out "
        "Python's start and imports, *process* includes them, *peak* is the most memory the process held."
    )


def _rounds(options: argparse.Namespace) -> str:
    return f"Medians of {options.rounds} rounds" if options.rounds else "Medians of 3 rounds (commands: of 1)"


def _peer(options: argparse.Namespace, *case: str) -> list[str]:
    return [options.peer_python, str(HERE / "peer.py"), *case]


# ---------------------------------------------------------------- the parts


def load(options: argparse.Namespace, folder: Path) -> list[str]:
    """Snapshot load: cold, cold while filling the cache, and from the cache, against deltalake."""
    rows: list[list[object]] = []
    for layout, title in LAYOUTS.items():
        table = log_table(folder, layout, options.files)
        with tempfile.TemporaryDirectory(dir=WORK) as cache:
            case = [*OURS, "load", table]
            commands: dict[str, Command] = {
                "delta_ds, no cache": (case, {"DELTA_DS_CACHE": "off"}),
                "delta_ds, no cache, and its files in Arrow": (
                    [*OURS, "list", table],
                    {"DELTA_DS_CACHE": "off"},
                ),
            }
            if options.peer_python:
                commands["deltalake: `DeltaTable(path)`"] = (_peer(options, "load", table), {})
                commands["deltalake: and its files in Arrow"] = (_peer(options, "list", table), {})
            first = run_once(case, {"DELTA_DS_CACHE": cache})
            commands["delta_ds, from cache"] = (case, {"DELTA_DS_CACHE": cache})
            found = in_turn(commands, options.rounds)
        yardstick = found.get("deltalake: `DeltaTable(path)`", found["delta_ds, no cache"])
        found["delta_ds, filling the cache"] = first
        for name, m in found.items():
            if name != "deltalake: `DeltaTable(path)`":  # which answers its version
                expect(m, options.files, f"{name}: {title}")
            ratio = f"{m.work_s / yardstick.work_s:.2f}"
            rows.append([title, name, *cost(m), ratio, f"{m.peak_mb / yardstick.peak_mb:.2f}"])
    head = ["log", "reader", "work", "process", "peak", "time ratio", "memory ratio"]
    note = (
        "Ratios to deltalake's `DeltaTable(path)`, below 1 is better. Filling the cache is one round only. Not all "
        "states hold the same: delta_ds leaves the statistics of a checkpoint in its file until a filter names a "
        "column, deltalake loads them; *and its files in Arrow* has them loaded in both."
    )
    return [f"## Snapshot load, {options.files:,} files\n", note, "", *as_table(head, rows)]


def plan(options: argparse.Namespace, folder: Path) -> list[str]:
    """Planning under a filter on the partition column, and on statistics."""
    last = 1000 * (options.files // 60) + 9999
    predicates = {
        "partition": "day = '2025-01-03'",
        "statistics": f"id BETWEEN {last - 9999} AND {last}",
    }
    rows: list[list[object]] = []
    for layout, (kind, predicate) in itertools.product(("v1", "json"), predicates.items()):
        table = log_table(folder, layout, options.files)
        for case, title in (("plan", "cold"), ("replan", "state loaded")):
            commands: dict[str, Command] = {
                "delta_ds": ([*OURS, case, table, predicate], {"DELTA_DS_CACHE": "off"})
            }
            if options.peer_python:
                commands["deltalake"] = (_peer(options, case, table, predicate), {})
            found = in_turn(commands, options.rounds)
            yardstick = found.get("deltalake", found["delta_ds"])
            for name, m in found.items():
                times = [f"{m.work_s:.3f} s", f"{m.process_s:.2f} s", f"{m.work_s / yardstick.work_s:.2f}"]
                rows.append([LAYOUTS[layout], kind, title, name, m.answer, *times])
    head = ["log", "filter", "state", "planner", "files kept", "work", "process", "time ratio"]
    note = "delta_ds: slices of the files, as Spark gets them. deltalake: `file_uris(file_pruning_predicate=...)`."
    return [f"## Planning, {options.files:,} files\n", note, "", *as_table(head, rows)]


def commits(options: argparse.Namespace, folder: Path) -> list[str]:
    """Commits one after the other; where delta-spark is at hand, through Spark too."""
    through_spark = ["", *spark_parts.small(options, folder)] if options.delta_spark_python else []
    return [*write_parts.commits(options, folder), *through_spark]


def writers(options: argparse.Namespace, folder: Path) -> list[str]:
    """Several writers at once; where delta-spark is at hand, through Spark too."""
    through_spark = ["", *spark_parts.racing(options, folder)] if options.delta_spark_python else []
    return [*write_parts.writers(options, folder), *through_spark]


def imports(options: argparse.Namespace, folder: Path) -> list[str]:
    """What `import delta_ds` costs beyond Python's own start, and what it and planning pull in."""
    taken: dict[str, list[float]] = {"pass": [], "import delta_ds": []}
    for _ in range(max(10, options.rounds)):
        for code, seconds in taken.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            seconds.append(time.perf_counter() - start)
    cost = median(taken["import delta_ds"]) - median(taken["pass"])
    table = log_table(folder, "json", 100)
    loaded = run_once([*OURS, "imports", table], {"DELTA_DS_CACHE": "off"}).answer
    rows = [[name, ", ".join(modules) or "none"] for name, modules in loaded.items()]
    head = ["after", "loaded of pyspark, pandas, sqlglot, pyarrow.dataset"]
    return [
        "## Imports\n",
        f"`import delta_ds` costs {cost * 1000:.0f} ms beyond Python's own start.",
        "",
        *as_table(head, rows),
    ]


if __name__ == "__main__":
    main()
