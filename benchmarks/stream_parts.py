"""The part `streams`: tables as sources and sinks of Structured Streaming, beside delta-spark."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness import WORK, as_table, made_once, spark_seconds
from benchmarks.stream_driver import driver
from benchmarks.stream_tables import write_stream_table

_PENDING = 12
_STEPS = ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets", "triggerExecution")


def streams(options: argparse.Namespace, folder: Path) -> list[str]:
    """A backlog read at once, a sink of many small batches, and how soon a commit is seen."""
    size = _sizes(options.scale)
    table = made_once(
        folder / f"stream-{size['commits']}-{size['rows']}",
        lambda path: write_stream_table(path, size["commits"], size["rows"], _PENDING),
    )
    small = made_once(
        folder / f"stream-files-{size['batches']}",
        lambda path: write_stream_table(path, size["batches"], size["rows"], 0),
    )
    found = {}
    formats = {"pydelta": sys.executable}
    if options.delta_spark_python:
        formats["delta"] = options.delta_spark_python
    for fmt, python in formats.items():
        settings = {"format": fmt, "jars": options.delta_spark_jars, "rounds": options.rounds, **size}
        settings |= {
            "table": str(table),
            "files": str(small),
            "warmups": options.warmups,
            "pending": _PENDING,
        }
        with tempfile.TemporaryDirectory(dir=WORK) as scratch:
            command = [python, "-m", "benchmarks.stream_worker", json.dumps({**settings, "folder": scratch})]
            found[fmt] = spark_seconds(command)
    titles = {
        "backlog": f"{size['commits']} commits x {size['rows']:,} rows, `availableNow` in 5 batches, to `noop`",
        "sink": f"{size['batches']} micro-batches of {size['rows']:,} rows into a new table",
        "latency": "from a commit to its rows in `foreachBatch`, tailing",
    }
    rows = [row for case, title in titles.items() for row in _rows(case, title, found)]
    head = ["case", "who", "time", "ratio", *(f"{step}, ms" for step in _STEPS)]
    title = f"## Streams, local[2], scale {options.scale:g}\n"
    if not options.delta_spark_python:
        rows.append(["", "delta-spark was left out", *[""] * (len(head) - 2)])
    return [title, _NOTE, "", *as_table(head, rows), "", *driver(options, folder)]


_NOTE = (
    "One Spark session for each side. The milliseconds are Spark's own account of a batch (medians). *addBatch* is "
    "where rows are read and written: for pydelta Spark starts Python processes that plan, read or write, and commit, "
    "for each batch."
)


def _sizes(scale: float) -> dict[str, int]:
    return {
        "commits": max(5, round(500 * scale)),
        "rows": max(10, round(2000 * min(1.0, scale * 10))),
        "batches": max(3, round(100 * scale)),
    }


def _rows(case: str, title: str, found: Mapping[str, Any]) -> list[list[object]]:
    taken = {fmt: median(r["seconds"] for r in side["cases"][case]) for fmt, side in found.items()}
    rows: list[list[object]] = []
    for fmt, side in found.items():
        rounds = side["cases"][case]
        steps = [f"{median(r['profile'].get(step, 0) for r in rounds):.0f}" for step in _STEPS]
        ratio = f"{taken[fmt] / taken['delta']:.2f}" if "delta" in taken else ""
        rows.append([title, f"{fmt}, Spark {side['spark']}", f"{taken[fmt]:.2f} s", ratio, *steps])
    return rows
