"""What a write may bring that the table does not have; outcomes are those of delta-spark 4.4.0."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaError, SchemaError, UnsupportedFeatureError
from delta_ds.kernel.format.schema.column_mapping import assign
from delta_ds.kernel.format.schema.types import (
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    VOID,
    ArrayType,
    MapType,
    StructField,
    StructType,
    UserDefinedType,
    parse_schema,
    schema_to_json,
    walk,
)
from delta_ds.kernel.transaction.write import schema_enforcement
from delta_ds.kernel.transaction.write.intent import batch_intent
from delta_ds.kernel.transaction.write.schema_enforcement import (
    check_first_write,
    check_new_schema,
    data_schema,
    partition_columns_of,
)
from spark_tests.behaviour.kernel.format.schema.schemas import struct
from spark_tests.behaviour.kernel.states import table_state

TABLE = struct(
    id="long",
    i="integer",
    s=struct(a="integer", b=struct(c="integer")),
    l=ArrayType(struct(x="integer")),
    m=MapType(STRING, struct(k="integer")),
)
WIDENING: dict[str, Any] = {
    "properties": {"delta.enableTypeWidening": "true"},
    "features": frozenset(["typeWidening"]),
}


def check_write(
    table: StructType,
    data: StructType,
    *,
    partition_columns: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    features: Collection[str] = (),
    table_name: str = "T",
    **how: Any,
) -> StructType:
    state = table_state(
        table,
        partition_columns=partition_columns,
        properties=properties,
        features=features,
        table=table_name,
    )
    return schema_enforcement.check_write(state, data, **how)


def condition_of(table: StructType, data: StructType, **how: Any) -> str:
    with pytest.raises(DeltaError) as caught:
        check_write(table, data, table_name="T", **how)
    assert "othing was" in str(caught.value)
    return caught.value.condition


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        struct(id="long"),
        struct(M=MapType(STRING, struct(K="integer")), ID="long"),
        struct(s=struct(A="integer")),
        struct(s=struct(b=struct(c="integer"))),
        struct(i="short"),
        struct(i="byte", s=struct(a="byte")),
        struct(id="void", i="integer"),
        StructType((StructField("id", LONG, False, {"comment": "of the data"}),)),
    ],
    ids=str,
)
@pytest.mark.parametrize("merge_schema", [False, True])
def test_data_within_the_schema_leaves_it_as_it_is(data: StructType, merge_schema: bool) -> None:
    assert check_write(TABLE, data, merge_schema=merge_schema, table_name="T") == TABLE


@pytest.mark.parametrize(
    "data",
    [
        struct(id="long", extra="integer"),
        struct(s=struct(z="integer")),
        struct(l=ArrayType(struct(y="integer"))),
        struct(m=MapType(STRING, struct(z="integer"))),
        struct(id="long", n="void"),
    ],
    ids=str,
)
def test_more_columns_need_the_option(data: StructType) -> None:
    assert condition_of(TABLE, data) == "DELTA_METADATA_MISMATCH"
    assert condition_of(TABLE, data, overwrite=True) == "DELTA_METADATA_MISMATCH"
    merged = check_write(TABLE, data, merge_schema=True, table_name="T")
    assert len(list(walk(merged))) == len(list(walk(TABLE))) + 1


@pytest.mark.parametrize(
    "data",
    [
        struct(id="integer"),
        struct(id="string"),
        struct(i="long"),
        struct(s="string"),
        struct(id=struct(a="integer")),
        struct(s=struct(a="long")),
        struct(l=MapType(INTEGER, INTEGER)),
        struct(m=MapType(INTEGER, struct(k="integer"))),
        struct(m=MapType(STRING, struct(k="string"))),
    ],
    ids=str,
)
@pytest.mark.parametrize("merge_schema", [False, True])
def test_other_types_are_refused_with_and_without_the_option(data: StructType, merge_schema: bool) -> None:
    assert condition_of(TABLE, data, merge_schema=merge_schema) == "DELTA_FAILED_TO_MERGE_FIELDS"


def test_mismatch_lists_every_difference_and_the_way_out() -> None:
    with pytest.raises(SchemaError) as caught:
        check_write(TABLE, struct(idd="long", s=struct(q="date"), x=struct(y="date")), table_name="/data/t")
    text = str(caught.value)
    assert "/data/t" in text and "mergeSchema" in text and "overwriteSchema" not in text
    assert caught.value.parameters["differences"] == [
        "idd: long, not in the table; did you mean 'id'?",
        "s.q: date, not in the table",
        "x: struct<y:date>, not in the table",
    ]


def test_widening_needs_the_property_and_the_option() -> None:
    data = struct(i="long")
    assert condition_of(TABLE, data, merge_schema=True) == "DELTA_FAILED_TO_MERGE_FIELDS"
    assert condition_of(TABLE, data, **WIDENING) == "DELTA_METADATA_MISMATCH"
    merged = check_write(TABLE, data, merge_schema=True, table_name="T", **WIDENING)
    assert merged.fields[1].type == LONG
    assert merged.fields[1].metadata["delta.typeChanges"] == [{"fromType": "integer", "toType": "long"}]


def test_byte_column_becomes_short_without_widening() -> None:
    table = struct(b="byte")
    assert condition_of(table, struct(b="short")) == "DELTA_METADATA_MISMATCH"
    assert check_write(table, struct(b="short"), merge_schema=True, table_name="T") == struct(b="short")


def test_added_columns_are_nullable_and_carry_no_rules_of_other_tables() -> None:
    metadata = {
        "comment": "kept",
        "delta.columnMapping.id": 9,
        "CURRENT_DEFAULT": "1",
        "delta.identity.start": 1,
    }
    data = StructType((StructField("n", ArrayType(LONG, False), False, metadata),))
    added = check_write(TABLE, data, merge_schema=True, table_name="T").fields[-1]
    assert added == StructField("n", ArrayType(LONG, True), True, {"comment": "kept"})


def test_not_null_column_of_the_table_stays_so() -> None:
    table = StructType((StructField("id", LONG, False), StructField("v", INTEGER)))
    assert (
        check_write(table, struct(id="long", w="date"), merge_schema=True, table_name="T").fields[0]
        == table.fields[0]
    )


@pytest.mark.parametrize(
    ("data", "condition"),
    [
        (struct(c="long"), "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH"),
        (struct(c="string"), "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH"),
        (struct(s=struct(a="long")), "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH"),
        (struct(v="long"), "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH"),
        (struct(g="long"), "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"),
    ],
    ids=str,
)
def test_columns_in_expressions_keep_their_type(data: StructType, condition: str) -> None:
    generated = StructField("g", INTEGER, True, {"delta.generationExpression": "v + 1"})
    table = StructType((*struct(v="integer", c="integer", s=struct(a="integer")).fields, generated))
    properties = {"delta.constraints.k": "c > 0 and s . a > 1", **WIDENING["properties"]}
    how = {**WIDENING, "properties": properties, "merge_schema": True}
    assert condition_of(table, data, **how) == condition


# --- partitions

PARTITIONED = struct(id="long", P="integer", q="integer")


@pytest.mark.parametrize(
    ("data", "how", "condition"),
    [
        (struct(id="long"), {}, "DELTA_PARTITION_COLUMN_NOT_FOUND"),
        (struct(id="long", p="void"), {}, "DELTA_PARTITION_COLUMN_NOT_FOUND"),
        (struct(p="integer"), {}, "DELTA_NON_PARTITION_COLUMN_ABSENT"),
        (struct(id="long", p="integer"), {"partition_by": ["id"]}, "DELTA_METADATA_MISMATCH"),
        (
            struct(id="long", p="integer", z="date"),
            {"partition_by": ["id"], "merge_schema": True},
            "DELTA_METADATA_MISMATCH",
        ),
        (struct(id="long", p="integer"), {"partition_by": ["nosuch"]}, "DELTA_PARTITION_COLUMN_NOT_FOUND"),
    ],
)
def test_data_that_does_not_fit_the_partitioning_is_refused(
    data: StructType, how: dict[str, Any], condition: str
) -> None:
    assert condition_of(PARTITIONED, data, partition_columns=["P"], **how) == condition


def test_partition_columns_named_as_the_table_has_them_are_fine() -> None:
    data = struct(id="long", P="integer")
    assert (
        check_write(PARTITIONED, data, partition_columns=["P"], partition_by=["p"], table_name="T")
        == PARTITIONED
    )


def test_generated_partition_column_may_be_missing() -> None:
    day = StructField("day", INTEGER, True, {"delta.generationExpression": "id % 7"})
    table = StructType((*struct(id="long").fields, day))
    assert check_write(table, struct(id="long"), partition_columns=["day"], table_name="T") == table


@pytest.mark.parametrize(
    "metadata",
    [{"delta.generationExpression": "p + 1"}, {"CURRENT_DEFAULT": "1"}, {"delta.identity.step": 1}],
    ids=str,
)
def test_rows_of_partition_values_are_enough_where_the_table_has_the_others(metadata: dict[str, Any]) -> None:
    own = StructField("v", LONG, True, metadata)
    table = StructType((*struct(p="integer").fields, own))
    assert check_write(table, struct(p="integer"), partition_columns=["p"], table_name="T") == table


# --- overwriteSchema


def test_overwriting_the_schema_takes_that_of_the_data() -> None:
    data = StructType((StructField("id", STRING, False, {"comment": "c"}),))
    how: dict[str, Any] = {"replaces_schema": True, "table_name": "T"}
    assert check_write(TABLE, data, **how) == StructType((StructField("id", STRING, True, {"comment": "c"}),))
    assert check_write(TABLE, data_schema(TABLE), **how) == TABLE


@pytest.mark.parametrize(("mode", "more"), [("append", {}), ("overwrite", {"replaceWhere": "id = 1"})])
def test_option_has_no_meaning_in_appends_and_partial_overwrites(mode: str, more: dict[str, str]) -> None:
    assert not batch_intent({"path": "/t", "overwriteSchema": "true", **more}, mode).replaces_schema


def test_columns_that_stay_keep_their_id_when_the_schema_is_overwritten() -> None:
    table, _ = assign(struct(id="long", v="integer"), 0, keep_names=False)
    schema = check_write(
        table,
        struct(id="long", v="string"),
        replaces_schema=True,
        properties={"delta.columnMapping.mode": "name"},
        features=frozenset(["columnMapping"]),
        table_name="T",
    )
    assert schema.fields[0] == table.fields[0]
    assert schema.fields[1] == StructField("v", STRING)


@pytest.mark.parametrize(
    ("data", "partition_by", "condition"),
    [
        (struct(id="long", p="long"), ["p", "P"], "DELTA_DUPLICATE_COLUMNS_FOUND.PARTITION_COLUMNS"),
        (struct(id="long", p="long"), ["p", "id"], "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION"),
        (struct(id="long", p=ArrayType(LONG)), ["p"], "DELTA_INVALID_PARTITION_COLUMN_TYPE"),
        (struct(id="long", p="variant"), ["p"], "DELTA_INVALID_PARTITION_COLUMN_TYPE"),
        (struct(id="long"), ["p"], "DELTA_PARTITION_COLUMN_NOT_FOUND"),
        (struct(id="long", ID="date"), [], "DELTA_DUPLICATE_COLUMNS_FOUND"),
        (StructType((StructField("a b", LONG),)), [], "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        (struct(s=StructType((StructField("a;b", LONG),))), [], "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        (struct(id="long", a=ArrayType(VOID)), [], "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"),
        (struct(id="long", s=struct(a="void")), [], "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"),
    ],
    ids=str,
)
def test_schemas_that_no_table_may_have_are_refused(
    data: StructType, partition_by: list[str], condition: str
) -> None:
    overwriting = condition_of(TABLE, data, replaces_schema=True, partition_by=partition_by)
    assert overwriting.startswith(condition)
    with pytest.raises(SchemaError) as caught:
        check_first_write(data, partition_by=partition_by, table_name="T")
    assert caught.value.condition.startswith(condition)


# --- new tables


def test_first_write_makes_a_nullable_schema() -> None:
    data = StructType((StructField("id", LONG, False), StructField("v", VOID)))
    assert check_first_write(data, table_name="T") == struct(id="long", v="void")
    assert partition_columns_of(data, ["ID"], "T") == ("id",)


@pytest.mark.parametrize(
    ("data", "condition"),
    [
        (StructType(), "DELTA_EMPTY_DATA"),
        (struct(a="void"), "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_ALL_VOID_COLUMNS"),
    ],
    ids=str,
)
def test_first_write_without_columns_is_refused(data: StructType, condition: str) -> None:
    with pytest.raises(SchemaError) as caught:
        check_first_write(data, table_name="T")
    assert caught.value.condition == condition


@pytest.mark.parametrize("how", [{}, {"merge_schema": True}, {"replaces_schema": True}], ids=str)
def test_rows_without_columns_are_refused_where_the_table_would_have_none(how: dict[str, bool]) -> None:
    no_columns = "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_NO_COLUMNS"
    assert condition_of(StructType(), StructType(), **how) == no_columns
    if "replaces_schema" in how:
        assert condition_of(TABLE, StructType(), **how) == no_columns
    else:
        assert check_write(TABLE, StructType(), **how) == TABLE


def test_column_mapping_allows_any_name() -> None:
    odd = StructType((StructField("a b", LONG), StructField("x,y", LONG)))
    check_new_schema(odd, ["x,y"], "name", "T")
    assert check_first_write(odd, properties={"delta.columnMapping.mode": "name"}, table_name="T") == odd


def test_not_null_inside_collections_is_refused_in_definitions() -> None:
    inside = StructType((StructField("x", INTEGER, False),))
    for data_type in (ArrayType(inside), MapType(STRING, inside), struct(l=ArrayType(inside))):
        with pytest.raises(DeltaError) as caught:
            check_new_schema(struct(c=data_type), [], "none", "T")
        assert caught.value.condition == "DELTA_NESTED_NOT_NULL_CONSTRAINT"
    check_new_schema(struct(c=ArrayType(INTEGER, False), s=inside), [], "none", "T")


def test_names_of_the_change_feed_are_reserved_where_it_is_on() -> None:
    schema = struct(id="long", _change_type="string")
    check_new_schema(schema, [], "none", "T")
    with pytest.raises(SchemaError) as caught:
        check_new_schema(schema, [], "none", "T", properties={"delta.enableChangeDataFeed": "true"})
    assert caught.value.condition == "RESERVED_CDC_COLUMNS_ON_WRITE"


@pytest.mark.parametrize(
    ("option", "condition"),
    [
        ("partitionBy", "DELTA_DUPLICATE_COLUMNS_FOUND.PARTITION_COLUMNS"),
        ("clusterBy", "DELTA_DUPLICATE_COLUMNS_FOUND"),
    ],
)
def test_an_option_that_names_a_column_twice_is_refused_as_the_table_would_be(
    tmp_path: Path, option: str, condition: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        DeltaLog(tmp_path / "t").write(pa.table({"a": [1], "b": [2]}), options={option: "b, B"})
    assert caught.value.condition == condition
    assert not (tmp_path / "t" / "_delta_log").exists()


@pytest.mark.parametrize("kind", ["geometry(OGC:CRS84)", "geography(OGC:CRS84, spherical)", "geometry"])
def test_geospatial_types_are_refused_by_name(kind: str) -> None:
    text = f'{{"type": "struct", "fields": [{{"name": "g", "type": "{kind}", "nullable": true, "metadata": {{}}}}]}}'
    with pytest.raises(UnsupportedFeatureError) as caught:
        parse_schema(text)
    assert caught.value.condition == "DELTA_GEOSPATIAL_NOT_SUPPORTED"
    assert kind in str(caught.value)


def test_a_type_that_a_user_defined_in_java_alone_is_refused_by_its_class() -> None:
    kind = {"type": "udt", "class": "org.x.OnlyInJava", "sqlType": "double"}
    array = {"type": "array", "elementType": kind, "containsNull": True}
    field = {"name": "a", "type": array, "nullable": True, "metadata": {}}
    with pytest.raises(UnsupportedFeatureError) as caught:
        parse_schema(json.dumps({"type": "struct", "fields": [field]}))
    assert caught.value.condition == "DELTA_UNSUPPORTED_DATA_TYPES"
    assert "column a.element has the user-defined type org.x.OnlyInJava, which" in str(caught.value)


_OF_BOTH = {"class": "org.x.PairUDT", "pyClass": "x.PairUDT"}
_OF_PYTHON = {"pyClass": "x.PairUDT", "serializedClass": "gAR9lC4="}


@pytest.mark.parametrize("named", [_OF_BOTH, _OF_PYTHON])
def test_a_user_defined_type_is_kept_as_the_log_has_it(named: dict[str, str]) -> None:
    stored = {
        "type": "struct",
        "fields": [{"name": "x", "type": "double", "nullable": False, "metadata": {}}],
    }
    kind = {"type": "udt", **named, "sqlType": stored}
    array = {"type": "array", "elementType": kind, "containsNull": True}
    field = {"name": "a", "type": array, "nullable": True, "metadata": {}}
    text = json.dumps({"type": "struct", "fields": [field]}, separators=(",", ":"))
    assert schema_to_json(parse_schema(text)) == text


def test_user_defined_types_are_equal_by_class_and_stored_type_however_they_are_pickled() -> None:
    one, same = (UserDefinedType("x.PairUDT", None, pickled, DOUBLE) for pickled in ("a", "b"))
    assert one == same != UserDefinedType("x.OtherUDT", None, "a", DOUBLE)
    assert one != UserDefinedType("x.PairUDT", None, "a", LONG)


@pytest.mark.parametrize("named", [{"pyClass": 5}, {"pyClass": "x.Y", "class": 5}])
def test_a_user_defined_type_whose_class_is_no_text_is_malformed(named: dict[str, Any]) -> None:
    field = {"name": "a", "type": {"type": "udt", **named, "sqlType": "double"}}
    with pytest.raises(SchemaError, match="malformed at a"):
        parse_schema(json.dumps({"type": "struct", "fields": [field]}))
