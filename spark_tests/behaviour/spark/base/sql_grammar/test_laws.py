"""Laws of the grammar, on random statements and texts."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.spark.base.sql_grammar.grammar import HEADS, parse
from delta_ds.spark.base.sql_grammar.statements import Statement
from delta_ds.spark.base.sql_grammar.tokens import SqlSyntaxError, Tokens
from spark_tests.behaviour.spark.base.sql_grammar.test_grammar import FORMS, OF_SPARK, WRONG
from spark_tests.full_form import examples

GAPS = st.sampled_from(
    [
        " ",
        "\n",
        "\t \r\n",
        "\u3000",
        "/**/",
        " /* it's */ ",
        "-- don't; `\n",
        "/* a /* nested */ b */",
        "--x\\\ny\r",
    ]
    + ["/*+ hint */"]
)
SPACES = re.compile(r"""('[^']*'|"[^"]*"|`[^`]*`|--[^\n]*\n|/\*.*?\*/)|(\s+)|([A-Za-z]\w*)""", re.DOTALL)
PIECES = [
    "'",
    '"',
    "`",
    "/*",
    "*/",
    "--",
    "\n",
    "\\",
    "(",
    ")",
    ";",
    ".",
    ",",
    " ",
    ":a",
    "?",
    "::",
    "r'",
    "1e5",
    "é",
]
WORDS = sorted({word for text, _ in FORMS for word in re.findall(r"\w+", text)})


KEYWORDS = frozenset(
    [
        "OPTIMIZE",
        "WHERE",
        "ZORDER",
        "BY",
        "REORG",
        "TABLE",
        "APPLY",
        "PURGE",
        "VACUUM",
        "RETAIN",
        "HOURS",
        "DRY",
        "RUN",
    ]
    + ["USING", "INVENTORY", "DESCRIBE", "DESC", "HISTORY", "LIMIT", "RESTORE", "TO", "VERSION", "AS", "OF"]
    + [
        "TIMESTAMP",
        "CONVERT",
        "DELTA",
        "NO",
        "STATISTICS",
        "PARTITIONED",
        "GENERATE",
        "FOR",
        "CREATE",
        "SHALLOW",
    ]
    + [
        "REPLACE",
        "TBLPROPERTIES",
        "LOCATION",
        "ALTER",
        "ADD",
        "CONSTRAINT",
        "CHECK",
        "DROP",
        "IF",
        "EXISTS",
        "FEATURE",
    ]
    + [
        "TRUNCATE",
        "CLUSTER",
        "NONE",
        "CHANGE",
        "IDENTITY",
        "UPGRADE",
        "UNIFORM",
        "ICEBERG_COMPAT_VERSION",
        "LITE",
    ]
)
KEPT = ("where", "inventory", "partition_columns", "expression")
NAMES = frozenset(
    ["t", "s", "a", "b", "c", "id", "x", "y", "z", "delta", "parquet", "symlink_format_manifest"]
)


@st.composite
def printed(draw: st.DrawFn) -> tuple[str, Statement]:
    """A statement in another case, with other space and comments and other quotes of names, and its record."""
    text, record = draw(st.sampled_from(FORMS))
    # What is kept for Spark stays as it is, or the record would be another one.
    kept = next((str(part) for name in KEPT if (part := getattr(record, name, None)) is not None), "\0")
    text = text.replace(kept, "\0", 1)

    def other(match: re.Match[str]) -> str:
        quoted, space, word = match.groups()
        if quoted:
            return quoted
        if space:
            return draw(GAPS)
        if word not in KEYWORDS:
            return f"`{word}`" if word in NAMES and draw(st.booleans()) else word
        return "".join(draw(st.sampled_from((c.upper(), c.lower()))) for c in word)

    before = draw(st.sampled_from(["", " ", "/* {} */ -- x\n"]))
    after = draw(st.sampled_from(["", ";", " ; ; -- end"]))
    return before + SPACES.sub(other, text).replace("\0", kept) + after, record


def parsed(text: str) -> Statement | SqlSyntaxError | None:
    try:
        return parse(text, {"a": "1"})
    except SqlSyntaxError as error:
        assert 0 <= error.offset <= len(text)
        return error


@settings(max_examples=examples(400), deadline=None)
@given(printed())
def test_another_print_of_a_statement_is_the_same_record(case: tuple[str, Statement]) -> None:
    text, record = case
    assert parse(text) == record
    assert re.search(HEADS, text)


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(st.sampled_from([*WORDS, *PIECES, " "]), max_size=30).map("".join) | st.text(max_size=50))
def test_any_text_is_a_record_or_none_or_a_syntax_error(text: str) -> None:
    for whole in (text, f"OPTIMIZE {text}", f"ALTER TABLE {text}", f"CREATE TABLE a SHALLOW CLONE {text}"):
        assert parsed(whole) is None or re.search(HEADS, whole)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.sampled_from([*WORDS, *PIECES, " "]), max_size=30).map("".join) | st.text(max_size=50))
def test_tokens_are_the_text_in_order(text: str) -> None:
    tokens, end = Tokens(text), 0
    while (token := tokens.token()).kind != "end":
        assert token.start >= end
        assert text[token.start : token.end] == token.text != ""
        end = token.end
        tokens.at += 1


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from(OF_SPARK), st.sampled_from(["", "\n", "/* VACUUM t */", "-- OPTIMIZE\n"]))
def test_comments_make_no_statement_of_a_text_of_spark(text: str, before: str) -> None:
    assert parse(before + text) is None


@pytest.mark.parametrize("text", [text for text, _, _ in WRONG])
def test_what_is_wrong_has_a_head_too(text: str) -> None:
    assert re.search(HEADS, text)


LONG = [
    "\n",
    " ",
    "create ",
    "--\n",
    "/*",
    "*/",
    "\nalter \n",
    "create\n",
    "'\\'",
    "/* ",
    "(a ",
    "1",
    "a.",
    "`",
    "''",
]


@pytest.mark.parametrize("piece", LONG)
def test_long_texts_take_a_time_linear_in_their_length(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    start = time.process_time()
    re.search(HEADS, text)
    parsed(text)
    parsed(f"OPTIMIZE t WHERE {text}")
    # Quadratic, it would be minutes.
    assert time.process_time() - start < 5
