"""Paths to columns: as Spark SQL writes them, found ignoring case, also inside arrays and maps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.exceptions import SchemaError
from delta_ds.kernel.format.schema.column_paths import (
    Path,
    find,
    parse_path,
    parse_path_list,
    quote,
    resolve,
    show,
)
from delta_ds.kernel.format.schema.types import LONG, ArrayType, MapType, StructType, walk
from spark_tests.behaviour.kernel.format.schema.schemas import SCHEMAS, struct
from spark_tests.full_form import examples

TABLE = struct(
    id="long", s=struct(a="integer", B="string"), l=ArrayType(struct(x="integer")), m=MapType(LONG, struct(k="date"))
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a", ("a",)),
        ("s.a", ("s", "a")),
        ("`a.b`", ("a.b",)),
        ("s.`x``y`.z", ("s", "x`y", "z")),
        ("`e f`", ("e f",)),
        ("ünï", ("ünï",)),
    ],
)
def test_name_in_sql_is_split_into_its_parts(text: str, path: Path) -> None:
    assert parse_path(text) == path


@pytest.mark.parametrize("text", ["", "a.", ".a", "a..b", "`a", "`a`b", "a`b`"])
def test_text_that_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_path(text)
    assert caught.value.condition == "PARSE_SYNTAX_ERROR"


@given(st.lists(st.text(min_size=1), min_size=1).map(tuple))
def test_quoted_path_reads_as_itself(path: Path) -> None:
    assert parse_path(quote(path)) == path


@given(st.lists(st.lists(st.text(min_size=1), min_size=1).map(tuple)))
def test_list_of_quoted_paths_reads_as_itself(paths: list[Path]) -> None:
    assert parse_path_list(",".join(map(quote, paths))) == paths


@pytest.mark.parametrize(
    ("path", "exact"),
    [
        (("ID",), ("id",)),
        (("S", "b"), ("s", "B")),
        (("L", "element", "X"), ("l", "element", "x")),
        (("m", "value", "K"), ("m", "value", "k")),
        (("m", "key"), ("m", "key")),
    ],
)
def test_column_is_found_in_any_case(path: Path, exact: Path) -> None:
    assert resolve(TABLE, path, "T")[0] == exact


@pytest.mark.parametrize(
    ("path", "condition", "part"),
    [
        (("idd",), "UNRESOLVED_COLUMN.WITH_SUGGESTION", "did you mean 'id'"),
        (("s", "aa"), "UNRESOLVED_COLUMN.WITH_SUGGESTION", "did you mean 's.a'"),
        (("nosuch",), "UNRESOLVED_COLUMN.WITH_SUGGESTION", "there are: id, s, l, m"),
        (("nosuch", "x"), "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nosuch.x"),
        (("id", "x"), "INVALID_FIELD_NAME", "of type long"),
        (("l", "x"), "INVALID_FIELD_NAME", "l.element"),
        (("m", "k"), "INVALID_FIELD_NAME", "m.value"),
    ],
)
def test_missing_column_is_named_with_what_there_is(path: Path, condition: str, part: str) -> None:
    with pytest.raises(SchemaError) as caught:
        resolve(TABLE, path, "T")
    assert caught.value.condition == condition
    assert part in str(caught.value)


def test_a_column_of_a_table_without_columns_is_missing_without_a_suggestion() -> None:
    with pytest.raises(SchemaError, match="T has no column 'id', as it has no columns") as caught:
        resolve(StructType(), ("id",), "T")
    assert caught.value.condition == "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"


@settings(max_examples=examples(40))
@given(SCHEMAS)
def test_every_field_of_a_walk_is_found_at_its_path(schema: StructType) -> None:
    for path, field in walk(schema):
        assert find(schema, path) == (path, field), show(path)
