"""`DeltaTable.convertToDelta`: names, partition columns, statistics by a Spark job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from delta_ds import (
    DataFileError,
    DeltaError,
    DeltaTable,
    NotADeltaTableError,
    SchemaError,
    UnsupportedOperationError,
)
from delta_ds.kernel.commands.convert_to_delta import Conversion
from delta_ds.spark.commands import convert


def statistics(path: Path) -> list[dict[str, Any]]:
    lines = (path / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    adds = sorted((json.loads(line)["add"] for line in lines if '"add"' in line), key=lambda add: add["path"])
    return [json.loads(add["stats"]) for add in adds]


def test_a_job_collects_what_threads_would(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "a `b"
    rows = spark.range(12).selectExpr("id", "cast(id % 3 as int) p")
    rows.repartition(4).write.partitionBy("p").parquet(str(here))
    name = "PARQUET.`" + str(here).replace("`", "``") + "`"
    schema = T.StructType([T.StructField("p", T.IntegerType())])
    threads = DeltaTable.convertToDelta(spark, name, schema)
    expected = statistics(here)
    (here / "_delta_log").rename(tmp_path / "log")
    monkeypatch.setattr(convert, "_WORTH_A_JOB", 1)
    monkeypatch.setattr(convert, "_FILES_A_GROUP", 2)
    monkeypatch.setattr(Conversion, "adds", None)  # of this process
    table = DeltaTable.convertToDelta(spark, name, "p int")
    assert statistics(here) == expected and len(expected) > 2
    assert table.toDF().where("p = 1").count() == threads.toDF().where("p = 1").count() == 4
    (entry,) = table.history().collect()
    assert (entry.operation, entry.readVersion, entry.isolationLevel) == ("CONVERT", -1, "Serializable")
    assert entry.operationMetrics == {"numConvertedFiles": str(len(expected))}
    assert list((here / "_delta_log").glob("*.checkpoint.parquet"))


def test_a_table_stays_as_it_is(spark: SparkSession, sales: str) -> None:
    for source in ("parquet", "delta", "pydelta"):
        assert DeltaTable.convertToDelta(spark, f"{source}.`{sales}`").history(1).collect()[0].version == 7


@pytest.mark.parametrize(
    ("name", "partitions", "kind", "condition"),
    [
        ("parquet.`{}/t`", None, SchemaError, "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"),
        ("parquet.`{}/t`", "q int", SchemaError, "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME"),
        ("parquet.`{}/t`", "p int int", SchemaError, "PARSE_SYNTAX_ERROR"),
        ("parquet.`{}/t`", "int", SchemaError, "PARSE_SYNTAX_ERROR"),
        ("parquet.`{}/none`", None, DataFileError, "DELTA_FILE_NOT_FOUND"),
        ("{}/t", None, UnsupportedOperationError, "DELTA_CONVERT_NON_PARQUET_TABLE"),
        ("nowhere", None, NotADeltaTableError, "TABLE_OR_VIEW_NOT_FOUND"),
        ("default.nowhere", None, NotADeltaTableError, "TABLE_OR_VIEW_NOT_FOUND"),
        ("orc.`{}/t`", None, UnsupportedOperationError, "DELTA_CONVERT_NON_PARQUET_TABLE"),
    ],
)
def test_what_cannot_be_converted_is_refused(
    spark: SparkSession,
    tmp_path: Path,
    name: str,
    partitions: str | None,
    kind: type[Exception],
    condition: str,
) -> None:
    (tmp_path / "t" / "p=1").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "t" / "p=1" / "f.parquet")
    with pytest.raises(kind) as caught:
        DeltaTable.convertToDelta(spark, name.format(tmp_path), partitions)
    assert caught.value.condition == condition  # type: ignore[attr-defined]
    assert not (tmp_path / "t" / "_delta_log").exists()


# --- tables of the catalog


def converted(spark: SparkSession, columns: str, rows: str, more: str, statement: str = "") -> Any:
    """What DESCRIBE DETAIL says of a table of Parquet files once it was converted."""
    spark.sql("DROP TABLE IF EXISTS parquet_files")
    spark.sql(f"CREATE TABLE parquet_files ({columns}) USING parquet {more}")
    spark.sql(f"INSERT INTO parquet_files VALUES {rows}")
    try:
        spark.sql(f"CONVERT TO DELTA parquet_files {statement}")
        return spark.sql("DESCRIBE DETAIL parquet_files").first()
    finally:
        found = spark.sql("SELECT * FROM parquet_files").count()
        spark.sql("DROP TABLE parquet_files")
        assert found == 1


def test_properties_comment_and_features_of_a_table_are_kept(spark: SparkSession) -> None:
    properties = {
        "own": "prop", "Other.X": "1", "delta.appendOnly": "true", "delta.logRetentionDuration": "interval 9 days",
        "delta.unknown": "u",
    }  # fmt: skip
    told = ", ".join(f"'{name}' = '{text}'" for name, text in properties.items())
    spark.conf.set("spark.databricks.delta.properties.defaults.appendOnly", "false")
    spark.conf.set("spark.databricks.delta.properties.defaults.checkpointInterval", "7")
    try:
        detail = converted(
            spark, "id INT COMMENT 'number'", "(1)", f"COMMENT 'about' TBLPROPERTIES ({told}, "
            "'delta.feature.deletionVectors' = 'supported')"
        )  # fmt: skip
    finally:
        spark.conf.unset("spark.databricks.delta.properties.defaults.appendOnly")
        spark.conf.unset("spark.databricks.delta.properties.defaults.checkpointInterval")
    assert detail["properties"] == {**properties, "delta.checkpointInterval": "7"}
    assert detail["description"] == "about" and "deletionVectors" in detail["tableFeatures"]


@pytest.mark.parametrize(
    ("property", "condition"),
    [
        ("'delta.appendOnly' = 'maybe'", "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED"),
        ("'delta.columnMapping.mode' = 'name'", "DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING"),
        ("'delta.constraints.c' = 'id > 0'", "DELTA_ADD_CONSTRAINTS"),
    ],
)
def test_properties_that_would_not_hold_are_refused(
    spark: SparkSession, property: str, condition: str
) -> None:
    with pytest.raises(DeltaError) as refused:
        converted(spark, "id INT", "(1)", f"TBLPROPERTIES ({property})")
    assert refused.value.condition == condition


@pytest.mark.parametrize(
    ("given", "fits"), [("", True), ("(q INT)", True), ("(Q INT)", True), ("(q STRING)", False), ("(id INT)", False)]
)  # fmt: skip
def test_partition_columns_are_those_of_the_catalog(spark: SparkSession, given: str, fits: bool) -> None:
    how = ("id INT, q INT", "(1, 2)", "PARTITIONED BY (q)", given and f"PARTITIONED BY {given}")
    if fits:
        assert converted(spark, *how)["partitionColumns"] == ["q"]
    else:
        with pytest.raises(SchemaError) as refused:
            converted(spark, *how)
        assert refused.value.condition == "DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER"
