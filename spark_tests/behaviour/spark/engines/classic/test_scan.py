"""Spark's own Parquet scan over a table's files: the same rows as the kernel, with Spark's own powers."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_ds import DeltaLog, DeltaTable
from delta_ds.spark.engines.classic.file_index import DeltaFileIndex
from delta_ds.spark.engines.classic.hadoop import FILE_NUMBER
from delta_ds.spark.engines.classic.jvm import NotNative
from delta_ds.spark.engines.classic.load import load
from delta_ds.spark.engines.classic.scan import scan
from delta_ds.spark.session.writes.write import insert_rows
from delta_ds.testing import TableBuilder

pytestmark = pytest.mark.long


def read(spark: SparkSession, path: Path | str, **options: Any) -> DataFrame:
    return load(spark, {"path": str(path), **{k: str(v) for k, v in options.items()}}, insert=insert_rows)


def index_of(df: DataFrame) -> DeltaFileIndex:
    leaf = df._jdf.queryExecution().optimizedPlan().collectLeaves().apply(0)
    found = DeltaFileIndex.of_identity(leaf.relation().location().toString())
    assert found is not None
    return found


def listed(df: DataFrame) -> int | None:
    """The files that running a query of its own read."""
    df.collect()
    return index_of(df).last_listed


def kernel_rows(path: Path, **options: Any) -> list[dict[str, Any]]:
    return DeltaLog(path).snapshot(**options).scan().to_arrow().to_pylist()


@pytest.fixture
def partitioned(tmp_path: Path) -> Path:
    """Ten files: ids 0 to 99, ten each, in partitions a (even files), b and null (file 9)."""
    builder = TableBuilder(tmp_path / "t")
    builder.create(
        pa.schema([("id", pa.int64()), ("s", pa.string()), ("p", pa.string())]), partition_columns=["p"]
    )
    for n in range(10):
        ids = range(n * 10, n * 10 + 10)
        rows = pa.table({"id": pa.array(ids), "s": [f"v{i}" for i in ids]})
        builder.append(rows, partition_values={"p": None if n == 9 else "ab"[n % 2]})
    return tmp_path / "t"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("id = 15", 1),
        ("id between 25 and 44", 3),
        ("id in (1, 99)", 2),
        ("id in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 99)", 3),
        ("p = 'a'", 5),
        ("upper(p) = 'B'", 4),
        ("p is null", 1),
        ("p = 'a' and id > 70", 1),
        # Of an OR over both kinds of columns Spark tells only what it demands of each kind.
        ("id < 10 or p = 'b' and id > 75", 4),
        ("s = 'v42'", 2),
        ("s like 'v9%'", 2),
        ("length(concat(p, p)) = 2 and id % 7 = 3", 9),
        ("id > 1000", 0),
    ],
)
def test_filters_skip_files_and_lose_no_row(
    spark: SparkSession, partitioned: Path, condition: str, files: int
) -> None:
    df = read(spark, partitioned).where(condition)
    whole = spark.createDataFrame(kernel_rows(partitioned), "id long, s string, p string")
    assert_df_equality(df, whole.where(condition), ignore_row_order=True, ignore_nullable=True)
    assert index_of(df).last_listed == files


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.list_(pa.float64())])
def test_zeros_of_both_signs_are_found_by_either(
    spark: SparkSession, tmp_path: Path, kind: pa.DataType
) -> None:
    nested = pa.types.is_nested(kind)
    zeros = pa.array([[-0.0], [0.0], [1.0]] if nested else [-0.0, 0.0, 1.0], kind)
    inner = pa.array([{"x": -0.0}, {"x": 0.0}, {"x": 1.0}])
    DeltaLog(tmp_path).write(pa.table({"v": zeros, "s": inner}))
    rows = spark.read.format("pydelta").load(str(tmp_path))
    zero = "array(0.0D)" if nested else "0.0D"
    for condition in (f"v = {zero}", "s.x = 0.0D", "s.x = -0.0D", "s.x in (0.0D, 3.0D)"):
        assert rows.where(condition).count() == 2, condition


def test_partition_filters_on_many_partitions_are_exact(spark: SparkSession, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path)
    builder.create(pa.schema([("id", pa.int64()), ("p", pa.int32())]), partition_columns=["p"])
    adds = [builder.write_file(pa.table({"id": [n]}), partition_values={"p": str(n)}) for n in range(150)]
    builder.commit(*adds)
    df = read(spark, tmp_path).where("p % 50 = 7 or cast(p as string) like '1_9'")
    assert sorted(r.id for r in df.collect()) == [7, 57, 107, 109, 119, 129, 139, 149]


def test_uses_of_one_dataframe_keep_their_filters_apart(spark: SparkSession, partitioned: Path) -> None:
    df = read(spark, partitioned)
    assert df.where("id = 3").count() == 1
    assert df.count() == 100
    assert df.where("p = 'a'").union(df.where("p = 'b'")).count() == 90
    assert df.alias("x").join(df.alias("y"), "id").where("x.id < 5 and y.id > 2").count() == 2


def test_versions_of_one_table_do_not_share_cached_rows(spark: SparkSession, partitioned: Path) -> None:
    newest = read(spark, partitioned).cache()
    try:
        assert newest.count() == 100
        assert read(spark, partitioned, versionAsOf=3).count() == 30
        again = read(spark, partitioned)
        assert again.count() == 100
        assert "InMemoryTableScan" in again._jdf.queryExecution().executedPlan().toString()
    finally:
        newest.unpersist()


@pytest.mark.parametrize("storage", ["u", "p", "i"])
def test_deleted_rows_are_gone(spark: SparkSession, tmp_path: Path, storage: str) -> None:
    builder = TableBuilder(tmp_path)
    builder.create(pa.schema([("id", pa.int64())]), reader_features=["deletionVectors"])
    whole, cut, emptied = (
        builder.write_file(pa.table({"id": pa.array(range(n * 1000, n * 1000 + 1000))}), row_group_size=100)
        for n in range(3)
    )
    builder.commit(whole, cut, emptied)
    builder.delete_rows(cut, [0, 63, 64, 999], storage)
    builder.delete_rows(emptied, range(1000), storage)
    wanted = sorted(set(range(2000)) - {1000, 1063, 1064, 1999})
    df = read(spark, tmp_path)
    assert sorted(r.id for r in df.collect()) == wanted
    assert df.count() == len(wanted)
    assert sorted(r.id for r in df.where("id between 1060 and 1070").collect()) == [
        n for n in wanted if 1060 <= n <= 1070
    ]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_have_their_names_types_and_values(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    path = str(tmp_path / "t")
    rows = spark.sql(
        "select id, named_struct('x', id, 'y', named_struct('z', cast(id as string))) s, "
        "array(named_struct('k', id)) a, map('m', named_struct('v', id)) m, id % 3 p from range(20)"
    )
    rows.write.format("pydelta").option("delta.columnMapping.mode", mode).partitionBy("p").save(path)
    table = DeltaTable.forPath(spark, path)
    table.renameColumn("s.y.z", "zz")
    table.renameColumn("id", "number")
    df = read(spark, path)
    assert df.columns == ["number", "s", "a", "m", "p"]
    found = df.where("s.x = 7").select("number", "s.y.zz", "a.k", "m.m.v", "p").collect()
    assert [tuple(row) for row in found] == [(7, "7", [7], 7, 1)]
    assert [r[0] for r in df.where("number > 17").select("s.x").orderBy("x").collect()] == [18, 19]
    expected = spark.sql(
        "select id number, named_struct('x', id, 'y', named_struct('zz', cast(id as string))) s, "
        "array(named_struct('k', id)) a, map('m', named_struct('v', id)) m, id % 3 p from range(20)"
    )
    columns = ["number", "s", "a", "p"]
    assert_df_equality(
        df.select(*columns), expected.select(*columns), ignore_row_order=True, ignore_nullable=True
    )


def test_pruning_reaches_fields_of_renamed_structs(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.sql("select named_struct('x', 1, 'y', 2) s").write.format("pydelta").option(
        "delta.columnMapping.mode", "name"
    ).save(path)
    read_schema = (
        read(spark, path)
        .select("s.y")
        ._jdf.queryExecution()
        .executedPlan()
        .collectLeaves()
        .apply(0)
        .requiredSchema()
    )
    assert read_schema.simpleString().count(":int") == 1


def test_schema_is_that_of_the_portable_path(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = (
        DeltaTable.create(spark)
        .location(path)
        .addColumn("id", "long", nullable=False, comment="the key")
        .addColumn("c", "char(5)")
        .addColumn("v", "varchar(5)")
        .addColumn("s", "struct<a: int not null comment 'inner', b: array<string>>")
        .execute()
    )
    spark.sql("select 1L id, 'ab' c, 'ab' v, named_struct('a', 1, 'b', array('x')) s").write.format(
        "pydelta"
    ).mode("append").save(path)
    native = table.toDF()
    spark.conf.set("spark.pydelta.nativeScan", "false")
    try:
        portable = table.toDF()
        assert native.schema == portable.schema
        assert native.collect() == portable.collect()
    finally:
        spark.conf.unset("spark.pydelta.nativeScan")
    assert [f.metadata.get("comment") for f in native.schema][0] == "the key"
    assert native.where("c = 'ab'").select("c").collect()[0].c == "ab   "


def test_null_in_a_not_null_column_is_an_error_not_an_answer(spark: SparkSession, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path)
    builder.create(pa.schema([pa.field("id", pa.int64(), False)]))
    builder.append(pa.table({"id": pa.array([1, None])}))
    with pytest.raises(Exception, match="DELTA_NOT_NULL_CONSTRAINT_VIOLATED"):
        read(spark, tmp_path).collect()


def test_missing_file_is_named(spark: SparkSession, partitioned: Path) -> None:
    df = read(spark, partitioned)
    next(partitioned.rglob("*.parquet")).unlink()
    with pytest.raises(Exception, match="FAILED_READ_FILE.FILE_NOT_EXIST"):
        df.collect()


def test_missing_columns_read_as_their_default(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(2).write.format("pydelta").option("delta.feature.allowColumnDefaults", "supported").save(path)
    table = DeltaTable.forPath(spark, path)
    from pyspark.sql.types import StructType

    table.addColumns(StructType.fromDDL("extra string"))
    table.alterColumn("extra", default="'later'")
    assert [r.extra for r in read(spark, path).collect()] == [None, None]
    spark.range(1).write.format("pydelta").mode("append").save(path)
    assert sorted(str(r.extra) for r in read(spark, path).collect()) == ["None", "None", "later"]


def test_spark_knows_file_row_and_metadata(spark: SparkSession, partitioned: Path) -> None:
    df = read(spark, partitioned).where("id = 42")
    row = df.select("_metadata.row_index", "_metadata.file_name", F.input_file_name().alias("f")).collect()[0]
    assert row.row_index == 2
    assert row.f.endswith(row.file_name)
    assert len(df.inputFiles()) == 10


def test_paths_with_special_characters_are_read(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a b%20c#d+é"
    builder = TableBuilder(folder)
    builder.create(pa.schema([("id", pa.int64())]))
    for n, path in enumerate(["x y.parquet", "p=a%2Fb/z.parquet", "é:1/é.parquet", "q?#.parquet"]):
        builder.append(pa.table({"id": [n]}), path=path)
    assert sorted(r.id for r in read(spark, folder).collect()) == [0, 1, 2, 3]


def test_numbered_scan_names_each_file(spark: SparkSession, partitioned: Path) -> None:
    snapshot = DeltaLog(partitioned).open_snapshot()
    df = scan(spark, snapshot, rows=pa.array([2, 5]), numbered=True)
    found = {(r[FILE_NUMBER], r["n"]) for r in df.groupBy(FILE_NUMBER).agg(F.count("*").alias("n")).collect()}
    assert found == {(2, 10), (5, 10)}
    assert df.columns == ["id", "s", "p", FILE_NUMBER]


def test_small_table_is_broadcast_by_its_size_in_the_log(spark: SparkSession, partitioned: Path) -> None:
    big = spark.range(1000).withColumnRenamed("id", "k")
    joined = big.join(read(spark, partitioned), big["k"] == F.col("id"))
    assert "BroadcastHashJoin" in joined._jdf.queryExecution().sparkPlan().toString()
    assert joined.count() == 100


def test_rows_are_counted_for_the_cost_based_optimiser(spark: SparkSession, partitioned: Path) -> None:
    spark.conf.set("spark.sql.cbo.enabled", "true")
    try:
        statistics = read(spark, partitioned)._jdf.queryExecution().optimizedPlan().stats().toString()
    finally:
        spark.conf.unset("spark.sql.cbo.enabled")
    assert "rowCount=100" in statistics


def test_dynamic_partition_pruning_reads_only_matching_partitions(
    spark: SparkSession, partitioned: Path
) -> None:
    wanted = spark.createDataFrame([("a", 1), ("c", 2)], "p string, n int").where("n = 1")
    joined = read(spark, partitioned).join(F.broadcast(wanted), "p")
    assert joined.count() == 50
    assert "dynamicpruning" in joined._jdf.queryExecution().executedPlan().toString().lower()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"readChangeFeed": "true", "startingVersion": "0"}, "change feed"),
        ({"metadataColumns": "row_id"}, "metadataColumns"),
        ({"maxPartitionBytes": "1m"}, "maxPartitionBytes"),
    ],
)
def test_what_is_not_read_natively_says_why(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], reason: str
) -> None:
    path = str(tmp_path / "t")
    spark.range(3).write.format("pydelta").option("delta.enableChangeDataFeed", "true").save(path)
    with pytest.raises(NotNative, match=reason):
        read(spark, path, **options)
    df = spark.read.format("pydelta").options(**options).load(path)
    assert df.count() == 3
    assert reason in df._jdf.queryExecution().toString()


def test_table_of_a_store_that_hadoop_does_not_know_is_read_portably(spark: SparkSession) -> None:
    DeltaLog("memory://nothing/for/hadoop").write(pa.table({"id": [1]}))
    with pytest.raises(NotNative, match="Hadoop cannot open memory:"):
        read(spark, "memory://nothing/for/hadoop")


def test_file_name_with_a_colon_is_read_portably(spark: SparkSession, tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path / "t")
    builder.create(pa.schema([("id", pa.int64())]))
    builder.append(pa.table({"id": [7]}), path="a:b.parquet")
    with pytest.raises(NotNative, match="colon"):
        read(spark, tmp_path / "t")
    assert spark.read.format("pydelta").load(str(tmp_path / "t")).collect()[0].id == 7


def test_scan_of_a_changing_session_zone_reads_old_partition_timestamps_in_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    builder = TableBuilder(tmp_path)
    builder.create(pa.schema([("id", pa.int64()), ("t", pa.timestamp("us", "UTC"))]), partition_columns=["t"])
    builder.append(pa.table({"id": [1]}), partition_values={"t": "2024-07-01 12:00:00"})
    df = read(spark, tmp_path).selectExpr("unix_seconds(t) s")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        assert df.collect()[0].s == 1_719_849_600
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_view_outlives_pythons_handle_on_its_session(spark: SparkSession, partitioned: Path) -> None:
    other = spark.newSession()
    read(other, partitioned).createOrReplaceGlobalTempView("native_view")
    del other
    gc.collect()
    try:
        assert spark.table("global_temp.native_view").where("p = 'a' and id < 30").count() == 20
    finally:
        spark.catalog.dropGlobalTempView("native_view")


def test_batches_of_a_stream_read_and_write_natively(spark: SparkSession, tmp_path: Path) -> None:
    path, names = str(tmp_path / "t"), str(tmp_path / "names")
    spark.range(10).selectExpr("id", "concat('n', id) name").write.format("pydelta").save(names)
    spark.range(6).write.parquet(str(tmp_path / "in"))

    def step(batch: DataFrame, number: int) -> None:
        known = read(batch.sparkSession, names)
        batch.join(known, "id").write.format("pydelta").mode("append").save(path)

    stream = spark.readStream.schema("id long").parquet(str(tmp_path / "in"))
    query = (
        stream.writeStream.foreachBatch(step)
        .option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(r.name for r in read(spark, path).collect()) == [f"n{i}" for i in range(6)]


@pytest.fixture(autouse=True)
def no_warnings(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What cannot be used for skipping must not go unnoticed here."""
    caplog.set_level(logging.WARNING, "delta_ds")
    yield
    assert not [r for r in caplog.records if r.getMessage().startswith("filter_not")]
