"""`io.delta.tables.DeltaTable` in the JVM, which programs in Python ask without delta-spark's own Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import ParseException, PySparkException

from delta_ds import DeltaTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

QUOTED = "`default`.`handle_of_the_jvm`"


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Any:
    """A table of two versions, by its path, which has to be quoted, and by a name."""
    path = tmp_path / "a `b` c"
    for _ in range(2):
        spark.range(3).write.format("pydelta").mode("append").save(str(path))
    spark.sql(f"CREATE TABLE {QUOTED} USING delta LOCATION '{path}'")
    yield path
    spark.sql(f"DROP TABLE {QUOTED}")


@pytest.fixture(params=["path", "name"])
def handle(request: pytest.FixtureRequest, spark: Any, folder: Path) -> Any:
    tables = spark._jvm.io.delta.tables.DeltaTable
    if request.param == "path":
        return tables.forPath(spark._jsparkSession, str(folder))
    return tables.forName(spark._jsparkSession, QUOTED)


def test_the_newest_row_of_the_history_has_the_version(handle: Any):
    newest = handle.history(1).head()
    assert newest.get(newest.fieldIndex("version")) == 1


def test_the_history_the_detail_and_the_rows_are_those_of_the_table(spark: Any, folder: Path, handle: Any):
    table = DeltaTable.forPath(spark, str(folder))
    assert handle.history().count() == table.history().count() == 2
    detail = handle.detail().head()
    assert detail.getString(detail.fieldIndex("id")) == table.detail().collect()[0]["id"]
    assert handle.toDF().count() == 6


@pytest.mark.parametrize(
    ("way", "condition"),
    [("forPath", "DELTA_TABLE_ONLY_OPERATION"), ("forName", "TABLE_OR_VIEW_NOT_FOUND")],
)
def test_what_is_no_table_is_refused_at_once(spark: Any, tmp_path: Path, way: str, condition: str):
    named = str(tmp_path) if way == "forPath" else "default.no_such_table"
    with pytest.raises(PySparkException) as caught:
        getattr(spark._jvm.io.delta.tables.DeltaTable, way)(spark._jsparkSession, named)
    assert caught.value.getCondition() == condition


def test_a_text_that_is_no_name_is_none_of_a_statement(spark: Any):
    with pytest.raises(ParseException):
        spark._jvm.io.delta.tables.DeltaTable.forName(spark._jsparkSession, f"{QUOTED} LIMIT 1")
