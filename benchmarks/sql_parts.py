"""The part `sql`: what names and statements cost beside the same by path."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.harness import as_table, spark_seconds

# As many calls of what takes milliseconds make one round.
CALLS = 30


def sql(options: argparse.Namespace, folder: Path) -> list[str]:
    """SQL by name against the DataFrame API by path, in one session."""
    rows = max(10, options.rows // 5)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        settings = {"rows": rows, "rounds": options.rounds, "calls": CALLS, "folder": place}
        found = spark_seconds([sys.executable, "-m", "benchmarks.sql_worker", json.dumps(settings)])
    lines = []
    for case, ways in found["seconds"].items():
        yardstick = median(next(iter(ways.values()))[1:])
        for way, (first, *warm) in ways.items():
            taken = median(warm)
            lines.append([case, way, _time(first), _time(taken), f"{taken / yardstick:.2f}"])
    title = f"## SQL by name in Spark {found['spark']}, local[2], {rows:,} rows of 10 columns\n"
    note = (
        f"Ratios to the same by path, through `spark.read` and `df.write`; `SELECT 1` to the session before "
        f"`register`, which each round takes out and puts back. Means of {CALLS} calls, but for the writes. The first "
        "round does not count."
    )
    return [title, note, "", *as_table(["case", "way", "first round", "time", "ratio"], lines)]


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
