"""A job that Spark gives up ends a write or command in one short error."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import JobFailedError


def _insert(rows: DataFrame, path: str) -> None:
    rows.createOrReplaceTempView("failing")
    rows.sparkSession.sql(f"INSERT INTO pydelta.`{path}` SELECT * FROM failing")


CALLS: dict[str, Callable[[DataFrame, str], object]] = {
    "insert": _insert,
    "append to": lambda rows, path: rows.writeTo(f"pydelta.`{path}`").append(),
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
    # Programs for Spark ask for py4j's error where a job failed.
    assert isinstance(caught.value, Py4JJavaError)
    assert caught.value.java_exception.getStackTrace()
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy).__name__, str(copy)) == ("JobFailedError", said)
    # pyspark raises "from None" what statements end with.
    assert isinstance(caught.value.__cause__, Py4JJavaError) or call == "insert"
    assert not any("\tat " in line for line in traceback.format_exception(caught.value))
    assert (DeltaLog(path).snapshot().version, sorted(tmp_path.rglob("*"))) == (0, files)
