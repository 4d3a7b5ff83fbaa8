"""An append says the same of what it has read, whoever writes its rows, and as delta-spark's does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from delta_ds import DeltaLog
from delta_ds.exceptions import ConcurrentAppendException
from delta_ds.kernel.format.options.write import READ_VERSION_OPTION
from delta_ds.spark.session.writes import write as writes
from spark_tests.behaviour.spark.connect_server import Client, Server, registered_client
from spark_tests.behaviour.spark.session_settings import session_settings

ON, OFF = "true", "false"
SCAN, WRITE, ARROW = "spark.pydelta.nativeScan", "spark.pydelta.nativeWrite", "spark.pydelta.arrowWrite"
# Who reads and writes in a classic session.
WRITERS = {
    "by Spark": {SCAN: ON, WRITE: ON, ARROW: OFF},
    "by Arrow": {SCAN: ON, WRITE: ON, ARROW: ON},
    "by tasks": {SCAN: ON, WRITE: OFF},
    "read by tasks": {SCAN: OFF, WRITE: ON},
    "read and written by tasks": {SCAN: OFF, WRITE: OFF},
}


def read(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    return spark.read.format("pydelta").options(**options).load(path)


def cached(spark: SparkSession, path: str) -> DataFrame:
    frame = read(spark, path).cache()
    frame.count()
    return frame


# Rows of the table, and whether delta-spark takes their append for a blind one.
ROWS: dict[str, tuple[Callable[[SparkSession, str], DataFrame], bool]] = {
    "other rows": (lambda spark, path: spark.sql("SELECT 7L AS id"), True),
    "other rows and a WITH that nothing uses": (
        lambda spark, path: spark.sql(f"WITH x AS (SELECT * FROM pydelta.`{path}`) SELECT 7L AS id"), True,
    ),
    "its own": (lambda spark, path: read(spark, path), False),
    "some of its own": (lambda spark, path: read(spark, path).where("id > 1"), False),
    "a count of them": (lambda spark, path: read(spark, path).groupBy().count().toDF("id"), False),
    "beside others": (lambda spark, path: spark.range(5, 6).union(read(spark, path)), False),
    "in a statement": (lambda spark, path: spark.sql(f"SELECT id + 1 AS id FROM pydelta.`{path}`"), False),
    "in a subquery": (
        lambda spark, path: spark.sql(f"SELECT 7L AS id WHERE 1 < (SELECT max(id) FROM pydelta.`{path}`)"), False,
    ),
    "in a WITH": (
        lambda spark, path: spark.sql(f"WITH x AS (SELECT * FROM pydelta.`{path}`) SELECT * FROM x"), False,
    ),
    "by a path with an end": (lambda spark, path: read(spark, f"{path}/"), False),
    "of a version that is named": (lambda spark, path: read(spark, path, versionAsOf=0), True),
    "of its changes": (
        lambda spark, path: read(spark, path, readChangeFeed="true", startingVersion=0).select("id"), True,
    ),
    "kept": (cached, True),
}  # fmt: skip
_EACH = pytest.mark.parametrize("name", ROWS)


def append(spark: SparkSession, name: str, path: str) -> None:
    properties = {"delta.enableChangeDataFeed": "true"}
    spark.range(3).write.format("pydelta").options(**properties).save(path)
    rows = ROWS[name][0](spark, path)
    try:
        rows.write.format("pydelta").mode("append").save(path)
    finally:
        rows.unpersist()


def is_blind(path: Path) -> Any:
    commit = DeltaLog(path).history()[0]
    assert commit["version"] == 1
    return commit["isBlindAppend"]


@pytest.mark.spark
@pytest.mark.parametrize("writer", WRITERS)
@_EACH
def test_an_append_is_blind_unless_it_reads_the_table(
    spark: SparkSession, tmp_path: Path, name: str, writer: str
) -> None:
    with session_settings(spark, WRITERS[writer]):
        append(spark, name, str(tmp_path / "t"))
    assert is_blind(tmp_path / "t") is ROWS[name][1]


@pytest.fixture(scope="module")
def client(plain_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with registered_client(plain_server, tmp_path_factory.mktemp("tables_read")) as started:
        yield started


@pytest.mark.connect
@pytest.mark.long
@_EACH
def test_of_spark_connect(client: Client, tmp_path: Path, name: str) -> None:
    client(append, name, str(tmp_path / "t"))
    # Its text says which tables it names; whether it uses them the server alone knows.
    expected = ROWS[name][1] and name != "other rows and a WITH that nothing uses"
    assert is_blind(tmp_path / "t") is expected


@pytest.mark.spark
@pytest.mark.parametrize(
    "save",
    [
        lambda frame, path: frame.writeTo(f"pydelta.`{path}`").append(),
        lambda frame, path: frame.write.insertInto(f"pydelta.`{path}`"),
        lambda frame, path: frame.write.mode("append").saveAsTable(f"pydelta.`{path}`"),
        lambda frame, path: frame.sparkSession.sql(
            f"INSERT INTO delta.`{path}` SELECT * FROM pydelta.`{path}`"
        ),
    ],
    ids=["writeTo", "insertInto", "saveAsTable", "INSERT"],
)
@pytest.mark.parametrize("writer", ["by Spark", "by tasks"])
def test_by_each_way_of_writing(spark: SparkSession, tmp_path: Path, writer: str, save: Any) -> None:
    path = str(tmp_path / "t")
    spark.range(3).write.format("pydelta").save(path)
    with session_settings(spark, WRITERS[writer]):
        save(read(spark, path), path)
    assert is_blind(tmp_path / "t") is False


@pytest.mark.spark
def test_a_table_with_variants_is_read_too(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.sql("SELECT parse_json('1') AS v").write.format("pydelta").save(path)
    read(spark, path).write.format("pydelta").mode("append").save(path)
    assert is_blind(tmp_path / "t") is False


@pytest.mark.spark
def test_what_others_add_before_the_rows_are_written_is_a_conflict(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    spark.range(3).write.format("pydelta").option("delta.isolationLevel", "Serializable").save(path)
    found = writes.find_table

    def overtaken(*arguments: Any) -> Any:
        before = found(*arguments)
        spark.range(9, 10).write.format("pydelta").mode("append").save(path)
        return before

    monkeypatch.setattr(writes, "find_table", overtaken)
    with session_settings(spark, {WRITE: OFF}), pytest.raises(ConcurrentAppendException):
        read(spark, path).write.format("pydelta").mode("append").save(path)
    assert [commit["isBlindAppend"] for commit in DeltaLog(path).history()] == [True, True]


@pytest.mark.spark
@pytest.mark.parametrize("writer", ["by Spark", "by tasks"])
def test_a_user_may_say_which_version_rows_come_from(
    spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    path = str(tmp_path / "t")
    spark.range(3).write.format("pydelta").option("delta.isolationLevel", "Serializable").save(path)
    rows = spark.createDataFrame(read(spark, path).collect(), "id bigint")
    save = rows.write.format("pydelta").mode("append").option(READ_VERSION_OPTION, 0)
    with session_settings(spark, WRITERS[writer]):
        save.save(path)
        assert is_blind(tmp_path / "t") is False
        with pytest.raises(ConcurrentAppendException):
            save.save(path)
