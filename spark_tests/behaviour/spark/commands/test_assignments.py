"""Assignments to columns and fields: names, types, structs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from delta_ds.exceptions import DeltaError, SchemaError
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    StructField,
    StructType,
)
from delta_ds.spark.base.schema import from_spark, quoted, to_spark
from delta_ds.spark.commands.assignments import (
    assign,
    assigned_names,
    find_target,
    target_path,
    with_defaults,
)
from delta_ds.spark.commands.expression_resolution import Scope
from delta_ds.spark.commands.store_casts import StoreCast, can_assign, may_fail

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PAIR = StructType((StructField("a", INTEGER), StructField("b", STRING)))
_TABLE = StructType(
    (
        StructField("id", LONG),
        StructField("v", INTEGER, metadata={"CURRENT_DEFAULT": "42"}),
        StructField("s", _PAIR),
        StructField("deep", StructType((StructField("p", _PAIR), StructField("d.ot", INTEGER)))),
        StructField("l", ArrayType(_PAIR)),
        StructField("t", STRING),
    )
)
_ROW = (1, 2, (3, "x"), ((4, "y"), 5), [(6, "z")], "t")


# --- names


@pytest.mark.parametrize(
    ("name", "alias", "path"),
    [
        ("V", None, ("v",)),
        ("S.A", None, ("s", "a")),
        ("tt.v", "TT", ("v",)),
        ("s.a", "s", ("s", "a")),
        ("deep.`d.ot`", None, ("deep", "d.ot")),
        ("`deep`.P.b", None, ("deep", "p", "b")),
        ("deep.p.nosuch", None, None),
        ("tt.v", "other", None),
        ("l.element.a", None, None),
    ],
)
def test_target_in_any_case_is_found_under_the_names_of_the_table(
    name: str, alias: str | None, path: tuple[str, ...] | None
) -> None:
    assert find_target(_TABLE, name, alias) == path


@pytest.mark.parametrize(
    ("name", "operation", "condition", "hint"),
    [
        ("idd", "UPDATE", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "'id'"),
        ("nosuch", "INSERT", "DELTA_MERGE_UNRESOLVED_EXPRESSION", "deep"),
        ("s.aa", "UPDATE", "FIELD_NOT_FOUND", "'s.a'"),
        ("v.a", "UPDATE", "INVALID_EXTRACT_BASE_FIELD_TYPE", "integer"),
        ("l.a", "UPDATE", "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE", "whole new value"),
        ("`v", "UPDATE", "PARSE_SYNTAX_ERROR", "backticks"),
    ],
)
def test_target_that_is_not_there_is_refused_with_the_nearest(
    name: str, operation: str, condition: str, hint: str
) -> None:
    with pytest.raises(SchemaError) as refused:
        target_path(_TABLE, name, "tbl", operation)
    assert refused.value.condition == condition
    assert hint in str(refused.value)


def test_assigned_names_and_defaults_are_those_of_the_table() -> None:
    assert assigned_names(_TABLE, ["V", "deep.p.a", "tt.S"], alias="tt") == {"v", "deep", "s"}
    spelled = with_defaults(_TABLE, {"V": " default ", "t": "DEFAULT", "id": "1"})
    assert spelled == {"V": "42", "t": "NULL", "id": "1"}


# --- types


@pytest.mark.parametrize(
    ("source", "target", "allowed", "fallible"),
    [
        (INTEGER, LONG, True, False),
        (LONG, INTEGER, True, True),
        (STRING, INTEGER, True, True),
        (BOOLEAN, INTEGER, True, False),
        (INTEGER, BOOLEAN, True, False),
        (STRING, BOOLEAN, True, True),
        (STRING, BINARY, True, False),
        (INTEGER, BINARY, False, None),
        (INTEGER, DATE, False, None),
        (INTEGER, TIMESTAMP, True, False),
        (TIMESTAMP, INTEGER, True, True),
        (TIMESTAMP, BOOLEAN, False, None),
        (DATE, TIMESTAMP, True, False),
        (DATE, INTEGER, False, None),
        (DOUBLE, LONG, True, True),
        (BOOLEAN, DecimalType(2, 2), True, True),
        (BYTE, DecimalType(3, 0), True, False),
        (ArrayType(INTEGER), STRING, True, False),
        (INTEGER, _PAIR, False, None),
        (STRING, ArrayType(STRING), False, None),
        (VOID, _PAIR, True, None),
    ],
)
def test_cast_is_allowed_as_ansi_allows_it(
    source: DataType, target: DataType, allowed: bool, fallible: bool | None
) -> None:
    assert can_assign(source, target) is allowed
    if fallible is not None:
        assert may_fail(source, target) is fallible


# --- values


def _updated(
    spark: SparkSession,
    assignments: Mapping[str, Any],
    schema: StructType = _TABLE,
    evolve: bool = False,
    **options: Any,
) -> dict[str, Any]:
    frame = spark.createDataFrame([_ROW], to_spark(_TABLE))
    scope = Scope(frame, "tbl", "UPDATE")
    given = [(k, scope.resolve(v, "SET")) for k, v in assignments.items()]
    columns = assign(
        schema,
        lambda name: frame[quoted(name)],
        given,
        cast=StoreCast("tbl", evolve),
        operation="UPDATE",
        current_schema=_TABLE,
        **options,
    )
    named = [c.alias(n) for c, n in zip(columns, schema.names, strict=True) if c is not None]
    result = frame.select(*named)
    kinds = {f.name: f.type for f in from_spark(result.schema)}
    assert {n: str(k) for n, k in kinds.items()} == {f.name: str(f.type) for f in schema if f.name in kinds}
    row = result.first()
    assert row is not None
    return {k: json.loads(json.dumps(v)) for k, v in row.asDict(recursive=True).items()}


def test_update_changes_what_is_assigned_and_nothing_else(spark: SparkSession) -> None:
    row = _updated(
        spark,
        {
            "V": "id + 1",
            "s.B": "concat(s.b, '!')",
            "deep.p.a": "cast(8 as bigint)",
            "deep.`d.ot`": "v",
            "l": "array(named_struct('b', 1, 'a', '9'))",
        },
    )
    assert row == {
        "id": 1,
        "v": 2,
        "s": {"a": 3, "b": "x!"},
        "deep": {"p": {"a": 8, "b": "y"}, "d.ot": 2},
        "l": [{"a": 9, "b": "1"}],
        "t": "t",
    }


def test_null_struct_that_gets_a_field_is_a_struct_of_nulls(spark: SparkSession) -> None:
    nothing = _updated(
        spark, {"s": "null", "deep": "cast(null as struct<p:struct<a:int,b:string>,`d.ot`:bigint>)"}
    )
    assert (nothing["s"], nothing["deep"]) == (None, None)
    frame = spark.createDataFrame([(None,)], to_spark(StructType((StructField("s", _PAIR),))))
    given = [("s.a", Scope(frame, "tbl", "UPDATE").resolve("1", "SET"))]
    (column,) = assign(
        StructType((StructField("s", _PAIR),)),
        lambda n: frame[n],
        given,
        cast=StoreCast("tbl"),
        operation="UPDATE",
    )
    assert column is not None
    (value,) = frame.select(column).first() or ()
    assert value.asDict() == {"a": 1, "b": None}


def test_fields_that_evolution_adds_are_null_unless_assigned(spark: SparkSession) -> None:
    pair = StructType((*_PAIR.fields, StructField("c", INTEGER)))
    wider = StructType(
        tuple(
            StructField(f.name, ArrayType(pair) if f.name == "l" else pair if f.name == "s" else f.type)
            for f in _TABLE
        )
        + (StructField("new", LONG),)
    )
    row = _updated(spark, {"s": "named_struct('a', 5)"}, wider, evolve=True)
    assert (row["s"], row["l"], row["new"]) == (
        {"a": 5, "b": None, "c": None},
        [{"a": 6, "b": "z", "c": None}],
        None,
    )
    assert _updated(spark, {"s.c": "7"}, wider, evolve=True)["s"] == {"a": 3, "b": "x", "c": 7}


def test_generated_column_is_left_to_the_table_unless_assigned(spark: SparkSession) -> None:
    assert "t" not in _updated(spark, {"v": "1"}, generated=["T"])
    assert _updated(spark, {"t": "'u'"}, generated=["T"])["t"] == "u"


@pytest.mark.parametrize(
    ("assignments", "condition"),
    [
        ({"v": "1", "V": "2"}, "DELTA_CONFLICT_SET_COLUMN"),
        ({"s.a": "1", "S": "null"}, "DELTA_CONFLICT_SET_COLUMN"),
        ({"deep.p.a": "1", "deep.P.A": "1"}, "DELTA_CONFLICT_SET_COLUMN"),
        ({"s": "named_struct('a', 1)"}, "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"),
        ({"s": "named_struct('a', 1, 'c', 'x')"}, "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"),
        ({"l": "array(named_struct('a', 1, 'b', 'x', 'c', 1))"}, "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION"),
        ({"s": "1"}, "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"),
        ({"v": "current_date()"}, "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION"),
    ],
)
def test_assignment_that_does_not_fit_is_refused(
    spark: SparkSession, assignments: Mapping[str, Any], condition: str
) -> None:
    with pytest.raises(SchemaError) as refused:
        _updated(spark, assignments)
    assert refused.value.condition == condition


@pytest.mark.parametrize(
    ("expression", "condition", "said"),
    [
        ("3000000000 + id", "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE", "BIGINT"),
        ("concat('ab', t)", "CAST_INVALID_INPUT", "abt"),
    ],
)
def test_value_that_a_column_cannot_hold_is_an_error_without_ansi_too(
    spark: SparkSession, expression: str, condition: str, said: str
) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(DeltaError) as failed:
            _updated(spark, {"v": expression})
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert failed.value.condition == condition
    assert said in str(failed.value)


def test_insert_leaves_what_is_not_given_and_refuses_what_cannot_be(spark: SparkSession) -> None:
    schema = StructType(
        (
            StructField("k", LONG, metadata={"delta.identity.start": 1, "delta.identity.step": 1}),
            StructField("v", INTEGER),
            StructField("s", _PAIR),
        )
    )
    scope = Scope(spark.range(1).toDF("x"), "tbl", "MERGE")

    def inserted(*pairs: tuple[str, str]) -> Sequence[Any]:
        given = [(name, scope.resolve(text, "values")) for name, text in pairs]
        return assign(schema, None, given, cast=StoreCast("tbl"), operation="INSERT")

    values = inserted(("V", "x + 1"))
    assert [value is None for value in values] == [True, False, True]
    refused = {
        "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED": [("K", "1")],
        "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION": [("s.a", "1")],
        "DELTA_DUPLICATE_COLUMNS_ON_INSERT": [("v", "1"), ("V", "2")],
    }
    for condition, pairs in refused.items():
        with pytest.raises(DeltaError) as failed:
            inserted(*pairs)
        assert failed.value.condition == condition
    with pytest.raises(DeltaError, match="DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED"):
        given = [("k", scope.resolve("1", "SET"))]
        assign(schema, lambda name: scope.frame["x"], given, cast=StoreCast("tbl"), operation="UPDATE")
