"""Filters that Spark pushes, as kernel expressions."""

from __future__ import annotations

import logging
from datetime import date, datetime, timezone
from decimal import Decimal

import pytest
from pyspark.sql import datasource as spark
from pyspark.sql.types import VariantVal

from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    DecimalType,
    StructField,
    StructType,
)  # fmt: skip
from delta_ds.spark.base.query_needs import to_expression

SCHEMA = StructType(
    (
        StructField("i", INTEGER),
        StructField("l", LONG),
        StructField("s", STRING),
        StructField("d", DATE),
        StructField("t", TIMESTAMP),
        StructField("f", DOUBLE),
        StructField("b", BOOLEAN),
        StructField("x", BINARY),
        StructField("n", DecimalType(10, 2)),
        StructField("wide", DecimalType(38, 18)),
        StructField("st", StructType((StructField("Inner", INTEGER), StructField("odd.name", STRING)))),
        StructField("ch", STRING, metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}),
        StructField("vc", STRING, metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"}),
        StructField("co", STRING, metadata={"__COLLATIONS": {"co": "spark.UTF8_LCASE"}}),
    )
)


def translated(*filters: spark.Filter) -> object:
    return to_expression(filters, SCHEMA, lambda part: bind(part, SCHEMA))


def sql(text: str) -> object:
    return bind(parse_predicate(text), SCHEMA)


@pytest.mark.parametrize(
    ("pushed", "text"),
    [
        (spark.EqualTo(("i",), 3), "i = 3"),
        (spark.EqualNullSafe(("s",), "x"), "s <=> 'x'"),
        (spark.GreaterThan(("l",), 3), "l > 3L"),
        (spark.GreaterThanOrEqual(("d",), date(2024, 1, 2)), "d >= DATE'2024-01-02'"),
        (spark.LessThan(("f",), 1.5), "f < 1.5D"),
        (
            spark.LessThanOrEqual(("t",), datetime(2024, 1, 2, 3, tzinfo=timezone.utc)),
            "t <= TIMESTAMP'2024-01-02 03:00:00Z'",
        ),
        (spark.EqualTo(("b",), True), "b = true"),
        (spark.EqualTo(("x",), b"\x01"), "x = X'01'"),
        (spark.EqualTo(("n",), Decimal("1.50")), "n = 1.50"),
        (spark.In(("i",), (1, 2)), "i IN (1, 2)"),
        (spark.IsNull(("s",)), "s IS NULL"),
        (spark.IsNotNull(("s",)), "s IS NOT NULL"),
        (spark.StringStartsWith(("s",), "a"), "startswith(s, 'a')"),
        (spark.StringEndsWith(("s",), "a"), "endswith(s, 'a')"),
        (spark.StringContains(("s",), "a"), "contains(s, 'a')"),
        (spark.Not(spark.EqualTo(("i",), 3)), "NOT (i = 3)"),
        (spark.Not(spark.In(("s",), ("a", "b"))), "NOT (s IN ('a', 'b'))"),
        (spark.EqualTo(("st", "inner"), 3), "st.Inner = 3"),
        (spark.EqualTo(("st", "odd.name"), "v"), "st.`odd.name` = 'v'"),
        (spark.EqualTo(("vc",), "v"), "vc = 'v'"),
    ],
    ids=str,
)
def test_filter_means_what_the_sql_means(pushed: spark.Filter, text: str) -> None:
    assert str(translated(pushed)) == str(sql(text))


def test_filters_are_joined_by_and() -> None:
    both = translated(spark.IsNotNull(("i",)), spark.GreaterThan(("i",), 3))
    assert str(both) == str(sql("i IS NOT NULL AND i > 3"))


@pytest.mark.parametrize("column", ["ch", "co"])
def test_columns_that_do_not_compare_by_bytes_are_left_to_spark(column: str) -> None:
    assert translated(spark.EqualTo((column,), "v")) is None
    assert translated(spark.Not(spark.StringStartsWith((column,), "v"))) is None


def test_decimals_that_pyspark_may_have_rounded_are_left_to_spark() -> None:
    whole = VariantVal(*_decimal_variant(12345678901234567890123456789, scale=18)).toPython()
    assert whole != Decimal("12345678901.234567890123456789")  # else pyspark keeps digits, and this can go
    for rounded in (whole, -whole):
        assert translated(spark.EqualTo(("n",), rounded)) is None
        assert translated(spark.Not(spark.In(("n",), (Decimal(1), rounded)))) is None
    exact = VariantVal(*_decimal_variant(123456789012345678901234567, scale=18)).toPython()
    assert str(translated(spark.EqualTo(("wide",), exact))) == str(sql("wide = 123456789.012345678901234567"))


def _decimal_variant(unscaled: int, scale: int) -> tuple[bytes, bytes]:
    """A constant as Spark sends it: a variant that is a decimal of 16 bytes."""
    return bytes([10 << 2, scale]) + unscaled.to_bytes(16, "little", signed=True), b"\x01\x00\x00"


def test_no_filters_are_no_predicate() -> None:
    assert translated() is None


def test_filter_that_cannot_be_bound_is_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="delta_ds"):
        rest = translated(spark.EqualTo(("gone",), 1), spark.EqualTo(("i",), 3))
    assert str(rest) == str(sql("i = 3"))
    assert [r.getMessage().split()[0] for r in caplog.records] == ["filter_not_pushed"]
