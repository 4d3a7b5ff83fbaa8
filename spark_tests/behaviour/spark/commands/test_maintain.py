"""`DeltaTable.maintain`: the steps of the kernel, with the sizes and settings of the session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import InvalidArgumentError, UnsupportedFeatureError
from delta_ds.testing import TableBuilder

MIN_SIZE = "spark.databricks.delta.optimize.minFileSize"


@pytest.fixture
def nothing_is_small(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set(MIN_SIZE, "1")
    yield spark
    spark.conf.unset(MIN_SIZE)


def small_files(path: Path) -> None:
    options = {"maxRecordsPerFile": 1, "delta.deletedFileRetentionDuration": "interval 0 seconds"}
    DeltaLog(path).write(pa.table({"id": range(20)}), options=options)


def test_what_is_due_is_done_once(spark: SparkSession, tmp_path: Path) -> None:
    small_files(tmp_path)
    table = DeltaTable.forPath(spark, str(tmp_path))
    done = table.maintain(vacuum=True)
    assert [(step.command, step.outcome, step.version) for step in done.steps] == [
        ("OPTIMIZE", "done", 1),
        ("VACUUM", "done", 3),
    ]
    assert done.steps[0].metrics["numFilesRemoved"] == 20
    assert done.steps[1].metrics["numDeletedFiles"] == 20
    assert table.maintain(vacuum=True).steps == ()
    assert DeltaLog(tmp_path).history()[-2]["engineInfo"].startswith("Apache-Spark/")
    assert table.toDF().count() == 20


def test_sizes_are_those_of_the_session(nothing_is_small: SparkSession, tmp_path: Path) -> None:
    small_files(tmp_path)
    assert DeltaTable.forPath(nothing_is_small, str(tmp_path)).maintain(dryRun=True).steps == ()


def test_what_cannot_be_maintained_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    TableBuilder(tmp_path).create(pa.schema([("id", pa.int64())]), writer_features=["nobodyKnows"])
    table = DeltaTable.forPath(spark, str(tmp_path))
    with pytest.raises(UnsupportedFeatureError, match="nobodyKnows"):
        table.maintain()
    with pytest.raises(InvalidArgumentError, match="vacuum"):
        table.maintain(vacuum="yes")
