"""The word DEFAULT in the rows of an INSERT."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.spark.base.sql_grammar.literals import with_defaults
from spark_tests.full_form import examples


def marked(query: str) -> str:
    return with_defaults(query, lambda place: f"<{place}>")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("VALUES (1, DEFAULT), (default, 3) AS t(a, b)", "VALUES (1, <1>), (<0>, 3) AS t(a, b)"),
        ("VALUES DEFAULT, 2", "VALUES <0>, 2"),
        ("((VALUES (DEFAULT)))", "((VALUES (<0>)))"),
        ("SELECT 1, DEFAULT AS x, DEFAULT y, DEFAULT", "SELECT 1, <1> AS x, <2> y, <3>"),
        ("(SELECT DISTINCT DEFAULT, a IS DISTINCT FROM b, DEFAULT FROM r, DEFAULT)",
         "(SELECT DISTINCT <0>, a IS DISTINCT FROM b, <2> FROM r, DEFAULT)"),
        ("SELECT * FROM VALUES (1, DEFAULT)", "SELECT * FROM VALUES (1, <1>)"),
        ("SELECT CASE WHEN x THEN DEFAULT END, DEFAULT ORDER BY 1, 2 LIMIT 1",
         "SELECT CASE WHEN x THEN DEFAULT END, <1> ORDER BY 1, 2 LIMIT 1"),
        ("SELECT 1 -- DEFAULT\n, /* DEFAULT */ DEFAULT", "SELECT 1 -- DEFAULT\n, /* DEFAULT */ <1>"),
    ],
)  # fmt: skip
def test_it_stands_for_the_column_of_its_place(query: str, expected: str) -> None:
    assert marked(query) == expected


@pytest.mark.parametrize(
    "query",
    [
        "TABLE default",
        "SELECT * FROM default",
        "WITH default AS (SELECT 1) SELECT * FROM default",
        "SELECT `default`, default.x, default(1), DEFAULT IS NULL, 'DEFAULT', DEFAULT + 1",
        "VALUES (upper(DEFAULT), array(DEFAULT), CAST(DEFAULT AS INT), -DEFAULT, NOT DEFAULT)",
        "SELECT 1 FROM t WHERE a = DEFAULT",
        "VALUES (DEFAULT",
        "VALUES ('DEFAULT",
    ],
)
def test_elsewhere_it_is_spark_s(query: str) -> None:
    assert marked(query) == query


def test_beyond_the_columns_of_the_table_it_stays() -> None:
    assert (
        with_defaults("VALUES (DEFAULT, DEFAULT)", lambda place: None if place else "1")
        == "VALUES (1, DEFAULT)"
    )


_ROWS = st.lists(
    st.lists(st.sampled_from(["DEFAULT", "1", "'DEFAULT'", "f(DEFAULT, 2)", "a"]), min_size=1, max_size=4),
    min_size=1,
    max_size=3,
)


@settings(max_examples=examples(100), deadline=None)
@given(_ROWS, st.booleans())
def test_each_value_of_a_row_has_its_column(rows: list[list[str]], select: bool) -> None:
    def text(rows: list[list[str]]) -> str:
        if select:
            return f"SELECT {', '.join(rows[0])} FROM t"
        return "VALUES " + ", ".join(f"({', '.join(row)})" for row in rows)

    expected = [[f"<{at}>" if value == "DEFAULT" else value for at, value in enumerate(row)] for row in rows]
    assert marked(text(rows)) == text(expected)
