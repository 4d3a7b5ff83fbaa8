"""Shredded variants: what was taken apart comes back together."""

from __future__ import annotations

import datetime as dt
import json
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_ds.exceptions import DataFileError
from delta_ds.kernel.format.schema.types import STRING, VARIANT, ArrayType, MapType, StructField, StructType
from delta_ds.kernel.format.values.variant import schema_of, to_json
from spark_tests.behaviour.kernel.files.parquet_files import rows, write
from spark_tests.behaviour.kernel.files.parquet_files import schema_of as columns
from spark_tests.behaviour.kernel.files.variants import metadata_of, names_in, value_of
from spark_tests.full_form import examples

ABSENT = object()
LEAVES: dict[Any, type] = {pa.int64(): int, pa.string(): str, pa.bool_(): bool}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcé"), inner, max_size=4),
    max_leaves=12,
)
# How a value is shredded: a leaf type, a list of one shape, a dictionary of shapes by field, or None for not at all.
SHAPES = st.recursive(
    st.none() | st.sampled_from(list(LEAVES)),
    lambda inner: (
        inner.map(lambda s: [s]) | st.dictionaries(st.sampled_from("abé"), inner, min_size=1, max_size=3)
    ),
    max_leaves=6,
)


def group(shape: Any) -> pa.DataType:
    """The Parquet group of a shape, without metadata."""
    return pa.struct(
        [("value", pa.binary()), *([("typed_value", typed(shape))] if shape is not None else [])]
    )


def typed(shape: Any) -> pa.DataType:
    if isinstance(shape, list):
        return pa.list_(pa.field("element", group(shape[0]), False))
    if isinstance(shape, dict):
        return pa.struct([pa.field(name, group(inner), False) for name, inner in shape.items()])
    return shape


def shred(value: Any, shape: Any, names: list[str]) -> dict[str, Any]:
    if value is ABSENT:
        return {"value": None}
    if isinstance(shape, list) and isinstance(value, list):
        return {"value": None, "typed_value": [shred(v, shape[0], names) for v in value]}
    if isinstance(shape, dict) and isinstance(value, dict):
        rest = {k: v for k, v in value.items() if k not in shape}
        fields = {k: shred(value.get(k, ABSENT), inner, names) for k, inner in shape.items()}
        return {"value": value_of(rest, names) if rest else None, "typed_value": fields}
    if not isinstance(shape, (list, dict)) and shape is not None and type(value) is LEAVES[shape]:
        return {"value": None, "typed_value": value}
    return {"value": value_of(value, names)}


@given(values=st.lists(JSON | st.just(ABSENT), min_size=1, max_size=6), shape=SHAPES)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(200)
)
def test_shredded_values_come_back_whatever_the_shape(tmp_path: Path, values: list[Any], shape: Any) -> None:
    kind = pa.struct([pa.field("metadata", pa.binary(), False), *group(shape)])
    stored: list[Any] = []
    for value in values:
        names = sorted(names_in(value))
        # An absent value stands for a null variant: the whole struct is null.
        null = value is ABSENT
        stored.append(None if null else {"metadata": metadata_of(names), **shred(value, shape, names)})
    piece = write(tmp_path, pa.table({"v": pa.array(stored, kind)}))
    found = [row["v"] for row in rows(tmp_path, piece, columns(v=VARIANT))]
    texts = [ABSENT if v is None else json.loads(to_json(v["value"], v["metadata"])) for v in found]
    assert texts == values


@pytest.mark.parametrize(
    ("kind", "stored", "text", "schema"),
    [
        (pa.bool_(), False, "false", "BOOLEAN"),
        (pa.int8(), -5, "-5", "BIGINT"),
        (pa.int64(), 2**40, str(2**40), "BIGINT"),
        (pa.float32(), 0.1, "0.1", "FLOAT"),
        (pa.float64(), 0.1, "0.1", "DOUBLE"),
        (pa.decimal128(9, 2), Decimal("-1.50"), "-1.5", "DECIMAL(2,1)"),
        (pa.decimal128(38, 2), Decimal("9" * 36 + ".25"), "9" * 36 + ".25", "DECIMAL(38,2)"),
        (pa.date32(), dt.date(1, 1, 1), '"0001-01-01"', "DATE"),
        (pa.timestamp("us", "UTC"), dt.datetime(1970, 1, 2), '"1970-01-02 00:00:00+00:00"', "TIMESTAMP"),
        (pa.timestamp("us"), dt.datetime(1970, 1, 2), '"1970-01-02 00:00:00"', "TIMESTAMP_NTZ"),
        (pa.binary(), b"\0", '"AA=="', "BINARY"),
        (pa.string(), "x" * 70, '"' + "x" * 70 + '"', "STRING"),
    ],
)
def test_every_shredded_primitive_keeps_value_and_type(
    tmp_path: Path, kind: pa.DataType, stored: Any, text: str, schema: str
) -> None:
    struct_type = pa.struct([("metadata", pa.binary()), ("typed_value", kind)])
    array = pa.array([{"metadata": metadata_of([]), "typed_value": stored}], struct_type)
    piece = write(tmp_path, pa.table({"v": array}), version="2.6")
    found = rows(tmp_path, piece, columns(v=VARIANT))[0]["v"]
    assert to_json(found["value"], found["metadata"]) == text
    assert schema_of(found["value"], found["metadata"]) == schema


def test_variant_without_any_value_is_variant_null(tmp_path: Path) -> None:
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())])
    array = pa.array([{"metadata": metadata_of([]), "value": None, "typed_value": None}, None], kind)
    found = rows(tmp_path, write(tmp_path, pa.table({"v": array})), columns(v=VARIANT))
    assert found == [{"v": {"value": b"\0", "metadata": metadata_of([])}}, {"v": None}]


def test_field_name_missing_in_the_metadata_is_added(tmp_path: Path) -> None:
    shape = {"zoë": pa.int64(), "a": pa.int64()}
    kind = pa.struct([("metadata", pa.binary()), *group(shape)])
    rest = value_of({"m": 1}, ["m"])
    value = {
        "metadata": metadata_of(["m"]),
        "value": rest,
        "typed_value": {"zoë": {"typed_value": 2}, "a": {}},
    }
    found = rows(tmp_path, write(tmp_path, pa.table({"v": pa.array([value], kind)})), columns(v=VARIANT))[0][
        "v"
    ]
    assert to_json(found["value"], found["metadata"]) == '{"m":1,"zoë":2}'


def test_large_objects_and_arrays_use_wide_headers(tmp_path: Path) -> None:
    shape = [{"k": pa.string()}]
    kind = pa.struct([("metadata", pa.binary()), *group(shape)])
    value = [{"k": "x" * 300, f"n{i:04d}": i} for i in range(300)]
    names = sorted(names_in(value))
    stored = {"metadata": metadata_of(names), **shred(value, shape, names)}
    found = rows(tmp_path, write(tmp_path, pa.table({"v": pa.array([stored], kind)})), columns(v=VARIANT))[0][
        "v"
    ]
    assert json.loads(to_json(found["value"], found["metadata"])) == value


def test_variants_nested_in_collections_are_rebuilt(tmp_path: Path) -> None:
    plain = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    shredded = pa.struct([("metadata", pa.binary()), *group(pa.int64())])
    one = {"metadata": metadata_of([]), "value": b"\x04"}
    table = pa.table(
        {
            "l": pa.array([[one, None]], pa.list_(plain)),
            "m": pa.array(
                [[("k", {**one, "value": None, "typed_value": 5})]], pa.map_(pa.string(), shredded)
            ),
            "s": pa.array([{"v": one}], pa.struct([("v", plain)])),
        }
    )
    schema = columns(
        l=ArrayType(VARIANT), m=MapType(STRING, VARIANT), s=StructType((StructField("v", VARIANT),))
    )
    true, five = ({"value": v, "metadata": metadata_of([])} for v in (b"\x04", struct.pack("<Bb", 12, 5)))
    assert rows(tmp_path, write(tmp_path, table), schema) == [
        {"l": [true, None], "m": [("k", five)], "s": {"v": true}}
    ]


@pytest.mark.parametrize(
    "kind",
    [pa.int64(), pa.struct([("value", pa.binary())]), pa.struct([("metadata", pa.binary())])],
    ids=str,
)
def test_column_that_is_no_variant_is_refused(tmp_path: Path, kind: pa.DataType) -> None:
    piece = write(tmp_path, pa.table({"v": pa.nulls(1, kind)}))
    with pytest.raises(DataFileError, match="column v is .* no variant"):
        rows(tmp_path, piece, columns(v=VARIANT))


def test_object_with_a_residual_that_is_none_is_refused(tmp_path: Path) -> None:
    kind = pa.struct([("metadata", pa.binary()), *group({"a": pa.int64()})])
    value = {"metadata": metadata_of(["a"]), "value": b"\x04", "typed_value": {"a": {"typed_value": 1}}}
    piece = write(tmp_path, pa.table({"v": pa.array([value], kind)}))
    with pytest.raises(DataFileError, match=r"a\.parquet .*residual"):
        rows(tmp_path, piece, columns(v=VARIANT))


def test_type_no_variant_is_shredded_to_is_refused(tmp_path: Path) -> None:
    kind = pa.struct([("metadata", pa.binary()), *group(pa.uint64())])
    value = {"metadata": metadata_of([]), "typed_value": 1}
    piece = write(tmp_path, pa.table({"v": pa.array([value], kind)}))
    with pytest.raises(DataFileError, match="shredded as uint64"):
        rows(tmp_path, piece, columns(v=VARIANT))
