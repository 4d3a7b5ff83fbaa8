"""Setting and unsetting table properties."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import DeltaError, InvalidOptionError
from delta_ds.kernel.commands.clone import shallow_clone
from delta_ds.kernel.commands.convert_to_delta import convert_to_delta
from delta_ds.kernel.commands.deep_clone import deep_clone
from delta_ds.kernel.format.features import DELETION_VECTORS
from delta_ds.kernel.format.properties import OF_UPKEEP, PropertyRules, TableProperty
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    INTEGER,
    LONG,
    STRING,
    PrimitiveType,
    StructField,
    StructType,
)
from delta_ds.kernel.transaction.alter.create import CREATE_OR_REPLACE, REPLACE, create_table
from delta_ds.kernel.transaction.alter.properties import set_properties, unset_properties
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.kernel.transaction.alter.tables import NESTED, PLAIN, action, made, with_rows


def test_properties_are_stored_in_canonical_case_and_recorded_as_given(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"keep": "it"})
    version = set_properties(log, {"Delta.AppendOnly": "TRUE", "My.Own": "x y"})
    assert log.snapshot().properties == {"keep": "it", "delta.appendOnly": "TRUE", "My.Own": "x y"}
    info = action(log, version, "commitInfo")
    assert info["operation"] == "SET TBLPROPERTIES"
    assert json.loads(info["operationParameters"]["properties"]) == {
        "delta.appendOnly": "TRUE",
        "My.Own": "x y",
    }


def test_what_only_asks_for_a_protocol_is_not_stored(tmp_path: Path) -> None:
    log = made(tmp_path)
    set_properties(
        log, {"delta.feature.deletionVectors": "supported", "delta.minWriterVersion": "7", "a": "b"}
    )
    assert log.snapshot().properties == {"a": "b"}
    assert log.snapshot().protocol.supports(DELETION_VECTORS)


def test_a_comment_becomes_the_description(tmp_path: Path) -> None:
    log = made(tmp_path, description="old")
    set_properties(log, {"comment": "new"})
    assert (log.snapshot().metadata.description, log.snapshot().properties) == ("new", {})
    unset_properties(log, ["comment"])
    assert log.snapshot().metadata.description is None


def test_metadata_keeps_its_id_and_partitioning(tmp_path: Path) -> None:
    log = made(tmp_path, NESTED, partition_columns=["p"])
    before = log.snapshot().metadata
    set_properties(log, {"a": "b"})
    after = log.snapshot().metadata
    assert (after.id, after.partition_columns, after.created_time) == (
        before.id, before.partition_columns, before.created_time,
    )  # fmt: skip


def test_unset_takes_away_and_ignores_what_is_not_there(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"a": "1", "delta.appendOnly": "true", "b": "2"})
    version = unset_properties(log, ["a", "DELTA.APPENDONLY", "nosuch"])
    assert log.snapshot().properties == {"b": "2"}
    assert action(log, version, "commitInfo")["operation"] == "UNSET TBLPROPERTIES"


@pytest.mark.parametrize(
    ("properties", "condition"),
    [
        ({"delta.nosuch": "1"}, "DELTA_UNKNOWN_CONFIGURATION"),
        ({"delta.appendOnly": "maybe"}, "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED"),
        ({"delta.checkpointInterval": "0"}, "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED"),
        ({"delta.constraints.c": "id > 0"}, "DELTA_ADD_CONSTRAINTS"),
        ({"delta.columnMapping.maxColumnId": "9"}, "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"),
        ({"delta.enableIcebergCompatV3": "true"}, "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"),
        ({"delta.enableVariantShredding": "true"}, "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"),
        ({"delta.feature.nosuch": "supported"}, "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"),
        ({"delta.feature.deletionVectors": "off"}, "DELTA_UNSUPPORTED_FEATURE_STATUS"),
        ({"delta.columnMapping.mode": "id"}, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"),
        ({"delta.dataSkippingStatsColumns": "s.a, nosuch"}, "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (
            {"delta.dataSkippingStatsColumns": "p"},
            "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN",
        ),
        ({"delta.dataSkippingStatsColumns": "s.a,s.a"}, "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS"),
    ],
)
def test_what_cannot_be_set_is_refused_and_nothing_written(
    tmp_path: Path, properties: dict[str, str], condition: str
) -> None:
    log = made(tmp_path, NESTED, partition_columns=["p"])
    with pytest.raises(DeltaError) as caught:
        set_properties(log, {"fine": "1", **properties})
    assert caught.value.condition == condition
    assert log.snapshot().version == 0


@pytest.mark.parametrize("kind", [BINARY, BOOLEAN])
def test_statistics_of_a_type_without_an_order_cannot_be_asked_for(
    tmp_path: Path, kind: PrimitiveType
) -> None:
    schema = StructType((StructField("a", LONG), StructField("b", kind)))
    log = made(tmp_path, schema)
    with pytest.raises(InvalidOptionError) as caught:
        set_properties(log, {"delta.dataSkippingStatsColumns": "b"})
    assert caught.value.condition == "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE"
    with pytest.raises(InvalidOptionError):
        made(tmp_path / "new", schema, properties={"delta.dataSkippingStatsColumns": "a,b"})


@pytest.mark.parametrize(
    "name", ["delta.feature.deletionVectors", "delta.constraints.c", "delta.columnMapping.maxColumnId"]
)
def test_what_stands_for_something_else_is_not_unset(tmp_path: Path, name: str) -> None:
    log = made(tmp_path)
    with pytest.raises(InvalidOptionError, match="Nothing was written"):
        unset_properties(log, [name])
    assert log.snapshot().version == 0


# --- column mapping


def ids_and_names(schema: StructType) -> dict[str, tuple[int, str]]:
    return {
        f.name: (f.metadata["delta.columnMapping.id"], f.metadata["delta.columnMapping.physicalName"])
        for f in schema
    }


def test_mapping_switched_on_for_a_table_with_files_keeps_the_names(tmp_path: Path) -> None:
    log = with_rows(tmp_path)
    set_properties(log, {"delta.columnMapping.mode": "name"})
    snapshot = log.snapshot()
    assert ids_and_names(snapshot.schema) == {"id": (1, "id"), "v": (2, "v")}
    assert snapshot.properties["delta.columnMapping.maxColumnId"] == "2"
    assert snapshot.scan().to_arrow().num_rows == 2


@pytest.mark.parametrize("mode", ["id", "none"])
def test_a_mapping_that_is_on_is_not_changed(tmp_path: Path, mode: str) -> None:
    log = made(tmp_path, properties={"delta.columnMapping.mode": "name"})
    with pytest.raises(DeltaError) as caught:
        set_properties(log, {"delta.columnMapping.mode": mode})
    assert caught.value.condition == "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"


def test_a_mapping_that_odd_names_need_is_not_removed(tmp_path: Path) -> None:
    schema = StructType((StructField("a b", INTEGER), StructField("c", INTEGER)))
    log = made(tmp_path, schema, properties={"delta.columnMapping.mode": "name"})
    for change in (
        lambda: set_properties(log, {"delta.columnMapping.mode": "none"}),
        lambda: unset_properties(log, ["delta.columnMapping.mode"]),
    ):
        with pytest.raises(DeltaError, match="'a b'") as caught:
            change()
        assert caught.value.condition == "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING"


def test_other_properties_of_a_mapped_table_leave_its_ids_alone(tmp_path: Path) -> None:
    log = made(tmp_path, NESTED, properties={"delta.columnMapping.mode": "id"})
    before = log.snapshot()
    set_properties(log, {"a": "b"})
    after = log.snapshot()
    assert after.schema == before.schema
    assert after.properties == {**before.properties, "a": "b"}


# --- change data feed


def test_the_change_feed_keeps_its_column_names_for_itself(tmp_path: Path) -> None:
    log = made(tmp_path, StructType((StructField("_change_type", STRING), StructField("b", INTEGER))))
    with pytest.raises(DeltaError, match="_change_type"):
        set_properties(log, {"delta.enableChangeDataFeed": "true"})
    assert log.snapshot().version == 0


# --- row tracking


def row_ids(log: Any) -> list[tuple[int, int]]:
    table = log.open_snapshot().live_files().table.select(["baseRowId", "defaultRowCommitVersion"])
    return sorted((row["baseRowId"], row["defaultRowCommitVersion"]) for row in table.to_pylist())


def test_row_tracking_on_a_table_with_files_gives_them_ids_first(tmp_path: Path) -> None:
    log = with_rows(tmp_path, files=3)
    version = set_properties(log, {"delta.enableRowTracking": "true"})
    operations = [commit["operation"] for commit in log.history(3)]
    assert operations == ["SET TBLPROPERTIES", "ROW TRACKING BACKFILL", "UPGRADE PROTOCOL"]
    assert row_ids(log) == [(0, version - 1), (2, version - 1), (4, version - 1)]
    assert json.loads(log.snapshot().domains["delta.rowTracking"])["rowIdHighWaterMark"] == 5
    assert log.snapshot().scan().to_arrow().num_rows == 6
    names = {k for k in log.snapshot().properties if k.startswith("delta.rowTracking.materialized")}
    assert len(names) == 2


def test_row_tracking_on_a_table_without_files_needs_no_backfill(tmp_path: Path) -> None:
    log = made(tmp_path)
    set_properties(log, {"delta.enableRowTracking": "true"})
    assert [commit["operation"] for commit in log.history(2)] == ["SET TBLPROPERTIES", "UPGRADE PROTOCOL"]


def test_row_tracking_that_is_refused_backfills_nothing(tmp_path: Path) -> None:
    log = with_rows(tmp_path)
    before = log.snapshot().version
    with pytest.raises(DeltaError):
        set_properties(log, {"delta.enableRowTracking": "true", "delta.rowTrackingSuspended": "true"})
    assert log.snapshot().version == before


def test_the_names_of_row_tracking_columns_stay(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.enableRowTracking": "true"})
    before = log.snapshot().properties
    set_properties(log, {"delta.enableRowTracking": "false"})
    set_properties(log, {"delta.enableRowTracking": "true"})
    assert log.snapshot().properties == before


@pytest.mark.parametrize(
    "asked", [{"delta.minWriterVersion": "2"}, {"delta.minReaderVersion": "3", "delta.minWriterVersion": "5"}]
)
def test_a_version_that_does_not_go_with_reader_features_is_refused(
    tmp_path: Path, asked: dict[str, str]
) -> None:
    log = made(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    with pytest.raises(DeltaError) as caught:
        set_properties(log, asked)
    assert caught.value.condition == "DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE"
    assert log.snapshot().version == 0


def test_unknown_properties_are_stored_as_given_where_they_are_allowed(tmp_path: Path) -> None:
    log = made(tmp_path, properties={"delta.Made.Up": "0"}, rules=PropertyRules(unknown=True))
    set_properties(log, {"delta.someThing": "1"}, PropertyRules(unknown=True))
    assert log.snapshot().properties == {"delta.Made.Up": "0", "delta.someThing": "1"}
    with pytest.raises(InvalidOptionError):
        set_properties(log, {"delta.someThing": "2"})


# The log would be kept for a shorter time than deleted files.
SHORT_LOG = {"delta.logRetentionDuration": "interval 1 day"}
KEPT_ALIKE = {**SHORT_LOG, "delta.deletedFileRetentionDuration": "interval 1 day"}
ANY_RETENTION = PropertyRules(retentions=False)
ROWS = pa.table({"id": pa.array([1], pa.int64()), "v": pa.array([1], pa.int32())})

Properties = dict[str, str]


def _convert(log: DeltaLog, properties: Properties, rules: PropertyRules) -> object:
    folder = Path(log.storage.url).with_name("folder")
    folder.mkdir(exist_ok=True)
    pq.write_table(ROWS, folder / "a.parquet")
    return convert_to_delta(DeltaLog(folder), properties=properties, rules=rules)


def _write(log: DeltaLog, properties: Properties, rules: PropertyRules, **how: Any) -> object:
    name = "spark.databricks.delta.vacuum.enforceDeletedFileAndLogRetentionDurationCompatibility"
    session = {"sessionSettings": json.dumps({name: str(rules.retentions).lower()})}
    return log.write(ROWS, options={**properties, **session}, **how)


def _beside(log: DeltaLog) -> DeltaLog:
    return DeltaLog(log.storage.url + "-beside")


# Each gives properties to the table, or to another that it makes.
WAYS: dict[str, Callable[[DeltaLog, Properties, PropertyRules], object]] = {
    "create": lambda log, new, rules: create_table(_beside(log), PLAIN, properties=new, rules=rules),
    "replace": lambda log, new, rules: create_table(log, PLAIN, properties=new, rules=rules, mode=REPLACE),
    "keep": lambda log, new, rules: create_table(
        log, PLAIN, properties=new, rules=rules, mode=CREATE_OR_REPLACE
    ),
    "set": set_properties,
    "write": lambda log, new, rules: _write(_beside(log), new, rules),
    "append": lambda log, new, rules: _write(log, new, rules, mode="append"),
    "overwrite": lambda log, new, rules: _write(log, new, rules, mode="overwrite"),
    "convert": _convert,
    "clone": lambda log, new, rules: shallow_clone(log, _beside(log), properties=new, rules=rules),
    "copy": lambda log, new, rules: deep_clone(log, _beside(log), properties=new, rules=rules),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_log_kept_shorter_than_deleted_files_is_refused_whoever_asks_for_it(
    tmp_path: Path, way: str
) -> None:
    log = made(tmp_path / "t")
    with pytest.raises(InvalidOptionError, match="needs to be greater than or equal to"):
        WAYS[way](log, SHORT_LOG, PropertyRules())
    assert log.snapshot().version == 0
    assert not [found for found in tmp_path.rglob("_delta_log") if found.parent != tmp_path / "t"]
    WAYS[way](log, KEPT_ALIKE, PropertyRules())


@pytest.mark.parametrize("way", WAYS)
def test_a_session_may_let_the_log_be_kept_shorter(tmp_path: Path, way: str) -> None:
    WAYS[way](made(tmp_path / "t"), SHORT_LOG, ANY_RETENTION)


def test_a_log_that_is_kept_too_short_already_is_no_matter_of_other_commands(tmp_path: Path) -> None:
    log = made(tmp_path / "t", properties=SHORT_LOG, rules=ANY_RETENTION)
    set_properties(log, {"delta.checkpointInterval": "3"})
    unset_properties(log, ["delta.checkpointInterval"])
    log.write(ROWS, mode="append")
    log.restore(version=0)
    assert shallow_clone(log, _beside(log)).version == 0
    assert {**log.snapshot().properties} == SHORT_LOG == {**_beside(log).snapshot().properties}


def test_neither_the_table_nor_its_defaults_count_for_how_long_its_log_is_kept(tmp_path: Path) -> None:
    log = made(tmp_path / "t", properties=KEPT_ALIKE)
    set_properties(log, {"delta.deletedFileRetentionDuration": "interval 7 days"})
    with pytest.raises(InvalidOptionError):
        set_properties(log, {"delta.logRetentionDuration": "interval 6 days"})
    created = made(tmp_path / "new", defaults=SHORT_LOG)
    assert {**created.snapshot().properties} == SHORT_LOG


@pytest.mark.parametrize("known", OF_UPKEEP, ids=str)
def test_a_log_that_cannot_be_kept_up_takes_no_commit_but_those_that_mend_it(
    tmp_path: Path, known: TableProperty[Any]
) -> None:
    TableBuilder(tmp_path).create(ROWS.schema, properties={known.name: "often"})  # by another writer
    log = DeltaLog(tmp_path)
    ways: list[Callable[[], object]] = [
        lambda: log.write(ROWS, "append"),
        lambda: log.delete("id = 1"),
        lambda: set_properties(log, {"own": "1"}),
        log.vacuum,
    ]
    for way in ways:
        with pytest.raises(InvalidOptionError, match=rf"version 0 of .*{known.name}.*'often'.*Unset"):
            way()
    assert (log.snapshot().version, log.snapshot().scan().to_arrow().num_rows) == (0, 0)
    unset_properties(log, [known.name])
    assert log.write(ROWS, "append") == 2


def test_the_history_names_features_in_lower_case(tmp_path: Path) -> None:
    log = made(tmp_path)
    version = set_properties(log, {"delta.feature.v2Checkpoint": "supported"})
    parameters = action(log, version, "commitInfo")["operationParameters"]
    assert json.loads(parameters["properties"]) == {"delta.feature.v2checkpoint": "supported"}
