"""Spark SQL text to trees: the grammar, literals, and refusals that say what is wrong."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.expressions.tree import Call, Column, Literal


def constant_of(text: str) -> Any:
    node = parse_predicate(text)
    assert isinstance(node, Literal)
    return node.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"'a'", "a"),
        (r"'it''s'", "it's"),
        (r"'it\'s'", "it's"),
        ('"d\'q"', "d'q"),
        (r'"say ""x"""', 'say "x"'),
        ("'x' 'y'", "xy"),
        (r"'x\ty\n'", "x\ty\n"),
        (r"'\u00e9\101\q'", "éAq"),
        (r"'100\%\_'", "100\\%\\_"),
        (r"r'a\nb'", r"a\nb"),
        ("'-- no comment /* nor this'", "-- no comment /* nor this"),
        ("'a' -- it's over", "a"),
        ("'a' /* 'b' */", "a"),
        (r"'\\'", "\\"),
        (r"'\ud83d\ude00'", "😀"),
        (r"'\U0001F600'", "😀"),
        ("'1.5BD'", "1.5BD"),
        ("''", ""),
        ("'a\nb'", "a\nb"),
    ],
)
def test_string_literals_are_unescaped_as_spark_does(text: str, expected: str) -> None:
    assert constant_of(text) == expected


@pytest.mark.parametrize(
    ("text", "value", "type_name"),
    [
        ("42", 42, "integer"),
        ("2147483648", 2147483648, "long"),
        ("-2147483648", -2147483648, "integer"),
        ("42L", 42, "long"),
        ("-9223372036854775808L", -(2**63), "long"),
        ("-128Y", -128, "byte"),
        ("7S", 7, "short"),
        ("1.50", Decimal("1.50"), "decimal(3,2)"),
        ("1.5BD", Decimal("1.5"), "decimal(2,1)"),
        ("-5bd", Decimal(-5), "decimal(1,0)"),
        ("0.001BD", Decimal("0.001"), "decimal(3,3)"),
        (".5", Decimal("0.5"), "decimal(1,1)"),
        ("1e308", 1e308, "double"),
        ("1.5D", 1.5, "double"),
        ("-1.5F", -1.5, "float"),
        ("CAST(1 AS tinyint)", 1, "byte"),
        ("CAST(1000000 AS decimal(10,0))", Decimal(1000000), "decimal(10,0)"),
        ("X'4142'", b"AB", "binary"),
        ("x'1'", b"\x01", "binary"),
        ("TRUE", True, "boolean"),
        ("NULL", None, "void"),
    ],
)
def test_literals_have_the_types_of_their_spelling(text: str, value: Any, type_name: str) -> None:
    node = parse_predicate(text)
    assert isinstance(node, Literal)
    assert node.value == value
    assert str(node.type) == type_name


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("s.t.b", ("s", "t", "b")),
        ("a.b.c.d.e.f", ("a", "b", "c", "d", "e", "f")),
        ("`tab\tnl\nx`", ("tab\tnl\nx",)),
        ("`s t`.`de.ep`.`q=1`", ("s t", "de.ep", "q=1")),
        ("`tick``s`", ("tick`s",)),
        ("`it's`", ("it's",)),
        ("date", ("date",)),
        ("desc", ("desc",)),
        ("comment", ("comment",)),
        ("`select`", ("select",)),
        ("_1", ("_1",)),
        ("日付", ("日付",)),
    ],
)
def test_column_names_are_read_verbatim(text: str, path: tuple[str, ...]) -> None:
    assert parse_predicate(f"{text} = 1") == Call("=", (Column(path), parse_predicate("1")))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("a = 1 OR b = 2 AND NOT c = 3", "((a = 1) OR ((b = 2) AND (NOT (c = 3))))"),
        ("a BETWEEN 1 AND 2 AND b", "((a >= 1) AND (a <= 2) AND b)"),
        ("a NOT IN (1, NULL)", "(NOT (a IN (1, NULL)))"),
        ("a IS NOT NULL", "(a IS NOT NULL)"),
        ("a IS NOT TRUE", "(NOT (a <=> TRUE))"),
        ("a == 1 AND b != 2", "((a = 1) AND (b <> 2))"),
        ("a IS DISTINCT FROM b", "(NOT (a <=> b))"),
        ("!a", "(NOT a)"),
        ("a NOT LIKE 'x!%' ESCAPE '!'", "(NOT (a LIKE 'x!%' ESCAPE '!'))"),
        ("a REGEXP 'x' AND regexp_like(b, 'y')", "(rlike(a, 'x') AND rlike(b, 'y'))"),
        ("day(d) + -1 > 2", "((dayofmonth(d) + -1) > 2)"),
        ("arr[0] = 3 AND m['k'].x = 1", "((arr[0] = 3) AND (m['k'].x = 1))"),
        ("IF(a, b, c)", "CASE WHEN a THEN b ELSE c END"),
        ("double('NaN')", "CAST('NaN' AS double)"),
        ("TIMESTAMP'2024-01-01 00:00:00' <= ts", "(CAST('2024-01-01 00:00:00' AS timestamp) <= ts)"),
        ("x & 3 | 4", "((x & 3) | 4)"),
        ("f(x).y = 1", "(f(x).y = 1)"),
        ("a || b || 'c' = 'x'", "(concat(concat(a, b), 'c') = 'x')"),
    ],
)
def test_grammar_gives_canonical_trees(text: str, canonical: str) -> None:
    parsed = parse_predicate(text)
    assert str(parsed) == canonical
    assert parse_predicate(canonical) == parsed


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "SQL text"),
        ("a = ", "near '=': something is missing there"),
        ("a = 1)", "cannot parse"),
        ("a b c", "cannot parse"),
        ("a = 1; DROP TABLE t", "cannot parse"),
        ("a IN ()", "IN needs a list"),
        ("a IN (SELECT 1)", "IN needs a list"),
        ("EXISTS (SELECT 1)", "outside the SQL"),
        ("exists(a, x -> x > 1)", "outside the SQL"),
        ("sum(a) OVER () > 1", "outside the SQL"),
        ("a LIKE ANY ('x', 'y')", "ANY and ALL"),
        ("CAST(a AS array<int>) IS NULL", "cannot cast"),
        ("a | b & c = 1", "parentheses"),
        ("a = b < c", "parentheses"),
        ("1e999 = a", "beyond the range"),
        ("1234567890123456789012345678901234567890 = a", "38 digits"),
        ("a IS 5", "IS takes"),
        ("t.* = 1", "outside the SQL"),
        ("a = 1; b = 2", "one expression"),
        ("(" * 3000 + "a" + ")" * 3000, "nested too deeply"),
    ],
)
def test_text_outside_the_grammar_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(PredicateError, match=named):
        parse_predicate(text)


def test_long_chains_of_or_are_read_without_deep_recursion() -> None:
    parsed = parse_predicate(" OR ".join(f"i = {n}" for n in range(1500)))
    assert isinstance(parsed, Call)
    assert len(parsed.args) == 1500


def test_binding_and_evaluation_import_neither_sqlglot_nor_pandas() -> None:
    code = """
import sys, datetime
from delta_ds.kernel.format.expressions import generated
from delta_ds.kernel.format.expressions.arrays import array_of
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.evaluate import evaluate
from delta_ds.kernel.format.expressions.tree import Call, Column, Literal
from delta_ds.kernel.format.schema.types import *
import pyarrow as pa
schema = StructType((StructField("i", INTEGER), StructField("t", TIMESTAMP), StructField("s", STRING)))
moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
arrays = [array_of([1, None], INTEGER), array_of([moment] * 2, TIMESTAMP), array_of(["a", "b"], STRING)]
parts = [Call(">", (Column(("I",)), Literal("0"))), Call("=", (Call("year", (Column(("t",)),)), Literal(2024))),
         Call("<", (Column(("t",)), Literal(datetime.date(2025, 1, 1)))), Call("like", (Column(("s",)), Literal("a%")))]
bound = bind(Call("and", tuple(parts)), schema, "Europe/Paris")
evaluate(bound, pa.RecordBatch.from_arrays(arrays, ["i", "t", "s"]))
loaded = {"sqlglot", "pandas", "pyspark", "pyarrow.dataset", "pyarrow.acero"} & sys.modules.keys()
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
