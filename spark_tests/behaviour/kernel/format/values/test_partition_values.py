"""Partition values: texts of the log as Spark's cast reads them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.exceptions import InvalidOptionError, SchemaError
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
    VARIANT,
    ArrayType,
    DataType,
    DecimalType,
    StructType,
    arrow_type,
)  # fmt: skip
from delta_ds.kernel.format.values.partition_values import parse

UTC = dt.timezone.utc


def one(text: str | None, data_type: DataType, timezone: str = "UTC") -> Any:
    parsed = parse(pa.array([text], pa.string()), data_type, timezone)
    assert parsed.type == arrow_type(data_type)
    return parsed.to_pylist()[0]


@pytest.mark.parametrize(
    ("text", "data_type", "value"),
    [
        ("true", BOOLEAN, True),
        ("FALSE", BOOLEAN, False),
        ("perhaps", BOOLEAN, None),
        ("-128", BYTE, -128),
        ("128", BYTE, None),
        ("+7", SHORT, 7),
        ("1.9", INTEGER, 1),
        ("9223372036854775807", LONG, 2**63 - 1),
        ("9223372036854775808", LONG, None),
        ("1.0E20", DOUBLE, 1e20),
        ("-Infinity", DOUBLE, -math.inf),
        ("1e300", FLOAT, math.inf),
        ("0.5", FLOAT, 0.5),
        ("abc", DOUBLE, None),
        ("1.500", DecimalType(5, 3), Decimal("1.500")),
        ("-0.0015", DecimalType(5, 3), Decimal("-0.002")),
        ("100", DecimalType(5, 3), None),
        ("9" * 38, DecimalType(38, 0), Decimal("9" * 38)),
        ("2024-02-29", DATE, dt.date(2024, 2, 29)),
        ("2023-02-29", DATE, None),
        ("2024-01-01 10:00:00", DATE, dt.date(2024, 1, 1)),
        ("\x01\x02é", BINARY, b"\x01\x02\xc3\xa9"),
        ("a b", STRING, "a b"),
    ],
)
def test_text_becomes_the_value_that_sparks_cast_gives(text: str, data_type: DataType, value: Any) -> None:
    assert one(text, data_type) == value


def test_nan_is_read() -> None:
    assert math.isnan(one("NaN", DOUBLE))


@pytest.mark.parametrize("data_type", [BOOLEAN, LONG, DOUBLE, DecimalType(5, 2), DATE, TIMESTAMP, BINARY])
def test_null_and_empty_text_are_null(data_type: DataType) -> None:
    assert one(None, data_type) is None
    assert one("", data_type) is None


def test_empty_string_stays_empty_for_string_columns() -> None:
    assert one("", STRING) == ""
    assert one(None, STRING) is None


@pytest.mark.parametrize(
    ("text", "timezone", "instant"),
    [
        ("2024-01-02T08:04:05.120000Z", "Asia/Tokyo", dt.datetime(2024, 1, 2, 8, 4, 5, 120000, UTC)),
        ("2024-01-02 00:00:00+02:00", "Asia/Tokyo", dt.datetime(2024, 1, 1, 22, tzinfo=UTC)),
        ("2024-01-02 03:04:05.12", "UTC", dt.datetime(2024, 1, 2, 3, 4, 5, 120000, UTC)),
        ("2024-01-02 03:04:05", "Asia/Tokyo", dt.datetime(2024, 1, 1, 18, 4, 5, tzinfo=UTC)),
        ("2024-01-02", "+05:30", dt.datetime(2024, 1, 1, 18, 30, tzinfo=UTC)),
        ("2024-03-10 02:30:00", "America/Los_Angeles", dt.datetime(2024, 3, 10, 10, 30, tzinfo=UTC)),
        ("2024-11-03 01:30:00", "PST", dt.datetime(2024, 11, 3, 8, 30, tzinfo=UTC)),
        ("2024-13-01 00:00:00", "UTC", None),
        ("2024-01-01 25:00:00", "UTC", None),
        ("2024-01-01 00:00:00 Mars/Olympus", "UTC", None),
    ],
    ids=["iso", "offset", "short-fraction", "local", "date-only", "gap", "overlap", "month", "hour", "zone"],
)
def test_timestamps_without_a_zone_are_local_times(text: str, timezone: str, instant: Any) -> None:
    assert one(text, TIMESTAMP, timezone) == instant


def test_timestamp_ntz_is_never_shifted() -> None:
    assert one("2024-01-02 03:04:05.5", TIMESTAMP_NTZ, "Asia/Tokyo") == dt.datetime(
        2024, 1, 2, 3, 4, 5, 500000
    )
    assert one("2024-01-02", TIMESTAMP_NTZ, "Asia/Tokyo") == dt.datetime(2024, 1, 2)


def test_years_beyond_9999_are_read() -> None:
    parsed = parse(pa.array(["+12024-03-10 02:30:00"]), TIMESTAMP, "America/Los_Angeles")
    within = parse(pa.array(["2024-03-10 02:30:00"]), TIMESTAMP, "America/Los_Angeles")
    cycles = 25 * 146_097 * 86_400_000_000  # 10,000 years
    assert parsed.cast(pa.int64())[0].as_py() - within.cast(pa.int64())[0].as_py() == cycles


def test_unknown_session_zone_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="Mars/Olympus"):
        one("2024-01-01 00:00:00", TIMESTAMP, "Mars/Olympus")


@pytest.mark.parametrize("data_type", [VARIANT, ArrayType(LONG), StructType()])
def test_types_that_cannot_partition_are_refused(data_type: DataType) -> None:
    with pytest.raises(SchemaError, match="cannot be a partition column"):
        parse(pa.array(["x"]), data_type)


@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))))
def test_longs_survive_their_text(values: list[int | None]) -> None:
    texts = pa.array([None if v is None else str(v) for v in values], pa.string())
    assert parse(texts, LONG).to_pylist() == values


@given(st.datetimes(timezones=st.just(UTC)))
def test_instants_survive_their_iso_text(moment: dt.datetime) -> None:
    assert one(moment.strftime("%Y-%m-%dT%H:%M:%S.%f").zfill(26) + "Z", TIMESTAMP, "Europe/Berlin") == moment


@given(st.text(max_size=30))
def test_any_text_is_a_value_or_null_for_every_type(text: str) -> None:
    for data_type in (
        BOOLEAN,
        BYTE,
        LONG,
        FLOAT,
        DOUBLE,
        DecimalType(10, 2),
        DATE,
        TIMESTAMP,
        TIMESTAMP_NTZ,
        BINARY,
    ):
        assert len(parse(pa.array([text, text]), data_type)) == 2
