"""The tests of VACUUM on large tables: tasks name the files that must stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_ds import DeltaLog
from delta_ds.kernel.log.snapshot import Snapshot
from spark_tests.behaviour.spark.commands.test_vacuum import *  # noqa: F403
from spark_tests.behaviour.spark.commands.test_vacuum import overwritten


def test_what_must_stay_is_named_by_tasks(
    unchecked: SparkSession, tmp_path: Path, every_table_is_large: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, old, stray = overwritten(unchecked, tmp_path / "t")
    DeltaLog(str(tmp_path / "t")).checkpoint()
    live = {str(path) for path in (tmp_path / "t").glob("part-*")} - {str(old)}

    def refuse(_: Snapshot) -> None:
        raise AssertionError("the whole log was replayed")

    with monkeypatch.context() as patch:
        patch.setattr(Snapshot, "_replay", refuse)
        found = {row.path.removeprefix("file:") for row in table.vacuum(0, dryRun=True).collect()}
        assert found == {str(old), str(stray)}
        table.vacuum(0)
    assert len(every_table_is_large) == 2
    assert {str(path) for path in (tmp_path / "t").glob("*.parquet")} == live
    assert table.toDF().count() == 5
