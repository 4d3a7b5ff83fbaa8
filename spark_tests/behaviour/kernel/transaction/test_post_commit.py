"""After a commit: its checksum file, checkpoints at the interval, clean-up after them; and no failure gets out."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_ds.kernel.format.actions import Metadata, Protocol
from delta_ds.kernel.log import checksum, cleanup
from delta_ds.kernel.log.snapshot import open_snapshot
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.transaction import post_commit
from delta_ds.kernel.transaction.post_commit import Committed, run
from delta_ds.testing import Action, TableBuilder
from spark_tests.full_form import examples

SCHEMA = pa.schema([("id", pa.int64())])


def _add(path: str, size: int = 10, **fields: Any) -> Action:
    body = {"path": path, "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}
    return {"add": {**body, **fields}}


def _remove(path: str, **fields: Any) -> Action:
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True, **fields}}


def _create(folder: Path, **properties: str) -> TableBuilder:
    table = TableBuilder(folder)
    # The builder's commits are years old; only clean-up's own tests are about that.
    table.create(SCHEMA, properties={"delta.logRetentionDuration": "interval 30000 days", **properties})
    _after(table)
    return table


def _commit(table: TableBuilder, *actions: Action, loaded: bool = False, **more: Any) -> None:
    previous = open_snapshot(open_storage(table.path)) if table.version >= 0 else None
    if previous is not None and loaded:
        previous.live_files()
    table.commit(*actions)
    _after(table, previous=previous, **more)


def _after(table: TableBuilder, **more: Any) -> None:
    storage = open_storage(table.path)
    snapshot = open_snapshot(storage, table.version)
    lines = table.commit_file(table.version).read_bytes().splitlines()
    facts: dict[str, Any] = {
        "state": snapshot.table_state, "actions": [json.loads(line) for line in lines],
        "previous": None, "in_commit_timestamp": None, **more,
    }  # fmt: skip
    run(storage, Committed(**facts))


def _crc(table: TableBuilder, version: int | None = None) -> dict[str, Any] | None:
    version = table.version if version is None else version
    file = table.log / f"{version:020d}.crc"
    return json.loads(file.read_text()) if file.exists() else None


def test_checksum_counts_up_from_commit_to_commit(tmp_path: Path) -> None:
    table = _create(tmp_path)
    _commit(table, _add("a", 10), _add("b", 5), {"txn": {"appId": "x", "version": 3, "lastUpdated": 9}})
    _commit(table, _remove("a", size=10), _add("c", 1), {"domainMetadata": _domain("d", "1", False)})
    assert _crc(table, 0) is not None and _crc(table, 1) is not None
    found = _crc(table) or {}
    metadata, protocol = found.pop("metadata"), found.pop("protocol")
    assert found == {
        "tableSizeBytes": 6, "numFiles": 2, "numMetadata": 1, "numProtocol": 1,
        "setTransactions": [{"appId": "x", "version": 3, "lastUpdated": 9}],
        "domainMetadata": [_domain("d", "1", False)],
    }  # fmt: skip
    snapshot = open_snapshot(open_storage(tmp_path))
    assert Metadata.from_action(metadata, "") == snapshot.metadata
    assert Protocol.from_action(protocol, "") == snapshot.protocol
    _commit(table, {"domainMetadata": _domain("d", "1", True)})
    assert (_crc(table) or {})["domainMetadata"] == []


def _domain(name: str, configuration: str, removed: bool) -> dict[str, Any]:
    return {"domain": name, "configuration": configuration, "removed": removed}


def test_checksum_has_the_commits_own_id_and_time(tmp_path: Path) -> None:
    table = _create(tmp_path)
    table.commit(_add("a"), txnId="the-id")
    _after(table, in_commit_timestamp=77)
    found = _crc(table) or {}
    assert (found["txnId"], found["inCommitTimestampOpt"]) == ("the-id", 77)


def test_checksum_is_never_overwritten(tmp_path: Path) -> None:
    table = _create(tmp_path)
    table.commit(_add("a"))
    (table.log / f"{1:020d}.crc").write_text("theirs")
    _after(table)
    assert (table.log / f"{1:020d}.crc").read_text() == "theirs"


@pytest.mark.parametrize(
    "actions",
    [
        [_remove("a")],
        [_add("a", dataChange=False)],
        [_add("a", dataChange=False), _add("b")],
        [_add("a", dataChange=False), _remove("c", size=1)],
    ],
)
def test_checksum_is_skipped_where_files_cannot_be_counted(
    tmp_path: Path, actions: list[Action], caplog: pytest.LogCaptureFixture
) -> None:
    table = _create(tmp_path)
    _commit(table, _add("a"))
    with caplog.at_level(logging.DEBUG, "delta_ds"):
        _commit(table, *actions)
    assert _crc(table) is None
    assert f"checksum_skipped table={tmp_path} version=2" in caplog.text


def test_checksum_starts_from_a_loaded_snapshot_where_the_one_before_is_missing(tmp_path: Path) -> None:
    table = _create(tmp_path)
    table.commit(_add("a", 3))
    _commit(table, _add("b", 4))
    assert _crc(table) is None
    _commit(table, _add("c", 5), loaded=True)
    found = _crc(table) or {}
    assert (found["numFiles"], found["tableSizeBytes"]) == (3, 12)


def test_removes_that_are_only_counted_count(tmp_path: Path) -> None:
    table = _create(tmp_path)
    _commit(table, _add("a", 3), _add("b", 4))
    table.commit(_remove("a", size=3), _remove("b", size=4), _add("c", 9))
    storage, snapshot = open_storage(tmp_path), open_snapshot(open_storage(tmp_path))
    run(
        storage,
        Committed(
            replace(snapshot.table_state, version=2), actions=[_add("c", 9)],
            previous=None, in_commit_timestamp=None, removed_files=2, removed_bytes=7,
        ),
    )  # fmt: skip
    found = _crc(table) or {}
    assert (found["numFiles"], found["tableSizeBytes"]) == (1, 9)


def test_adds_that_are_live_already_are_not_counted_beside_removes_that_are_only_counted(
    tmp_path: Path,
) -> None:
    table = _create(tmp_path)
    _commit(table, _add("a", 3), _add("b", 4))
    table.commit(_remove("b", size=4), _add("a", 3, dataChange=False))
    actions = [_add("a", 3, dataChange=False)]
    _after(table, actions=actions, removed_files=1, removed_bytes=4)
    assert _crc(table) is None
    _after(table, actions=[_add("d", 3, dataChange=False)], removed_files=1, removed_bytes=4, rearranges=True)
    assert (_crc(table) or {})["numFiles"] == 2


_LAW = settings(
    max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@_LAW
@given(steps=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 99)), max_size=12))
def test_checksum_says_what_replay_finds(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]]
) -> None:
    table = _create(tmp_path_factory.mktemp("table"), **{"delta.checkpointInterval": "3"})
    live: dict[str, int] = {}
    for number, (name, size) in enumerate(steps):
        path = f"f{name}"
        if path in live:
            _commit(table, _remove(path, size=live.pop(path)))
        else:
            live[path] = size
            _commit(table, _add(path, size), {"txn": {"appId": path, "version": number}})
        found = _crc(table) or {}
        snapshot = open_snapshot(open_storage(table.path))
        assert found["numFiles"] == snapshot.live_files().num_rows == len(live)
        assert found["tableSizeBytes"] == sum(live.values())
        assert {txn["appId"]: txn["version"] for txn in found["setTransactions"]} == snapshot.txns


def test_checkpoint_comes_at_the_interval_and_not_at_version_0(tmp_path: Path) -> None:
    table = _create(tmp_path, **{"delta.checkpointInterval": "2"})
    for number in range(5):
        _commit(table, _add(f"f{number}"))
    found = sorted(int(p.name[:20]) for p in table.log.glob("*.checkpoint.parquet"))
    assert found == [2, 4]
    assert json.loads((table.log / "_last_checkpoint").read_text())["version"] == 4


def test_checkpoint_that_another_writer_made_is_left_alone(tmp_path: Path) -> None:
    table = _create(tmp_path, **{"delta.checkpointInterval": "1"})
    table.commit(_add("a"))
    (file,) = table.checkpoint()
    before = file.read_bytes()
    _after(table)
    assert file.read_bytes() == before


def test_checkpoint_gives_back_a_checksum_to_count_from(tmp_path: Path) -> None:
    table = _create(tmp_path, **{"delta.checkpointInterval": "2"})
    table.commit(_add("a", 3))
    _commit(table, _add("b", 4), {"txn": {"appId": "x", "version": 1}})
    found = _crc(table) or {}
    assert (found["numFiles"], found["tableSizeBytes"]) == (2, 7)
    assert found["setTransactions"] == [{"appId": "x", "version": 1}]


def test_unreadable_checkpoint_is_passed_over_for_an_older_state(tmp_path: Path) -> None:
    table = _create(tmp_path, **{"delta.checkpointInterval": "2"})
    for number in range(2):
        _commit(table, _add(f"f{number}"))
    table.commit(_add("f2"))
    (table.log / f"{2:020d}.checkpoint.parquet").write_bytes(b"PAR1 no more PAR1")
    (table.log / "_last_checkpoint").unlink()
    table.commit(_add("f3"))
    storage, snapshot = open_storage(tmp_path), open_snapshot(open_storage(tmp_path))
    run(storage, Committed(replace(snapshot.table_state, version=4), [_add("f3")], None, None))
    assert (table.log / f"{4:020d}.checkpoint.parquet").exists()
    assert open_snapshot(storage).live_files().num_rows == 4


_STEPS: Mapping[str, tuple[Any, str]] = {
    "checksum": (checksum, "write_checksum"),
    "checkpoint": (post_commit, "write_checkpoint"),
    "clean_up": (cleanup, "clean_up"),
}


@pytest.mark.parametrize("step", _STEPS)
def test_failure_of_a_step_is_logged_and_stops_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, step: str
) -> None:
    table = _create(tmp_path, **{"delta.checkpointInterval": "1"})

    def fails(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(*_STEPS[step], fails)
    _commit(table, _add("a"))
    assert f"post_commit_failed table={tmp_path} version=1 step={step}" in caplog.text
    assert (_crc(table) is not None) == (step != "checksum")
    assert bool(list(table.log.glob("*.checkpoint.parquet"))) == (step != "checkpoint")


def test_property_that_makes_no_sense_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = _create(tmp_path, **{"delta.checkpointInterval": "often"})
    _commit(table, _add("a"))
    assert "step=checkpoint_interval" in caplog.text
    assert _crc(table) is not None
