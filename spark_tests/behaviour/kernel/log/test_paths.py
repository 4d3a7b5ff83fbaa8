"""One canonical form of a path, by which everything that compares files compares them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds import DeltaLog
from delta_ds.exceptions import CommitFailedError, ConcurrentDeleteReadException
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.storage.uri import canonical_path, canonical_paths
from delta_ds.testing import TableBuilder
from spark_tests.full_form import examples

NAMES = st.text("ab %+:=?#é.", min_size=1, max_size=4).filter(lambda name: name not in (".", ".."))
FILES = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


def spellings(file: str, root: str) -> list[str]:
    """Texts that all name one file of a table."""
    encoded = quote(file)
    everything = "".join(f"%{byte:02X}" if byte != ord("/") else "/" for byte in file.encode())
    return [
        encoded,
        everything,
        everything.lower(),
        f"./{encoded}",
        f"x/../{encoded}",
        encoded.replace("/", "//"),
        f"{root}/{encoded}",
        f"file:{root}/{encoded}",
        f"file://{root}/{encoded}",
        f"file://localhost{root}/{everything}",
        f"{root}/./{encoded}",
    ]


@settings(max_examples=examples(200), deadline=None)
@given(FILES, FILES)
def test_all_spellings_of_a_file_have_one_form_and_two_files_two(file: str, other: str) -> None:
    storage = open_storage("/tmp/table")
    known = {canonical_path(text, storage) for text in spellings(file, "/tmp/table")}
    assert len(known) == 1
    if other != file:
        assert canonical_path(quote(other), storage) not in known


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(
        st.one_of(
            st.none(),
            FILES.flatmap(lambda file: st.sampled_from(spellings(file, "/tmp/table"))),
            st.sampled_from(
                ["", "..", "../x", "%ff", "s3://bucket/x%20y", "/", "a", "/elsewhere/%61", "p=1/%2E%2E/x"]
            ),
        ),
        max_size=6,
    )
)
def test_many_at_once_are_what_each_is_alone(paths: list[str | None]) -> None:
    storage = open_storage("/tmp/table")
    column = pa.chunked_array([pa.array(paths[:2], pa.string()), pa.array(paths[2:], pa.string())])
    wanted = [None if path is None else canonical_path(path, storage) for path in paths]
    assert canonical_paths(column, storage).to_pylist() == wanted


def test_a_link_to_the_tables_folder_is_another_spelling_of_it(tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "table")
    for opened, named in (("table", "link"), ("link", "table")):
        storage = open_storage(tmp_path / opened)
        assert canonical_path(f"file:{tmp_path}/{named}/p=1/a%20b", storage) == "p=1/a b"
    assert (
        canonical_path(f"file:{tmp_path}/other/a", open_storage(tmp_path / "link")) == f"{tmp_path}/other/a"
    )


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    builder = TableBuilder(tmp_path / "table")
    builder.create(pa.schema([("id", pa.int64())]))
    builder.commit(builder.write_file(pa.table({"id": [1, 2]}), path="a b.parquet"))
    return builder


def remove(path: str) -> dict[str, dict[str, object]]:
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}}


@pytest.mark.parametrize("number", range(1, 11))
def test_rows_that_another_spelling_removed_do_not_come_back(table: TableBuilder, number: int) -> None:
    rewritten = table.write_file(pa.table({"id": [2]}), path="rewritten.parquet")
    transaction = DeltaLog(table.path).start_transaction()
    transaction.scan("id = 1")
    transaction.remove_live().add(rewritten["add"])
    table.commit(remove(spellings("a b.parquet", str(table.path))[number]), operation="DELETE")
    assert DeltaLog(table.path).snapshot().scan().to_arrow().num_rows == 0
    with pytest.raises(ConcurrentDeleteReadException, match="a b.parquet"):
        transaction.commit("DELETE")


def test_one_commit_does_not_name_a_file_twice_in_two_spellings(table: TableBuilder) -> None:
    transaction = DeltaLog(table.path).start_transaction()
    for path in ("a%20b.parquet", f"file:{table.path}/a%20b.parquet"):
        transaction.remove(remove(path)["remove"])
    with pytest.raises(CommitFailedError, match="several times"):
        transaction.commit("DELETE")


def test_the_change_feed_pairs_a_file_with_itself_in_another_spelling(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "table")
    table.create(pa.schema([("id", pa.int64())]), properties={"delta.enableChangeDataFeed": "true"})
    add = table.write_file(pa.table({"id": [1, 2]}), path="a b.parquet")
    table.commit(add)
    version = table.commit(remove(f"file:{table.path}/a%20b.parquet"), add)
    assert DeltaLog(table.path).changes(version, version).to_arrow().num_rows == 0
