"""A pipeline between two tables whose driver is killed again and again: each row arrives once.

Fifty times with DELTA_DS_FULL=1, which takes about a quarter of an hour; else twice.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_ds import DeltaLog
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.spark.engines.portable.pipeline_worker import start
from spark_tests.full_form import FULL

pytestmark = [pytest.mark.slow, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[6]
KILLS = 50 if FULL else 2
ROWS = 7
# What a pipeline may take to its first batch on a machine that is busy.
SECONDS = 300


@contextmanager
def pipeline(source: Path, target: Path, errors: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process group of driver, JVM and what they start; killed at the end."""
    command = [sys.executable, str(Path(__file__).with_name("pipeline_worker.py")), str(source), str(target)]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable}
    with errors.open("wb") as written:
        process = subprocess.Popen(
            command, stdout=written, stderr=written, env=environment, start_new_session=True
        )
        try:
            yield process
        finally:
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """The driver and its JVM at once, as when a machine goes down."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for_commits(target: Path, count: int, process: subprocess.Popen[bytes], errors: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while commits(target) < count:
        if process.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"the pipeline makes no progress: {errors.read_text()[-4000:]}")
        time.sleep(0.01)


def commits(target: Path) -> int:
    return len(list((target / "_delta_log").glob("*.json")))


def test_killed_pipeline_writes_each_row_once(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(7)
    source = TableBuilder(tmp_path / "source")
    source.create(pa.schema([("id", pa.int64())]))
    target, errors = tmp_path / "target", tmp_path / "errors"
    written = 0

    def grow(files: int) -> None:
        nonlocal written
        for _ in range(files):
            source.append(pa.table({"id": pa.array(range(written, written + ROWS), pa.int64())}))
            written += ROWS

    grow(10)
    for number in range(KILLS):
        before = commits(target)
        with pipeline(source.path, target, errors) as process:
            # Every other time right after a commit, which Spark has then not yet noted in its checkpoint.
            wait_for_commits(target, before + chance.randint(1, 3), process, errors)
            if number % 2:
                time.sleep(chance.random() * 2)
        grow(4)
    catch_up(spark, source.path, target)
    assert ids(target) == list(range(written))
    assert batches_committed_twice(target) == []


def catch_up(spark: SparkSession, source: Path, target: Path) -> None:
    """The same query in this process, up to the end of the source."""
    query = start(spark, str(source), str(target), files=100, availableNow=True)
    assert query.awaitTermination(SECONDS)


def ids(target: Path) -> list[int]:
    found: list[int] = DeltaLog(target).snapshot().scan().to_arrow()["id"].to_pylist()
    return sorted(found)


def batches_committed_twice(target: Path) -> list[str]:
    seen = [commit["operationParameters"]["epochId"] for commit in DeltaLog(target).history()]
    return sorted({epoch for epoch in seen if seen.count(epoch) > 1})
