"""What an overwrite of a whole table does to column mapping under a change feed, and to clustering."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.commands.restore import restore
from delta_ds.kernel.format.schema.types import INTEGER, LONG, StructField, StructType
from delta_ds.kernel.transaction.alter.clustering import cluster_by
from delta_ds.kernel.transaction.alter.columns import drop_columns, rename_column
from delta_ds.kernel.transaction.alter.create import create_table
from spark_tests.behaviour.kernel.files.write.written_tables import struct
from spark_tests.behaviour.kernel.transaction.alter.tables import actions
from spark_tests.behaviour.kernel.transaction.write.tables import data_files, info, rows, write

FEED = {"delta.enableChangeDataFeed": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
ROWS = pa.table({"id": [1, 2], "a": pa.array([1, 2], pa.int32())})
BLOCKED = "DELTA_BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION"


def table(path: Path, properties: dict[str, str], **how: Any) -> DeltaLog:
    log = DeltaLog(path)
    create_table(log, struct(id=LONG, a=INTEGER), properties=properties, **how)
    log.write(ROWS)
    return log


SCHEMAS = {
    "same": (ROWS, False),
    "other order": (ROWS.select(["a", "id"]), False),
    "one more": (ROWS.append_column("z", pa.array([1, 2])), False),
    "one less": (ROWS.select(["id"]), True),
    "other name": (ROWS.rename_columns(["id", "b"]), True),
    "other case": (ROWS.rename_columns(["ID", "A"]), True),
    "other type": (ROWS.set_column(1, "a", pa.array(["x", "y"])), True),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_columns_are_not_dropped_by_an_overwrite_of_a_mapped_table_with_a_feed(
    tmp_path: Path, name: str
) -> None:
    data, blocked = SCHEMAS[name]
    log = table(tmp_path, {**MAPPED, **FEED})
    before = data_files(tmp_path)
    if blocked:
        with pytest.raises(UnsupportedOperationError) as caught:
            write(tmp_path, data, "overwrite", overwriteSchema="true")
        assert caught.value.condition == BLOCKED
        assert (data_files(tmp_path), log.snapshot().version) == (before, 1)
    else:
        write(tmp_path, data, "overwrite", overwriteSchema="true")
        assert log.snapshot().schema.names == data.column_names


@pytest.mark.parametrize("properties", [MAPPED, FEED])
def test_with_one_of_both_columns_are_dropped(tmp_path: Path, properties: dict[str, str]) -> None:
    table(tmp_path, properties)
    write(tmp_path, SCHEMAS["other name"][0], "overwrite", overwriteSchema="true")
    assert rows(tmp_path) == [{"id": 1, "b": 1}, {"id": 2, "b": 2}]


def test_columns_of_a_mapped_table_with_a_feed_change_without_files(tmp_path: Path) -> None:
    log = table(tmp_path, {**MAPPED, **FEED})
    rename_column(log, "a", "b")
    drop_columns(log, ["b"])
    assert log.snapshot().schema.names == ["id"]


CLUSTERED = {"clusterBy": "id"}


def clustered(path: Path, how: str) -> DeltaLog:
    if how == "create":
        return table(path, {}, cluster_by=["id"])
    log = table(path, MAPPED if how == "mapped" else {})
    cluster_by(log, ["id"])
    return log


@pytest.mark.parametrize("how", ["create", "alter", "mapped"])
@pytest.mark.parametrize("options", [{}, {"overwriteSchema": "true"}, {"partitionOverwriteMode": "dynamic"}])
def test_a_whole_overwrite_ends_the_clustering(tmp_path: Path, how: str, options: dict[str, str]) -> None:
    log = clustered(tmp_path, how)
    write(tmp_path, ROWS.slice(0, 1), "overwrite", **options)
    assert log.snapshot().clustering_columns == []
    assert "clustering" in log.snapshot().protocol.supported
    version = log.snapshot().version
    write(tmp_path, ROWS, "overwrite")
    assert "domainMetadata" not in {key for action in actions(log, version + 1) for key in action}
    restore(log, version=version - 1)
    assert [tuple(path) for path in log.snapshot().clustering_columns] == [("id",)]


@pytest.mark.parametrize(
    ("mode", "options"),
    [("append", {}), ("overwrite", {"replaceWhere": "id = 1"}), ("overwrite", CLUSTERED)],
)
def test_other_writes_leave_it_alone(tmp_path: Path, mode: str, options: dict[str, str]) -> None:
    log = clustered(tmp_path, "alter")
    write(tmp_path, ROWS.slice(0, 1), mode, **options)
    assert [tuple(path) for path in log.snapshot().clustering_columns] == [("id",)]
    assert info(tmp_path, log.snapshot().version)["operation"] == "WRITE"


@pytest.mark.parametrize("always", [True, False])
def test_values_for_an_identity_column_are_refused_though_the_schema_is_replaced(
    tmp_path: Path, always: bool
) -> None:
    identity = {
        "delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": not always,
    }  # fmt: skip
    log = DeltaLog(tmp_path)
    create_table(log, StructType((StructField("id", LONG, True, identity), StructField("v", INTEGER))))
    options = {"overwriteSchema": "true"}
    for name in ("id", "ID"):
        given = pa.table({name: [5], "w": ["x"]})
        if always:
            with pytest.raises(UnsupportedOperationError, match="DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT"):
                log.write(given, mode="overwrite", options=options)
            assert log.open_snapshot().version == 0
        else:
            log.write(given, mode="overwrite", options=options)
            assert log.open_snapshot().schema.names == [name, "w"]
            break
    log.write(pa.table({"w": ["y"]}), mode="overwrite", options=options)
    assert log.to_arrow().to_pylist() == [{"w": "y"}]
