"""Names of columns mean columns and nothing else, and columns of DataFrames of the table are the table's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import SchemaError, UnsupportedOperationError
from delta_ds.spark.base.schema import quoted
from spark_tests.behaviour.spark.commands.test_row_commands import FEED, MAPPING, VECTORS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITION = "p q.`r`-1"
# What some parser or other takes for more than a name, or what queries of commands call something themselves.
NAMES = [
    "a.b",
    "c d",
    "x-y",
    "b`t",
    "_metadata",
    "row_index",
    "é,ñ",
    "select",
    "t",
    "c0",
    "value",
    "v0",
    "given 0",
]


def _rows(path: Path) -> list[tuple[Any, ...]]:
    found = DeltaLog(path).snapshot().scan().to_arrow()
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))


@pytest.mark.parametrize(
    "properties",
    [{**MAPPING, **VECTORS}, {**MAPPING, **FEED, "delta.autoOptimize.optimizeWrite": "true"}],
    ids=["marked", "rewritten-with-feed"],
)
def test_commands_take_any_name(spark: SparkSession, tmp_path: Path, properties: dict[str, str]) -> None:
    names = [PARTITION, *NAMES]
    rows = spark.range(0, 6, 1, 1).select("id", *((F.col("id") % 2).alias(name) for name in names))
    writer = rows.write.format("pydelta").options(**properties).partitionBy(PARTITION)
    writer.option("delta.autoOptimize.optimizeWrite", "true").save(str(tmp_path))
    table = DeltaTable.forPath(spark, str(tmp_path)).alias("t")
    # Of a struct called as Spark calls what it knows of rows, and of the partition that the commands arrange rows by.
    table.delete(f"id = 0 AND {quoted(PARTITION)} = 0")
    every = " + ".join(f"t.{quoted(name)}" for name in names)
    table.update(
        f"id = 1 AND {every} = {len(names)}", {quoted(name): f"t.{quoted(name)} + 2" for name in names}
    )
    source = table.toDF().where("id IN (1, 2)").union(rows.where("id = 5").withColumn("id", F.lit(9)))
    (
        table.merge(source.alias("s"), "t.id = s.id")
        .whenMatchedUpdate("t.id = 2", {quoted(name): f"s.{quoted(name)} + 4" for name in names})
        .whenNotMatchedInsertAll()
        .whenNotMatchedBySourceUpdate("t.id = 4", {quoted(name): "5" for name in names})
        .execute()
    )
    want = {1: 3, 2: 4, 3: 1, 4: 5, 5: 1, 9: 1}
    assert _rows(tmp_path) == [(n, *[value] * len(names)) for n, value in want.items()]
    assert sorted(map(tuple, table.toDF().collect())) == _rows(tmp_path)


def test_names_that_commands_keep_for_themselves_are_refused_and_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = ["__pydelta_file", "__pydelta_dv", "__PYDELTA_row"]
    rows = spark.range(3).select("id", *(F.col("id").alias(name) for name in names))
    rows.write.format("pydelta").options(**VECTORS).save(str(tmp_path))
    table = DeltaTable.forPath(spark, str(tmp_path))
    assert sorted(map(tuple, table.toDF().collect())) == [(n, n, n, n) for n in range(3)]
    plain = spark.range(1).toDF("k").alias("s")
    for run in (
        lambda: table.delete("id = 1"),
        lambda: table.update("id = 1", {"id": "5"}),
        lambda: table.merge(plain, "id = k").whenMatchedDelete().execute(),
    ):
        with pytest.raises(UnsupportedOperationError, match="__pydelta_file.*Rename the column"):
            run()
    rows.select("id").write.format("pydelta").save(str(tmp_path / "u"))
    other = DeltaTable.forPath(spark, str(tmp_path / "u")).alias("t")
    with pytest.raises(UnsupportedOperationError, match="source has a column '__pydelta_file'"):
        other.merge(rows.alias("s"), "t.id = s.id").whenMatchedUpdateAll().execute()


def test_columns_of_frames_of_the_table_are_taken(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0, 6, 1, 1).withColumn("v", F.lit(0)).withColumn("p", F.col("id") % 2)
    rows.write.format("pydelta").options(**VECTORS).partitionBy("p").save(str(tmp_path))
    table = DeltaTable.forPath(spark, str(tmp_path))
    frame, source = table.toDF(), spark.range(3, 5)
    older, aliased = table.alias("q"), table.alias("q").toDF()
    table.delete(frame.id == 0)
    older.update(frame.where("v = 0").alias("z")["id"] == 1, {"v": aliased.v + frame["id"] + 4})
    merge = older.merge(source, frame.id == source.id).whenMatchedUpdate(
        source.id == 4, {"v": frame.v + source.id}
    )
    merge.whenNotMatchedBySourceUpdate(frame.id == 5, {"v": aliased.v - 1}).execute()
    assert _rows(tmp_path) == [(1, 5, 1), (2, 0, 0), (3, 0, 1), (4, 4, 0), (5, -1, 1)]
    assert table.delete(frame.p == 1).collect() == [(3,)]
    mine = table.toDF().where("id = 4")
    table.alias("t").merge(mine.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"v": "s.v + 1"}).execute()
    assert _rows(tmp_path) == [(2, 0, 0), (4, 5, 0)]
    with pytest.raises(SchemaError, match="one of the table|of the table and of the source"):
        table.merge(mine.alias("s"), mine.id == F.col("s.id")).whenMatchedDelete().execute()
    stranger = DeltaTable.forPath(spark, str(tmp_path)).toDF()
    with pytest.raises(SchemaError):
        table.delete(stranger.id == 2)


@pytest.mark.parametrize("day", ["9999-12-31", "+10000-01-01", "-0001-01-01"])
def test_keys_beyond_what_python_holds_are_merged(spark: SparkSession, tmp_path: Path, day: str) -> None:
    columns = [f"DATE'{day}' AS d", "'é' AS s", "1 AS v"]
    spark.range(1).selectExpr(*columns).write.format("pydelta").save(str(tmp_path))
    table = DeltaTable.forPath(spark, str(tmp_path)).alias("t")
    source = spark.range(1).selectExpr(*columns[:2], "2 AS v").alias("s")
    table.merge(source, "t.d = s.d AND t.s = s.s").whenMatchedUpdate(set={"v": "s.v"}).execute()
    assert table.toDF().select("v").collect() == [(2,)]
    assert table.update(f"d = DATE'{day}'", {"v": "v + 1"}).collect() == [(1,)]
    assert table.delete(f"d <= DATE'{day}' AND v = 3").collect() == [(1,)]
