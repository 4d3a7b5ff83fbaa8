"""Incoming columns as columns of the table: found by name, reordered, cast by the rules for storing.

Appends of a DataFrame to a path take less than `can_store` allows; delta-spark refuses the others by schema:
stored are equal types, byte to short, byte and short to integer, `null` to any type outside collections,
struct fields in any order and case or missing, all of it inside structs, arrays and maps too. Refused with
DELTA_FAILED_TO_MERGE_FIELDS are long with any other number, any change of a decimal, float with double,
string with anything, date with the timestamps, timestamp with timestamp_ntz; integer to short or byte is
refused with DELTA_METADATA_MISMATCH. The wider rules are for commands that cast: UPDATE, MERGE, INSERT.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.exceptions import InvariantViolationError, SchemaError
from delta_ds.kernel.files.rows.casts import Casting, can_store, compile_column
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
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    arrow_type,
)  # fmt: skip
from spark_tests.behaviour.kernel.files.rows.row_tables import schema, stored
from spark_tests.behaviour.kernel.format.expressions.trees import ROWS, SCHEMA

UTC = dt.timezone.utc


def cast(
    values: list[Any], source: pa.DataType, target: DataType, timezone: str = "UTC", implicit: bool = False
) -> list[Any]:
    convert = compile_column(source, StructField("c", target), Casting(timezone, implicit), "c")
    array = pa.array(values, source)
    out = array if convert is None else convert(array)
    assert out.type == arrow_type(target)
    out.validate(full=True)
    result: list[Any] = out.to_pylist()
    return result


@pytest.mark.parametrize(
    ("values", "source", "target", "expected"),
    [
        ([1, None], pa.int8(), SHORT, [1, None]),
        ([1, -5], pa.int16(), INTEGER, [1, -5]),
        ([1], pa.int32(), LONG, [1]),
        ([7], pa.int64(), INTEGER, [7]),
        ([7], pa.int64(), DecimalType(20, 2), [Decimal("7.00")]),
        ([Decimal("1.25")], pa.decimal128(10, 2), DecimalType(12, 4), [Decimal("1.2500")]),
        ([Decimal("1.255")], pa.decimal128(10, 3), DecimalType(10, 2), [Decimal("1.26")]),
        ([1.5], pa.float32(), DOUBLE, [1.5]),
        ([1.5], pa.float64(), FLOAT, [1.5]),
        ([1, None], pa.int32(), STRING, ["1", None]),
        ([dt.date(2024, 1, 1)], pa.date32(), STRING, ["2024-01-01"]),
        ([None, None], pa.null(), INTEGER, [None, None]),
        ([None], pa.null(), StructType((StructField("a", INTEGER),)), [None]),
        (["a", None], pa.large_string(), STRING, ["a", None]),
        (["a"], pa.string_view(), STRING, ["a"]),
        ([b"a"], pa.large_binary(), BINARY, [b"a"]),
        (["a", "a", None], pa.dictionary(pa.int8(), pa.string()), STRING, ["a", "a", None]),
    ],
)
def test_values_are_stored_in_the_columns_type(
    values: list[Any], source: pa.DataType, target: DataType, expected: list[Any]
) -> None:
    assert cast(values, source, target) == expected


def test_instants_keep_their_moment_whatever_zone_arrow_names() -> None:
    moment = dt.datetime(2024, 1, 1, 10, tzinfo=UTC)
    assert cast([moment], pa.timestamp("us", "America/Los_Angeles"), TIMESTAMP) == [moment]
    assert cast([moment], pa.timestamp("ms", "UTC"), TIMESTAMP) == [moment]


def test_casts_between_kinds_of_time_use_the_session_zone() -> None:
    local, instant = dt.datetime(2024, 1, 1), dt.datetime(2023, 12, 31, 23, tzinfo=UTC)
    assert cast([local], pa.timestamp("us"), TIMESTAMP, "Europe/Paris") == [instant]
    assert cast([instant], pa.timestamp("us", "UTC"), TIMESTAMP_NTZ, "Europe/Paris") == [local]
    assert cast([instant], pa.timestamp("us", "UTC"), DATE, "Europe/Paris") == [local.date()]
    assert cast([local.date()], pa.date32(), TIMESTAMP, "Europe/Paris") == [instant]


@pytest.mark.parametrize(
    ("value", "source", "target", "names"),
    [
        (5_000_000_000, pa.int64(), INTEGER, ("BIGINT", "INT")),
        (300, pa.int16(), BYTE, ("SMALLINT", "TINYINT")),
        (1e30, pa.float64(), LONG, ("DOUBLE", "BIGINT")),
        (float("nan"), pa.float64(), INTEGER, ("DOUBLE", "INT")),
        (Decimal("1000.00"), pa.decimal128(10, 2), DecimalType(4, 2), ("DECIMAL(10,2)", "DECIMAL(4,2)")),
        (100, pa.int32(), DecimalType(3, 1), ("INT", "DECIMAL(3,1)")),
    ],
)
def test_value_that_does_not_fit_is_an_error_naming_column_and_types(
    value: Any, source: pa.DataType, target: DataType, names: tuple[str, str]
) -> None:
    with pytest.raises(InvariantViolationError, match="column c due to an overflow") as caught:
        cast([value], source, target)
    assert caught.value.condition == "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"
    assert (caught.value.parameters["sourceType"], caught.value.parameters["targetType"]) == names


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (STRING, INTEGER),
        (STRING, DATE),
        (STRING, BINARY),
        (BINARY, STRING),
        (BOOLEAN, INTEGER),
        (INTEGER, BOOLEAN),
        (INTEGER, DATE),
        (TIMESTAMP, LONG),
        (INTEGER, VARIANT),
        (VARIANT, STRING),
        (INTEGER, ArrayType(INTEGER)),
        (ArrayType(STRING), ArrayType(INTEGER)),
        (MapType(STRING, STRING), MapType(STRING, INTEGER)),
        (schema(b=INTEGER), schema(a=INTEGER)),
    ],
)
def test_types_that_are_not_stored_in_each_other_are_refused(source: DataType, target: DataType) -> None:
    assert not can_store(source, target)
    with pytest.raises(SchemaError):
        compile_column(arrow_type(source), StructField("c", target), Casting("UTC"), "c")


_DAYS = pa.array([0, 3 * 86_400_000, -86_400_000, None], pa.int64()).view(pa.date64())
_DATES = [dt.date(1970, 1, 1), dt.date(1970, 1, 4), dt.date(1969, 12, 31), None]


@pytest.mark.parametrize(
    ("array", "wanted", "expected"),
    [
        (_DAYS, DATE, _DATES),
        (_DAYS, TIMESTAMP_NTZ, [day and dt.datetime(day.year, day.month, day.day) for day in _DATES]),
        (pa.ListArray.from_arrays([0, 4], _DAYS), ArrayType(DATE), [_DATES]),
        (pa.StructArray.from_arrays([_DAYS], ["x"]), schema(x=DATE), [{"x": day} for day in _DATES]),
    ],
)
def test_days_in_milliseconds_are_dates(array: pa.Array, wanted: DataType, expected: list[Any]) -> None:
    convert = compile_column(array.type, StructField("c", wanted), Casting("UTC"), "c")
    assert convert is not None
    found = convert(array)
    assert (found.type, found.to_pylist()) == (arrow_type(wanted), expected)


@pytest.mark.parametrize(
    ("number", "source"),
    [
        (1, pa.date64()), (-1, pa.date64()), (86_400_001, pa.date64()), (2**40 * 86_400_000 % 2**62, pa.date64()),
        (2**60, pa.timestamp("s")), (2**60, pa.timestamp("ms", "UTC")), (-(2**60), pa.timestamp("s", "Europe/Paris")),
        (1, pa.timestamp("ns")), (-1, pa.timestamp("ns", "UTC")), (2**62 + 1, pa.timestamp("ns", "Europe/Paris")),
    ],
)  # fmt: skip
def test_a_time_that_no_value_of_the_table_is_equal_to_is_refused(number: int, source: pa.DataType) -> None:
    array = pa.array([number], pa.int64()).view(source)
    wanted = DATE if source == pa.date64() else TIMESTAMP if source.tz else TIMESTAMP_NTZ
    convert = compile_column(source, StructField("c", wanted), Casting("UTC"), "c")
    assert convert is not None
    with pytest.raises(InvariantViolationError, match="column c has a value of the Arrow type") as caught:
        convert(array)
    assert caught.value.condition == "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"


@given(
    micros=st.lists(st.none() | st.integers(-(2**63) // 1000 + 1, 2**63 // 1000 - 1), min_size=1),
    part=st.integers(0, 999),
    zone=st.sampled_from([None, "UTC", "Europe/Paris"]),
    is_nested=st.booleans(),
)
def test_nanoseconds_are_stored_exactly_or_refused(
    micros: list[int | None], part: int, zone: str | None, is_nested: bool
) -> None:
    numbers = [n and n * 1000 + part for n in micros]
    wanted: DataType = TIMESTAMP if zone else TIMESTAMP_NTZ
    array: pa.Array = pa.array(numbers, pa.int64()).view(pa.timestamp("ns", zone))
    if is_nested:
        array, wanted = pa.StructArray.from_arrays([array], ["x"]), schema(x=wanted)
    convert = compile_column(array.type, StructField("c", wanted), Casting("UTC"), "c")
    assert convert is not None
    if part and any(micros):
        with pytest.raises(InvariantViolationError, match="cannot be stored exactly as TIMESTAMP"):
            convert(array)
    else:
        found = convert(array)
        assert found.type == arrow_type(wanted)
        assert (found.field(0) if is_nested else found).cast(pa.int64()).to_pylist() == micros


IMPLICIT: list[tuple[Any, pa.DataType, DataType, Any]] = [
    ("5", pa.string(), LONG, 5),
    (" 7 ", pa.string(), INTEGER, 7),
    ("1.239", pa.string(), DecimalType(5, 2), Decimal("1.24")),
    ("1e3", pa.string(), DOUBLE, 1000.0),
    ("2024-01-01", pa.string(), DATE, dt.date(2024, 1, 1)),
    ("2024-01-01 10:00:00", pa.string(), TIMESTAMP, dt.datetime(2024, 1, 1, 10, tzinfo=UTC)),
    ("ab", pa.string(), BINARY, b"ab"),
    (b"ab", pa.binary(), STRING, "ab"),
    (5, pa.int32(), STRING, "5"),
    (True, pa.bool_(), STRING, "true"),
    (1.7, pa.float64(), LONG, 1),
]


@pytest.mark.parametrize(("value", "source", "target", "expected"), IMPLICIT)
def test_streams_store_what_spark_casts_implicitly(
    value: Any, source: pa.DataType, target: DataType, expected: Any
) -> None:
    assert cast([value, None], source, target, implicit=True) == [expected, None]
    assert cast([[value], None], pa.list_(source), ArrayType(target), implicit=True) == [[expected], None]
    assert cast([{"x": value}], pa.struct([("x", source)]), schema(x=target), implicit=True) == [
        {"x": expected}
    ]


@pytest.mark.parametrize(
    ("source", "target"),
    [(STRING, BOOLEAN), (INTEGER, BOOLEAN), (BOOLEAN, INTEGER), (TIMESTAMP, LONG), (LONG, TIMESTAMP), (DATE, INTEGER),
     (BINARY, LONG), (ArrayType(INTEGER), STRING), (STRING, schema(x=INTEGER)), (VARIANT, STRING)],
)  # fmt: skip
def test_streams_store_nothing_that_spark_does_not_cast_implicitly(
    source: DataType, target: DataType
) -> None:
    assert not can_store(source, target, implicit=True)


def test_a_text_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(InvariantViolationError, match="cannot be read as BIGINT") as caught:
        cast(["x"], pa.string(), LONG, implicit=True)
    assert caught.value.condition == "CAST_INVALID_INPUT"


@pytest.mark.parametrize("target", [INTEGER, STRING, ArrayType(INTEGER), schema(a=INTEGER), VARIANT])
def test_void_is_stored_in_every_type(target: DataType) -> None:
    assert can_store(VOID, target)
    assert cast([None], pa.null(), target) == [None]


NESTED = schema(
    s=schema(a=INTEGER, b=STRING, c=schema(x=LONG)),
    l=ArrayType(schema(a=INTEGER, b=STRING)),
    m=MapType(schema(a=INTEGER, b=INTEGER), schema(a=INTEGER, b=STRING)),
)


def test_fields_inside_structs_arrays_and_maps_are_found_by_name_and_missing_ones_null() -> None:
    data = schema(
        M=MapType(schema(B=INTEGER, A=SHORT), schema(b=STRING)),
        L=ArrayType(schema(B=STRING, A=BYTE)),
        S=schema(B=STRING, C=schema()),
    )
    row = {
        "M": [({"B": 2, "A": 1}, {"b": "v"}), ({"B": 4, "A": 3}, None)],
        "L": [{"B": "x", "A": 1}, None],
        "S": {"B": "y", "C": {}},
    }
    full, empty = stored(data, NESTED, row, dict.fromkeys(data.names))
    assert full == {
        "s": {"a": None, "b": "y", "c": {"x": None}},
        "l": [{"a": 1, "b": "x"}, None],
        "m": [({"a": 1, "b": 2}, {"a": None, "b": "v"}), ({"a": 3, "b": 4}, None)],
    }
    assert empty == dict.fromkeys(NESTED.names)


def test_slices_of_nested_arrays_are_converted_at_their_own_rows() -> None:
    kind = pa.list_(pa.struct([("b", pa.string()), ("a", pa.int16())]))
    array = pa.array([[{"b": "0", "a": 0}], None, [{"b": "1", "a": 1}, None], [], [{"b": "2", "a": 2}]], kind)
    convert = compile_column(kind, NESTED.fields[1], Casting("UTC"), "l")
    assert convert is not None
    for start in range(5):
        for length in range(6 - start):
            part = convert(array.slice(start, length))
            part.validate(full=True)
            expected = array.slice(start, length).to_pylist()
            assert part.to_pylist() == expected


@pytest.mark.parametrize("kind", [pa.large_list(pa.int16()), pa.list_(pa.int16(), 2)])
def test_other_kinds_of_lists_become_plain_ones(kind: pa.DataType) -> None:
    assert cast([[1, 2], None, [3, 4]], kind, ArrayType(INTEGER)) == [[1, 2], None, [3, 4]]


def test_array_of_the_tables_type_is_not_touched() -> None:
    for field in NESTED:
        assert compile_column(arrow_type(field.type), field, Casting("UTC"), field.name) is None


@given(ROWS, st.permutations(range(len(SCHEMA))), st.booleans())
def test_reordered_and_recased_columns_come_back_as_they_were(
    rows: list[dict[str, Any]], order: list[int], upper: bool
) -> None:
    fields = [SCHEMA.fields[i] for i in order]
    rename = str.upper if upper else str.lower
    data = StructType(tuple(StructField(rename(f.name), f.type) for f in fields))
    renamed = [{rename(name): value for name, value in row.items()} for row in rows]
    assert repr(stored(data, SCHEMA, *renamed)) == repr(stored(SCHEMA, SCHEMA, *rows))


@given(st.lists(st.none() | st.integers(-(1 << 31), (1 << 31) - 1)))
def test_widened_integers_come_back_as_they_were(values: list[int | None]) -> None:
    for wide in (LONG, DOUBLE, DecimalType(10, 0), DecimalType(20, 5)):
        widened = cast(values, pa.int32(), wide)
        assert cast(widened, arrow_type(wide), INTEGER) == values
