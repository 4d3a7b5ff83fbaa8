"""Dropping features: what is switched off, protected, or refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import ConcurrentAppendException, DeltaError
from delta_ds.kernel.commands.drop_feature import drop_feature_support
from delta_ds.kernel.commands.optimize.command import rewrite_all
from delta_ds.kernel.commands.optimize.commit import commit_optimize
from delta_ds.kernel.commands.optimize.planning import plan_optimize
from delta_ds.kernel.commands.optimize.request import UNMAP, OptimizeRequest
from delta_ds.kernel.format.schema.types import (
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    ArrayType,
    arrow_schema,
    arrow_type,
)
from delta_ds.kernel.transaction.alter.change_column import alter_column
from delta_ds.kernel.transaction.alter.columns import rename_column
from delta_ds.kernel.transaction.alter.create import create_table
from delta_ds.kernel.transaction.alter.properties import set_properties, unset_properties
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.kernel.files.write.written_tables import struct
from spark_tests.behaviour.kernel.transaction.alter.tables import action, actions, made, protocol


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("inCommitTimestamp", {"delta.enableInCommitTimestamps": "true"}),
        ("materializePartitionColumns", {"delta.enableMaterializePartitionColumnsFeature": "true"}),
        ("checkConstraints", {"delta.feature.checkConstraints": "supported"}),
        ("rowTracking", {"delta.feature.rowTracking": "supported"}),
        ("domainMetadata", {"delta.feature.domainMetadata": "supported"}),
    ],
)
def test_a_feature_of_writers_goes_and_leaves_the_least_protocol(
    tmp_path: Path, name: str, properties: dict[str, str]
) -> None:
    log = made(tmp_path, properties=properties)
    version = drop_feature_support(log, name)
    left = {"rowTracking": (1, 7, None, ["appendOnly", "domainMetadata", "invariants"])}
    assert protocol(log) == left.get(name, (1, 2, None, None))
    kept = {"inCommitTimestamp": {"delta.enableInCommitTimestamps": "false"}}
    assert log.snapshot().properties == kept.get(name, {})
    assert action(log, version, "commitInfo")["operation"] == "DROP FEATURE"


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("deletionVectors", {"delta.enableDeletionVectors": "true"}),
        ("v2Checkpoint", {"delta.checkpointPolicy": "v2"}),
        ("typeWidening", {"delta.enableTypeWidening": "true"}),
        ("vacuumProtocolCheck", {"delta.feature.vacuumProtocolCheck": "supported"}),
    ],
)
def test_a_feature_of_readers_goes_and_leaves_the_versions_before_protected(
    tmp_path: Path, name: str, properties: dict[str, str]
) -> None:
    log = made(tmp_path, properties=properties)
    version = drop_feature_support(log, name)
    assert protocol(log) == (1, 7, None, ["appendOnly", "checkpointProtection", "invariants"])
    kept = {"delta.checkpointPolicy": "classic"} if name == "v2Checkpoint" else {}
    assert log.snapshot().properties == {
        "delta.requireCheckpointProtectionBeforeVersion": str(version),
        **kept,
    }
    assert name in log.snapshot(version - 1).protocol.supported


def test_versions_that_used_a_feature_are_kept_for_a_day(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    with pytest.raises(DeltaError, match="version 0 still uses it") as caught:
        drop_feature_support(log, "deletionVectors", True)
    assert caught.value.condition == "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
    assert "delta.enableDeletionVectors" not in log.snapshot().properties


def test_versions_that_used_a_feature_are_cut_off_once_they_are_old(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    unset_properties(log, ["delta.enableDeletionVectors"])
    with pytest.raises(DeltaError):
        drop_feature_support(log, "deletionVectors", True)
    for file in (tmp_path / "_delta_log").iterdir():
        os.utime(file, (1_600_000_000, 1_600_000_000))
    drop_feature_support(log, "deletionVectors", True)
    assert protocol(log) == (1, 2, None, None)
    assert not (tmp_path / "_delta_log" / f"{0:020}.json").exists()


def test_a_feature_that_no_version_used_goes_at_once(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.feature.deletionVectors": "supported"})
    drop_feature_support(log, "deletionVectors", True)
    assert protocol(log) == (1, 2, None, None)


_S = struct(x=SHORT, l=ArrayType(FLOAT))
_TRACKED = {"delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true"}


def _ids(log: DeltaLog) -> list[dict[str, Any]]:
    """The rows with their row ids and commit versions, where the table has them."""
    tracked = log.snapshot().properties.get("delta.enableRowTracking") == "true"
    names = ("row_id", "row_commit_version") if tracked else ()
    return sorted(log.snapshot().scan(metadata_columns=names).to_arrow().to_pylist(), key=str)


def _widened(log: DeltaLog) -> None:
    alter_column(log, "s.x", data_type=INTEGER)
    alter_column(log, "s.l.element", data_type=DOUBLE)
    rows = pa.table({"id": [4], "p": ["b"], "s": pa.array([{"x": 70000, "l": [1.1]}], arrow_type(struct(
        x=INTEGER, l=ArrayType(DOUBLE))))})  # fmt: skip
    log.write(rows)


def _renamed(log: DeltaLog) -> None:
    rename_column(log, "p", "q r")
    rename_column(log, "q r", "part")
    rename_column(log, "s.x", "y")


_USES: dict[str, tuple[dict[str, str], Callable[[DeltaLog], None]]] = {
    "typeWidening": ({"delta.enableTypeWidening": "true"}, _widened),
    "columnMapping": ({"delta.columnMapping.mode": "name"}, _renamed),
}


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("name", _USES)
def test_rows_stay_what_they_are_when_a_feature_goes(
    tmp_path: Path, name: str, partitioned: bool, tracked: bool
) -> None:
    properties, use = _USES[name]
    log = DeltaLog(tmp_path)
    schema = struct(id=LONG, p=STRING, s=_S)
    properties = properties | (_TRACKED if tracked else {})
    create_table(log, schema, partition_columns=["p"] if partitioned else [], properties=properties)
    rows = [
        {"id": 1, "p": "a", "s": {"x": 1, "l": [0.5, None]}},
        {"id": 2, "p": None, "s": None},
        {"id": 3, "p": "a", "s": {}},
    ]
    log.write(pa.Table.from_pylist(rows, arrow_schema(schema)))
    log.write(pa.Table.from_pylist(rows[:1], arrow_schema(schema)))
    use(log)
    before, columns = _ids(log), log.snapshot().schema.names
    version = drop_feature_support(log, name)
    assert _ids(log) == before
    assert log.snapshot().schema.names == columns
    assert name not in log.snapshot().protocol.supported
    text = log.snapshot().metadata.schema_string
    assert "typeChanges" not in text and "columnMapping" not in text
    assert log.changes(version, version).to_arrow().num_rows == 0 if tracked else True
    log.write(log.snapshot().scan().to_arrow().slice(0, 1))
    assert len(_ids(log)) == len(before) + 1


def test_files_that_have_the_types_already_stay(tmp_path: Path) -> None:
    log = made(tmp_path, schema=struct(id=LONG, n=INTEGER), properties={"delta.enableTypeWidening": "true"})
    log.write(pa.table({"id": [1], "n": pa.array([1], pa.int32())}))
    alter_column(log, "n", data_type=LONG)
    log.write(pa.table({"id": [2], "n": [1 << 40]}))
    (kept,) = log.snapshot().files("id = 2").column("path").to_pylist()
    drop_feature_support(log, "typeWidening")
    paths = log.snapshot().files().column("path").to_pylist()
    assert kept in paths and len(paths) == 2
    assert log.history()[0]["operation"] == "DROP FEATURE"
    told = [c["operationParameters"] for c in log.history() if "columns" in c["operationParameters"]]
    changes = [{"toType": "long", "fromType": "integer"}]
    metadata = {"delta.typeChanges": changes}
    column = {"name": "n", "type": "long", "nullable": True, "metadata": metadata}
    assert [json.loads(parameters["columns"]) for parameters in told if len(parameters) == 1] == [[column]]


def test_a_file_that_comes_while_column_mapping_is_removed_is_a_conflict(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.columnMapping.mode": "name"})
    log.write(pa.table({"id": [1]}))
    plan = plan_optimize(log, OptimizeRequest(kind=UNMAP))
    adds = rewrite_all(plan, 1)
    log.write(pa.table({"id": [2]}))
    with pytest.raises(ConcurrentAppendException):
        commit_optimize(log, plan, adds)
    assert [row["id"] for row in _ids(log)] == [1, 2]


def test_row_ids_go_with_row_tracking_and_may_come_back(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.enableRowTracking": "true"})
    log.write(pa.table({"id": [1, 2]}))
    with pytest.raises(DeltaError, match="rowTracking of"):
        drop_feature_support(log, "domainMetadata")
    version = drop_feature_support(log, "rowTracking")
    snapshot = log.snapshot()
    assert snapshot.files()["baseRowId"].null_count == 1
    assert (snapshot.properties, snapshot.domains) == ({}, {})
    names = [entry["operation"] for entry in log.history()][:3]
    assert names == ["DROP FEATURE", "ROW TRACKING UNBACKFILL", "SET TBLPROPERTIES"]
    assert version == drop_feature_support(log, "domainMetadata") - 1
    set_properties(log, {"delta.enableRowTracking": "true"})
    assert [row["_metadata"]["row_id"] for row in _ids(log)] == [0, 1]


def test_deletion_vectors_are_purged_first(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    rows = pa.table({"id": pa.array([1, 2], pa.int64())})
    table.create(rows.schema, reader_features=["deletionVectors"])
    add = table.write_file(rows)
    table.commit(add)
    table.delete_rows(add, [0])
    log = DeltaLog(tmp_path)
    drop_feature_support(log, "deletionVectors")
    assert log.snapshot().scan().to_arrow().to_pylist() == [{"id": 2}]
    assert log.snapshot().files()["deletionVector"].null_count == 1
    (buried,) = [
        version["version"] for version in log.history() if version["operation"].endswith("Tombstones")
    ]
    removed = [body["remove"]["path"] for body in actions(log, buried) if "remove" in body]
    assert [name for name in removed if (tmp_path / name).exists()] == removed
    assert len(removed) == 1


@pytest.mark.parametrize(
    ("name", "properties", "word", "condition"),
    [
        ("nosuch", {}, "nosuch", "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"),
        ("deletionVectors", {}, "appendOnly, invariants", "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"),
        ("appendOnly", {}, "not one that can be removed", "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
        (
            "domainMetadata", {"delta.enableRowTracking": "true"}, "rowTracking",
            "DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
        ),
        (
            "checkConstraints", {"delta.constraints.c": "id > 0"}, "dropConstraint",
            "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
        ),
        ("allowColumnDefaults", {"delta.feature.allowColumnDefaults": "supported"}, "not one that can be removed",
         "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
    ],
)  # fmt: skip
def test_what_cannot_go_is_refused_with_the_way_out(
    tmp_path: Path, name: str, properties: dict[str, str], word: str, condition: str
) -> None:
    log = made(tmp_path, properties=properties)
    with pytest.raises(DeltaError, match=word) as caught:
        drop_feature_support(log, name)
    assert caught.value.condition == condition
    assert log.snapshot().version == 0


def test_history_is_not_cut_off_for_a_feature_of_writers(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.feature.checkConstraints": "supported"})
    with pytest.raises(DeltaError) as caught:
        drop_feature_support(log, "checkConstraints", True)
    assert caught.value.condition == "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED"
