"""Writing with Spark: modes, options, SQL, and what is left of a write that fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_ds import DeltaLog

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("plain")]


def write(df: DataFrame, path: Path, mode: str = "append", **options: str) -> None:
    df.write.format("pydelta").mode(mode).options(**options).save(str(path))


def read(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.format("pydelta").load(str(path))


def data_files(path: Path) -> int:
    return sum("_delta_log" not in file.parts for file in path.rglob("*.parquet"))


def test_rows_of_every_type_come_back(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.sql(
        """select id, cast(id as byte) b, cast(id as short) s, cast(id as int) i, cast(id as float) f,
        cast(id as double) d, cast(id as decimal(38, 18)) m, cast(id as string) t, cast('x' as binary) y,
        id % 2 = 0 as o, date '2024-01-31' + cast(id as int) as da, timestamp '2024-01-31 12:00:00.123456' as ts,
        timestamp_ntz '2024-01-31 12:00:00.123456' as tn, array(id, null) as l, map(cast(id as string), id) as ma,
        named_struct('a', id, 'b', array(named_struct('c', id))) as st, if(id = 1, null, id) as n,
        interval '1' day as _drop from range(4)"""
    ).drop("_drop")
    write(df, tmp_path / "t")
    found = read(spark, tmp_path / "t")
    assert [(f.name, f.dataType.simpleString()) for f in found.schema] == [
        (f.name, f.dataType.simpleString()) for f in df.schema
    ]
    assert found.orderBy("id").collect() == df.orderBy("id").collect()


def test_rows_come_back_whatever_their_order(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.range(0, 1000, numPartitions=3).selectExpr("id", "id % 7 as p", "cast(id as string) as s")
    write(df, tmp_path / "t", partitionBy="p")
    assert_df_equality(read(spark, tmp_path / "t"), df, ignore_row_order=True, ignore_nullable=True)


def test_several_tasks_make_one_version(spark: SparkSession, tmp_path: Path) -> None:
    write(spark.range(0, 1000, numPartitions=4), tmp_path / "t")
    log = DeltaLog(tmp_path / "t")
    assert (log.open_snapshot().version, log.open_snapshot().live_files().num_rows) == (0, 4)
    assert log.history()[0]["engineInfo"].startswith(f"Apache-Spark/{spark.version} delta_ds/")
    assert read(spark, tmp_path / "t").agg(F.sum("id")).first()[0] == 499_500


def test_a_table_can_be_read_and_overwritten_in_one_query(spark: SparkSession, tmp_path: Path) -> None:
    write(spark.range(10), tmp_path / "t")
    write(read(spark, tmp_path / "t").where("id % 2 = 0"), tmp_path / "t", "overwrite")
    assert [row.id for row in read(spark, tmp_path / "t").orderBy("id").collect()] == [0, 2, 4, 6, 8]


def test_partitions_with_odd_values_come_back(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.sql(
        "select * from values (1, 'a b/c=d%e:f#g+h\u00e9'), (2, ''), (3, null), "
        "(4, '__HIVE_DEFAULT_PARTITION__x') as t(id, p)"
    )
    write(df, tmp_path / "t", partitionBy="p")
    found = {row.id: row.p for row in read(spark, tmp_path / "t").collect()}
    assert found == {1: "a b/c=d%e:f#g+h\u00e9", 2: None, 3: None, 4: "__HIVE_DEFAULT_PARTITION__x"}


def test_sql_inserts_into_and_overwrites_a_view(spark: SparkSession, tmp_path: Path) -> None:
    write(spark.range(2), tmp_path / "t")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING pydelta OPTIONS (path '{tmp_path / 't'}')")
    try:
        spark.sql("INSERT INTO v VALUES (7)")
        assert sorted(row.id for row in read(spark, tmp_path / "t").collect()) == [0, 1, 7]
        spark.sql("INSERT OVERWRITE v SELECT id + 100 FROM range(1)")
        assert [row.id for row in read(spark, tmp_path / "t").collect()] == [100]
    finally:
        spark.catalog.dropTempView("v")


def test_task_that_fails_leaves_no_version_and_no_file(spark: SparkSession, tmp_path: Path) -> None:
    write(spark.range(2), tmp_path / "t")
    before = data_files(tmp_path / "t")
    # One task: Spark does not tell which others had written their files when it gave up on the job.
    failing = spark.range(0, 1000, numPartitions=1).selectExpr("if(id = 999, raise_error('boom'), id) as id")
    with pytest.raises(Exception, match="boom"):
        write(failing.withColumn("id", F.col("id").cast("long")), tmp_path / "t")
    assert (DeltaLog(tmp_path / "t").snapshot().version, data_files(tmp_path / "t")) == (0, before)


def test_error_of_a_constraint_names_it_and_the_row(spark: SparkSession, tmp_path: Path) -> None:
    from delta_ds import DeltaTable

    write(spark.range(3), tmp_path / "t")
    DeltaTable.forPath(spark, str(tmp_path / "t")).addConstraint("small", "id < 10")
    with pytest.raises(Exception, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES(.|\n)*id : 10"):
        write(spark.range(11), tmp_path / "t")
    assert read(spark, tmp_path / "t").count() == 3


def test_constraint_that_rows_break_is_not_added(spark: SparkSession, tmp_path: Path) -> None:
    from delta_ds import DeltaTable, InvariantViolationError

    write(spark.range(3), tmp_path / "t")
    table = DeltaTable.forPath(spark, str(tmp_path / "t"))
    with pytest.raises(InvariantViolationError, match="small"):
        table.addConstraint("small", "id < 2")
    assert table.history().count() == 1


def test_unknown_option_is_refused_with_the_nearest(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="did you mean 'mergeSchema'"):
        write(spark.range(1), tmp_path / "t", megreSchema="true")
    assert not (tmp_path / "t").exists()


def test_table_is_described_column_by_column(spark: SparkSession, tmp_path: Path) -> None:
    from delta_ds import DeltaTable, IdentityGenerator

    table = (
        DeltaTable.create(spark)
        .location(str(tmp_path / "t"))
        .addColumn("k", "bigint", generatedAlwaysAs=IdentityGenerator(start=10, step=5))
        .addColumn("day", "date", generatedAlwaysAs="cast(at as date)")
        .addColumn("at", "timestamp", nullable=False, comment="when")
        .partitionedBy("day")
        .property("delta.appendOnly", "true")
        .execute()
    )
    at = "timestamp '2024-01-31 12:00:00'"
    write(spark.sql(f"select {at} as at union all select {at} + interval 1 day").coalesce(1), tmp_path / "t")
    rows = sorted((row.k, str(row.day)) for row in table.toDF().collect())
    assert rows == [(10, "2024-01-31"), (15, "2024-02-01")]
    with pytest.raises(Exception, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        write(spark.sql(f"select {at} as at"), tmp_path / "t", "overwrite")


def test_columns_are_added_renamed_and_dropped(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql.types import StructType

    from delta_ds import DeltaTable

    write(spark.range(2), tmp_path / "t")
    table = DeltaTable.forPath(spark, str(tmp_path / "t"))
    table.setProperties({"delta.columnMapping.mode": "name"})
    table.addColumns(StructType().add("extra", "string"))
    table.renameColumn("id", "key")
    write(spark.sql("select 9L as key, 'x' as extra"), tmp_path / "t")
    assert sorted(map(tuple, table.toDF().collect())) == [(0, None), (1, None), (9, "x")]
    table.dropColumns(["extra"])
    assert sorted(row.key for row in table.toDF().collect()) == [0, 1, 9]
    assert table.toDF().columns == ["key"]


def test_variants_come_back(spark: SparkSession, tmp_path: Path) -> None:
    write(
        spark.sql("""select id, parse_json('{"a": [1, {"b": null}]}') as v from range(2)"""), tmp_path / "t"
    )
    found = read(spark, tmp_path / "t").selectExpr("to_json(v) as v").distinct().collect()
    assert [row.v for row in found] == ['{"a":[1,{"b":null}]}']
