"""Tables made by SQL: one commit each, nothing left of those that fail, other formats as they were."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from chispa import assert_df_equality
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from delta_ds.exceptions import DeltaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BY_ZERO = "AS SELECT 1 DIV (id - 2) AS x FROM range(4)"


def versions(spark: SparkSession, table: str) -> list[tuple[int, str]]:
    rows = spark.sql(f"DESCRIBE HISTORY {table}").select("version", "operation").collect()
    return sorted((row.version, row.operation) for row in rows)


def commits(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "_delta_log").glob("*.json"))


def test_table_by_query_is_one_commit(spark: SparkSession, schema: str, folder: Path) -> None:
    spark.sql(
        "CREATE TABLE one USING delta PARTITIONED BY (p) COMMENT 'c' AS SELECT id, id % 2 AS p FROM range(4)"
    )
    assert versions(spark, "one") == [(0, "CREATE TABLE AS SELECT")]
    assert len(commits(folder / "one")) == 1
    expected = spark.sql("SELECT id, id % 2 AS p FROM range(4)")
    assert_df_equality(spark.table("one"), expected, ignore_row_order=True, ignore_nullable=True)


def test_table_replaced_by_a_query_on_itself_is_one_commit(spark: SparkSession, schema: str) -> None:
    spark.sql("CREATE TABLE self USING delta AS SELECT id FROM range(4)")
    spark.sql("CREATE OR REPLACE TABLE self USING delta AS SELECT id * 10 AS big FROM self WHERE id > 1")
    assert versions(spark, "self") == [
        (0, "CREATE TABLE AS SELECT"),
        (1, "CREATE OR REPLACE TABLE AS SELECT"),
    ]
    spark.sql("REPLACE TABLE self USING delta AS SELECT big + 1 AS big FROM self")
    assert versions(spark, "self")[2:] == [(2, "REPLACE TABLE AS SELECT")]
    assert sorted(row.big for row in spark.table("self").collect()) == [21, 31]


def test_writes_by_name_iterate_over_no_collection_of_the_jvm(
    spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of each is an exception in the JVM, of which pyspark asks a dozen questions."""
    from py4j.java_collections import JavaIterator

    def refuse(iterator: JavaIterator) -> None:
        raise AssertionError("a collection of the JVM is iterated over")

    write_by_every_name(spark, "first")  # classes that are compiled come as a collection, once
    monkeypatch.setattr(JavaIterator, "next", refuse)
    monkeypatch.setattr(JavaIterator, "__next__", refuse)
    write_by_every_name(spark, "second")
    assert spark.table("second").count() == 4


def write_by_every_name(spark: SparkSession, name: str) -> None:
    rows = spark.range(4).selectExpr("id", "id % 2 AS p")
    rows.write.format("delta").partitionBy("p").option("delta.appendOnly", "false").saveAsTable(name)
    rows.write.format("delta").mode("append").saveAsTable(name)
    rows.write.insertInto(name, overwrite=True)
    rows.writeTo(f"{name}_made").using("delta").tableProperty("a", "b").create()
    rows.writeTo(f"{name}_made").option("mergeSchema", "true").append()
    columns = "a INT, b BIGINT GENERATED ALWAYS AS IDENTITY"
    spark.sql(f"CREATE TABLE {name}_sql ({columns}) USING delta")
    spark.sql(f"INSERT INTO {name}_sql (a) VALUES (1)")


@pytest.mark.parametrize("replace", ["", "OR REPLACE "])
def test_query_that_fails_leaves_no_table(
    spark: SparkSession, schema: str, folder: Path, replace: str
) -> None:
    with pytest.raises(PySparkException) as raised:
        spark.sql(f"CREATE {replace}TABLE broken USING delta {BY_ZERO}")
    assert raised.value.getCondition() == "DIVIDE_BY_ZERO"
    assert not spark.catalog.tableExists("broken")
    assert not (folder / "broken").exists()
    spark.sql("CREATE TABLE broken USING delta AS SELECT 1 AS x")
    spark.sql("DROP TABLE broken")


def test_query_that_fails_leaves_no_external_table(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    place = tmp_path / "outside"
    with pytest.raises(PySparkException):
        spark.sql(f"CREATE TABLE outside USING delta LOCATION '{place}' {BY_ZERO}")
    assert not spark.catalog.tableExists("outside") and not place.exists()


@pytest.mark.parametrize("verb", ["REPLACE", "CREATE OR REPLACE"])
def test_query_that_fails_leaves_the_table_that_it_would_have_replaced(
    spark: SparkSession, schema: str, folder: Path, verb: str
) -> None:
    name = f"kept_{verb.split()[0].lower()}"
    spark.sql(f"CREATE TABLE {name} USING delta AS SELECT 7 AS x")
    files = sorted(path.name for path in (folder / name).rglob("*.parquet"))
    with pytest.raises(PySparkException):
        spark.sql(f"{verb} TABLE {name} USING delta {BY_ZERO}")
    assert versions(spark, name) == [(0, "CREATE TABLE AS SELECT")]
    assert [row.x for row in spark.table(name).collect()] == [7]
    assert sorted(path.name for path in (folder / name).rglob("*.parquet")) == files


def test_statement_that_is_refused_leaves_no_table(spark: SparkSession, schema: str, folder: Path) -> None:
    for columns in ("(a INT, A INT)", "(a INT) PARTITIONED BY (nope)"):
        with pytest.raises(PySparkException):
            spark.sql(f"CREATE TABLE refused {columns} USING delta")
    with pytest.raises(PySparkException):
        spark.sql("CREATE TABLE refused (a INT) USING delta TBLPROPERTIES ('delta.appendOnly' = 'perhaps')")
    assert not spark.catalog.tableExists("refused") and not (folder / "refused").exists()


def test_replacing_nothing_is_refused(spark: SparkSession, schema: str) -> None:
    with pytest.raises(PySparkException) as raised:
        spark.sql("REPLACE TABLE nowhere USING delta AS SELECT 1 AS x")
    assert raised.value.getCondition() in ("TABLE_OR_VIEW_NOT_FOUND", "DELTA_CANNOT_REPLACE_MISSING_TABLE")


def test_what_show_create_table_prints_makes_the_table_again(spark: SparkSession, schema: str) -> None:
    spark.sql(
        "CREATE TABLE shown (id BIGINT NOT NULL COMMENT 'it''s the key', p STRING, "
        "g BIGINT GENERATED ALWAYS AS (id * 2)) USING delta "
        "PARTITIONED BY (p) COMMENT 'a \"table\"' TBLPROPERTIES ('delta.appendOnly' = 'true', 'k' = 'v')"
    )
    first = spark.sql("SHOW CREATE TABLE shown").first()
    assert first is not None
    described = spark.sql("DESCRIBE shown").collect()
    spark.sql("DROP TABLE shown")
    spark.sql(first[0])
    assert spark.sql("DESCRIBE shown").collect() == described
    again = spark.sql("SHOW CREATE TABLE shown").first()
    assert again == first


@pytest.mark.parametrize(
    "columns",
    [
        "b STRUCT<c: INT, D: STRING COMMENT 'it is'>",
        "b MAP<STRING, STRUCT<aB: INT, n: ARRAY<STRUCT<x: INT>>>>",
        "b STRUCT<`a-B`: INT, c: INT>",
        "b ARRAY<STRUCT<aB: VARCHAR(3)>>, c CHAR(2)",
    ],
)
def test_show_create_table_keeps_the_names_and_comments_inside_a_column(
    spark: SparkSession, schema: str, columns: str
) -> None:
    spark.sql(f"CREATE TABLE nested ({columns}) USING delta")
    made = spark.table("nested").schema
    text = spark.sql("SHOW CREATE TABLE nested").first()
    assert text is not None
    spark.sql("DROP TABLE nested")
    spark.sql(text[0])
    again = spark.table("nested").schema
    spark.sql("DROP TABLE nested")
    assert again == made


# --- others in the same catalog


def test_parquet_tables_are_spark_s_own(spark: SparkSession, schema: str, folder: Path) -> None:
    spark.sql("CREATE TABLE pq USING parquet PARTITIONED BY (p) AS SELECT id, id % 2 AS p FROM range(4)")
    spark.sql("INSERT INTO pq PARTITION (p = 7) VALUES (40)")
    spark.sql("CREATE TABLE pq2 (a INT) USING parquet")
    spark.sql("INSERT INTO pq2 VALUES (1)")
    spark.sql("ALTER TABLE pq2 ADD COLUMN b STRING")
    assert not (folder / "pq" / "_delta_log").exists()
    assert spark.table("pq").count() == 5 and spark.table("pq2").columns == ["a", "b"]
    provider = spark.sql("DESCRIBE EXTENDED pq").where("col_name = 'Provider'").first()
    assert provider is not None and provider.data_type.lower() == "parquet"
    with pytest.raises(PySparkException) as raised:
        spark.sql("DELETE FROM pq WHERE id = 1")
    assert not str(raised.value.getCondition()).startswith("DELTA_")
    spark.sql("ANALYZE TABLE pq COMPUTE STATISTICS")
    spark.sql("DROP TABLE pq")
    assert not (folder / "pq").exists()


def test_default_source_of_the_session_stays(spark: SparkSession, schema: str) -> None:
    spark.sql("CREATE TABLE plain (a INT)")
    provider = spark.sql("DESCRIBE EXTENDED plain").where("col_name = 'Provider'").first()
    assert provider is None or provider.data_type.lower() != "delta"


def test_query_into_another_format_that_fails_says_what_spark_says(spark: SparkSession, schema: str) -> None:
    with pytest.raises(PySparkException) as raised:
        spark.sql(f"CREATE TABLE other USING parquet {BY_ZERO}")
    assert raised.value.getCondition() == "DIVIDE_BY_ZERO"
    assert not spark.catalog.tableExists("other")


def test_what_another_source_refuses_is_spark_s_to_say(spark: SparkSession, schema: str) -> None:
    with pytest.raises(PySparkException) as raised:
        spark.sql("CREATE TABLE elsewhere USING noop AS SELECT id FROM range(3)")
    assert str(raised.value.getCondition()).startswith("CANNOT_CREATE_DATA_SOURCE_TABLE")
    assert not spark.catalog.tableExists("elsewhere")


def test_location_is_taken_as_it_stands(spark: SparkSession, schema: str, tmp_path: Path) -> None:
    made = tmp_path / "a b%20c"
    spark.sql(f"CREATE TABLE placed USING delta LOCATION '{made}' AS SELECT 1 AS id")
    assert [path.name for path in tmp_path.iterdir()] == ["a b%20c"]
    assert spark.sql("SELECT * FROM placed").count() == 1
    like = tmp_path / "x%20y"
    spark.sql(f"CREATE TABLE placed_like LIKE placed LOCATION '{like}'")
    assert (like / "_delta_log").is_dir()
    spark.sql(f"ALTER TABLE placed SET LOCATION 'file:{like}'")
    assert spark.table("placed").count() == 0
    for table in ("placed", "placed_like"):
        spark.sql(f"DROP TABLE {table}")
    assert made.is_dir() and like.is_dir()


def test_table_like_another_supports_what_that_supports(spark: SparkSession, schema: str) -> None:
    spark.sql(
        "CREATE TABLE model (id INT, v STRING DEFAULT 'none') USING delta CLUSTER BY (id) "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported', 'delta.enableDeletionVectors' = 'false')"
    )
    spark.sql("ALTER TABLE model SET TBLPROPERTIES ('delta.feature.deletionVectors' = 'supported')")
    spark.sql("CREATE TABLE copy LIKE model")
    spark.sql("INSERT INTO copy (id) VALUES (1)")
    assert [tuple(row) for row in spark.table("copy").collect()] == [(1, "none")]
    model, copy = (set(spark.sql(f"DESCRIBE DETAIL {t}").first()["tableFeatures"]) for t in ("model", "copy"))
    assert copy == model - {"clustering"}
    spark.sql("CREATE TABLE old (id INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')")
    spark.sql("CREATE TABLE like_old LIKE old")
    versions = [
        tuple(spark.sql(f"DESCRIBE DETAIL {t}").first()[c] for c in ("minReaderVersion", "minWriterVersion"))
        for t in ("old", "like_old")
    ]
    assert versions[0] == versions[1]


def test_table_like_one_of_another_source_has_its_comment_and_properties(
    spark: SparkSession, schema: str
) -> None:
    spark.sql(
        "CREATE TABLE pq (id INT COMMENT 'of all', p STRING) USING parquet PARTITIONED BY (p) COMMENT 'old' "
        "TBLPROPERTIES ('team' = 'sales', 'delta.appendOnly' = 'true')"
    )
    spark.sql("CREATE VIEW pq_ids COMMENT 'a view' TBLPROPERTIES ('team' = 'views') AS SELECT id FROM pq")
    spark.sql("CREATE TEMPORARY VIEW passing AS SELECT 1 AS id")
    found = {}
    for model in ("pq", "pq_ids", "passing"):
        spark.sql(f"CREATE TABLE like_{model} LIKE {model} USING delta TBLPROPERTIES ('own' = '1')")
        detail = spark.sql(f"DESCRIBE DETAIL like_{model}").first()
        assert detail is not None
        found[model] = (detail.description, detail.properties, detail.partitionColumns)
    assert found == {
        "pq": ("old", {"team": "sales", "delta.appendOnly": "true", "own": "1"}, ["p"]),
        "pq_ids": ("a view", {"team": "views", "own": "1"}, []),
        "passing": (None, {"own": "1"}, []),
    }
    assert spark.table("like_pq").schema["id"].metadata == {"comment": "of all"}


def test_field_of_a_struct_partitions_no_table(spark: SparkSession, schema: str) -> None:
    with pytest.raises(PySparkException) as raised:
        spark.sql("CREATE TABLE t (`s.x` INT, s STRUCT<x: INT>) USING delta PARTITIONED BY (s.x)")
    assert raised.value.getCondition() == "DELTA_OPERATION_NOT_ALLOWED"
    assert not spark.catalog.tableExists("t")


@pytest.mark.parametrize(
    "replace",
    [
        "CREATE OR REPLACE TABLE clustered (id INT, p INT) USING delta PARTITIONED BY (p)",
        "CREATE OR REPLACE TABLE clustered USING delta PARTITIONED BY (p) AS SELECT 1 AS id, 2 AS p",
        "saveAsTable",
        "writeTo",
    ],
)
def test_a_clustered_table_is_not_replaced_by_one_with_partitions(
    spark: SparkSession, schema: str, replace: str
) -> None:
    spark.sql("CREATE OR REPLACE TABLE clustered (id INT, p INT) USING delta CLUSTER BY (id)")
    rows = spark.sql("SELECT 1 AS id, 2 AS p")
    with pytest.raises(DeltaError) as caught:
        if replace == "saveAsTable":
            writer = rows.write.mode("overwrite").format("delta").option("overwriteSchema", "true")
            writer.partitionBy("p").saveAsTable("clustered")
        elif replace == "writeTo":
            rows.writeTo("clustered").using("delta").partitionedBy(F.col("p")).createOrReplace()
        else:
            spark.sql(replace)
    assert caught.value.condition == "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE"
    assert spark.table("clustered").count() == 0
