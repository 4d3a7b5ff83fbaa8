"""`DeltaTable.blame`: the kernel's answer, whatever Spark is asked, in classic sessions and on Spark Connect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import SchemaError, UnsupportedOperationError
from delta_ds.spark.commands import blame as blame_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRACKED = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"}


@pytest.fixture(scope="module")
def path(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """0: ids 0 to 9; 1: id 1 updated; 2: all joined; 3: ids 3 and 20 merged, by someone."""
    path = str(tmp_path_factory.mktemp("blame") / "t")
    rows = spark.range(10).selectExpr("id", "id * 2 AS v", "CAST(id AS string) AS s")
    rows.repartition(2).write.format("pydelta").options(**TRACKED, userMetadata="load").save(path)
    table = DeltaTable.forPath(spark, path)
    table.update("id = 1", {"v": "100"})
    table.optimize().executeCompaction()
    source = spark.createDataFrame([(3, 33, "c"), (20, 7, "d")], "id long, v long, s string").alias("n")
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", "by hand")
    try:
        merge = table.alias("t").merge(source, "t.id = n.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    finally:
        spark.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
    return path


def told(rows: DataFrame) -> dict[int, tuple[int, str]]:
    found = rows.select("id", "_commit_version", "_commit_operation").collect()
    return {row[0]: (row[1], row[2]) for row in found}


def test_all_rows_are_those_of_the_kernel(spark: SparkSession, path: str) -> None:
    found = DeltaTable.forPath(spark, path).blame()
    expected = DeltaLog(path).blame()
    assert found.columns == expected.schema.names
    by_id = {row["id"]: row for row in expected.to_arrow().to_pylist()}
    for row in found.collect():
        other = by_id.pop(row["id"])
        assert row["_commit_timestamp"].timestamp() == other["_commit_timestamp"].timestamp()
        same = [name for name in found.columns if name != "_commit_timestamp"]
        assert {n: _plain(row[n]) for n in same} == {n: other[n] for n in same}
    assert not by_id


def _plain(value: Any) -> Any:
    return value.asDict() if hasattr(value, "asDict") else value


_OF_THREE = {3: (3, "MERGE")}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (lambda: F.col("id") == 3, _OF_THREE),
        ("soundex(s) = 'C000' OR upper(s) = 'D'", {**_OF_THREE, 20: (3, "MERGE")}),
        # The part that the kernel knows cannot be evaluated on all rows, and is not reached for them.
        ("id <> 3 AND 30 / (id - 3) = -15", {1: (1, "UPDATE")}),
        ("t.id IN (1, 2, 3)", {1: (1, "UPDATE"), 2: (0, "WRITE"), **_OF_THREE}),
    ],
)
def test_a_condition_means_what_spark_says(
    spark: SparkSession, path: str, condition: Any, expected: dict[int, tuple[int, str]]
) -> None:
    given = condition() if callable(condition) else condition
    assert told(DeltaTable.forPath(spark, path).alias("t").blame(given)) == expected


def test_a_column_of_the_table_as_a_dataframe_is_understood(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    assert told(table.blame(table.toDF().id == 3)) == _OF_THREE


def test_only_files_that_can_match_and_columns_that_are_needed_are_read(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[blame_source.Asked] = []

    real = blame_source.Asked.packed
    monkeypatch.setattr(blame_source.Asked, "packed", lambda self: asked.append(self) or real(self))
    found = DeltaTable.forPath(spark, path).blame("id > 15", ["s"])
    assert found.columns[0] == "s" and "id" not in found.columns
    assert [row.s for row in found.collect()] == ["d"]
    assert asked[0].columns == ("s", "id") and str(asked[0].predicate) == "(id > CAST(15 AS long))"


def test_versions_and_moments_of_the_past(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    moment = table.history().where("version = 1").first().timestamp
    assert told(table.blame("id < 2", version=0)) == {0: (0, "WRITE"), 1: (0, "WRITE")}
    text = str(moment)
    assert told(table.blame("id < 2", timestamp=text)) == {0: (0, "WRITE"), 1: (1, "UPDATE")}
    later = table.blame("id = 1")
    assert later.select("_commit_user_metadata").first()[0] is None
    assert table.blame("id = 20").select("_commit_user_metadata").first()[0] == "by hand"


def test_what_cannot_be_answered_is_refused_at_once(spark: SparkSession, path: str, tmp_path: Path) -> None:
    spark.range(3).write.format("pydelta").save(str(tmp_path / "plain"))
    with pytest.raises(UnsupportedOperationError, match=r"delta\.enableRowTracking"):
        DeltaTable.forPath(spark, str(tmp_path / "plain")).blame("id = 1")
    table = DeltaTable.forPath(spark, path)
    with pytest.raises(SchemaError, match="did you mean 's'"):
        table.blame(columns=["ss"])
    with pytest.raises(SchemaError, match="idd"):
        table.blame("idd = 1")
