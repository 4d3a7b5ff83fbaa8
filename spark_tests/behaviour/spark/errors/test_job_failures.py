"""A job that Spark gives up ends a write or command in one short error."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import JobFailedError

CALLS: dict[str, Callable[[DataFrame, str], object]] = {
    "append": lambda rows, path: rows.write.format("pydelta").mode("append").save(path),
    "overwrite": lambda rows, path: rows.write.format("pydelta").mode("overwrite").save(path),
    "merge": lambda rows, path: (
        DeltaTable.forPath(rows.sparkSession, path)
        .alias("t")
        .merge(rows.alias("s"), "t.id = s.id")
        .whenMatchedDelete()
        .whenNotMatchedInsertAll()
        .execute()
    ),
}


@pytest.fixture
def failing(spark: SparkSession) -> DataFrame:
    """Rows whose computation fails with an exception of Java that pyspark has no class for."""
    return spark.range(3).select(
        F.expr(
            "cast(java_method('java.util.Objects', 'requireNonNull', cast(null as string)) as bigint) + id"
        ).alias("id")
    )


@pytest.mark.spark
@pytest.mark.parametrize("call", CALLS)
def test_of_a_write_or_command_tells_cause_table_and_what_was_kept(
    spark: SparkSession, failing: DataFrame, tmp_path: Path, call: str
) -> None:
    path = str(tmp_path / "t")
    spark.range(2).write.format("pydelta").save(path)
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(JobFailedError) as caught:
        CALLS[call](failing, path)
    said = str(caught.value)
    assert path in said
    assert "Exception" in said
    assert "Nothing was committed" in said
    assert isinstance(caught.value, PySparkException)
    cause = caught.value.__cause__
    assert type(cause).__name__ == "Py4JJavaError"
    assert cause.java_exception is not None
    assert not any("\tat " in line for line in traceback.format_exception(caught.value))
    assert (DeltaLog(path).snapshot().version, sorted(tmp_path.rglob("*"))) == (0, files)
