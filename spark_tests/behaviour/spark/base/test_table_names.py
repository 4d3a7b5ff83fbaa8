"""Names of tables by path, and names of columns as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_ds.kernel.format.options.write import parse_write_options
from delta_ds.spark.base.schema import quoted_list
from delta_ds.spark.base.table_names import is_ours, path_of


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("pydelta.`/p`", "/p"),
        ("PyDelta . `/p q`", "/p q"),
        ("`pydelta`.`/p`", "/p"),
        ("spark_catalog.pydelta.`/p`", "/p"),
        ("pydelta.`/a``b`", "/a`b"),
        ("pydelta.`s3://bucket/p.v1`", "s3://bucket/p.v1"),
    ],
)
def test_table_by_path_is_found(name: str, path: str) -> None:
    assert path_of(name) == path


@pytest.mark.parametrize(
    "name",
    [
        "sales",
        "pydelta.sales",
        "delta.`/p`",
        "other.pydelta.`/p`",
        "pydelta.`/p`.x",
        "pydelta.``",
        "",
        None,
        7,
    ],
)
def test_any_other_name_is_left_to_spark(name: object) -> None:
    assert path_of(name) is None


def test_format_is_known_in_any_case() -> None:
    assert [is_ours(name) for name in ("pydelta", "PyDelta", "delta", None)] == [True, True, False, False]


names = st.text(min_size=1, max_size=8)


@given(st.lists(names, min_size=1, max_size=4, unique_by=str.lower))
def test_quoted_names_are_read_back_whatever_they_hold(columns: list[str]) -> None:
    options = parse_write_options({"path": "/p", "partitionBy": quoted_list(columns)}, overwrite=False)
    assert options.partition_by == tuple(columns)
