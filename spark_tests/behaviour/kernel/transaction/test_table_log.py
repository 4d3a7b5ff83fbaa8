"""A handle that follows the log reads only what is new, and is never wrong about it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import CorruptLogFileError, NotADeltaTableError
from delta_ds.kernel.storage.local import LocalStorage
from delta_ds.kernel.transaction.table_log import Current
from spark_tests.behaviour.kernel.transaction.tables import (
    add,
    info,
    make_table,
    metadata,
    read_commit,
    write_commit,
)
from spark_tests.full_form import examples


def test_own_commits_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_table(tmp_path)
    log.start_transaction().add(add("a", 1)).commit("WRITE", post_commit=False)
    read: list[str] = []
    original = LocalStorage.read
    monkeypatch.setattr(LocalStorage, "read", lambda self, path: read.append(path) or original(self, path))
    assert log.start_transaction().add(add("b", 1)).commit("WRITE", post_commit=False) == 2
    assert log.start_transaction().read_version == 2
    assert read == []


def test_commits_of_others_are_seen_with_their_metadata(tmp_path: Path) -> None:
    log = make_table(tmp_path)
    log.start_transaction()
    write_commit(
        tmp_path, 1, [info(blind=True), {"metaData": metadata({"k": "v"}).to_action()}, {"add": add("a", 1)}]
    )
    transaction = log.start_transaction()
    assert (transaction.read_version, transaction.metadata.configuration) == (1, {"k": "v"})
    assert transaction.scan().num_files == 1


def test_table_that_was_made_anew_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    log = make_table(tmp_path / "t", [add("old", 1)])
    log.start_transaction().commit("Manual Update")
    assert log.start_transaction().read_version == 1
    shutil.rmtree(tmp_path / "t")
    with pytest.raises(NotADeltaTableError):
        log.start_transaction()
    make_table(tmp_path / "t", [add("new", 1)])
    assert log.start_transaction().scan().files()["path"].to_pylist() == ["new"]
    write_commit(tmp_path / "t", 1, [info(blind=True)])
    assert log.start_transaction().scan().files()["path"].to_pylist() == ["new"]


def test_torn_commit_is_named(tmp_path: Path) -> None:
    log = make_table(tmp_path)
    log.start_transaction()
    (tmp_path / "_delta_log" / f"{1:020d}.json").write_text('{"add":{"pa')
    with pytest.raises(CorruptLogFileError, match="00001.json"):
        log.start_transaction()


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.sampled_from(["append", "read", "other", "property", "remove", "scan"]), max_size=14))
def test_what_a_handle_follows_equals_the_table_opened_anew(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    path = tmp_path_factory.mktemp("table")
    log = make_table(path, configuration={"delta.checkpointInterval": "3"})
    for number, step in enumerate(steps):
        transaction = log.start_transaction()
        if step == "append":
            transaction.add(add(f"f{number}", 1)).set_txn("app", number).commit("WRITE")
        elif step == "other":
            write_commit(
                path, transaction.read_version + 1, [info(blind=True), {"add": add(f"o{number}", 2)}]
            )
        elif step == "property":
            transaction.set_metadata(metadata({"delta.checkpointInterval": "3", "n": str(number)})).commit(
                "SET TBLPROPERTIES"
            )
        elif step == "remove":
            transaction.remove_live().commit("DELETE")
        elif step == "scan":
            transaction.scan().files()
        found, anew = log.start_transaction().base, DeltaLog(path).open_snapshot()
        assert found is not None
        assert (found.version, found.metadata, found.protocol) == (anew.version, anew.metadata, anew.protocol)
        if step in ("remove", "scan", "read"):
            assert sorted(found.live_files().table["path"].to_pylist()) == sorted(
                anew.live_files().table["path"].to_pylist()
            )
            assert (found.txns, found.domains) == (anew.txns, anew.domains)
    assert read_commit(path, 0)


def test_quick_look_lists_nothing_and_sees_what_a_listing_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_table(tmp_path / "t")
    known = log.open_snapshot()
    current = Current(log.storage, known)
    with monkeypatch.context() as quiet:
        quiet.setattr(LocalStorage, "list_from", None)
        assert current.snapshot(quick=True) is known
    write_commit(tmp_path / "t", 1, [info(blind=True)])
    assert current.snapshot(quick=True).version == 1
    shutil.rmtree(tmp_path / "t")
    with pytest.raises(NotADeltaTableError):
        current.snapshot(quick=True)
    make_table(tmp_path / "t", [add("new", 1)])
    write_commit(tmp_path / "t", 1, [info(blind=True)])
    assert current.snapshot(quick=True).live_files().table["path"].to_pylist() == ["new"]
