"""What fails in Spark is told in a few lines that name the file or table, not in a page of Java."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import DataFileError, DeltaError, SchemaError
from delta_ds.spark.errors.java_errors import find_read_failure

pytestmark = pytest.mark.spark


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Two files of two rows."""
    log = DeltaLog(tmp_path / "orders")
    for ids in ([1, 2], [3, 4]):
        log.write(pa.table({"id": ids, "country": ["DE", "FR"]}))
    return str(tmp_path / "orders")


def first_file(path: str) -> Path:
    return sorted(Path(path).glob("*.parquet"))[0]


def told(error: BaseException) -> str:
    """The whole traceback, without this test's own part."""
    return "".join(traceback.format_exception(error))


READS: dict[str, Callable[[SparkSession, str], object]] = {
    "load": lambda spark, path: spark.read.format("pydelta").load(path).collect(),
    "toDF": lambda spark, path: DeltaTable.forPath(spark, path).toDF().where("id > 0").collect(),
    "sql": lambda spark, path: spark.sql(f"SELECT * FROM delta.`{path}`").collect(),
    "write of its rows": lambda spark, path: (
        spark.read.format("pydelta").load(path).write.format("pydelta").save(f"{path}-copy")
    ),
    "clone": lambda spark, path: (
        DeltaTable.forPath(spark, path).clone(f"{path}-clone", isShallow=True).toDF().collect()
    ),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_a_data_file_that_spark_cannot_read_is_named_with_its_table(
    spark: SparkSession, table: str, read: str, damage: str
) -> None:
    file = first_file(table)
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(b"PAR1 this is no file of Parquet PAR1")
    with pytest.raises(DataFileError) as caught:
        READS[read](spark, table)
    said = str(caught.value)
    condition, reason = {
        "missing": ("FAILED_READ_FILE.FILE_NOT_EXIST", "does not exist, though the log names it"),
        "damaged": ("FAILED_READ_FILE.NO_HINT", "cannot be read: "),
    }[damage]
    assert said.startswith(f"[{condition}] data file ")
    assert file.name in said and table in said and reason in said
    assert "\n" not in said
    assert isinstance(caught.value, PySparkException)
    assert told(caught.value).count("\tat ") == 0
    assert told(caught.value).count("\n") < 70


def test_files_of_others_are_left_to_spark(spark: SparkSession, table: str, tmp_path: Path) -> None:
    spark.read.format("pydelta").load(table).collect()
    plain = str(tmp_path / "plain")
    spark.range(3).coalesce(1).write.parquet(plain)
    rows = spark.read.parquet(plain)
    first_file(plain).unlink()
    with pytest.raises(Exception, match="FILE_NOT_EXIST") as caught:
        rows.collect()
    assert not isinstance(caught.value, DeltaError)
    assert find_read_failure(caught.value) is None


def test_a_condition_that_is_refused_logs_no_java(spark: SparkSession, table: str) -> None:
    logged: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = logged.append  # type: ignore[method-assign]
    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        with pytest.raises(DeltaError, match="`contry` cannot be resolved"):
            DeltaTable.forPath(spark, table).delete("contry = 'DE'")
        assert logged == []
        # The user's own queries are logged as pyspark does it.
        with pytest.raises(PySparkException):
            spark.sql(f"SELECT contry FROM delta.`{table}`")
        assert len(logged) == 1
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


def test_a_folder_of_a_table_is_answered_with_the_table(spark: SparkSession, table: str) -> None:
    with pytest.raises(SchemaError, match="columns that are none of its partition columns: country"):
        spark.read.format("pydelta").load(os.path.join(table, "country=DE"))
    assert DeltaTable.forPath(spark, f"{table}/").toDF().count() == 4
