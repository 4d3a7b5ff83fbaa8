"""Files have the codec of the option, else of the session, else of the table, whatever writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import InvalidOptionError
from spark_tests.behaviour.spark.session_settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CODEC = "spark.sql.parquet.compression.codec"
_AUTO = {
    "spark.databricks.delta.autoCompact.enabled": "true",
    "spark.databricks.delta.autoCompact.minNumFiles": "2",
}


def _make(path: Path, **properties: str) -> str:
    log = DeltaLog(path)
    for number in range(3):
        rows = pa.table({"id": [number, number + 10], "p": [number % 2] * 2})
        log.write(rows, options={"partitionBy": "p", **(properties if number == 0 else {})})
    return str(path)


def _merge(spark: SparkSession, table: DeltaTable) -> None:
    source = spark.sql("SELECT 0L AS id, 0L AS p UNION ALL SELECT 77L, 7L").alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id")
    merge.whenMatchedUpdate(set={"p": "5"}).whenNotMatchedInsertAll().execute()


def _append(spark: SparkSession, path: str) -> None:
    rows = spark.range(1).selectExpr("id + 50 AS id", "1L AS p").coalesce(1)
    rows.write.format("pydelta").mode("append").save(path)


WAYS: dict[str, Callable[[SparkSession, DeltaTable, str], Any]] = {
    "append": lambda spark, table, path: _append(spark, path),
    "UPDATE": lambda spark, table, path: table.update("id = 0", {"p": "6"}),
    "DELETE": lambda spark, table, path: table.delete("id = 0"),
    "MERGE": lambda spark, table, path: _merge(spark, table),
    "OPTIMIZE": lambda spark, table, path: table.optimize().executeCompaction(),
    "Z-order": lambda spark, table, path: table.optimize().executeZOrderBy("id"),
}


def _new_codecs(path: str, act: Callable[[], Any]) -> set[str]:
    def files() -> set[Path]:
        return {file for file in Path(path).rglob("*.parquet") if "_delta_log" not in file.parts}

    before = files()
    act()
    return {pq.read_metadata(file).row_group(0).column(0).compression for file in files() - before}


@pytest.mark.spark
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("table", "session", "codec"),
    [(None, "gzip", "GZIP"), ("snappy", "gzip", "GZIP"), ("snappy", None, "SNAPPY")],
)
def test_a_file_has_the_codec_of_the_session_else_of_the_table(
    spark: SparkSession, tmp_path: Path, way: str, table: str | None, session: str | None, codec: str
) -> None:
    path = _make(tmp_path / "t", **({} if table is None else {"delta.parquet.compression.codec": table}))
    with session_settings(spark, {} if session is None else {_CODEC: session}):
        found = _new_codecs(path, lambda: WAYS[way](spark, DeltaTable.forPath(spark, path), path))
    assert found == {codec}


@pytest.mark.spark
@pytest.mark.parametrize("native", ["true", "false"])
def test_compaction_after_a_write_has_the_codec_of_the_session(
    spark: SparkSession, tmp_path: Path, native: str
) -> None:
    path = _make(tmp_path / "t")
    settings = {**_AUTO, _CODEC: "gzip", "spark.pydelta.nativeWrite": native}
    with session_settings(spark, settings):
        assert _new_codecs(path, lambda: _append(spark, path)) == {"GZIP"}
    assert DeltaLog(path).history(1)[0]["operation"] == "OPTIMIZE"


@pytest.mark.spark
def test_a_codec_that_is_not_written_is_refused_where_files_are_and_nowhere_else(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = _make(tmp_path / "t")
    table = DeltaTable.forPath(spark, path)
    with session_settings(spark, {_CODEC: "lzo"}):
        table.delete("p = 1")
        table.delete("id = 99 AND p = 7")
        for way in ("UPDATE", "DELETE", "MERGE", "OPTIMIZE", "append"):
            with pytest.raises(InvalidOptionError, match="lzo"):
                WAYS[way](spark, table, path)
    log = DeltaLog(path)
    assert [entry["operation"] for entry in log.history(2)] == ["DELETE", "WRITE"]
