"""Spark plans a query on tables of ours as on the same Parquet files, but for what the log itself answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from delta_ds.spark.engines.classic.load import load
from delta_ds.spark.session.writes.write import insert_rows

pytestmark = pytest.mark.long

_TABLES = {
    "fact": """SELECT id, cast(id % 20 AS int) AS p, id % 1000 AS k, cast(id AS string) AS t, id * 1.5D AS v,
        named_struct('a', id, 'b', 'b', 'c', named_struct('d', id, 'e', id)) AS s,
        array(named_struct('x', id, 'y', id)) AS items FROM range(20000)""",
    "dim": "SELECT cast(id AS int) AS p, concat('n', id) AS name FROM range(20)",
    "other": "SELECT id AS k, id % 7 AS g FROM range(1000)",
}
_QUERIES = {
    "dynamic partition pruning by a join": "SELECT id, name FROM fact JOIN dim USING (p) WHERE name = 'n3'",
    "dynamic partition pruning by IN": "SELECT count(t) FROM fact WHERE p IN (SELECT p FROM dim WHERE name = 'n3')",
    "dynamic partition pruning by a semi join": "SELECT id FROM fact SEMI JOIN dim ON fact.p = dim.p AND name > 'n3'",
    "a join": "SELECT id, g FROM fact JOIN other USING (k)",
    "a join with a condition on the small side": "SELECT id FROM fact JOIN other USING (k) WHERE g = 3",
    "a sort-merge join": "SELECT /*+ MERGE(other) */ id FROM fact JOIN other USING (k) WHERE g = 3",
    "EXISTS": "SELECT id FROM fact WHERE EXISTS (SELECT 1 FROM other WHERE other.k = fact.k AND g = 1)",
    "fields of structs": "SELECT s.a, s.c.e FROM fact WHERE s.a > 5",
    "a field of structs in an array": "SELECT items.x FROM fact",
    "an exploded field": "SELECT item.x FROM fact LATERAL VIEW explode(items) AS item",
    "one aggregate twice": "WITH x AS (SELECT k, sum(v) n FROM fact GROUP BY k) SELECT * FROM x JOIN x AS y USING (k)",
    "one subquery twice": "SELECT id FROM fact WHERE v > (SELECT avg(v) FROM fact) AND id < (SELECT avg(v) FROM fact)",
    "subqueries that Spark merges": "SELECT (SELECT avg(v) FROM fact), (SELECT sum(k) FROM fact)",
    "the last rows by a column": "SELECT id, t FROM fact ORDER BY id DESC LIMIT 3",
    "the first rows of a partition": "SELECT id, t FROM fact WHERE p = 3 ORDER BY id LIMIT 3",
    "groups by partition": "SELECT p, sum(v) FROM fact GROUP BY p",
    "a window": "SELECT id, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM fact",
    "conditions": "SELECT id FROM fact WHERE t IS NOT NULL AND t LIKE '12%' AND k IN (1, 2, 3)",
    "a partition that is not there": "SELECT id FROM fact WHERE p = 77",
    "no rows": "SELECT id FROM fact WHERE 1 = 0",
}
_SETTINGS: dict[str, dict[str, str]] = {
    "by default": {},
    "with runtime filters": {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "1b",
    },
    "without adaptive execution": {"spark.sql.adaptive.enabled": "false"},
}
# What the two kinds of scan say of themselves, and the numbers that Spark counts through all queries.
_TEXTS = [
    (r"plan_id=\d+|\[id=#\d+\]", ""),
    (r"Batched: .*?PushedFilters: ", "PushedFilters: "),
    (r"FileScan parquet (pydelta\.\S+@v0)?\[", "FileScan ["),
    (r"(#\d+)L\b", r"\1"),
    (r"file:/\S*", ""),
]


@contextmanager
def _set(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name) for name in settings}
    for name, text in settings.items():
        spark.conf.set(name, text)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@pytest.fixture(scope="module")
def folders(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By format the folder of the same tables, in files of about the same size."""
    found = {fmt: tmp_path_factory.mktemp(fmt) for fmt in ("parquet", "pydelta")}
    for fmt, folder in found.items():
        for name, query in _TABLES.items():
            rows = spark.sql(query)
            if name == "fact":
                rows = rows.repartition(4, "p")
            writer = rows.write.format(fmt).option("compression", "zstd")
            (writer.partitionBy("p") if name == "fact" else writer).save(str(folder / name))
    return found


def _plan(spark: SparkSession, folder: Path, query: str) -> tuple[str, int]:
    """The plan that ran, without what only names the tables, and how many rows it found."""
    for name in _TABLES:
        path = str(folder / name)
        if folder.name.startswith("pydelta"):
            load(spark, {"path": path}, insert=insert_rows).createOrReplaceTempView(name)
        else:
            spark.read.parquet(path).createOrReplaceTempView(name)
    try:
        frame = spark.sql(query)
        count = len(frame.collect())
        text: str = frame._jdf.queryExecution().executedPlan().toString()
    finally:
        for name in _TABLES:
            spark.catalog.dropTempView(name)
    for pattern, replacement in _TEXTS:
        text = re.sub(pattern, replacement, text)
    numbers: dict[str, str] = {}
    return re.sub(r"#\d+", lambda found: numbers.setdefault(found[0], f"#{len(numbers)}"), text), count


@pytest.mark.sampled
@pytest.mark.parametrize("settings", _SETTINGS)
@pytest.mark.parametrize("query", _QUERIES)
def test_plan_is_that_of_parquet_files(
    spark: SparkSession, folders: dict[str, Path], query: str, settings: str
) -> None:
    with _set(spark, _SETTINGS[settings]):
        expected, found = (_plan(spark, folders[fmt], _QUERIES[query]) for fmt in ("parquet", "pydelta"))
    assert found == expected


@pytest.mark.parametrize(
    ("query", "settings", "node"),
    [
        ("dynamic partition pruning by a join", "by default", "SubqueryBroadcast dynamicpruning"),
        ("a join", "by default", "BroadcastHashJoin"),
        ("a join with a condition on the small side", "with runtime filters", "might_contain"),
        ("one aggregate twice", "without adaptive execution", "ReusedExchange"),
        ("one subquery twice", "without adaptive execution", "ReusedSubquery"),
        ("subqueries that Spark merges", "without adaptive execution", "mergedValue"),
        ("fields of structs", "by default", "struct<s:struct<a:bigint,c:struct<e:bigint>>>"),
        ("a field of structs in an array", "by default", "struct<items:array<struct<x:bigint>>>"),
        ("the last rows by a column", "by default", "TakeOrderedAndProject"),
    ],
)
def test_plan_has_what_the_query_is_there_for(
    spark: SparkSession, folders: dict[str, Path], query: str, settings: str, node: str
) -> None:
    """Otherwise two plans without it would be equal."""
    with _set(spark, _SETTINGS[settings]):
        plan, _ = _plan(spark, folders["pydelta"], _QUERIES[query])
    assert node in plan


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM fact",
        "SELECT min(id), max(id) FROM fact",
        "SELECT max(p) FROM fact",
        "SELECT (SELECT max(k) FROM fact) AS n",
    ],
)
def test_aggregates_that_the_log_knows_read_no_file(
    spark: SparkSession, folders: dict[str, Path], query: str
) -> None:
    plan, rows = _plan(spark, folders["pydelta"], query)
    assert "FileScan" not in plan
    assert rows == 1
