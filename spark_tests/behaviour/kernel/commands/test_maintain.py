"""Maintenance runs what is due, in order, and finds nothing to do the second time."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import DataFileError, NotADeltaTableError, UnsupportedFeatureError
from delta_ds.kernel.commands.compute_statistics import compute_statistics
from delta_ds.kernel.commands.dml.delete import delete
from delta_ds.kernel.commands.health import health
from delta_ds.kernel.commands.maintain import Maintenance, maintain
from delta_ds.kernel.commands.optimize import commit
from delta_ds.kernel.commands.optimize.request import OptimizeRequest, OptimizeSettings
from delta_ds.testing import TableBuilder

NOTHING_KEPT = {"delta.deletedFileRetentionDuration": "interval 0 seconds"}


def outcomes(done: Maintenance) -> list[tuple[str, str]]:
    return [(step.command, step.outcome) for step in done.steps]


def small_files(path: Path, count: int = 20, **options: str) -> DeltaLog:
    """A table of files of one row each, by one commit."""
    log = DeltaLog(path)
    log.write(pa.table({"id": range(count)}), options={**options, "maxRecordsPerFile": 1})
    return log


def commits(path: Path, count: int, **properties: str) -> TableBuilder:
    """A table of so many versions without a checkpoint, the newest has one file."""
    table = TableBuilder(path)
    table.create(pa.schema([("id", pa.int64())]), properties=properties)
    add = table.write_file(pa.table({"id": [1]}))
    for _ in range(count - 1):
        table.commit(add)
    return table


def rows(log: DeltaLog) -> list[Any]:
    return sorted(log.snapshot().scan().to_arrow()["id"].to_pylist())


@pytest.fixture
def foreign(tmp_path: Path) -> TableBuilder:
    """Three files without statistics."""
    table = TableBuilder(tmp_path)
    table.create(pa.schema([("id", pa.int64())]))
    table.commit(*(table.write_file(pa.table({"id": [number]}), stats=False) for number in range(3)))
    return table


def test_nothing_is_done_for_a_young_table(tmp_path: Path) -> None:
    log = small_files(tmp_path, 3)
    done = maintain(log, vacuum=True)
    assert (done.steps, str(done).splitlines()[1]) == ((), "  nothing is due")
    assert log.snapshot().version == 0


def test_a_dry_run_tells_and_leaves_the_table_as_it_is(tmp_path: Path) -> None:
    log = small_files(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    done = maintain(log, dry_run=True)
    assert (outcomes(done), done.dry_run) == ([("OPTIMIZE", "planned")], True)
    assert done.rows[0]["reason"] == "joins 20 files into 1"
    assert sorted(tmp_path.rglob("*")) == before


def test_everything_that_is_due_is_done_once_and_in_order(tmp_path: Path) -> None:
    """The law: a run leaves nothing that a second one would do."""
    table = TableBuilder(tmp_path)
    properties = {**NOTHING_KEPT, "delta.enableDeletionVectors": "true", "delta.checkpointInterval": "3"}
    table.create(pa.schema([("id", pa.int64())]), properties=properties, reader_features=["deletionVectors"])
    table.commit(*(table.write_file(pa.table({"id": [number]})) for number in range(20)))
    # Files that are too large to be joined.
    table.commit(
        *(table.write_file(pa.table({"id": range(n, n + 999)}), stats=n < 5000) for n in (100, 5000))
    )
    for _ in range(4):
        table.commit()
    log = DeltaLog(tmp_path)
    request = OptimizeRequest(settings=OptimizeSettings(min_file_size=2000, max_deleted_rows_ratio=1.0))
    delete(log, "id between 100 and 400")
    for checkpoint in table.log.glob("*checkpoint*"):
        checkpoint.unlink()
    before = rows(log)
    planned = maintain(log, vacuum=True, dry_run=True, request=request)
    assert {step.outcome for step in planned.steps} == {"planned"}
    commands = [step.command for step in planned.steps]
    assert commands == ["OPTIMIZE", "REORG", "statistics", "checkpoint"]
    done = maintain(log, vacuum=True, request=request)
    assert outcomes(done) == [
        (name, "done") for name in ("OPTIMIZE", "REORG", "statistics", "VACUUM", "checkpoint")
    ]
    assert rows(log) == before
    version = log.snapshot().version
    assert maintain(log, vacuum=True, request=request).steps == ()
    assert log.snapshot().version == version


def test_deleted_rows_of_files_that_stay_alone_are_purged(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": range(100)}), options={"delta.enableDeletionVectors": "true"})
    delete(log, "id < 50")
    done = maintain(log)
    assert outcomes(done) == [("REORG", "done")]
    assert done.steps[0].metrics["numFilesAdded"] == 1
    assert health(log).files_with_vectors == 0
    assert maintain(log).steps == ()


def test_deleted_rows_that_compaction_takes_along_are_not_due_for_purge(tmp_path: Path) -> None:
    log = small_files(tmp_path, **{"delta.enableDeletionVectors": "true"})
    log.write(pa.table({"id": range(100, 200)}))
    delete(log, "id >= 150")
    assert outcomes(maintain(log, dry_run=True)) == [("OPTIMIZE", "planned")]
    assert outcomes(maintain(log)) == [("OPTIMIZE", "done")]
    assert maintain(log).steps == ()


def test_files_are_deleted_only_where_that_is_asked_for(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1]}), options=NOTHING_KEPT)
    log.write(pa.table({"id": [2]}), "overwrite")
    time.sleep(0.01)
    assert outcomes(maintain(log)) == [("VACUUM", "not asked for")]
    assert len(list(tmp_path.glob("*.parquet"))) == 2
    done = maintain(log, vacuum=True)
    assert outcomes(done) == [("VACUUM", "done")]
    assert done.steps[0].metrics["numDeletedFiles"] == 1
    assert maintain(log, vacuum=True).steps == ()


def test_the_retention_of_the_table_is_kept(tmp_path: Path) -> None:
    log = small_files(tmp_path)
    assert outcomes(maintain(log, vacuum=True)) == [("OPTIMIZE", "done")]
    assert len(list(tmp_path.glob("*.parquet"))) == 21


def test_a_log_that_was_cut_off_is_vacuumed_by_a_listing(tmp_path: Path) -> None:
    table = commits(tmp_path, 5)
    table.checkpoint()
    table.commit_file(0).unlink()
    log = DeltaLog(tmp_path)
    assert health(log).unneeded_files is None
    assert maintain(log).steps == ()
    assert outcomes(maintain(log, vacuum=True)) == [("VACUUM", "done")]
    assert maintain(log, vacuum=True).steps == ()


def test_a_late_checkpoint_is_written(tmp_path: Path) -> None:
    table = commits(tmp_path, 7, **{"delta.checkpointInterval": "3"})
    log = DeltaLog(tmp_path)
    assert outcomes(maintain(log)) == [("checkpoint", "done")]
    assert len(list(table.log.glob("*.checkpoint.parquet"))) == 1
    assert maintain(log).steps == ()


def test_a_checkpoint_that_a_commit_of_the_run_brought_is_told(tmp_path: Path) -> None:
    table = commits(tmp_path, 20)
    table.commit(*(table.write_file(pa.table({"id": [number]})) for number in range(20)))
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1]}))
    assert log.snapshot().version == 21
    for _ in range(8):
        table.commit(version=table.version + 2)
        table.version -= 1
    done = maintain(log)
    assert outcomes(done) == [("OPTIMIZE", "done"), ("checkpoint", "done")]
    assert maintain(log).steps == ()


def test_a_conflict_is_told_and_the_next_steps_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = commits(tmp_path, 6, **{"delta.checkpointInterval": "3"})
    table.commit(*(table.write_file(pa.table({"id": [number]})) for number in range(20)))
    log = DeltaLog(tmp_path)
    honest = commit._commit

    def overtaken(*arguments: Any) -> int:
        delete(DeltaLog(tmp_path), "id = 3")
        return honest(*arguments)

    monkeypatch.setattr(commit, "_commit", overtaken)
    done = maintain(log)
    assert outcomes(done) == [("OPTIMIZE", "conflict"), ("checkpoint", "done")]
    (contradicted,) = done.conflicts
    assert contradicted.error is not None and "DELTA_CONCURRENT" in contradicted.error
    assert 3 not in rows(log)
    assert len(list(tmp_path.glob("*.parquet"))) == 21, "the new file of the OPTIMIZE is deleted"
    monkeypatch.undo()
    assert outcomes(maintain(log)) == [("OPTIMIZE", "done")]


def test_a_table_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.create(pa.schema([("id", pa.int64())]), writer_features=["nobodyKnows"])
    for dry_run in (True, False):
        with pytest.raises(UnsupportedFeatureError, match="nobodyKnows"):
            maintain(DeltaLog(tmp_path), dry_run=dry_run)
    with pytest.raises(NotADeltaTableError):
        maintain(DeltaLog(tmp_path / "no"))


class TestStatistics:
    def test_files_get_those_that_a_writer_would_have_given(self, foreign: TableBuilder) -> None:
        log = DeltaLog(foreign.path)
        assert log.snapshot().scan("id = 1").num_files == 3
        done = maintain(log)
        assert outcomes(done) == [("statistics", "done")]
        assert done.steps[0].metrics == {"numFiles": 3, "numFilesCountsOnly": 0}
        assert log.snapshot().scan("id = 1").num_files == 1
        assert rows(log) == [0, 1, 2]
        assert log.history(1)[0]["operation"] == "COMPUTE STATS"
        assert maintain(log).steps == ()

    def test_a_file_without_a_column_of_the_table_gets_the_number_of_its_rows(
        self, foreign: TableBuilder
    ) -> None:
        log = DeltaLog(foreign.path)
        log.write(pa.table({"id": [7], "v": ["a"]}), options={"mergeSchema": "true"})
        done = compute_statistics(log)
        assert (done.files, done.counts_only) == (3, 3)
        assert health(log).num_rows == 4
        assert log.snapshot().scan("id = 1").to_arrow().num_rows == 1

    def test_many_files_are_several_commits(self, foreign: TableBuilder) -> None:
        log = DeltaLog(foreign.path)
        assert compute_statistics(log, files_a_commit=2).version == log.snapshot().version
        assert [entry["operation"] for entry in log.history(2)] == ["COMPUTE STATS"] * 2

    def test_row_ids_and_vectors_stay(self, tmp_path: Path) -> None:
        log = DeltaLog(tmp_path)
        options = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}
        log.write(pa.table({"id": range(10)}), options=options)
        delete(log, "id < 3")
        last = tmp_path / "_delta_log" / f"{1:020}.json"
        actions = [json.loads(line) for line in last.read_text().splitlines()]
        (add,) = [action["add"] for action in actions if "add" in action]
        add["stats"] = '{"numRecords":10}'
        last.write_text("".join(json.dumps(action) + "\n" for action in actions))
        (tmp_path / "_delta_log" / f"{1:020}.crc").unlink()
        without = {**add, "stats": None, "dataChange": False}
        (tmp_path / "_delta_log" / f"{2:020}.json").write_text(json.dumps({"add": without}) + "\n")
        assert compute_statistics(DeltaLog(tmp_path)).files == 1
        (after,) = [
            action["add"]
            for line in (tmp_path / "_delta_log" / f"{3:020}.json").read_text().splitlines()
            if "add" in (action := json.loads(line))
        ]
        kept = ("baseRowId", "defaultRowCommitVersion", "deletionVector")
        assert [after[name] for name in kept] == [add[name] for name in kept]
        assert json.loads(after["stats"])["tightBounds"] is False
        assert rows(DeltaLog(tmp_path)) == [3, 4, 5, 6, 7, 8, 9]

    def test_a_file_that_is_gone_is_named(self, foreign: TableBuilder, tmp_path: Path) -> None:
        gone = next(tmp_path.glob("*.parquet"))
        gone.unlink()
        with pytest.raises(DataFileError, match=gone.name):
            maintain(DeltaLog(tmp_path))
        assert DeltaLog(tmp_path).snapshot().version == foreign.version
