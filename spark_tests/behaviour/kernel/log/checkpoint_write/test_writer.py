"""Checkpoints hold the state of their version and lose nothing, in every form; a failure leaves none."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from delta_ds.kernel.log.checkpoint_write import file as checkpoint_file
from delta_ds.kernel.log.checkpoint_write import schema as checkpoint_rows
from delta_ds.kernel.log.checkpoint_write import state, writer
from delta_ds.kernel.log.filenames import checksum
from delta_ds.kernel.log.snapshot import open_snapshot
from delta_ds.kernel.storage.open import open_storage
from delta_ds.testing import Action, TableBuilder, metadata_action, protocol_action
from spark_tests.behaviour.kernel.log.checkpoints import (
    NOW_MS,
    SCHEMA,
    checkpoint,
    commit_all,
    commits,
    histories,
    reconciled,
    stored,
)
from spark_tests.full_form import examples

V2 = {"delta.checkpointPolicy": "v2"}
FORMS = ["classic", "v2"]
KEEP = {"delta.deletedFileRetentionDuration": "interval 7 days"}


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that few actions go through what many would: several batches, row groups and sidecars."""
    monkeypatch.setattr(checkpoint_file, "_GROUP_ROWS", 3)
    monkeypatch.setattr(checkpoint_rows, "_ROWS", 2)
    monkeypatch.setattr(writer, "_SIDECAR_ACTIONS", 2)


def _table(folder: str | Path, form: str, **properties: str) -> TableBuilder:
    table = TableBuilder(folder)
    v2 = form == "v2"
    table.create(
        SCHEMA,
        partition_columns=["p"],
        properties={**KEEP, **(V2 if v2 else {}), **properties},
        reader_features=["v2Checkpoint", "deletionVectors"] if v2 else None,
    )
    return table


def _actions(table: TableBuilder) -> list[Action]:
    return [action for version in range(table.version + 1) for action in table._commits[version]]


def _split(table: TableBuilder, classic: writer.CheckpointInfo, parts: int) -> None:
    """Make several parts of a classic checkpoint, as other engines write them."""
    (name,) = classic.files
    whole = pq.read_table(table.path / name)
    stem = name.removesuffix(".parquet")
    size = -(-whole.num_rows // parts)
    for part in range(parts):
        rows = whole.slice(part * size, size)
        pq.write_table(rows, table.path / f"{stem}.{part + 1:010d}.{parts:010d}.parquet")
    (table.path / name).unlink()
    (table.log / "_last_checkpoint").unlink()


def _forget_commits(table: TableBuilder, keep: int) -> None:
    for version in range(keep):
        table.commit_file(version).unlink(missing_ok=True)


_LAW = settings(
    max_examples=examples(25),
    deadline=None,
    report_multiple_bugs=False,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.parametrize("form", [*FORMS, "multi-part"])
@_LAW
@given(history=histories, later=st.lists(commits, max_size=3), kept_bytes=st.sampled_from([0, 1 << 20]))
def test_checkpoint_holds_what_replay_of_all_commits_gives(
    form: str, history: Sequence[Sequence[Action]], later: Sequence[Sequence[Action]], kept_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "_KEPT_BYTES", kept_bytes)
        table = _table(folder, form)
        commit_all(table, history)
        first = checkpoint(table)
        assert stored(table.path, first)[0] == reconciled(_actions(table))
        if form == "multi-part":
            _split(table, first, 3)
        # The next one is built on the first, whose commits are not there any more.
        _forget_commits(table, table.version)
        commit_all(table, later)
        second = checkpoint(table)
        assert stored(table.path, second)[0] == reconciled(_actions(table))
        assert second.num_adds == open_snapshot(open_storage(folder)).live_files().num_rows


@pytest.mark.parametrize("policies", [("json", "struct"), ("struct", "json"), ("both", "struct")])
@_LAW
@given(history=histories)
def test_statistics_survive_a_change_of_their_form(
    policies: tuple[str, str], history: Sequence[Sequence[Action]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = _table(folder, "classic")
        commit_all(table, history)
        expected = reconciled(_actions(table))
        for policy in (*policies, "both"):
            _set_statistics(table, policy)
            info = checkpoint(table)
            _forget_commits(table, table.version)
        found = {key: action for key, action in stored(table.path, info)[0].items() if key[0] != "metaData"}
        assert found == {key: action for key, action in expected.items() if key[0] != "metaData"}


def _set_statistics(table: TableBuilder, policy: str) -> None:
    properties = {
        "delta.checkpoint.writeStatsAsJson": str(policy != "struct").lower(),
        "delta.checkpoint.writeStatsAsStruct": str(policy != "json").lower(),
    }
    table.commit(metadata_action(SCHEMA, ["p"], {**KEEP, **properties}), operation=None)


@pytest.mark.parametrize("policy", ["json", "struct", "both", "none"])
def test_columns_follow_the_statistics_properties(tmp_path: Path, policy: str) -> None:
    table = _table(
        tmp_path,
        "classic",
        **{
            "delta.checkpoint.writeStatsAsJson": str(policy in ("json", "both")).lower(),
            "delta.checkpoint.writeStatsAsStruct": str(policy in ("struct", "both")).lower(),
        },
    )
    table.append(pa.table({"id": [1, 5], "s": ["x", None]}), partition_values={"p": "a"})
    (file,) = checkpoint(table).files
    add = next(row["add"] for row in pq.read_table(tmp_path / file).to_pylist() if row["add"])
    assert ("stats" in add) == (policy in ("json", "both"))
    assert ("stats_parsed" in add) == ("partitionValues_parsed" in add) == (policy in ("struct", "both"))
    if policy in ("struct", "both"):
        low, high = {"id": 1, "s": "x"}, {"id": 5, "s": "x"}
        expected = {"numRecords": 2, "minValues": low, "maxValues": high, "nullCount": {"id": 0, "s": 1}}
        assert add["stats_parsed"] == expected
        assert add["partitionValues_parsed"] == {"p": "a"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fail_at", [0, 1, 2])
def test_failure_in_the_middle_leaves_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, fail_at: int
) -> None:
    table = _table(tmp_path, form)
    for number in range(8):
        table.commit({"add": _plain_add(f"f{number}")})
    # Files of a checkpoint come a few at a time.
    checkpoint(table)
    table.commit({"add": _plain_add("late")})
    before = sorted(p.name for p in table.log.rglob("*"))
    calls = 0
    append = checkpoint_file.CheckpointFile.append

    def fails(self: Any, kind: str, actions: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > fail_at:
            raise OSError("no space left on device")
        append(self, kind, actions)

    monkeypatch.setattr(checkpoint_file.CheckpointFile, "append", fails)
    with pytest.raises(OSError, match="no space"):
        checkpoint(table)
    assert sorted(p.name for p in table.log.rglob("*")) == before
    assert open_snapshot(open_storage(tmp_path)).live_files().num_rows == 9


def _plain_add(path: str, **fields: Any) -> dict[str, Any]:
    return {
        "path": path, "partitionValues": {"p": None}, "size": 1, "modificationTime": 0, "dataChange": True, **fields,
    }  # fmt: skip


def test_hint_of_a_classic_checkpoint_says_what_is_in_it(tmp_path: Path) -> None:
    table = _table(tmp_path, "classic")
    table.commit({"add": _plain_add("a")}, {"txn": {"appId": "x", "version": 1}})
    info = checkpoint(table)
    hint = json.loads((table.log / "_last_checkpoint").read_text())
    size = (tmp_path / info.files[0]).stat().st_size
    assert (hint["version"], hint["size"], hint["sizeInBytes"], hint["numOfAddFiles"]) == (1, 4, size, 1)
    assert hint["checksum"] == checksum(hint)
    assert [f["name"] for f in hint["checkpointSchema"]["fields"]][:3] == ["txn", "add", "remove"]
    assert "parts" not in hint


def test_hint_of_a_v2_checkpoint_repeats_its_manifest(tmp_path: Path) -> None:
    table = _table(tmp_path, "v2")
    table.commit(*({"add": _plain_add(f"f{n}")} for n in range(3)))
    info = checkpoint(table)
    hint = json.loads((table.log / "_last_checkpoint").read_text())
    v2 = hint["v2Checkpoint"]
    assert info.files[0] == f"_delta_log/{v2['path']}"
    assert [next(iter(action)) for action in v2["nonFileActions"]] == [
        "protocol",
        "metaData",
        "checkpointMetadata",
    ]
    assert [f"_delta_log/_sidecars/{sidecar['path']}" for sidecar in v2["sidecarFiles"]] == list(
        info.files[1:]
    )
    assert hint["size"] == 3 + len(v2["sidecarFiles"]) + 3
    assert hint["checksum"] == checksum(hint)


def test_hint_is_never_moved_back(tmp_path: Path) -> None:
    table = _table(tmp_path, "classic")
    table.commit({"add": _plain_add("a")})
    table.last_checkpoint(7)
    checkpoint(table)
    assert json.loads((table.log / "_last_checkpoint").read_text())["version"] == 7


def test_transactions_expire_only_where_the_property_says_so(tmp_path: Path) -> None:
    table = _table(tmp_path, "classic", **{"delta.setTransactionRetentionDuration": "interval 7 days"})
    seen = {"new": NOW_MS - 1, "old": 5}
    table.commit(*({"txn": {"appId": app, "version": 1, "lastUpdated": at}} for app, at in seen.items()))
    table.commit({"txn": {"appId": "unknown", "version": 1}})
    found = stored(tmp_path, checkpoint(table))[0]
    assert [key[1] for key in found if key[0] == "txn"] == ["new"]


def test_changed_partitioning_keeps_the_keys_that_each_file_has(tmp_path: Path) -> None:
    table = _table(tmp_path, "classic")
    table.commit({"add": _plain_add("a", partitionValues={"p": "1"})})
    remove = {"path": "a", "deletionTimestamp": NOW_MS, "dataChange": True, "partitionValues": {"p": "1"}}
    add = _plain_add("b", partitionValues={"s": None})
    table.commit(metadata_action(SCHEMA, ["s"], KEEP), {"remove": remove}, {"add": add})
    found = stored(tmp_path, checkpoint(table))[0]
    kept = {
        body["path"]: body["partitionValues"]
        for a in found.values()
        for k, body in a.items()
        if "path" in body
    }
    assert kept == {"a": {"p": "1"}, "b": {"s": None}}


def test_feature_lists_are_there_exactly_where_the_versions_ask_for_them(tmp_path: Path) -> None:
    for folder, action in (("old", protocol_action()), ("new", protocol_action([], ["appendOnly"]))):
        table = TableBuilder(tmp_path / folder)
        table.create(SCHEMA)
        table.commit(action)
        (file,) = checkpoint(table).files
        rows = pq.read_table(table.path / file, columns=["protocol"]).to_pylist()
        (row,) = [r["protocol"] for r in rows if r["protocol"]]
        lists = (row["readerFeatures"], row["writerFeatures"])
        assert lists == ((None, None) if folder == "old" else ([], ["appendOnly"]))
