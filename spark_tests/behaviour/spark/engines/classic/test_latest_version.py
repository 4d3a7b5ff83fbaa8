"""A DataFrame or view follows its table: each execution reads the newest version, and only one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import ConcurrentAppendException, DeltaConcurrentModificationException
from delta_ds.kernel.transaction.alter.properties import set_properties, unset_properties
from delta_ds.spark.base.session_conf import NATIVE_WRITE_CONF
from delta_ds.spark.engines.classic import writer
from delta_ds.spark.engines.classic.load import LatestVersion
from delta_ds.testing import TableBuilder

pytestmark = pytest.mark.long

CHANGED = "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"


def write(df: DataFrame, path: Path | str, mode: str = "append", **options: str) -> None:
    df.write.format("pydelta").mode(mode).options(**options).save(str(path))


def read(spark: SparkSession, path: Path | str, **options: Any) -> DataFrame:
    return spark.read.format("pydelta").options(**options).load(str(path))


def ids(df: DataFrame) -> list[Any]:
    return sorted((row[0] for row in df.select("id").collect()), key=str)


def append(path: Path | str, *values: int) -> None:
    """A commit of another program."""
    DeltaLog(path).write(pa.table({"id": pa.array(values, pa.int64())}))


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Ids 0 to 2, in one file."""
    append(tmp_path / "t", 0, 1, 2)
    return str(tmp_path / "t")


@pytest.fixture
def view(spark: SparkSession) -> Iterator[str]:
    """The name of a view; meanwhile Spark checks what rules of the optimiser make of plans."""
    spark.conf.set("spark.sql.planChangeValidation", "true")
    yield "followed"
    spark.conf.unset("spark.sql.planChangeValidation")
    spark.catalog.dropTempView("followed")


def test_every_way_to_name_a_table_follows_it(spark: SparkSession, table: str, view: str) -> None:
    read(spark, table).createOrReplaceTempView(view)
    frames = {
        "load": read(spark, table),
        "derived": read(spark, table).where("id >= 0").select("id"),
        "columns": read(spark, table, columns="id"),
        "schema": spark.read.format("pydelta").schema("id long").load(table),
        "toDF": DeltaTable.forPath(spark, table).toDF(),
        "alias": DeltaTable.forPath(spark, table).alias("a").toDF(),
        "table": spark.table(f"pydelta.`{table}`"),
        "view": spark.table(view),
        "function": spark.sql(f"SELECT * FROM pydelta('{table}')"),
    }
    pinned = [
        read(spark, table, versionAsOf=0),
        spark.read.format("pydelta").load(f"{table}@v0"),
        spark.sql(f"SELECT * FROM pydelta('{table}', 'versionAsOf', 0)"),
    ]
    assert [frame.count() for frame in frames.values()] == [3] * len(frames)
    append(table, 3)
    assert {name: frame.count() for name, frame in frames.items()} == dict.fromkeys(frames, 4)
    assert {name: ids(frame) for name, frame in frames.items()} == dict.fromkeys(frames, [0, 1, 2, 3])
    assert len(frames["load"].inputFiles()) == 2
    assert [frame.count() for frame in pinned] == [3] * len(pinned)


def test_one_query_reads_one_version_however_often_it_names_the_table(
    spark: SparkSession, table: str, view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    df, other = read(spark, table), read(spark, table)
    read(spark, table).createOrReplaceTempView(view)
    ids(df)
    newest = LatestVersion._newest

    def changing(self: LatestVersion) -> Any:
        append(table, len(DeltaLog(table).history()) + 2)
        return newest(self)

    monkeypatch.setattr(LatestVersion, "_newest", changing)
    queries: list[Callable[[], DataFrame]] = [
        lambda: df.join(other, "id", "full").selectExpr(
            "count(*)", "(select count(*) from followed)", "(select max(id) + 1 from followed)"
        ),
        lambda: (
            df.union(other)
            .union(spark.table(view))
            .groupBy("id")
            .count()
            .where("count <> 3")
            .selectExpr("count(*) + 1", "1")
        ),
        lambda: spark.sql(
            "with c as (select id from followed) select count(*), (select count(*) from c), "
            "(select count(*) from followed where id in (select id from c)) from c a join c b using (id)"
        ),
        lambda: spark.sql(
            "select count(distinct id), count(*) from (select * from followed) "
            "where id <= (select max(id) from followed)"
        ),
    ]
    seen = []
    for query in queries:
        (row,) = query().collect()
        assert len(set(row)) == 1, row
        seen.append(row[0])
    assert seen[0] < seen[2] < seen[3]  # and each query another one


def test_dynamic_partition_pruning_uses_the_version_of_the_query(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(40).selectExpr("id", "id % 4 p").write.format("pydelta").partitionBy("p").save(
        str(tmp_path / "facts")
    )
    write(spark.range(4).selectExpr("id p", "'old' name"), tmp_path / "names")
    facts, names = read(spark, tmp_path / "facts"), read(spark, tmp_path / "names")
    joined = facts.join(names.where("name = 'new'"), "p")
    assert joined.count() == 0
    write(
        spark.range(40, 44).selectExpr("id", "7 p").selectExpr("id", "cast(p as long) p"), tmp_path / "facts"
    )
    write(spark.sql("select 7L p, 'new' name"), tmp_path / "names")
    assert ids(joined) == [40, 41, 42, 43]


def column(text: str) -> Callable[[SparkSession, str], None]:
    def overwrite(spark: SparkSession, path: str) -> None:
        write(spark.sql(f"select {text}"), path, "overwrite", overwriteSchema="true")

    return overwrite


def anew(spark: SparkSession, path: str, text: str) -> None:
    shutil.rmtree(path)
    for _ in range(3):
        write(spark.sql(f"select {text}"), path)


FINE: dict[str, Callable[[SparkSession, str], Any]] = {
    "added": lambda s, p: write(
        s.sql("select 9L id, named_struct('a', 1, 'b', 2) s, 1 z"), p, "overwrite", mergeSchema="true"
    ),
    "added of a type that the scan cannot read": lambda s, p: write(
        s.sql("select 9L id, named_struct('a', 1, 'b', 2) s, parse_json('1') z"),
        p,
        "overwrite",
        mergeSchema="true",
    ),
    "added inside": lambda s, p: write(
        s.sql("select 9L id, named_struct('a', 1, 'b', 2, 'c', 3) s"), p, "overwrite", mergeSchema="true"
    ),
    "in another order": column("named_struct('b', 2, 'a', 1) s, 9L id"),
    "partitioned": lambda s, p: write(
        s.sql("select 9L id, named_struct('a', 1, 'b', 2) s"),
        p,
        "overwrite",
        overwriteSchema="true",
        partitionBy="id",
    ),
    "mapped": lambda s, p: (
        DeltaTable.forPath(s, p).setProperties({"delta.columnMapping.mode": "name"}),
        write(s.sql("select 9L id, named_struct('a', 1, 'b', 2) s"), p, "overwrite"),
    ),
    "made anew": lambda s, p: anew(s, p, "9L id, named_struct('a', 1, 'b', 2) s"),
}
CONTRADICTING: dict[str, Callable[[SparkSession, str], Any]] = {
    "dropped": column("9L id"),
    "of another type": column("'9' id, named_struct('a', 1, 'b', 2) s"),
    "widened inside": column("9L id, named_struct('a', 1L, 'b', 2) s"),
    "made anew": lambda s, p: anew(s, p, "'x' v"),
    "deleted": lambda s, p: shutil.rmtree(p),
}


@pytest.mark.parametrize("change", FINE)
def test_changes_that_leave_the_columns_readable_are_followed(
    spark: SparkSession, tmp_path: Path, change: str
) -> None:
    path = str(tmp_path / "t")
    write(spark.sql("select 1L id, named_struct('a', 1, 'b', 2) s"), path)
    df = read(spark, path)
    assert df.count() == 1
    FINE[change](spark, path)
    wanted = {(9, 1, 2)}
    assert {(row.id, row.s.a, row.s.b) for row in df.collect()} == wanted
    assert df.where("s.b = 2 and id = 9").select("s").distinct().count() == 1
    assert df.columns == ["id", "s"]


@pytest.mark.parametrize("change", CONTRADICTING)
def test_changes_that_contradict_the_columns_are_the_error_of_delta_spark(
    spark: SparkSession, tmp_path: Path, change: str
) -> None:
    path = str(tmp_path / "t")
    write(spark.sql("select 1L id, named_struct('a', 1, 'b', 2) s"), path)
    df = read(spark, path)
    CONTRADICTING[change](spark, path)
    for query in (df.count, df.select("id").collect, df.inputFiles):
        with pytest.raises(AnalysisException) as raised:
            query()
        assert raised.value.getCondition() == CHANGED


def test_promise_that_a_column_has_no_nulls_is_not_believed_longer_than_it_is_given(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    DeltaTable.create(spark).location(path).addColumn("id", "long", nullable=False).execute()
    df = read(spark, path)
    assert df.where("id is null").count() == 0
    DeltaTable.forPath(spark, path).alterColumn("id", nullable=True)
    write(spark.sql("select cast(null as long) id"), path)
    with pytest.raises(AnalysisException, match=CHANGED):
        df.where("id is null").count()
    assert read(spark, path).where("id is null").count() == 1


def test_deletion_vectors_that_come_and_go_hide_the_rows_that_they_delete(
    spark: SparkSession, tmp_path: Path, view: str
) -> None:
    builder = TableBuilder(tmp_path)
    builder.create(pa.schema([("id", pa.int64())]), reader_features=["deletionVectors"])
    add = builder.write_file(pa.table({"id": pa.array(range(100))}))
    builder.commit(add)
    df = read(spark, tmp_path)
    df.createOrReplaceTempView(view)
    assert (df.count(), len(ids(df))) == (100, 100)
    builder.delete_rows(add, [3, 70])
    assert (df.count(), len(ids(df)), df.selectExpr("min(id)", "max(id)").collect()[0]) == (98, 98, (0, 99))
    assert spark.sql("select count(*) from followed a join followed b using (id)").collect()[0][0] == 98
    assert df.where("id in (3, 4)").select("_metadata.row_index").collect() == [(4,)]
    DeltaTable.forPath(spark, str(tmp_path)).optimize().executePurge()
    assert (df.count(), len(ids(df))) == (98, 98)


def test_cached_rows_stay_until_the_session_changes_the_table(spark: SparkSession, table: str) -> None:
    df = read(spark, table).cache()
    try:
        assert df.count() == 3
        append(table, 3)
        assert (df.count(), read(spark, table).count()) == (3, 4)
        write(spark.range(4, 5), table)
        assert df.count() == 5
        DeltaTable.forPath(spark, table).delete("id = 0")
        assert df.count() == 4
        spark.conf.set(NATIVE_WRITE_CONF, "false")
        write(spark.range(5, 6), table)
        assert df.count() == 5
    finally:
        spark.conf.unset(NATIVE_WRITE_CONF)
        df.unpersist()


def test_frame_of_one_session_follows_in_another(spark: SparkSession, table: str) -> None:
    read(spark, table).createOrReplaceGlobalTempView("followed_by_all")
    try:
        other = spark.newSession()
        assert other.table("global_temp.followed_by_all").count() == 3
        append(table, 3)
        assert other.table("global_temp.followed_by_all").count() == 4
    finally:
        spark.catalog.dropGlobalTempView("followed_by_all")


def test_static_side_of_a_stream_is_the_newest_version_in_each_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    events, names, out = (str(tmp_path / name) for name in ("events", "names", "out"))
    write(spark.range(1), events)
    write(spark.sql("select id, 'old' name from range(10)"), names)
    stream = spark.readStream.format("pydelta").option("maxFilesPerTrigger", 1).load(events)
    joined = stream.join(read(spark, names), "id")
    write(spark.range(1, 2), events)

    def rename(batch: DataFrame, number: int) -> None:
        write(batch, out)
        write(spark.sql("select id, 'new' name from range(10)"), names, "overwrite")

    query = joined.writeStream.foreachBatch(rename).option("checkpointLocation", str(tmp_path / "c"))
    running = query.trigger(availableNow=True).start()
    assert running.awaitTermination(300)
    found = {row.id: row.name for row in read(spark, out).collect()}
    one_batch_a_version = {0: "old", 1: "new"}
    assert found == (one_batch_a_version if spark.version >= "4.2" else {0: "old", 1: "old"})


def test_rows_from_the_table_that_they_are_written_to_are_those_of_the_version_that_the_write_starts_from(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_properties(DeltaLog(table), {"delta.isolationLevel": "WriteSerializable"})
    df = read(spark, table)
    append(table, 3)
    write(df.where("id > 0"), table, "overwrite")
    assert ids(df) == [1, 2, 3]
    meanwhile: list[Callable[[], Any]] = []
    plan_write = writer.plan_write

    def overtaken(*args: Any, **named: Any) -> Any:
        plan = plan_write(*args, **named)
        meanwhile.pop()()
        return plan

    monkeypatch.setattr(writer, "plan_write", overtaken)
    meanwhile.append(lambda: append(table, 10))
    write(df.where("id > 1"), table, "overwrite")
    assert ids(df) == [10, 2, 3]
    meanwhile.append(lambda: append(table, 11))
    write(df.selectExpr("id + 100 id"), table)
    assert ids(df) == [10, 102, 103, 11, 110, 2, 3]
    assert DeltaLog(table).history()[0]["isBlindAppend"] is False
    meanwhile.append(lambda: DeltaLog(table).write(pa.table({"id": [0]}), mode="overwrite"))
    with pytest.raises(DeltaConcurrentModificationException):
        write(df.selectExpr("id + 1000 id"), table)
    assert ids(df) == [0]
    unset_properties(DeltaLog(table), ["delta.isolationLevel"])
    meanwhile.append(lambda: append(table, 12))
    with pytest.raises(ConcurrentAppendException):
        write(df.selectExpr("id + 1000 id"), table)
    assert ids(df) == [0, 12]


# --- INSERT INTO a view

LAYOUTS = {
    "plain": {},
    "partitioned": {"partitionBy": "p"},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "mapped": {"delta.columnMapping.mode": "name", "partitionBy": "p"},
    "by id": {"delta.columnMapping.mode": "id"},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_views_of_all_tables_are_inserted_into(
    spark: SparkSession, tmp_path: Path, view: str, layout: str
) -> None:
    path = str(tmp_path / "t")
    write(spark.range(4).coalesce(1).selectExpr("id", "id % 2 p"), path, **LAYOUTS[layout])
    DeltaTable.forPath(spark, path).delete("id = 0")
    read(spark, path).createOrReplaceTempView(view)

    def rows() -> list[tuple[Any, ...]]:
        return sorted(map(tuple, spark.table(view).collect()), key=str)

    spark.sql("INSERT INTO followed VALUES (10, 0)")
    spark.sql("INSERT INTO followed (p, id) VALUES (1, 11)")
    spark.sql("INSERT INTO followed BY NAME SELECT 0L AS p, 12L AS id")
    spark.sql("INSERT INTO followed (id) VALUES (13)")
    spark.range(14, 15).selectExpr("id", "1L").write.insertInto(view)
    assert rows() == [(1, 1), (10, 0), (11, 1), (12, 0), (13, None), (14, 1), (2, 0), (3, 1)]
    spark.sql("INSERT INTO followed SELECT id + 100, p FROM followed WHERE id = 1")
    assert (101, 1) in rows()
    for wrong in ("VALUES ('a', 0)", "VALUES (1)", "VALUES (1, 2, 3)"):
        with pytest.raises(AnalysisException):
            spark.sql(f"INSERT INTO followed {wrong}")
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        spark.sql("INSERT OVERWRITE followed VALUES (50, 0)")
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    kept = (
        []
        if "partitionBy" not in LAYOUTS[layout]
        else [(1, 1), (101, 1), (11, 1), (13, None), (14, 1), (3, 1)]
    )
    assert rows() == sorted([*kept, (50, 0)], key=str)
    spark.sql("INSERT OVERWRITE followed SELECT id, p FROM followed WHERE id = 50")
    spark.range(60, 61).selectExpr("id", "1L").write.insertInto(view)
    assert rows() == [(50, 0), (60, 1)]
    DeltaTable.forPath(spark, path).addConstraint("small", "id < 1000")
    with pytest.raises(Exception, match="small"):
        spark.sql("INSERT INTO followed VALUES (2000, 0)")
    assert rows() == [(50, 0), (60, 1)]


PARTS: dict[str, Callable[[DataFrame, str], DataFrame]] = {
    "filtered": lambda df, path: df.where("p = 1"),
    "projected": lambda df, path: df.select("p", "id"),
    "one column": lambda df, path: df.select("id"),
    "limited": lambda df, path: df.limit(1),
    "columns": lambda df, path: read(df.sparkSession, path, columns="id, p"),
    "older": lambda df, path: read(df.sparkSession, path, versionAsOf=0),
    "partition": lambda df, path: df,
}


@pytest.mark.parametrize("part", PARTS)
def test_view_of_a_part_of_a_table_is_not_inserted_into(
    spark: SparkSession, tmp_path: Path, view: str, part: str
) -> None:
    path = str(tmp_path / "t")
    write(spark.range(4).selectExpr("id", "id % 2 p"), path, **LAYOUTS["mapped"])
    PARTS[part](read(spark, path), path).createOrReplaceTempView(view)
    before = sorted(tmp_path.rglob("*"))
    where = "PARTITION (p = 1)" if part == "partition" else ""
    values = "(1)" if part in ("one column", "partition") else "(1, 1)"
    for verb in ("INTO", "OVERWRITE"):
        with pytest.raises(Exception, match="UNSUPPORTED_INSERT|cannot be changed|PARTITION|partition"):
            spark.sql(f"INSERT {verb} followed {where} VALUES {values}")
    assert sorted(tmp_path.rglob("*")) == before
    assert ids(read(spark, path)) == [0, 1, 2, 3]
