"""What must work on every supported Spark: small, and run by `make test-matrix`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import delta_ds
from delta_ds import DeltaLog, DeltaTable

pytestmark = pytest.mark.spark


def read(spark: SparkSession, path: str, **options: object) -> DataFrame:
    return spark.read.format("pydelta").options(**options).load(path)  # type: ignore[arg-type]


def test_rows_are_those_of_the_kernel(spark: SparkSession, sales: str) -> None:
    from_kernel = DeltaLog(sales).snapshot().scan().to_arrow().to_pylist()
    rows = [row.asDict() for row in read(spark, sales).collect()]
    assert sorted(rows, key=str) == sorted(from_kernel, key=str)
    assert len(rows) > 100


def test_every_version_can_be_read_back(spark: SparkSession, sales: str) -> None:
    log = DeltaLog(sales)
    for version in range(log.snapshot().version + 1):
        rows = log.snapshot(version).scan().to_arrow().num_rows
        assert read(spark, sales, versionAsOf=version).count() == rows, version


def test_time_travel_by_timestamp_finds_the_version_of_then(spark: SparkSession, sales: str) -> None:
    commit = DeltaTable.forPath(spark, sales).history().where("version = 2").select("timestamp")
    moment = commit.selectExpr("date_format(timestamp, \"yyyy-MM-dd'T'HH:mm:ss.SSSXXX\")").first()[0]
    assert read(spark, sales, timestampAsOf=moment).count() == read(spark, sales, versionAsOf=2).count()


def test_change_feed_says_what_each_version_changed(spark: SparkSession, sales: str) -> None:
    changes = read(spark, sales, readChangeFeed="true", startingVersion=4, endingVersion=4)
    kinds = {row["_change_type"]: row["count"] for row in changes.groupBy("_change_type").count().collect()}
    assert set(kinds) == {"update_preimage", "update_postimage"}
    assert kinds["update_preimage"] == kinds["update_postimage"] > 0
    assert changes.columns[-3:] == ["_change_type", "_commit_version", "_commit_timestamp"]


def test_one_dataframe_used_with_different_filters_gives_right_rows(spark: SparkSession, sales: str) -> None:
    # Spark hands all uses of a DataFrame the files of the filter that was pushed last.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        df = read(spark, sales)
        whole = DeltaLog(sales).snapshot().scan().to_arrow().num_rows
        german = df.where("country = 'DE'").count()
        assert 0 < german < whole
        assert df.count() == whole
        both = df.where("country = 'DE'").union(df.where("country = 'FR'"))
        assert {row.country for row in both.select("country").distinct().collect()} == {"DE", "FR"}
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_all_types_arrive_as_spark_reads_them_elsewhere(spark: SparkSession, sales: str) -> None:
    schema = json.loads(read(spark, sales).schema.json())
    assert [f["type"] for f in schema["fields"]] == [
        "long",
        "date",
        "string",
        "string",
        "integer",
        "decimal(10,2)",
    ]


def test_written_rows_are_read_back(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(100).selectExpr("id", "id % 3 as p", "cast(id as string) as s")
    rows.write.format("pydelta").mode("append").option("partitionBy", "p").save(path)
    rows.where("p = 1").write.format("pydelta").mode("overwrite").option("replaceWhere", "p = 1").save(path)
    assert read(spark, path).count() == 100
    assert [h.operation for h in DeltaTable.forPath(spark, path).history().collect()] == ["WRITE", "WRITE"]


def test_registering_again_is_harmless(spark: SparkSession) -> None:
    assert delta_ds.register(spark) == delta_ds.register(spark)
