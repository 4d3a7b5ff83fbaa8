"""Run the benchmarks side by side and print Markdown: `python -m benchmarks.run` (or `make bench`).

    --files N        files of the tables that are only a log (300,000)
    --rows N         rows of the tables with data (10,000,000)
    --rounds N       rounds of every measurement; medians are shown (3)
    --only PART      load, plan, scan or imports; may be repeated
    --peer-python P  interpreter of an environment with deltalake; left out: no peer columns
    --keep           keep the generated tables in benchmarks/.work for the next run

The rounds of a case go through all competitors in turn, so that whatever else the machine does hits all of
them. Files are in the operating system's cache for everybody: what is compared is work, not disks.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks.data_tables import write_data_table
from benchmarks.log_tables import write_log_table
from benchmarks.measure import MARK, Measurement, middle, run_once

HERE = Path(__file__).resolve().parent
WORK = HERE / ".work"
LAYOUTS = {
    "json": "JSON commits",
    "v1": "V1 checkpoint",
    "v2": "V2 checkpoint, sidecars",
    "v1_tail": "V1 checkpoint + 1,000 commits",
}
OURS = [sys.executable, "-m", "benchmarks.ours"]


def main() -> None:
    options = _arguments()
    WORK.mkdir(exist_ok=True)
    print(f"# Benchmarks of delta_ds\n\n{_machine(options)}\n")
    parts = {"imports": imports, "load": load, "plan": plan, "scan": scan}
    with _folder(options.keep) as folder:
        for name in options.only or parts:
            print("\n".join(parts[name](options, folder)), "\n", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.run", description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=300_000)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=["imports", "load", "plan", "scan"])
    parser.add_argument("--peer-python")
    parser.add_argument("--keep", action="store_true")
    return parser.parse_args()


@contextmanager
def _folder(keep: bool) -> Iterator[Path]:
    if keep:
        yield WORK
        return
    folder = tempfile.mkdtemp(dir=WORK)
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder)


def _machine(options: argparse.Namespace) -> str:
    import pyarrow as pa

    versions = f"Python {platform.python_version()}, pyarrow {pa.__version__}"
    if options.peer_python:
        code = "import deltalake; print(deltalake.__version__)"
        found = subprocess.run([options.peer_python, "-c", code], capture_output=True, text=True, check=True)
        versions += f", deltalake {found.stdout.strip()}"
    today = time.strftime("%Y-%m-%d")
    return (
        f"{today}, {os.cpu_count()} cores, {versions}. Medians of {options.rounds} rounds taken in turn, "
        "files in the page cache; outside Spark every measurement is a process of its own. *work* leaves out "
        "Python's start and imports, *process* includes them, *peak* is the most memory the process held."
    )


def _log_table(folder: Path, layout: str, files: int) -> str:
    root = folder / f"log-{files}-{layout}"
    if not root.exists():
        partial = root.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        tail = min(1000, files // 20)
        write_log_table(partial, layout, files, commits=min(100, files), tail=tail).rename(root)
    return str(root)


def _data_table(folder: Path, rows: int, deleted_share: float) -> str:
    root = folder / f"rows-{rows}-{deleted_share}"
    if not root.exists():
        partial = root.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        write_data_table(partial, rows, files=100, deleted_share=deleted_share).rename(root)
    return str(root)


def _in_turn(
    commands: Mapping[str, tuple[Sequence[str], Mapping[str, str]]], rounds: int
) -> dict[str, Measurement]:
    taken: dict[str, list[Measurement]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, (command, environment) in commands.items():
            taken[name].append(run_once(command, environment))
    return {name: middle(measured) for name, measured in taken.items()}


def _peer(options: argparse.Namespace, *case: str) -> list[str]:
    return [options.peer_python, str(HERE / "peer.py"), *case]


def _row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    return [_row(*head), _row(*["---"] * len(head)), *(_row(*row) for row in rows)]


def _cost(m: Measurement) -> list[str]:
    return [f"{m.work_s:.2f} s", f"{m.process_s:.2f} s", f"{m.peak_mb:.0f} MiB"]


# ---------------------------------------------------------------- the parts


def load(options: argparse.Namespace, folder: Path) -> list[str]:
    """Snapshot load: cold, cold while filling the cache, and from the cache, against deltalake."""
    rows: list[list[object]] = []
    for layout, title in LAYOUTS.items():
        table = _log_table(folder, layout, options.files)
        with tempfile.TemporaryDirectory(dir=WORK) as cache:
            case = [*OURS, "load", table]
            commands: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {
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
            found = _in_turn(commands, options.rounds)
        yardstick = found.get("deltalake: `DeltaTable(path)`", found["delta_ds, no cache"])
        found["delta_ds, filling the cache"] = first
        for name, m in found.items():
            if name != "deltalake: `DeltaTable(path)`":  # which answers its version
                _expect(m, options.files, f"{name}: {title}")
            ratio = f"{m.work_s / yardstick.work_s:.2f}"
            rows.append([title, name, *_cost(m), ratio, f"{m.peak_mb / yardstick.peak_mb:.2f}"])
    head = ["log", "reader", "work", "process", "peak", "time ratio", "memory ratio"]
    note = (
        "Ratios to deltalake's `DeltaTable(path)`, below 1 is better. Filling the cache is one round only. Not all "
        "states hold the same: delta_ds leaves the statistics of a checkpoint in its file until a filter names a "
        "column, deltalake loads them; *and its files in Arrow* has them loaded in both."
    )
    return [f"## Snapshot load, {options.files:,} files\n", note, "", *_table(head, rows)]


def _expect(m: Measurement, answer: object, what: str) -> None:
    if m.answer != answer:
        raise RuntimeError(f"{what} found {m.answer}, not {answer}")


def plan(options: argparse.Namespace, folder: Path) -> list[str]:
    """Planning under a filter on the partition column, and on statistics."""
    last = 1000 * (options.files // 60) + 9999
    predicates = {
        "partition": "day = '2025-01-03'",
        "statistics": f"id BETWEEN {last - 9999} AND {last}",
    }
    rows: list[list[object]] = []
    for layout, (kind, predicate) in itertools.product(("v1", "json"), predicates.items()):
        table = _log_table(folder, layout, options.files)
        for case, title in (("plan", "cold"), ("replan", "state loaded")):
            commands: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {
                "delta_ds": ([*OURS, case, table, predicate], {"DELTA_DS_CACHE": "off"})
            }
            if options.peer_python:
                commands["deltalake"] = (_peer(options, case, table, predicate), {})
            found = _in_turn(commands, options.rounds)
            yardstick = found.get("deltalake", found["delta_ds"])
            for name, m in found.items():
                times = [f"{m.work_s:.3f} s", f"{m.process_s:.2f} s", f"{m.work_s / yardstick.work_s:.2f}"]
                rows.append([LAYOUTS[layout], kind, title, name, m.answer, *times])
    head = ["log", "filter", "state", "planner", "files kept", "work", "process", "time ratio"]
    note = (
        "delta_ds: slices of the files, as Spark gets them. deltalake: `file_uris(file_pruning_predicate=...)`."
    )
    return [f"## Planning, {options.files:,} files\n", note, "", *_table(head, rows)]


def scan(options: argparse.Namespace, folder: Path) -> list[str]:
    """Scans in Spark against its own Parquet reader."""
    tables = [_data_table(folder, options.rows, share) for share in (0.0, 0.01)]
    command = [sys.executable, "-m", "benchmarks.spark_scans", *tables, str(options.rounds)]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode or not lines:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    found = json.loads(lines[-1][len(MARK) :])
    rows = []
    for case, readers in found["seconds"].items():
        yardstick = median(readers["parquet"][1:])
        for reader, (first, *warm) in readers.items():
            taken = median(warm)
            rows.append([case, reader, f"{first:.2f} s", f"{taken:.2f} s", f"{taken / yardstick:.2f}"])
    title = f"## Scans in Spark {found['spark']}, local[2], {options.rows:,} rows of 8 columns in 100 files\n"
    note = (
        "Yardstick: `spark.read.parquet` of the same files. For the filter, which one file in a hundred can "
        "match, of just those files with the filter; for deletion vectors, which hide 1 % of the rows of "
        "every file, of the files without vectors. The first round, with cold Python workers (and for the first "
        "line a cold JVM), does not count."
    )
    return [title, note, "", *_table(["case", "reader", "first round", "time", "ratio"], rows)]


def imports(options: argparse.Namespace, folder: Path) -> list[str]:
    """What `import delta_ds` costs beyond Python's own start, and what it and planning pull in."""
    taken: dict[str, list[float]] = {"pass": [], "import delta_ds": []}
    for _ in range(max(10, options.rounds)):
        for code, seconds in taken.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            seconds.append(time.perf_counter() - start)
    cost = median(taken["import delta_ds"]) - median(taken["pass"])
    table = _log_table(folder, "json", 100)
    loaded = run_once([*OURS, "imports", table], {"DELTA_DS_CACHE": "off"}).answer
    rows = [[name, ", ".join(modules) or "none"] for name, modules in loaded.items()]
    head = ["after", "loaded of pyspark, pandas, sqlglot, pyarrow.dataset"]
    return [
        "## Imports\n",
        f"`import delta_ds` costs {cost * 1000:.0f} ms beyond Python's own start.",
        "",
        *_table(head, rows),
    ]


if __name__ == "__main__":
    main()
