"""The parts that run in Spark: scans, large writes, and small ones beside delta-spark."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.data_tables import write_data_table
from benchmarks.harness import as_table, made_once, spark_seconds
from benchmarks.spark_scans import PORTABLE


def scan(options: argparse.Namespace, folder: Path) -> list[str]:
    """Scans by the portable path against Spark's own Parquet reader."""
    tables = [_data_table(folder, options.rows, share) for share in (0.0, 0.01)]
    found = spark_seconds(
        [sys.executable, "-m", "benchmarks.spark_scans", *tables, str(options.rounds)],
    )
    rows = []
    for case, readers in found["seconds"].items():
        yardstick = median(readers["parquet"][1:])
        for reader, (first, *warm) in readers.items():
            taken = median(warm)
            rows.append([case, reader, f"{first:.2f} s", f"{taken:.2f} s", f"{taken / yardstick:.2f}"])
    title = f"## Scans in Spark {found['spark']}, local[2], {options.rows:,} rows of 8 columns in 100 files\n"
    note = (
        "The portable path. Yardstick: `spark.read.parquet` of the same files. For the filter, which one file in "
        "a hundred can match, of just those files with the filter; for deletion vectors, which hide 1 % of the rows of "
        "every file, of the files without vectors. The first round, with cold Python workers (and for the first "
        "line a cold JVM), does not count."
    )
    return [title, note, "", *as_table(["case", "reader", "first round", "time", "ratio"], rows)]


def _data_table(folder: Path, rows: int, deleted_share: float) -> str:
    root = folder / f"rows-{rows}-{deleted_share}"
    return str(made_once(root, lambda path: write_data_table(path, rows, 100, deleted_share)))


# ---------------------------------------------------------------- writes

_NOTE = (
    "The portable path. Each competitor writes the same rows, computed as they are written (*source alone*: to "
    "Spark's `noop` sink), and appends to an empty table of its own. Ratios to Spark's own Parquet writer with the "
    "same codec in the same session. It leaves its files in the page cache, while pydelta's are on the device when a "
    "write returns: *then flushed* adds an `fsync` of each file. The first round does not count."
)


def append(options: argparse.Namespace, folder: Path) -> list[str]:
    """A large append by the portable path against Spark's Parquet writer."""
    rows = []
    case = {"case": "append", "rows": options.rows, "confs": PORTABLE}
    for _, found in _sessions(options, folder, case):
        rows += _large_rows(f"Spark {found['spark']}", found)
    title = f"## Append in Spark, local[2], {options.rows:,} rows of 10 columns in 8 tasks\n"
    return [title, _NOTE, "", *as_table(["session", *_LARGE_HEAD], rows)]


def partitioned(options: argparse.Namespace, folder: Path) -> list[str]:
    """Partitioned appends by the portable path against Spark's Parquet writer."""
    shapes = [(options.rows // 5, 100, True), (options.rows // 50, 10_000, False)]
    rows = []
    for size, partitions, spread in shapes:
        size = max(10, size)
        parts = min(partitions, size)
        settings = {"case": "partitioned", "rows": size, "partitions": parts, "spread": spread}
        settings["confs"] = PORTABLE
        for _, found in _sessions(options, folder, settings):
            where = "each in all 4 tasks" if spread else "each in one of 2 tasks"
            rows += _large_rows(
                f"{size:,} rows, {parts:,} partitions, {where}; Spark {found['spark']}", found
            )
    return ["## Partitioned append in Spark, local[2]\n", _NOTE, "", *as_table(["case", *_LARGE_HEAD], rows)]


_LARGE_HEAD = ["writer", "first round", "time", "ratio", "ratio to flushed", "size", "files"]


def _large_rows(case: str, found: Mapping[str, Any]) -> list[list[object]]:
    seconds: Mapping[str, list[float]] = found["seconds"]
    rows: list[list[object]] = []
    for name, (first, *warm) in seconds.items():
        taken = median(warm)
        codec = next((c for c in ("snappy", "zstd") if c in name), None)
        ratios: list[object] = ["", ""]
        if codec is not None:
            yardsticks = (f"parquet, {codec}", f"parquet, {codec}, then flushed")
            ratios = [f"{taken / median(seconds[yardstick][1:]):.2f}" for yardstick in yardsticks]
        size, files = found["sizes"].get(name, (None, ""))
        shown = "" if size is None else f"{size / (1 << 20):.1f} MiB"
        rows.append([case, name, f"{first:.2f} s", f"{taken:.2f} s", *ratios, shown, files])
    return rows


def small(options: argparse.Namespace, folder: Path) -> list[str]:
    """Small appends through DataFrames, one after the other."""
    count = max(1, options.commits // 10)
    rows = []
    for _, found in _sessions(options, folder, {"case": "small", "count": count}):
        for name, (_, *warm) in found["seconds"].items():
            taken = median(warm)
            rows.append([f"Spark {found['spark']}", name, f"{taken:.2f} s", f"{taken / count * 1000:.0f} ms"])
    title = f"### {count} appends of ten rows by `df.write`, one after the other\n"
    return [title, *as_table(["session", "writer", "time", "each"], rows)]


def racing(options: argparse.Namespace, folder: Path) -> list[str]:
    """Small appends through DataFrames by several threads."""
    case = {"case": "writers", "count": options.appends, "writers": options.writers}
    rows: list[list[object]] = []
    for fmt, found in _sessions(options, folder, case):
        warm = found["rounds"][1:]
        taken = median(r["seconds"] for r in warm)
        done = options.appends * options.writers - median(sum(r["errors"].values()) for r in warm)
        errors = ", ".join(sorted({f"{n} {e}" for r in warm for e, n in r["errors"].items()})) or "none"
        rows.append([f"Spark {found['spark']}", fmt, f"{taken:.2f} s", f"{done / taken:.1f}", errors])
    title = (
        f"### {options.writers} threads x {options.appends} appends of ten rows by `df.write`, one session\n"
    )
    return [title, *as_table(["session", "writer", "time", "commits/s", "failures of a round"], rows)]


def _sessions(
    options: argparse.Namespace, folder: Path, case: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The case with pydelta, and in delta-spark's own environment if there is one."""
    formats = {"pydelta": sys.executable}
    if options.delta_spark_python:
        formats["delta"] = options.delta_spark_python
    for fmt, python in formats.items():
        target = folder / f"spark-{fmt}"
        target.mkdir(exist_ok=True)
        settings = {"format": fmt, "folder": str(target), "rounds": options.rounds, **case}
        settings["jars"] = options.delta_spark_jars
        yield fmt, spark_seconds([python, "-m", "benchmarks.spark_writes", json.dumps(settings)])
