"""The part `connect`: reads and row commands of clients of Spark Connect beside classic sessions and Parquet."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.connect_worker import CHANGES, CLASSIC, OURS, PLAIN, READS
from benchmarks.harness import as_table, spark_seconds
from benchmarks.native_tables import write_wide_table

# By what the table calls them: side and format.
SIDES = {
    "Spark's Parquet, plain server": (PLAIN, "parquet"),
    "plain server": (PLAIN, "pydelta"),
    "our server": (OURS, "pydelta"),
    "classic session": (CLASSIC, "pydelta"),
}
_FILES = 20


def connect(options: argparse.Namespace, folder: Path) -> list[str]:
    """Each side in a process of its own, one after the other; seconds, and processor seconds of all processes."""
    rows = max(2000, options.rows // 2)
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(dir=folder) as place:
        table = write_wide_table(Path(place) / "table", rows, _FILES)
        for name, (side, fmt) in SIDES.items():
            settings = {
                "side": side, "format": fmt, "table": str(table), "rows": rows,
                "rounds": options.rounds, "folder": place,
            }  # fmt: skip
            found[name] = spark_seconds(
                [sys.executable, "-m", "benchmarks.connect_worker", json.dumps(settings)]
            )
    cases = {name: taken["cases"] for name, taken in found.items()}
    for case in (*READS, *CHANGES):
        answers = {json.dumps(taken[case]["found"]) for taken in cases.values() if case in taken}
        if len(answers) > 1:
            raise RuntimeError(f"the sides disagree on {case}: {sorted(answers)}")
    version = next(iter(found.values()))["spark"]
    lines = [[case, *(_cell(taken, case) for taken in cases.values())] for case in (*READS, *CHANGES)]
    return [
        f"## Spark Connect {version}, local[2], {rows:,} rows of 10 columns in {_FILES} files\n",
        "Medians of the rounds after the first, seconds (processor seconds of client, server and workers).",
        "",
        *as_table(["case", *SIDES], lines),
    ]


def _cell(taken: dict[str, Any], case: str) -> str:
    if case not in taken:
        return "-"
    seconds, cpu = (median(taken[case][what][1:]) for what in ("seconds", "cpu"))
    return f"{seconds:.2f} ({cpu:.2f})"
