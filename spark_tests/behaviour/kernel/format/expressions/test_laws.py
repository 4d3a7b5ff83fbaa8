"""Laws over generated predicates: text and tree say the same, and so do `evaluate` and a row interpreter."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from delta_ds.kernel.format.expressions.arrays import array_of
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.evaluate import can_evaluate, evaluate
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.expressions.tree import Call, Column, Expression, Literal
from delta_ds.kernel.format.schema.types import StructType, arrow_schema
from spark_tests.behaviour.kernel.format.expressions.interpreter import interpret
from spark_tests.behaviour.kernel.format.expressions.trees import (
    CONSTANTS,
    EDGES,
    OPERATORS,
    PREDICATES,
    ROWS,
    SCHEMA,
)
from spark_tests.full_form import examples


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """The rows as a record batch of the test schema."""
    arrays = []
    for field in SCHEMA:
        values = [row[field.name] for row in rows]
        if isinstance(field.type, StructType):
            inner = [array_of([None if v is None else v[f.name] for v in values], f.type) for f in field.type]
            mask = pa.array([v is None for v in values])
            arrays.append(pa.StructArray.from_arrays(inner, names=field.type.names, mask=mask))
        else:
            arrays.append(array_of(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(SCHEMA))


@pytest.mark.parametrize("name", EDGES)
def test_every_comparison_of_edge_values_agrees_with_row_interpreter(name: str) -> None:
    rows = [dict.fromkeys(SCHEMA.names) | {name: value} for value in [*EDGES[name], None]]
    batch = batch_of(rows)
    for operator in OPERATORS:
        for constant in CONSTANTS[name]:
            predicate = Call(operator, (Column((name,)), Literal(constant)))
            bound = bind(predicate, SCHEMA)
            expected = [interpret(predicate, row) for row in rows]
            assert evaluate(bound, batch).to_pylist() == expected, f"{predicate} became {bound}"


@settings(max_examples=examples(300))
@given(PREDICATES, ROWS)
def test_evaluate_agrees_with_row_interpreter(predicate: Expression, rows: list[dict[str, Any]]) -> None:
    bound = bind(predicate, SCHEMA)
    assert can_evaluate(bound)
    assert evaluate(bound, batch_of(rows)).to_pylist() == [interpret(predicate, row) for row in rows]


@settings(max_examples=examples(150))
@given(PREDICATES, ROWS)
def test_text_of_bound_predicate_parses_to_the_same_meaning(
    predicate: Expression, rows: list[dict[str, Any]]
) -> None:
    bound, batch = bind(predicate, SCHEMA), batch_of(rows)
    again = bind(parse_predicate(str(bound)), SCHEMA)
    assert evaluate(again, batch).equals(evaluate(bound, batch))


@settings(max_examples=examples(150))
@given(PREDICATES)
def test_parsing_the_text_of_a_parsed_predicate_gives_it_back(predicate: Expression) -> None:
    parsed = parse_predicate(str(predicate))
    assert parse_predicate(str(parsed)) == parsed or "NaN" in str(parsed)
    assert str(parse_predicate(str(parsed))) == str(parsed)


@settings(max_examples=examples(150))
@given(PREDICATES)
def test_binding_twice_changes_nothing(predicate: Expression) -> None:
    bound = bind(predicate, SCHEMA)
    assert str(bind(bound, SCHEMA)) == str(bound)


@given(PREDICATES)
def test_bound_predicates_survive_pickling(predicate: Expression) -> None:
    bound = bind(predicate, SCHEMA)
    assert str(pickle.loads(pickle.dumps(bound))) == str(bound)
