"""pandas API on Spark gives over Delta tables what it gives with delta-spark 4.4.0, in every kind of session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import delta_ds
from spark_tests.behaviour.spark.connect_server import Client, client_of_ours
from spark_tests.engines.conformance.pandas_on_spark import PROGRAMS, RECORDED, outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

EXPECTED = json.loads(RECORDED.read_text())
# What is meant to differ: this package says which types Delta has no place for, where delta-spark leaves it to the
# writer of Parquet files.
ACCEPTED = {
    "types_of_pandas": {**EXPECTED["types_of_pandas"], "delta": {"error": "DELTA_UNSUPPORTED_DATA_TYPES"}},
}
# A server's Spark parses names of partition columns as SQL before the source of a write is asked (`FieldReference` in
# its `DataFrameWriter`): each of these, and no other name.
_PARSED_BY_SPARK = {"a b": "PARSE_SYNTAX_ERROR", "(1, 2)": "PARSE_SYNTAX_ERROR", "日本": "INVALID_IDENTIFIER"}


def _wanted(name: str) -> Any:
    return ACCEPTED.get(name, EXPECTED[name])


def _wanted_of_client(name: str) -> Any:
    if name != "names":
        return EXPECTED[name]
    parsed = {column: {"error": error} for column, error in _PARSED_BY_SPARK.items()}
    return {
        column: [plain, parsed.get(column, mapped)] for column, (plain, mapped) in EXPECTED["names"].items()
    }


def test_every_program_has_a_record() -> None:
    assert set(EXPECTED) == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_it_gives_with_delta_spark(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    assert outcome(spark, str(tmp_path), name) == _wanted(name)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with client_of_ours(tmp_path_factory.mktemp("pandas")) as started:
        started(_register)
        yield started


def _register(spark: SparkSession) -> None:
    delta_ds.register(spark)


@pytest.mark.connect
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_client_gets_the_same(client: Client, tmp_path: Path, name: str) -> None:
    assert client(outcome, str(tmp_path), name) == _wanted_of_client(name)
