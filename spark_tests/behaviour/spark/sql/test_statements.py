"""What statements do beside their work: errors, plans, how often the log is opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.storage.local import LocalStorage
from delta_ds.spark.base import session_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def table(spark: SparkSession, schema: str) -> str:
    spark.sql("CREATE OR REPLACE TABLE t USING delta AS SELECT id, id % 3 AS p FROM range(9)")
    return "t"


def version(spark: SparkSession, table: str) -> int:
    newest = spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").first()
    assert newest is not None
    return int(newest.version)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM t WHERE id = 1",
        "UPDATE t SET p = 0",
        "MERGE INTO t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "INSERT INTO t VALUES (1, 1)",
        "INSERT OVERWRITE t VALUES (1, 1)",
        "CREATE TABLE never USING delta AS SELECT 1 AS x",
    ],
)
@pytest.mark.parametrize("how", ["", "EXTENDED ", "FORMATTED "])
def test_explain_runs_nothing(spark: SparkSession, table: str, statement: str, how: str) -> None:
    before = version(spark, table)
    plan = spark.sql(f"EXPLAIN {how}{statement}").first()
    assert plan is not None and "Physical Plan" in plan[0]
    assert version(spark, table) == before
    assert not spark.catalog.tableExists("never")


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DELETE FROM t WHERE id = 1", "Files: 1 of 3, Rows: found by Arrow in threads of the driver"),
        ("DELETE FROM t", "Rows: all of 3 files, which are not read"),
        (
            "DELETE FROM t WHERE hash(id) = 1",
            "Rows: found by a query of Spark, Reason: the expression Murmur3Hash",
        ),
        ("UPDATE t SET p = 0 WHERE id > 3", "Files: 2 of 3, Rows: found by Arrow in threads of the driver"),
        ("UPDATE t SET p = hash(id)", "Rows: found by a query of Spark, Reason: the expression Murmur3Hash"),
        ("UPDATE t SET p = 0 WHERE id = 77", "Rows: none"),
        (
            "MERGE INTO t USING (SELECT * FROM range(9)) s ON t.id = s.id WHEN MATCHED THEN DELETE",
            "Rows: found by Arrow, if the source, which Spark computes once, has at most 268435456 bytes; "
            "else by a query of Spark",
        ),
        (
            "MERGE INTO t USING (SELECT * FROM range(9)) s ON t.id < s.id WHEN MATCHED THEN DELETE",
            "Rows: found by a query of Spark, "
            "Reason: a search condition without a key: Spark tries all pairs of rows faster",
        ),
    ],
)
def test_explain_tells_who_finds_the_rows_of_a_command(
    spark: SparkSession, schema: str, statement: str, told: str
) -> None:
    spark.sql("CREATE OR REPLACE TABLE t USING delta AS SELECT id, id AS p FROM range(0, 9, 1, 3)")
    before = version(spark, "t")
    plan = spark.sql(f"EXPLAIN {statement}").first()
    assert plan is not None
    (line,) = (line for line in plan[0].splitlines() if f"- Delta {statement.split()[0]} " in line)
    assert line.endswith(told)
    assert f", Version: {before}, " in line
    assert version(spark, "t") == before


def test_explain_tells_what_is_wrong_with_a_command(spark: SparkSession, table: str) -> None:
    rows = spark.sql("EXPLAIN DELETE FROM t WHERE nothing = 1").collect()
    assert "UNRESOLVED_COLUMN" in " ".join(row[0] for row in rows)


def test_statement_runs_once_however_often_its_answer_is_read(spark: SparkSession, table: str) -> None:
    answer = spark.sql("DELETE FROM t WHERE id = 1")
    assert [row.num_affected_rows for row in (*answer.collect(), *answer.collect())] == [1, 1]
    optimized = spark.sql("OPTIMIZE t")
    before = version(spark, table)
    assert optimized.count() == optimized.count() == 1
    assert version(spark, table) == before


def test_statement_inserts_into_several_tables(spark: SparkSession, table: str) -> None:
    spark.sql("CREATE OR REPLACE TABLE low (id BIGINT, p BIGINT) USING delta")
    spark.sql("CREATE OR REPLACE TABLE high USING delta AS SELECT 99L AS id, 0L AS p")
    spark.sql("CREATE TABLE IF NOT EXISTS plain (id BIGINT) USING parquet")
    inserts = """
        INSERT INTO low SELECT id, p WHERE id < 2
        INSERT INTO low SELECT id + 100, p WHERE id < 2
        INSERT OVERWRITE high SELECT id, p WHERE id > 7
        INSERT INTO plain SELECT id WHERE id = 5
    """
    explained = spark.sql(f"EXPLAIN FROM t {inserts}").first()
    assert explained is not None and explained[0].count("Execute Delta INSERT") == 3
    assert spark.table("low").count() == 0
    spark.sql(f"WITH rows AS (SELECT * FROM t WHERE p <> 1) FROM rows {inserts}")
    assert sorted(row.id for row in spark.table("low").collect()) == [0, 100]
    assert [row.id for row in spark.table("high").collect()] == [8]
    assert [row.id for row in spark.table("plain").collect()] == [5]
    assert version(spark, "low") == 2


@pytest.mark.parametrize(
    ("statement", "line", "shown"),
    [
        ("OPTIMIZE t ZORDER BY", 1, "== SQL (line 1"),
        ("-- every night\nVACUUM t RETAIN many HOURS", 2, "VACUUM t RETAIN many HOURS\n----------------^^^"),
        ("RESTORE TABLE t\nTO VERSION\n AS OFF 1", 3, " AS OFF 1\n----^^^"),
        ("DESCRIBE HISTORY t LIMIT x", 1, "^^^"),
    ],
)
def test_syntax_error_shows_line_and_caret(
    spark: SparkSession, table: str, statement: str, line: int, shown: str
) -> None:
    with pytest.raises(ParseException) as raised:
        spark.sql(statement)
    assert raised.value.getCondition() == "PARSE_SYNTAX_ERROR"
    text = str(raised.value)
    assert f"(line {line}, pos " in text or f"line {line}" in text
    assert shown in text or "^^^" in text


@pytest.mark.parametrize(
    ("statement", "condition"),
    [
        ("DELETE FROM t WHERE id IN (SELECT 1)", "DELTA_UNSUPPORTED_SUBQUERY"),
        ("VACUUM t RETAIN 0 HOURS", "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"),
        ("SELECT * FROM t VERSION AS OF 99", "DELTA_VERSION_NOT_FOUND"),
        ("ALTER TABLE t ADD CONSTRAINT low CHECK (id < 3)", "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"),
        ("ALTER TABLE t SET TBLPROPERTIES ('delta.apendOnly' = 'true')", "DELTA_UNKNOWN_CONFIGURATION"),
        ("ALTER TABLE t DROP COLUMN p", "DELTA_UNSUPPORTED_DROP_COLUMN"),
    ],
)
def test_failures_are_delta_errors_with_their_condition(
    spark: SparkSession, table: str, statement: str, condition: str
) -> None:
    before = version(spark, table)
    with pytest.raises(PySparkException) as raised:
        spark.sql(statement).collect()
    assert isinstance(raised.value, DeltaError)
    assert raised.value.getCondition() == condition
    assert version(spark, table) == before


@pytest.mark.parametrize(
    "statement",
    ["SELECT * FROM nothing", "DELETE FROM nothing", "OPTIMIZE nothing", "DESCRIBE HISTORY nothing"],
)
def test_name_of_nothing_is_an_error_of_analysis(spark: SparkSession, schema: str, statement: str) -> None:
    with pytest.raises(AnalysisException) as raised:
        spark.sql(statement)
    assert "nothing" in str(raised.value)


# --- what it costs


def opened(monkeypatch: pytest.MonkeyPatch, run: Callable[[], object]) -> int:
    """How many times the folder of a log is listed."""
    listed: list[str] = []
    list_from = LocalStorage.list_from

    def counted(self: LocalStorage, *args: object, **named: object) -> object:
        listed.append(str(args))
        return list_from(self, *args, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "list_from", counted)
        run()
    return len(listed)


def test_query_by_name_opens_the_log_as_often_as_one_by_path(
    spark: SparkSession, table: str, folder: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.table("t").collect()
    by_path = opened(monkeypatch, lambda: spark.read.format("pydelta").load(f"{folder}/t").collect())
    by_name = opened(monkeypatch, lambda: spark.sql("SELECT * FROM t WHERE id = 3").collect())
    assert by_path >= 1
    assert by_name == by_path


def test_other_statements_never_ask_python(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from delta_ds.spark.sql.answers import Answers

    asked: list[str] = []
    apply = Answers.apply

    def counted(self: Answers, what: str, *arguments: object) -> object:
        asked.append(what.partition(":")[0])
        return apply(self, what, *arguments)  # type: ignore[arg-type]

    spark.sql("CREATE TABLE IF NOT EXISTS pq USING parquet AS SELECT 1 AS a")
    monkeypatch.setattr(Answers, "apply", counted)
    for text in ("SELECT 1", "SELECT * FROM pq", "SHOW TABLES", "SET spark.sql.ansi.enabled", "DESCRIBE pq"):
        spark.sql(text).collect()
    assert asked == []
    spark.sql("SELECT * FROM t").collect()
    assert asked == ["open", "scan"]


# --- ways of reading


@pytest.mark.parametrize("off", [session_conf.NATIVE_SCAN_CONF, None])
def test_tables_that_spark_does_not_read_itself_work_by_name(
    spark: SparkSession, schema: str, off: str | None
) -> None:
    spark.sql("DROP TABLE IF EXISTS fed")
    spark.sql(
        "CREATE TABLE fed (id BIGINT, v STRING) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    if off is not None:
        spark.conf.set(off, "false")
    try:
        spark.sql("INSERT INTO fed VALUES (1, 'a'), (2, 'b')")
        spark.sql("UPDATE fed SET v = 'z' WHERE id = 2")
        assert sorted(map(tuple, spark.sql("SELECT * FROM fed").collect())) == [(1, "a"), (2, "z")]
        changes = spark.sql("SELECT id, _change_type FROM table_changes('fed', 2)").collect()
        assert sorted(map(tuple, changes)) == [(2, "update_postimage"), (2, "update_preimage")]
        joined = spark.sql("SELECT c.id FROM table_changes('fed', 1, 1) c JOIN fed USING (id)").collect()
        assert sorted(row.id for row in joined) == [1, 2]
        spark.sql("CREATE OR REPLACE TABLE copied USING delta AS SELECT * FROM fed WHERE id = 1")
        assert spark.table("copied").count() == 1
    finally:
        if off is not None:
            spark.conf.unset(off)


@pytest.mark.parametrize(
    ("bounds", "found"),
    [
        ("1", [1, 2]), ("1L, 1", [1]), ("CAST(2 AS SMALLINT)", [2]), ("'2024'", [1, 2]), ("' 2024-01 '", [1, 2]),
        ("'20' || '24', 1", [1]), ("TIMESTAMP'2024-01-01 00:00:00'", [1, 2]), ("DATE'2024-01-01'", [1, 2]),
        ("'1'", "DELTA_TIMESTAMP_INVALID"), ("0, '1'", "DELTA_TIMESTAMP_INVALID"), ("'-1'", "DELTA_TIMESTAMP_INVALID"),
        ("1.0", "DELTA_UNSUPPORTED_EXPRESSION"), ("0, 1e0", "DELTA_UNSUPPORTED_EXPRESSION"),
        ("true", "DELTA_UNSUPPORTED_EXPRESSION"), ("X'31'", "DELTA_UNSUPPORTED_EXPRESSION"),
        ("NULL", "DELTA_CDC_READ_NULL_RANGE_BOUNDARY"), ("0, NULL", "DELTA_CDC_READ_NULL_RANGE_BOUNDARY"),
        ("'9999-01-01'", "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"), ("9", "DELTA_CDC_START_VERSION_AFTER_LATEST"),
    ],
)  # fmt: skip
def test_bounds_of_table_changes_are_versions_or_timestamps_by_their_types(
    spark: SparkSession, schema: str, bounds: str, found: list[int] | str
) -> None:
    if not spark.catalog.tableExists("bounded"):
        spark.sql(
            "CREATE TABLE bounded (id INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
        )
        spark.sql("INSERT INTO bounded VALUES (1)")
        spark.sql("INSERT INTO bounded VALUES (2)")
    query = f"SELECT id FROM table_changes('bounded', {bounds}) ORDER BY id"
    if isinstance(found, list):
        assert [row.id for row in spark.sql(query).collect()] == found
    else:
        with pytest.raises(DeltaError) as refused:
            spark.sql(query).collect()
        assert refused.value.condition == found


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM older",
        "UPDATE older SET p = 1",
        "MERGE INTO older USING (SELECT 1L AS id) s ON older.id = s.id WHEN MATCHED THEN DELETE",
    ],
)
def test_view_of_an_older_version_is_no_target(spark: SparkSession, table: str, statement: str) -> None:
    spark.sql(f"INSERT INTO {table} VALUES (100, 0)")
    spark.sql(
        f"CREATE OR REPLACE TEMP VIEW older AS SELECT * FROM {table} VERSION AS OF {version(spark, table) - 1}"
    )
    before = version(spark, table)
    with pytest.raises(DeltaError) as raised:
        spark.sql(statement)
    assert raised.value.condition == "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION"
    assert version(spark, table) == before


def test_options_of_a_table_in_a_query_read_its_change_feed(spark: SparkSession, table: str) -> None:
    spark.sql("DROP TABLE IF EXISTS fed")
    spark.sql("CREATE TABLE fed (id INT) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    spark.sql("INSERT INTO fed VALUES (7)")
    query = "SELECT * FROM fed WITH ('readChangeFeed' = 'true', 'startingVersion' = '0')"
    feed = spark.sql(query)
    assert feed.columns == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    assert [(row.id, row._change_type, row._commit_version) for row in feed.collect()] == [(7, "insert", 1)]
    assert spark.sql(f"SELECT f.id FROM ({query}) f JOIN fed USING (id)").collect() == [(7,)]


def test_a_table_whose_schema_cannot_be_read_has_a_history(spark: SparkSession, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path}`"
    spark.sql(f"CREATE TABLE {table} USING delta AS SELECT 1 AS id")
    commit = tmp_path / "_delta_log" / f"{0:020}.json"
    commit.write_text(commit.read_text().replace('\\"integer\\"', '\\"blob\\"'))
    for checksum in commit.parent.glob("*.crc"):
        checksum.unlink()
    assert version(spark, table) == 0
    with pytest.raises((DeltaError, PySparkException), match="blob"):
        spark.sql(f"DELETE FROM {table}")
