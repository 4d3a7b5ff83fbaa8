"""Commits of row changes: files and rows that go, what history counts, and nothing left behind by a failure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import AppendOnlyError, ConcurrentAppendException, ConcurrentDeleteReadException
from delta_ds.kernel.commands.dml.candidates import (
    candidate_files,
    distinct_partitions,
    usable_predicate,
    with_row_counts,
)
from delta_ds.kernel.commands.dml.changed_rows import CLAUSE, DELETE, FILE, ROW, UPDATE
from delta_ds.kernel.commands.dml.commit import DmlCommand, commit_dml, discard_folder
from delta_ds.kernel.commands.dml.file_rewrite import rewrite_changed_files
from delta_ds.kernel.commands.dml.plan import check_changeable, plan_dml, plan_file_rewrite
from delta_ds.kernel.format.expressions.sql import parse_predicate
from delta_ds.kernel.format.options.settings import CODEC, OPTIMIZE_WRITE, RECORDS_PER_FILE, SessionFacts
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.transaction.write.task import write_rows


def _table(path: Path, **properties: str) -> DeltaLog:
    log = DeltaLog(path)
    options = {name.replace("__", "."): text for name, text in properties.items()}
    for start in (0, 10):
        rows = {"id": list(range(start, start + 10)), "p": ["a" if start else "b"] * 10}
        log.write(pa.table(rows), options={"partitionBy": "p", **options} if not start else {})
    return log


def _rows(log: DeltaLog) -> list[int]:
    return sorted(log.snapshot().scan().to_arrow()["id"].to_pylist())


def _files_on_disk(log: DeltaLog) -> set[str]:
    root = Path(log.storage.url)
    return {
        str(p.relative_to(root))
        for p in root.rglob("*")
        if p.is_file() and "_delta_log" not in p.parts and not p.name.endswith(".crc")
    }


def _paths(snapshot: Snapshot) -> list[str]:
    return snapshot.live_files().table["path"].to_pylist()


DV = {"delta__enableDeletionVectors": "true"}
FEED = {"delta__enableChangeDataFeed": "true"}


def test_marked_rows_are_gone_and_their_file_stays(tmp_path: Path) -> None:
    log = _table(tmp_path, **DV)
    snapshot = log.open_snapshot()
    files = candidate_files(snapshot, parse_predicate("p = 'b'"), "UTC")
    (path,) = files.paths.to_pylist()
    before = _paths(snapshot)

    for deleted in ([1, 3], [3, 4]):
        change = DmlCommand(
            "DELETE", deleted={path: np.array(deleted, np.uint64)}, metrics={"numDeletedRows": 2}
        )
        commit_dml(log.open_snapshot(), change)

    assert _rows(log) == [0, 2, *range(5, 20)]
    assert sorted(_paths(log.open_snapshot())) == sorted(before)
    metrics = log.history(1)[0]["operationMetrics"]
    assert {k: metrics[k] for k in metrics if "Vectors" in k} == {
        "numDeletionVectorsAdded": "1", "numDeletionVectorsRemoved": "1", "numDeletionVectorsUpdated": "1",
    }  # fmt: skip
    assert candidate_files(log.open_snapshot(), None, "UTC").num_rows == 17


def test_a_file_whose_last_rows_are_marked_is_removed(tmp_path: Path) -> None:
    log = _table(tmp_path, **DV)
    path = candidate_files(log.open_snapshot(), parse_predicate("p = 'b'"), "UTC").paths[0].as_py()

    for rows in (range(4), range(4, 10)):
        commit_dml(log.open_snapshot(), DmlCommand("DELETE", deleted={path: np.array(rows, np.uint64)}))

    assert path not in _paths(log.open_snapshot())
    assert _rows(log) == list(range(10, 20))
    assert log.history(1)[0]["operationMetrics"]["numDeletionVectorsRemoved"] == "1"


def test_files_are_written_as_the_session_says(tmp_path: Path) -> None:
    facts = SessionFacts({CODEC: "gzip", RECORDS_PER_FILE: "7", OPTIMIZE_WRITE.full_name: "true"})
    write = plan_dml(_table(tmp_path).open_snapshot(), facts=facts).write
    assert (write.files.codec, write.files.max_records_per_file, write.joins_small_files) == ("gzip", 7, True)


def test_rows_written_anew_replace_their_file(tmp_path: Path) -> None:
    log = _table(tmp_path, **FEED)
    snapshot = log.open_snapshot()
    plan = plan_dml(snapshot)
    files = candidate_files(snapshot, parse_predicate("p = 'b'"), "UTC")
    (number,), (path,) = files.numbers.to_pylist(), files.paths.to_pylist()
    batch = pa.RecordBatch.from_pydict(
        {
            FILE: pa.array([number, number], pa.int32()),
            ROW: pa.array([1, 2], pa.int64()),
            CLAUSE: pa.array([0, 1], pa.int32()),
            "id": pa.array([100, None], pa.int64()),
            "p": pa.array(["c", None]),
        }
    )

    changed = rewrite_changed_files(plan_file_rewrite(snapshot, plan, files, [UPDATE, DELETE]), [batch])
    new = pa.RecordBatch.from_pydict({"id": [200], "p": ["b"]})
    results = [changed.result, write_rows(plan.inserts_beside(changed.rows), [new], 1, folder=plan.folder)]
    version = commit_dml(snapshot, DmlCommand("MERGE", removed=[path], results=results, plan=plan)).version

    assert _rows(log) == [0, *range(3, 20), 100, 200]
    changes = log.changes(version, version)
    assert all(f["path"].startswith(f"{plan.folder}/") for r in results for f in r.adds)
    assert all(f["path"].startswith(f"_change_data/{plan.folder}/") for r in results for f in r.changes)
    assert len(changes.slices()) == sum(len(r.changes) for r in results) == 3
    metrics = log.history(1)[0]["operationMetrics"]
    assert (metrics["numTargetFilesAdded"], metrics["numTargetFilesRemoved"]) == ("3", "1")


@pytest.mark.parametrize(
    ("theirs", "raised"),
    [
        pytest.param({"id": [77], "p": ["b"]}, ConcurrentAppendException, id="rows-that-would-match"),
        pytest.param({"id": [77], "p": ["z"]}, None, id="rows-of-another-partition"),
    ],
)
def test_commits_of_others_are_checked_against_what_was_looked_for(tmp_path: Path, theirs, raised) -> None:
    log = _table(tmp_path, **DV, delta__isolationLevel="Serializable")
    snapshot = log.open_snapshot()
    predicate = parse_predicate("p = 'b' and id < 5")
    path = candidate_files(snapshot, predicate, "UTC").paths[0].as_py()
    change = DmlCommand("DELETE", predicate, deleted={path: np.arange(5, dtype=np.uint64)})
    log.write(pa.table(theirs))
    before = _files_on_disk(log)

    if raised is None:
        assert commit_dml(snapshot, change).version == 3
    else:
        with pytest.raises(raised):
            commit_dml(snapshot, change)
        assert _files_on_disk(log) == before


def test_a_file_that_is_gone_is_told_and_what_was_written_is_deleted(tmp_path: Path) -> None:
    log = _table(tmp_path)
    snapshot = log.open_snapshot()
    plan = plan_dml(snapshot)
    path = candidate_files(snapshot, parse_predicate("p = 'b'"), "UTC").paths[0].as_py()
    new = pa.RecordBatch.from_pydict({"id": [5], "p": ["b"]})
    result = write_rows(plan.inserts_beside(1), [new], folder=plan.folder)
    commit_dml(log.open_snapshot(), DmlCommand("DELETE", parse_predicate("p = 'b'"), removed=[path]))
    change = DmlCommand("UPDATE", parse_predicate("p = 'b'"), removed=[path], results=[result], plan=plan)

    with pytest.raises(ConcurrentDeleteReadException):
        commit_dml(snapshot, change)

    assert not any(plan.folder in name for name in _files_on_disk(log))
    assert _rows(log) == list(range(10, 20))


def test_all_that_a_change_wrote_can_be_discarded(tmp_path: Path) -> None:
    log = _table(tmp_path, **FEED)
    snapshot = log.open_snapshot()
    before = _files_on_disk(log)
    plan = plan_dml(snapshot)
    write_rows(
        plan.inserts_beside(1), [pa.RecordBatch.from_pydict({"id": [1], "p": ["b"]})], folder=plan.folder
    )
    assert len(_files_on_disk(log)) == len(before) + 2

    discard_folder(snapshot, plan.folder)
    discard_folder(snapshot, plan.folder)

    assert _files_on_disk(log) == before
    assert not (tmp_path / plan.folder).exists()


def test_append_only_tables_take_inserts_but_no_changes(tmp_path: Path) -> None:
    log = _table(tmp_path, delta__appendOnly="true")

    check_changeable(log.open_snapshot(), "MERGE", False)
    with pytest.raises(AppendOnlyError, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        check_changeable(log.open_snapshot(), "MERGE", True)


def test_parts_of_a_predicate_that_only_spark_understands_are_left_out(tmp_path: Path) -> None:
    snapshot = _table(tmp_path).open_snapshot()
    parts = [parse_predicate("p = 'b' and nosuch = 1"), parse_predicate("id < 5")]

    found = usable_predicate(snapshot, parts, "UTC")

    assert str(found) == "((p = 'b') AND (id < 5))"
    assert usable_predicate(snapshot, [parse_predicate("nosuch = 1")], "UTC") is None


def test_files_are_counted_from_footers_where_the_log_says_nothing(tmp_path: Path) -> None:
    log = _table(tmp_path, **DV, delta__dataSkippingNumIndexedCols="0")
    snapshot = log.open_snapshot()
    files = candidate_files(snapshot, None, "UTC")
    unknown = type(files)(files.numbers, files.paths, pa.nulls(len(files), pa.int64()))

    assert unknown.num_rows is None
    assert with_row_counts(snapshot, unknown).rows.to_pylist() == [10, 10]


def test_partitions_are_told_once_with_the_files_that_are_in_them(tmp_path: Path) -> None:
    snapshot = _table(tmp_path).open_snapshot()

    tuples, codes = distinct_partitions(snapshot, "UTC")

    named = [tuples["p"].to_pylist()[code] for code in codes.to_pylist()]
    assert sorted(named) == ["a", "b"]
