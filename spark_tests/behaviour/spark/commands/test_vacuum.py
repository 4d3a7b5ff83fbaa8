"""`DeltaTable.vacuum`: settings of the session, inventories as DataFrames, and what comes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_ds import DeltaLog, DeltaTable, InvalidOptionError

CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
INVENTORY = "path string, length long, isDir boolean, modificationTime long"


@pytest.fixture
def unchecked(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set(CHECK, "false")
    yield spark
    spark.conf.unset(CHECK)


def overwritten(spark: SparkSession, path: Path) -> tuple[DeltaTable, Path, Path]:
    """A table, a file that it has no more, and one that it never had."""
    spark.range(3).coalesce(1).write.format("pydelta").save(str(path))
    (old,) = path.glob("**/*.parquet")
    spark.range(5).coalesce(1).write.format("pydelta").mode("overwrite").save(str(path))
    stray = path / "stray b.parquet"
    stray.write_bytes(b"x")
    return DeltaTable.forPath(spark, str(path)), old, stray


def test_files_go_and_the_history_says_so(unchecked: SparkSession, tmp_path: Path) -> None:
    table, old, stray = overwritten(unchecked, tmp_path / "a b")
    found = table.vacuum(0, dryRun=True)
    assert found.dtypes == [("path", "string")]
    listed = {row.path.removeprefix("file:") for row in found.collect()}
    assert {str(old), str(stray)} <= listed
    assert old.exists()
    done = table.vacuum(0.0)
    assert (done.columns, done.collect()) == ([], [])
    assert not old.exists() and not stray.exists() and table.toDF().count() == 5
    end, start = table.history(2).collect()
    assert (end.operation, start.operation) == ("VACUUM END", "VACUUM START")
    assert start.operationParameters["specifiedRetentionMillis"] == "0"
    assert start.operationParameters["retentionCheckEnabled"] == "false"


def test_lite_mode_and_inventories_leave_what_they_do_not_know(
    unchecked: SparkSession, tmp_path: Path
) -> None:
    table, old, stray = overwritten(unchecked, tmp_path)
    rows = [(f"file:{stray}", 1, False, 1), (f"file:{tmp_path}/not-there", 1, False, 1)]
    listed = unchecked.createDataFrame(rows, INVENTORY).selectExpr(
        "isdir", "path", "length", "1 as other", "modificationTime"
    )
    with pytest.raises(InvalidOptionError, match=r"\[DELTA_INVALID_INVENTORY_SCHEMA\].*isDir missing"):
        table.vacuum(0, inventory=listed.drop("isdir"))
    table.vacuum(0, inventory=listed)
    assert old.exists() and not stray.exists()
    stray.write_bytes(b"x")
    unchecked.conf.set("spark.databricks.delta.vacuum.logging.enabled", "false")
    try:
        before = DeltaLog(tmp_path).snapshot().version
        table.vacuum(0, mode="lite")
        assert DeltaLog(tmp_path).snapshot().version == before
    finally:
        unchecked.conf.unset("spark.databricks.delta.vacuum.logging.enabled")
    assert stray.exists() and not old.exists()


def test_what_is_not_safe_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table, old, _ = overwritten(spark, tmp_path)
    for arguments, words in (
        ((0,), "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"),
        ((-1,), "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE"),
        (("1",), "retentionHours needs to be a number but got"),
        ((None, False, "HALF"), "FULL or LITE"),
    ):
        with pytest.raises(InvalidOptionError, match=words):
            table.vacuum(*arguments)  # type: ignore[arg-type]
    table.vacuum()
    assert old.exists()
