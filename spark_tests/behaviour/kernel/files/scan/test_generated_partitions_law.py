"""The law of generated partition columns: a row that a predicate takes is never in a partition that is skipped for it.

Every function that a partition may be derived by, over every type that may go in, in zones whose clocks change, before
they were set by law and at the ends of time.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.format.expressions.arrays import plain_array
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.evaluate import evaluate
from delta_ds.kernel.format.expressions.generated import derive_partition_filters
from delta_ds.kernel.format.expressions.moments import DAY_US, date_of, timestamp_of
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.expressions.tree import Call, Column, Expression, Literal
from delta_ds.kernel.format.expressions.zones import instant_micros, zone_of
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    StructField,
    StructType,
    arrow_type,
)
from delta_ds.kernel.format.values import partition_values
from spark_tests.full_form import examples

SMALL, WIDE = DecimalType(9, 2), DecimalType(38, 10)
SOURCES: dict[str, DataType] = {
    "ts": TIMESTAMP,
    "tn": TIMESTAMP_NTZ,
    "day": DATE,
    "s": STRING,
    "bin": BINARY,
    "flag": BOOLEAN,
    "y": BYTE,
    "sh": SHORT,
    "i": INTEGER,
    "l": LONG,
    "f": FLOAT,
    "d": DOUBLE,
    "dec": SMALL,
    "wide": WIDE,
}
_UNITS = ["YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"]
_PATTERNS = [
    "yyyy",
    "yyyy-MM",
    "yyyy-MM-dd",
    "yyyyMMdd",
    "yyyy-MM-dd-HH",
    "yyyy-MM-dd HH:mm",
    "MM-yyyy",
    "HH",
]
_PARTS = [
    "YEAR",
    "MONTH",
    "DAY",
    "HOUR",
    "QUARTER",
    "DAYOFWEEK",
    "WEEKDAY",
    "DAYOFYEAR",
    "WEEKOFYEAR",
    "MINUTE",
]


def _of_times(name: str) -> list[dict[str, tuple[DataType, str]]]:
    """The columns that may be generated from a date, timestamp or timestamp without zone."""
    found: list[tuple[DataType, str]] = [(INTEGER, f"{part}({name})") for part in _PARTS]
    found += [(TIMESTAMP, f"DATE_TRUNC('{unit}', {name})") for unit in _UNITS]
    found += [(DATE, f"TRUNC({name}, '{unit}')") for unit in _UNITS[:4]]
    found += [(STRING, f"DATE_FORMAT({name}, '{pattern}')") for pattern in _PATTERNS]
    found += [
        (DATE, f"CAST({name} AS DATE)"),
        (TIMESTAMP, f"CAST({name} AS TIMESTAMP)"),
        (DATE, f"LAST_DAY({name})"),
        (TIMESTAMP_NTZ, f"CAST({name} AS TIMESTAMP_NTZ)"),
        (STRING, f"CAST({name} AS STRING)"),
        (TIMESTAMP, f"DATE_TRUNC('HOUR', CAST({name} AS TIMESTAMP))"),
        (DATE, f"CAST(DATE_TRUNC('MONTH', CAST({name} AS TIMESTAMP)) AS DATE)"),
        (TIMESTAMP_NTZ, f"CAST(DATE_TRUNC('DAY', {name}) AS TIMESTAMP_NTZ)"),
        (TIMESTAMP, f"CAST(CAST({name} AS DATE) AS TIMESTAMP)"),
        (LONG, f"YEAR({name})"),
        (INTEGER, f"YEAR(TRUNC({name}, 'WEEK'))"),
        (STRING, f"DATE_FORMAT(DATE_TRUNC('WEEK', {name}), 'yyyy-MM')"),
        (STRING, f"SUBSTRING(DATE_FORMAT({name}, 'yyyy-MM-dd'), 1, 7)"),
        (INTEGER, f"MONTH({name}) % 5"),
        (TIMESTAMP, f"CAST(CAST({name} AS TIMESTAMP_NTZ) AS TIMESTAMP)"),
    ]
    together = [
        {"p": (INTEGER, f"YEAR({name})"), "q": (INTEGER, f"MONTH({name})")},
        {"p": (INTEGER, f"YEAR({name})"), "q": (INTEGER, f"MONTH({name})"), "r": (INTEGER, f"DAY({name})")},
        {
            "p": (INTEGER, f"YEAR({name})"),
            "q": (INTEGER, f"MONTH({name})"),
            "r": (INTEGER, f"DAY({name})"),
            "h": (INTEGER, f"HOUR({name})"),
        },
        {"p": (INTEGER, f"YEAR({name})"), "q": (INTEGER, f"MONTH(TRUNC({name}, 'WEEK'))")},
        {"p": (LONG, f"YEAR(DATE_TRUNC('WEEK', {name}))"), "q": (INTEGER, f"MONTH({name})")},
    ]
    return [*({"p": one} for one in found), *together]


EXPRESSIONS: dict[str, list[dict[str, tuple[DataType, str]]]] = {
    **{name: _of_times(name) for name in ("ts", "tn", "day")},
    "s": [
        {"p": (STRING, text)}
        for text in (
            "s",
            "SUBSTRING(s, 0, 2)",
            "SUBSTRING(s, 1, 2)",
            "SUBSTRING(s, 2, 1)",
            "SUBSTRING(s, -1, 1)",
            "LEFT(s, 1)",
            "RIGHT(s, 1)",
            "CONCAT(s, 'x')",
            "SUBSTRING(s, 1, 0)",
            "LEFT(SUBSTRING(s, 1, 3), 2)",
        )
    ]
    + [{"p": (INTEGER, "LENGTH(s)")}],
    "bin": [{"p": (BINARY, "SUBSTRING(bin, 1, 1)")}, {"p": (INTEGER, "LENGTH(bin)")}, {"p": (BINARY, "bin")}],
    "flag": [{"p": (BOOLEAN, "flag")}, {"p": (STRING, "CAST(flag AS STRING)")}],
    **{
        name: [
            {"p": (SOURCES[name], name)},
            {"p": (LONG, f"CAST({name} AS BIGINT)")},
            {"p": (DOUBLE, f"CAST({name} AS DOUBLE)")},
            {"p": (SOURCES[name], f"{name} % 3Y")},
            {"p": (STRING, f"CAST({name} AS STRING)")},
            {"p": (INTEGER, f"PMOD({name}, 7)")},
        ]
        for name in ("y", "sh", "i", "l")
    },
    "f": [{"p": (FLOAT, "f")}, {"p": (DOUBLE, "CAST(f AS DOUBLE)")}],
    "d": [{"p": (DOUBLE, "d")}, {"p": (LONG, "CAST(d AS BIGINT)")}],
    **{
        name: [
            {"p": (SOURCES[name], name)},
            {"p": (STRING, f"CAST({name} AS STRING)")},
            {"p": (LONG, f"CAST({name} AS BIGINT)")},
        ]
        for name in ("dec", "wide")
    },
}

ZONES = [
    "UTC",
    "America/Los_Angeles",
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Pacific/Apia",
    "Pacific/Kiritimati",
    "America/Havana",
    "Africa/Monrovia",
    "Asia/Manila",
    "+14:00",
    "-12:00",
    "-00:44:30",
    "America/St_Johns",
]
# Wall clock times around which clocks change somewhere; before 1900; the ends of the time of Python and of Spark.
_ANCHORS = [
    dt.datetime(2024, 3, 10, 2),
    dt.datetime(2024, 11, 3, 1),
    dt.datetime(2024, 3, 31, 2),
    dt.datetime(2024, 10, 27, 2),
    dt.datetime(2024, 4, 7, 2),
    dt.datetime(2011, 12, 30),
    dt.datetime(1995, 1, 1),
    dt.datetime(1883, 11, 18, 12),
    dt.datetime(1844, 12, 31),
    dt.datetime(1972, 1, 7),
    dt.datetime(2050, 11, 6, 1),
    dt.datetime(1, 1, 1),
    dt.datetime(9999, 12, 31, 23, 59, 59),
    dt.datetime(1969, 12, 31, 23),
    dt.datetime(2000, 2, 29),
    dt.datetime(2024, 1, 1),
]
_EPOCH = dt.datetime(1970, 1, 1)
_LOCAL = st.builds(
    lambda anchor, minutes, micros: (
        (anchor - _EPOCH) // dt.timedelta(microseconds=1) + minutes * 60_000_000 + micros
    ),
    st.sampled_from(_ANCHORS),
    st.integers(-60, 60).map(lambda n: n * 15) | st.integers(-5000, 5000),
    st.sampled_from([0, 0, 0, 1, -1, 999_999]),
)
_FAR = st.sampled_from([-(1 << 62), 1 << 62, -63_000_000_000_000_000, 260_000_000_000_000_000])


def _values(name: str, zone: str) -> st.SearchStrategy[Any]:
    """The values of a source column, dates and times as numbers."""
    where = zone_of(zone)
    times = _LOCAL | _LOCAL | _LOCAL | _FAR
    pools: dict[DataType, st.SearchStrategy[Any]] = {
        TIMESTAMP: times.map(lambda local: instant_micros(local, where)) | times,
        TIMESTAMP_NTZ: times,
        DATE: times.map(lambda local: local // DAY_US),
        STRING: st.text(alphabet="ab\x7f😀\uffff", max_size=3),
        BINARY: st.text(alphabet="ab\x7f", max_size=2).map(str.encode),
        BOOLEAN: st.booleans(),
        BYTE: st.integers(-9, 9) | st.sampled_from([-128, 127]),
        SHORT: st.integers(-9, 9),
        INTEGER: st.integers(-9, 9) | st.sampled_from([-(1 << 31), (1 << 31) - 1]),
        LONG: st.integers(-9, 9) | st.sampled_from([-(1 << 63), (1 << 63) - 1, (1 << 53) + 1, 1 << 53]),
        FLOAT: st.sampled_from([0.0, -0.0, 1.5, -2.5, float("inf"), float("-inf"), float("nan")]),
        DOUBLE: st.sampled_from([0.0, -0.0, 1.5, -2.5, 0.1, float("inf"), float("nan")]),
        SMALL: st.integers(-300, 300).map(lambda n: Decimal(n).scaleb(-2)),
        WIDE: st.integers(-30, 30).map(lambda n: Decimal(n).scaleb(-1)),
    }
    return pools[SOURCES[name]]


def _literal(value: Any, data_type: DataType) -> Literal:
    if data_type == DATE:
        return Literal(date_of(value), DATE)
    if data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        return Literal(timestamp_of(value, data_type == TIMESTAMP), data_type)
    return Literal(value, data_type)


@st.composite
def _conditions(draw: st.DrawFn, name: str, zone: str) -> Expression:
    """A condition on the source column."""
    column = Column((name,))
    constants = _values(name, zone).map(lambda value: _literal(value, SOURCES[name]))
    kind = draw(st.sampled_from(["compare"] * 4 + ["in", "between", "null", "other"]))
    if kind == "in":
        some = draw(st.lists(constants | st.just(Literal(None)), min_size=1, max_size=3))
        return Call("in", (column, *some))
    if kind == "between":
        return Call("and", (Call(">=", (column, draw(constants))), Call("<=", (column, draw(constants)))))
    if kind == "null":
        return Call(draw(st.sampled_from(["isnull", "isnotnull"])), (column,))
    if kind == "other":
        return Call("=", (Column(("other",)), Literal(1)))
    operator = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "<=>", "<>"]))
    sides: tuple[Expression, Expression] = (column, draw(constants | st.just(Literal(None))))
    return Call(operator, sides if draw(st.booleans()) else sides[::-1])


def _joined(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.builds(
        lambda name, parts: Call(name, tuple(parts)),
        st.sampled_from(["and", "or"]),
        st.lists(inner, min_size=2, max_size=3),
    )
    return several | inner.map(lambda part: Call("not", (part,)))


def _schema(name: str, generated: dict[str, tuple[DataType, str]]) -> StructType:
    fields = [StructField(name, SOURCES[name]), StructField("other", INTEGER)]
    for column, (data_type, expression) in generated.items():
        fields.append(StructField(column, data_type, True, {"delta.generationExpression": expression}))
    return StructType(tuple(fields))


def _stored_partitions(
    schema: StructType,
    generated: dict[str, tuple[DataType, str]],
    zone: str,
    rows: pa.RecordBatch,
    *,
    local: bool,
) -> list[pa.Array] | None:
    """The generated columns of some rows as they come back from the log; None for rows that cannot be written.

    Parameters
    ----------
    local
        Timestamps are written as wall clock times of the zone, as some writers do.
    """
    try:
        columns = [
            (
                evaluate(bind(parse_predicate(text), schema, zone, predicate=False), rows).cast(
                    arrow_type(t)
                ),
                t,
            )
            for t, text in generated.values()
        ]
        return [_stored(values, t, zone, local=local) for values, t in columns]
    except DeltaError:
        return None


def _stored(values: pa.Array, data_type: DataType, zone: str, *, local: bool) -> pa.Array:
    text = partition_values.log_text(data_type)
    if local and data_type == TIMESTAMP:
        text = partition_values.directory_text(data_type, zone) or text
    plain = partition_values.distinct_form(values, data_type).to_pylist()
    texts = pa.array([None if value is None else text(value) for value in plain], pa.string())
    return partition_values.parse(texts, data_type, zone)


@settings(
    max_examples=examples(600), suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
@given(st.data(), st.sampled_from(sorted(EXPRESSIONS)), st.sampled_from(ZONES), st.booleans(), st.booleans())
def test_no_partition_with_a_matching_row_is_skipped(
    data: st.DataObject, name: str, zone: str, known: bool, local: bool
) -> None:
    generated = data.draw(st.sampled_from(EXPRESSIONS[name]))
    schema = _schema(name, generated)
    values = data.draw(st.lists(st.none() | _values(name, zone), min_size=1, max_size=8))
    predicate = data.draw(st.recursive(_conditions(name, zone), _joined, max_leaves=4))
    rows = pa.RecordBatch.from_arrays(
        [plain_array(values, SOURCES[name]), plain_array([1] * len(values), INTEGER)], [name, "other"]
    )
    stored = _stored_partitions(schema, generated, zone, rows, local=local and known)
    assume(stored is not None)
    assert stored is not None
    reader = zone if known else None
    bound = bind(predicate, schema, reader or "UTC")
    derived = derive_partition_filters(bound, schema, list(generated), reader)
    assume(derived is not None)
    assert derived is not None
    kept = evaluate(derived, pa.RecordBatch.from_arrays(stored, list(generated))).to_pylist()
    _no_row_is_lost(
        values, evaluate(bound, rows).to_pylist(), kept, f"{bound} on {generated} in {zone}: {derived}"
    )


def _no_row_is_lost(values: Sequence[Any], wanted: Sequence[Any], kept: Sequence[Any], told: str) -> None:
    for value, match, keep in zip(values, wanted, kept, strict=True):
        assert keep is True or match is not True, f"{value} is lost: {told}"
