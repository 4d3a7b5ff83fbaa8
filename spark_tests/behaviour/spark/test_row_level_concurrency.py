"""DELETE, UPDATE and MERGE of a session follow commits that touched other rows of the same files.

Source: conflict-matrix section 11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from delta_ds import DeltaLog, DeltaTable, exceptions
from spark_tests.behaviour.kernel.transaction.test_row_level import TRACKED, first

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Change = Callable[[DeltaTable], object]


@pytest.fixture(autouse=True)
def settings(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.pydelta.retries", "0")
    yield
    spark.conf.unset("spark.pydelta.conflictDetection")
    spark.conf.unset("spark.pydelta.retries")


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> DeltaTable:
    """Ids 0 to 99 with their value, in one file."""
    rows = spark.range(100, numPartitions=1).selectExpr("id", "id AS value")
    rows.write.format("pydelta").options(**TRACKED).save(str(tmp_path / "t"))
    return DeltaTable.forPath(spark, str(tmp_path / "t"))


def source(spark: SparkSession, *ids: int) -> DataFrame:
    return spark.createDataFrame([(n, n + 1000) for n in ids], "id long, value long").alias("s")


def merge(*ids: int) -> Change:
    def run(table: DeltaTable) -> None:
        spark = table.toDF().sparkSession
        merging = table.alias("t").merge(source(spark, *ids), "t.id = s.id")
        merging.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    return run


def delete(condition: str) -> Change:
    return lambda table: table.delete(condition)


def update(condition: str, value: str = "value + 1000") -> Change:
    return lambda table: table.update(condition, {"value": value})


def values(table: DeltaTable) -> dict[int, int]:
    return {row.id: row.value for row in table.toDF().collect()}


def path_of(table: DeltaTable) -> str:
    return str(table.detail().first().location).removeprefix("file:")


@pytest.mark.parametrize(
    ("loser", "winner"),
    [
        (update("id = 1"), update("id = 2")),
        (delete("id % 2 = 0"), update("id = 3")),
        (update("id = 3"), delete("id % 2 = 0")),
        (merge(1, 2, 500), merge(3, 4, 600)),
        (merge(1, 500), delete("id > 50 AND id < 60")),
        (update("id = 1"), lambda table: table.optimize().executeZOrderBy("value")),
    ],
)
def test_both_commit(table: DeltaTable, loser: Change, winner: Change, tmp_path: Path) -> None:
    spark = table.toDF().sparkSession
    before = tmp_path / "serial"
    table.toDF().coalesce(1).write.format("pydelta").options(**TRACKED).save(str(before))
    serial = DeltaTable.forPath(spark, str(before))
    winner(serial)
    loser(serial)

    with first(lambda: winner(table)):
        loser(table)

    assert values(table) == values(serial)


@pytest.mark.parametrize(
    ("loser", "winner"),
    [
        (update("id = 1"), delete("id <= 1")),
        (merge(1, 500), merge(500)),
        (merge(1), update("id = 1")),
        # What a query in the assignment reads of the table is no row of the command's own.
        (lambda t: update("id = 1", f"(SELECT max(value) FROM pydelta.`{path_of(t)}`)")(t), update("id = 2")),
    ],
)
def test_the_second_is_refused(table: DeltaTable, loser: Change, winner: Change) -> None:
    with (
        pytest.raises(exceptions.DeltaConcurrentModificationException),
        first(lambda: winner(table)),
    ):
        loser(table)
    assert DeltaLog(path_of(table)).snapshot().version == 1


def test_files_decide_where_the_session_says_so(table: DeltaTable, spark: SparkSession) -> None:
    spark.conf.set("spark.pydelta.conflictDetection", "files")
    with pytest.raises(exceptions.ConcurrentAppendException), first(lambda: update("id = 2")(table)):
        update("id = 1")(table)


def test_a_source_that_reads_the_table_sees_no_other_commit(table: DeltaTable, spark: SparkSession) -> None:
    path = path_of(table)
    read = spark.read.format("pydelta").load(path).where("id = 1").selectExpr("id", "value + 1 AS value")
    merging = table.alias("t").merge(read.alias("s"), "t.id = s.id").whenMatchedUpdateAll()
    with (
        pytest.raises(exceptions.DeltaConcurrentModificationException),
        first(lambda: update("id = 2")(table)),
    ):
        merging.execute()


def test_statistics_decide_about_new_files_of_tables_that_do_not_track_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "untracked")
    spark.range(10, numPartitions=1).selectExpr("id", "id AS value").write.format("pydelta").save(path)
    table = DeltaTable.forPath(spark, path)
    spark.conf.set("spark.pydelta.conflictDetection", "statistics")

    def append(first_id: int) -> Callable[[], None]:
        rows = spark.range(first_id, first_id + 5).selectExpr("id", "id AS value")
        return lambda: rows.write.format("pydelta").mode("append").save(path)

    with first(append(100)):
        update("id = 1")(table)
    with first(append(200)):
        merge(2, 3, 50)(table)
    with pytest.raises(exceptions.ConcurrentAppendException), first(append(300)):
        update("id >= 300 OR id = 1")(table)
    assert values(table)[1] == 1001
    assert set(values(table)) == {*range(10), 50, *range(100, 105), *range(200, 205), *range(300, 305)}
    spark.conf.unset("spark.pydelta.conflictDetection")
    with pytest.raises(exceptions.ConcurrentAppendException), first(append(400)):
        update("id = 1")(table)


def test_another_word_for_what_decides_is_refused(table: DeltaTable, spark: SparkSession) -> None:
    spark.conf.set("spark.pydelta.conflictDetection", "row")
    with pytest.raises(exceptions.InvalidOptionError, match="rows, statistics or files"):
        table.delete("id = 1")
    assert len(values(table)) == 100


@pytest.mark.parametrize(
    "command",
    [
        update("id = 1"),
        delete("id IN (1, 2)"),
        lambda table: (
            table.alias("t")
            .merge(table.toDF().sparkSession.range(1, 2).alias("s"), "t.id = s.id")
            .whenMatchedUpdate(set={"value": "t.value + 1000"})
            .execute()
        ),
    ],
)
def test_a_command_that_reads_no_other_table_is_done_again(
    table: DeltaTable, spark: SparkSession, command: Change, caplog: pytest.LogCaptureFixture
) -> None:
    spark.conf.set("spark.pydelta.retries", "1")
    with caplog.at_level("WARNING", "delta_ds"), first(lambda: update("id = 1")(table)):
        command(table)
    assert values(table).get(1, 2001) == 2001
    assert "command_repeated" in caplog.text
    assert len(values(table)) in (98, 100)


def test_a_command_is_done_again_so_often_and_no_more(table: DeltaTable, spark: SparkSession) -> None:
    spark.conf.set("spark.pydelta.retries", "1")
    with (
        pytest.raises(exceptions.ConcurrentDeleteReadException),
        first(lambda: update("id = 1")(table), times=2),
    ):
        update("id = 1")(table)


def test_a_command_that_reads_another_table_is_not_done_again(
    table: DeltaTable, spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set("spark.pydelta.retries", "3")
    spark.range(1, 2).write.parquet(str(tmp_path / "other"))
    other = spark.read.parquet(str(tmp_path / "other")).alias("s")
    merging = table.alias("t").merge(other, "t.id = s.id").whenMatchedDelete()
    with pytest.raises(exceptions.ConcurrentDeleteReadException), first(lambda: update("id = 1")(table)):
        merging.execute()
