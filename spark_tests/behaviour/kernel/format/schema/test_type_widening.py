"""Type widening: the changes there are, and the notes they leave. Expectations are delta-spark's."""

from __future__ import annotations

import pytest

from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.format.schema.field_metadata import TYPE_CHANGES
from delta_ds.kernel.format.schema.type_widening import can_widen, record_changes
from delta_ds.kernel.format.schema.types import (
    INTEGER,
    LONG,
    SHORT,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
)
from spark_tests.behaviour.kernel.format.schema.schemas import struct, typed
from spark_tests.behaviour.kernel.states import table_state

TYPES: list[DataType | str] = [
    "byte", "short", "integer", "long", "float", "double", "string", "boolean", "binary", "date", "timestamp",
    "timestamp_ntz", DecimalType(5, 2), DecimalType(7, 2), DecimalType(7, 4), DecimalType(10, 0), DecimalType(12, 2),
    DecimalType(20, 0),
]  # fmt: skip
WIDENINGS = {
    "byte": "short integer long double decimal(10,0) decimal(12,2) decimal(20,0)",
    "short": "integer long double decimal(10,0) decimal(12,2) decimal(20,0)",
    "integer": "long double decimal(10,0) decimal(12,2) decimal(20,0)",
    "long": "decimal(20,0)",
    "float": "double",
    "date": "timestamp_ntz",
    "decimal(5,2)": "decimal(7,2) decimal(7,4) decimal(12,2)",
    "decimal(7,2)": "decimal(12,2)",
    "decimal(10,0)": "decimal(12,2) decimal(20,0)",
}


@pytest.mark.parametrize("old", TYPES, ids=str)
def test_types_that_hold_all_values_of_another_are_its_widenings(old: DataType | str) -> None:
    found = {str(new) for new in TYPES if can_widen(typed(old), typed(new))}
    assert found == set(WIDENINGS.get(str(old), "").split())


def test_change_is_noted_in_the_nearest_field_with_the_path_inside_collections() -> None:
    old = struct(a="short", l=ArrayType(SHORT), m=MapType(INTEGER, ArrayType(SHORT)), s=struct(x="integer"))
    new = struct(a="integer", l=ArrayType(LONG), m=MapType(LONG, ArrayType(INTEGER)), s=struct(x="long"))
    noted = record_changes(new, old)
    changes = {f.name: f.metadata.get(TYPE_CHANGES) for f in noted}
    assert changes == {
        "a": [{"fromType": "short", "toType": "integer"}],
        "l": [{"fromType": "short", "toType": "long", "fieldPath": "element"}],
        "m": [
            {"fromType": "integer", "toType": "long", "fieldPath": "key"},
            {"fromType": "short", "toType": "integer", "fieldPath": "value.element"},
        ],
        "s": None,
    }
    inner = noted.fields[3].type.fields[0]  # type: ignore[union-attr]
    assert inner.metadata[TYPE_CHANGES] == [{"fromType": "integer", "toType": "long"}]


def test_later_changes_come_behind_earlier_ones() -> None:
    first = record_changes(struct(a="short"), struct(a="byte"))
    second = record_changes(
        type(first)(tuple(type(f)(f.name, LONG, f.nullable, f.metadata) for f in first)), first
    )
    assert second.fields[0].metadata[TYPE_CHANGES] == [
        {"fromType": "byte", "toType": "short"},
        {"fromType": "short", "toType": "long"},
    ]


def test_preview_notes_the_version() -> None:
    noted = record_changes(struct(a="long"), struct(a="integer"), table_version=7)
    assert noted.fields[0].metadata[TYPE_CHANGES][0]["tableVersion"] == 7


def test_nothing_is_noted_where_nothing_widened() -> None:
    table = struct(a="integer", s=struct(x="string"))
    assert record_changes(struct(a="integer", s=struct(x="string"), n="long"), table) == struct(
        a="integer", s=struct(x="string"), n="long"
    )


def test_property_without_the_feature_is_refused() -> None:
    schema, on = struct(a="integer"), {"delta.enableTypeWidening": "true"}
    assert table_state(schema, properties=on, features=["typeWidening"]).widens_types
    assert table_state(schema, properties=on, features=["typeWidening-preview"]).widens_types
    assert not table_state(schema, features=["typeWidening"]).widens_types
    with pytest.raises(UnsupportedOperationError):
        _ = table_state(schema, properties=on).widens_types
