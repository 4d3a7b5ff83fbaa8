"""What rows must meet: constraints, invariants, NOT NULL, declared lengths."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from delta_ds.exceptions import (
    DeltaError,
    InvariantViolationError,
    PredicateError,
    SchemaError,
    UnsupportedFeatureError,
)
from delta_ds.kernel.files.rows.pipeline import RowPipeline
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.tree import Expression
from delta_ds.kernel.format.schema.types import (
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from spark_tests.behaviour.kernel.files.rows.row_tables import batch, plan, schema, stored
from spark_tests.behaviour.kernel.format.expressions.interpreter import interpret
from spark_tests.behaviour.kernel.format.expressions.test_laws import batch_of
from spark_tests.behaviour.kernel.format.expressions.trees import PREDICATES, ROWS
from spark_tests.behaviour.kernel.format.expressions.trees import SCHEMA as TREE_SCHEMA


def error_of(table: StructType, *rows: Mapping[str, Any], **options: Any) -> DeltaError:
    with pytest.raises(DeltaError) as caught:
        stored(table, table, *rows, **options)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.parameters == caught.value.parameters
    return caught.value


# --- CHECK constraints

PLAIN = schema(id=LONG, name=STRING, v=INTEGER)


def test_rows_that_meet_the_constraint_are_stored() -> None:
    rows = [{"id": 1, "name": "a", "v": 1}, {"id": 2, "name": None, "v": None}]
    assert stored(PLAIN, PLAIN, *rows, constraints={"pos": "ID > 0"}) == rows


def test_false_constraint_names_the_first_offending_row() -> None:
    rows = [{"id": n, "name": "x", "v": 1} for n in (1, -7, -8)]
    error = error_of(PLAIN, *rows, constraints={"pos": "ID > 0 and v < 5"})
    assert isinstance(error, InvariantViolationError)
    assert str(error) == (
        "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint pos (ID > 0 and v < 5) violated by row "
        "with values:\n - id : -7\n - v : 1"
    )


def test_null_constraint_is_broken() -> None:
    error = error_of(PLAIN, {"id": None, "name": "x", "v": 1}, constraints={"pos": "id > 0"})
    assert error.condition == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert error.parameters["values"] == {"id": "null"}


def test_values_are_told_as_spark_writes_them() -> None:
    table = schema(
        d=DATE,
        ts=TIMESTAMP,
        x=DecimalType(6, 2),
        f=DOUBLE,
        s=schema(a=INTEGER),
        arr=ArrayType(INTEGER),
    )
    row = {
        "d": dt.date(1999, 12, 31),
        "ts": dt.datetime(1999, 12, 31, 12, tzinfo=dt.timezone.utc),
        "x": Decimal("5.50"),
        "f": 1e10,
        "s": {"a": -1},
        "arr": [1, None],
    }
    sql = "d is null or ts is null or x > 6 or f < 0 or s.A > 0 or size(arr) < 1"
    error = error_of(table, row, constraints={"all": sql}, timezone="Europe/Paris")
    assert error.parameters["values"] == {
        "arr": "[1, None]",
        "d": "1999-12-31",
        "f": "1.0E10",
        "s.a": "-1",
        "ts": "1999-12-31 13:00:00",
        "x": "5.50",
    }


def test_first_row_is_told_even_if_a_later_check_finds_it() -> None:
    table = schema(StructField("id", LONG, False), v=STRING)
    rows = [{"id": None, "v": "a"}, {"id": 1, "v": "x"}]
    assert error_of(table, *rows, constraints={"c": "v <> 'x'"}).condition == (
        "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
    )


@pytest.mark.parametrize(
    ("sql", "kind", "named"),
    [
        ("my_udf(id) > 0", UnsupportedFeatureError, "my_udf"),
        ("id > (select 1)", UnsupportedFeatureError, "cannot be read"),
        ("id >", UnsupportedFeatureError, "cannot be read"),
        ("id + 1", PredicateError, "must be boolean"),
        (r"name rlike r'\p{L}'", PredicateError, "cannot match as Spark does"),
        ("date_format(current_date(), name) > date_format(current_date(), 'EEE')", PredicateError, "EEE"),
    ],
)
def test_constraint_that_cannot_be_evaluated_is_refused_when_planning(
    sql: str, kind: type[DeltaError], named: str
) -> None:
    with pytest.raises(kind, match=named) as caught:
        plan(PLAIN, PLAIN, constraints={"c": sql})
    assert "CHECK constraint c of /data/t" in str(caught.value) and sql in str(caught.value)
    assert "Nothing was written" in str(caught.value)


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("gone > 0", {"gone": "null"}),
        ("id > 0 AND gone.x > 0", {"gone.x": "null", "id": "1"}),
        ("s.y > 0", {"s.y": "null"}),
    ],
)
def test_a_column_that_is_not_there_any_more_is_null(sql: str, told: dict[str, str]) -> None:
    table = schema(id=LONG, s=schema(x=LONG))
    error = error_of(table, {"id": 1, "s": {"x": 1}}, constraints={"c": sql})
    assert isinstance(error, InvariantViolationError)
    assert error.parameters["values"] == told
    row = {"id": 1, "s": None}
    assert stored(table, table, row, constraints={"c": f"id > 5 OR ({sql}) IS NULL"}) == [row]


def test_a_field_of_what_is_no_struct_any_more_cannot_be_checked() -> None:
    with pytest.raises(SchemaError, match="no struct any more") as caught:
        plan(PLAIN, PLAIN, constraints={"c": "name.first = 'x'"})
    assert caught.value.condition == "DELTA_UNSUPPORTED_INVARIANT_NON_STRUCT"


def test_constraint_that_fails_on_a_row_keeps_the_condition_of_the_failure() -> None:
    error = error_of(PLAIN, {"id": 0, "name": "", "v": 0}, constraints={"c": "1 / id > 0"})
    assert error.condition == "DIVIDE_BY_ZERO" and "CHECK constraint c of /data/t" in str(error)


@given(PREDICATES, ROWS)
def test_rows_pass_exactly_if_the_constraint_is_true_for_all(
    predicate: Expression, rows: list[dict[str, Any]]
) -> None:
    sql = str(bind(predicate, TREE_SCHEMA))
    pipeline = RowPipeline(plan(TREE_SCHEMA, TREE_SCHEMA, constraints={"c": sql}))
    passes = [interpret(predicate, row) is True for row in rows]
    if all(passes):
        assert pipeline.process(batch_of(rows)).num_rows == len(rows)
        return
    with pytest.raises(InvariantViolationError, match="CHECK constraint c"):
        pipeline.process(batch_of(rows))
    first = passes.index(False)
    assert pipeline.process(batch_of(rows).slice(0, first)).num_rows == first
    with pytest.raises(InvariantViolationError):
        pipeline.process(batch_of(rows).slice(first, 1))


# --- invariants


def invariant(sql: str) -> StructField:
    text = json.dumps({"expression": {"expression": sql}})
    return StructField("id", LONG, True, {"delta.invariants": text})


@pytest.mark.parametrize("value", [3, None])
def test_invariant_that_is_not_true_is_broken(value: int | None) -> None:
    error = error_of(schema(invariant("id > 3")), {"id": value})
    assert error.condition == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES" and "id > 3" in str(error)


def test_invariant_that_cannot_be_read_is_refused() -> None:
    field = StructField("id", LONG, True, {"delta.invariants": "{}"})
    with pytest.raises(DeltaError, match="invariant of column id of /data/t"):
        plan(schema(field), schema(field))


# --- NOT NULL

NESTED = schema(
    StructField("id", LONG, False),
    s=StructType((StructField("a", INTEGER, False), StructField("b", INTEGER))),
    many=ArrayType(StructType((StructField("z", INTEGER, False),))),
)
LOOSE = schema(
    id=LONG, s=schema(a=INTEGER, b=INTEGER), many=ArrayType(schema(z=INTEGER)),
)  # fmt: skip


def test_rows_without_nulls_in_not_null_columns_are_stored() -> None:
    row = {"id": 1, "s": {"a": 1, "b": None}, "many": None}
    assert stored(LOOSE, NESTED, row) == [row]


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"id": None, "s": {"a": 1, "b": 1}}, "id"),
        ({"id": 1, "s": {"a": None, "b": 1}}, "s.a"),
        ({"id": 1, "s": None}, "s.a"),
    ],
)
def test_null_in_a_not_null_column_is_refused(row: dict[str, Any], name: str) -> None:
    with pytest.raises(InvariantViolationError) as caught:
        stored(LOOSE, NESTED, {"id": 1, "s": {"a": 1, "b": 1}, "many": None}, {**row, "many": None})
    assert caught.value.condition == "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
    assert caught.value.parameters == {"columnName": name}


def test_missing_not_null_column_is_refused_when_planning() -> None:
    with pytest.raises(InvariantViolationError, match="Column id, which has a NOT NULL") as caught:
        plan(schema(s=NESTED.fields[1].type), NESTED)
    assert caught.value.condition == "DELTA_MISSING_NOT_NULL_COLUMN_VALUE"


# --- char and varchar


def declared(name: str, kind: Any, text: str) -> StructField:
    return StructField(name, kind, True, {"__CHAR_VARCHAR_TYPE_STRING": text})


TEXTS = schema(
    declared("v", STRING, "varchar(3)"),
    declared("s", schema(x=STRING, y=STRING), "struct<x:varchar(2),y:char(2)>"),
    declared("a", ArrayType(STRING), "array<char(2)>"),
    declared("m", MapType(STRING, STRING), "map<varchar(2),char(3)>"),
)
SHORT_TEXTS = {"v": "äöü", "s": {"x": "a", "y": None}, "a": ["ab", None], "m": {"a": "abc"}}


def test_texts_of_the_declared_length_are_stored() -> None:
    (row,) = stored(TEXTS, TEXTS, SHORT_TEXTS)
    assert row == {**SHORT_TEXTS, "m": [("a", "abc")]}


@pytest.mark.parametrize(
    "changed",
    [
        {"v": "long"},
        {"s": {"x": "abc", "y": "a"}},
        {"s": {"x": "a", "y": "abc"}},
        {"a": [None, "abc"]},
        {"m": {"abc": "a"}},
        {"m": {"a": "long"}},
    ],
)
def test_longer_texts_are_refused(changed: dict[str, Any]) -> None:
    absent = {name: None for name in TEXTS.names}
    error = error_of(TEXTS, absent, SHORT_TEXTS, {**SHORT_TEXTS, **changed})
    assert error.condition == "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"
    assert error.parameters["column"] == next(iter(changed))
    assert error.parameters["value"] in ("long", "abc")


def test_slices_of_batches_are_checked_at_their_own_rows() -> None:
    pipeline = RowPipeline(plan(TEXTS, TEXTS))
    rows = batch(TEXTS, {**SHORT_TEXTS, "a": ["long"]}, SHORT_TEXTS, {**SHORT_TEXTS, "m": {"a": "long"}})
    assert pipeline.process(rows.slice(1, 1)).num_rows == 1
    with pytest.raises(InvariantViolationError, match="check: m is map"):
        pipeline.process(rows.slice(1, 2))
