"""Merging the schema of data into that of a table."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings

from delta_ds.exceptions import SchemaError, UnsupportedOperationError
from delta_ds.kernel.format.schema.column_mapping import assign, strip
from delta_ds.kernel.format.schema.column_paths import find
from delta_ds.kernel.format.schema.evolution import (
    as_nullable,
    can_widen,
    merge_schemas,
    record_changes,
    reuse_column_ids,
)
from delta_ds.kernel.format.schema.field_metadata import TYPE_CHANGES
from delta_ds.kernel.format.schema.types import (
    INTEGER,
    LONG,
    SHORT,
    STRING,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    walk,
)
from spark_tests.behaviour.kernel.format.schema.schemas import SCHEMAS, struct, typed
from spark_tests.behaviour.kernel.states import table_state
from spark_tests.full_form import examples


@settings(max_examples=examples(40))
@given(SCHEMAS)
def test_schema_merged_with_itself_is_itself(schema: StructType) -> None:
    assert merge_schemas(schema, schema) == schema
    assert merge_schemas(schema, schema, widening=True) == schema
    assert merge_schemas(schema, as_nullable(schema)) == schema  # type: ignore[arg-type]


@settings(max_examples=examples(40))
@given(SCHEMAS, SCHEMAS)
def test_merging_loses_no_column_and_keeps_the_order_of_the_table(
    table: StructType, data: StructType
) -> None:
    try:
        merged = merge_schemas(table, data, widening=True)
    except SchemaError as error:
        assert error.condition == "DELTA_FAILED_TO_MERGE_FIELDS"
        assume(False)
        return
    assert merged.names[: len(table)] == table.names
    for path, field in walk(table):
        found = find(merged, path)
        assert found is not None
        assert found[0] == path and found[1].nullable == field.nullable
    assert all(find(merged, path) is not None for path, _ in walk(data))
    assert merge_schemas(merged, data, widening=True) == merged


def test_new_columns_come_last_at_every_level() -> None:
    table = struct(
        id="long",
        s=struct(a="integer"),
        l=ArrayType(struct(x="integer")),
        m=MapType(STRING, struct(k="date")),
    )
    data = struct(
        new="string",
        S=struct(B="long", A="integer"),
        L=ArrayType(struct(y="string")),
        m=MapType(STRING, struct(z="date")),
    )
    assert merge_schemas(table, data) == struct(
        id="long",
        s=struct(a="integer", B="long"),
        l=ArrayType(struct(x="integer", y="string")),
        m=MapType(STRING, struct(k="date", z="date")),
        new="string",
    )


def test_nullability_and_metadata_of_the_table_stay() -> None:
    table = StructType(
        (StructField("id", LONG, False, {"comment": "key"}), StructField("l", ArrayType(LONG, False)))
    )
    assert merge_schemas(table, struct(ID="long", L=ArrayType(LONG))) == table


@pytest.mark.parametrize(
    ("table", "data", "merged"),
    [
        ("byte", "short", "short"),
        ("byte", "integer", "integer"),
        ("short", "byte", "short"),
        ("integer", "byte", "integer"),
        ("void", "string", "string"),
        ("string", "void", "string"),
        (DecimalType(10, 2), DecimalType(10, 2), DecimalType(10, 2)),
    ],
)
def test_some_types_merge_without_widening(
    table: DataType | str, data: DataType | str, merged: DataType | str
) -> None:
    assert merge_schemas(struct(c=table), struct(c=data)) == struct(c=merged)


@pytest.mark.parametrize(
    ("table", "data"),
    [
        ("integer", "long"),
        ("long", "integer"),
        ("double", "float"),
        ("string", "integer"),
        ("date", "timestamp"),
        ("timestamp", "timestamp_ntz"),
        (DecimalType(10, 2), DecimalType(12, 2)),
        (DecimalType(10, 2), DecimalType(10, 4)),
        (struct(a="integer"), "string"),
        (ArrayType(LONG), MapType(LONG, LONG)),
    ],
    ids=str,
)
def test_other_types_are_refused_with_both_of_them(table: DataType | str, data: DataType | str) -> None:
    with pytest.raises(SchemaError) as caught:
        merge_schemas(struct(s=struct(c=table)), struct(s=struct(C=data)))
    assert caught.value.condition == "DELTA_FAILED_TO_MERGE_FIELDS"
    assert caught.value.parameters == {
        "currentField": "s.c",
        "updateField": "s.c",
        "tableType": str(typed(table)),
        "dataType": str(typed(data)),
    }


def test_widening_takes_the_wider_type_and_notes_it() -> None:
    merged = merge_schemas(
        struct(i="integer", d="date", n="long"), struct(i="long", d="timestamp_ntz", n="long"), widening=True
    )
    assert [str(f.type) for f in merged] == ["long", "timestamp_ntz", "long"]
    assert [TYPE_CHANGES in f.metadata for f in merged] == [True, True, False]


def test_narrower_data_is_refused_although_widening_is_on() -> None:
    with pytest.raises(SchemaError):
        merge_schemas(struct(i="long"), struct(i="integer"), widening=True)


@pytest.mark.parametrize("data", [struct(a="long", A="long"), struct(s=struct(x="long", X="date"))], ids=str)
def test_columns_that_differ_by_case_alone_are_refused(data: StructType) -> None:
    with pytest.raises(SchemaError) as caught:
        merge_schemas(struct(a="long"), data)
    assert caught.value.condition == "DELTA_DUPLICATE_COLUMNS_FOUND.DATA"


@settings(max_examples=examples(40))
@given(SCHEMAS)
def test_replacing_a_schema_by_itself_keeps_every_column_id(schema: StructType) -> None:
    mapped, _ = assign(schema, 0, keep_names=False)
    assert reuse_column_ids(strip(mapped), mapped) == mapped


def test_replaced_columns_of_another_type_get_no_old_id() -> None:
    old, _ = assign(struct(id="long", s=struct(a="integer", b="date")), 0, keep_names=False)
    new = reuse_column_ids(struct(ID="long", s=struct(a="integer", b="string")), old)
    by_path = {path: "delta.columnMapping.id" in field.metadata for path, field in walk(new)}
    assert by_path == {("ID",): True, ("s",): False, ("s", "a"): True, ("s", "b"): False}


def test_nulls_everywhere_keeps_names_and_types() -> None:
    schema = StructType((StructField("l", ArrayType(MapType(STRING, LONG, False), False), False),))
    assert as_nullable(schema) == struct(l=ArrayType(MapType(STRING, LONG)))


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
