"""Shallow clones."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import (
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    InvalidOptionError,
    StorageError,
    TableExistsError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from delta_ds.kernel.commands.clone import shallow_clone
from delta_ds.kernel.format.features import DELETION_VECTORS
from delta_ds.kernel.format.schema.types import LONG, StructField, StructType
from delta_ds.kernel.transaction.alter.create import create_table
from delta_ds.kernel.transaction.alter.properties import set_properties
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.kernel.commands.whole_tables import (
    IDS,
    bodies,
    commit_before,
    ids,
    rows,
    with_vector,
)

COLUMNS = StructType((StructField("id", LONG),))


def source(path: Path) -> DeltaLog:
    """1: row 1; 2: rows 1, 2."""
    log = DeltaLog(path / "the source ä%")
    create_table(log, COLUMNS, properties={"k": "source"}, description="of the source", name="its name")
    log.write(ids(1))
    log.write(ids(2))
    return log


def target(path: Path) -> DeltaLog:
    return DeltaLog(path / "a clone#")


def test_the_clone_reads_the_files_of_the_source(tmp_path: Path) -> None:
    log, clone = source(tmp_path), target(tmp_path)
    done = shallow_clone(log, clone)
    assert (done.version, rows(clone)) == (0, [1, 2])
    assert not list((tmp_path / "a clone#").rglob("*.parquet"))
    paths = {add["path"] for add in bodies(clone, 0, "add")}
    root = f"file:{tmp_path}/the%20source%20%C3%A4%25/"
    assert paths == {root + bodies(log, version, "add")[0]["path"] for version in (1, 2)}


def test_history_and_result_are_those_of_delta_spark(tmp_path: Path) -> None:
    log, clone = source(tmp_path), target(tmp_path)
    done = shallow_clone(log, clone, version=1)
    (info,) = bodies(clone, 0, "commitInfo")
    where = f"delta.`file:{tmp_path}/the source ä%`"
    assert (info["operation"], info["operationParameters"]) == (
        "CLONE",
        {"source": where, "sourceVersion": 1},
    )
    size = bodies(log, 1, "add")[0]["size"]
    assert info["operationMetrics"] == {
        "sourceTableSize": str(size), "sourceNumOfFiles": "1", "numRemovedFiles": "0", "removedFilesSize": "0",
        "numCopiedFiles": "0", "copiedFilesSize": "0",
    }  # fmt: skip
    assert info["isBlindAppend"] is False
    assert done.row() == {
        "source_table_size": size, "source_num_of_files": 1, "num_removed_files": 0, "num_copied_files": 0,
        "removed_files_size": 0, "copied_files_size": 0,
    }  # fmt: skip


def test_neither_side_sees_what_the_other_does(tmp_path: Path) -> None:
    log, clone = source(tmp_path), target(tmp_path)
    shallow_clone(log, clone)
    clone.write(ids(9), "overwrite")
    log.write(ids(3))
    assert (rows(clone), rows(log)) == ([9], [1, 2, 3])
    assert rows(clone, 0) == [1, 2]


def test_properties_come_along_and_description_does_not(tmp_path: Path) -> None:
    log, clone = source(tmp_path), target(tmp_path)
    shallow_clone(log, clone, properties={"extra": "1", "delta.enableDeletionVectors": "true"})
    old, new = log.snapshot().metadata, clone.snapshot().metadata
    assert new.configuration == {"k": "source", "extra": "1", "delta.enableDeletionVectors": "true"}
    assert (new.name, new.description) == (None, None)
    assert new.id != old.id and new.created_time == old.created_time
    assert clone.snapshot().protocol.supports(DELETION_VECTORS)


def test_an_earlier_version_or_moment_is_cloned(tmp_path: Path) -> None:
    log = source(tmp_path)
    shallow_clone(log, one := DeltaLog(tmp_path / "one"), version=1)
    shallow_clone(log, two := DeltaLog(tmp_path / "two"), timestamp=log.snapshot(1).timestamp)
    assert rows(one) == rows(two) == [1]
    with pytest.raises(VersionNotFoundError):
        shallow_clone(log, none := DeltaLog(tmp_path / "none"), version=7)
    assert not none.storage.exists("_delta_log")


@pytest.mark.parametrize("storage", ["u", "p", "i"])
def test_deletion_vectors_are_found_from_the_clone(tmp_path: Path, storage: str) -> None:
    table = TableBuilder(tmp_path / "s")
    table.create(IDS, properties={"delta.enableDeletionVectors": "true"}, reader_features=["deletionVectors"])
    add = table.write_file(ids(1, 2, 3))
    table.commit(add)
    table.delete_rows(add, [0, 2], storage)
    clone = target(tmp_path)
    shallow_clone(DeltaLog(table.path), clone)
    assert rows(clone) == [2]
    vector = bodies(clone, 0, "add")[0]["deletionVector"]
    assert vector["storageType"] == ("i" if storage == "i" else "p")
    assert vector["cardinality"] == 2


def test_a_clone_of_a_clone_names_the_first_source(tmp_path: Path) -> None:
    _, log = with_vector(tmp_path / "s")
    shallow_clone(log, one := DeltaLog(tmp_path / "one"))
    shallow_clone(one, two := DeltaLog(tmp_path / "two"))
    assert rows(two) == [2, 3]
    fields = ("path", "deletionVector")
    first, second = (bodies(clone, 0, "add")[0] for clone in (one, two))
    assert [first[f] for f in fields] == [second[f] for f in fields]


def test_partitions_and_column_mapping_come_along(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "s")
    columns = StructType((StructField("id", LONG), StructField("p", LONG)))
    create_table(log, columns, ["p"], {"delta.columnMapping.mode": "name"})
    log.write(pa.table({"id": [1, 2], "p": [7, None]}))
    shallow_clone(log, clone := target(tmp_path))
    assert rows(clone) == [1, 2]
    clone.write(pa.table({"id": [3], "p": [7]}))
    assert clone.snapshot().scan("p = 7", ["id"]).to_arrow()["id"].to_pylist() == [1, 3]


def test_row_ids_start_afresh(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "s")
    create_table(log, COLUMNS, properties={"delta.enableRowTracking": "true"})
    log.write(ids(1, 2))
    log.write(ids(3), "overwrite")
    shallow_clone(log, clone := target(tmp_path))
    (add,) = bodies(clone, 0, "add")
    assert (add["baseRowId"], add["defaultRowCommitVersion"]) == (0, 0)
    name = "delta.rowTracking.materializedRowIdColumnName"
    assert clone.snapshot().properties[name] != log.snapshot().properties[name]
    clone.write(ids(4))
    assert bodies(clone, 1, "add")[0]["baseRowId"] == 1


def test_enablement_of_timestamps_is_not_taken_along(tmp_path: Path) -> None:
    log = source(tmp_path)
    set_properties(log, {"delta.enableInCommitTimestamps": "true"})
    shallow_clone(log, clone := target(tmp_path))
    assert "delta.inCommitTimestampEnablementVersion" not in clone.snapshot().properties
    assert clone.snapshot(timestamp=clone.snapshot().timestamp).version == 0


def test_clustering_comes_along(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path / "s")
    create_table(log, COLUMNS, cluster_by=["id"])
    shallow_clone(log, clone := target(tmp_path))
    assert clone.snapshot().clustering_columns == [["id"]]


def test_applications_start_again(tmp_path: Path) -> None:
    log = source(tmp_path)
    log.start_transaction().set_txn("app", 5).commit("WRITE")
    shallow_clone(log, clone := target(tmp_path))
    assert (log.snapshot().txns, clone.snapshot().txns) == ({"app": 5}, {})


# --- where there is something already


def test_a_table_in_the_way_is_refused(tmp_path: Path) -> None:
    log, clone = source(tmp_path), target(tmp_path)
    shallow_clone(log, clone)
    with pytest.raises(TableExistsError) as caught:
        shallow_clone(log, clone)
    assert caught.value.condition == "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
    with pytest.raises(UnsupportedOperationError) as full:
        shallow_clone(log, clone, replace_existing=True)
    assert full.value.condition == "DELTA_UNSUPPORTED_NON_EMPTY_CLONE"
    assert clone.snapshot().version == 0


def test_files_without_a_table_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a clone#").mkdir()
    (tmp_path / "a clone#" / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(TableExistsError):
        shallow_clone(source(tmp_path), clone := target(tmp_path))
    assert not clone.storage.exists("_delta_log")


def test_an_empty_table_is_replaced(tmp_path: Path) -> None:
    log, clone = source(tmp_path), target(tmp_path)
    other = StructType((StructField("other", LONG),))
    create_table(
        clone, other, properties={"gone": "1", "delta.enableDeletionVectors": "true"}, description="stays",
        cluster_by=["other"],
    )  # fmt: skip
    assert shallow_clone(log, clone, replace_existing=True).version == 1
    found = clone.snapshot()
    assert (found.schema.names, found.properties) == (["id"], {"k": "source"})
    assert (found.metadata.description, found.clustering_columns) == ("stays", [])
    assert found.protocol.supports(DELETION_VECTORS) and rows(clone) == [1, 2]


def test_a_commit_in_between_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, clone = source(tmp_path), target(tmp_path)
    create_table(clone, COLUMNS)
    commit_before(monkeypatch, DeltaLog(tmp_path / "a clone#"), ids(7))
    with pytest.raises(ConcurrentWriteException):
        shallow_clone(log, clone, replace_existing=True)
    assert rows(clone) == [7]


def test_another_creator_at_the_target_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, clone = source(tmp_path), target(tmp_path)
    commit_before(monkeypatch, DeltaLog(tmp_path / "a clone#"), ids(7))
    with pytest.raises(DeltaConcurrentModificationException):
        shallow_clone(log, clone)
    assert rows(clone) == [7]


# --- what a clone cannot be


def test_constraints_are_not_given_unchecked(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        shallow_clone(source(tmp_path), target(tmp_path), properties={"delta.constraints.c": "id > 1"})
    assert caught.value.condition == "DELTA_ADD_CONSTRAINTS"


def test_column_mapping_by_id_is_not_given_to_old_files(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperationError) as caught:
        shallow_clone(source(tmp_path), target(tmp_path), properties={"delta.columnMapping.mode": "id"})
    assert caught.value.condition == "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"


def test_another_filesystem_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="filesystem"):
        shallow_clone(source(tmp_path), DeltaLog("memory://clone-elsewhere"))


def test_paths_out_of_the_source_are_not_followed(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "s")
    table.create(IDS)
    add = table.write_file(ids(1))
    add["add"]["path"] = "%2e%2e/secret.parquet"
    table.commit(add)
    with pytest.raises(StorageError):
        shallow_clone(DeltaLog(table.path), clone := target(tmp_path))
    assert not clone.storage.exists("_delta_log")


def test_tables_on_a_store_name_its_addresses() -> None:
    log, clone = DeltaLog("memory://clones/source"), DeltaLog("memory://clones/copy")
    log.write(ids(1, 2))
    shallow_clone(log, clone)
    assert rows(clone) == [1, 2]
    assert bodies(clone, 0, "add")[0]["path"].startswith("memory://clones/source/")
