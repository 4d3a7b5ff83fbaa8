"""`char(n)` columns: what they are compared with is padded as they are, as Spark does and nowhere else."""

from __future__ import annotations

import operator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.evaluate import evaluate
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.expressions.tree import Call, Column, Expression, Literal
from delta_ds.kernel.format.schema.types import STRING, StructField, StructType
from spark_tests.full_form import examples


def declared(name: str, text: str, kind: Any = STRING) -> StructField:
    return StructField(name, kind, True, {"__CHAR_VARCHAR_TYPE_STRING": text})


SCHEMA = StructType(
    (
        declared("c", "char(5)"),
        declared("d", "char(3)"),
        declared("v", "varchar(5)"),
        StructField("s", STRING),
        declared("st", "struct<c:char(5)>", StructType((StructField("c", STRING),))),
        StructField(
            "l",
            STRING,
            True,
            {"__CHAR_VARCHAR_TYPE_STRING": "char(5)", "__COLLATIONS": {"l": "spark.UTF8_LCASE"}},
        ),
    )
)


def bound(text: str, *, stored: bool = False) -> str:
    return str(bind(parse_predicate(text), SCHEMA, stored=stored))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c = 'ab'", "(c = 'ab   ')"),
        ("'ab' < C", "(c > 'ab   ')"),
        ("NOT c = 'ab'", "(c <> 'ab   ')"),
        ("c <=> 'ab'", "(c <=> 'ab   ')"),
        ("c = 'äöü'", "(c = 'äöü  ')"),
        ("c = ''", "(c = '     ')"),
        ("c = 'ab   '", "(c = 'ab   ')"),
        ("c = concat('a', 'b')", "(c = 'ab   ')"),
        ("c = 'ab      '", "(rpad(c, 8) = 'ab      ')"),
        ("c = d", "(c = rpad(d, 5))"),
        ("d >= c", "(rpad(d, 5) >= c)"),
        ("c = c", "(c = c)"),
        ("c IN ('ab', 'ab ', 'b')", "(c IN ('ab   ', 'b    '))"),
        ("c IN ('ab')", "(c = 'ab   ')"),
        ("c IN ('ab', 'abcdef')", "(rpad(c, 6) IN ('ab    ', 'abcdef'))"),
        ("c IN ('ab', NULL)", "(c IN ('ab   ', NULL))"),
        ("c IN (d, c)", "(c IN (rpad(d, 5), c))"),
        ("c <=> NULL", "(c IS NULL)"),
        ("CASE c WHEN 'ab' THEN true END", "CASE WHEN (c = 'ab   ') THEN TRUE END"),
    ],
)
def test_the_shorter_side_is_padded(text: str, expected: str) -> None:
    assert bound(text) == str(bind(parse_predicate(expected), StructType(tuple(map(plain, SCHEMA)))))


def plain(field: StructField) -> StructField:
    return StructField(field.name, field.type)


@pytest.mark.parametrize(
    "text",
    [
        "upper(c) = 'AB'",
        "c LIKE 'ab'",
        "startswith(c, 'ab')",
        "c = s",
        "c IN (s, 'ab')",
        "c IN (d, 'ab')",
        "'ab' IN (c, d)",
        "c = 5",
        "v = 'ab'",
        "s = 'ab'",
        "st.c = 'ab'",
        "l = 'ab'",
        "c IS NULL",
    ],
)
@pytest.mark.parametrize("stored", [False, True])
def test_nothing_else_is_padded(text: str, stored: bool) -> None:
    assert bound(text, stored=stored) == str(
        bind(parse_predicate(text), StructType(tuple(map(plain, SCHEMA))))
    )


OPERATORS = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
# Also what is less than a blank, and what is no byte of its own.
TEXTS = st.text("a\x01 äb", max_size=7)
OTHERS = st.one_of(TEXTS.map(Literal), st.just(Column(("d",))))


@settings(max_examples=examples(300), deadline=None)
@given(
    TEXTS,
    TEXTS,
    st.one_of(
        st.tuples(st.sampled_from(sorted(OPERATORS)), OTHERS.map(lambda o: [o])),
        st.tuples(st.just("in"), st.lists(TEXTS.map(Literal), min_size=1, max_size=4)),
    ),
)
def test_texts_compare_as_if_all_were_as_long_as_the_longest(
    c: str, d: str, comparison: tuple[str, list[Expression]]
) -> None:
    name, others = comparison
    c, d = c[:5], d[:3]
    predicate = Call(name, (Column(("c",)), *others))
    texts = [other.value if isinstance(other, Literal) else d for other in others]
    left, *right = (text.ljust(9) for text in (c, *texts))
    expected = any(OPERATORS["=" if name == "in" else name](left, text) for text in right)

    read = pa.RecordBatch.from_pydict({"c": [c.ljust(5)], "d": [d.ljust(3)]})
    stored = pa.RecordBatch.from_pydict({"c": [c], "d": [d]})
    assert evaluate(bind(predicate, SCHEMA), read).to_pylist() == [expected]
    for batch in (read, stored):
        assert evaluate(bind(predicate, SCHEMA, stored=True), batch).to_pylist() == [expected]
    for once in (bind(predicate, SCHEMA), bind(predicate, SCHEMA, stored=True)):
        assert bind(once, SCHEMA) == once
        assert str(bind(parse_predicate(str(once)), SCHEMA)) == str(once)
