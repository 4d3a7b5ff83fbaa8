"""Rows that are Parquet files are written by Arrow: the same table as by Spark; whatever asks for more is Spark's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_ds import DeltaLog, DeltaTable
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.transaction.write.parquet_files import NotPlainError, SplitRows
from delta_ds.spark.base.session_conf import ARROW_WRITE_CONF, LOCAL_OPTIMIZE_CONF
from delta_ds.spark.engines.classic import plain_files, writer
from delta_ds.spark.engines.classic.plain_files import PlainFiles, read_plain_files
from delta_ds.spark.engines.classic.writer import save
from delta_ds.spark.engines.seam.classic import arrow_rows
from spark_tests.behaviour.spark.engines.classic.test_writer import described

pytestmark = pytest.mark.long

ROWS = """
select id, cast(id as int) i, cast(id as short) sh, cast(id as byte) b, id % 2 = 0 as flag,
  cast(id as float) / 3 f, cast(id as double) / 3 d, cast(id as decimal(10,2)) dec, cast(id as decimal(38,10)) big,
  if(id = 3, null, concat('name ', id)) s, cast(concat('x', id) as binary) bin,
  date_add(date'1582-02-28', cast(id * 100 as int)) dt, timestamp_micros(id * 1000001 - 20000000) ts,
  timestamp_ntz'2024-01-01 00:00:00' + make_dt_interval(0, 0, 0, id) ntz, repeat(cast(id as string), 40) long_text,
  if(id = 1, cast('NaN' as double), if(id = 2, cast('-0.0' as double), 1.5)) odd, cast(null as int) empty
from range(0, 40, 1, 3)
"""
LAYOUTS: dict[str, dict[str, str]] = {
    "plain": {},
    "partitioned by a boolean": {"partitionBy": "flag"},
    "by a timestamp and a string": {"partitionBy": "ts,s"},
    "mapped by name": {"delta.columnMapping.mode": "name", "partitionBy": "flag"},
    "mapped by id": {"delta.columnMapping.mode": "id"},
    "few rows a file": {"maxRecordsPerFile": "4"},
    "two indexed columns": {"delta.dataSkippingNumIndexedCols": "2"},
    "row tracking": {"delta.enableRowTracking": "true"},
    "gzip": {"compression": "gzip"},
}


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("plain") / "source")
    spark.sql(ROWS).write.parquet(folder)
    return folder


@pytest.fixture
def by_arrow(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What became of each write: `arrow`, or why not."""
    ways: list[str] = []
    find, write = writer.find_plain_files, writer.write_plain_files

    def found(*arguments: object) -> PlainFiles:
        try:
            return find(*arguments)  # type: ignore[arg-type]
        except NotPlainError as why:
            ways.append(str(why))
            raise

    def written(*arguments: object) -> object:
        try:
            result = write(*arguments)  # type: ignore[arg-type]
        except NotPlainError as why:
            ways.append(str(why))
            raise
        ways.append("arrow")
        return result

    monkeypatch.setattr(writer, "find_plain_files", found)
    monkeypatch.setattr(writer, "write_plain_files", written)
    yield ways


def by_spark(df: DataFrame, options: Mapping[str, str]) -> None:
    spark = df.sparkSession
    spark.conf.set(ARROW_WRITE_CONF, "false")
    try:
        save(df, options, overwrite=False)
    finally:
        spark.conf.unset(ARROW_WRITE_CONF)


def rows_by_file(spark: SparkSession, path: Path) -> list[list[str]]:
    rows = spark.read.format("pydelta").load(str(path)).withColumn("at", F.input_file_name())
    files: dict[str, list[str]] = {}
    for row in rows.collect():
        files.setdefault(row["at"], []).append(str(row.asDict() | {"at": None}))
    return sorted(map(sorted, files.values()))


@pytest.fixture(params=["threads", "tasks"])
def who(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """Who writes: threads of the driver, or tasks of a job."""
    if request.param == "tasks":
        spark.conf.set(LOCAL_OPTIMIZE_CONF, "0")
    yield request.param
    spark.conf.unset(LOCAL_OPTIMIZE_CONF)


@pytest.mark.sampled
@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_rows_and_statistics_are_those_of_sparks_writer(
    spark: SparkSession, source: str, tmp_path: Path, by_arrow: list[str], layout: str, who: str
) -> None:
    df = spark.read.parquet(source)
    for name, write in (("arrow", save), ("spark", None)):
        options = {"path": str(tmp_path / name), **LAYOUTS[layout]}
        if write is None:
            by_spark(df, options)
        else:
            write(df, options, overwrite=False)
    assert by_arrow == ["arrow", f"{ARROW_WRITE_CONF} is false"]
    assert described(tmp_path / "arrow") == described(tmp_path / "spark")
    assert rows_by_file(spark, tmp_path / "arrow") == rows_by_file(spark, tmp_path / "spark")
    schemas = [DeltaLog(tmp_path / name).snapshot().schema.names for name in ("arrow", "spark")]
    assert schemas[0] == schemas[1]


def test_splits_of_large_files_become_the_files_that_spark_would_write(
    spark: SparkSession, tmp_path: Path, by_arrow: list[str]
) -> None:
    (tmp_path / "source").mkdir()
    table = pa.table({"id": range(50_000), "s": [str(n * n) for n in range(50_000)]})
    pq.write_table(table, tmp_path / "source" / "f.parquet", row_group_size=7_000)
    spark.conf.set("spark.sql.files.maxPartitionBytes", "90000")
    try:
        df = spark.read.parquet(str(tmp_path / "source"))
        save(df, {"path": str(tmp_path / "arrow")}, overwrite=False)
        by_spark(df, {"path": str(tmp_path / "spark")})
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert by_arrow[0] == "arrow"
    assert DeltaLog(tmp_path / "arrow").snapshot().files().num_rows > 2
    assert rows_by_file(spark, tmp_path / "arrow") == rows_by_file(spark, tmp_path / "spark")


PLAIN: dict[str, Callable[[DataFrame], DataFrame]] = {
    "some columns": lambda df: df.select("s", "id"),
    "another name": lambda df: df.select(F.col("s").alias("x"), "id"),
    "two of one": lambda df: df.select(F.col("id").alias("x"), F.col("id").alias("y")),
    "names exchanged": lambda df: df.select(F.col("id").alias("i"), F.col("i").alias("id")),
    "another case": lambda df: df.select("ID", "S"),
    "renamed and dropped": lambda df: df.withColumnRenamed("id", "n").drop("s", "ts"),
    "an alias": lambda df: df.alias("other").select("other.id"),
}


@pytest.mark.parametrize("name", PLAIN)
def test_columns_and_names_are_no_more_than_files(
    spark: SparkSession, source: str, tmp_path: Path, by_arrow: list[str], name: str
) -> None:
    df = PLAIN[name](spark.read.parquet(source))
    save(df, {"path": str(tmp_path)}, overwrite=False)
    assert by_arrow == ["arrow"]
    found = spark.read.format("pydelta").load(str(tmp_path))
    assert found.columns == df.columns
    assert sorted(map(str, found.collect())) == sorted(map(str, df.collect()))


MORE: dict[str, Callable[[DataFrame], DataFrame]] = {
    "filter": lambda df: df.where("id > 3"),
    "value": lambda df: df.withColumn("one", F.lit(1)),
    "cast": lambda df: df.withColumn("id", F.col("id").cast("string")),
    "observation": lambda df: df.observe("seen", F.count(F.lit(1)).alias("n")),
    "limit": lambda df: df.limit(5),
    "sample": lambda df: df.sample(0.5, seed=1),
    "distinct": lambda df: df.distinct(),
    "repartition": lambda df: df.repartition(3),
    "coalesce": lambda df: df.coalesce(1),
    "sort": lambda df: df.orderBy("id"),
    "union": lambda df: df.union(df),
    "join": lambda df: df.join(df.select("id"), "id"),
    "hint": lambda df: df.hint("rebalance"),
    "name of the file": lambda df: df.withColumn("file", F.input_file_name()),
    "metadata": lambda df: df.select("id", F.col("_metadata.file_name").alias("file")),
    "nested": lambda df: df.select("id", F.struct("s").alias("st")),
    "order of tasks": lambda df: df.withColumn("n", F.monotonically_increasing_id()),
    "never true": lambda df: df.where("false"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", MORE)
def test_more_than_files_is_written_by_spark(
    spark: SparkSession, source: str, tmp_path: Path, by_arrow: list[str], name: str
) -> None:
    df = MORE[name](spark.read.parquet(source))
    save(df, {"path": str(tmp_path)}, overwrite=False)
    assert "arrow" not in by_arrow
    found = spark.read.format("pydelta").load(str(tmp_path))
    assert found.count() == df.count()


def test_cached_rows_are_written_not_the_files(
    spark: SparkSession, tmp_path: Path, by_arrow: list[str]
) -> None:
    source = str(tmp_path / "source")
    spark.range(5).write.parquet(source)
    df = spark.read.parquet(source).cache()
    assert df.count() == 5
    for file in Path(source).glob("*.parquet"):
        file.unlink()
    save(df, {"path": str(tmp_path / "t")}, overwrite=False)
    df.unpersist()
    assert by_arrow != ["arrow"]
    assert DeltaLog(tmp_path / "t").snapshot().scan().to_arrow().num_rows == 5


SETTINGS = {
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96TimestampConversion": "true",
    "parquet.block.size": "1000000",
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_sparks_reader_and_writer_are_left_to_spark(
    spark: SparkSession, source: str, tmp_path: Path, by_arrow: list[str], name: str
) -> None:
    before = spark.conf.get(name, None)
    spark.conf.set(name, SETTINGS[name])
    try:
        save(spark.read.parquet(source), {"path": str(tmp_path)}, overwrite=False)
    finally:
        spark.conf.unset(name) if before is None else spark.conf.set(name, before)
    assert "arrow" not in by_arrow


@pytest.mark.parametrize("option", ["ignoreCorruptFiles", "pathGlobFilter", "recursiveFileLookup"])
def test_options_of_a_source_are_left_to_spark(
    spark: SparkSession, source: str, tmp_path: Path, by_arrow: list[str], option: str
) -> None:
    text = "*.parquet" if option == "pathGlobFilter" else "true"
    save(spark.read.option(option, text).parquet(source), {"path": str(tmp_path)}, overwrite=False)
    assert by_arrow == [f"the option {option.lower()}"]


def test_folders_of_partitions_are_left_to_spark(
    spark: SparkSession, tmp_path: Path, by_arrow: list[str]
) -> None:
    spark.range(6).selectExpr("id", "id % 2 p").write.partitionBy("p").parquet(str(tmp_path / "source"))
    save(spark.read.parquet(str(tmp_path / "source")), {"path": str(tmp_path / "t")}, overwrite=False)
    assert by_arrow == ["folders of partitions"]
    found = spark.read.format("pydelta").load(str(tmp_path / "t"))
    assert sorted(map(tuple, found.collect())) == [(n, n % 2) for n in range(6)]


def test_tables_that_check_or_compute_values_are_left_to_spark(
    spark: SparkSession, source: str, tmp_path: Path, by_arrow: list[str]
) -> None:
    df = spark.read.parquet(source).select("id")
    DeltaTable.create(spark).location(str(tmp_path)).addColumn("id", "bigint").execute()
    DeltaTable.forPath(spark, str(tmp_path)).addConstraint("few", "id < 100")
    save(df, {"path": str(tmp_path)}, overwrite=False)
    assert by_arrow == ["the table computes or checks values"]


def test_optimized_write_is_left_to_spark(
    spark: SparkSession, source: str, tmp_path: Path, by_arrow: list[str]
) -> None:
    save(spark.read.parquet(source), {"path": str(tmp_path), "optimizeWrite": "true"}, overwrite=False)
    assert by_arrow == ["small files are joined before they are written"]


def test_a_file_that_only_spark_reads_sends_the_whole_write_to_spark(
    spark: SparkSession, tmp_path: Path, by_arrow: list[str]
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for n in range(3):
        pq.write_table(pa.table({"a": pa.array([n, n], pa.int64())}), source / f"{n}.parquet")
    # Widened by Spark's reader, which takes the schema from the first file.
    pq.write_table(pa.table({"a": pa.array([9], pa.int32())}), source / "3.parquet")
    df = spark.read.schema("a bigint").parquet(str(source))
    save(df, {"path": str(tmp_path / "t")}, overwrite=False)
    assert len(by_arrow) == 1
    assert "column a is stored as int32" in by_arrow[0]
    snapshot = DeltaLog(tmp_path / "t").snapshot()
    assert sorted(snapshot.scan().to_arrow()["a"].to_pylist()) == [0, 0, 1, 1, 2, 2, 9]
    on_disk = {path.name for path in (tmp_path / "t").rglob("*.parquet")}
    assert on_disk == {path.rpartition("/")[2] for path in snapshot.files()["path"].to_pylist()}


def test_a_file_without_a_column_has_nulls(spark: SparkSession, tmp_path: Path, by_arrow: list[str]) -> None:
    source = tmp_path / "source"
    source.mkdir()
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), source / "0.parquet")
    pq.write_table(pa.table({"a": [2]}), source / "1.parquet")
    df = spark.read.schema("a bigint, b string").parquet(str(source))
    save(df, {"path": str(tmp_path / "t")}, overwrite=False)
    assert by_arrow == ["arrow"]
    found = spark.read.format("pydelta").load(str(tmp_path / "t"))
    assert sorted(map(tuple, found.collect())) == [(1, "x"), (2, None)]


def test_missing_and_damaged_files_fail_as_they_do_in_spark(
    spark: SparkSession, tmp_path: Path, by_arrow: list[str]
) -> None:
    source = str(tmp_path / "source")
    spark.range(10).repartition(2).write.parquet(source)
    df = spark.read.parquet(source)
    damaged = sorted(Path(source).glob("*.parquet"))[-1]
    damaged.write_bytes(b"PAR1" + bytes(damaged.stat().st_size - 4))
    with pytest.raises(Exception, match=r"not a Parquet file|FAILED_READ_FILE|failed in Spark"):
        save(df, {"path": str(tmp_path / "t")}, overwrite=False)
    assert "arrow" not in by_arrow
    assert not (tmp_path / "t").exists()


def test_an_empty_source_makes_an_empty_table(
    spark: SparkSession, tmp_path: Path, by_arrow: list[str]
) -> None:
    spark.range(0).write.parquet(str(tmp_path / "source"))
    df = spark.read.parquet(str(tmp_path / "source"))
    assert save(df, {"path": str(tmp_path / "t")}, overwrite=False) == 0
    assert by_arrow == ["arrow"]
    assert spark.read.format("pydelta").load(str(tmp_path / "t")).collect() == []


# --- Delta tables as sources


def test_a_delta_table_is_read_in_the_version_that_the_write_pinned(
    spark: SparkSession, source: str, tmp_path: Path, by_arrow: list[str]
) -> None:
    path = str(tmp_path / "t")
    save(spark.read.parquet(source), {"path": path}, overwrite=False)
    follows = spark.read.format("pydelta").load(path)
    save(follows, {"path": path}, overwrite=False)
    save(follows, {"path": path}, overwrite=False)
    assert by_arrow == ["arrow", "arrow", "arrow"]
    assert follows.count() == 160
    save(follows.select("id", "s"), {"path": path, "overwriteSchema": "true"}, overwrite=True)
    assert spark.read.format("pydelta").load(path).count() == 160


def test_deleted_rows_of_a_delta_table_stay_deleted(
    spark: SparkSession, source: str, tmp_path: Path, by_arrow: list[str]
) -> None:
    path = str(tmp_path / "t")
    options = {"path": path, "delta.enableDeletionVectors": "true"}
    save(spark.read.parquet(source), options, overwrite=False)
    DeltaTable.forPath(spark, path).delete("id % 3 = 0")
    save(spark.read.format("pydelta").load(path), {"path": str(tmp_path / "copy")}, overwrite=False)
    found = spark.read.format("pydelta").load(str(tmp_path / "copy"))
    assert sorted(row.id for row in found.collect()) == [n for n in range(40) if n % 3]


def test_a_delta_table_with_mapped_names_is_copied_under_its_own(
    spark: SparkSession, source: str, tmp_path: Path, by_arrow: list[str]
) -> None:
    path = str(tmp_path / "t")
    df = spark.read.parquet(source).select("id", "s", "ts")
    save(df, {"path": path, "delta.columnMapping.mode": "name"}, overwrite=False)
    DeltaTable.forPath(spark, path).renameColumn("s", "text")
    save(spark.read.format("pydelta").load(path), {"path": str(tmp_path / "copy")}, overwrite=False)
    found = spark.read.format("pydelta").load(str(tmp_path / "copy"))
    assert found.columns == ["id", "text", "ts"]
    assert sorted(map(str, map(tuple, found.collect()))) == sorted(map(str, map(tuple, df.collect())))


# --- rows that are read, as by a MERGE of its source


def values(rows: pa.Table) -> list[str]:
    return sorted(map(str, rows.to_pylist()))


@pytest.mark.parametrize("name", PLAIN)
def test_rows_that_are_read_are_those_of_a_query(spark: SparkSession, source: str, name: str) -> None:
    df = PLAIN[name](spark.read.parquet(source))
    found, computed = read_plain_files(df, open_storage(source), 1 << 20, here=True), arrow_rows(df, 1 << 20)
    assert found is not None and computed is not None
    assert found.schema.names == computed.schema.names == df.columns
    assert values(found) == values(computed)


@pytest.mark.parametrize("name", MORE)
def test_more_than_files_is_not_read(spark: SparkSession, source: str, name: str) -> None:
    df = MORE[name](spark.read.parquet(source))
    with pytest.raises(NotPlainError):
        read_plain_files(df, open_storage(source), 1 << 20, here=True)


def test_rows_beyond_the_bound_are_not_held(spark: SparkSession, source: str) -> None:
    assert read_plain_files(spark.read.parquet(source), open_storage(source), 1000, here=True) is None


def test_texts_that_a_small_file_repeats_are_measured_as_they_are_held(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "source").mkdir()
    pq.write_table(pa.table({"s": ["x" * 10_000] * 5_000}), tmp_path / "source" / "0.parquet")
    df = spark.read.parquet(str(tmp_path / "source"))
    batches: list[int] = []

    class Measured(SplitRows):
        def __iter__(self) -> Iterator[pa.RecordBatch]:
            for batch in super().__iter__():
                batches.append(batch.nbytes)
                yield batch

    monkeypatch.setattr(plain_files, "SplitRows", Measured)
    assert read_plain_files(df, open_storage(str(tmp_path)), 8 << 20, here=True) is None
    assert sum(batches) < 16 << 20


def test_large_files_are_left_to_executors(spark: SparkSession, source: str) -> None:
    df = spark.read.parquet(source)
    spark.conf.set(LOCAL_OPTIMIZE_CONF, "0")
    try:
        with pytest.raises(NotPlainError, match="executors"):
            read_plain_files(df, open_storage(source), 1 << 20, here=False)
        assert read_plain_files(df, open_storage(source), 1 << 20, here=True) is not None
    finally:
        spark.conf.unset(LOCAL_OPTIMIZE_CONF)


@pytest.mark.parametrize("way", ["parquet", "pydelta"])
def test_merge_of_files_runs_no_job(spark: SparkSession, tmp_path: Path, way: str) -> None:
    spark.range(0, 10, 1, 2).selectExpr("id", "'old' s").write.format("pydelta").save(str(tmp_path / "t"))
    spark.range(5, 15, 1, 3).selectExpr("id", "'new' s").write.format(way).save(str(tmp_path / "source"))
    given = spark.read.format(way).load(str(tmp_path / "source")).alias("s")
    table = DeltaTable.forPath(spark, str(tmp_path / "t")).alias("t")
    before = spark.sparkContext._jsc.sc().dagScheduler().nextJobId()  # type: ignore[union-attr]
    merge = table.merge(given, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    counts = merge.execute()
    assert spark.sparkContext._jsc.sc().dagScheduler().nextJobId() == before  # type: ignore[union-attr]
    assert [tuple(row) for row in counts.collect()] == [(10, 5, 0, 5)]
    expected = [(n, "old" if n < 5 else "new") for n in range(15)]
    assert sorted(map(tuple, table.toDF().collect())) == expected


def test_merge_reads_a_table_of_its_own_without_the_rows_that_are_deleted(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.range(0, 10, 1, 2).selectExpr("id", "'old' s").write.format("pydelta")
    rows.option("delta.enableDeletionVectors", "true").save(str(tmp_path / "source"))
    spark.range(3).selectExpr("id", "'mine' s").write.format("pydelta").save(str(tmp_path / "t"))
    source = DeltaTable.forPath(spark, str(tmp_path / "source"))
    source.delete("id IN (1, 7)")
    table = DeltaTable.forPath(spark, str(tmp_path / "t")).alias("t")
    merge = table.merge(source.toDF().alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    expected = sorted([(n, "old") for n in range(10) if n not in (1, 7)] + [(1, "mine")])
    assert sorted(map(tuple, table.toDF().collect())) == expected
