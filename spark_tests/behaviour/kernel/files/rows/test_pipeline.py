"""Rows completed: missing columns are null, default, generated or identity; given generated ones verified."""

from __future__ import annotations

import datetime as dt
import pickle
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.exceptions import DeltaError, InvariantViolationError, PredicateError, UnsupportedFeatureError
from delta_ds.kernel.files.rows.pipeline import RowPipeline
from delta_ds.kernel.format.schema.types import (
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    VOID,
    ArrayType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    arrow_schema,
)
from spark_tests.behaviour.kernel.files.rows.row_tables import (
    FEATURES,
    batch,
    defaulted,
    generated,
    plan,
    schema,
    stored,
)

UTC = dt.timezone.utc
PLAIN = schema(id=LONG, name=STRING)


def test_nothing_to_do_gives_the_batch_itself() -> None:
    rows = batch(PLAIN, {"id": 1, "name": "a"})
    assert RowPipeline(plan(PLAIN, PLAIN)).process(rows) is rows


def test_columns_are_found_in_any_order_and_case_and_missing_ones_are_null() -> None:
    table = schema(Id=LONG, Name=STRING, More=ArrayType(schema(a=LONG)))
    data = schema(NAME=STRING, ID=LONG)
    assert stored(data, table, {"NAME": "a", "ID": 1}) == [{"Id": 1, "Name": "a", "More": None}]


def test_rows_without_any_column_keep_their_number() -> None:
    rows = pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), 3, [None]))
    out = RowPipeline(plan(schema(), PLAIN)).process(rows)
    assert out.num_rows == 3 and out.column(0).null_count == 3


def test_batches_may_differ_in_their_arrow_types() -> None:
    pipeline = RowPipeline(plan(PLAIN, PLAIN))
    for kind in (pa.string(), pa.large_string(), pa.string()):
        rows = pa.RecordBatch.from_arrays([pa.array([1]), pa.array(["a"], kind)], ["ID", "name"])
        assert pipeline.process(rows).to_pylist() == [{"id": 1, "name": "a"}]


@pytest.mark.parametrize("names", [["id", "other"], ["id", "ID"]])
def test_unknown_and_doubled_columns_are_refused(names: list[str]) -> None:
    with pytest.raises(DeltaError):
        plan(schema(**dict.fromkeys(names, LONG)), PLAIN)


def test_plans_are_small_and_survive_pickling() -> None:
    table = schema(generated("twice", LONG, "id * 2"), defaulted("d", STRING, "'x'"), id=LONG)
    one = plan(schema(id=LONG), table, constraints={"c": "id > 0"})
    text = pickle.dumps(one)
    assert len(text) < 3000
    rows = RowPipeline(pickle.loads(text)).process(batch(schema(id=LONG), {"id": 3}))
    assert rows.to_pylist() == [{"twice": 6, "d": "x", "id": 3}]


# --- generated columns

EVENTS = schema(
    StructField("id", LONG),
    StructField("ts", TIMESTAMP),
    generated("day", DATE, "CAST(ts AS DATE)"),
    generated("twice", INTEGER, "cast(ID * 2 as int)"),
)
GIVEN = schema(id=LONG, ts=TIMESTAMP)
MOMENT = dt.datetime(2024, 1, 3, 1, tzinfo=UTC)


def test_missing_generated_columns_are_computed_in_the_session_zone() -> None:
    rows = [{"id": 1, "ts": MOMENT}, {"id": None, "ts": None}]
    assert stored(GIVEN, EVENTS, *rows, timezone="America/Los_Angeles") == [
        {"id": 1, "ts": MOMENT, "day": dt.date(2024, 1, 2), "twice": 2},
        {"id": None, "ts": None, "day": None, "twice": None},
    ]


def test_task_may_correct_the_zone_of_a_plan() -> None:
    corrected = replace(plan(GIVEN, EVENTS), timezone="America/Los_Angeles")
    out = RowPipeline(corrected).process(batch(GIVEN, {"id": 1, "ts": MOMENT}))
    assert out.column("day").to_pylist() == [dt.date(2024, 1, 2)]


def test_given_generated_values_are_kept_where_they_agree() -> None:
    data = schema(id=LONG, ts=TIMESTAMP, DAY=DATE)
    rows = [{"id": 1, "ts": MOMENT, "DAY": MOMENT.date()}, {"id": 1, "ts": None, "DAY": None}]
    assert [r["day"] for r in stored(data, EVENTS, *rows)] == [MOMENT.date(), None]


@pytest.mark.parametrize("value", [dt.date(2024, 1, 4), None])
def test_given_generated_values_that_disagree_are_refused(value: dt.date | None) -> None:
    data = schema(id=LONG, ts=TIMESTAMP, day=DATE)
    with pytest.raises(InvariantViolationError) as caught:
        stored(data, EVENTS, {"id": 1, "ts": MOMENT, "day": value})
    assert str(caught.value) == (
        "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint Generated Column "
        f"(day <=> CAST(ts AS DATE)) violated by row with values:\n - day : {value or 'null'}"
        "\n - ts : 2024-01-03 01:00:00"
    )


def test_generated_columns_are_computed_after_those_they_read() -> None:
    table = schema(
        generated("c", LONG, "b + 1"), generated("b", LONG, "a + d"), defaulted("d", LONG, "5"), a=LONG
    )
    assert stored(schema(a=LONG), table, {"a": 1}) == [{"c": 7, "b": 6, "d": 5, "a": 1}]


def test_generated_column_that_reads_a_missing_column_is_refused() -> None:
    with pytest.raises(PredicateError, match="needs the column id, which the rows do not have") as caught:
        plan(schema(ts=TIMESTAMP), EVENTS)
    assert caught.value.condition == "UNRESOLVED_COLUMN.WITH_SUGGESTION"


def test_generated_columns_that_read_each_other_are_refused() -> None:
    table = schema(generated("a", LONG, "b"), generated("b", LONG, "a"), x=LONG)
    with pytest.raises(UnsupportedFeatureError, match="computed from each other"):
        plan(schema(x=LONG), table)


def test_generated_value_that_does_not_fit_is_refused() -> None:
    with pytest.raises(
        PredicateError, match=r"generated column twice of /data/t \(cast\(ID \* 2 as int\)\)"
    ) as e:
        stored(GIVEN, EVENTS, {"id": 5_000_000_000, "ts": None})
    assert e.value.condition == "CAST_OVERFLOW"


@pytest.mark.parametrize("sql", ["my_udf(id)", "id +", "nosuch + 1"])
def test_generation_expression_that_cannot_be_evaluated_is_refused_when_planning(sql: str) -> None:
    table = schema(generated("g", LONG, sql), id=LONG)
    for data in (schema(id=LONG), table):
        with pytest.raises(DeltaError, match="generated column g of /data/t"):
            plan(data, table)


def test_without_the_feature_a_generated_column_is_a_plain_one() -> None:
    assert stored(GIVEN, EVENTS, {"id": 1, "ts": MOMENT}, features=frozenset())[0]["day"] is None


@given(st.lists(st.tuples(st.none() | st.integers(-99, 99), st.none() | st.integers(-198, 198))))
def test_given_values_pass_exactly_if_they_are_what_would_be_computed(
    pairs: list[tuple[int | None, int | None]],
) -> None:
    table = schema(generated("g", LONG, "id * 2"), id=LONG)
    right = all(g == (None if i is None else i * 2) for i, g in pairs)
    rows = [{"id": i, "g": g} for i, g in pairs]
    if right:
        assert [r["g"] for r in stored(table, table, *rows)] == [g for _, g in pairs]
    else:
        with pytest.raises(InvariantViolationError, match="Generated Column"):
            stored(table, table, *rows)
    computed = stored(schema(id=LONG), table, *({"id": i} for i, _ in pairs))
    assert stored(table, table, *computed) == computed


# --- defaults

_POINT = StructType((StructField("x", LONG), StructField("on", DATE)))


@pytest.mark.parametrize(
    ("kind", "sql", "expected"),
    [
        (INTEGER, "42", 42),
        (LONG, "-1", -1),
        (STRING, "concat('d', 'x')", "dx"),
        (STRING, "NULL", None),
        (DATE, "DATE'2024-01-01'", dt.date(2024, 1, 1)),
        (TIMESTAMP, "TIMESTAMP'2024-01-01 00:00:00'", dt.datetime(2023, 12, 31, 23, tzinfo=UTC)),
        (DecimalType(6, 2), "1", Decimal("1.00")),
        (ArrayType(INTEGER), "null", None),
        (ArrayType(INTEGER), "array(1, 1 + 1, NULL)", [1, 2, None]),
        (ArrayType(INTEGER), "array()", []),
        (MapType(STRING, LONG), "map('a', 1, 'b', NULL)", [("a", 1), ("b", None)]),
        (_POINT, "named_struct('x', 7, 'on', DATE'2024-01-01')", {"x": 7, "on": dt.date(2024, 1, 1)}),
        (_POINT, "struct(7, NULL)", {"x": 7, "on": None}),
        (ArrayType(_POINT), "array(struct(1, NULL), NULL)", [{"x": 1, "on": None}, None]),
        (MapType(STRING, ArrayType(LONG)), "map('a', array(1))", [("a", [1])]),
        (ArrayType(STRING), "array(1, NULL, 2)", ["1", None, "2"]),
    ],
)
def test_missing_column_takes_its_default(kind: Any, sql: str, expected: Any) -> None:
    table = schema(defaulted("d", kind, sql), id=LONG)
    rows = stored(schema(id=LONG), table, {"id": 1}, {"id": 2}, timezone="Europe/Paris")
    assert [r["d"] for r in rows] == [expected, expected]


def test_default_does_not_replace_given_nulls() -> None:
    table = schema(defaulted("d", INTEGER, "42"), id=LONG)
    assert stored(table, table, {"d": None, "id": 1}) == [{"d": None, "id": 1}]


def test_current_time_is_the_moment_of_planning_in_every_task() -> None:
    table = schema(defaulted("now", TIMESTAMP, "current_timestamp()"), id=LONG)
    before = dt.datetime.now(UTC)
    one = plan(schema(id=LONG), table)
    after = dt.datetime.now(UTC)
    values = [RowPipeline(one, task).process(batch(schema(id=LONG), {"id": 1})).column(0) for task in (0, 1)]
    assert values[0].equals(values[1]) and before <= values[0].to_pylist()[0] <= after


def test_default_fills_a_not_null_column() -> None:
    table = StructType((StructField("d", STRING, False, {"CURRENT_DEFAULT": "'x'"}), StructField("id", LONG)))
    assert stored(schema(id=LONG), table, {"id": 1}) == [{"d": "x", "id": 1}]


def test_without_the_feature_there_are_no_defaults() -> None:
    table = schema(defaulted("d", INTEGER, "42"), id=LONG)
    assert stored(schema(id=LONG), table, {"id": 1}, features=FEATURES - {"allowColumnDefaults"}) == [
        {"d": None, "id": 1}
    ]


@pytest.mark.parametrize(
    ("kind", "sql"),
    [
        (INTEGER, "my_udf()"),
        (INTEGER, "'abc'"),
        (INTEGER, "1 +"),
        (ArrayType(INTEGER), "array('x')"),
        (ArrayType(INTEGER), "map(1, 2)"),
        (ArrayType(INTEGER), "sequence(1, 3)"),
        (ArrayType(INTEGER), "array(id)"),
        (MapType(STRING, LONG), "map('a', 1, 'a', 2)"),
        (MapType(STRING, LONG), "map('a')"),
        (MapType(DOUBLE, LONG), "map(0.0D, 1, -0.0D, 2)"),
        (MapType(_POINT, LONG), "map(struct(1, NULL), 2)"),
        (ArrayType(STRING), "array(1, 2.50)"),
        (ArrayType(STRING), "array(1.5, 2.50)"),
        (_POINT, "named_struct('x', 7)"),
        (LONG, "id"),
    ],
)
def test_default_that_is_no_constant_of_the_type_is_refused_by_name(kind: Any, sql: str) -> None:
    with pytest.raises(DeltaError, match="default of column d of /data/t"):
        plan(schema(id=LONG), schema(defaulted("d", kind, sql), id=LONG))


def test_missing_not_null_field_inside_a_struct_is_refused_by_its_path() -> None:
    inner = StructType((StructField("c", INTEGER, False),))
    table = schema(id=LONG, s=StructType((StructField("a", INTEGER), StructField("b", inner))))
    for data in (schema(id=LONG), schema(id=LONG, s=schema(a=INTEGER))):
        with pytest.raises(InvariantViolationError, match=r"Column s\.b\.c") as caught:
            plan(data, table)
        assert caught.value.condition == "DELTA_MISSING_NOT_NULL_COLUMN_VALUE"


def test_void_for_a_not_null_column_is_refused_when_planning() -> None:
    table = StructType((StructField("id", LONG, False),))
    with pytest.raises(InvariantViolationError, match="Column id") as caught:
        plan(schema(id=VOID), table)
    assert caught.value.condition == "DELTA_MISSING_NOT_NULL_COLUMN_VALUE"


def test_void_counts_as_given_nulls() -> None:
    table = schema(defaulted("d", LONG, "42"), generated("g", LONG, "id + 1"), id=LONG)
    data = schema(d=VOID, id=LONG)
    assert stored(data, table, {"d": None, "id": 1}) == [{"d": None, "g": 2, "id": 1}]
    with pytest.raises(InvariantViolationError, match="Generated Column"):
        stored(schema(g=VOID, id=LONG), table, {"g": None, "id": 1})


def test_result_has_exactly_the_tables_arrow_schema() -> None:
    table = StructType((StructField("id", LONG, False), StructField("v", STRING)))
    rows = batch(schema(id=LONG, v=STRING), {"id": 1, "v": "a"})
    out = RowPipeline(plan(schema(id=LONG, v=STRING), table)).process(rows)
    assert out.schema.equals(arrow_schema(table), check_metadata=True)
    assert out.column(0).buffers()[1].address == rows.column(0).buffers()[1].address
