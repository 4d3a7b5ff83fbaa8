"""RESTORE to a version and to a moment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import (
    AppendOnlyError,
    ConcurrentWriteException,
    DataFileError,
    InvalidOptionError,
    NotADeltaTableError,
    TimestampOutOfRangeError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from delta_ds.kernel.commands.deep_clone import deep_clone
from delta_ds.kernel.commands.drop_feature import drop_feature_support
from delta_ds.kernel.commands.fsck import check
from delta_ds.kernel.commands.fsck_findings import WRONG_CHECKSUM
from delta_ds.kernel.commands.restore import protocol_with_both, restore, with_highest_marks
from delta_ds.kernel.format.actions import Protocol
from delta_ds.kernel.format.features import DELETION_VECTORS, ROW_TRACKING
from delta_ds.kernel.format.schema.types import INTEGER, LONG, StructField, StructType
from delta_ds.kernel.transaction.alter.change_column import alter_column
from delta_ds.kernel.transaction.alter.clustering import cluster_by
from delta_ds.kernel.transaction.alter.columns import add_columns, rename_column
from delta_ds.kernel.transaction.alter.create import create_table
from delta_ds.kernel.transaction.alter.properties import set_properties, unset_properties
from delta_ds.testing import TableBuilder, commit_time, remove_action
from spark_tests.behaviour.kernel.commands.whole_tables import (
    IDS,
    bodies,
    commit_before,
    ids,
    rows,
    with_vector,
)

COLUMNS = StructType((StructField("id", LONG),))


def three_versions(path: Path) -> DeltaLog:
    """1: row 1; 2: rows 1, 2; 3: rows 1, 2, 3."""
    log = DeltaLog(path)
    create_table(log, COLUMNS)
    for value in (1, 2, 3):
        log.write(ids(value))
    return log


def test_rows_come_back_and_history_says_what_was_done(tmp_path: Path) -> None:
    log = three_versions(tmp_path)
    log.write(ids(9), "overwrite")
    done = restore(log, version=2)
    assert (done.version, rows(log)) == (5, [1, 2])
    assert (done.num_restored_files, done.num_removed_files, done.num_of_files_after_restore) == (2, 1, 2)
    assert done.table_size_after_restore == done.restored_files_size
    (info,) = bodies(log, 5, "commitInfo")
    assert (info["operation"], info["operationParameters"]) == ("RESTORE", {"version": 2, "timestamp": None})
    assert (info["isBlindAppend"], info["readVersion"]) == (False, 4)
    assert info["operationMetrics"] == {
        "numRestoredFiles": "2",
        "removedFilesSize": str(done.removed_files_size),
        "numRemovedFiles": "1",
        "restoredFilesSize": str(done.restored_files_size),
        "numOfFilesAfterRestore": "2",
        "tableSizeAfterRestore": str(done.table_size_after_restore),
    }
    assert list(done.row())[0] == "table_size_after_restore" and "version" not in done.row()


def test_files_of_both_versions_are_left_alone(tmp_path: Path) -> None:
    log = three_versions(tmp_path)
    done = restore(log, version=1)
    assert bodies(log, done.version, "add") == []
    removed = {body["path"] for body in bodies(log, done.version, "remove")}
    assert removed == {bodies(log, version, "add")[0]["path"] for version in (2, 3)}


def test_restored_files_keep_statistics_tags_and_partition_values(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.create(pa.schema([("id", pa.int64()), ("p", pa.string())]), partition_columns=["p"])
    add = table.write_file(ids(1), partition_values={"p": None})
    add["add"] |= {"tags": {"a b": "{c}"}, "clusteringProvider": "liquid"}
    table.commit(add)
    table.commit(remove_action(add))
    log = DeltaLog(tmp_path)
    assert bodies(log, restore(log, version=1).version, "add") == [add["add"]]


def test_restoring_twice_commits_twice(tmp_path: Path) -> None:
    log = three_versions(tmp_path)
    restore(log, version=1)
    again = restore(log, version=1)
    assert (again.version, again.num_removed_files, again.num_restored_files) == (5, 0, 0)
    assert rows(log, 3) == [1, 2, 3]


def test_a_moment_means_the_version_of_then(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.create(IDS)
    table.append(ids(1))
    table.append(ids(2))
    log = DeltaLog(tmp_path)
    restore(log, timestamp=commit_time(1) + 5)
    assert rows(log) == [1]
    done = restore(log, timestamp="2023-11-14 22:15:21", timezone="UTC")
    assert rows(log) == [1, 2]
    (info,) = bodies(log, done.version, "commitInfo")
    assert info["operationParameters"] == {"version": None, "timestamp": "2023-11-14 22:15:21"}


@pytest.mark.parametrize(
    ("where", "kind", "condition"),
    [
        ({"version": 99}, VersionNotFoundError, "DELTA_CANNOT_RESTORE_TABLE_VERSION"),
        ({"timestamp": "1999-01-01"}, TimestampOutOfRangeError, "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER"),
        ({"timestamp": "9000-01-01"}, TimestampOutOfRangeError, "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER"),
        ({"timestamp": "soon"}, InvalidOptionError, "DELTA_TIMESTAMP_INVALID"),
        ({}, InvalidOptionError, "DELTA_ONEOF_IN_TIMETRAVEL"),
        ({"version": 1, "timestamp": "2020-01-01"}, InvalidOptionError, "DELTA_ONEOF_IN_TIMETRAVEL"),
    ],
)
def test_what_cannot_be_reached_is_refused(
    tmp_path: Path, where: dict[str, Any], kind: type[Exception], condition: str
) -> None:
    log = three_versions(tmp_path)
    with pytest.raises(kind) as caught:
        restore(log, **where)
    assert caught.value.condition == condition
    assert log.snapshot().version == 3


def test_no_table_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(NotADeltaTableError):
        restore(DeltaLog(tmp_path / "none"), version=0)


def test_schema_and_properties_go_back(tmp_path: Path) -> None:
    log = three_versions(tmp_path)
    add_columns(log, StructType((StructField("x", INTEGER),)))
    set_properties(log, {"my.p": "1"})
    restore(log, version=1)
    assert (log.snapshot().schema.names, log.snapshot().properties) == (["id"], {})
    restore(log, version=5)
    assert (log.snapshot().schema.names, log.snapshot().properties) == (["id", "x"], {"my.p": "1"})


def test_features_stay_supported(tmp_path: Path) -> None:
    log = three_versions(tmp_path)
    set_properties(log, {"delta.enableDeletionVectors": "true"})
    restore(log, version=3)
    assert log.snapshot().protocol.supports(DELETION_VECTORS)
    assert log.snapshot().properties == {}


def test_the_protocol_goes_back_only_where_that_is_allowed(tmp_path: Path) -> None:
    log = three_versions(tmp_path)
    before = log.snapshot().protocol
    set_properties(log, {"delta.enableDeletionVectors": "true"})
    restore(log, version=3, protocol_downgrade_allowed=True)
    assert log.snapshot().protocol == before


def test_partitioning_goes_back(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    for column in ("p", "q"):
        data = pa.table({"id": [1, 2], "p": ["a", None], "q": [3, 4]})
        log.write(data, "overwrite", {"partitionBy": column, "overwriteSchema": "true"})
    for version, column in ((0, "p"), (1, "q")):
        restore(log, version=version)
        assert (log.snapshot().partition_columns, rows(log)) == ([column], [1, 2])
        assert log.snapshot().scan("p = 'a'", ["id"]).to_arrow()["id"].to_pylist() == [1]


def test_widened_types_go_back_and_forth(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    create_table(
        log, StructType((StructField("id", INTEGER),)), properties={"delta.enableTypeWidening": "true"}
    )
    log.write(pa.table({"id": pa.array([1], pa.int32())}))
    wide = alter_column(log, "id", data_type=LONG)
    assert wide is not None
    log.write(ids(1 << 40))
    restore(log, version=1)
    assert (log.snapshot().schema.fields[0].type, rows(log)) == (INTEGER, [1])
    restore(log, version=wide + 1)
    assert (log.snapshot().schema.fields[0].type, rows(log)) == (LONG, [1, 1 << 40])


def test_joined_protocols_support_what_either_does() -> None:
    old, new = Protocol(1, 4), Protocol(3, 7, frozenset(["deletionVectors"]), frozenset(["deletionVectors"]))
    joined = protocol_with_both(new, old)
    assert joined.supported == old.supported | new.supported
    assert protocol_with_both(joined, old) is joined


def test_the_version_that_is_there_already_is_no_commit(tmp_path: Path) -> None:
    log = three_versions(tmp_path)
    assert restore(log, version=3) is None
    # Of history, not of the snapshot: commits of one millisecond have one file time, which names the first of them.
    assert restore(log, timestamp=log.history()[0]["timestamp"]) is None
    assert log.snapshot().version == 3


def test_the_commit_has_the_id_it_was_given_and_is_serializable(tmp_path: Path) -> None:
    log = three_versions(tmp_path)
    done = restore(log, version=1, transaction_id="the-id")
    (info,) = bodies(log, done.version, "commitInfo")
    assert (info["txnId"], info["readVersion"], info["isolationLevel"]) == ("the-id", 3, "Serializable")


# --- deletion vectors


def test_a_file_with_another_vector_is_another_file(tmp_path: Path) -> None:
    _, log = with_vector(tmp_path)
    done = restore(log, version=1)
    assert rows(log) == [1, 2, 3]
    assert (done.num_restored_files, done.num_removed_files) == (1, 1)
    assert "deletionVector" not in bodies(log, done.version, "add")[0]
    restore(log, version=2)
    assert rows(log) == [2, 3]


def test_from_a_checkpoint_the_same_comes_back(tmp_path: Path) -> None:
    table, _ = with_vector(tmp_path)
    table.checkpoint("v2-parquet")
    log = DeltaLog(tmp_path)
    log.write(ids(7), "overwrite")
    done = restore(log, version=2)
    assert rows(log) == [2, 3]
    (add,) = bodies(log, done.version, "add")
    assert json.loads(add["stats"])["numRecords"] == 3 and add["deletionVector"]["cardinality"] == 1


# --- missing files


@pytest.mark.parametrize("gone", ["part-*.parquet", "deletion_vector_*.bin"])
def test_missing_files_are_refused_unless_ignored(tmp_path: Path, gone: str) -> None:
    _, log = with_vector(tmp_path)
    (lost,) = tmp_path.glob(gone)
    log.write(ids(7), "overwrite")
    lost.unlink()
    with pytest.raises(DataFileError, match=lost.stem[:20]):
        restore(log, version=2)
    assert (log.snapshot().version, rows(log)) == (3, [7])
    assert restore(log, version=2, ignore_missing_files=True).num_restored_files == 1


def test_files_that_are_live_anyway_are_not_looked_for(tmp_path: Path) -> None:
    log = three_versions(tmp_path)
    path = bodies(log, 1, "add")[0]["path"]
    (tmp_path / path).unlink()
    assert restore(log, version=1).num_removed_files == 2


# --- conflicts and limits


def test_a_commit_in_between_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = three_versions(tmp_path)
    commit_before(monkeypatch, DeltaLog(tmp_path), ids(4))
    with pytest.raises(ConcurrentWriteException):
        restore(log, version=1)
    assert rows(log) == [1, 2, 3, 4]


def test_append_only_tables_lose_no_rows(tmp_path: Path) -> None:
    log = three_versions(tmp_path)
    set_properties(log, {"delta.appendOnly": "true"})
    with pytest.raises(AppendOnlyError):
        restore(log, version=1)


# --- what must never go back


def test_identity_marks_only_move_on() -> None:
    def column(mark: int | None, step: int) -> StructType:
        about = {"delta.identity.start": 0, "delta.identity.step": step}
        return StructType(
            (
                StructField(
                    "k", LONG, True, about | ({} if mark is None else {"delta.identity.highWaterMark": mark})
                ),
            )
        )

    def mark(schema: StructType) -> Any:
        return schema.fields[0].metadata.get("delta.identity.highWaterMark")

    assert mark(with_highest_marks(column(5, 1), column(9, 1))) == 9
    assert mark(with_highest_marks(column(5, 1), column(3, 1))) == 5
    assert mark(with_highest_marks(column(-5, -1), column(-9, -1))) == -9
    assert mark(with_highest_marks(column(None, 1), column(9, 1))) == 9
    assert mark(with_highest_marks(column(5, 1), column(9, 2))) == 5


_IDENTITY = {
    "delta.identity.start": 0,
    "delta.identity.step": 1,
    "delta.identity.allowExplicitInsert": False,
}
_NUMBERED = StructType((StructField("k", LONG, True, _IDENTITY), StructField("id", LONG)))


def test_identity_values_are_not_given_out_again_where_the_column_was_renamed(tmp_path: Path) -> None:
    log, clone = DeltaLog(tmp_path / "t"), DeltaLog(tmp_path / "clone")
    create_table(log, _NUMBERED, properties={"delta.columnMapping.mode": "name"})
    log.write(ids(1, 2))
    log.clone(clone)
    rename_column(log, "k", "number")
    log.write(ids(3))
    deep_clone(log, clone, replace_existing=True)
    restore(log, version=1)
    log.write(ids(4))
    assert log.to_arrow("id = 4")["k"].to_pylist() == [3]
    deep_clone(log, clone, version=1, replace_existing=True)
    clone.write(ids(4))
    assert clone.to_arrow("id = 4")["k"].to_pylist() == [3]


def test_identity_values_are_not_given_out_again_where_the_version_has_no_column_mapping(
    tmp_path: Path,
) -> None:
    log = DeltaLog(tmp_path)
    create_table(log, _NUMBERED)
    log.write(ids(1, 2))
    set_properties(log, {"delta.columnMapping.mode": "name"})
    rename_column(log, "k", "number")
    log.write(ids(3))
    restore(log, version=1)
    log.write(ids(4))
    assert log.to_arrow("id = 4")["k"].to_pylist() == [3]


def test_column_ids_are_not_given_out_again(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    create_table(log, COLUMNS, properties={"delta.columnMapping.mode": "name"})
    add_columns(log, StructType((StructField("x", INTEGER),)))
    restore(log, version=0)
    assert log.snapshot().properties["delta.columnMapping.maxColumnId"] == "2"
    add_columns(log, StructType((StructField("y", INTEGER),)))
    assert log.snapshot().schema.fields[1].metadata["delta.columnMapping.id"] == 3


def test_column_mapping_can_go_back_to_none(tmp_path: Path) -> None:
    log = three_versions(tmp_path)
    set_properties(log, {"delta.columnMapping.mode": "name"})
    log.write(ids(4))
    restore(log, version=2)
    log.write(ids(5))
    assert (log.snapshot().mapping_mode, rows(log)) == ("none", [1, 2, 5])


def test_clustering_goes_back_and_goes_away(tmp_path: Path) -> None:
    log = three_versions(tmp_path)
    clustered = DeltaLog(tmp_path / "clustered")
    create_table(clustered, COLUMNS, cluster_by=["id"])
    cluster_by(clustered, [])
    restore(clustered, version=0)
    assert clustered.snapshot().clustering_columns == [["id"]]
    create_table(log, COLUMNS, mode="replace", cluster_by=["id"])
    assert log.snapshot().clustering_columns == [["id"]]
    restore(log, version=1)
    assert log.snapshot().clustering_columns == []


def test_in_commit_timestamps_start_again_where_they_were_off(tmp_path: Path) -> None:
    log = three_versions(tmp_path)
    on = set_properties(log, {"delta.enableInCommitTimestamps": "true"})
    unset_properties(log, ["delta.enableInCommitTimestamps"])
    log.write(ids(4))
    done = restore(log, version=on)
    found = log.snapshot().properties["delta.inCommitTimestampEnablementVersion"]
    assert (int(found), len(log.history())) == (done.version, done.version + 1)
    restore(log, version=done.version)
    assert log.snapshot().properties["delta.inCommitTimestampEnablementVersion"] == found


# --- row tracking


def tracked(path: Path) -> DeltaLog:
    log = DeltaLog(path)
    create_table(log, COLUMNS, properties={"delta.enableRowTracking": "true"})
    log.write(ids(1, 2))
    return log


def test_row_ids_come_back_and_the_mark_stays(tmp_path: Path) -> None:
    log = tracked(tmp_path)
    log.write(ids(3), "overwrite")
    done = restore(log, version=1)
    (add,) = bodies(log, done.version, "add")
    assert (add["baseRowId"], add["defaultRowCommitVersion"]) == (0, 1)
    log.write(ids(4))
    assert bodies(log, done.version + 1, "add")[0]["baseRowId"] == 3


def test_files_from_before_row_tracking_get_row_ids(tmp_path: Path) -> None:
    log = three_versions(tmp_path)
    log.write(ids(9), "overwrite")
    set_properties(log, {"delta.enableRowTracking": "true"})
    done = restore(log, version=3)
    assert sorted(add["baseRowId"] for add in bodies(log, done.version, "add")) == [1, 2, 3]
    assert log.snapshot().protocol.supports(ROW_TRACKING)


def row_ids(log: DeltaLog) -> dict[int, int]:
    """The row id of each row, by its `id`."""
    found = log.snapshot().scan(metadata_columns=("row_id",)).to_arrow()
    ids_of_rows = [row["row_id"] for row in found[found.column_names[-1]].to_pylist()]
    assert len(set(ids_of_rows)) == len(ids_of_rows), "two rows have one id"
    return dict(zip(found["id"].to_pylist(), ids_of_rows, strict=True))


@pytest.mark.parametrize("added_again", [True, False])
@pytest.mark.parametrize("stays", [None, 3])
def test_row_ids_from_before_row_tracking_was_dropped_are_not_given_out_again(
    tmp_path: Path, added_again: bool, stays: int | None
) -> None:
    log = tracked(tmp_path)
    log.write(ids(3, 4))
    before = row_ids(log)
    set_properties(log, {"delta.enableRowTracking": "false"})
    drop_feature_support(log, "rowTracking")
    log.delete(None if stays is None else f"id < {stays}")
    if added_again:
        log.set_properties({"delta.enableRowTracking": "true"})
    restore(DeltaLog(tmp_path), version=2)
    assert row_ids(log) == before
    log.write(ids(5))
    assert row_ids(log) == {**before, 5: 4}
    log.update({"id": "id + 10"})
    assert row_ids(log) == {key + 10: value for key, value in before.items()} | {15: 4}


def test_rows_have_the_ids_of_the_version_whatever_their_files_got_meanwhile(tmp_path: Path) -> None:
    log = three_versions(tmp_path)
    set_properties(log, {"delta.enableRowTracking": "true"})
    version, before = log.snapshot().version, row_ids(log)
    log.update({"id": "id + 10"})
    restore(log, version=3)
    restore(log, version=version)
    assert row_ids(log) == before


def test_suspended_row_tracking_is_not_brought_back(tmp_path: Path) -> None:
    log = tracked(tmp_path)
    set_properties(log, {"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"})
    with pytest.raises(UnsupportedOperationError, match="rowTrackingSuspended"):
        restore(log, version=1)


def test_row_ids_that_were_taken_away_are_given_back(tmp_path: Path) -> None:
    log = tracked(tmp_path)
    set_properties(log, {"delta.enableRowTracking": "false"})
    (add,) = bodies(log, 1, "add")
    without = {k: v for k, v in add.items() if k not in ("baseRowId", "defaultRowCommitVersion")}
    number = log.snapshot().version + 1
    line = json.dumps({"add": {**without, "dataChange": False}})
    (tmp_path / "_delta_log" / f"{number:020}.json").write_text(line + "\n")
    done = restore(DeltaLog(tmp_path), version=1)
    assert bodies(log, done.version, "add")[0]["baseRowId"] == 0
    assert (bodies(log, done.version, "remove"), rows(DeltaLog(tmp_path))) == ([], [1, 2])


@pytest.mark.parametrize("added", [[], [9]])
def test_row_ids_that_are_given_back_are_no_change_of_rows(tmp_path: Path, added: list[int]) -> None:
    log = DeltaLog(tmp_path)
    feed = {"delta.enableChangeDataFeed": "true", "delta.enableRowTracking": "true"}
    create_table(log, COLUMNS, properties=feed)
    log.write(ids(1, 2))
    set_properties(log, {"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"})
    before = log.snapshot().version
    log.delete()
    restore(log, version=before)  # while suspended: without ids
    unset_properties(log, ["delta.rowTrackingSuspended"])
    if added:
        log.write(ids(*added))
    done = restore(log, version=1)
    (add,) = bodies(log, done.version, "add")
    assert (add["baseRowId"], add["dataChange"]) == (0, False)
    assert (done.num_restored_files, done.num_removed_files, rows(log)) == (0, len(added), [1, 2])
    changes = log.changes(done.version, done.version).to_arrow().to_pylist()
    assert [(c["id"], c["_change_type"]) for c in changes] == [(value, "delete") for value in added]
    assert [finding.detail for finding in check(log) if finding.kind is WRONG_CHECKSUM] == []


def test_the_change_feed_shows_what_came_and_went(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    create_table(log, COLUMNS, properties={"delta.enableChangeDataFeed": "true"})
    log.write(ids(1))
    log.write(ids(2), "overwrite")
    done = restore(log, version=1)
    changes = log.changes(done.version, done.version).to_arrow().to_pylist()
    assert sorted((c["id"], c["_change_type"]) for c in changes) == [(1, "insert"), (2, "delete")]
