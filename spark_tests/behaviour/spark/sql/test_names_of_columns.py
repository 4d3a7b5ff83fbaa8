"""Columns called like words of SQL: a statement means the column, not the word."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from delta_ds import DeltaTable
from delta_ds.exceptions import DeltaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MERGE = "MERGE INTO cases t USING (SELECT 1 AS id) s ON t.id = s.id "


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


@pytest.fixture
def told_apart(spark: SparkSession, schema: str) -> Iterator[str]:
    spark.sql("CREATE OR REPLACE TABLE cases (id INT, Val INT, s STRUCT<A: INT>) USING delta")
    spark.sql("INSERT INTO cases VALUES (1, 1, named_struct('A', 1))")
    spark.conf.set("spark.sql.caseSensitive", "true")
    yield "cases"
    spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("UPDATE cases SET val = 5", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("UPDATE cases SET s.a = 5", "FIELD_NOT_FOUND"),
        (_MERGE + "WHEN MATCHED THEN UPDATE SET val = 5", "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
        (_MERGE + "WHEN NOT MATCHED THEN INSERT (ID) VALUES (5)", "DELTA_MERGE_UNRESOLVED_EXPRESSION"),
    ],
)
def test_a_column_in_another_case_is_not_there_in_a_session_that_tells_them_apart(
    spark: SparkSession, told_apart: str, statement: str, condition: str
) -> None:
    with pytest.raises(DeltaError) as caught:
        spark.sql(statement)
    assert caught.value.condition == condition
    spark.conf.set("spark.sql.caseSensitive", "false")
    spark.sql(statement)


def test_values_of_columns_in_their_own_case(spark: SparkSession, told_apart: str) -> None:
    spark.sql("UPDATE cases SET cases.Val = 5, s.A = 6")
    spark.sql(_MERGE + "WHEN MATCHED THEN UPDATE SET t.id = 2")
    assert [row.asDict(True) for row in spark.table("cases").collect()] == [
        {"id": 2, "Val": 5, "s": {"A": 6}}
    ]
    with pytest.raises(DeltaError):
        DeltaTable.forName(spark, "cases").update(set={"VAL": "1"})


_FORMS = ["named", "{0}.named", "spark_catalog.{0}.named"]


@pytest.fixture
def named(spark: SparkSession, schema: str) -> str:
    spark.sql(
        "CREATE OR REPLACE TABLE named USING delta AS SELECT * FROM VALUES (1, 1), (2, 2), (3, 3) AS r(id, v)"
    )
    return schema


@pytest.mark.parametrize("target", _FORMS)
@pytest.mark.parametrize("qualifier", _FORMS)
def test_columns_of_statements_are_known_by_every_form_of_the_name_of_their_table(
    spark: SparkSession, named: str, target: str, qualifier: str
) -> None:
    target, by = target.format(named), qualifier.format(named)
    spark.sql(f"UPDATE {target} SET {by}.v = {by}.v + 9 WHERE {by}.id = 1")
    spark.sql(
        f"MERGE INTO {target} USING (SELECT 2 AS id, 20 AS w UNION ALL SELECT 4, 40) s ON {by}.id = s.id "
        f"WHEN MATCHED THEN UPDATE SET {by}.v = {by}.v + w WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, w)"
    )
    spark.sql(f"DELETE FROM {target} WHERE {by}.id = 3")
    assert rows(spark, "named") == [(1, 10), (2, 22), (4, 40)]


def test_an_alias_hides_the_name_of_the_table(spark: SparkSession, named: str) -> None:
    for statement in (f"DELETE FROM named t WHERE {named}.named.id = 1", "UPDATE named t SET named.v = 0"):
        with pytest.raises(DeltaError, match="named"):
            spark.sql(statement)
    with pytest.raises(DeltaError, match="named"):
        DeltaTable.forName(spark, "named").alias("t").delete("named.id = 1")
    assert len(rows(spark, "named")) == 3


@pytest.mark.parametrize("name", _FORMS)
def test_columns_of_a_delta_table_are_known_by_its_name(spark: SparkSession, named: str, name: str) -> None:
    table = DeltaTable.forName(spark, name.format(named))
    table.update("named.id = 1", {"named.v": "named.v + 9"})
    source = spark.createDataFrame([(2, 20), (4, 40)], "id int, w int")
    (
        table.merge(source.alias("s"), "named.id = s.id")
        .whenMatchedUpdate(set={"named.v": "named.v + w"})
        .whenNotMatchedInsert(values={"named.id": "s.id", "v": "w"})
        .execute()
    )
    table.delete(F.col("named.id") == 3)
    table.update(table.toDF()["id"] == 4, {"v": table.toDF()["v"] + 1})
    assert sorted(row.v for row in table.toDF().select("named.v").collect()) == [10, 22, 41]
