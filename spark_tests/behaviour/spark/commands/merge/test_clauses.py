"""Clauses of a MERGE: their order, what they see, what they make of rows, and of the schema."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.commands.merge.plan import evolved_schema
from delta_ds.kernel.format.schema.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    StructField,
    StructType,
)
from delta_ds.kernel.format.table_state import TableState
from delta_ds.spark.base.schema import from_spark, to_spark
from delta_ds.spark.commands.merge.plan import (
    Clause,
    MergePlan,
    check_clauses,
    history_parameters,
    plan_merge,
)
from delta_ds.spark.commands.store_casts import StoreCast
from spark_tests.behaviour.kernel.states import table_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_UPDATE_ALL = Clause("matched", "update")
_INSERT_ALL = Clause("not_matched", "insert")
_AB = StructType((StructField("a", INTEGER), StructField("b", STRING)))
_TABLE = StructType((StructField("Id", LONG), StructField("v", INTEGER), StructField("st", _AB)))
_WIDENING = {"properties": {"delta.enableTypeWidening": "true"}, "features": ["typeWidening"]}


# --- order


@pytest.mark.parametrize(
    ("clauses", "condition"),
    [
        ([], "DELTA_MERGE_MISSING_WHEN"),
        ([Clause("matched", "update", None, {})], "DELTA_MERGE_MISSING_WHEN"),
        ([_UPDATE_ALL, Clause("matched", "delete")], "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION"),
        ([_INSERT_ALL, _INSERT_ALL], "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION"),
        (
            [Clause("not_matched_by_source", "delete"), Clause("not_matched_by_source", "delete", "true")],
            "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
        ),
    ],
)
def test_clauses_that_say_nothing_or_hide_others_are_refused(clauses: list[Clause], condition: str) -> None:
    with pytest.raises(DeltaError) as refused:
        check_clauses(clauses, "tbl")
    assert refused.value.condition == condition


def test_clauses_of_different_kinds_may_come_in_any_order() -> None:
    nothing = Clause("matched", "update", None, {})
    check_clauses([_INSERT_ALL, nothing, Clause("matched", "delete", "x"), _UPDATE_ALL], "tbl")
    with pytest.raises(ValueError, match="cannot insert"):
        check_clauses([Clause("matched", "insert")], "tbl")


# --- schema


def _evolved(source: StructType, *assigned: str, **options: Any) -> str:
    paths = [tuple(name.split(".")) for name in assigned]
    return str(evolved_schema(_state(_TABLE, **options), source, paths))


def _state(schema: StructType, **options: Any) -> TableState:
    return table_state(schema, table="tbl", **options)


def test_schema_takes_from_the_source_what_is_assigned() -> None:
    wider = StructType((StructField("C", LONG), *_AB.fields))
    source = StructType(
        (StructField("ID", LONG), StructField("n", DATE), StructField("st", wider), StructField("m", LONG))
    )
    assert _evolved(source) == str(_TABLE)
    assert _evolved(source, "id") == str(_TABLE)
    assert _evolved(source, "N") == "struct<Id:long,v:integer,st:struct<a:integer,b:string>,n:date>"
    assert _evolved(source, "st.a") == str(_TABLE)
    assert _evolved(source, "st.c") == "struct<Id:long,v:integer,st:struct<a:integer,b:string,C:long>>"
    assert _evolved(source, "st", "m").endswith("st:struct<a:integer,b:string,C:long>,m:long>")


def test_types_change_only_where_the_table_widens_them() -> None:
    longer = StructType((StructField("v", LONG), StructField("st", StructType((StructField("a", LONG),)))))
    assert _evolved(longer, "v", "st") == str(_TABLE)
    assert _evolved(longer, "v", "st", **_WIDENING) == "struct<Id:long,v:long,st:struct<a:long,b:string>>"
    assert _evolved(StructType((StructField("v", STRING),)), "v", **_WIDENING) == str(_TABLE)
    for kind in (BOOLEAN, DATE, ArrayType(INTEGER)):
        with pytest.raises(DeltaError, match="DELTA_FAILED_TO_MERGE_FIELDS"):
            _evolved(StructType((StructField("v", kind),)), "v")


# --- rows


def _sides(spark: SparkSession, source: str, schema: StructType) -> tuple[DataFrame, DataFrame, DataFrame]:
    rows = [(1, 10, (1, "x")), (2, 20, None), (3, 30, (3, "z"))]
    hidden = StructType((*schema.fields, StructField("__pydelta_row", LONG)))
    target = spark.createDataFrame([(*r, i) for i, r in enumerate(rows)], to_spark(hidden)).alias("t")
    right = spark.sql(source).alias("s")
    return target, right, right.join(target, right[right.columns[0]] == target["Id"], "full_outer")


def _plan(
    spark: SparkSession,
    source: str,
    clauses: Sequence[Clause],
    *,
    schema: StructType = _TABLE,
    **options: Any,
) -> tuple[MergePlan, DataFrame]:
    target, right, joined = _sides(spark, source, schema)
    given: dict[str, Any] = {"on": "t.id = s.id", "cast": StoreCast("tbl"), "alias": "t"}
    state = _state(schema)
    plan = plan_merge(
        state=state, target=target, source=right, joined=joined, clauses=clauses, **(given | options)
    )
    return plan, joined


def _rows(plan: MergePlan, joined: DataFrame) -> list[dict[str, list[Any]]]:
    """What each clause makes of every row of the join, by source id or table id; None: no value of its own."""
    from pyspark.sql import functions as F

    found = []
    for clause in plan.clauses:
        if clause.values is None:
            continue
        key = F.coalesce(F.col("s.id"), F.col("t.Id")).cast("string").alias("key")
        values = [(F.lit("-") if c is None else c).alias(f"c{i}") for i, c in enumerate(clause.values)]
        picked = joined.select(key, *values)
        kinds = from_spark(picked.schema).fields[1:]
        assert [str(k.type) for k, c in zip(kinds, clause.values, strict=True) if c is not None] == [
            str(f.type) for f, c in zip(plan.schema, clause.values, strict=True) if c is not None
        ]
        rows = [json.loads(json.dumps(r.asDict(recursive=True))) for r in picked.collect()]
        found.append({r.pop("key"): list(r.values()) for r in rows})
    return found


def test_star_takes_the_columns_of_the_table_from_the_source(spark: SparkSession) -> None:
    source = (
        "select 1L id, 'x' extra, '5' v, named_struct('B', 7, 'A', 8L) ST union all select 9L, 'y', '6', null"
    )
    plan, joined = _plan(spark, source, [_UPDATE_ALL, _INSERT_ALL])
    updated, inserted = _rows(plan, joined)
    assert updated["1"] == [1, 5, {"a": 8, "b": "7"}]
    assert inserted["9"] == [9, 6, None]
    assert (plan.schema, plan.evolved) == (_TABLE, False)
    assert plan.clauses[0].assigned == {"Id", "v", "st"}


def test_explicit_clauses_see_their_own_side(spark: SparkSession) -> None:
    clauses = [
        Clause("matched", "delete", "t.v > s.v"),
        Clause("matched", "update", None, {"t.V": "t.v + s.v", "st.b": "'set'"}),
        Clause("not_matched", "insert", "v > 0", {"id": "id", "v": "v + 1"}),
        Clause("not_matched_by_source", "update", "v = 30", {"v": "v + 2"}),
    ]
    plan, joined = _plan(spark, "select 1L id, 5 v union all select 9L, 50", clauses, generated=["st"])
    updated, inserted, left = _rows(plan, joined)
    assert updated["1"] == [1, 15, {"a": 1, "b": "set"}]
    assert inserted["9"] == [9, 51, "-"]
    assert left["3"] == [3, 32, "-"]
    assert [c.do for c in plan.clauses] == ["delete", "update", "insert", "update"]
    assert [sorted(c.assigned) for c in plan.clauses] == [[], ["st", "v"], ["Id", "v"], ["v"]]


def test_history_tells_conditions_and_actions(spark: SparkSession) -> None:
    clauses = [
        Clause("matched", "update", "t.v > 1"),
        Clause("not_matched", "insert"),
        Clause("not_matched_by_source", "delete"),
    ]
    plan, _ = _plan(spark, "select 1L id, 5 v, cast(null as struct<a:int,b:string>) st", clauses)
    told = {name: json.loads(text) for name, text in history_parameters(plan).items()}
    assert told["predicate"] == [plan.on.text]
    assert told["matchedPredicates"][0]["actionType"] == "update"
    assert told["matchedPredicates"][0]["predicate"].startswith("(v#")
    assert told["notMatchedPredicates"] == [{"actionType": "insert"}]
    assert told["notMatchedBySourcePredicates"] == [{"actionType": "delete"}]


def test_evolution_adds_columns_and_fields_and_keeps_what_the_source_lacks(spark: SparkSession) -> None:
    source = (
        "select 1L id, named_struct('c', 6) st, 'n' new union all select 2L, null, 'm' "
        "union all select 9L, named_struct('c', 7), 'k'"
    )
    plan, joined = _plan(spark, source, [_UPDATE_ALL, _INSERT_ALL], cast=StoreCast("tbl", True))
    assert plan.evolved
    assert str(plan.schema) == "struct<Id:long,v:integer,st:struct<a:integer,b:string,c:integer>,new:string>"
    updated, inserted = _rows(plan, joined)
    assert updated["1"] == [1, 10, {"a": 1, "b": "x", "c": 6}, "n"]
    assert updated["2"] == [2, 20, None, "m"]
    assert inserted["9"] == [9, "-", {"a": None, "b": None, "c": 7}, "k"]


def test_evolution_by_explicit_assignments_replaces_whole_structs(spark: SparkSession) -> None:
    source = "select 1L id, named_struct('c', 6) st, 5 w, 6 unused"
    clauses = [
        Clause("matched", "update", "true", {"st": "s.st", "W": "s.w + 1L"}),
        Clause("matched", "update", None, {"s.st.c": "1"}),
    ]
    plan, joined = _plan(spark, source, clauses, cast=StoreCast("tbl", True))
    assert str(plan.schema) == "struct<Id:long,v:integer,st:struct<a:integer,b:string,c:integer>,w:integer>"
    whole, field = _rows(plan, joined)
    assert whole["1"] == [1, 10, {"a": None, "b": None, "c": 6}, 6]
    assert field["1"] == [1, 10, {"a": 1, "b": "x", "c": 1}, None]


@pytest.mark.parametrize(
    ("clause", "evolve", "condition"),
    [
        (Clause("matched", "update", None, {"nosuch": "1"}), False, "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
        (Clause("matched", "update", None, {"nosuch": "1"}), True, "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
        (Clause("matched", "update", None, {"s.v": "1"}), False, "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
        (Clause("matched", "update", None, {"v": "s.nosuch"}), False, "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
        (Clause("matched", "update", None, {"v": "v"}), False, "AMBIGUOUS_REFERENCE"),
        (Clause("matched", "update", None, {"v": "1", "V": "2"}), False, "DELTA_CONFLICT_SET_COLUMN"),
        (Clause("not_matched", "insert", None, {"id": "t.id"}), False, "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
        (
            Clause("not_matched_by_source", "update", None, {"v": "s.v"}),
            False,
            "DELTA_MERGE_UNRESOLVED_EXPRESSION",
        ),
        (
            Clause("not_matched_by_source", "update", None, {"w": "1"}),
            True,
            "DELTA_MERGE_UNRESOLVED_EXPRESSION",
        ),
        (_UPDATE_ALL, False, "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
        (Clause("matched", "delete", "s.v"), False, "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
    ],
)
def test_clause_that_cannot_be_resolved_is_refused(
    spark: SparkSession, clause: Clause, evolve: bool, condition: str
) -> None:
    with pytest.raises(DeltaError) as refused:
        _plan(spark, "select 1L id, 2 v, 3 w", [clause], cast=StoreCast("tbl", evolve))
    assert refused.value.condition == condition


def test_source_with_a_column_twice_is_refused_where_it_matters(spark: SparkSession) -> None:
    doubled = "select 1L id, 2 v, 3 V, cast(null as struct<a:int,b:string>) st"
    _plan(spark, doubled, [Clause("matched", "update", None, {"v": "s.id"})])
    for evolve, condition in (
        (False, "AMBIGUOUS_REFERENCE"),
        (True, "DELTA_CONFLICT_SET_COLUMN|DELTA_DUPLICATE"),
    ):
        with pytest.raises(DeltaError, match=condition):
            _plan(spark, doubled, [_UPDATE_ALL], cast=StoreCast("tbl", evolve))


def test_join_of_a_frame_with_itself_is_refused(spark: SparkSession) -> None:
    target, other, _ = _sides(spark, "select 1L id", _TABLE)
    alias = target.alias("s")
    for source, joined in ((alias, alias.join(target, how="full_outer")), (other, target)):
        with pytest.raises(ValueError, match="frames of their own"):
            plan_merge(
                state=_state(_TABLE),
                target=target,
                source=source,
                joined=joined,
                on="true",
                clauses=[_UPDATE_ALL],
                cast=StoreCast("tbl"),
            )
