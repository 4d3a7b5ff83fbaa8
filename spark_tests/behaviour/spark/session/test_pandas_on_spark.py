"""pandas API on Spark gives over Delta tables what it gives with delta-spark 4.4.0, in every kind of session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_tests.behaviour.spark.connect_server import Client, client_of_ours, register
from spark_tests.engines.conformance.pandas_on_spark import PROGRAMS, RECORDED, outcome
from spark_tests.full_form import part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

EXPECTED = json.loads(RECORDED.read_text())
# What is meant to differ: this package says which types Delta has no place for, where delta-spark leaves it to the
# writer of Parquet files.
ACCEPTED = {
    "types_of_pandas": {**EXPECTED["types_of_pandas"], "delta": {"error": "DELTA_UNSUPPORTED_DATA_TYPES"}},
}


def _wanted(name: str) -> Any:
    return ACCEPTED.get(name, EXPECTED[name])


def _wanted_of_client(name: str) -> Any:
    return EXPECTED[name]


def test_every_program_has_a_record() -> None:
    assert set(EXPECTED) == set(PROGRAMS)


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_it_gives_with_delta_spark(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    assert outcome(spark, str(tmp_path), name) == _wanted(name)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with client_of_ours(tmp_path_factory.mktemp("pandas")) as started:
        started(register)
        yield started


# Its server and that of one process below are one: each runs a quarter of them.
@pytest.mark.sampled(share=0.25)
@pytest.mark.connect
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_client_gets_the_same(client: Client, tmp_path: Path, name: str) -> None:
    assert client(outcome, str(tmp_path), name) == _wanted_of_client(name)


_ONE_PROCESS = """
import json, os, sys, traceback
from pyspark.sql import SparkSession
import delta_ds
from spark_tests.engines.conformance.pandas_on_spark import outcome

sys.excepthook = lambda *error: (traceback.print_exception(*error), sys.stderr.flush(), os._exit(1))
folder = sys.argv[1]
builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.memory", "1g").config("spark.sql.shuffle.partitions", "2")
builder = builder.config("spark.sql.session.timeZone", "UTC")
spark = builder.config("spark.sql.warehouse.dir", folder + "/warehouse").getOrCreate()
delta_ds.register(spark)
found = {name: outcome(spark, f"{folder}/{name}", name) for name in sys.argv[2:]}
with open(folder + "/found.json", "w") as file:
    json.dump(found, file)
os._exit(0)
"""


_IN_ONE_PROCESS = part(list(PROGRAMS), every=4)


@pytest.fixture(scope="module")
def of_one_process(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What programs give where one process is server and client."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: install delta-ds[connect]")
    folder = tmp_path_factory.mktemp("one")
    done = subprocess.run(
        [sys.executable, "-c", _ONE_PROCESS, str(folder), *_IN_ONE_PROCESS],
        # A free port: the server else takes the one that all such servers take.
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_TESTING": "1"},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads((folder / "found.json").read_text())
    return found


@pytest.mark.connect
@pytest.mark.parametrize("name", _IN_ONE_PROCESS)
def test_one_process_as_server_and_client_gets_the_same(of_one_process: dict[str, Any], name: str) -> None:
    assert of_one_process[name] == _wanted(name)
