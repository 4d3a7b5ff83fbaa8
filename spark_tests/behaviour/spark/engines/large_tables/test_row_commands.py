"""The tests of DELETE, UPDATE and MERGE on large tables: tasks find the files that a command looks at."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import DeltaConcurrentModificationException
from delta_ds.kernel.log.snapshot import Snapshot
from spark_tests.behaviour.spark.commands.test_row_commands import *  # noqa: F403
from spark_tests.behaviour.spark.commands.test_row_commands import make, values

pytestmark = pytest.mark.long


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_command_knows_of_no_files_but_those_that_it_looks_at(
    spark: SparkSession, tmp_path: Path, vectors: str, every_table_is_large: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    table = make(spark, tmp_path / "t", {"delta.enableDeletionVectors": vectors}, partitioned=True)

    def refuse(_: Snapshot) -> None:
        raise AssertionError("the whole log was replayed")

    monkeypatch.setattr(Snapshot, "_replay", refuse)
    table.delete("id = 5")
    table.update("id = 6", {"v": "0"})
    table.delete("p = 1")
    source = spark.range(98, 102).selectExpr("id", "id % 3 as p", "-1 as v")
    table.merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    monkeypatch.undo()
    assert every_table_is_large
    left = {n: n * 2 for n in range(100) if n % 3 != 1 and n not in (5, 6)}
    assert values(table) == {**left, 6: 0, **dict.fromkeys(range(98, 102), -1)}


def test_a_commit_that_changes_the_same_files_is_a_conflict(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from delta_ds.spark.commands import dml_command

    table = make(spark, tmp_path / "t", {}, partitioned=False)
    other = DeltaLog(str(tmp_path / "t"))
    commit = dml_command.commit_dml

    def after_another(snapshot: Snapshot, change: object) -> object:
        monkeypatch.setattr(dml_command, "commit_dml", commit)
        transaction = other.start_transaction()
        transaction.scan()
        transaction.remove_live()
        transaction.commit("DELETE", {})
        return commit(snapshot, change)

    monkeypatch.setattr(dml_command, "commit_dml", after_another)
    spark.conf.set("spark.pydelta.retries", "0")
    try:
        with pytest.raises(DeltaConcurrentModificationException):
            DeltaTable.forPath(spark, str(tmp_path / "t")).delete("id = 5")
    finally:
        spark.conf.unset("spark.pydelta.retries")
    assert values(table) == {}
