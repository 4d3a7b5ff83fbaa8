"""`name=value` folders: what is written is read back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from delta_ds.kernel.format.values.partition_values import (
    NULL_DIRECTORY,
    escape,
    parse_partition_folders,
    partition_folder,
    unescape,
)

NAMES = st.text(min_size=1, max_size=8)
VALUES = st.none() | st.text(min_size=1, max_size=8).filter(lambda value: value != NULL_DIRECTORY)


@given(values=st.lists(st.tuples(NAMES, VALUES), min_size=1, max_size=4))
def test_folders_are_read_as_they_were_written(values: list[tuple[str, str | None]]) -> None:
    assert parse_partition_folders(partition_folder(values).split("/")) == values


@given(part=st.text(max_size=20))
def test_what_was_escaped_is_unescaped(part: str) -> None:
    escaped = escape(part)
    assert unescape(escaped) == part
    assert not set("/=\x00") & set(escaped)


def test_null_and_the_empty_text_are_one_folder() -> None:
    assert partition_folder([("a", None), ("b", "")]) == f"a={NULL_DIRECTORY}/b={NULL_DIRECTORY}"
    assert parse_partition_folders([f"a={NULL_DIRECTORY}", "b=", "c"]) == [("a", None), ("b", ""), ("c", "")]
