"""Binding: names, coercion, simplification, and errors that help."""

from __future__ import annotations

import datetime

import pytest

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.expressions.tree import Call, Column, Literal
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DecimalType,
    StructField,
    StructType,
)

SCHEMA = StructType(
    tuple(
        StructField(name, data_type)
        for name, data_type in {
            "y": BYTE,
            "i": INTEGER,
            "l": LONG,
            "f": FLOAT,
            "d": DOUBLE,
            "dec": DecimalType(10, 3),
            "s": STRING,
            "b": BOOLEAN,
            "day": DATE,
            "ts": TIMESTAMP,
            "ntz": TIMESTAMP_NTZ,
            "bin": BINARY,
            "St": StructType((StructField("Inner", INTEGER),)),
            "arr": ArrayType(INTEGER),
        }.items()
    )
)


def bound(text: str, timezone: str = "UTC") -> str:
    return str(bind(parse_predicate(text), SCHEMA, timezone))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # constants take the column's type, on the right
        ("42L = i", "(i = 42)"),
        ("i > 41.5", "(i > 41)"),
        ("i >= 41.5", "(i > 41)"),
        ("i < 41.5", "(i <= 41)"),
        ("i = 41.5", "((i IS NULL) AND NULL)"),
        ("i <> 41.5", "((i IS NOT NULL) OR NULL)"),
        ("i <=> 41.5", "FALSE"),
        ("i > -1.5D", "(i > -2)"),
        ("y > 100000", "((y IS NULL) AND NULL)"),
        ("y < 100000", "((y IS NOT NULL) OR NULL)"),
        ("y < double('NaN')", "((y IS NOT NULL) OR NULL)"),
        ("l = 9007199254740993.0", "(l = 9007199254740993L)"),
        ("dec = 12.345", "(dec = CAST(12.345 AS decimal(10,3)))"),
        ("dec > 12.3456", "(dec > CAST(12.345 AS decimal(10,3)))"),
        ("dec < 99999999.5", "((dec IS NOT NULL) OR NULL)"),
        ("f = 1.5", "(f = 1.5F)"),
        ("f <= 0", "(f <= 0.0F)"),
        ("f = 0.1", "(CAST(f AS double) = 0.1D)"),
        ("d > 8.95", "(d > 8.95D)"),
        ("l > 1.5D", "(CAST(l AS double) > 1.5D)"),
        ("i = '42'", "(i = 42)"),
        ("dec = '1.5'", "(CAST(dec AS double) = 1.5D)"),
        ("b = 'yes'", "(b = TRUE)"),
        ("bin = 'AB'", "(bin = X'4142')"),
        ("s = 5", "(CAST(s AS long) = 5L)"),
        ("day = '2024-02-29'", "(day = DATE'2024-02-29')"),
        ("day < TIMESTAMP'2024-01-02 00:00:00'", "(day < DATE'2024-01-02')"),
        ("day < TIMESTAMP'2024-01-02 00:00:01'", "(day <= DATE'2024-01-02')"),
        ("day > TIMESTAMP_NTZ'2024-01-02 12:00:00'", "(day > DATE'2024-01-02')"),
        ("ts >= DATE'2024-01-02'", "(ts >= TIMESTAMP'2024-01-02 00:00:00+00:00')"),
        ("ts = '2024-01-02'", "(ts = TIMESTAMP'2024-01-02 00:00:00+00:00')"),
        ("ntz < '2024-01-02 03:04:05.6'", "(ntz < TIMESTAMP_NTZ'2024-01-02 03:04:05.600000')"),
        ("ntz < ts", "(CAST(ntz AS timestamp) < ts)"),
        ("i IN (1L, 2.0, 2.5, NULL)", "(i IN (1, 2, NULL))"),
        ("i IN (7)", "(i = 7)"),
        ("i IN (2.5, 3.5)", "((i IS NULL) AND NULL)"),
        ("CAST(i AS bigint) = 5", "(i = 5)"),
        ("CAST(i AS tinyint) = 5", "(CAST(i AS byte) = 5Y)"),
        # names
        ("I = 1 AND st.INNER = 2", "((i = 1) AND (St.Inner = 2))"),
        # logic
        ("NOT (i < 80)", "(i >= 80)"),
        ("NOT (i = 1 OR b)", "((i <> 1) AND (NOT b))"),
        ("NOT (i IN (1, 2))", "(NOT (i IN (1, 2)))"),
        ("1 = 0", "FALSE"),
        ("i = 1 OR 1 = 1", "TRUE"),
        ("i = 1 AND 1 = 1", "(i = 1)"),
        ("i = NULL", "NULL"),
        ("i <=> NULL", "(i IS NULL)"),
        ("NULL", "NULL"),
        ("i = 1 + 2 * 3", "(i = 7)"),
        ("year(DATE'2024-05-06') = i", "(i = 2024)"),
        ("i = 1 AND i = 1", "(i = 1)"),
    ],
)
def test_predicates_are_brought_to_plain_forms(text: str, expected: str) -> None:
    assert bound(text) == expected


def test_constants_without_zone_are_read_in_the_session_zone() -> None:
    assert bound("ts = '2024-01-02'", "America/New_York") == "(ts = TIMESTAMP'2024-01-02 05:00:00+00:00')"
    assert bound("day < TIMESTAMP'2024-01-02 05:00:00Z'", "America/New_York") == "(day < DATE'2024-01-02')"
    assert bound("ntz < TIMESTAMP'2024-01-02 00:00:00'", "America/New_York") == (
        "(CAST(ntz AS timestamp) < TIMESTAMP'2024-01-02 05:00:00+00:00')"
    )


def test_python_constants_without_types_get_them() -> None:
    moment = datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    node = bind(Call("<", (Column(("TS",)), Literal(moment))), SCHEMA)
    assert str(node) == "(ts < TIMESTAMP'2024-01-01 22:00:00+00:00')"
    node = bind(Call("=", (Column(("l",)), Literal(2**62))), SCHEMA)
    assert node.args[1] == Literal(2**62, LONG)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dya = '2024-01-01'", "did you mean 'day'"),
        ("st.iner = 1", "did you mean 'Inner'"),
        ("nothing_like_it = 1", "there are: y, i"),
        ("i", "must be boolean"),
        ("i AND b", "where a condition is needed"),
        ("b = 1", "cannot compare"),
        ("day = 1", "cannot compare"),
        ("i = 'abc'", "not a valid long"),
        ("day = 'tomorrow'", "not a valid date"),
        ("arr = 1", "cannot compare"),
        ("CAST(arr AS string) = 'x'", "cannot cast"),
        ("s + b > 1", "cannot compute"),
        ("CASE WHEN b THEN 1 ELSE DATE'2024-01-01' END = 1", "no common type"),
        ("ts > current_timestamp() - INTERVAL 1 FORTNIGHT", "not an interval"),
    ],
)
def test_what_spark_would_refuse_raises_predicate_error(text: str, message: str) -> None:
    with pytest.raises(PredicateError, match=message):
        bound(text)


def test_unknown_zone_is_refused() -> None:
    with pytest.raises(PredicateError, match="unknown time zone"):
        bound("i = 1", "Mars/Olympus")


def test_suggestion_is_given_to_programs_too() -> None:
    with pytest.raises(PredicateError) as caught:
        bound("dya = '2024-01-01'")
    assert caught.value.parameters == {"objectName": "`dya`", "proposal": ["`day`"]}


def test_current_time_is_a_constant() -> None:
    node = bind(parse_predicate("ts > now() - INTERVAL 7 DAYS"), SCHEMA)
    assert isinstance(node, Call)
    value = node.args[1]
    assert isinstance(value, Literal)
    age = datetime.datetime.now(datetime.timezone.utc) - value.value
    assert datetime.timedelta(days=7) <= age < datetime.timedelta(days=7, minutes=5)
