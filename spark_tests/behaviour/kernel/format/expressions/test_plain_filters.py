"""Plain filters become the tree that sqlglot's reading of them becomes, and everything else is left to it."""

from __future__ import annotations

import logging

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlglot.dialects.spark import Spark

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions import sql
from delta_ds.kernel.format.expressions.plain_sql import plain_filter
from spark_tests.full_form import examples

_NAMES = st.sampled_from(
    ["id", "day", "a.b", "`a b`.c", "`x``y`", "Ünused", "a.b.c.d.e", "user", "`date`", "f_1"]
)
_CONSTANTS = st.sampled_from(
    ["1", "-1", "- 1", "2147483648", "-2147483648", "-9223372036854775808", "92233720368547758080", "1.50", "-0.0",
     "-12.30", "00.5", "1.", ".5", "1e3", "5L", "'x'", "'it''s'", "'\\n'", "''", '"q"', "'é😀 -- /* `'", "'a' 'b'",
     "date'2024-01-01'", "DATE '2024-01-01'", "timestamp'2024-01-01 00:00:00'", "true", "NULL", "x'00'", "r'a'"]
)  # fmt: skip
_VALUES = _NAMES | _CONSTANTS
_OPERATORS = st.sampled_from(["=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>", "LIKE"])
_SPACES = st.sampled_from(["", " ", "\n", "  "])


@st.composite
def _conditions(draw: st.DrawFn) -> str:
    value, space = draw(_VALUES), draw(_SPACES)
    if draw(st.booleans()):
        return f"{value}{space}{draw(_OPERATORS)}{space}{draw(_VALUES)}"
    no = draw(st.sampled_from(["", " not", " NOT"]))
    return draw(
        st.sampled_from([
            value,
            f"{value} IS{no} null",
            f"{value}{no} in ({space}{', '.join(draw(st.lists(_VALUES, min_size=1, max_size=4)))})",
            f"{value}{no} BETWEEN {draw(_VALUES)} and {draw(_VALUES)}",
        ])
    )  # fmt: skip


_FILTERS = st.recursive(
    _conditions(),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" and ", " OR ", " AND ", "\nor\n"]), inner).map("".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"NOT {text}"),
    ),
    max_leaves=6,
)
_LOOSE = st.lists(
    st.sampled_from(["(", ")", ",", ".", "and", "or", "not", "is", "in", "between", "null", "-", "--", "+"])
    | _VALUES
    | _OPERATORS,
    max_size=8,
).flatmap(lambda parts: st.sampled_from([" ".join(parts), "".join(parts)]))


@given(_FILTERS | _LOOSE)
@settings(max_examples=examples(500), deadline=None)
@example("not a is null")
@example("a = 1 and b between 2 and 3 and (c = 4 and d = 5)")
@example("a = 1 = 2")
@example("id >= -1 -1")
def test_a_plain_filter_is_read_as_sqlglot_reads_it(text: str):
    found = plain_filter(text)
    if found is not None:
        assert repr(found) == repr(sql._parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "day = '2024-01-01'",
        "id BETWEEN 5 AND 10 and day in ('a', 'b')",
        "not (a.b is null or `c d` <> -1.5) and flag",
        "day >= DATE'2024-01-01'",
        "date <=> null",
        'day != "x"',
    ],
)
def test_what_most_filters_are_is_plain(text: str):
    found = plain_filter(text)
    assert repr(found) == repr(sql._parse(text))


def test_words_that_sqlglot_knows_are_columns_or_left_to_it(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.CRITICAL, "sqlglot")  # which warns of what it takes for commands
    words = {word for keyword in Spark.Tokenizer.KEYWORDS for word in keyword.split() if word.isidentifier()}
    assert len(words) > 100
    for word in sorted(words):
        for text in (
            f"{word} = 1",
            f"1 < {word.lower()}",
            f"x.{word} is null and {word} in (1)",
            f"not {word}",
        ):
            found = plain_filter(text)
            assert found is None or repr(found) == repr(sql._parse(text)), text


@pytest.mark.parametrize("text", ["a =", "a = 1 b", "(a = 1", "a in ()", "", "a between 1", "= 1", "a not 1"])
def test_what_is_no_sql_is_refused_in_the_words_of_the_parser(text: str):
    assert plain_filter(text) is None
    with pytest.raises(PredicateError):
        sql.parse_predicate(text)
