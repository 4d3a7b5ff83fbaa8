"""The parts `copies` (rows that are Parquet files) and `columns` (wide tables), beside Spark's writer and peers."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness import HERE, as_table, made_once, spark_seconds
from benchmarks.measure import MARK

FILES = 8
PARTITIONS = 20
WIDTHS = (10, 100, 1000)
_HEAD = ["case", "session", "writer", "time", "CPU", "peak", "ratio to Parquet", "ratio of CPU"]


def copies(options: argparse.Namespace, folder: Path) -> list[str]:
    """Rows of Parquet files to a new table, as they are."""
    half = max(FILES, options.rows // 2)
    cases = [
        {"name": f"{options.rows:,} rows", "rows": options.rows, "partition_by": []},
        {"name": f"{half:,} rows, {PARTITIONS} partitions", "rows": half, "partition_by": ["quantity"]},
    ]
    for case in cases:
        case["source"] = str(_source(folder, int(str(case["rows"]))))
    rows = _in_spark(options, folder, cases)
    if options.peer_python:
        rows += [_of_deltalake(options, folder, case) for case in cases]
    note = (
        f"Ten columns in {FILES} snappy files. *arrowWrite=false*: by Spark's own writer. delta_ds "
        "flushes its files to the device within the time, the others do not. The peak is of JVM and Python together. "
        "deltalake runs in a process of its own."
    )
    return ["## Parquet files to a table, as they are\n", note, "", *as_table(_HEAD, rows)]


def columns(options: argparse.Namespace, folder: Path) -> list[str]:
    """Appends of a thousand rows to tables of 10, 100 and 1,000 columns."""
    cases = [{"name": f"{width:,} columns", "columns": width, "partition_by": []} for width in WIDTHS]
    note = "A thousand cached rows, appended to a table that is there."
    return ["## Appends to wide tables\n", note, "", *as_table(_HEAD, _in_spark(options, folder, cases))]


def _source(folder: Path, rows: int) -> Path:
    def make(path: Path) -> Path:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from benchmarks.native_tables import wide_rows

        path.mkdir(parents=True)
        for n in range(FILES):
            table = wide_rows(rows * n // FILES, rows * (n + 1) // FILES)
            keys = pa.array([id_ % PARTITIONS for id_ in table["id"].to_pylist()], pa.int32())
            table = table.set_column(table.schema.get_field_index("quantity"), "quantity", keys)
            pq.write_table(table, path / f"{n}.parquet", compression="snappy", row_group_size=1_000_000)
        return path

    return made_once(folder / f"copy-source-{rows}", make)


def _in_spark(
    options: argparse.Namespace, folder: Path, cases: Sequence[Mapping[str, Any]]
) -> list[list[object]]:
    rows: list[list[object]] = []
    for python, fmt in _sessions(options):
        settings = {"format": fmt, "cases": cases, "rounds": options.rounds, "folder": str(folder)}
        settings["jars"] = options.delta_spark_jars
        found = spark_seconds([python, "-m", "benchmarks.copy_worker", json.dumps(settings)])
        for case, by_writer in found["used"].items():
            yardstick = _middle(by_writer["Parquet"])
            for writer, rounds in by_writer.items():
                rows.append(
                    [case, f"{fmt}, Spark {found['spark']}", writer, *_cells(_middle(rounds), yardstick)]
                )
    return rows


def _sessions(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    yield sys.executable, "pydelta"
    if options.delta_spark_python:
        yield options.delta_spark_python, "delta"


def _of_deltalake(options: argparse.Namespace, folder: Path, case: Mapping[str, Any]) -> list[object]:
    command = [
        options.peer_python,
        str(HERE / "copy_peer.py"),
        case["source"],
        str(folder),
        str(options.rounds),
    ]
    done = subprocess.run([*command, *case["partition_by"]], capture_output=True, text=True, check=True)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith(MARK))
    seconds, cpu, peak = _middle(json.loads(line[len(MARK) :]))
    return [case["name"], "", "deltalake", f"{seconds:.2f} s", f"{cpu:.1f} s", f"{peak:.0f} MiB", "", ""]


def _middle(rounds: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    seconds, cpu, peak = (median(values) for values in zip(*rounds[1:], strict=True))
    return seconds, cpu, peak


def _cells(used: Sequence[float], yardstick: Sequence[float]) -> list[object]:
    seconds, cpu, peak = used
    ratios = [f"{seconds / yardstick[0]:.2f}", f"{cpu / yardstick[1]:.2f}"]
    return [f"{seconds:.2f} s", f"{cpu:.1f} s", f"{peak:.0f} MiB", *ratios]
