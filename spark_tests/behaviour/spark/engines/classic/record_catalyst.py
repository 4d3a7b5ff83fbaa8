"""Writes `catalyst_recorded.json`: the filters of every condition as a scan gets them, and the rows they keep.

python -m spark_tests.behaviour.spark.engines.classic.record_catalyst
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from delta_ds.spark.engines.classic.catalyst_nodes import nodes_of
from spark_tests.behaviour.spark.engines.classic import catalyst_cases as cases

RECORDED = Path(__file__).with_name("catalyst_recorded.json")
_NOT_READ = ("exprId", "qualifier", "metadata")


def scan_filters(frame: DataFrame) -> Iterator[Any]:
    """The partition filters and data filters of every file scan in the plan."""
    leaves = frame._jdf.queryExecution().sparkPlan().collectLeaves()  # type: ignore[operator]
    for leaf in map(leaves.apply, range(leaves.size())):
        if leaf.getClass().getSimpleName() == "FileSourceScanExec":
            for filters in (leaf.partitionFilters(), leaf.dataFilters()):
                yield from map(filters.apply, range(filters.size()))


def written(spark: SparkSession, folder: str) -> DataFrame:
    """The rows of the cases as partitioned Parquet files."""
    rows = cases.rows()
    schema = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    frame = spark.createDataFrame(rows, schema=schema)  # type: ignore[call-overload]
    frame.coalesce(1).write.partitionBy(*cases.PARTITIONED_BY).parquet(folder)
    return spark.read.schema(schema).parquet(folder)


def renamed(frame: DataFrame) -> dict[str, DataFrame]:
    """Frames that name the fields of a struct otherwise, as scans with column mapping do, and filter by them."""
    inner = F.when(F.col("st.`In ner`").isNotNull(), F.struct(F.col("st.`In ner`.q").alias("qq")))
    outer = F.struct(F.col("st.a").alias("xx"), inner.alias("inn"))
    guarded: Column = F.when(F.col("st").isNotNull(), outer)
    cast = F.col("st").cast("struct<aa: int, bb: struct<qq: string, ww: double>>")
    both = frame.select("*", guarded.alias("s2"), cast.alias("s3"))
    conditions = [
        "s2.xx > 0", "s2.inn.qq = 'a'", "NOT (s2.inn.qq = 'a')", "s2.inn.qq IS NULL",
        "s2 IS NULL OR s2.xx IS NULL", "s2.inn IS NULL", "s2.xx IN (1, 3)", "s2.xx <=> 3",
        "NOT (s2.xx <=> 3)", "s3.bb.qq = 'a' AND s3.aa <=> 3", "s3.bb.ww > 1",
        "NOT (s3.aa > 0 OR s2.inn.qq > 'a')", "if(isnotnull(s2), s2.xx, NULL) = 3",
        "coalesce(s2.xx, s3.aa) = 3",
    ]  # fmt: skip
    return {f"renamed: {c}": both.where(c) for c in conditions}


def joined(spark: SparkSession, frame: DataFrame) -> dict[str, DataFrame]:
    """Filters that hold subqueries, or speak of what is not in the files."""
    frame.createOrReplaceTempView("catalyst_cases")
    few = F.broadcast(spark.range(3).selectExpr("CAST(id AS INT) AS k", "id AS v").where("v = 1"))
    sql = {
        "scalar subquery": "l > (SELECT max(id) FROM range(3)) OR i = 3",
        "subquery under NOT": "NOT (i = (SELECT CAST(max(id) AS INT) FROM range(3)) AND b)",
        "IN subquery": "p IN (SELECT CAST(id AS INT) FROM range(3)) AND i = 3",
    }
    return {
        "dynamic pruning": frame.join(few, F.col("p") == F.col("k")).where("i = 3").select(frame["*"]),
        "metadata column": frame.where("_metadata.file_size > 3 AND i = 3"),
        **{name: spark.sql(f"SELECT * FROM catalyst_cases WHERE {text}") for name, text in sql.items()},
    }


def record(spark: SparkSession, folder: str) -> Iterator[dict[str, Any]]:
    frame = written(spark, folder)
    for condition, ids in _kept(frame, cases.CONDITIONS):
        yield {"condition": condition, "kept": ids, "filters": _filters(frame.where(condition))}
    for name, other in {**renamed(frame), **joined(spark, frame)}.items():
        yield {"condition": name, "kept": _ids(other), "filters": _filters(other)}
    spark.conf.set("spark.sql.ansi.enabled", "false")
    for condition in cases.LEGACY_CONDITIONS:
        other = frame.where(condition)
        yield {"condition": f"legacy: {condition}", "kept": _ids(other), "filters": _filters(other)}


def _kept(frame: DataFrame, conditions: list[str]) -> Iterator[tuple[str, list[int] | None]]:
    """The rows that each condition keeps, None where Spark raises: many conditions in one job."""
    try:
        rows = frame.selectExpr("id", *[f"({c}) AS c{i}" for i, c in enumerate(conditions)]).collect()
    except PySparkException:
        if len(conditions) == 1:
            yield conditions[0], None
            return
        half = len(conditions) // 2
        yield from _kept(frame, conditions[:half])
        yield from _kept(frame, conditions[half:])
        return
    for i, condition in enumerate(conditions):
        yield condition, sorted(row["id"] for row in rows if row[f"c{i}"])


def _ids(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())


def _filters(frame: DataFrame) -> list[list[dict[str, Any]]]:
    return [[_short(node) for node in nodes_of(f)] for f in scan_filters(frame)]


def _short(node: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in node.items() if k not in _NOT_READ and not (isinstance(v, list) and k != "hset")}


def main() -> None:
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    settings = {
        "spark.sql.session.timeZone": cases.ZONE,
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
    }
    spark = builder.config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    with tempfile.TemporaryDirectory() as folder:
        lines = [json.dumps(entry, ensure_ascii=False) for entry in record(spark, f"{folder}/rows")]
    text = json.dumps({"spark": spark.version})
    RECORDED.write_text("[\n" + ",\n".join([text, *lines]) + "\n]\n", encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main()
