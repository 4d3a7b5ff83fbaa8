"""DELETE without Spark: the rows that are left, what readers of changes see, and what is refused."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import (
    AppendOnlyError,
    DataFileError,
    DeltaConcurrentModificationException,
    PredicateError,
)
from delta_ds.kernel.commands.dml import file_rewrite, row_finder
from delta_ds.kernel.commands.dml import in_process as module
from delta_ds.kernel.commands.dml.commit import Committed, DmlCommand, commit_dml
from delta_ds.kernel.commands.dml.delete import DeleteResult, delete
from delta_ds.kernel.format.values.deletion_vector import as_action, inline
from delta_ds.testing import TableBuilder, remove_action
from spark_tests.full_form import examples

# By predicate, what Spark holds of a row: True only where the row goes.
PREDICATES: dict[str, Callable[[dict[str, Any]], bool]] = {
    "id % 3 = 0": lambda row: row["id"] % 3 == 0,
    "id BETWEEN 2 AND 4": lambda row: 2 <= row["id"] <= 4,
    "s = 'x'": lambda row: row["s"] == "x",
    "s IS NULL": lambda row: row["s"] is None,
    "NOT s = 'x'": lambda row: row["s"] not in ("x", None),
    "p = 'a'": lambda row: row["p"] == "a",
    "p = 'a' AND id > 3": lambda row: row["p"] == "a" and row["id"] > 3,
    "id < 0": lambda row: False,
    "true": lambda row: True,
}
PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
}


def _rows(log: DeltaLog, *metadata: str) -> list[dict[str, Any]]:
    found = log.snapshot().scan(metadata_columns=metadata).to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["id"])


@given(
    texts=st.lists(st.sampled_from([None, "x", "y"]), min_size=1, max_size=12),
    files=st.integers(1, 3),
    on=st.sets(st.sampled_from(sorted(PROPERTIES))),
    partitioned=st.booleans(),
    predicates=st.lists(st.sampled_from(sorted(PREDICATES)), min_size=1, max_size=2),
)
@settings(max_examples=examples(60), deadline=None)
def test_rows_for_which_the_predicate_is_true_go_and_no_others(
    texts: list[str | None], files: int, on: set[str], partitioned: bool, predicates: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = DeltaLog(folder)
        options = {name: PROPERTIES[name] for name in on}
        rows = [{"id": i, "s": text, "p": "ab"[i % 2]} for i, text in enumerate(texts)]
        kind = pa.schema([("id", pa.int64()), ("s", pa.string()), ("p", pa.string())])
        layout = {"partitionBy": "p"} if partitioned else {}
        for n in range(files):
            log.write(
                pa.Table.from_pylist(rows[n::files], kind), options={**layout, **options} if not n else {}
            )
        metadata = ("row_id", "row_commit_version") if "delta.enableRowTracking" in on else ()
        before = _rows(log, *metadata)
        for predicate in predicates:
            gone = [row for row in before if PREDICATES[predicate](row)]
            result = delete(log, predicate)
            before = [row for row in before if row not in gone]
            assert result.rows == len(gone)
            assert (result.version is not None) == bool(gone)
            assert _rows(log, *metadata) == before
            if gone and "delta.enableChangeDataFeed" in on:
                changes = log.changes(result.version, result.version).to_arrow().to_pylist()
                assert {change["_change_type"] for change in changes} == {"delete"}
                assert sorted(change["id"] for change in changes) == [row["id"] for row in gone]


def test_all_rows_go_without_reading_a_file(tmp_path: Path) -> None:
    log = DeltaLog(str(tmp_path))
    log.write(pa.table({"id": [1, 2]}))
    for file in tmp_path.glob("*.parquet"):
        file.unlink()
    assert delete(log, user_metadata="gone") == DeleteResult(1, 2)
    assert _rows(log) == []
    newest = log.history(1)[0]
    assert (newest["operation"], newest["userMetadata"]) == ("DELETE", "gone")
    assert newest["operationParameters"]["predicate"] == '["true"]'
    assert newest["operationMetrics"]["numDeletedRows"] == "2"
    assert delete(log) == DeleteResult(None, 0)


def test_history_counts_rows_and_files(tmp_path: Path) -> None:
    log = DeltaLog(str(tmp_path))
    log.write(pa.table({"id": [1, 2, 3]}))
    log.write(pa.table({"id": [4, 5]}))
    delete(log, "id IN (1, 4, 5)")
    metrics = log.history(1)[0]["operationMetrics"]
    counted = ("numDeletedRows", "numCopiedRows", "numAddedFiles", "numRemovedFiles")
    assert [metrics[name] for name in counted] == ["3", "2", "1", "2"]


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_what_cannot_be_done_is_refused_and_leaves_nothing(tmp_path: Path, vectors: str) -> None:
    log = DeltaLog(str(tmp_path))
    log.write(pa.table({"id": [1, 0]}), options={"delta.enableDeletionVectors": vectors})
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(PredicateError, match="Nothing was deleted"):
        delete(log, "reflect('a', 'b') = id")
    with pytest.raises(PredicateError, match="(?i)zero"):
        delete(log, "1 / id > 5")
    assert sorted(tmp_path.rglob("*")) == files


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_rows_of_a_file_with_the_vector_of_another_one_are_not_taken_for_deleted(
    tmp_path: Path, vectors: str
) -> None:
    table = TableBuilder(tmp_path)
    table.create(
        pa.schema([("id", pa.int64())]),
        properties={"delta.enableDeletionVectors": vectors},
        reader_features=["deletionVectors"],
    )
    add = table.write_file(pa.table({"id": [1, 2, 3]}))
    table.commit(add)
    table.commit(remove_action(add), {"add": {**add["add"], "deletionVector": as_action(inline([7, 8]))}})
    log = DeltaLog(tmp_path)
    with pytest.raises(DataFileError, match="deletes row 8 of a file that has 3"):
        delete(log, "id = 1")
    # However the rows were found: those that others find come as places alone.
    path = log.snapshot().files().to_pylist()[0]["path"]
    found = DmlCommand("DELETE", deleted={path: np.array([0], np.uint64)})
    with pytest.raises(DataFileError, match="deletes row 8 of a file that has 3"):
        commit_dml(log.open_snapshot(), found)
    assert log.snapshot().version == 2


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_vector_that_does_not_count_its_rows_is_added_to(tmp_path: Path, vectors: str) -> None:
    table = TableBuilder(tmp_path)
    table.create(
        pa.schema([("id", pa.int64())]),
        properties={"delta.enableDeletionVectors": vectors},
        reader_features=["deletionVectors"],
    )
    add = table.write_file(pa.table({"id": [0, 1, 2, 3, 4]}))
    vector = {key: value for key, value in as_action(inline([0, 1])).items() if key != "cardinality"}
    table.commit({"add": {**add["add"], "deletionVector": vector}})
    for gone, left in (("id = 3", [2, 4]), ("id >= 2", [])):
        delete(DeltaLog(tmp_path), gone)
        assert [row["id"] for row in _rows(DeltaLog(tmp_path))] == left


@given(
    rows=st.integers(1, 8),
    counted=st.integers(1, 10),
    deletes=st.lists(st.sets(st.integers(0, 7), min_size=1), min_size=1, max_size=3),
    vectors=st.booleans(),
    by_merge=st.booleans(),
)
@settings(max_examples=examples(60), deadline=None)
def test_a_file_whose_rows_another_writer_counted_wrong_loses_only_the_rows_that_match(
    rows: int, counted: int, deletes: list[set[int]], vectors: bool, by_merge: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = TableBuilder(folder)
        features = ["deletionVectors"] if vectors else None
        properties = {"delta.enableDeletionVectors": str(vectors).lower()}
        table.create(pa.schema([("id", pa.int64())]), properties=properties, reader_features=features)
        table.append(pa.table({"id": pa.array(range(rows), pa.int64())}), stats={"numRecords": counted})
        left = set(range(rows))
        for ids in deletes:
            left -= ids
            log = DeltaLog(folder)
            if by_merge:
                source = pa.table({"id": pa.array(sorted(ids), pa.int64())})
                log.merge(source, "target.id = source.id").when_matched_delete().execute()
            else:
                log.delete(f"id IN ({', '.join(map(str, ids))})")
            assert [row["id"] for row in _rows(DeltaLog(folder))] == sorted(left)


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("files", [1, file_rewrite.FEWEST_SHARED])
def test_a_column_with_the_name_of_the_metadata_is_one_of_the_table(
    tmp_path: Path, vectors: str, files: int
) -> None:
    log = DeltaLog(tmp_path)
    options = {"delta.enableDeletionVectors": vectors}
    for _ in range(files):
        places = [{"row_index": n} for n in (2, 1, 0)]
        log.write(pa.table({"id": [0, 1, 2], "_metadata": places}), options=options)
        options = {}
    delete(log, "_metadata.row_index = 2")
    assert [row["id"] for row in _rows(log)] == [*[1] * files, *[2] * files]
    log.update({"id": "id + 10"}, predicate="_metadata.row_index = 1")
    assert [row["id"] for row in _rows(log)] == [*[2] * files, *[11] * files]


def test_an_append_only_table_keeps_its_rows(tmp_path: Path) -> None:
    log = DeltaLog(str(tmp_path))
    log.write(pa.table({"id": [1]}), options={"delta.appendOnly": "true"})
    with pytest.raises(AppendOnlyError):
        delete(log, "id = 1")


def test_a_row_that_another_commit_deleted_meanwhile_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = DeltaLog(str(tmp_path))
    log.write(pa.table({"id": [1, 2, 3]}))
    commit = module.commit_dml

    def second(*arguments: Any) -> Committed:
        monkeypatch.setattr(module, "commit_dml", commit)
        delete(DeltaLog(str(tmp_path)), "id = 1")
        return commit(*arguments)

    monkeypatch.setattr(module, "commit_dml", second)
    with pytest.raises(DeltaConcurrentModificationException):
        delete(log, "id = 2")
    assert [row["id"] for row in _rows(log)] == [2, 3]
    assert len(list(tmp_path.rglob("*.parquet"))) == 2


@pytest.mark.parametrize(
    "predicate", ["p = 'a'", "p IS NULL", "p <> 'a'", "upper(p) = 'B' OR p IS NULL", "p > 'z'"]
)
def test_a_condition_on_partitions_removes_files_without_reading_one(tmp_path: Path, predicate: str) -> None:
    keep = {
        "p = 'a'": {"b", None},
        "p IS NULL": {"a", "b"},
        "p <> 'a'": {"a", None},
        "p > 'z'": {"a", "b", None},
    }
    log = DeltaLog(str(tmp_path))
    log.write(pa.table({"id": [1, 2, 3], "p": ["a", "b", None]}), options={"partitionBy": "p"})
    for file in tmp_path.rglob("*.parquet"):
        if "_delta_log" not in file.parts:
            file.unlink()
    kept = keep.get(predicate, {"a"})
    assert log.delete(predicate).rows == 3 - len(kept)
    values = log.snapshot().files()["partitionValues"].to_pylist()
    assert {row["p"] for row in values} == kept


@pytest.mark.parametrize("bound", ["BATCH_ROWS", "HELD_BYTES", "SMALL_BYTES"])
def test_rows_of_small_files_are_evaluated_together_up_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    log = DeltaLog(tmp_path)
    for at in range(0, 48, 4):
        # The last file holds far more text than its bytes say.
        log.write(pa.table({"id": range(at, at + 4), "s": ["x" * (10_000 if at == 44 else 10)] * 4}))
    one = max(path.stat().st_size for path in tmp_path.glob("*.parquet"))
    monkeypatch.setattr(file_rewrite, "FEWEST_SHARED", 0)
    most = {"BATCH_ROWS": 8, "HELD_BYTES": 250, "SMALL_BYTES": 3 * one}[bound]
    monkeypatch.setattr(file_rewrite, bound, most)
    together: list[pa.RecordBatch] = []
    holds = row_finder.Matching.holds

    def counting(self: Any, batch: pa.RecordBatch) -> Any:
        together.append(batch)
        return holds(self, batch)

    monkeypatch.setattr(row_finder.Matching, "holds", counting)
    result = log.delete("id % 4 = 1")
    assert [row["id"] for row in _rows(log)] == [n for n in range(48) if n % 4 != 1]
    assert (result.rows, result.num_copied_rows, result.num_removed_files) == (12, 36, 12)
    shared = [batch for batch in together if "s" in batch.schema.names]
    assert max(batch.num_rows for batch in shared) in (8, 12)
    if bound == "HELD_BYTES":
        assert max(batch.nbytes for batch in shared) < 2 * most
    if bound == "SMALL_BYTES":
        assert result.num_added_files == 5  # of 1 file, which is read by its predicate, and of 3, 3, 3, 2
