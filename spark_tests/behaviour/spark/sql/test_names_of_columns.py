"""Columns called like words of SQL: a statement means the column, not the word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from delta_ds.exceptions import DeltaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def table(spark: SparkSession, schema: str) -> str:
    spark.sql("CREATE OR REPLACE TABLE words (id INT, `true` BOOLEAN, `null` INT, `default` INT) USING delta")
    spark.sql("INSERT INTO words VALUES (1, true, 5, 7), (2, false, 6, 8)")
    return "words"


def rows(spark: SparkSession, table: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in spark.table(table).collect())


def test_delete_where_a_column_called_true(spark: SparkSession, table: str) -> None:
    spark.sql("DELETE FROM words WHERE `true`")
    assert rows(spark, table) == [(2, False, 6, 8)]
    spark.sql("DELETE FROM words WHERE true")
    assert rows(spark, table) == []


@pytest.mark.parametrize(
    "condition", ["`true`", "`true` = true", "`null` = 5", "id = 1 AND `null` IS NOT NULL"]
)
def test_replace_where_a_column_called_like_a_literal(
    spark: SparkSession, table: str, condition: str
) -> None:
    spark.sql(f"INSERT INTO words REPLACE WHERE {condition} VALUES (1, true, 5, 9)")
    assert rows(spark, table) == [(1, True, 5, 9), (2, False, 6, 8)]


def test_overwrite_where_a_column_called_like_a_literal(spark: SparkSession, table: str) -> None:
    new = spark.table(table).where("id = 1").withColumn("default", F.lit(9))
    new.writeTo(table).overwrite(F.col("true"))
    assert rows(spark, table) == [(1, True, 5, 9), (2, False, 6, 8)]
    new.writeTo(table).overwrite(F.lit(True))
    assert rows(spark, table) == [(1, True, 5, 9)]


def test_value_of_a_column_called_default(spark: SparkSession, table: str) -> None:
    spark.sql("UPDATE words SET id = `default`")
    assert [row[0] for row in rows(spark, table)] == [7, 8]
    spark.sql(
        "MERGE INTO words USING (SELECT 7 AS key, 70 AS `default`) s ON id = key "
        "WHEN MATCHED THEN UPDATE SET `null` = s.`default`"
    )
    assert [row[2] for row in rows(spark, table)] == [70, 6]


@pytest.mark.parametrize("partitioning", ["", "PARTITIONED BY (c)"])
def test_rows_are_not_replaced_by_values_that_are_padded(
    spark: SparkSession, schema: str, partitioning: str
) -> None:
    spark.sql(f"CREATE OR REPLACE TABLE padded (id INT, c CHAR(4)) USING delta {partitioning}")
    spark.sql("INSERT INTO padded VALUES (1, 'ab'), (2, 'cd')")
    with pytest.raises(DeltaError) as raised:
        spark.sql("INSERT INTO padded REPLACE WHERE c = 'ab' VALUES (5, 'ab')")
    assert raised.value.condition == "DELTA_FAILED_RECOGNIZE_PREDICATE"
    assert rows(spark, "padded") == [(1, "ab  "), (2, "cd  ")]
