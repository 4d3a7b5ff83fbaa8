"""Deep clones: tables of their own, brought up to date by copying what is new."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import (
    AppendOnlyError,
    ConcurrentWriteException,
    DataFileError,
    DeltaConcurrentModificationException,
    DeltaError,
    InvalidOptionError,
    StorageError,
    TableExistsError,
)
from delta_ds.kernel.commands import deep_clone as deep_clone_module
from delta_ds.kernel.commands.clone import shallow_clone
from delta_ds.kernel.commands.deep_clone import deep_clone
from delta_ds.kernel.commands.dml.delete import delete
from delta_ds.kernel.commands.fsck import check
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.optimize.request import OptimizeRequest
from delta_ds.kernel.commands.vacuum.command import vacuum
from delta_ds.kernel.format.schema.types import LONG, StructField, StructType
from delta_ds.kernel.transaction.alter.clustering import cluster_by
from delta_ds.kernel.transaction.alter.create import create_table
from delta_ds.kernel.transaction.alter.properties import set_properties
from spark_tests.behaviour.kernel.commands.whole_tables import bodies, commit_before, ids, rows, with_vector

COLUMNS = StructType((StructField("id", LONG),))


@pytest.fixture
def source(tmp_path: Path) -> DeltaLog:
    """0: nothing; 1: row 1; 2: rows 1, 2."""
    log = DeltaLog(tmp_path / "the source ä%")
    create_table(log, COLUMNS, properties={"delta.enableDeletionVectors": "true", "k": "source"})
    log.write(ids(1))
    log.write(ids(2))
    return log


@pytest.fixture
def clone(tmp_path: Path) -> DeltaLog:
    return DeltaLog(tmp_path / "a clone#")


def data_files(log: DeltaLog) -> set[str]:
    root = Path(log.storage.url)
    return {
        str(p.relative_to(root)) for p in root.rglob("*") if p.suffix in (".parquet", ".bin") and p.is_file()
    }


def test_the_clone_outlives_its_source(source: DeltaLog, clone: DeltaLog) -> None:
    done = deep_clone(source, clone)
    shutil.rmtree(source.storage.url)
    assert (done.version, done.num_copied_files, done.source_num_of_files) == (0, 2, 2)
    assert rows(clone) == [1, 2]
    (info,) = bodies(clone, 0, "commitInfo")
    assert info["operation"] == "CLONE"
    assert info["operationParameters"]["sourceVersion"] == 2
    assert info["operationMetrics"]["numCopiedFiles"] == "2"
    assert clone.snapshot().metadata.configuration["k"] == "source"


def test_an_earlier_version_is_cloned(source: DeltaLog, clone: DeltaLog) -> None:
    deep_clone(source, clone, version=1, properties={"k": "clone"})
    assert rows(clone) == [1]
    assert clone.snapshot().metadata.configuration["k"] == "clone"


def test_what_is_new_is_copied_and_what_is_gone_goes(source: DeltaLog, clone: DeltaLog) -> None:
    deep_clone(source, clone)
    first = clone.snapshot().metadata.id
    source.write(ids(3, 4))
    delete(source, "id = 1")
    again = deep_clone(source, clone, replace_existing=True)
    assert (again.version, again.num_copied_files, again.num_removed_files) == (1, 1, 1)
    assert rows(clone) == rows(source) == [2, 3, 4]
    assert rows(clone, 0) == [1, 2]
    assert clone.snapshot().metadata.id == first
    assert deep_clone(source, clone, replace_existing=True).version == 1, "nothing to do is no version"


def test_a_clone_stays_the_same_table_where_its_source_was_empty_meanwhile(
    source: DeltaLog, clone: DeltaLog
) -> None:
    """Else streams that read it would have to begin anew."""
    deep_clone(source, clone)
    first = clone.snapshot().metadata.id
    source.write(ids(1).slice(0, 0), "overwrite")
    deep_clone(source, clone, replace_existing=True)
    assert (rows(clone), clone.snapshot().metadata.id) == ([], first)
    set_properties(clone, {"k": "own"})
    source.write(ids(5))
    deep_clone(source, clone, replace_existing=True)
    assert (rows(clone), clone.snapshot().metadata.id) == ([5], first)


def test_an_empty_clone_of_another_table_becomes_another_table(
    source: DeltaLog, clone: DeltaLog, tmp_path: Path
) -> None:
    other = DeltaLog(tmp_path / "other")
    other.write(ids(7))
    deep_clone(source, clone)
    source.write(ids(1).slice(0, 0), "overwrite")
    deep_clone(source, clone, replace_existing=True)
    first = clone.snapshot().metadata.id
    deep_clone(other, clone, replace_existing=True)
    assert rows(clone) == [7] and clone.snapshot().metadata.id != first


def test_deletion_vectors_are_copied_and_followed(tmp_path: Path, clone: DeltaLog) -> None:
    table, source = with_vector(tmp_path / "s")
    assert table
    deep_clone(source, clone)
    assert rows(clone) == [2, 3]
    delete(source, "id = 2")
    done = deep_clone(source, clone, replace_existing=True)
    assert (rows(clone), rows(clone, 0)) == ([3], [2, 3])
    assert done.num_copied_files == 1
    shutil.rmtree(source.storage.url)
    assert rows(clone) == [3]


def test_what_was_changed_in_the_clone_is_undone(source: DeltaLog, clone: DeltaLog) -> None:
    deep_clone(source, clone)
    clone.write(ids(9))
    delete(clone, "id = 1")
    done = deep_clone(source, clone, replace_existing=True)
    assert rows(clone) == [1, 2]
    assert (done.num_copied_files, done.num_removed_files) == (1, 1)


def test_rows_deleted_by_a_vector_in_the_clone_come_back(tmp_path: Path, clone: DeltaLog) -> None:
    _, source = with_vector(tmp_path / "s")
    deep_clone(source, clone)
    delete(clone, "id = 2")
    assert rows(clone) == [3]
    done = deep_clone(source, clone, replace_existing=True)
    assert (rows(clone), done.num_copied_files, done.num_removed_files) == ([2, 3], 1, 1)


def test_the_clone_is_a_table_of_its_own_after_vacuum_and_check(source: DeltaLog, clone: DeltaLog) -> None:
    deep_clone(source, clone)
    source.write(ids(3))
    delete(source, "id = 2")
    deep_clone(source, clone, replace_existing=True)
    vacuum(clone, 0, retention_check=False)
    vacuum(source, 0, retention_check=False)
    assert rows(clone) == rows(source) == [1, 3]
    assert list(check(clone)) == []
    assert len(data_files(clone)) == 2


def test_a_clone_of_a_shallow_clone_has_all_files(tmp_path: Path, source: DeltaLog, clone: DeltaLog) -> None:
    between = DeltaLog(tmp_path / "between")
    shallow_clone(source, between)
    between.write(ids(7))
    deep_clone(between, clone)
    shutil.rmtree(source.storage.url)
    shutil.rmtree(between.storage.url)
    assert rows(clone) == [1, 2, 7]


def test_partitions_and_row_ids(tmp_path: Path, clone: DeltaLog) -> None:
    source = DeltaLog(tmp_path / "p")
    options = {"partitionBy": "p", "delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"}
    source.write(pa.table({"id": [1, 2], "p": ["a b", "c/d"]}), options=options)
    deep_clone(source, clone)
    source.write(pa.table({"id": [3], "p": ["a b"]}))
    deep_clone(source, clone, replace_existing=True)
    clone.write(pa.table({"id": [4], "p": pa.array([None], pa.string())}))
    found = clone.snapshot().scan("p = 'a b' OR p IS NULL", metadata_columns=("row_id",)).to_arrow()
    row_ids = found["_metadata"].combine_chunks().field("row_id").to_pylist()
    assert sorted(found["id"].to_pylist()) == [1, 3, 4]
    assert len({*row_ids}) == 3
    assert None not in row_ids


def test_a_table_in_the_way_is_replaced_only_if_asked_for(source: DeltaLog, clone: DeltaLog) -> None:
    clone.write(ids(8, 9))
    with pytest.raises(TableExistsError, match="DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"):
        deep_clone(source, clone)
    done = deep_clone(source, clone, replace_existing=True)
    assert (rows(clone), rows(clone, 0)) == ([1, 2], [8, 9])
    assert (done.num_copied_files, done.num_removed_files) == (2, 1)


def test_files_that_are_there_are_never_written_over(source: DeltaLog, clone: DeltaLog) -> None:
    name = bodies(source, 1, "add")[0]["path"]
    clone.write(ids(8))
    there = Path(clone.storage.url) / name
    there.write_bytes(b"somebody's")
    deep_clone(source, clone, replace_existing=True)
    assert there.read_bytes() == b"somebody's"
    assert rows(clone) == [1, 2]


def test_a_table_is_not_cloned_into_itself(source: DeltaLog) -> None:
    with pytest.raises(InvalidOptionError, match="DELTA_CLONE_INTO_ITSELF"):
        deep_clone(source, DeltaLog(source.storage.url), version=1, replace_existing=True)
    assert rows(source) == [1, 2]


@pytest.mark.parametrize("damage", ["missing", "cut off"])
def test_a_damaged_source_leaves_nothing_behind(source: DeltaLog, clone: DeltaLog, damage: str) -> None:
    file = Path(source.storage.url) / bodies(source, 1, "add")[0]["path"]
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(DataFileError, match="the source"):
        deep_clone(source, clone)
    assert data_files(clone) == set()
    assert not (Path(clone.storage.url) / "_delta_log").exists()


def test_another_commit_at_the_target_wins_and_the_copies_go(
    source: DeltaLog, clone: DeltaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone.write(ids(5))
    before = data_files(clone)
    commit_before(monkeypatch, DeltaLog(clone.storage.url), ids(6))
    with pytest.raises((ConcurrentWriteException, DeltaConcurrentModificationException)):
        deep_clone(source, clone, replace_existing=True)
    assert rows(clone) == [5, 6]
    assert len(data_files(clone)) == len(before) + 1


def test_column_mapping_follows_the_source(tmp_path: Path, clone: DeltaLog) -> None:
    from delta_ds.kernel.transaction.alter.columns import rename_column

    source = DeltaLog(tmp_path / "mapped")
    source.write(ids(1), options={"delta.columnMapping.mode": "name"})
    deep_clone(source, clone)
    rename_column(source, "id", "key")
    source.write(pa.table({"key": [2]}))
    deep_clone(source, clone, replace_existing=True)
    assert sorted(clone.snapshot().scan().to_arrow()["key"].to_pylist()) == [1, 2]


def test_stores_differ(source: DeltaLog) -> None:
    clone = DeltaLog("memory://deep-clone/table")
    deep_clone(source, clone)
    source.write(ids(3))
    deep_clone(source, clone, replace_existing=True)
    assert rows(clone) == [1, 2, 3]


@pytest.mark.parametrize("version", [2, 1])
@pytest.mark.parametrize("fails", [True, False])
def test_clones_that_run_at_once_leave_each_others_files_alone(
    source: DeltaLog, clone: DeltaLog, monkeypatch: pytest.MonkeyPatch, version: int, fails: bool
) -> None:
    """Both see an empty target; the one that comes second deletes what it has copied, and nothing else."""
    copy = deep_clone_module._Copies._copy
    left = [1]

    def late(self: Any, *args: Any) -> None:
        copy(self, *args)
        if left and left.pop():
            with monkeypatch.context() as other:
                other.setattr(deep_clone_module, "list_written_files", lambda *args: [])
                deep_clone(source, DeltaLog(clone.storage.url), version=version)
            if fails:
                raise OSError("no space left on device")

    monkeypatch.setattr(deep_clone_module._Copies, "_copy", late)
    source.write(ids(3))
    with pytest.raises(OSError if fails else ConcurrentWriteException):
        deep_clone(source, clone)
    assert rows(DeltaLog(clone.storage.url)) == [1, 2][:version]


def test_files_that_a_shallow_clone_names_elsewhere_are_copied(
    tmp_path: Path, source: DeltaLog, clone: DeltaLog
) -> None:
    first = DeltaLog(tmp_path / "first")
    deep_clone(source, first)
    shallow_clone(first, clone)
    assert deep_clone(source, clone, replace_existing=True).num_copied_files == 2
    shutil.rmtree(first.storage.url)
    assert rows(clone) == [1, 2]


def test_clustering_alone_is_followed(tmp_path: Path, clone: DeltaLog) -> None:
    source = DeltaLog(tmp_path / "clustered")
    create_table(source, StructType((*COLUMNS, StructField("b", LONG))), cluster_by=["id"])
    source.write(pa.table({"id": [1], "b": [2]}))
    deep_clone(source, clone)
    cluster_by(source, ["b"])
    deep_clone(source, clone, replace_existing=True)
    assert clone.snapshot().domains == source.snapshot().domains
    assert deep_clone(source, clone, replace_existing=True).version == 1


@pytest.mark.parametrize("where", ["below", "above", "link"])
def test_tables_do_not_lie_in_each_other(tmp_path: Path, where: str) -> None:
    source = DeltaLog(tmp_path / "outer" / "source")
    source.write(ids(1))
    (tmp_path / "link").symlink_to(source.storage.url)
    target = {
        "below": tmp_path / "outer" / "source" / "t",
        "above": tmp_path / "outer",
        "link": tmp_path / "link",
    }
    with pytest.raises(InvalidOptionError, match="DELTA_CLONE_INTO_ITSELF"):
        deep_clone(source, DeltaLog(target[where]), replace_existing=True)


def test_a_clone_of_an_append_only_table_follows_its_compaction(tmp_path: Path, clone: DeltaLog) -> None:
    source = DeltaLog(tmp_path / "s")
    create_table(source, COLUMNS, properties={"delta.appendOnly": "true"})
    for n in range(3):
        source.write(ids(n))
    deep_clone(source, clone)
    optimize(source, OptimizeRequest())
    deep_clone(source, clone, replace_existing=True)
    assert rows(clone) == [0, 1, 2]
    assert clone.open_snapshot().live_files().num_rows == 1
    other = DeltaLog(tmp_path / "other")
    other.write(ids(7))
    with pytest.raises(AppendOnlyError):
        deep_clone(other, clone, replace_existing=True)
    assert rows(clone) == [0, 1, 2]


# --- what may be copied


def foreign(log: DeltaLog, path: str, size: int, **more: Any) -> None:
    """Commit a file that lies wherever a path says."""
    body = {
        "path": path,
        "partitionValues": {},
        "size": size,
        "modificationTime": 1,
        "dataChange": True,
        **more,
    }
    root = Path(log.storage.url) / "_delta_log"
    version = len(list(root.glob("*.json")))
    (root / f"{version:020}.json").write_text(json.dumps({"add": body}) + "\n")


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A Parquet file of somebody else."""
    file = tmp_path / "home" / "private" / "salaries.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(ids(99), file)
    return file


def check_refused(source: DeltaLog, clone: DeltaLog, condition: str, **how: Any) -> None:
    with pytest.raises(DeltaError) as caught:
        deep_clone(source, clone, **how)
    assert caught.value.condition == condition
    assert not Path(clone.storage.url).exists() or data_files(clone) == set()
    assert not (Path(clone.storage.url) / "_delta_log").exists()


@pytest.mark.parametrize("spelling", ["{}", "file:{}", "file://{}", "/tmp/../{}", "%2F..{}"])
def test_a_file_of_somebody_else_is_read_and_not_copied(
    source: DeltaLog, clone: DeltaLog, private: Path, spelling: str
) -> None:
    foreign(source, spelling.format(quote(str(private))), private.stat().st_size)
    assert rows(source) == [1, 2, 99]
    check_refused(source, clone, "DELTA_CLONE_FILE_ELSEWHERE")


@pytest.mark.parametrize(
    "path", ["../home/private/salaries.parquet", "..%2Fhome%2Fprivate%2Fsalaries.parquet"]
)
def test_a_path_that_leaves_the_table_is_neither_read_nor_copied(
    source: DeltaLog, clone: DeltaLog, private: Path, path: str
) -> None:
    foreign(source, path, private.stat().st_size)
    with pytest.raises(StorageError, match="leaves the table's folder"):
        rows(source)
    check_refused(source, clone, "DELTA_STORAGE_ERROR")


@pytest.mark.parametrize(
    "allowed", ["home", "home/private", "home/private/", "home/private/salaries.parquet"]
)
def test_files_are_copied_from_where_the_caller_allows_it(
    tmp_path: Path, source: DeltaLog, clone: DeltaLog, private: Path, allowed: str
) -> None:
    foreign(source, str(private), private.stat().st_size)
    others = ["home/priv", "home/private/salaries", "home/private/salaries.parquet/x", "hom"]
    check_refused(source, clone, "DELTA_CLONE_FILE_ELSEWHERE", files_from=[str(tmp_path / o) for o in others])
    deep_clone(source, clone, files_from=[str(tmp_path / "nowhere"), f"file:{tmp_path}/{allowed}"])
    shutil.rmtree(tmp_path / "home")
    assert rows(clone) == [1, 2, 99]


@pytest.mark.parametrize("folder", [True, False])
def test_a_link_counts_as_what_it_leads_to(
    tmp_path: Path, source: DeltaLog, clone: DeltaLog, private: Path, folder: bool
) -> None:
    root, size = Path(source.storage.url), private.stat().st_size
    (root / "store").mkdir()
    shutil.copy(private, root / "store" / private.name)
    inside = root / "store"
    (root / "in").symlink_to(inside if folder else inside / private.name)
    foreign(source, f"in/{private.name}" if folder else "in", size)
    deep_clone(source, clone)
    assert rows(clone) == [1, 2, 99]
    (root / "out").symlink_to(private.parent if folder else private)
    foreign(source, f"out/{private.name}" if folder else "out", size)
    check_refused(source, DeltaLog(tmp_path / "again"), "DELTA_CLONE_FILE_ELSEWHERE")
    deep_clone(source, DeltaLog(tmp_path / "again"), files_from=[str(private.parent)])


def test_a_clone_of_clones_of_clones_has_all_files(tmp_path: Path, source: DeltaLog, clone: DeltaLog) -> None:
    logs = [source, *(DeltaLog(tmp_path / f"clone {n}`") for n in range(3))]
    for before, after in pairwise(logs):
        shallow_clone(before, after)
        after.write(ids(10 + logs.index(after)))
    deep_clone(logs[-1], clone)
    assert rows(clone) == [1, 2, 11, 12, 13]


@pytest.mark.parametrize("claimed", ["folder", "/", "text", "nothing"])
def test_a_log_cannot_claim_any_folder_as_what_it_is_a_clone_of(
    tmp_path: Path, source: DeltaLog, clone: DeltaLog, private: Path, claimed: str
) -> None:
    """Only tables count: the folder of another one, but not the home of somebody."""
    named = {"folder": f"delta.`{private.parent}`", "/": "delta.`/`", "text": "home.private", "nothing": ""}
    info = {"operation": "CLONE", "operationParameters": {"source": named[claimed], "sourceVersion": 0}}
    log = Path(source.storage.url) / "_delta_log" / f"{3:020}.json"
    log.write_text(json.dumps({"commitInfo": info}) + "\n")
    foreign(source, str(private), private.stat().st_size)
    check_refused(source, clone, "DELTA_CLONE_FILE_ELSEWHERE")


@pytest.mark.parametrize(
    "content", [b"PRIVATE KEY", b"PAR1 as it begins", b"PAR1" + bytes(100) + b"PAR1", b""]
)
def test_what_is_no_parquet_is_not_copied_from_anywhere(
    source: DeltaLog, clone: DeltaLog, content: bytes
) -> None:
    (Path(source.storage.url) / "id_rsa").write_bytes(content)
    foreign(source, "id_rsa", len(content))
    check_refused(source, clone, "DELTA_CLONE_FILE_NOT_PARQUET")


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_what_is_no_deletion_vector_is_not_copied_as_one(
    tmp_path: Path, source: DeltaLog, clone: DeltaLog, where: str
) -> None:
    key = (Path(source.storage.url) if where == "inside" else tmp_path) / "id_rsa"
    key.write_bytes(b"PRIVATE KEY")
    vector = {
        "storageType": "p", "pathOrInlineDv": quote(str(key)), "offset": 1, "sizeInBytes": 10, "cardinality": 1,
    }  # fmt: skip
    (data, *_) = [path for path in Path(source.storage.url).glob("*.parquet")]
    foreign(source, quote(data.name), data.stat().st_size, deletionVector=vector)
    if where == "inside":
        check_refused(source, clone, "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH")
    else:
        check_refused(source, clone, "DELTA_CLONE_FILE_ELSEWHERE")
