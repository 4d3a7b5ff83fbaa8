"""Checkpoints, their hint and their checksums: damaged ones cost time, never rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import LogError
from delta_ds.kernel.commands.vacuum import vacuum
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.log.replay import load_head
from delta_ds.testing import (
    ACTION_TYPES,
    Action,
    CheckpointKind,
    TableBuilder,
    json_lines,
    metadata_action,
    protocol_action,
)
from spark_tests.faults.corrupted.tables import (
    IDS,
    SCHEMA,
    add_line,
    assert_read_or_refused,
    assert_refused,
    read_ids,
    rows,
)

V2_KINDS: tuple[CheckpointKind, ...] = ("v2-parquet", "v2-json")
KINDS: tuple[CheckpointKind, ...] = ("v1", "multi-part", *V2_KINDS)


def drop_commits_before(table: TableBuilder, version: int) -> None:
    for number in range(version):
        table.commit_file(number).unlink()


@pytest.mark.parametrize("hint", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_whole_checkpoint_replaces_the_commits(table: TableBuilder, kind: CheckpointKind, hint: bool) -> None:
    table.checkpoint(kind, hint=hint)
    table.append(rows(7))
    drop_commits_before(table, 3)
    assert read_ids(table) == [*IDS, 7]


@pytest.mark.parametrize("keep", [0.0, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("file", [0, -1])
@pytest.mark.parametrize("kind", KINDS)
def test_cut_checkpoint_gives_way_to_the_commits(
    table: TableBuilder, kind: CheckpointKind, file: int, keep: float
) -> None:
    cut(table.checkpoint(kind)[file], keep)
    table.append(rows(7))
    assert read_ids(table) == [*IDS, 7]


@pytest.mark.parametrize("keep", [0.0, 0.01, 0.5, 0.99])
@pytest.mark.parametrize("file", [0, -1])
@pytest.mark.parametrize("kind", KINDS)
def test_cut_checkpoint_without_the_commits_is_refused(
    table: TableBuilder, kind: CheckpointKind, file: int, keep: float
) -> None:
    cut(table.checkpoint(kind)[file], keep)
    drop_commits_before(table, 3)
    assert_refused(table, LogError)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_file_of_a_checkpoint_gives_way_to_the_commits(
    table: TableBuilder, kind: CheckpointKind
) -> None:
    table.checkpoint(kind)[-1].unlink()
    assert read_ids(table) == IDS


@pytest.mark.parametrize("kind", KINDS[1:])
def test_missing_file_of_a_checkpoint_without_the_commits_is_refused(
    table: TableBuilder, kind: CheckpointKind
) -> None:
    table.checkpoint(kind)[-1].unlink()
    drop_commits_before(table, 3)
    assert_refused(table, LogError)


def test_cut_checkpoint_gives_way_to_an_older_one(table: TableBuilder) -> None:
    table.checkpoint(version=1)
    cut(table.checkpoint(version=3)[0], 0.5)
    drop_commits_before(table, 1)
    assert read_ids(table) == IDS


@pytest.mark.parametrize("kind", ["protocol", "metaData"])
def test_checkpoint_that_lacks_the_protocol_or_metadata_is_refused(table: TableBuilder, kind: str) -> None:
    state = [action for action in table.state() if kind not in action]
    table._commits = {3: state}  # what the checkpoint is made of
    table.checkpoint()
    drop_commits_before(table, 3)
    assert_refused(table, LogError)


def test_checkpoint_of_another_files_bytes_gives_way_to_the_commits(table: TableBuilder) -> None:
    (checkpoint,) = table.checkpoint()
    data = next(table.path.glob("part-*.parquet"))
    checkpoint.write_bytes(data.read_bytes())
    assert_read_or_refused(table, IDS)


def mix(table: TableBuilder, kind: CheckpointKind, action: str = "add") -> None:
    """Write a checkpoint with sidecars that has one more file action in itself."""
    table.checkpoint(kind)
    (manifest,) = (file for file in table.log.glob("*.checkpoint.*") if file.is_file())
    gone = {"path": "gone", "dataChange": True, "deletionTimestamp": 1}
    extra: Action = add_line(table, 7) if action == "add" else {"remove": gone}
    if kind == "v2-json":
        manifest.write_bytes(manifest.read_bytes() + json_lines([extra]))
    else:
        found = pq.read_table(manifest)
        body = {name: value for name, value in extra[action].items() if name in ACTION_TYPES[action].names}
        line = [{action: {**body, "partitionValues": []}}]
        pq.write_table(pa.concat_tables([found, pa.Table.from_pylist(line, found.schema)]), manifest)


@pytest.mark.parametrize("action", ["add", "remove"])
@pytest.mark.parametrize("kind", V2_KINDS)
def test_file_actions_beside_sidecars_make_no_checkpoint_and_the_commits_serve(
    table: TableBuilder, kind: CheckpointKind, action: str, caplog: pytest.LogCaptureFixture
) -> None:
    mix(table, kind, action)
    table.append(rows(8))
    # By a filter the files are chosen without the whole state.
    found = Scan(DeltaLog(table.path).open_snapshot(), "id >= 6").to_arrow()
    assert sorted(found["id"].to_pylist()) == [6, 8]
    assert read_ids(table) == [*IDS, 8]
    assert "some of its file actions in itself" in caplog.text
    DeltaLog(table.path).checkpoint()
    assert read_ids(table) == [*IDS, 8]


@pytest.mark.parametrize("kind", V2_KINDS)
def test_file_actions_beside_sidecars_are_an_error_where_nothing_else_serves(
    table: TableBuilder, kind: CheckpointKind
) -> None:
    mix(table, kind)
    drop_commits_before(table, 3)
    error = assert_refused(table, LogError, match="some of its file actions in itself")
    assert str(table.path) in str(error)
    log = DeltaLog(table.path)
    before = sorted(table.path.rglob("*"))
    for deed in (
        lambda: log.snapshot().scan("id = 6").to_arrow(),
        lambda: load_head(log.storage, log.open_snapshot().segment),
        lambda: vacuum(log, 0, retention_check=False),
        log.checkpoint,
    ):
        with pytest.raises(LogError, match="some of its file actions in itself|no complete checkpoint"):
            deed()
    assert sorted(table.path.rglob("*")) == before


@pytest.mark.parametrize(
    "path", ["../../secret.parquet", "%2e%2e/%2e%2e/secret.parquet", "s3://other/x.parquet", ""]
)
def test_sidecar_outside_of_the_table_is_not_followed(table: TableBuilder, path: str, tmp_path: Path) -> None:
    manifest = table.checkpoint("v2-json")[0]
    lines = [json.loads(line) for line in manifest.read_text().splitlines()]
    for line in lines:
        if "sidecar" in line:
            (table.log / "_sidecars" / line["sidecar"]["path"]).rename(tmp_path / "secret.parquet")
            line["sidecar"]["path"] = path
    manifest.write_text("\n".join(map(json.dumps, lines)))
    drop_commits_before(table, 3)
    assert_refused(table)


BAD_HINTS: dict[str, Any] = {
    "nowhere": {"version": 99},
    "older, but not there": {"version": 1},
    "negative": {"version": -1},
    "text": {"version": "3"},
    "fraction": {"version": 3.5},
    "bool": {"version": True},
    "huge": {"version": 10**30},
    "null": {"version": None},
    "no version": {"size": 3},
    "list": [3],
    "number": 3,
    "wrong parts": {"version": 3, "parts": 7},
    "wrong checksum": {"version": 3, "size": 1, "checksum": "0" * 32},
    "checksum is no text": {"version": 3, "checksum": 5},
}


@pytest.mark.parametrize("name", BAD_HINTS)
@pytest.mark.parametrize("with_checkpoint", [True, False])
def test_wrong_last_checkpoint_is_worked_around(
    table: TableBuilder, name: str, with_checkpoint: bool
) -> None:
    if with_checkpoint:
        table.checkpoint(hint=False)
    (table.log / "_last_checkpoint").write_text(json.dumps(BAD_HINTS[name]))
    assert read_ids(table) == IDS


@pytest.mark.parametrize("content", [b"", b"{", b'{"version":3', b"\xff\xfe", b"\x00" * 100, b"[" * 100_000])
def test_garbage_in_last_checkpoint_is_worked_around(table: TableBuilder, content: bytes) -> None:
    table.checkpoint()
    (table.log / "_last_checkpoint").write_bytes(content)
    assert read_ids(table) == IDS


def test_last_checkpoint_that_is_a_folder_is_worked_around(table: TableBuilder) -> None:
    (table.log / "_last_checkpoint").mkdir()
    assert_read_or_refused(table, IDS)


BAD_CHECKSUMS: dict[str, dict[str, Any]] = {
    "files": {"numFiles": 99},
    "bytes": {"tableSizeBytes": 1},
    "counts as text": {"numFiles": "three", "tableSizeBytes": None},
    "no protocol": {"protocol": None},
    "no metadata": {"metadata": None},
    "protocol of a newer client": {"protocol": {"minReaderVersion": 99, "minWriterVersion": 99}},
    "protocol is no object": {"protocol": [1]},
    "schema is no schema": {"metadata": {"id": "x", "schemaString": "?"}},
    "metadata is no object": {"metadata": "x"},
    "unknown fields": {"future": {"a": 1}},
    "several protocols": {"numProtocol": 2, "numMetadata": 2},
}


@pytest.mark.parametrize("name", BAD_CHECKSUMS)
def test_checksum_file_that_is_wrong_changes_no_rows(table: TableBuilder, name: str) -> None:
    table.checksum(**BAD_CHECKSUMS[name])
    assert read_ids(table) == IDS


def test_checksum_file_of_another_schema_is_not_trusted(table: TableBuilder) -> None:
    other = metadata_action(SCHEMA.append(SCHEMA.field("id").with_name("more")))
    table.checksum(metadata=other["metaData"], protocol=protocol_action()["protocol"])
    assert read_ids(table) == IDS


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b"0" * 1000])
def test_garbage_in_a_checksum_file_is_ignored(table: TableBuilder, content: bytes) -> None:
    (table.log / f"{3:020d}.crc").write_bytes(content)
    assert read_ids(table) == IDS


def test_compaction_is_read_in_place_of_its_commits(table: TableBuilder) -> None:
    table.compact(1, 2)
    assert read_ids(table) == IDS


def test_cut_compaction_is_refused_or_gives_way_to_the_commits(table: TableBuilder) -> None:
    cut(table.compact(1, 2), 0.75)
    assert_read_or_refused(table, IDS)


def cut(file: Path, keep: float) -> None:
    """Keep the first part of a file's bytes, at least one byte less than there are."""
    content = file.read_bytes()
    file.write_bytes(content[: min(int(len(content) * keep), len(content) - 2)])
