"""Partition filters from generated columns: which follow, and that none drops a matching row."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from delta_ds.kernel.format.expressions.arrays import array_of
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.evaluate import evaluate
from delta_ds.kernel.format.expressions.generated import derive_partition_filters
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.expressions.tree import columns
from delta_ds.kernel.format.schema.types import (
    DATE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    StructField,
    StructType,
)
from spark_tests.full_form import examples

SOURCES: dict[str, DataType] = {
    "ts": TIMESTAMP,
    "ntz": TIMESTAMP_NTZ,
    "day": DATE,
    "s": STRING,
    "i": INTEGER,
}


def schema_with(**generated: tuple[DataType, str]) -> tuple[StructType, list[str]]:
    """A schema of the source columns and generated partition columns, and the latter's names."""
    fields = [StructField(n, t) for n, t in SOURCES.items()]
    for name, (data_type, expression) in generated.items():
        fields.append(StructField(name, data_type, True, {"delta.generationExpression": expression}))
    return StructType(tuple(fields)), list(generated)


def derived(text: str, timezone: str | None = "UTC", **generated: tuple[DataType, str]) -> str | None:
    schema, partitions = schema_with(**generated)
    result = derive_partition_filters(
        bind(parse_predicate(text), schema, timezone or "UTC"), schema, partitions, timezone
    )
    return None if result is None else str(result)


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("ts < TIMESTAMP'2024-01-02 00:00:00'", (DATE, "CAST(ts AS DATE)"), "((p <= DATE'2024-01-01') OR (p IS NULL))"),
        ("ts <= TIMESTAMP'2024-01-02 00:00:00'", (DATE, "CAST(ts AS DATE)"),
         "((p <= DATE'2024-01-02') OR (p IS NULL))"),
        ("ts = TIMESTAMP'2024-01-02 05:00:00'", (DATE, "CAST(ts AS DATE)"), "((p = DATE'2024-01-02') OR (p IS NULL))"),
        ("ts > TIMESTAMP'2024-01-02 05:00:00'", (INTEGER, "YEAR(ts)"), "((p >= 2024) OR (p IS NULL))"),
        ("ts IS NULL", (INTEGER, "YEAR(ts)"), "(p IS NULL)"),
        ("ts <=> NULL", (INTEGER, "YEAR(ts)"), "(p IS NULL)"),
        ("ts = TIMESTAMP'2024-05-02 05:00:00'", (INTEGER, "MONTH(ts)"), "((p = 5) OR (p IS NULL))"),
        ("ts < TIMESTAMP'2024-05-02 05:00:00'", (INTEGER, "MONTH(ts)"), None),
        ("ts >= TIMESTAMP'2024-05-02 05:00:00'", (TIMESTAMP, "DATE_TRUNC('MONTH', ts)"),
         "((p >= TIMESTAMP'2024-05-01 00:00:00+00:00') OR (p IS NULL))"),
        ("day <= DATE'2024-05-02'", (DATE, "TRUNC(day, 'MM')"), "((p <= DATE'2024-05-01') OR (p IS NULL))"),
        ("s >= 'hello'", (STRING, "SUBSTRING(s, 1, 3)"), "((p >= 'hel') OR (p IS NULL))"),
        ("s = 'hello'", (STRING, "SUBSTRING(s, 2, 3)"), "((p = 'ell') OR (p IS NULL))"),
        ("s > 'hello'", (STRING, "SUBSTRING(s, 2, 3)"), None),
        ("s IN ('hello', 'help', 'yes', NULL)", (STRING, "SUBSTRING(s, 0, 3)"),
         "(((p = 'hel') OR (p IS NULL)) OR ((p = 'hel') OR (p IS NULL)) OR ((p = 'yes') OR (p IS NULL)))"),
        ("ts < TIMESTAMP'2024-05-02 05:00:00'", (STRING, "DATE_FORMAT(ts, 'yyyy-MM')"),
         "((p <= '2024-05') OR (p IS NULL))"),
        ("ts >= TIMESTAMP'2024-05-02 05:00:00'", (STRING, "DATE_FORMAT(ts, 'yyyy-MM-dd-HH')"),
         "(((p >= '2024-05-02-05') OR (p < '0')) OR (p IS NULL))"),
        ("ts < TIMESTAMP'2024-05-02 05:00:00'", (STRING, "DATE_FORMAT(ts, 'MM-yyyy')"), None),
        ("i > 5", (INTEGER, "i"), "((p >= 5) OR (p IS NULL))"),
        ("i = 5", (LONG, "CAST(i AS BIGINT)"), "((p = 5L) OR (p IS NULL))"),
        ("i = 15", (INTEGER, "i % 10"), "((p = 5) OR (p IS NULL))"),
        ("s = 'a'", (STRING, "UPPER(s)"), None),
        ("i <> 5", (INTEGER, "i"), None),
        ("ts < TIMESTAMP'2024-01-02 00:00:00' OR i = 5", (DATE, "CAST(ts AS DATE)"), None),
        ("ts < TIMESTAMP'2024-01-02 00:00:00' AND i = 5", (DATE, "CAST(ts AS DATE)"),
         "((p <= DATE'2024-01-01') OR (p IS NULL))"),
        ("i = 5", (STRING, "no_such_function(i)"), None),
    ],
)  # fmt: skip
def test_filters_follow_from_documented_forms(
    text: str, column: tuple[DataType, str], expected: str | None
) -> None:
    assert derived(text, p=column) == expected


def test_year_month_day_columns_are_compared_together() -> None:
    result = derived(
        "ts < TIMESTAMP'2023-12-15 00:00:00'",
        y=(INTEGER, "YEAR(ts)"),
        m=(INTEGER, "MONTH(ts)"),
        d=(INTEGER, "DAY(ts)"),
    )
    inner = "((y < 2023) OR ((y = 2023) AND ((m < 12) OR ((m = 12) AND (d <= 14)))))"
    assert result == f"({inner} OR (y IS NULL) OR (m IS NULL) OR (d IS NULL))"


def test_bound_near_a_clock_change_is_widened() -> None:
    text = "ts >= TIMESTAMP'2024-11-03 05:30:00Z'"
    assert derived(text, "America/New_York", p=(STRING, "DATE_FORMAT(ts, 'yyyy-MM-dd-HH')")) == (
        "(((p >= '2024-11-03-00') OR (p < '0')) OR (p IS NULL))"
    )


def test_unknown_zone_of_the_writer_widens_by_a_day() -> None:
    text = "ts = TIMESTAMP'2024-01-02 05:00:00'"
    assert derived(text, None, p=(DATE, "CAST(ts AS DATE)")) == (
        "(((p >= DATE'2024-01-01') AND (p <= DATE'2024-01-03')) OR (p IS NULL))"
    )
    assert derived(text, None, p=(INTEGER, "MONTH(ts)")) is None


ZONES = ["UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia"]
# Around changes of the clock, the end of a year, and the day that Apia left out.
_ANCHORS = [
    datetime.datetime(2024, 11, 3, 6), datetime.datetime(2024, 3, 10, 7), datetime.datetime(2024, 4, 6, 15),
    datetime.datetime(2011, 12, 30, 10), datetime.datetime(2024, 1, 1),
]  # fmt: skip
MOMENTS = st.builds(
    lambda anchor, minutes: anchor + datetime.timedelta(minutes=15 * minutes),
    st.sampled_from(_ANCHORS),
    st.integers(-120, 120),
)
EXPRESSIONS: dict[str, list[dict[str, tuple[DataType, str]]]] = {
    "ts": [
        {"p": (DATE, "CAST(ts AS DATE)")},
        {"p": (INTEGER, "YEAR(ts)")},
        {"p": (INTEGER, "HOUR(ts)")},
        {"p": (TIMESTAMP, "DATE_TRUNC('HOUR', ts)")},
        {"p": (TIMESTAMP, "DATE_TRUNC('DAY', ts)")},
        {"p": (DATE, "TRUNC(ts, 'MM')")},
        {"p": (STRING, "DATE_FORMAT(ts, 'yyyy-MM-dd-HH')")},
        {
            "y": (INTEGER, "YEAR(ts)"),
            "m": (INTEGER, "MONTH(ts)"),
            "d": (INTEGER, "DAY(ts)"),
            "h": (INTEGER, "HOUR(ts)"),
        },
    ],
    "s": [
        {"p": (STRING, "SUBSTRING(s, 1, 2)")},
        {"p": (STRING, "SUBSTRING(s, 2, 1)")},
        {"p": (STRING, "LEFT(s, 1)")},
    ],
    "i": [{"p": (INTEGER, "i")}, {"p": (LONG, "CAST(i AS BIGINT)")}, {"p": (INTEGER, "i % 3")}],
}


@st.composite
def situations(draw: st.DrawFn) -> tuple[str, dict[str, tuple[DataType, str]], str, list[Any]]:
    """A source column, generated columns of it, a predicate on it, and its values in some rows."""
    source = draw(st.sampled_from(sorted(EXPRESSIONS)))
    values: st.SearchStrategy[Any]
    if source == "ts":
        values = MOMENTS.map(lambda t: t.replace(tzinfo=datetime.timezone.utc))
        write = "TIMESTAMP'{:%Y-%m-%d %H:%M:%S}Z'".format
    elif source == "s":
        values, write = st.text(alphabet="ab😀\uffff", max_size=3), "'{}'".format
    else:
        values, write = st.integers(-9, 9), str
    operator = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "<=>", "<>"]))
    predicate = f"{source} {operator} {write(draw(values))}"
    if draw(st.booleans()):
        joint = draw(st.sampled_from(["AND", "OR"]))
        predicate += f" {joint} {source} IN ({write(draw(values))}, {write(draw(values))}, NULL)"
    if draw(st.integers(0, 4)) == 0:
        predicate = f"NOT ({predicate})"
    rows = draw(st.lists(st.none() | values, min_size=1, max_size=8))
    return source, draw(st.sampled_from(EXPRESSIONS[source])), predicate, rows


@settings(max_examples=examples(300))
@given(situations(), st.sampled_from(ZONES), st.booleans())
def test_a_matching_row_is_never_dropped(
    situation: tuple[str, dict[str, tuple[DataType, str]], str, list[Any]], zone: str, known: bool
) -> None:
    source, generated, text, values = situation
    schema, partitions = schema_with(**generated)
    data = pa.RecordBatch.from_arrays([array_of(values, SOURCES[source])], [source])
    # The table was written in `zone`; the reader is there too, or does not know.
    reader = zone if known else None
    written = [
        evaluate(bind(parse_predicate(expression), schema, zone, predicate=False), data)
        for _, expression in generated.values()
    ]
    predicate = bind(parse_predicate(text), schema, reader or "UTC")
    filters = derive_partition_filters(predicate, schema, partitions, reader)
    assume(filters is not None)
    assert filters is not None
    assert {c.path[0] for c in columns(filters)} <= set(partitions)
    matches = evaluate(predicate, data).to_pylist()
    kept = evaluate(filters, pa.RecordBatch.from_arrays(written, partitions)).to_pylist()
    for value, match, keep in zip(values, matches, kept, strict=True):
        assert keep is True or match is not True, f"{text} matches {value} but {filters} drops it"
