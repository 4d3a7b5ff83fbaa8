"""The part `large`: planning of tables of up to millions of files by the tasks of Spark, beside one process alone."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness import HERE, OURS, Command, as_table, in_turn, made_once
from benchmarks.large_logs import write_large_log
from benchmarks.large_worker import MEMORY
from benchmarks.measure import MARK

MASTERS = {"1 executor": "local-cluster[1,1,1024]", "2 executors": "local-cluster[2,1,1024]"}


def large(options: argparse.Namespace, folder: Path) -> list[str]:
    """Planning under a filter on statistics that keeps 21 files, and on a partition, at a growing number of files."""
    rows: list[list[object]] = []
    for files in (options.files // 100, options.files // 10, options.files):
        table = str(made_once(folder / f"large-{files}", lambda path, n=files: write_large_log(path, n)))
        first = 1000 * (files // 2)
        filters = {
            "statistics": f"id BETWEEN {first} AND {first + 20_000}",
            "partition": "day = '2025-01-03'",
        }
        for kind, predicate in filters.items():
            commands: dict[str, Command] = {
                "the kernel alone": ([*OURS, "plan", table, predicate], {"DELTA_DS_CACHE": "off"})
            }
            if options.peer_python:
                peer = [options.peer_python, str(HERE / "peer.py"), "plan", table, predicate]
                commands["deltalake"] = (peer, {})
            for name, m in in_turn(commands, options.rounds).items():
                costs = [f"{m.work_s:.2f} s", f"{m.cpu_s:.2f} s", f"{m.peak_mb:.0f} MiB", "", ""]
                rows.append([f"{files:,}", kind, name, m.answer, *costs])
        for name, master in MASTERS.items():
            for kind, taken in _by_tasks(master, table, filters, options.rounds).items():
                memory = [f"{max(one[key] for one in taken):.0f} MiB" for key in MEMORY]
                times = [f"{median(one[key] for one in taken):.2f} s" for key in ("seconds", "cpu_s")]
                rows.append([f"{files:,}", kind, name, taken[0]["files"], *times, *memory])
    head = ["files", "filter", "planner", "kept", "work", "CPU", "driver: Python", "driver: JVM", "all else"]
    note = (
        "By tasks: `local-cluster`, executors of one core and 1 GiB, a driver of 1 GiB; the files of a scan as Spark "
        "gets them, in a warm session. *all else*: executors and their Python workers together."
    )
    return [f"## Planning by tasks, up to {options.files:,} files\n", note, "", *as_table(head, rows)]


def _by_tasks(
    master: str, table: str, filters: dict[str, str], rounds: int
) -> dict[str, list[dict[str, Any]]]:
    settings = {"master": master, "table": table, "bound": 0, "rounds": rounds, "filters": filters}
    command = [sys.executable, "-m", "benchmarks.large_worker", json.dumps(settings)]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "DELTA_DS_CACHE": "off"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    found: dict[str, list[dict[str, Any]]] = {}
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            one = json.loads(line[len(MARK) :])
            found.setdefault(one["filter"], []).append(one)
    return found
