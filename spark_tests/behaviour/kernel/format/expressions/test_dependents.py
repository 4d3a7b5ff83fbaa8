"""Which columns an expression of the table uses, as deep as it uses them."""

from __future__ import annotations

import pytest

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.dependents import (
    dependent_columns,
    dependent_constraints,
    referenced_columns,
)
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.schema.column_paths import Path
from delta_ds.kernel.format.schema.types import (
    INTEGER,
    LONG,
    STRING,
    ArrayType,
    MapType,
    StructField,
    StructType,
)
from spark_tests.behaviour.kernel.format.schema.schemas import struct

TABLE = struct(
    a="long", s=struct(x="long", y=struct(z="long")), l=ArrayType(struct(k="long")), n=ArrayType(LONG),
    m=MapType(STRING, struct(v="long")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("a > 1 and s.x = 2", {("a",), ("s", "x")}),
        ("length(cast(s.y.z as string)) > a", {("s", "y", "z"), ("a",)}),
        ("size(n) > 0", {("n",)}),
        ("n[a] > 0", {("n", "element"), ("a",)}),
        ("l[0].k > 0", {("l", "element", "k")}),
        ("m['q'].v > 0", {("m", "value", "v"), ("m", "key")}),
    ],
)
def test_columns_of_an_expression_are_found(text: str, paths: set[Path]) -> None:
    assert set(referenced_columns(parse_predicate(text), TABLE)) == paths


@pytest.mark.parametrize(
    ("path", "used"),
    [
        (("s",), True),
        (("S", "X"), True),
        (("s", "y"), False),
        (("a",), False),
        (("s", "x", "deeper"), True),
    ],
)
def test_constraint_depends_on_the_column_and_what_it_is_in(path: Path, used: bool) -> None:
    found = dependent_constraints(
        TABLE, {"delta.constraints.k": "s . x > 0", "delta.appendOnly": "true"}, path
    )
    assert found == ({"k": "s . x > 0"} if used else {})


def test_generated_column_depends_on_its_sources_not_on_itself() -> None:
    generated = StructField("g", INTEGER, True, {"delta.generationExpression": "a % 7"})
    table = StructType((*TABLE.fields, generated))
    assert dependent_columns(table, ("A",)) == {"g": "a % 7"}
    assert dependent_columns(table, ("g",)) == {}


def test_expression_that_is_not_understood_is_named() -> None:
    with pytest.raises(PredicateError, match="constraint k uses column a"):
        dependent_constraints(TABLE, {"delta.constraints.k": "a in (select 1)"}, ("a",))
