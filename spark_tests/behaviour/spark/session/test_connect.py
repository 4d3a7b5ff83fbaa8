"""The integration in a session of Spark Connect, against a server that has only this package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from delta_ds import DeltaLog
from delta_ds.exceptions import (
    InvalidOptionError,
    NotADeltaTableError,
    PredicateError,
    SchemaError,
    TableExistsError,
    UnsupportedOperationError,
)
from delta_ds.spark.session.integration import install, is_installed, uninstall
from spark_tests.behaviour.spark.connect_server import Client, Server, connect_client

pytestmark = [pytest.mark.connect, pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def client(plain_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with connect_client(plain_server, tmp_path_factory.mktemp("connect")) as started:
        started(install)
        yield started


def rows(spark: SparkSession, *ids: int) -> DataFrame:
    values = ", ".join(f"({i}L, {i % 2}L, 's{i}')" for i in ids)
    return spark.sql(f"select * from values {values} as t(id, p, s)")


def save(spark: SparkSession, path: str, ids: list[int], mode: str | None = None, **options: Any) -> None:
    rows(spark, *ids).write.format("pydelta").save(path, mode=mode, **options)


def ids(path: Path) -> list[int]:
    return sorted(DeltaLog(path).snapshot().scan(columns=["id"]).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("mode", [None, "error", "errorifexists"])
def test_default_mode_creates_and_refuses(client: Client, tmp_path: Path, mode: str | None) -> None:
    client(save, str(tmp_path / "t"), [1], mode)
    with pytest.raises(TableExistsError, match="DELTA_PATH_EXISTS"):
        client(save, str(tmp_path / "t"), [2], mode)
    assert ids(tmp_path / "t") == [1]


def test_the_other_modes_do_as_they_say(client: Client, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    client(save, path, [1], "ignore")
    client(save, path, [2], "ignore")
    client(save, path, [3], "append")
    assert ids(tmp_path / "t") == [1, 3]
    client(save, path, [4], "overwrite")
    assert ids(tmp_path / "t") == [4]
    with pytest.raises(InvalidOptionError, match="INVALID_SAVE_MODE"):
        client(save, path, [5], "upsert")


def test_layout_is_that_of_the_calls(client: Client, tmp_path: Path) -> None:
    def lay_out(spark: SparkSession, folder: str) -> None:
        rows(spark, 1, 2).write.format("pydelta").partitionBy("p", "s").save(f"{folder}/parts")
        rows(spark, 1, 2).write.format("pydelta").clusterBy("id").save(f"{folder}/clusters")

    def buckets(spark: SparkSession, folder: str) -> None:
        rows(spark, 1).write.format("pydelta").bucketBy(2, "id").save(f"{folder}/buckets")

    client(lay_out, str(tmp_path))
    assert DeltaLog(tmp_path / "parts").snapshot().partition_columns == ["p", "s"]
    assert DeltaLog(tmp_path / "clusters").snapshot().clustering_columns == [["id"]]
    with pytest.raises(UnsupportedOperationError, match="bucketBy"):
        client(buckets, str(tmp_path))


def test_tables_by_path_are_read_and_written(client: Client, tmp_path: Path) -> None:
    def use(spark: SparkSession, name: str) -> list[Any]:
        rows(spark, 1).write.saveAsTable(name)
        rows(spark, 2).toDF("a", "b", "c").write.insertInto(name)
        rows(spark, 3).select("s", "id").write.mode("append").saveAsTable(name)
        df = spark.table(name)
        at_first = spark.read.option("versionAsOf", 0).table(name).count()
        return [sorted(tuple(row) for row in df.collect()), at_first]

    found = client(use, f"pydelta.`{tmp_path / 't'}`")
    assert found == [[(1, 1, "s1"), (2, 0, "s2"), (3, None, "s3")], 1]


def test_writer_v2_writes(client: Client, tmp_path: Path) -> None:
    def use(spark: SparkSession, name: str) -> None:
        from pyspark.sql import functions as F

        rows(spark, 1, 2, 3).writeTo(name).using("pydelta").partitionedBy("p").create()
        rows(spark, 5).writeTo(name).append()
        rows(spark, 4).writeTo(name).overwritePartitions()
        rows(spark, 7).writeTo(name).overwrite((F.col("id") >= 5) & (F.col("s") != "it's"))

    def twice(spark: SparkSession, name: str) -> None:
        rows(spark, 1).writeTo(name).create()

    def unknown(spark: SparkSession, name: str) -> None:
        from pyspark.sql import functions as F

        rows(spark, 1).writeTo(name).overwrite(F.when(F.col("id") == 1, True))

    name = f"pydelta.`{tmp_path / 't'}`"
    client(use, name)
    assert ids(tmp_path / "t") == [1, 3, 4, 7]
    with pytest.raises(TableExistsError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        client(twice, name)
    with pytest.raises(PredicateError, match="Spark Connect"):
        client(unknown, name)


def test_what_needs_a_table_says_so(client: Client, tmp_path: Path) -> None:
    def insert(spark: SparkSession, name: str) -> None:
        rows(spark, 1).write.insertInto(name)

    def append(spark: SparkSession, name: str) -> None:
        rows(spark, 1).writeTo(name).append()

    for use in (insert, append):
        with pytest.raises(NotADeltaTableError):
            client(use, f"pydelta.`{tmp_path / 't'}`")


def test_errors_of_the_server_are_those_of_the_package(client: Client, tmp_path: Path) -> None:
    client(save, str(tmp_path / "t"), [1])

    def wider(spark: SparkSession, path: str) -> None:
        rows(spark, 2).selectExpr("*", "1 as extra").write.format("pydelta").mode("append").save(path)

    with pytest.raises(SchemaError):
        client(wider, str(tmp_path / "t"))


def test_metrics_of_a_write_reach_the_users_dataframe(client: Client, tmp_path: Path) -> None:
    def use(spark: SparkSession, path: str) -> bool:
        df = rows(spark, 1)
        df.write.format("pydelta").save(path)
        return df.executionInfo is not None

    assert client(use, str(tmp_path / "t"))


def test_everything_else_is_sparks_and_comes_back(client: Client, tmp_path: Path) -> None:
    def use(spark: SparkSession, folder: str) -> list[Any]:
        from pyspark.sql.connect.readwriter import DataFrameWriter

        rows(spark, 1).write.parquet(f"{folder}/p")
        rows(spark, 1).write.format("json").save(f"{folder}/j", mode="ignore")
        replaced = DataFrameWriter.save
        uninstall(spark)
        gone = [is_installed(spark), DataFrameWriter.save is replaced]
        install(spark)
        return [spark.read.parquet(f"{folder}/p").count(), *gone, is_installed(spark)]

    assert client(use, str(tmp_path)) == [1, False, False, True]
