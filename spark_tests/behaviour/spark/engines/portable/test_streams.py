"""Streams from and into tables through Spark; what the kernel's own tests show is not shown again."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import (
    DeltaError,
    InvalidOptionError,
    InvariantViolationError,
    NotADeltaTableError,
    SchemaError,
    UnsupportedOperationError,
)
from delta_ds.spark.errors.translation import as_delta_error
from delta_ds.testing import TableBuilder

pytestmark = pytest.mark.spark

SECONDS = 180
IDS = pa.schema([("id", pa.int64())])


def source(path: Path, *groups: list[int], **how: Any) -> TableBuilder:
    """A table with a commit a group of ids."""
    builder = TableBuilder(path)
    builder.create(IDS, **how)
    for group in groups:
        builder.append(numbers(group))
    return builder


def numbers(group: list[int]) -> pa.Table:
    return pa.table({"id": pa.array(group, pa.int64())})


def load(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    return spark.readStream.format("pydelta").options(**options).load(str(path))


def start(df: DataFrame, target: Path, mode: str = "append", **options: Any) -> StreamingQuery:
    options.setdefault("checkpointLocation", f"{target}-checkpoint")
    writer = df.writeStream.format("pydelta").outputMode(mode).options(**options)
    return writer.trigger(availableNow=True).start(str(target))


def run(df: DataFrame, target: Path, mode: str = "append", **options: Any) -> StreamingQuery:
    query = start(df, target, mode, **options)
    assert query.awaitTermination(SECONDS)
    return query


def failure(df: DataFrame, target: Path, **options: Any) -> DeltaError:
    """The error of this package that a query ends with, out of Spark's."""
    with pytest.raises(StreamingQueryException) as raised:
        run(df, target, **options)
    error = as_delta_error(raised.value)
    assert error is not None, str(raised.value)
    assert f"[{error.condition}]" in str(raised.value)
    return error


def ids(path: Path) -> list[int]:
    return sorted(DeltaLog(path).snapshot().scan().to_arrow()["id"].to_pylist())


def versions(path: Path) -> list[str]:
    return [commit["operation"] for commit in DeltaLog(path).history()]


def data_files(path: Path) -> set[str]:
    return {name for _, _, names in os.walk(path) for name in names if name.endswith(".parquet")}


def sizes_of_batches(query: StreamingQuery) -> list[int]:
    return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]


def test_restarted_query_goes_on_and_writes_each_row_once(spark: SparkSession, tmp_path: Path) -> None:
    table = source(tmp_path / "source", [1, 2], [3], [4, 5, 6])
    target = tmp_path / "target"
    first = run(load(spark, table.path, maxFilesPerTrigger=2).selectExpr("id", "id % 2 AS odd"), target)
    assert (ids(target), first.id) == ([1, 2, 3, 4, 5, 6], _txn(target))
    if _has_limits():
        assert len(sizes_of_batches(first)) == 2
    table.append(numbers([7]))
    version = DeltaLog(target).snapshot().version
    for expected in (version + 1, version + 1):
        again = run(load(spark, table.path).selectExpr("id", "id % 2 AS odd"), target)
        # The second time nothing has come, and nothing is committed.
        assert (again.id, DeltaLog(target).snapshot().version) == (first.id, expected)
    assert ids(target) == [1, 2, 3, 4, 5, 6, 7]
    assert set(versions(target)) == {"STREAMING UPDATE"}


def _has_limits() -> bool:
    return importlib.util.find_spec("pyspark.sql.streaming.datasource") is not None


def _txn(path: Path) -> str:
    (name,) = DeltaLog(path).snapshot().txns
    return name


def test_batch_that_was_committed_before_a_crash_is_not_written_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = source(tmp_path / "source", [1, 2], [3])
    target, checkpoint = tmp_path / "target", tmp_path / "target-checkpoint"
    run(load(spark, table.path), target)
    files = data_files(target)
    # As if the driver had died after the commit to the table and before Spark's own.
    for name in ("0", ".0.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)
    run(load(spark, table.path), target)
    assert (ids(target), DeltaLog(target).snapshot().version) == ([1, 2, 3], 0)
    assert data_files(target) == files
    # Another query has batches of its own, with the same numbers.
    run(load(spark, table.path, startingVersion=2), target, checkpointLocation=str(tmp_path / "other"))
    assert ids(target) == [1, 2, 3, 3]


def test_layout_and_paths_of_tables_are_said_as_for_batches(spark: SparkSession, tmp_path: Path) -> None:
    table = source(tmp_path / "source", [1, 2, 3])
    target = tmp_path / "target"
    rows = spark.readStream.table(f"pydelta.`{table.path}`").selectExpr("id", "id % 2 AS odd")
    writer = rows.writeStream.partitionBy("odd").option("checkpointLocation", str(tmp_path / "c"))
    query = writer.trigger(availableNow=True).toTable(f"pydelta.`{target}`")
    assert query.awaitTermination(SECONDS)
    snapshot = DeltaLog(target).snapshot()
    assert snapshot.metadata.partition_columns == ("odd",)
    assert ids(target) == [1, 2, 3]


def test_complete_mode_takes_the_place_of_what_was_there(spark: SparkSession, tmp_path: Path) -> None:
    table = source(tmp_path / "source", [1, 2, 3])
    target = tmp_path / "target"

    def counts() -> list[tuple[int, int]]:
        rows = load(spark, table.path).selectExpr("id % 2 AS odd").groupBy("odd").count()
        run(rows, target, "complete")
        found = DeltaLog(target).snapshot().scan().to_arrow().to_pylist()
        return sorted((row["odd"], row["count"]) for row in found)

    assert counts() == [(0, 1), (1, 2)]
    table.append(numbers([4, 6]))
    assert counts() == [(0, 3), (1, 2)]


def test_what_cannot_be_honoured_is_refused_at_the_start(spark: SparkSession, tmp_path: Path) -> None:
    table, target = source(tmp_path / "source", [1]), tmp_path / "target"
    rows = load(spark, table.path)
    with pytest.raises(UnsupportedOperationError, match="foreachBatch with DeltaTable.merge") as raised:
        start(rows, target, "update")
    assert raised.value.condition == "DELTA_UNSUPPORTED_OUTPUT_MODE"
    with pytest.raises(InvalidOptionError, match="did you mean 'mergeSchema'"):
        start(rows, target, mergSchema="true")
    with pytest.raises(InvalidOptionError, match="is for batch writes"):
        start(rows, target, txnAppId="mine")
    with pytest.raises(InvalidOptionError, match="did you mean 'maxFilesPerTrigger'"):
        load(spark, table.path, maxFilePerTrigger=1)
    with pytest.raises(InvalidOptionError, match="cannot travel in time"):
        load(spark, table.path, versionAsOf=0)
    with pytest.raises(InvalidOptionError, match="given twice"):
        spark.readStream.format("pydelta").option("path", str(table.path)).load(str(table.path))
    with pytest.raises(NotADeltaTableError):
        load(spark, tmp_path / "nowhere")
    with pytest.raises(SchemaError, match="has no columns"):
        empty = TableBuilder(tmp_path / "empty")
        empty.create(pa.schema([]))
        load(spark, empty.path)
    assert not target.exists()


def test_errors_of_a_running_query_carry_their_condition(spark: SparkSession, tmp_path: Path) -> None:
    table, target = source(tmp_path / "source", [1], [2]), tmp_path / "target"
    rows = load(spark, table.path)
    run(rows, target)
    add = next(iter(DeltaLog(table.path).snapshot().files("id = 1")["path"].to_pylist()))
    table.commit({"remove": {"path": add, "dataChange": True, "deletionTimestamp": 1}})
    error = failure(rows, target)
    assert isinstance(error, UnsupportedOperationError)
    assert error.condition == "DELTA_SOURCE_IGNORE_DELETE" and "ignoreDeletes" in str(error)
    other = source(tmp_path / "other", [9])
    error = failure(load(spark, other.path), target)
    assert error.condition == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
    assert ids(target) == [1, 2]


def test_failed_task_leaves_no_commit_and_no_file(spark: SparkSession, tmp_path: Path) -> None:
    table = source(tmp_path / "source", list(range(10)), list(range(10, 20)), [-1])
    target = source(
        tmp_path / "target",
        writer_features=["checkConstraints"],
        properties={"delta.constraints.positive": "id >= 0"},
    )
    # The task with the bad row is the last to end: files of tasks that Spark cuts off midway are left to VACUUM.
    late = "if(id < 0, length(java_method('java.lang.Thread', 'sleep', 3000L)) * 0 - 1, id) AS id"
    rows = load(spark, table.path).repartitionByRange(4, "id").selectExpr(late)
    error = failure(rows, target.path, checkpointLocation=str(tmp_path / "c"))
    assert isinstance(error, InvariantViolationError)
    assert (DeltaLog(target.path).snapshot().version, data_files(target.path)) == (0, set())


def test_new_columns_need_merge_schema(spark: SparkSession, tmp_path: Path) -> None:
    table, target = source(tmp_path / "source", [1]), source(tmp_path / "target", [0])
    rows = load(spark, table.path).selectExpr("id", "'x' AS letter")
    checkpoint = str(tmp_path / "c")
    assert isinstance(failure(rows, target.path, checkpointLocation=checkpoint), SchemaError)
    run(rows, target.path, checkpointLocation=checkpoint, mergeSchema="true")
    found = DeltaLog(target.path).snapshot().scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["letter"]) for row in found) == [(0, None), (1, "x")]


def test_renamed_column_is_followed_with_a_schema_log(spark: SparkSession, tmp_path: Path) -> None:
    folder, target, checkpoint = tmp_path / "source", tmp_path / "target", tmp_path / "c"
    mapped = spark.range(2).write.format("pydelta").option("delta.columnMapping.mode", "name")
    mapped.save(str(folder))
    sink = {"checkpointLocation": str(checkpoint), "mergeSchema": "true"}

    def rows(**options: Any) -> DataFrame:
        return load(spark, folder, schemaTrackingLocation=str(checkpoint / "_schema_log"), **options)

    run(rows(), target, **sink)
    DeltaTable.forPath(spark, str(folder)).renameColumn("id", "number")
    spark.range(2, 4).toDF("number").write.format("pydelta").mode("append").save(str(folder))
    noted = failure(rows(), target, **sink)
    refused = failure(rows(), target, **sink)
    assert noted.condition == "DELTA_STREAMING_METADATA_EVOLUTION"
    assert refused.condition == "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
    run(rows(allowSourceColumnRename="always"), target, **sink)
    found = DeltaLog(target).snapshot().scan().to_arrow().to_pylist()
    expected = [(0, None), (1, None), (None, 2), (None, 3)]
    assert sorted(((row["id"], row["number"]) for row in found), key=str) == sorted(expected, key=str)


def test_changes_are_streamed_with_their_versions(spark: SparkSession, sales: str) -> None:
    # The example table: an update in version 4, deletes in version 6.
    changes = load(spark, Path(sales), readChangeFeed="true", startingVersion=1)
    assert changes.columns[-3:] == ["_change_type", "_commit_version", "_commit_timestamp"]
    found = _rows_in_memory(changes, "changes")
    feed = (
        spark.read.format("pydelta").option("readChangeFeed", "true").option("startingVersion", 1).load(sales)
    )
    assert sorted(map(str, found)) == sorted(map(str, feed.collect()))


def test_given_schema_chooses_columns(spark: SparkSession, sales: str) -> None:
    reader = spark.readStream.format("pydelta").schema("Country string, order_id bigint")
    found = _rows_in_memory(reader.load(sales), "chosen")
    rows = spark.read.format("pydelta").load(sales).select("country", "order_id").collect()
    assert sorted(map(tuple, found)) == sorted(map(tuple, rows))


def _rows_in_memory(df: DataFrame, name: str) -> list[Any]:
    query = df.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    assert query.awaitTermination(SECONDS)
    return df.sparkSession.table(name).collect()


def test_merge_in_foreach_batch_is_applied_once(spark: SparkSession, tmp_path: Path) -> None:
    table, checkpoint = source(tmp_path / "source", [1, 2]), tmp_path / "c"
    target = source(tmp_path / "target", [2, 3])
    log = TableBuilder(tmp_path / "log")
    log.create(IDS)

    def upsert(batch: DataFrame, number: int) -> None:
        merge = DeltaTable.forPath(spark, str(target.path)).alias("t").merge(batch.alias("s"), "t.id = s.id")
        merge.whenNotMatchedInsertAll().execute()
        once = batch.write.format("pydelta").mode("append")
        once.option("txnAppId", "job").option("txnVersion", number).save(str(log.path))

    def go() -> None:
        writer = load(spark, table.path).writeStream.foreachBatch(upsert)
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        assert query.awaitTermination(SECONDS)

    go()
    for name in ("0", ".0.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)
    go()
    assert (ids(target.path), ids(log.path)) == ([1, 2, 3], [1, 2])
