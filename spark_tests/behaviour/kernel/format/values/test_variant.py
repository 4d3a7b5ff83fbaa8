"""Variants as Spark's `to_json` and `schema_of_variant` show them."""

from __future__ import annotations

import datetime as dt
import json
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.exceptions import DataFileError
from delta_ds.kernel.format.expressions.plain_sql import double_text, float_text
from delta_ds.kernel.format.values.variant import schema_of, size, to_json
from spark_tests.behaviour.kernel.files.variants import metadata_of, value_of, variant_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
EMPTY = metadata_of([])


def primitive(kind: int, form: str, *values: Any) -> bytes:
    return struct.pack("<B" + form, kind << 2, *values)


@given(JSON)
def test_json_is_that_of_the_value(value: Any) -> None:
    encoded, metadata = variant_of(value)
    assert json.loads(to_json(encoded, metadata)) == value
    assert size(encoded, 0) == len(encoded)


@pytest.mark.parametrize(
    ("encoded", "text", "kind"),
    [
        (b"\x00", "null", "VOID"),
        (b"\x04", "true", "BOOLEAN"),
        (primitive(3, "b", -128), "-128", "BIGINT"),
        (primitive(4, "h", 300), "300", "BIGINT"),
        (primitive(5, "i", -70000), "-70000", "BIGINT"),
        (primitive(6, "q", 5_000_000_000), "5000000000", "BIGINT"),
        (primitive(7, "d", 1e300), "1.0E300", "DOUBLE"),
        (primitive(7, "d", float("nan")), '"NaN"', "DOUBLE"),
        (primitive(14, "f", 0.1), "0.1", "FLOAT"),
        (primitive(8, "Bi", 2, 150), "1.5", "DECIMAL(2,1)"),
        (primitive(8, "Bi", 2, 1), "0.01", "DECIMAL(2,2)"),
        (primitive(8, "Bi", 1, 1000), "100", "DECIMAL(3,0)"),
        (primitive(8, "Bi", 3, 0), "0", "DECIMAL(1,0)"),
        (primitive(9, "Bq", 0, -(10**17)), "-" + "1" + "0" * 17, "DECIMAL(18,0)"),
        (primitive(11, "i", 19782), '"2024-02-29"', "DATE"),
        (primitive(11, "i", 2_932_897), '"+10000-01-01"', "DATE"),
        (primitive(12, "q", 1_704_070_923_456_789), '"2024-01-01 01:02:03.456789+00:00"', "TIMESTAMP"),
        (primitive(13, "q", -1), '"1969-12-31 23:59:59.999999"', "TIMESTAMP_NTZ"),
        (primitive(13, "q", 500_000), '"1970-01-01 00:00:00.5"', "TIMESTAMP_NTZ"),
        (primitive(15, "I3s", 3, b"\x00\xff\x10"), '"AP8Q"', "BINARY"),
        (b"\x09hi", '"hi"', "STRING"),
        (primitive(20, "16s", bytes(range(16))), '"00010203-0405-0607-0809-0a0b0c0d0e0f"', "UUID"),
    ],
)
def test_every_primitive_has_its_text_and_type(encoded: bytes, text: str, kind: str) -> None:
    assert to_json(encoded, EMPTY) == text
    assert schema_of(encoded, EMPTY) == kind


def test_strings_are_escaped_as_jackson_does() -> None:
    encoded, metadata = variant_of('"\\/\b\f\n\r\t\x01é\x7f')
    assert to_json(encoded, metadata) == '"\\"\\\\/\\b\\f\\n\\r\\t\\u0001é\x7f"'


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({}, "OBJECT<>"),
        ([], "ARRAY<VOID>"),
        ([None, 1], "ARRAY<BIGINT>"),
        ([1, 0.5], "ARRAY<DOUBLE>"),
        ([1, Decimal("0.5")], "ARRAY<DECIMAL(21,1)>"),
        ([Decimal("12.5"), Decimal("0.125")], "ARRAY<DECIMAL(5,3)>"),
        ([Decimal("0.5"), 0.5], "ARRAY<DOUBLE>"),
        ([1, "a"], "ARRAY<VARIANT>"),
        ([dt.date(2024, 1, 1), "a"], "ARRAY<VARIANT>"),
        ([[1], ["a"]], "ARRAY<ARRAY<VARIANT>>"),
        ([{"b": 1}, {"a": None, "b": 0.5}], "ARRAY<OBJECT<a: VOID, b: DOUBLE>>"),
        (
            {"a b": 1, "ü": "é", "7": 1, "a_7": None},
            "OBJECT<`7`: BIGINT, `a b`: BIGINT, a_7: VOID, `ü`: STRING>",
        ),
    ],
)
def test_containers_have_the_common_type_of_their_parts(value: Any, kind: str) -> None:
    assert schema_of(*variant_of(value)) == kind


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (0.001, "0.001"), (0.00099, "9.9E-4"), (9999999.0, "9999999.0"),
        (1e7, "1.0E7"), (123456789.125, "1.23456789125E8"), (1e-300, "1.0E-300"), (float("-inf"), "-Infinity"),
        (100.0, "100.0"), (12.5, "12.5"),
    ],
)  # fmt: skip
def test_doubles_look_as_in_java(number: float, text: str) -> None:
    assert double_text(number) == text


def test_floats_look_as_in_java() -> None:
    assert [float_text(x) for x in (0.1, 3.4028234663852886e38, 16777216.0)] == [
        "0.1",
        "3.4028235E38",
        "1.6777216E7",
    ]


@pytest.mark.parametrize("show", [to_json, schema_of])
@given(data=st.data())
def test_broken_bytes_give_an_error_of_ours_or_a_text(
    show: Callable[[bytes, bytes], str], data: st.DataObject
) -> None:
    encoded, metadata = variant_of(data.draw(JSON))
    broken = bytearray(encoded)
    broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(broken[: data.draw(st.integers(0, len(broken)))])
    try:
        assert isinstance(show(cut, metadata), str)
    except DataFileError as error:
        assert "variant" in str(error)


@pytest.mark.parametrize("metadata", [b"", b"\x02\x00\x00", b"\x01\x05", b"\xc1\xff\xff\xff\xff"])
def test_broken_metadata_is_refused(metadata: bytes) -> None:
    with pytest.raises(DataFileError, match="metadata|malformed"):
        to_json(value_of({"a": 1}, ["a"]), metadata)
