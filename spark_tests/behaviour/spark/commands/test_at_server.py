"""Commands of a client that a server of ours runs itself: with what users wrote, in the client's session."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaError
from spark_tests.behaviour.spark.commands.row_changes import make_table, only_at_server
from spark_tests.behaviour.spark.commands.test_rows_found_by_arrow import (
    FOREIGN,
    KEYS,
    TRANSLATED,
    table_of_values,
)
from spark_tests.behaviour.spark.connect_server import Client, Server, connect_client
from spark_tests.full_form import part

pytestmark = [pytest.mark.connect, pytest.mark.slow, pytest.mark.long]
ZONE = "Europe/Berlin"


@pytest.fixture(scope="module")
def client(our_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with connect_client(our_server, tmp_path_factory.mktemp("at_server")) as started:
        yield started


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return table_of_values(str(tmp_path_factory.mktemp("values") / "t"))


@pytest.fixture
def in_berlin(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    yield
    spark.conf.unset("spark.sql.session.timeZone")


def test_every_condition_finds_the_rows_that_spark_finds(
    spark: SparkSession, client: Client, base: str, tmp_path: Path, in_berlin: None
) -> None:
    # Whoever evaluates them there is tested in a classic session: what counts is how they get there.
    conditions = part([*TRANSLATED, *FOREIGN], every=8)
    wanted = spark.read.format("pydelta").load(base)
    counts = wanted.agg(
        *(F.expr(f"sum(int(({c}) <=> true))").alias(f"c{n}") for n, c in enumerate(conditions))
    ).first()

    def program(spark: SparkSession, copies: list[str], some: list[str]) -> list[Any]:
        spark.conf.set("spark.sql.session.timeZone", ZONE)
        tables = [only_at_server(spark, copy) for copy in copies]
        found = [
            table.delete(condition).collect()[0][0] for table, condition in zip(tables, some, strict=True)
        ]
        spark.conf.unset("spark.sql.session.timeZone")
        return found

    assert counts is not None
    for first in range(0, len(conditions), 10):
        some, copies = conditions[first : first + 10], [str(tmp_path / f"{first + n}") for n in range(10)]
        for copy in copies:
            shutil.copytree(base, copy)
        found = client(program, copies[: len(some)], some)
        assert dict(zip(some, found, strict=True)) == dict(zip(some, counts[first : first + 10], strict=True))


def test_a_merge_matches_the_rows_that_spark_joins(
    spark: SparkSession, client: Client, base: str, tmp_path: Path, in_berlin: None
) -> None:
    table, source = spark.read.format("pydelta").load(base), str(tmp_path / "source")
    table.where("id >= 40 AND id < 90").write.parquet(source)
    keys = part(KEYS, every=4)
    joined = [table.alias("t").join(spark.read.parquet(source).alias("s"), F.expr(on)) for on in keys]
    wanted = [frame.select("t.id").distinct().count() for frame in joined]

    def program(spark: SparkSession, base: str, copy: str) -> list[Any]:
        spark.conf.set("spark.sql.session.timeZone", ZONE)
        found = []
        for number, on in enumerate(keys):
            shutil.copytree(base, f"{copy}-{number}")
            merge = (
                only_at_server(spark, f"{copy}-{number}")
                .alias("t")
                .merge(spark.read.parquet(source).alias("s"), on)
            )
            found.append(merge.whenMatchedDelete().execute().collect()[0].num_deleted_rows)
        spark.conf.unset("spark.sql.session.timeZone")
        return found

    found = client(program, base, str(tmp_path / "t"))
    assert dict(zip(keys, found, strict=True)) == dict(zip(keys, wanted, strict=True))


def test_columns_values_and_functions_of_python_reach_the_server(client: Client, tmp_path: Path) -> None:
    path = make_table(tmp_path / "t", {})

    def program(spark: SparkSession, path: str) -> list[Any]:
        table = only_at_server(spark, path)
        doubled = F.udf(lambda value: value * 2, "bigint")
        source = spark.createDataFrame([(2, 1), (100, 2)], "id bigint, w bigint").alias("s")
        merge = table.alias("t").merge(source, F.col("t.id") == F.col("s.id"))
        merge = merge.whenMatchedUpdate(F.col("s.w") == 1, {"v": F.col("s.w") + F.lit(6)})
        return [
            tuple(table.delete(F.col("id").isin(1, 3) | (F.col("v") == F.lit(40))).collect()[0]),
            tuple(table.update(F.expr("id = 5"), {"v": doubled("v"), "p": "'q'"}).collect()[0]),
            tuple(table.update("id = 6", {"v": F.lit(7)}).collect()[0]),
            tuple(
                merge.whenNotMatchedInsert(values={"id": "s.id", "v": F.col("s.w")}).execute().collect()[0]
            ),
            sorted(
                map(tuple, table.toDF().where("id IN (1, 2, 5, 6, 100)").select("id", "v", "p").collect())
            ),
        ]

    counts = [(3,), (1,), (1,), (2, 1, 0, 1)]
    assert client(program, path) == [*counts, [(2, 7, "2=ü"), (5, 100, "q"), (6, 7, "0=ü"), (100, 2, None)]]


def test_columns_of_frames_reach_the_server(client: Client, tmp_path: Path) -> None:
    path = make_table(tmp_path / "t", {})

    def program(spark: SparkSession) -> list[Any]:
        table, source = only_at_server(spark, path), spark.range(58, 62)
        frame = table.toDF()
        merge = table.merge(source, frame["id"] == source["id"]).whenMatchedDelete(frame["v"] > 580)
        merge = merge.whenNotMatchedInsert(values={"id": source["id"], "v": source["id"] + 1})
        return [tuple(found.collect()[0]) for found in (merge.execute(), table.delete(frame["s.a"] < 3))]

    assert client(program) == [(3, 0, 1, 2), (3,)]


def test_commands_with_columns_of_other_frames_are_left_to_the_client(client: Client, tmp_path: Path) -> None:
    path = make_table(tmp_path / "t", {})

    def program(spark: SparkSession) -> None:
        table = only_at_server(spark, path)
        table.delete(table.toDF().selectExpr("id + 1 AS id")["id"] == 5)

    # Which cannot run them here.
    assert "'NoneType' object is not callable" in client.failure(program).text
    assert DeltaLog(path).to_arrow().num_rows == 60


def test_errors_of_the_server_are_those_of_the_command(client: Client, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    DeltaLog(path).write(pa.table({"id": [1, 2]}), options={"delta.appendOnly": "true"})
    told = client.failure(lambda spark: only_at_server(spark, path).delete("id = 1"))
    assert isinstance(told.recognised, DeltaError)
    assert told.recognised.condition == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    other = make_table(tmp_path / "other", {})
    told = client.failure(lambda spark: only_at_server(spark, other).update("nope = 1", {"id": "2"}))
    assert told.recognised is not None and "nope" in told.text
    assert DeltaLog(path).open_snapshot().version == 0


def test_commits_say_the_client_s_origin(client: Client, tmp_path: Path) -> None:
    path = make_table(tmp_path / "t", {})

    def program(spark: SparkSession, path: str) -> None:
        spark.conf.set("spark.pydelta.commitInfo.userName", "somebody")
        only_at_server(spark, path).delete("id = 1")
        spark.conf.unset("spark.pydelta.commitInfo.userName")

    client(program, path)
    assert DeltaLog(path).history(1)[0]["userName"] == "somebody"
