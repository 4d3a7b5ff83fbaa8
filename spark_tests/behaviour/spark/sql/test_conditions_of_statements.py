"""Statements are refused by the condition that delta-spark names, and their history has its parameters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from delta_ds.exceptions import DeltaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    spark.sql("CREATE SCHEMA conditions_of_statements")
    spark.sql("USE conditions_of_statements")
    spark.sql("CREATE TABLE t (id INT, k STRING) USING delta PARTITIONED BY (k)")
    spark.sql("CREATE TABLE u SHALLOW CLONE t")
    yield
    spark.sql("USE default")
    spark.sql("DROP SCHEMA conditions_of_statements CASCADE")


@pytest.fixture
def bare(spark: SparkSession, tables: None) -> Iterator[None]:
    """A table without columns."""
    spark.sql("CREATE TABLE bare USING delta")
    yield
    spark.sql("DROP TABLE bare")


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        (
            "CREATE TABLE n (a INT) USING delta CLUSTER BY (zz)",
            "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED",
        ),
        (
            "CREATE TABLE n USING delta CLUSTER BY (zz) AS SELECT 1 AS a",
            "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED",
        ),
        (
            "CREATE TABLE n (a STRUCT<x: INT>) USING delta CLUSTER BY (a.y)",
            "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED",
        ),
        ("CREATE TABLE n (a INT) USING delta CLUSTER BY (a, A)", "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY"),
        ("CREATE TABLE n (a INT) USING delta PARTITIONED BY (a)", "ALL_PARTITION_COLUMNS_NOT_ALLOWED"),
        (
            "CREATE TABLE n USING delta PARTITIONED BY (a) AS SELECT 1 AS a",
            "ALL_PARTITION_COLUMNS_NOT_ALLOWED",
        ),
        (
            "CREATE TABLE n USING delta AS SELECT NULL AS x",
            "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_ALL_VOID_COLUMNS",
        ),
        (
            "CREATE OR REPLACE TABLE t USING delta AS SELECT NULL AS x",
            "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_ALL_VOID_COLUMNS",
        ),
        (
            "CREATE TABLE n (a INT) USING delta TBLPROPERTIES ('delta.feature.clustering' = 'supported')",
            "DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
        ),
        (
            "ALTER TABLE t ADD CONSTRAINT c CHECK (id IN (SELECT 1))",
            "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT",
        ),
        (
            "ALTER TABLE t ADD CONSTRAINT c CHECK (row_number() OVER (ORDER BY id) > 1)",
            "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT",
        ),
        ("ALTER TABLE t ADD CONSTRAINT c CHECK (id > )", "PARSE_SYNTAX_ERROR"),
        ("CREATE TABLE u SHALLOW CLONE t", "DELTA_TABLE_ALREADY_EXISTS"),
        ("INSERT INTO t BY NAME SELECT 1 AS nope", "DELTA_METADATA_MISMATCH"),
    ],
)
def test_a_statement_is_refused_by_the_condition(
    spark: SparkSession, tables: None, statement: str, condition: str
) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        spark.sql(statement).collect()
    error: Any = caught.value
    assert (error.condition if isinstance(error, DeltaError) else error.getCondition()) == condition
    assert spark.sql("SHOW TABLES LIKE 'n'").count() == 0


def test_rows_that_break_a_subquery_in_a_check_are_told_first(spark: SparkSession, tables: None) -> None:
    spark.sql("CREATE TABLE q USING delta AS SELECT 7 AS id")
    for condition in ("id IN (SELECT 1)", "id < (SELECT 3)"):
        with pytest.raises(Exception, match="DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"):
            spark.sql(f"ALTER TABLE q ADD CONSTRAINT c CHECK ({condition})")
    with pytest.raises(Exception, match="DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT"):
        spark.sql("ALTER TABLE q ADD CONSTRAINT c CHECK (id IN (SELECT 7))")
    assert len(_history(spark, "q")) == 1


def _history(spark: SparkSession, table: str) -> list[tuple[str, dict[str, Any]]]:
    rows = spark.sql(f"DESCRIBE HISTORY {table}").orderBy("version").collect()
    return [(row["operation"], row["operationParameters"]) for row in rows]


def test_dropping_row_tracking_says_all_that_it_sets(spark: SparkSession, tables: None) -> None:
    spark.sql("CREATE TABLE r (id INT) USING delta TBLPROPERTIES ('delta.feature.rowTracking' = 'supported')")
    spark.sql("ALTER TABLE r DROP FEATURE rowTracking")
    ((_, set_),) = [entry for entry in _history(spark, "r") if entry[0] == "SET TBLPROPERTIES"]
    assert json.loads(set_["properties"]) == {
        "delta.enableRowTracking": "false",
        "delta.rowTrackingSuspended": "true",
    }


def test_an_update_without_a_condition_says_that_it_has_none(spark: SparkSession, tables: None) -> None:
    spark.sql("CREATE TABLE a (id INT) USING delta")
    spark.sql("INSERT INTO a VALUES (1)")
    spark.sql("UPDATE a SET id = 2")
    assert _history(spark, "a")[-1] == ("UPDATE", {"predicate": "[]"})


@pytest.mark.parametrize("columns", ["{id} AS id, {s} AS s", "{s} AS s, {id} AS id"])
def test_fields_of_structs_go_by_place_where_anything_is_cast_or_columns_are_listed(
    spark: SparkSession, tables: None, columns: str
) -> None:
    spark.sql("CREATE OR REPLACE TABLE s (id INT, s STRUCT<a: INT, b: STRING>) USING delta")
    listed = "id, s" if columns.startswith("{id}") else "s, id"

    def insert(how: str, number: str, struct: str) -> tuple[Any, ...]:
        rows = columns.format(id=number, s=f"named_struct({struct})")
        spark.sql(f"INSERT OVERWRITE s {how} SELECT {rows}").collect()
        (found,) = spark.table("s").collect()
        return (found["id"], tuple(found["s"]))

    assert insert("BY NAME", "1", "'b', 'x', 'a', 1") == (1, (1, "x"))
    assert insert("BY NAME", "2L", "'b', 1, 'a', 'y'") == (2, (1, "y"))
    assert insert("BY NAME", "3", "'b', 1, 'a', 'z'") == (3, (1, "z"))
    assert insert(f"({listed})", "4", "'b', 1, 'a', 'w'") == (4, (1, "w"))
    for how, number, struct in (
        ("BY NAME", "1L", "'b', 'x', 'a', 1"),
        ("BY NAME", "1", "'b', 'x', 'a', 1L"),
        (f"({listed})", "1", "'b', 'x', 'a', 1"),
    ):
        with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
            insert(how, number, struct)


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("INSERT INTO bare SELECT * FROM bare", "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_NO_COLUMNS"),
        ("INSERT OVERWRITE bare SELECT * FROM bare", "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_NO_COLUMNS"),
        (
            "MERGE INTO bare USING (SELECT 1 AS a) s ON FALSE WHEN NOT MATCHED THEN INSERT *",
            "DELTA_MERGE_INTO_EMPTY_SCHEMA_TARGET",
        ),
        ("CREATE TABLE n USING delta AS SELECT * FROM bare", "DELTA_EMPTY_DATA"),
    ],
)
def test_a_table_without_columns_takes_no_rows_without_columns(
    spark: SparkSession, bare: None, statement: str, condition: str
) -> None:
    with pytest.raises(DeltaError) as caught:
        spark.sql(statement).collect()
    assert caught.value.condition == condition
    assert [row.version for row in spark.sql("DESCRIBE HISTORY bare").collect()] == [0]


def test_a_view_of_a_table_without_columns_is_made_and_its_rows_are_refused(
    spark: SparkSession, bare: None
) -> None:
    spark.sql("CREATE VIEW v AS SELECT * FROM bare")
    assert spark.table("v").columns == []
    with pytest.raises(Exception, match="DELTA_READ_TABLE_WITHOUT_COLUMNS"):
        spark.table("v").collect()


def test_a_table_of_another_format_replaces_one_without_columns(spark: SparkSession, bare: None) -> None:
    spark.range(3).write.format("parquet").mode("overwrite").saveAsTable("bare")
    assert sorted(row.id for row in spark.table("bare").collect()) == [0, 1, 2]


@pytest.mark.parametrize("verb", ["REPLACE", "CREATE OR REPLACE"])
def test_a_table_of_another_format_is_not_replaced_by_a_delta_table(
    spark: SparkSession, tables: None, verb: str
) -> None:
    spark.range(3).write.format("parquet").mode("overwrite").saveAsTable("of_parquet")
    with pytest.raises(DeltaError, match="is not a Delta table. Please drop this table first") as caught:
        spark.sql(f"{verb} TABLE of_parquet (a INT) USING delta").collect()
    assert caught.value.condition == "DELTA_NOT_A_DELTA_TABLE"
    assert spark.table("of_parquet").count() == 3
