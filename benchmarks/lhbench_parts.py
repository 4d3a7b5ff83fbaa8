"""The part `lhbench`: the parts of LHBench that fit one machine, beside delta-spark and Spark's Parquet tables."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.command_parts import worker_records
from benchmarks.harness import HERE, as_table, made_once
from benchmarks.lhbench_worker import PARTS

_WORKER = "benchmarks.lhbench_worker"
_NOTE = (
    "TPC-DS by DuckDB's generator. One session a side, one side after the other; each case runs once, as batch jobs "
    "do. *first* is the first case of its kind in a session, *sum* all of them; CPU is that of Python, the JVM and "
    "its workers. Ratios to delta-spark. *other results*: cases whose rows differ from another side's."
)
_HEAD = ["part", "cases", "who", "first", "sum", "CPU", "time ratio", "CPU ratio", "failed", "other results"]

# By side, in the order in which they ran: the records of its cases.
Found = dict[str, list[dict[str, Any]]]


def lhbench(options: argparse.Namespace, folder: Path) -> list[str]:
    """Load, queries, refresh, merges of growing size, many files."""
    title = f"## LHBench, local[2], scale {options.scale:g}\n"
    if not options.tpcds_python:
        return [title, "It was left out: --tpcds-python names no interpreter that can make its tables."]

    def make(path: Path) -> Path:
        told = [options.tpcds_python, "-m", "benchmarks.lhbench_tables", str(path), f"{options.scale:g}"]
        subprocess.run(told, check=True, cwd=HERE.parent)
        return path

    data = made_once(folder / f"lhbench-{options.scale:g}", make)
    settings = {
        "data": str(data),
        "rows": max(1000, round(5_000_000 * options.scale)),
        "files": max(4, round(2000 * options.scale)),
        "jars": options.delta_spark_jars,
    }
    sides = {"pydelta": sys.executable, "delta": options.delta_spark_python, "parquet": sys.executable}
    found: Found = {}
    for who, python in sides.items():
        if python:
            found[who] = list(_records(who, [python, "-m", _WORKER], {**settings, "format": who}))
    return [title, _NOTE, "", *as_table(_HEAD, list(rows_of(found)))]


def _records(who: str, worker: Sequence[str], settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    try:
        for record in worker_records(worker, settings):
            print(f"lhbench, {who}: {json.dumps(record)}", file=sys.stderr, flush=True)
            yield record
    except RuntimeError as error:  # what the others needed is not to be lost
        print(error, file=sys.stderr, flush=True)
        yield {"part": "", "of": "all", "case": "its process ended", "failed": str(error)}


def rows_of(found: Found) -> Iterator[list[object]]:
    """The lines of the table: for each kind of case all sides, this package first."""
    kinds = list(dict.fromkeys((r["part"], r["of"]) for records in found.values() for r in records))
    for part, of in sorted(kinds, key=lambda kind: [*PARTS, ""].index(kind[0])):
        ours = {
            who: [r for r in records if (r["part"], r["of"]) == (part, of)] for who, records in found.items()
        }
        yardstick = _sums(ours.get("delta", []))
        for who, records in ours.items():
            if not records:
                continue
            sums, failed = _sums(records), [r["case"] for r in records if "failed" in r]
            first = next((f"{r['seconds']:.2f} s" for r in records if "failed" not in r), "")
            ratios = [f"{a / b:.2f}" if b else "" for a, b in zip(sums, yardstick, strict=True)]
            others = [r["case"] for r in records if _differs(r, ours)]
            yield [
                part, f"{len(records)} {of}", who, first, f"{sums[0]:.2f} s", f"{sums[1]:.1f} s", *ratios,
                ", ".join(failed), ", ".join(others),
            ]  # fmt: skip


def _sums(records: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    done = [record for record in records if "failed" not in record]
    return sum(r["seconds"] for r in done), sum(r["cpu_s"] for r in done)


def _differs(record: Mapping[str, Any], sides: Mapping[str, Sequence[Mapping[str, Any]]]) -> bool:
    if not record.get("answer"):
        return False
    same = [
        r for records in sides.values() for r in records if r["case"] == record["case"] and r.get("answer")
    ]
    return len({r["answer"] for r in same}) > 1
