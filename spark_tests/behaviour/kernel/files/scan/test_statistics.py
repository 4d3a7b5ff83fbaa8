"""Statistics: JSON text and typed checkpoint columns to Arrow arrays, unknown where in doubt."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

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
    DataType,
    DecimalType,
)  # fmt: skip
from delta_ds.kernel.format.values.statistics import Statistics, load_statistics
from spark_tests.behaviour.kernel.files.scan.tables import MemoryFiles

UTC = dt.timezone.utc
DAY = dt.timedelta(days=1)


def load(stats: Sequence[str | None], *leaves: tuple[str, DataType], **typed: pa.Array) -> Statistics:
    files = MemoryFiles(stats, typed={name.replace("__", "."): column for name, column in typed.items()})
    rows = pa.array(range(len(stats)), pa.int64())
    return load_statistics(files, rows, [(tuple(name.split(".")), kind) for name, kind in leaves])  # type: ignore[arg-type]


def bounds_of(data_type: DataType, *values: str) -> tuple[list[Any], list[Any]]:
    """Min and max read from JSON values given as text."""
    stats = [f'{{"numRecords":1,"minValues":{{"c":{v}}},"maxValues":{{"c":{v}}}}}' for v in values]
    out = load(stats, ("c", data_type))
    return out.min[("c",)].to_pylist(), out.max[("c",)].to_pylist()


def test_all_parts_are_read_in_the_order_of_the_rows() -> None:
    text = (
        '{"numRecords":%d,"tightBounds":%s,"minValues":{"a":{"b":1}},'
        '"maxValues":{"a":{"b":2}},"nullCount":{"a":{"b":3}}}'
    )
    files = MemoryFiles([text % (7, "true"), text % (8, "false"), text % (9, "true")])
    out = load_statistics(files, pa.array([1, 2], pa.int64()), [(("a", "b"), LONG)])  # type: ignore[arg-type]
    assert out.num_records.to_pylist() == [8, 9]
    assert out.tight_bounds.to_pylist() == [False, True]
    assert out.min[("a", "b")].to_pylist() == [1, 1]
    assert out.max[("a", "b")].to_pylist() == [2, 2]
    assert out.null_count[("a", "b")].to_pylist() == [3, 3]


def test_missing_parts_are_unknown_and_bounds_count_as_tight() -> None:
    out = load(["{}", '{"numRecords":3}', None], ("c", LONG))
    assert out.num_records.to_pylist() == [None, 3, None]
    assert out.tight_bounds.to_pylist() == [True, True, True]
    assert out.min[("c",)].to_pylist() == [None, None, None]
    assert out.null_count[("c",)].to_pylist() == [None, None, None]


def test_types_without_order_have_null_counts_only() -> None:
    leaves: list[tuple[str, DataType]] = [("b", BOOLEAN), ("x", BINARY), ("a", ArrayType(LONG))]
    out = load(['{"minValues":{"b":true,"x":"a"},"nullCount":{"b":1,"x":2,"a":3}}'], *leaves)
    assert out.min == {} and out.max == {}
    assert [out.null_count[(name,)].to_pylist() for name, _ in leaves] == [[1], [2], [3]]


@pytest.mark.parametrize(
    ("data_type", "text", "expected"),
    [
        (LONG, "9007199254740993", 9007199254740993),
        (LONG, "-9223372036854775808", -(1 << 63)),
        (BYTE, "127", 127),
        (BYTE, "128", None),
        (INTEGER, '"5"', None),
        (LONG, "5.0", 5),
        (LONG, "5.5", None),
        (LONG, "9.007199254740993e15", None),  # a double tells it from its neighbour no longer
        (LONG, "9223372036854775808", None),
        (DOUBLE, "5", 5.0),
        (DOUBLE, '"Infinity"', float("inf")),
        (DOUBLE, '"-Infinity"', float("-inf")),
        (DOUBLE, '"large"', None),
        (DOUBLE, "1e400", None),
        (FLOAT, "1.5", 1.5),
        (DecimalType(20, 2), "123456789012345678.90", Decimal("123456789012345678.90")),
        (DecimalType(20, 2), "5", Decimal("5.00")),
        (DecimalType(38, 18), "1e+20", None),
        (DecimalType(8, 2), "5.678", None),
        (DecimalType(8, 2), "5.670", Decimal("5.67")),
        (STRING, '"caf\\u00e9 \\" NaN"', 'café " NaN'),
        (STRING, '"NaN"', "NaN"),
        (STRING, '"\\ud800"', None),
        (STRING, "5", None),
        (DATE, '"2024-02-29"', dt.date(2024, 2, 29)),
        (DATE, '"2024-02-30"', None),
        (DATE, '"someday"', None),
        (DATE, "19782", None),
        (TIMESTAMP, '"2024-01-02T03:04:05.123Z"', dt.datetime(2024, 1, 2, 3, 4, 5, 123000, UTC)),
        (TIMESTAMP, '"2024-01-02T03:04:05.123-05:00"', dt.datetime(2024, 1, 2, 8, 4, 5, 123000, UTC)),
        (TIMESTAMP, '"2024-01-02T03:04:05.123456789Z"', dt.datetime(2024, 1, 2, 3, 4, 5, 123456, UTC)),
        (TIMESTAMP, '"1850-01-02T03:04:05.123-07:52"', None),
        (TIMESTAMP, '"2024-13-02T03:04:05.123Z"', None),
        (TIMESTAMP_NTZ, '"2024-01-02T03:04:05.123"', dt.datetime(2024, 1, 2, 3, 4, 5, 123000)),
        (TIMESTAMP_NTZ, '"2024-01-02T03:04:05.123Z"', dt.datetime(2024, 1, 2, 3, 4, 5, 123000)),
        (TIMESTAMP_NTZ, '"2024-01-02"', dt.datetime(2024, 1, 2)),
    ],
)
def test_json_value_is_read_exactly_or_unknown(data_type: DataType, text: str, expected: Any) -> None:
    assert bounds_of(data_type, text) == ([expected], [expected])


def test_one_odd_value_leaves_the_other_files_alone() -> None:
    low, high = bounds_of(LONG, *["7"] * 3000, '"seven"', *["8"] * 3000)
    assert low == high == [7] * 3000 + [None] + [8] * 3000


def test_one_odd_value_costs_the_others_no_digit() -> None:
    wide = "12345678901234567890.123456789012345678"
    low, _ = bounds_of(DecimalType(38, 18), wide, '"odd"', f"-{wide}", "1.5e-18")
    assert low == [Decimal(wide), None, Decimal(f"-{wide}"), None]


def test_nan_strings_are_floats_and_keep_their_place() -> None:
    low, _ = bounds_of(DOUBLE, "1.0", '"NaN"', "2.0")
    assert low[0] == 1.0 and low[1] != low[1] and low[2] == 2.0


def test_local_timestamp_has_a_day_of_slack_on_either_side() -> None:
    low, high = bounds_of(TIMESTAMP, '"2024-01-02T03:04:05.123"', '"2024-01-02T03:04:05.123Z"')
    instant = dt.datetime(2024, 1, 2, 3, 4, 5, 123000, UTC)
    assert low == [instant - DAY, instant]
    assert high == [instant + DAY, instant]


@pytest.mark.parametrize(
    "broken", ["", " ", "null", "nul", "{", "}", "[1]", "5", '"x"', "{}{}", "{}null", "\n", "{a:1}"]
)
def test_malformed_text_is_a_file_without_statistics(broken: str, caplog: pytest.LogCaptureFixture) -> None:
    good = '{"numRecords":5}'
    with caplog.at_level(logging.WARNING, "delta_ds"):
        out = load([broken, good, broken, broken, good], ("c", LONG))
    assert out.num_records.to_pylist() == [None, 5, None, None, 5]


def test_pretty_printed_text_is_read() -> None:
    out = load(['{\n  "numRecords": 5\r\n}', '  {"numRecords":6}  '], ("c", LONG))
    assert out.num_records.to_pylist() == [5, 6]


def test_very_long_text_is_read() -> None:
    out = load(['{"tags":"%s","numRecords":5}' % ("x" * 3_000_000), '{"numRecords":6}'], ("c", LONG))
    assert out.num_records.to_pylist() == [5, 6]


def test_repeated_key_does_not_disturb_other_files() -> None:
    out = load(['{"numRecords":1,"numRecords":2}', '{"numRecords":3}'], ("c", LONG))
    assert out.num_records.to_pylist()[1] == 3


def test_empty_selection_gives_empty_arrays() -> None:
    out = load_statistics(MemoryFiles([]), pa.array([], pa.int64()), [(("c",), LONG)])  # type: ignore[arg-type]
    assert len(out.num_records) == len(out.min[("c",)]) == 0


def test_typed_statistics_win_and_json_is_parsed_for_the_other_files_only() -> None:
    files = MemoryFiles(
        ['{"numRecords":99}', '{"numRecords":2,"minValues":{"c":5}}'],
        typed={"numRecords": pa.array([1, None]), "minValues.c": pa.array([4, None], pa.int32())},
    )
    out = load_statistics(files, pa.array([0, 1], pa.int64()), [(("c",), LONG)])  # type: ignore[arg-type]
    assert out.num_records.to_pylist() == [1, 2]
    assert out.min[("c",)].to_pylist() == [4, 5]
    assert files.asked_json == [1]


def test_json_is_not_read_where_typed_statistics_cover_all_files() -> None:
    files = MemoryFiles([None], typed={"numRecords": pa.array([1])})
    load_statistics(files, pa.array([0], pa.int64()), [(("c",), LONG)])  # type: ignore[arg-type]
    assert files.asked_json == []


def test_name_with_a_dot_is_never_taken_for_a_nested_field() -> None:
    files = MemoryFiles(
        ['{"minValues":{"a.b":1}}'], typed={"numRecords": pa.array([1]), "minValues.a.b": pa.array([77])}
    )
    out = load_statistics(files, pa.array([0], pa.int64()), [(("a.b",), LONG)])  # type: ignore[arg-type]
    assert out.min[("a.b",)].to_pylist() == [1]


@pytest.mark.parametrize(
    ("data_type", "found", "expected"),
    [
        (LONG, pa.array([5], pa.int32()), 5),
        (BYTE, pa.array([500], pa.int64()), None),
        (DOUBLE, pa.array([5], pa.int32()), 5.0),
        (DOUBLE, pa.array([1.5], pa.float32()), 1.5),
        (FLOAT, pa.array([0.1], pa.float64()), None),
        (DecimalType(12, 2), pa.array([Decimal("1.5")], pa.decimal128(5, 1)), Decimal("1.50")),
        (DecimalType(4, 2), pa.array([Decimal("1.555")], pa.decimal128(5, 3)), None),
        (DecimalType(11, 1), pa.array([5], pa.int64()), Decimal("5.0")),
        (DATE, pa.array([1], pa.int32()), dt.date(1970, 1, 2)),
        (DATE, pa.array(["1970-01-02"]), dt.date(1970, 1, 2)),
        (TIMESTAMP, pa.array([1_000_001], pa.timestamp("us")), dt.datetime(1970, 1, 1, 0, 0, 1, 1, UTC)),
        (TIMESTAMP, pa.array([1], pa.timestamp("ms", "UTC")), dt.datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)),
        (TIMESTAMP, pa.array([1], pa.timestamp("ns")), None),
        (TIMESTAMP, pa.array(["2024-01-02T03:04:05Z"]), dt.datetime(2024, 1, 2, 3, 4, 5, 0, UTC)),
        (TIMESTAMP_NTZ, pa.array([1], pa.date32()), dt.datetime(1970, 1, 2)),
        (STRING, pa.array([5]), None),
        (STRING, pa.array(["x"], pa.large_string()), "x"),
    ],
)
def test_typed_value_of_another_type_is_widened_or_unknown(
    data_type: DataType, found: pa.Array, expected: Any
) -> None:
    out = load([None], ("c", data_type), numRecords=pa.array([1]), minValues__c=found)
    assert out.min[("c",)].to_pylist() == [expected]
