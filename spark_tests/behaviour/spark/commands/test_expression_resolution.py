"""Names and expressions of commands: what they see, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from delta_ds.exceptions import DeltaError, SchemaError, UnsupportedOperationError
from delta_ds.kernel.format.schema.types import BOOLEAN, INTEGER, LONG, STRING
from delta_ds.spark.commands.expression_resolution import Scope

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _sides(spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame]:
    target = spark.createDataFrame([(1, 10, 7)], "id bigint, v int, __pydelta_row bigint").alias("t")
    source = spark.createDataFrame([(1, 5, "x")], "id bigint, v int, only string").alias("s")
    return target, source, source.join(target, source["id"] == target["id"], "full_outer")


def test_expression_of_one_side_in_the_join_keeps_its_meaning(spark: SparkSession) -> None:
    target, source, joined = _sides(spark)
    scope = Scope(source, "tbl", "MERGE")
    of_source = scope.resolve_all(["v + 1", "s.id", "only", 3], "values")
    of_target = Scope(target, "tbl", "MERGE").resolve("v * 2", "values")
    both = Scope(joined, "tbl", "MERGE").resolve("t.v + s.v", "values")
    assert [r.type for r in of_source] == [INTEGER, LONG, STRING, INTEGER]
    assert scope.projections == {}
    row = joined.select(*(r.column for r in of_source), of_target.column, both.column).first()
    assert row is not None
    assert tuple(row) == (6, 1, "x", 3, 20, 15)


def test_condition_as_history_tells_it_names_resolved_columns(spark: SparkSession) -> None:
    target, _, _ = _sides(spark)
    found = Scope(target, "tbl", "UPDATE").predicate("t.id = 1", "condition")
    assert found.type == BOOLEAN
    assert found.text.startswith("(id#")
    assert Scope(target, "tbl", "UPDATE").predicate("null", "condition").source == "null"


@pytest.mark.parametrize(
    ("what", "expression", "condition"),
    [
        ("UPDATE", "nosuch", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("UPDATE", "__pydelta_row", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("UPDATE", "z.v", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("MERGE", "nosuch + 1", "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
        ("MERGE", "id", "AMBIGUOUS_REFERENCE"),
        ("MERGE", "max(s.v)", "UNSUPPORTED_EXPR_FOR_OPERATOR"),
        ("MERGE", "max(s.v) + t.v", "UNSUPPORTED_EXPR_FOR_OPERATOR"),
        ("UPDATE", "row_number() over (order by id)", "UNSUPPORTED_EXPR_FOR_OPERATOR"),
        ("UPDATE", "explode(array(1))", "UNSUPPORTED_EXPR_FOR_OPERATOR"),
        ("UPDATE", "rand()", "INVALID_NON_DETERMINISTIC_EXPRESSIONS"),
        ("UPDATE", "nosuch(1)", "UNRESOLVED_ROUTINE"),
        ("UPDATE", "v +", "PARSE_SYNTAX_ERROR"),
        ("UPDATE", "v.a", "INVALID_EXTRACT_BASE_FIELD_TYPE"),
    ],
)
def test_value_that_no_row_can_have_is_refused(
    spark: SparkSession, what: str, expression: str, condition: str
) -> None:
    target, _, joined = _sides(spark)
    scope = Scope(joined if what == "MERGE" else target, "tbl", what)
    with pytest.raises(DeltaError) as refused:
        scope.resolve_all(["1", expression], "SET clause")
    assert refused.value.condition == condition
    assert "tbl" in str(refused.value)


@pytest.mark.parametrize(
    ("what", "expression", "condition"),
    [
        ("DELETE", "v", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
        ("DELETE", "'true'", "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"),
        ("DELETE", "v in (select 1)", "DELTA_UNSUPPORTED_SUBQUERY"),
        ("DELETE", "rand() > 0.5", "INVALID_NON_DETERMINISTIC_EXPRESSIONS"),
        ("DELETE", "max(v) > 0", "UNSUPPORTED_EXPR_FOR_OPERATOR"),
        ("MERGE", "rand() > 0.5", "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED"),
        ("MERGE", "max(v) > 0", "DELTA_AGGREGATION_NOT_SUPPORTED"),
        ("MERGE", "exists(select 1)", "DELTA_UNSUPPORTED_SUBQUERY"),
    ],
)
def test_condition_that_is_none_is_refused(
    spark: SparkSession, what: str, expression: str, condition: str
) -> None:
    target, _, _ = _sides(spark)
    with pytest.raises(DeltaError) as refused:
        Scope(target, "tbl", what).predicate(expression, "condition")
    assert refused.value.condition == condition


def test_unknown_column_is_refused_with_the_columns_there_are(spark: SparkSession) -> None:
    target, _, _ = _sides(spark)
    with pytest.raises(SchemaError, match="`id`, `v`"):
        Scope(target, "tbl", "MERGE").resolve("idd", "condition")


def test_values_of_a_merge_may_differ_each_time_but_not_those_of_an_update(spark: SparkSession) -> None:
    target, _, _ = _sides(spark)
    assert Scope(target, "tbl", "MERGE").resolve("cast(rand() * 10 as int)", "values").type == INTEGER
    assert Scope(target, "tbl", "UPDATE").resolve("(select 3)", "values").type == INTEGER
    with pytest.raises(UnsupportedOperationError):
        Scope(target, "tbl", "UPDATE").resolve("rand()", "values")
