"""Many queries in one session leave the driver's memory as it was: 200, or a thousand with DELTA_DS_FULL=1."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds.testing import TableBuilder
from spark_tests.full_form import FULL

ROOT = Path(__file__).resolve().parents[5]
QUERIES = 1000 if FULL else 200

# What the samples may differ by, from a tenth of the queries to all. The JVM lets go of proxies when its finalizers
# have run, some later than others; a leak of one a table that is loaded makes 90 or more, and each load makes two.
MORE_PROXIES = 60
MORE_HEAP_MB = 15.0
MORE_PYTHON_MB = 15.0

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Three partitions of four rows; a deletion vector hides two rows of the first."""
    builder = TableBuilder(tmp_path / "table")
    schema = pa.schema([("id", pa.int64()), ("part", pa.int32())])
    features = ["deletionVectors"]
    builder.create(schema, partition_columns=["part"], reader_features=features)
    rows = pa.table({"id": pa.array(range(4, 8), pa.int64())})
    adds = [builder.write_file(rows, partition_values={"part": str(part)}) for part in range(3)]
    builder.commit(*adds)
    builder.delete_rows(adds[0], [0, 3])
    return str(tmp_path / "table")


def test_many_queries_keep_the_memory_of_the_driver_flat(table: str) -> None:
    command = [
        sys.executable,
        "-m",
        "spark_tests.behaviour.spark.engines.classic.memory_probe",
        table,
        str(QUERIES),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    samples: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    early, last = samples[0], samples[-1]
    assert last["proxies"] <= early["proxies"] + MORE_PROXIES, samples
    assert last["heap_mb"] <= early["heap_mb"] + MORE_HEAP_MB, samples
    if early["python_mb"] is not None:
        assert last["python_mb"] <= early["python_mb"] + MORE_PYTHON_MB, samples
