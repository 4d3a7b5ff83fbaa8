"""The table builder writes what the protocol says, as plain readers of JSON and Parquet see it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds import DeltaLog
from delta_ds.kernel.format.values import deletion_vector
from delta_ds.testing import (
    FIRST_COMMIT_MS,
    MINUTE_MS,
    CheckpointKind,
    TableBuilder,
    json_lines,
    remove_action,
)

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "name": [f"name {i}" for i in ids]}, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    table = TableBuilder(tmp_path / "table")
    table.create(SCHEMA, properties={"a": "b"}, reader_features=["deletionVectors", "v2Checkpoint"])
    return table


def lines(file: Path) -> list[dict]:  # type: ignore[type-arg]
    return [json.loads(line) for line in file.read_bytes().splitlines()]


def ids(table: TableBuilder, version: int | None = None) -> list[int]:
    found = DeltaLog(str(table.path)).snapshot(version=version).scan().to_arrow()
    return sorted(found.column("id").to_pylist())


def test_create_commits_protocol_and_metadata(table: TableBuilder) -> None:
    info, protocol, metadata = lines(table.commit_file(0))
    assert info["commitInfo"]["timestamp"] == FIRST_COMMIT_MS
    assert protocol["protocol"] == {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors", "v2Checkpoint"],
        "writerFeatures": ["deletionVectors", "v2Checkpoint"],
    }
    schema = json.loads(metadata["metaData"]["schemaString"])
    assert [(f["name"], f["type"], f["nullable"]) for f in schema["fields"]] == [
        ("id", "long", False),
        ("name", "string", True),
    ]
    assert metadata["metaData"]["configuration"] == {"a": "b"}


def test_append_writes_the_file_its_size_and_statistics(table: TableBuilder) -> None:
    assert table.append(rows(1, 2), path="a b/c.parquet") == 1
    add = lines(table.commit_file(1))[-1]["add"]
    assert add["path"] == "a%20b/c.parquet"
    file = table.path / "a b" / "c.parquet"
    assert add["size"] == file.stat().st_size
    assert pq.read_table(file).equals(rows(1, 2))
    assert json.loads(add["stats"]) == {
        "numRecords": 2,
        "minValues": {"id": 1, "name": "name 1"},
        "maxValues": {"id": 2, "name": "name 2"},
        "nullCount": {"id": 0, "name": 0},
    }


def test_commits_are_a_minute_apart_by_their_file_times(table: TableBuilder) -> None:
    table.append(rows(1))
    times = [table.commit_file(v).stat().st_mtime_ns // 1_000_000 for v in (0, 1)]
    assert times == [FIRST_COMMIT_MS, FIRST_COMMIT_MS + MINUTE_MS]


def test_raw_commit_holds_exactly_the_bytes(table: TableBuilder) -> None:
    assert table.raw_commit(b'{"add": ') == 1
    assert table.commit_file(1).read_bytes() == b'{"add": '


def test_state_keeps_the_latest_action_of_each_thing(table: TableBuilder) -> None:
    add = table.write_file(rows(1))
    table.commit(add, {"txn": {"appId": "a", "version": 1}})
    table.commit(remove_action(add), {"txn": {"appId": "a", "version": 2}})
    state = table.state()
    assert [a["txn"]["version"] for a in state if "txn" in a] == [2]
    assert [a for a in state if "add" in a] == []
    assert [a["remove"]["path"] for a in state if "remove" in a] == [add["add"]["path"]]


@pytest.mark.parametrize("kind", ["v1", "multi-part", "v2-parquet", "v2-json"])
def test_checkpoint_holds_every_action_of_the_state_once(table: TableBuilder, kind: CheckpointKind) -> None:
    table.append(rows(1, 2))
    table.commit({"txn": {"appId": "a", "version": 1}}, {"domainMetadata": {
        "domain": "d", "configuration": "{}", "removed": False}})  # fmt: skip
    found: list[str] = []
    for file in table.checkpoint(kind):
        stored = lines(file) if file.suffix == ".json" else pq.read_table(file).to_pylist()
        found += [name for action in stored for name, body in action.items() if body is not None]
    expected = ["add", "domainMetadata", "metaData", "protocol", "txn"]
    extra = ["checkpointMetadata", "sidecar", "sidecar"] if kind.startswith("v2") else []
    assert sorted(found) == sorted(expected + extra)


def test_last_checkpoint_has_the_checksum_of_its_canonical_form(table: TableBuilder) -> None:
    hint = json.loads(table.last_checkpoint(3, size=5).read_text())
    assert hint.pop("checksum") == hashlib.md5(b'"size"=5,"version"=3').hexdigest()


def test_checksum_file_counts_the_live_files(table: TableBuilder) -> None:
    table.append(rows(1))
    table.append(rows(2))
    (record,) = lines(table.checksum())
    assert (record["numFiles"], record["protocol"]["minReaderVersion"]) == (2, 3)


def test_compaction_holds_the_reconciled_actions_of_its_range(table: TableBuilder) -> None:
    add = table.write_file(rows(1))
    table.commit(add)
    table.commit(remove_action(add))
    file = table.compact(1, 2)
    assert file.name == f"{1:020d}.{2:020d}.compacted.json"
    assert [list(action) for action in lines(file)] == [["remove"]]


@pytest.mark.parametrize("storage", ["u", "p", "i"])
def test_deletion_vector_is_read_back(table: TableBuilder, storage: str) -> None:
    vector = table.deletion_vector([5, 1, 2**33], storage)
    log = DeltaLog(str(table.path))
    described = deletion_vector.DeletionVectorDescriptor(
        vector["storageType"],
        vector["pathOrInlineDv"],
        vector.get("offset"),
        vector["sizeInBytes"],
        vector["cardinality"],
    )
    assert deletion_vector.read_positions(log.storage, described).tolist() == [1, 5, 2**33]


def test_kernel_reads_what_the_builder_wrote(table: TableBuilder) -> None:
    add = table.write_file(rows(1, 2, 3))
    table.commit(add)
    table.delete_rows(add, [0])
    table.append(rows(4))
    assert [ids(table, v) for v in range(4)] == [[], [1, 2, 3], [2, 3], [2, 3, 4]]


def test_partition_values_are_kept_as_text(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    table.create(schema, partition_columns=["p"])
    table.append(pa.table({"id": [1]}), partition_values={"p": "x y"})
    table.append(pa.table({"id": [2]}), partition_values={"p": None})
    found = DeltaLog(str(tmp_path)).snapshot().scan().to_arrow().sort_by("id")
    assert found.column("p").to_pylist() == ["x y", None]


def test_json_lines_end_each_action() -> None:
    assert json_lines([{"a": 1}, {"ü": 2}]) == '{"a": 1}\n{"ü": 2}\n'.encode()
