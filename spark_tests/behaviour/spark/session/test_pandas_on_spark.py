"""pandas API on Spark gives over Delta tables what it gives with delta-spark 4.4.0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_tests.engines.conformance.pandas_on_spark import PROGRAMS, RECORDED, outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

EXPECTED = json.loads(RECORDED.read_text())
# What is meant to differ: where there is no table, this package says that no table was found.
ACCEPTED = {"read_nothing": {"error": "DELTA_TABLE_NOT_FOUND"}}


def test_every_program_has_a_record() -> None:
    assert set(EXPECTED) == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_it_gives_with_delta_spark(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    assert outcome(spark, str(tmp_path), name) == ACCEPTED.get(name, EXPECTED[name])
