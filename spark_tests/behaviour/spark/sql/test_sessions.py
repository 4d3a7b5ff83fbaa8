"""Statements from threads, other sessions, streams and views; and sessions that are given back."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, PySparkException

import delta_ds
from delta_ds.exceptions import InvalidOptionError, UnsupportedOperationError
from delta_ds.spark.base.session_conf import CATALOG_CLASS, CATALOG_CONF

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

THREADS = 8


def ids(rows: DataFrame) -> list[int]:
    return sorted(row.id for row in rows.collect())


@pytest.fixture
def table(spark: SparkSession, schema: str) -> str:
    spark.sql("CREATE OR REPLACE TABLE t (id BIGINT, v STRING) USING delta")
    spark.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    return f"{schema}.t"


def test_threads_write_and_read_by_name_at_once(spark: SparkSession, table: str) -> None:
    def work(number: int) -> list[int]:
        found = []
        for turn in range(2):
            spark.sql(f"INSERT INTO {table} VALUES ({100 + 10 * number + turn}, 'x')")
            found.append(spark.sql(f"SELECT * FROM {table} WHERE id DIV 10 = {10 + number}").count())
        return found

    with ThreadPoolExecutor(THREADS) as pool:
        seen = list(pool.map(work, range(THREADS)))
    assert seen == [[1, 2]] * THREADS
    assert spark.table(table).count() == 2 + 2 * THREADS


def test_threads_with_sessions_of_their_own_change_tables_of_their_own(
    spark: SparkSession, schema: str
) -> None:
    def work(number: int) -> list[int]:
        mine = spark.newSession()
        mine.sql(f"USE {schema}")
        mine.sql(f"CREATE OR REPLACE TABLE own_{number} USING delta AS SELECT id FROM range(4)")
        mine.sql(f"DELETE FROM own_{number} WHERE id = {number % 4}")
        return ids(mine.table(f"own_{number}"))

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(work, range(THREADS)))
    assert found == [[id for id in range(4) if id != number % 4] for number in range(THREADS)]


def test_new_session_has_statements_and_a_current_schema_of_its_own(
    spark: SparkSession, table: str, schema: str
) -> None:
    other = spark.newSession()
    assert other.catalog.currentDatabase() == "default"
    other.sql(f"USE {schema}")
    assert other.sql("MERGE INTO t USING (SELECT 3L AS id) s ON t.id = s.id "
                     "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)").collect()[0][0] == 1  # fmt: skip
    assert other.sql("OPTIMIZE t").count() == 1
    assert other.sql("DESCRIBE HISTORY t").count() >= 3
    assert ids(spark.table("t")) == ids(other.table("t")) == [1, 2, 3]


def test_batches_of_a_stream_merge_by_name(spark: SparkSession, table: str, tmp_path: Path) -> None:
    def upsert(rows: DataFrame, batch: int) -> None:
        rows.createOrReplaceTempView("news")
        rows.sparkSession.sql(
            f"MERGE INTO {table} AS t USING news AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    spark.sql("CREATE OR REPLACE TABLE source USING delta AS SELECT 2L AS id, 'new' AS v")
    query = (
        spark.readStream.table("source")
        .writeStream.foreachBatch(upsert)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(180)
    assert sorted(map(tuple, spark.table(table).collect())) == [(1, "a"), (2, "new")]


# --- what follows a commit


def test_cached_table_follows_commits(spark: SparkSession, table: str) -> None:
    spark.sql("CACHE TABLE t")
    try:
        assert ids(spark.table("t")) == [1, 2]
        spark.sql("INSERT INTO t VALUES (3, 'c')")
        assert ids(spark.table("t")) == [1, 2, 3]
        spark.sql("DELETE FROM t WHERE id = 1")
        assert ids(spark.sql("SELECT * FROM t")) == [2, 3]
        spark.range(1).selectExpr("9L AS id", "'z' AS v").write.insertInto("t")
        assert ids(spark.table("t")) == [2, 3, 9]
    finally:
        spark.sql("UNCACHE TABLE IF EXISTS t")
    assert ids(spark.table("t")) == [2, 3, 9]


@pytest.mark.parametrize("kind", ["VIEW", "TEMPORARY VIEW"])
def test_views_follow_commits(spark: SparkSession, table: str, folder: Path, kind: str) -> None:
    name = kind.split()[0].lower()
    spark.sql(f"CREATE OR REPLACE {kind} {name}_by_name AS SELECT * FROM t WHERE id > 1")
    spark.sql(f"CREATE OR REPLACE {kind} {name}_by_path AS SELECT id FROM delta.`{folder}/t`")
    spark.sql("UPDATE t SET id = id + 10")
    assert ids(spark.table(f"{name}_by_name")) == ids(spark.table(f"{name}_by_path")) == [11, 12]
    spark.sql(f"DROP VIEW {name}_by_name")
    spark.sql(f"DROP VIEW {name}_by_path")


def test_view_of_a_dropped_table_is_an_error_until_the_table_is_back(spark: SparkSession, table: str) -> None:
    spark.sql("CREATE OR REPLACE VIEW over AS SELECT id FROM t")
    spark.sql("DROP TABLE t")
    with pytest.raises(AnalysisException):
        spark.table("over").collect()
    spark.sql("CREATE TABLE t USING delta AS SELECT 5L AS id, 'e' AS v")
    assert ids(spark.table("over")) == [5]


@pytest.mark.parametrize("what", ["VIEW nowhere USING delta", "TABLE nowhere (a INT) USING delta"])
def test_temporary_view_of_a_table_without_a_path_is_refused(spark: SparkSession, what: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"option 'path' is missing.*OPTIONS \(path"):
        spark.sql(f"CREATE TEMPORARY {what}")


def test_statement_on_a_view_with_a_filter_is_refused(spark: SparkSession, table: str) -> None:
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW part AS SELECT * FROM t WHERE id = 1")
    with pytest.raises(UnsupportedOperationError, match="DELTA_UNSUPPORTED_VIEW_TARGET"):
        spark.sql("DELETE FROM part")
    assert ids(spark.table("t")) == [1, 2]


# --- giving the session back


@pytest.fixture
def given_back(spark: SparkSession, table: str) -> Iterator[SparkSession]:
    delta_ds.unregister(spark)
    yield spark
    delta_ds.register(spark)


def test_statements_are_spark_s_own_again(given_back: SparkSession) -> None:
    assert given_back.conf.get(CATALOG_CONF, "") in ("", "builtin")
    for text in ("OPTIMIZE t", "VACUUM t", "RESTORE TABLE t TO VERSION AS OF 0"):
        with pytest.raises(PySparkException) as raised:
            given_back.sql(text)
        assert raised.value.getCondition() == "PARSE_SYNTAX_ERROR", text
    with pytest.raises(PySparkException) as raised:
        given_back.sql("DELETE FROM t WHERE id = 1")
    assert not str(raised.value.getCondition()).startswith("DELTA_")
    assert given_back.sql("SELECT 1 AS one").collect()[0].one == 1


def test_new_sessions_of_a_session_given_back_are_spark_s_own(given_back: SparkSession) -> None:
    other = given_back.newSession()
    assert other.conf.get(CATALOG_CONF, "") in ("", "builtin")
    with pytest.raises(PySparkException) as raised:
        other.sql("OPTIMIZE t")
    assert raised.value.getCondition() == "PARSE_SYNTAX_ERROR"


@pytest.mark.parametrize("inherits", [True, False], ids=["inherits", "registers"])
def test_session_given_back_takes_nothing_from_other_sessions(
    spark: SparkSession, table: str, inherits: bool
) -> None:
    guest = spark.newSession()
    if not inherits:
        delta_ds.register(guest)
    delta_ds.unregister(guest)
    assert guest.conf.get(CATALOG_CONF, "") in ("", "builtin")
    with pytest.raises(PySparkException, match="PARSE_SYNTAX_ERROR"):
        guest.sql(f"OPTIMIZE {table}")
    for session in (spark, spark.newSession()):
        assert session.sql(f"OPTIMIZE {table}").count() == 1
        assert session.conf.get(CATALOG_CONF) == CATALOG_CLASS
        assert ids(session.table(table)) == [1, 2]


def test_session_is_registered_again_with_its_tables(spark: SparkSession, table: str) -> None:
    delta_ds.unregister(spark)
    delta_ds.unregister(spark)
    registration = delta_ds.register(spark)
    assert registration.sql, registration.sql.reason
    assert ids(spark.table(table)) == [1, 2]
    assert spark.sql(f"DELETE FROM {table} WHERE id = 1").collect()[0][0] == 1
    assert spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()[0].operation == "DELETE"


def test_reset_leaves_a_session_its_catalog(spark: SparkSession, table: str) -> None:
    mine = spark.newSession()
    mine.sql("SET spark.sql.caseSensitive = true")
    mine.sql("RESET")
    assert mine.conf.get("spark.sql.caseSensitive") == "false"
    assert mine.conf.get(CATALOG_CONF) == CATALOG_CLASS
    mine.sql(f"MERGE INTO {table} USING (SELECT 1L AS id) s ON {table}.id = s.id WHEN MATCHED THEN DELETE")
    mine.sql(f"OPTIMIZE {table}")
    assert ids(mine.table(table)) == [2]
