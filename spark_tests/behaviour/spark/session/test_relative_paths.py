"""A relative path is of the folder in which the session's JVM began, in every call, wherever this process goes later.

So Spark resolves it in whatever it reads and writes by itself. Without Spark it is of the folder of this process.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import NotADeltaTableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

# The same table as seen from where the JVM began, and a smaller one as seen from where this process is now.
MEANT, OTHER = 7, 3


@pytest.fixture
def relative(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder by its relative path, while this process is where that path leads to another one."""
    began = Path(spark._jvm.java.lang.System.getProperty("user.dir"))
    relative = os.path.relpath(tmp_path / "meant", began)
    now = tmp_path / "other" / "/".join("abcdefghijklm"[: relative.count("..")])
    now.mkdir(parents=True)
    monkeypatch.chdir(now)
    for folder, rows in ((tmp_path / "meant", MEANT), (Path(os.path.abspath(relative)), OTHER)):
        folder.mkdir(parents=True)
        spark.range(rows).write.format("pydelta").save(str(folder / "orders"))
        spark.range(rows).write.parquet(str(folder / "files"))
    assert Path(os.path.abspath(relative)) != tmp_path / "meant"
    return relative


READS: dict[str, Callable[[SparkSession, str], Any]] = {
    "load": lambda spark, path: spark.read.format("pydelta").load(path),
    "path": lambda spark, path: spark.read.format("pydelta").option("path", path).load(),
    "version": lambda spark, path: spark.read.format("pydelta").option("versionAsOf", 0).load(path),
    "metadata": lambda spark, path: (
        spark.read.format("pydelta").option("metadataColumns", "file_path").load(path)
    ),
    "table": lambda spark, path: spark.read.table(f"pydelta.`{path}`"),
    "function": lambda spark, path: spark.sql(f"SELECT * FROM pydelta('{path}')"),
    "forPath": lambda spark, path: DeltaTable.forPath(spark, path).toDF(),
    "forName": lambda spark, path: DeltaTable.forName(spark, f"delta.`{path}`").toDF(),
}


@pytest.mark.parametrize("way", READS)
def test_a_read_is_of_the_folder_of_the_session(spark: SparkSession, relative: str, way: str) -> None:
    frame = READS[way](spark, f"{relative}/orders")
    assert frame.count() == MEANT
    os.chdir("/")
    assert frame.count() == MEANT


def _merge(spark: SparkSession, path: str) -> None:
    table = DeltaTable.forPath(spark, path).alias("t")
    table.merge(spark.range(100, 101).alias("s"), "s.id = t.id").whenNotMatchedInsertAll().execute()


WRITES: dict[str, Callable[[SparkSession, str], Any]] = {
    "append": lambda spark, path: spark.range(1).write.format("pydelta").mode("append").save(path),
    "insertInto": lambda spark, path: spark.range(1).write.insertInto(f"pydelta.`{path}`"),
    "writeTo": lambda spark, path: spark.range(1).writeTo(f"pydelta.`{path}`").append(),
    "delete": lambda spark, path: DeltaTable.forPath(spark, path).delete("id = 1"),
    "update": lambda spark, path: DeltaTable.forPath(spark, path).update("id = 1", {"id": "id + 1"}),
    "merge": _merge,
}


@pytest.mark.parametrize("way", WRITES)
def test_a_change_is_of_the_folder_of_the_session(
    spark: SparkSession, relative: str, tmp_path: Path, way: str
) -> None:
    WRITES[way](spark, f"{relative}/orders")
    assert DeltaLog(tmp_path / "meant" / "orders").snapshot().version == 1
    assert DeltaLog(f"{relative}/orders").snapshot().version == 0


NEW: dict[str, Callable[[SparkSession, str], Any]] = {
    "save": lambda spark, path: spark.range(1).write.format("pydelta").save(f"{path}/new"),
    "create": lambda spark, path: spark.range(1).writeTo(f"pydelta.`{path}/new`").create(),
    "builder": lambda spark, path: (
        DeltaTable.create(spark).location(f"{path}/new").addColumn("id", "bigint").execute()
    ),
    "clone": lambda spark, path: DeltaTable.forPath(spark, f"{path}/orders").clone(
        f"{path}/new", isShallow=True
    ),
}


@pytest.mark.parametrize("way", NEW)
def test_a_new_table_comes_to_be_below_the_folder_of_the_session(
    spark: SparkSession, relative: str, tmp_path: Path, way: str
) -> None:
    NEW[way](spark, relative)
    assert DeltaLog(tmp_path / "meant" / "new").snapshot().version == 0
    assert DeltaTable.isDeltaTable(spark, f"{relative}/new")
    with pytest.raises(NotADeltaTableError):
        DeltaLog(f"{relative}/new").snapshot()


@pytest.mark.parametrize("by_sql", [True, False])
def test_files_are_converted_in_the_folder_of_the_session(
    spark: SparkSession, relative: str, tmp_path: Path, by_sql: bool
) -> None:
    name = f"parquet.`{relative}/files`"
    if by_sql:
        spark.sql(f"CONVERT TO DELTA {name}")
    else:
        DeltaTable.convertToDelta(spark, name)
    assert DeltaLog(tmp_path / "meant" / "files").snapshot().scan().count() == MEANT
    with pytest.raises(NotADeltaTableError):
        DeltaLog(f"{relative}/files").snapshot()


@pytest.mark.parametrize("statement", ["OPTIMIZE '{}'", "DESCRIBE DETAIL '{}'", "VACUUM '{}' DRY RUN"])
def test_a_statement_is_of_the_folder_of_the_session(
    spark: SparkSession, relative: str, tmp_path: Path, statement: str
) -> None:
    path = f"{relative}/orders"
    DeltaTable.forPath(spark, path).delete("id = 1")
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        row = str(spark.sql(statement.format(path).replace("DRY", "RETAIN 0 HOURS DRY")).collect())
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert str(tmp_path / "meant") in row


def test_a_stream_keeps_all_in_the_folder_of_the_session(
    spark: SparkSession, relative: str, tmp_path: Path
) -> None:
    table = DeltaTable.forPath(spark, f"{relative}/orders")
    table.setProperties({"delta.columnMapping.mode": "name"})
    rows = (
        spark.readStream.format("pydelta")
        .option("schemaTrackingLocation", f"{relative}/checkpoint/columns")
        .load(f"{relative}/orders")
    )
    writer = rows.writeStream.format("pydelta").option("checkpointLocation", f"{relative}/checkpoint")
    query = writer.trigger(availableNow=True).start(f"{relative}/copy")
    query.awaitTermination()
    assert DeltaLog(tmp_path / "meant" / "copy").snapshot().scan().count() == MEANT
    assert (tmp_path / "meant" / "checkpoint" / "columns").is_dir()
    assert sorted(os.listdir(relative)) == ["files", "orders"]


def test_a_handle_stays_at_its_table_when_the_process_moves_on(
    spark: SparkSession, relative: str, tmp_path: Path
) -> None:
    table, alone = DeltaTable.forPath(spark, f"{relative}/orders"), DeltaLog(f"{relative}/orders")
    os.chdir("/")
    assert table.toDF().count() == MEANT
    assert table.detail().first()["location"] == f"file:{tmp_path / 'meant' / 'orders'}"
    assert alone.snapshot().scan().count() == OTHER


def test_a_location_is_of_the_folder_of_the_schema(spark: SparkSession, relative: str) -> None:
    for version in (1, 2):
        spark.sql(
            f"CREATE TABLE at_{version} USING delta LOCATION 'place_{version}' AS SELECT {version} AS id"
        )
    try:
        places = [spark.sql(f"DESCRIBE DETAIL at_{version}").first()["location"] for version in (1, 2)]
        spark.sql("ALTER TABLE at_1 SET LOCATION 'place_2'")
        assert spark.sql("DESCRIBE DETAIL at_1").first()["location"] == places[1] != places[0]
        assert [row["id"] for row in spark.table("at_1").collect()] == [2]
    finally:
        for version in (1, 2):
            spark.sql(f"DROP TABLE IF EXISTS at_{version}")
        for place in places:
            shutil.rmtree(place.removeprefix("file:"))
