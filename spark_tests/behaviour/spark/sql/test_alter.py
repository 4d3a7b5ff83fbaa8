"""ALTER TABLE and its neighbours: what is committed and what is refused, as delta-spark has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    """The name of a table with one row of (a int, b string, s struct<x, y>)."""
    name = f"delta.`{tmp_path}/t`"
    spark.sql(f"CREATE TABLE {name} (a INT, b STRING, s STRUCT<x: INT, y: INT>) USING delta")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'b', named_struct('x', 1, 'y', 2))")
    return name


def last(spark: SparkSession, table: str) -> tuple[str, dict[str, str]]:
    entry: Any = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").first()
    return entry.operation, entry.operationParameters


def names(parameters: dict[str, str]) -> list[str]:
    return [column["name"] for column in json.loads(parameters["columns"])]


def test_replaced_columns_keep_their_values(spark: SparkSession, table: str) -> None:
    spark.sql(
        f"ALTER TABLE {table} REPLACE COLUMNS (s STRUCT<y: INT, x: INT>, b STRING COMMENT 'new', a INT, c INT)"
    )
    operation, parameters = last(spark, table)
    assert (operation, names(parameters)) == ("REPLACE COLUMNS", ["s", "b", "a", "c"])
    assert [tuple(row) for row in spark.sql(f"SELECT * FROM {table}").collect()] == [((2, 1), "b", 1, None)]
    with pytest.raises(PySparkException) as caught:
        spark.sql(f"ALTER TABLE {table} REPLACE COLUMNS (a INT)")
    assert caught.value.getCondition() == "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"


def test_lengths_hold_for_their_fields_after_a_change(spark: SparkSession, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path}/t`"
    spark.sql(f"CREATE TABLE {table} (a VARCHAR(3), s STRUCT<v: VARCHAR(2), n: STRING>) USING delta")
    with pytest.raises(PySparkException) as caught:
        spark.sql(f"ALTER TABLE {table} REPLACE COLUMNS (a VARCHAR(9), s STRUCT<v: VARCHAR(2), n: STRING>)")
    assert caught.value.getCondition() == "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP"
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN s.n FIRST")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN s.w CHAR(2)")
    spark.sql(f"INSERT INTO {table} VALUES ('abc', named_struct('n', 'any length', 'v', 'ab', 'w', 'x'))")
    for too_long in ("'n', 'n', 'v', 'abc', 'w', 'x'", "'n', 'n', 'v', 'ab', 'w', 'xyz'"):
        with pytest.raises(PySparkException) as caught:
            spark.sql(f"INSERT INTO {table} VALUES ('abc', named_struct({too_long}))")
        assert caught.value.getCondition() == "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"
    assert spark.sql(f"SELECT s.n, s.v, s.w FROM {table}").collect() == [("any length", "ab", "x ")]


def test_columns_altered_by_one_statement_are_one_commit(spark: SparkSession, table: str) -> None:
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN a COMMENT 'one', b COMMENT 'two'")
    operation, parameters = last(spark, table)
    # In the order of delta-spark's hash map.
    assert (operation, names(parameters)) == ("CHANGE COLUMNS", ["b", "a"])
    spark.sql(f"ALTER TABLE {table} CHANGE COLUMN b b STRING COMMENT 'x' FIRST")
    operation, parameters = last(spark, table)
    assert (operation, parameters["position"]) == ("CHANGE COLUMN", "FIRST")
    assert json.loads(parameters["column"])["metadata"] == {"comment": "x"}
    entry: Any = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").first()
    assert entry.version == 3


def test_missing_constraint_is_dropped_by_a_commit_that_says_so(spark: SparkSession, table: str) -> None:
    spark.sql(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS nosuch")
    assert last(spark, table) == ("DROP CONSTRAINT", {"name": "nosuch", "existed": "false"})


def test_truncate_is_an_operation_where_there_is_something_to_remove(spark: SparkSession, table: str) -> None:
    spark.sql(f"TRUNCATE TABLE {table}")
    assert last(spark, table)[0] == "TRUNCATE"
    assert spark.sql(f"SELECT * FROM {table}").isEmpty()
    spark.sql(f"TRUNCATE TABLE {table}")
    entry: Any = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").first()
    assert entry.version == 2


def test_retain_counts_for_nothing_but_zero_hours(spark: SparkSession, table: str) -> None:
    spark.sql(f"VACUUM {table} RETAIN 1 HOURS")
    with pytest.raises(PySparkException) as caught:
        spark.sql(f"VACUUM {table} RETAIN 0 HOURS")
    assert caught.value.getCondition() == "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"
    spark.conf.set("spark.databricks.delta.vacuum.retentionWindowIgnore.enabled", "false")
    try:
        with pytest.raises(PySparkException) as caught:
            spark.sql(f"VACUUM {table} RETAIN 1 HOURS")
        assert caught.value.getCondition() == "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"
    finally:
        spark.conf.unset("spark.databricks.delta.vacuum.retentionWindowIgnore.enabled")


def test_unknown_properties_are_taken_where_the_session_allows_them(spark: SparkSession, table: str) -> None:
    unknown = f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.someThing' = '1')"
    with pytest.raises(PySparkException) as caught:
        spark.sql(unknown)
    assert caught.value.getCondition() == "DELTA_UNKNOWN_CONFIGURATION"
    spark.conf.set("spark.databricks.delta.allowArbitraryProperties.enabled", "true")
    try:
        spark.sql(unknown)
    finally:
        spark.conf.unset("spark.databricks.delta.allowArbitraryProperties.enabled")
    assert last(spark, table) == ("SET TBLPROPERTIES", {"properties": '{"delta.someThing":"1"}'})


def test_options_are_stored_and_secrets_are_not(spark: SparkSession, tmp_path: Path) -> None:
    name = f"delta.`{tmp_path}/t`"
    spark.sql(
        f"CREATE TABLE {name} (a INT) USING delta OPTIONS ('some.option' = '5', 'fs.s3a.secret.key' = 'secret')"
    )
    detail: Any = spark.sql(f"DESCRIBE DETAIL {name}").first()
    assert detail.properties == {"some.option": "5", "option.some.option": "5"}
    log = (tmp_path / "t" / "_delta_log" / f"{0:020}.json").read_text()
    assert "secret" not in log


@pytest.mark.parametrize(
    ("layout", "condition"),
    [
        ("PARTITIONED BY (years(d))", "DELTA_OPERATION_NOT_ALLOWED"),
        ("PARTITIONED BY (truncate(2, b))", "DELTA_OPERATION_NOT_ALLOWED"),
        ("CLUSTERED BY (b) INTO 2 BUCKETS", "DELTA_OPERATION_NOT_ALLOWED_DETAIL"),
        ("CLUSTERED BY (b) SORTED BY (d) INTO 2 BUCKETS", "DELTA_OPERATION_NOT_ALLOWED_DETAIL"),
    ],
)
def test_layouts_that_tables_do_not_have_are_refused(
    spark: SparkSession, tmp_path: Path, layout: str, condition: str
) -> None:
    with pytest.raises(PySparkException) as caught:
        spark.sql(f"CREATE TABLE delta.`{tmp_path}/t` (b STRING, d DATE) USING delta {layout}")
    assert caught.value.getCondition() == condition
    assert not (tmp_path / "t").exists()


def test_a_table_does_not_take_the_place_of_a_view(spark: SparkSession) -> None:
    spark.sql("CREATE VIEW a_view AS SELECT 1 AS a")
    try:
        with pytest.raises(PySparkException) as caught:
            spark.sql("CREATE OR REPLACE TABLE a_view (a INT) USING delta")
        assert caught.value.getCondition() == "DELTA_CANNOT_WRITE_INTO_VIEW"
    finally:
        spark.sql("DROP VIEW a_view")


@pytest.mark.skipif(pyspark.__version__ < "4.2", reason="the grammar of Spark 4.1 has no such INSERT")
def test_insert_with_schema_evolution_is_one_commit(spark: SparkSession, table: str) -> None:
    spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {table} BY NAME SELECT 2 AS a, true AS flag")
    entry: Any = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").first()
    assert (entry.version, entry.operation) == (2, "WRITE")
    assert spark.sql(f"SELECT flag FROM {table} WHERE a = 2").collect() == [(True,)]
