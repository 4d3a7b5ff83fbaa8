"""Health tells from the log what a table's commands would do, and does nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import NotADeltaTableError
from delta_ds.kernel.commands.dml.delete import delete
from delta_ds.kernel.commands.health import Health, health
from delta_ds.kernel.commands.optimize.command import optimize
from delta_ds.kernel.commands.optimize.request import PURGE, OptimizeRequest
from delta_ds.kernel.commands.vacuum import vacuum


def due(found: Health) -> list[str]:
    return [each.command for each in found.due]


def test_nothing_is_due_for_a_young_table(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": range(100)}))
    found = health(log)
    assert (found.num_files, found.num_rows, found.deleted_rows, found.due) == (1, 100, 0, ())
    assert str(found).splitlines()[0] == f"{tmp_path} version 0"
    assert str(found).endswith("nothing is due")


def test_what_optimize_would_join_is_what_it_joins(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    for number in range(40):
        options = {"partitionBy": "p"} if not number else {}
        log.write(pa.table({"id": [number], "p": [number % 2]}), options=options)
    found = health(log)
    assert due(found) == ["OPTIMIZE"]
    assert "due: OPTIMIZE: joins 40 files into 2" in str(found)
    metrics = optimize(log).metrics
    assert (metrics["numFilesRemoved"], metrics["numFilesAdded"]) == (found.files_to_join, found.files_after)
    assert due(health(log)) == []


def test_deleted_rows_are_counted(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": range(1000)}), options={"delta.enableDeletionVectors": "true"})
    delete(log, "id < 100")
    found = health(log)
    assert (found.num_rows, found.deleted_rows, found.files_with_vectors) == (900, 100, 1)
    assert due(found) == ["REORG"]
    assert optimize(log).version is None, "a file without others to join stays as it is"
    assert optimize(log, OptimizeRequest(kind=PURGE)).metrics["numFilesRemoved"] == 1
    assert due(health(log)) == []


def test_one_version_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1]}))
    opened = []
    honest = DeltaLog.open_snapshot
    monkeypatch.setattr(DeltaLog, "open_snapshot", lambda self: opened.append(1) or honest(self))
    health(log)
    assert len(opened) == 1


def test_files_that_vacuum_would_delete_are_due(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    retention = {"delta.deletedFileRetentionDuration": "interval 0 seconds"}
    log.write(pa.table({"id": [1]}), options=retention)
    log.write(pa.table({"id": [2]}), "overwrite")
    time.sleep(0.05)
    found = health(log)
    assert (found.unneeded_files, due(found)) == (1, ["VACUUM"])
    assert vacuum(log, dry_run=True).num_bytes == found.unneeded_bytes


def test_a_checkpoint_that_is_late_is_due(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    for number in range(7):
        log.write(pa.table({"id": [number]}), options={"delta.checkpointInterval": "3"} if not number else {})
    assert health(log).commits_since_checkpoint < 3
    for checkpoint in (tmp_path / "_delta_log").glob("*checkpoint*"):
        checkpoint.unlink()
    assert "checkpoint" in due(health(log))


def test_a_table_is_left_as_it_is(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path)
    log.write(pa.table({"id": [1]}))
    before = sorted(path for path in tmp_path.rglob("*"))
    health(log)
    assert sorted(path for path in tmp_path.rglob("*")) == before
    with pytest.raises(NotADeltaTableError):
        health(DeltaLog(tmp_path / "no"))
