"""The backfill of row ids: whole actions, bounded commits, and going on after a failure."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import CommitFailedError
from delta_ds.kernel.transaction.alter.row_tracking import backfill
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.kernel.transaction.alter.tables import actions, with_rows

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


def test_files_are_committed_again_in_bounded_commits(tmp_path: Path) -> None:
    log = with_rows(tmp_path, files=5)
    backfill(log, files_a_commit=2)
    commits = [c for c in log.history() if c["operation"] == "ROW TRACKING BACKFILL"]
    assert len(commits) == 3
    ids = log.open_snapshot().live_files().table["baseRowId"].to_pylist()
    assert sorted(ids) == [0, 2, 4, 6, 8]
    backfill(log)
    assert log.snapshot().version == commits[0]["version"]


def test_an_action_keeps_everything_it_has(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.create(pa.schema([("id", pa.int64()), ("p", pa.string())]), partition_columns=["p"],
                 reader_features=["deletionVectors"], writer_features=["domainMetadata", "clustering"])  # fmt: skip
    add = table.write_file(ROWS, partition_values={"p": "x"})
    add["add"] |= {"tags": {"k": "v"}, "clusteringProvider": "liquid",
                   "deletionVector": table.deletion_vector([1])}  # fmt: skip
    table.commit(add)
    log = DeltaLog(tmp_path)
    before = dict(add["add"])
    backfill(log)
    (after,) = (a["add"] for a in actions(log, log.snapshot().version) if "add" in a)
    assert after.pop("baseRowId") == 0
    assert after.pop("defaultRowCommitVersion") == log.snapshot().version
    assert json.loads(after.pop("stats")) == json.loads(before.pop("stats"))
    assert after == {**before, "dataChange": False}
    assert log.snapshot().scan().to_arrow()["id"].to_pylist() == [1, 3]


def test_a_file_without_a_row_count_is_refused(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.create(ROWS.schema)
    table.append(ROWS, stats=False)
    with pytest.raises(CommitFailedError) as caught:
        backfill(DeltaLog(tmp_path))
    assert caught.value.condition == "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS"
