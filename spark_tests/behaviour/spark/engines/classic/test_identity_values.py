"""Identity columns: values are dealt out among the tasks of a write, as by delta-spark, where these can be counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_ds import DeltaLog
from delta_ds.kernel.format.schema.types import LONG, StructField, StructType
from delta_ds.kernel.transaction.alter.create import create_table
from spark_tests.engines.interop.tables_of_features import identity

pytestmark = pytest.mark.spark


def make(path: Path) -> DeltaLog:
    log = DeltaLog(path)
    create_table(log, StructType((identity("k", 1, 1, False), StructField("v", LONG))))
    return log


def values(log: DeltaLog) -> list[int]:
    return sorted(log.snapshot().scan().to_arrow()["k"].to_pylist())


# By delta-spark 4.4: rows in that many partitions, written twice.
DEALT_OUT = {
    (1, 10): list(range(1, 21)),
    (4, 10): [*range(1, 9), 10, 12, *range(13, 21), 22, 24],
}


@pytest.mark.parametrize(("tasks", "rows"), DEALT_OUT)
def test_values_are_those_of_delta_spark(spark: SparkSession, tmp_path: Path, tasks: int, rows: int) -> None:
    log = make(tmp_path)
    for _ in range(2):
        df = spark.range(0, rows, 1, tasks).toDF("v")
        df.write.format("pydelta").mode("append").save(str(tmp_path))
    assert values(log) == DEALT_OUT[tasks, rows]


def test_values_are_unique_where_tasks_are_not_counted(spark: SparkSession, tmp_path: Path) -> None:
    log = make(tmp_path)
    for _ in range(2):
        df = spark.range(0, 100, 1, 3).toDF("v").repartition(5)
        df.write.format("pydelta").mode("append").save(str(tmp_path))
    assert len(set(values(log))) == 200
