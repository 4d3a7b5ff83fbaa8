"""OPTIMIZE on Spark: the same kernel work in threads or tasks, and the answer in delta-spark's shape."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import DataFileError, InvalidOptionError, PredicateError
from delta_ds.kernel.commands.optimize import clustering_sort
from delta_ds.spark.base.session_conf import LOCAL_OPTIMIZE_CONF

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SIZE = "spark.databricks.delta.optimize.maxFileSize"


def _table(spark: SparkSession, path: Path) -> DeltaTable:
    rows = spark.range(0, 600, 1, 3).select(
        "id", (F.col("id") * 7 % 100).alias("x"), (F.col("id") % 2).alias("p")
    )
    rows.write.format("pydelta").partitionBy("p").save(str(path))
    return DeltaTable.forPath(spark, str(path))


@pytest.mark.parametrize("little", ["0", "1m"])
def test_files_are_joined_and_arranged_and_the_answer_has_delta_sparks_shape(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, little: str
) -> None:
    table = _table(spark, tmp_path / "t")
    row = table.optimize().where("p = 1").executeCompaction().first()
    assert row is not None
    assert row.path == f"file:{tmp_path}/t"
    assert (row.metrics.numFilesAdded, row.metrics.numFilesRemoved, row.metrics.totalConsideredFiles) == (
        1,
        3,
        3,
    )
    assert row.metrics.filesAdded.totalSize > 0
    assert row.metrics.zOrderStats is None

    monkeypatch.setattr(clustering_sort, "IN_MEMORY_BYTES", 0)
    monkeypatch.setattr(clustering_sort, "PIECE_BYTES", 500)
    spark.conf.set(_SIZE, "1500")
    # The pieces of a bin are exchanged by tasks, or by files of the driver.
    spark.conf.set(LOCAL_OPTIMIZE_CONF, little)
    try:
        done = table.optimize().executeZOrderBy("x", "id").first()
    finally:
        spark.conf.unset(_SIZE)
        spark.conf.unset(LOCAL_OPTIMIZE_CONF)
    assert done is not None
    assert done.metrics.zOrderStats.numOutputCubes == 2
    assert done.metrics.numFilesAdded > 2
    assert table.toDF().agg(F.count("*"), F.sum("id")).first() == (600, 179_700)
    newest = table.history(1).first()
    assert newest is not None
    assert (newest.version, newest.operation, newest.isolationLevel) == (2, "OPTIMIZE", "SnapshotIsolation")
    assert newest.operationParameters["zOrderBy"] == '["x","id"]'


def test_what_fails_raises_this_packages_errors_and_leaves_nothing_behind(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = _table(spark, tmp_path / "t")
    with pytest.raises(PredicateError, match="DELTA_NON_PARTITION_COLUMN_REFERENCE"):
        table.optimize().where("id = 1").executeCompaction()
    files = sorted((tmp_path / "t").rglob("*.parquet"))
    files[0].unlink()
    with pytest.raises(DataFileError):
        table.optimize().executeCompaction()
    assert len(sorted((tmp_path / "t").rglob("*.parquet"))) == len(files) - 1
    assert table.history().count() == 1


@pytest.mark.parametrize("ordered", [False, True])
def test_threads_of_the_driver_leave_what_the_tasks_of_a_job_do(
    spark: SparkSession, tmp_path: Path, ordered: bool
) -> None:
    _table(spark, tmp_path / "threads")
    shutil.copytree(tmp_path / "threads", tmp_path / "tasks")
    done = {}
    for name in ("threads", "tasks"):
        spark.conf.set(LOCAL_OPTIMIZE_CONF, "0" if name == "tasks" else "1m")
        try:
            builder = DeltaTable.forPath(spark, str(tmp_path / name)).optimize()
            row = (builder.executeZOrderBy("x") if ordered else builder.executeCompaction()).first()
        finally:
            spark.conf.unset(LOCAL_OPTIMIZE_CONF)
        assert row is not None
        metrics = row.metrics.asDict(recursive=True)
        log = DeltaLog(str(tmp_path / name))
        files = log.snapshot().files().drop_columns(["path", "modificationTime"]).to_pylist()
        rows = log.snapshot().scan("p = 1", metadata_columns=("row_index",)).to_arrow().to_pylist()
        texts = sorted(str(file) for file in files)
        done[name] = texts, rows, {**metrics, "startTimeMs": 0, "endTimeMs": 0}
    assert done["threads"] == done["tasks"]


def test_a_wrong_size_is_refused_before_anything_is_read(spark: SparkSession, tmp_path: Path) -> None:
    table = _table(spark, tmp_path / "t")
    spark.conf.set(LOCAL_OPTIMIZE_CONF, "some")
    try:
        with pytest.raises(InvalidOptionError, match="localOptimizeSize"):
            table.optimize().executeCompaction()
    finally:
        spark.conf.unset(LOCAL_OPTIMIZE_CONF)
    assert table.history().count() == 1
