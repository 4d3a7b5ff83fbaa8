"""Rows of a query as Arrow data, measured before they are brought: the same as `toArrow` brings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from delta_ds.spark.engines.seam.classic import arrow_rows

_LARGE = "spark.sql.execution.arrow.useLargeVarTypes"
QUERIES = [
    "SELECT id, cast(id AS string) s, cast(cast(id AS string) AS binary) b FROM range(0, 100, 1, 4)",
    "SELECT id FROM range(0, 10, 1, 3) WHERE id > 20",
    "SELECT 1 a WHERE false",
    """SELECT id, null v, interval '1' day d, timestamp '2024-10-27 02:30:00' t, timestamp_ntz '2024-01-01 00:00:00' n,
    date '1500-01-01' x, cast(null AS decimal(38, 5)) z FROM range(5)""",
    """SELECT id, parse_json('{"a": ' || id || '}') v, array(parse_json('[1, "b"]')) w FROM range(5)""",
    """SELECT map('a', struct(id x, array(null, cast(id AS string)) y)) m, array(map(id, 'z')) l,
    struct(id, x'00ff' b) s FROM range(5)""",
]


@pytest.fixture(params=["false", "true"])
def offsets(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    """Texts and bytes with short offsets, and with long ones."""
    spark.conf.set(_LARGE, request.param)
    yield
    spark.conf.unset(_LARGE)


@pytest.mark.usefixtures("offsets")
@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_that_spark_brings(spark: SparkSession, query: str) -> None:
    frame = spark.sql(query)
    found = arrow_rows(frame, 1 << 20)
    assert found is not None
    found.validate(full=True)
    assert found.equals(frame.toArrow())


def test_rows_of_many_partitions_are_measured_at_once(spark: SparkSession) -> None:
    kept_before = spark.sparkContext._jsc.getPersistentRDDs().size()  # type: ignore[union-attr]
    for rows in range(1, 6):
        found = arrow_rows(spark.range(0, rows, 1, 16), 1 << 20)
        assert found is not None and found["id"].to_pylist() == list(range(rows))
    assert arrow_rows(spark.range(0, 10_000, 1, 16), 1000) is None
    assert spark.sparkContext._jsc.getPersistentRDDs().size() == kept_before  # type: ignore[union-attr]
