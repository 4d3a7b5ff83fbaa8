"""Statements on views: one that shows a table as it is stands for it, any other is refused.

A statement changes the rows that the view shows and the condition selects, or none.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import UnsupportedOperationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 10], pa.int32()),
        "v": pa.array([10, 2, 30, 4], pa.int32()),
        "s": ["a", "b", "c", "d"],
        "st": [{"a": 1}, None, {"a": 3}, {"a": 4}],
    }
)
# Queries over {t} that show all of it; and some that do not.
WHOLE = {
    "star": "SELECT * FROM {t}",
    "columns": "SELECT id, v, s, st FROM {t}",
    "other order": "SELECT st, v, s, id FROM {t}",
    "other case": "SELECT ID, V AS v, s AS S, st FROM {t}",
    "alias": "SELECT q.* FROM {t} q",
    "subquery": "SELECT * FROM (SELECT id, v, s, st FROM {t}) q",
    "there and back": "SELECT x AS id, v, s, st FROM (SELECT id AS x, 1 AS one, v, s, st FROM {t}) q",
    "cast to its own type": "SELECT id, CAST(v AS INT) v, s, st FROM {t}",
}
NOT_WHOLE = {
    "cast": "SELECT id, CAST(v AS STRING) v, s, st FROM {t}",
    "cast of a key": "SELECT CAST(id AS STRING) id, v, s, st FROM {t}",
    "wider cast": "SELECT id, CAST(v AS BIGINT) v, s, st FROM {t}",
    "narrower cast": "SELECT CAST(id AS TINYINT) id, v, s, st FROM {t}",
    "cast of a struct": "SELECT id, v, s, CAST(st AS STRUCT<a: STRING>) st FROM {t}",
    "computed": "SELECT id + 1 AS id, v, s, st FROM {t}",
    "swapped": "SELECT v AS id, id AS v, s, st FROM {t}",
    "renamed": "SELECT id AS x, id, v, s, st FROM {t}",
    "twice": "SELECT id, v, s, st, id AS id2 FROM {t}",
    "one for another": "SELECT id, id AS v, s, st FROM {t}",
    "fewer columns": "SELECT id, v FROM {t}",
    "more columns": "SELECT *, 1 AS c FROM {t}",
    "condition": "SELECT * FROM {t} WHERE id > 1",
    "union": "SELECT * FROM {t} UNION ALL SELECT * FROM {t}",
    "join": "SELECT a.* FROM {t} a JOIN {t} b ON a.id = b.id",
    "limit": "SELECT * FROM {t} LIMIT 2",
    "distinct": "SELECT DISTINCT id, v, s FROM {t}",
    "groups": "SELECT id, max(v) v FROM {t} GROUP BY id",
}
Statement = Callable[[str], str]
STATEMENTS: dict[str, Statement] = {
    "delete": lambda view: f"DELETE FROM {view} WHERE v > 5 AND {view}.id < 9",
    "update": lambda view: f"UPDATE {view} SET s = concat(s, '!') WHERE v > 5 AND id < 9",
    "merge": lambda view: (
        f"MERGE INTO {view} USING (SELECT 1 AS one) u ON {view}.v > 5 AND {view}.id < 9 "
        "WHEN MATCHED THEN UPDATE SET s = concat(s, '!')"
    ),
}


@pytest.fixture
def path(tmp_path: Path) -> str:
    DeltaLog(tmp_path / "t").write(ROWS)
    return str(tmp_path / "t")


def rows(path: str) -> list[dict[str, Any]]:
    return DeltaLog(path).snapshot().scan().to_arrow().sort_by("id").to_pylist()


def changed(path: str, kind: str) -> list[int]:
    """The ids of the rows that a statement has changed, which changed as it says."""
    before, after = {row["id"]: row for row in ROWS.to_pylist()}, {row["id"]: row for row in rows(path)}
    if kind == "delete":
        assert all(after[key] == before[key] for key in after)
        return sorted(before.keys() - after.keys())
    assert all(row == {**before[key], "s": row["s"]} for key, row in after.items())
    return sorted(key for key, row in after.items() if row["s"] == f"{before[key]['s']}!")


def selected(spark: SparkSession, view: str) -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {view} WHERE v > 5 AND id < 9").collect())


def check_changes(spark: SparkSession, path: str, view: str, kind: str) -> None:
    wanted = selected(spark, view)
    spark.sql(STATEMENTS[kind](view)).collect()
    assert changed(path, kind) == wanted == [1, 3]


@pytest.mark.parametrize(("number", "name"), list(enumerate(WHOLE)))
def test_a_view_of_all_of_a_table_stands_for_it(
    spark: SparkSession, path: str, name: str, number: int
) -> None:
    spark.sql(f"CREATE OR REPLACE TEMP VIEW whole AS {WHOLE[name].format(t=f'delta.`{path}`')}")
    check_changes(spark, path, "whole", list(STATEMENTS)[number % 3])


@pytest.mark.parametrize("name", NOT_WHOLE)
def test_another_view_is_refused_and_nothing_changes(spark: SparkSession, path: str, name: str) -> None:
    spark.sql(f"CREATE OR REPLACE TEMP VIEW part AS {NOT_WHOLE[name].format(t=f'delta.`{path}`')}")
    for statement in STATEMENTS.values():
        with pytest.raises(
            UnsupportedOperationError, match=r"part is a view that shows some rows"
        ) as refused:
            spark.sql(statement("part"))
        assert refused.value.condition == "DELTA_UNSUPPORTED_VIEW_TARGET"
    assert DeltaLog(path).snapshot().version == 0


# --- views of frames


Frame = Callable[["SparkSession", str], "DataFrame"]


def load(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    return spark.read.format("delta").options(**options).load(path)


WHOLE_FRAMES: dict[str, Frame] = {
    "loaded": load,
    "portable": lambda spark, path: load(spark, path, maxPartitionBytes=10_000_000),
    "chosen": lambda spark, path: load(spark, path).select("st", "id", "v", "s"),
    "aliased": lambda spark, path: load(spark, path).alias("q"),
    "of DeltaTable": lambda spark, path: DeltaTable.forPath(spark, path).toDF(),
    "of SQL": lambda spark, path: spark.sql(f"SELECT * FROM delta.`{path}`"),
}
PARTS: dict[str, Frame] = {
    "filtered": lambda spark, path: load(spark, path).where("id > 1"),
    "fewer columns": lambda spark, path: load(spark, path).select("id", "v", "s"),
    "fewer columns by a schema": lambda spark, path: (
        spark.read.format("delta").schema("id INT, v INT, s STRING").load(path)
    ),
    "cast": lambda spark, path: load(spark, path).selectExpr("id", "CAST(v AS STRING) v", "s", "st"),
    "limited": lambda spark, path: load(spark, path).limit(2),
}


@pytest.mark.parametrize(("number", "name"), list(enumerate(WHOLE_FRAMES)))
def test_a_view_of_a_loaded_frame_is_its_table(
    spark: SparkSession, path: str, name: str, number: int
) -> None:
    WHOLE_FRAMES[name](spark, path).createOrReplaceTempView("framed")
    # What is written meanwhile is in the view as well.
    DeltaLog(path).write(ROWS.slice(3, 1), "overwrite", {"replaceWhere": "id = 10"})
    check_changes(spark, path, "framed", list(STATEMENTS)[number % 3])


def test_a_view_of_a_view_of_a_loaded_frame_is_its_table(spark: SparkSession, path: str) -> None:
    load(spark, path).createOrReplaceTempView("inside")
    spark.sql("CREATE OR REPLACE TEMP VIEW outside AS SELECT * FROM inside")
    check_changes(spark, path, "outside", "delete")


@pytest.mark.parametrize("name", PARTS)
def test_a_view_of_a_part_of_a_frame_is_refused(spark: SparkSession, path: str, name: str) -> None:
    PARTS[name](spark, path).createOrReplaceTempView("part")
    for statement in STATEMENTS.values():
        with pytest.raises(UnsupportedOperationError, match="DELTA_UNSUPPORTED_VIEW_TARGET"):
            spark.sql(statement("part"))
    assert DeltaLog(path).snapshot().version == 0


@pytest.mark.parametrize("mapping", ["none", "name"])
@pytest.mark.parametrize("options", [{}, {"maxPartitionBytes": 10_000_000}])
def test_a_view_of_an_older_version_is_refused(
    spark: SparkSession, tmp_path: Path, mapping: str, options: dict[str, Any]
) -> None:
    path = str(tmp_path / mapping)
    DeltaLog(path).write(ROWS, options={"delta.columnMapping.mode": mapping})
    DeltaLog(path).write(ROWS)
    load(spark, path, versionAsOf=0, **options).createOrReplaceTempView("older")
    for statement in STATEMENTS.values():
        with pytest.raises(UnsupportedOperationError, match="newest version only") as refused:
            spark.sql(statement("older"))
        assert refused.value.condition == "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION"
    assert DeltaLog(path).snapshot().version == 1


def test_a_view_of_the_catalog_goes_by_the_types_that_the_table_has_now(
    spark: SparkSession, schema: str
) -> None:
    properties = "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    spark.sql(f"CREATE OR REPLACE TABLE typed (id INT, v INT) USING delta {properties}")
    spark.sql("INSERT INTO typed VALUES (1, 10), (2, 2)")
    spark.sql("CREATE OR REPLACE VIEW kept AS SELECT * FROM typed")
    spark.sql("DELETE FROM kept WHERE v = 2")
    assert [row.id for row in spark.table("typed").collect()] == [1]
    # From here on it casts the wider column to what it was.
    spark.sql("ALTER TABLE typed ALTER COLUMN v TYPE BIGINT")
    with pytest.raises(UnsupportedOperationError, match="DELTA_UNSUPPORTED_VIEW_TARGET"):
        spark.sql("DELETE FROM kept WHERE v = 10")
    spark.sql("DROP VIEW kept")
