"""The part `stores`: scan, filter, append and merge on `s3a://`, beside delta-spark on the same server, in turn."""

from __future__ import annotations

import argparse
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness import as_table
from benchmarks.native_parts import Session

FILES = 20
WORKER = "benchmarks.store_worker"
STEPS = ("scan", "filter", "append", "merge")
_HADOOP = "org.apache.hadoop:hadoop-aws:3.5.0"
_DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"


def stores(options: argparse.Namespace, folder: Path) -> list[str]:
    """Rows on a server that speaks S3's language; it has to run, with a bucket."""
    if not options.s3_endpoint:
        return ["## Stores\n", "Left out: --s3-endpoint names no server."]
    python = options.delta_spark_python or sys.executable
    with ExitStack() as stack:
        sessions = [_session(stack, options, python, "pydelta", [_HADOOP])]
        if options.delta_spark_python:
            sessions.append(_session(stack, options, python, "delta", [_DELTA, _HADOOP]))
        taken = _rounds(options, sessions)
        versions = " and ".join(f"{one.format} on Spark {one.spark}" for one in sessions)
    head = ["case", *(f"{one.format}: time (CPU)" for one in sessions)]
    head += ["ratio of time", "ratio of CPU"] if len(sessions) > 1 else []
    note = (
        f"`s3a://` on {options.s3_endpoint}, local[2]: {versions}; a table for each, medians of {options.rounds} "
        "rounds in turn, the first is left out. *append*: a fifth of the rows, computed, in 4 files. *merge*: one row "
        "in 20, spread over all files, and as many new ones."
    )
    title = f"## On s3a://, {options.rows:,} rows of 6 columns in {FILES} files\n"
    return [title, note, "", *as_table(head, [_row(step, taken[step]) for step in STEPS])]


def _session(
    stack: ExitStack, options: argparse.Namespace, python: str, fmt: str, packages: Sequence[str]
) -> Session:
    settings = {
        "format": fmt, "packages": packages, "rows": options.rows, "files": FILES,
        "settings": {
            "spark.driver.memory": "3g",
            "spark.hadoop.fs.s3a.endpoint": options.s3_endpoint,
            "spark.hadoop.fs.s3a.access.key": options.s3_key,
            "spark.hadoop.fs.s3a.secret.key": options.s3_secret,
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        },
    }  # fmt: skip
    errors = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "errors"
    made = Session(python, settings, errors, worker=WORKER)
    stack.callback(made.close)
    return made


def _rounds(
    options: argparse.Namespace, sessions: Sequence[Session]
) -> dict[str, list[list[Mapping[str, Any]]]]:
    run = uuid.uuid4().hex[:8]
    paths = {one.format: f"s3a://{options.s3_bucket}/bench-{run}/{one.format}" for one in sessions}
    for one in sessions:
        one.ask("make", path=paths[one.format])
    taken: dict[str, list[list[Mapping[str, Any]]]] = {step: [[] for _ in sessions] for step in STEPS}
    for step in STEPS:
        for round_ in range(options.rounds + 1):
            for number, one in enumerate(sessions):
                found = one.ask(step, path=paths[one.format], round=round_)
                taken[step][number].append(found)
                print(step, round_, one.format, found, file=sys.stderr, flush=True)
    answers = [one.ask("count", path=paths[one.format])["answer"] for one in sessions]
    if any(answer != answers[0] for answer in answers):
        raise RuntimeError(f"the tables differ: {answers}")
    return taken


def _row(step: str, by_session: Sequence[Sequence[Mapping[str, Any]]]) -> list[object]:
    middle = [
        tuple(median(float(found[name]) for found in rounds[1:]) for name in ("seconds", "cpu"))
        for rounds in by_session
    ]
    cells: list[object] = [step, *(f"{seconds:.2f} s ({cpu:.1f} s)" for seconds, cpu in middle)]
    if len(middle) > 1:
        (seconds, cpu), (their_seconds, their_cpu) = middle
        cells += [f"{seconds / their_seconds:.2f}", f"{cpu / their_cpu:.2f}"]
    return cells
