"""VACUUM LITE: the log instead of a listing, the mark it leaves, and when it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.commands.vacuum import vacuum
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.kernel.commands.vacuum_tables import (
    NOW,
    add,
    age,
    cdc,
    commit,
    files,
    new_table,
    put,
    remove,
    texts_of,
)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Three files, removed 500, 300 and 3 hours ago; one that was never committed; a change file."""
    table = new_table(tmp_path)
    for name in ("a", "b", "c", "live", "orphan", "_change_data/x"):
        put(tmp_path, name)
    commit(table, 900, *(add(name) for name in ("a", "b", "c", "live")))
    commit(table, 500, remove("a", 500), cdc("_change_data/x"))
    commit(table, 300, remove("b", 300))
    commit(table, 3, remove("c", 3))
    return table


def lite(table: TableBuilder, hours: float | None = None, **how: Any) -> set[str]:
    result = vacuum(DeltaLog(table.path), hours, mode="lite", now_ms=NOW, retention_check=False, **how)
    return texts_of(result.paths)


def mark(table: TableBuilder) -> Any:
    return json.loads((table.log / "_last_vacuum_info").read_text())


def test_what_the_log_removed_before_the_horizon_goes(table: TableBuilder) -> None:
    assert lite(table) == {"a", "b", "_change_data/x"}
    assert files(table.path) == {"c", "live", "orphan"}
    assert mark(table) == {"latestCommitVersionOutsideOfRetentionWindow": 3}


def test_nothing_is_listed(table: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    log = DeltaLog(table.path)

    def refuse(*args: Any) -> None:
        raise AssertionError("listed")

    monkeypatch.setattr(log.storage, "list_below", refuse)
    assert vacuum(log, mode="lite", now_ms=NOW).num_files == 3


def test_the_next_one_looks_only_at_what_came_since(table: TableBuilder) -> None:
    assert lite(table, 400) == {"a", "_change_data/x"}
    assert mark(table) == {"latestCommitVersionOutsideOfRetentionWindow": 2}
    assert lite(table, 1) == {"b", "c"}
    assert lite(table, 1) == set()


def test_a_full_one_leaves_the_mark_too_and_none_goes_back(table: TableBuilder) -> None:
    vacuum(DeltaLog(table.path), 1, retention_check=False, now_ms=NOW)
    assert mark(table) == {"latestCommitVersionOutsideOfRetentionWindow": 4}
    assert files(table.path) == {"live"}
    assert lite(table, 400) == set()
    assert mark(table) == {"latestCommitVersionOutsideOfRetentionWindow": 4}


def test_without_a_version_before_the_horizon_nothing_goes(table: TableBuilder) -> None:
    assert lite(table, 6000) == set()
    assert not (table.log / "_last_vacuum_info").exists()


def test_a_log_that_does_not_reach_back_is_refused(table: TableBuilder) -> None:
    DeltaLog(table.path).checkpoint()
    table.commit_file(0).unlink()
    table.commit_file(1).unlink()
    with pytest.raises(UnsupportedOperationError) as error:
        lite(table)
    assert error.value.condition == "DELTA_CANNOT_VACUUM_LITE"
    assert DeltaLog(table.path).snapshot().version == 4
    assert files(table.path) >= {"a", "b", "c"}


@pytest.mark.parametrize(("version", "fine"), [(1, True), (2, True), (0, False)])
def test_a_shortened_log_will_do_where_the_mark_is_recent_enough(
    table: TableBuilder, version: int, fine: bool
) -> None:
    DeltaLog(table.path).checkpoint()
    table.commit_file(0).unlink()
    table.commit_file(1).unlink()
    (table.log / "_last_vacuum_info").write_text(
        json.dumps({"latestCommitVersionOutsideOfRetentionWindow": version})
    )
    if fine:
        assert lite(table, 1) == ({"a", "b", "c", "_change_data/x"} if version == 1 else {"b", "c"})
    else:
        with pytest.raises(UnsupportedOperationError, match="full VACUUM"):
            lite(table, 1)


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"latestCommitVersionOutsideOfRetentionWindow": true}']
)
def test_a_mark_that_says_nothing_is_none(table: TableBuilder, content: str) -> None:
    (table.log / "_last_vacuum_info").write_text(content)
    assert lite(table) == {"a", "b", "_change_data/x"}


def test_the_files_of_deletion_vectors_go_too(tmp_path: Path) -> None:
    table = new_table(tmp_path, reader_features=["deletionVectors"], writer_features=["deletionVectors"])
    put(tmp_path, "a")
    first = table.deletion_vector([1])
    (file,) = tmp_path.glob("deletion_vector_*")
    age(file, 1000)
    commit(table, 900, add("a", deletionVector=first))
    commit(
        table,
        500,
        remove("a", 500, deletionVector=first),
        add("a", deletionVector=table.deletion_vector([1, 2])),
    )
    assert lite(table) == {file.name}
    assert "a" in files(tmp_path)
