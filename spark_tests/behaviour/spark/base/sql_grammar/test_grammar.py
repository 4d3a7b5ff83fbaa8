"""Delta's own statements: every form, what is Spark's, and what is wrong."""

from __future__ import annotations

import re

import pytest

from delta_ds.spark.base.sql_grammar.grammar import HEADS, parse
from delta_ds.spark.base.sql_grammar.statements import (
    AddConstraint,
    Clone,
    ClusterBy,
    Convert,
    DescribeDetail,
    DescribeHistory,
    DropConstraint,
    DropFeature,
    Generate,
    Optimize,
    Reorg,
    Restore,
    SqlText,
    Statement,
    SyncIdentity,
    UpgradeUniform,
    Vacuum,
)
from delta_ds.spark.base.sql_grammar.tokens import SqlSyntaxError

T = ("t",)
FORMS: list[tuple[str, Statement]] = [
    ("OPTIMIZE t", Optimize(T)),
    ("OPTIMIZE '/a/b' FULL", Optimize(("delta", "/a/b"), full=True)),
    ("OPTIMIZE full FULL", Optimize(("full",), full=True)),
    ("OPTIMIZE s.t WHERE p = 'a' ZORDER BY (x, y.z)",
     Optimize(("s", "t"), where=SqlText("p = 'a'"), zorder_by=(("x",), ("y", "z")))),
    ("optimize t zorder by timestamp, `a b`", Optimize(T, zorder_by=(("timestamp",), ("a b",)))),
    ("OPTIMIZE t WHERE p IN ('ZORDER BY', `zorder`) AND (q /* ZORDER BY */ > 1) -- so\nZORDER BY q",
     Optimize(T, where=SqlText("p IN ('ZORDER BY', `zorder`) AND (q /* ZORDER BY */ > 1)"), zorder_by=(("q",),))),
    ("REORG TABLE t APPLY (PURGE)", Reorg(T)),
    ("REORG TABLE delta.`/p` WHERE d > DATE'2024-01-01' APPLY (PURGE);",
     Reorg(("delta", "/p"), SqlText("d > DATE'2024-01-01'"))),
    ("REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))", UpgradeUniform(T, 2)),
    ("VACUUM t", Vacuum(T)),
    ("VACUUM '/p' RETAIN 0 HOURS DRY RUN", Vacuum(("delta", "/p"), 0.0, dry_run=True)),
    ("VACUUM delta.`/p` DRY RUN RETAIN 1.5 HOURS LITE",
     Vacuum(("delta", "/p"), 1.5, dry_run=True, mode="LITE")),
    ("VACUUM t RETAIN -5 HOURS FULL", Vacuum(T, -5.0)),
    ("VACUUM t RETAIN 1E2D HOURS", Vacuum(T, 100.0)),
    ("VACUUM t USING INVENTORY (SELECT * FROM f(1) WHERE a = ')') RETAIN 168L HOURS",
     Vacuum(T, 168.0, inventory=SqlText("SELECT * FROM f(1) WHERE a = ')'"))),
    ("VACUUM t USING INVENTORY s.`in``v`", Vacuum(T, inventory=SqlText("SELECT * FROM `s`.`in``v`"))),
    ("DESCRIBE HISTORY t", DescribeHistory(T)),
    ("DESC HISTORY '/p' LIMIT 3", DescribeHistory(("delta", "/p"), 3)),
    ("DESCRIBE HISTORY spark_catalog.s.t LIMIT 1", DescribeHistory(("spark_catalog", "s", "t"), 1)),
    ("DESCRIBE history detail", DescribeHistory(("detail",))),
    ("DESCRIBE DETAIL delta.`/p`", DescribeDetail(("delta", "/p"))),
    ('DESC DETAIL "/p"', DescribeDetail(("delta", "/p"))),
    ("RESTORE TABLE t TO VERSION AS OF 3", Restore(T, 3)),
    ("RESTORE t VERSION AS OF '4'", Restore(T, 4)),
    ("RESTORE t TO FOR SYSTEM_VERSION AS OF 0", Restore(T, 0)),
    ("RESTORE TABLE s.t TO TIMESTAMP AS OF '2024-01-01 10:00'", Restore(("s", "t"), None, "2024-01-01 10:00")),
    ("CONVERT TO DELTA parquet.`/p`", Convert(("parquet", "/p"))),
    ("CONVERT TO DELTA s.t NO STATISTICS", Convert(("s", "t"), statistics=False)),
    ("CONVERT TO DELTA t PARTITIONED BY (a DECIMAL(5,2), b STRING)",
     Convert(T, partition_columns=SqlText("a DECIMAL(5,2), b STRING"))),
    ("GENERATE symlink_format_manifest FOR TABLE s.t", Generate("symlink_format_manifest", ("s", "t"))),
    ("CREATE TABLE a.b SHALLOW CLONE c", Clone(("a", "b"), ("c",))),
    ("CREATE TABLE shallow SHALLOW CLONE clone", Clone(("shallow",), ("clone",))),
    ("CREATE TABLE IF NOT EXISTS a SHALLOW CLONE b VERSION AS OF 2",
     Clone(("a",), ("b",), 2, if_not_exists=True)),
    ("REPLACE TABLE a SHALLOW CLONE b TIMESTAMP AS OF '2024-01-01'",
     Clone(("a",), ("b",), None, "2024-01-01", mode="replace")),
    ("CREATE OR REPLACE TABLE delta.`/a` SHALLOW CLONE parquet.`/b` TBLPROPERTIES "
     "('a.b' = 'c', delta.x.y 5, k = TRUE) LOCATION '/l''s'",
     Clone(("delta", "/a"), ("parquet", "/b"), mode="create_or_replace",
           properties={"a.b": "c", "delta.x.y": "5", "k": "true"}, location="/l's")),
    ("ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0 AND (b <> ')' OR c[1] = \"(\"))",
     AddConstraint(T, "c", SqlText("a > 0 AND (b <> ')' OR c[1] = \"(\")"))),
    ("alter table s.t add constraint 8277e0910d750195b448797616e091ad check (a > 0)",
     AddConstraint(("s", "t"), "8277e0910d750195b448797616e091ad", SqlText("a > 0"))),
    ("ALTER TABLE t ADD CONSTRAINT 12345e67 CHECK (a > 0)", AddConstraint(T, "12345e67", SqlText("a > 0"))),
    ("ALTER TABLE history DROP CONSTRAINT c", DropConstraint(("history",), "c")),
    ("ALTER TABLE t DROP CONSTRAINT IF EXISTS `odd name`", DropConstraint(T, "odd name", if_exists=True)),
    ("ALTER TABLE t DROP FEATURE deletionVectors", DropFeature(T, "deletionVectors")),
    ("ALTER TABLE t DROP FEATURE 'v2' 'Checkpoint' TRUNCATE HISTORY",
     DropFeature(T, "v2Checkpoint", truncate_history=True)),
    ("ALTER TABLE t CLUSTER BY (a, b.c)", ClusterBy(T, (("a",), ("b", "c")))),
    ("ALTER TABLE t CLUSTER BY NONE", ClusterBy(T)),
    ("ALTER TABLE t ALTER COLUMN id SYNC IDENTITY", SyncIdentity(T, ("id",))),
    ("ALTER TABLE t CHANGE id SYNC IDENTITY", SyncIdentity(T, ("id",))),
    ("ALTER TABLE t ALTER COLUMN SYNC IDENTITY", SyncIdentity(T, ("COLUMN",))),
]  # fmt: skip

OF_SPARK = [
    "", ";", "-- OPTIMIZE t", "/* VACUUM t */", "SELECT 1", "EXPLAIN OPTIMIZE t", "`OPTIMIZE` t", "'VACUUM'",
    "OPTIMIZED t", "DESCRIBE t", "DESCRIBE EXTENDED t", "DESCRIBE history", "DESCRIBE detail",
    "DESCRIBE history.t", "DESCRIBE detail.t", "DESC HISTORY AS JSON", "DESCRIBE history PARTITION (p = 1)",
    "DESCRIBE HISTORY EXTENDED t", "DESCRIBE HISTORY timestamp", "DESCRIBE TABLE history t",
    "DESCRIBE `history` t", "ALTER TABLE t ADD COLUMN feature INT", "ALTER TABLE t ADD COLUMN constraint INT",
    "ALTER TABLE t ADD COLUMNS (constraint INT)", "ALTER TABLE t ADD CONSTRAINT pk PRIMARY KEY (a)",
    "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0) ENFORCED", "ALTER TABLE t ADD CHECK (a > 0)",
    "ALTER TABLE t DROP COLUMN feature", "ALTER TABLE t DROP CONSTRAINT c CASCADE",
    "ALTER TABLE t ALTER COLUMN a COMMENT 'SYNC IDENTITY'", "ALTER TABLE t CHANGE COLUMN a a INT",
    "ALTER TABLE t CLUSTER BY AUTO", "ALTER TABLE t SET TBLPROPERTIES ('a' = 'DROP FEATURE')",
    "ALTER VIEW v AS SELECT 1", "ALTER TABLE", "CREATE TABLE clone (a INT)",
    "CREATE TABLE t (shallow INT, clone INT) USING delta", "CREATE TABLE t (deep INT) USING delta",
    "CREATE TABLE t USING delta AS SELECT * FROM shallow clone", "CREATE OR REPLACE VIEW v AS SELECT 1",
    "CREATE TABLE t SHALLOW", "optimize: BEGIN SELECT 1; END",
]  # fmt: skip

# The statement, the condition, and the text that its offset points at; none for the end.
WRONG = [
    ("OPTIMIZE", "PARSE_SYNTAX_ERROR", ""),
    ("OPTIMIZE WHERE a = 1", "PARSE_SYNTAX_ERROR", "WHERE a"),
    ("OPTIMIZE t WHERE", "PARSE_SYNTAX_ERROR", ""),
    ("OPTIMIZE t WHERE ZORDER BY a", "PARSE_SYNTAX_ERROR", "ZORDER"),
    ("OPTIMIZE t WHERE a = 1) OR (b = 2", "PARSE_SYNTAX_ERROR", ") OR"),
    ("OPTIMIZE t; OPTIMIZE u", "PARSE_SYNTAX_ERROR", "OPTIMIZE u"),
    ("OPTIMIZE t ZORDER BY (a", "PARSE_SYNTAX_ERROR", ""),
    ("OPTIMIZE t ZORDER BY ()", "PARSE_SYNTAX_ERROR", ")"),
    ("OPTIMIZE ``", "PARSE_SYNTAX_ERROR", "``"),
    ("OPTIMIZE 5", "PARSE_SYNTAX_ERROR", "5"),
    ("OPTIMIZE t WHERE a = 'x", "PARSE_SYNTAX_ERROR", "'x"),
    ("OPTIMIZE t WHERE `a = 1", "PARSE_SYNTAX_ERROR", "`a = 1"),
    ("OPTIMIZE t /* and /* so */ on", "PARSE_SYNTAX_ERROR", "/* and"),
    (r"VACUUM '\UFFFFFFFF'", "PARSE_SYNTAX_ERROR", r"'\U"),
    ("-- one\nVACUUM t RETAIN x HOURS", "PARSE_SYNTAX_ERROR", "x HOURS"),
    ("VACUUM t RETAIN 1e999 HOURS", "PARSE_SYNTAX_ERROR", "1e999"),
    ("VACUUM t RETAIN 5", "PARSE_SYNTAX_ERROR", ""),
    ("VACUUM t DRY", "PARSE_SYNTAX_ERROR", ""),
    ("VACUUM t DRY RUN LITE DRY RUN", "DUPLICATE_CLAUSES", "DRY RUN"),
    ("VACUUM t LITE USING INVENTORY i", "_LEGACY_ERROR_TEMP_0035", "i"),
    ("VACUUM t USING INVENTORY (SELECT 1", "PARSE_SYNTAX_ERROR", ""),
    ("DESCRIBE HISTORY t LIMIT many", "PARSE_SYNTAX_ERROR", "many"),
    ("DESCRIBE DETAIL '/p' t", "PARSE_SYNTAX_ERROR", "t"),
    ("RESTORE TABLE t TO YESTERDAY", "PARSE_SYNTAX_ERROR", "YESTERDAY"),
    ("RESTORE TABLE t TO VERSION AS OF 'one'", "PARSE_SYNTAX_ERROR", "'one'"),
    ("RESTORE TABLE t TO VERSION AS OF -1", "PARSE_SYNTAX_ERROR", "-1"),
    ("RESTORE TABLE t TO VERSION AS OF " + "9" * 5000, "PARSE_SYNTAX_ERROR", "99"),
    ("RESTORE t FOR 3", "PARSE_SYNTAX_ERROR", "3"),
    ("CONVERT DELTA t", "PARSE_SYNTAX_ERROR", "DELTA"),
    ("GENERATE symlink_format_manifest t", "PARSE_SYNTAX_ERROR", "t"),
    ("REORG TABLE t APPLY (OPTIMIZE)", "PARSE_SYNTAX_ERROR", "OPTIMIZE"),
    ("REORG TABLE t WHERE a = 1", "PARSE_SYNTAX_ERROR", ""),
    ("ALTER TABLE t DROP FEATURE f TRUNCATE", "PARSE_SYNTAX_ERROR", ""),
    ("ALTER TABLE t ALTER COLUMN a SYNC", "PARSE_SYNTAX_ERROR", ""),
    ("CREATE TABLE a SHALLOW CLONE b LOCATION l", "PARSE_SYNTAX_ERROR", "l"),
    ("CREATE TABLE a SHALLOW CLONE b TBLPROPERTIES ('a' = 'b', 'a' = 'c')", "DUPLICATE_KEY", "'a' = 'c'"),
    ("CREATE TABLE a SHALLOW CLONE b TBLPROPERTIES ('k')", "_LEGACY_ERROR_TEMP_0035", "'k'"),
    ("CREATE TABLE a SHALLOW CLONE b TBLPROPERTIES ('k' = NULL)", "PARSE_SYNTAX_ERROR", "NULL"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "record"), FORMS, ids=[text for text, _ in FORMS])
def test_statement_becomes_its_record(text: str, record: Statement) -> None:
    assert parse(text) == record
    assert re.search(HEADS, text)


def test_every_record_has_a_form() -> None:
    assert {type(record) for _, record in FORMS} == set(Statement.__args__)


@pytest.mark.parametrize("text", OF_SPARK)
def test_text_of_spark_is_left_to_it(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(("text", "condition", "where"), WRONG)
def test_wrong_statement_says_where(text: str, condition: str, where: str) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse(text)
    assert caught.value.condition == condition
    assert text[caught.value.offset :].startswith(where)
    assert bool(text[caught.value.offset :]) == bool(where)


# --- text kept for Spark


def test_predicate_knows_where_it_begins() -> None:
    text = "/* a */ OPTIMIZE t WHERE  a  =\n-- one\n 1  ;"
    statement = parse(text)
    assert isinstance(statement, Optimize)
    assert statement.where is not None
    assert (statement.where.text, str(statement.where)) == ("a  =\n-- one\n 1", "a  =\n-- one\n 1")
    assert text[statement.where.offset :].startswith("a  =")


# --- parameters


@pytest.mark.parametrize(
    ("text", "parameters", "record"),
    [
        ("VACUUM t RETAIN :hours HOURS", {"hours": "168"}, Vacuum(T, 168.0)),
        ("VACUUM t RETAIN :hours HOURS", {"hours": "-0.5BD"}, Vacuum(T, -0.5)),
        ("DESCRIBE HISTORY t LIMIT ?", ["2"], DescribeHistory(T, 2)),
        ("RESTORE t TO TIMESTAMP AS OF :at", {"at": "'2024-01-01'"}, Restore(T, None, "2024-01-01")),
        (
            "OPTIMIZE t WHERE a = ? /* ? */ AND b = '?' AND c IN (?,?) ZORDER BY d",
            ["1", "'x'", "DATE'2024-01-01'"],
            Optimize(
                T,
                where=SqlText("a = 1 /* ? */ AND b = '?' AND c IN ('x',DATE'2024-01-01')"),
                zorder_by=(("d",),),
            ),
        ),
        (
            "REORG TABLE t WHERE :a < x AND v:a = 1 AND x::int = ? APPLY (PURGE)",
            {"a": "0"},
            "?",
        ),
        (
            "REORG TABLE t WHERE x:a[0]:b = :a AND y::int = 1 AND z?::int = 2 APPLY (PURGE)",
            {"a": "0"},
            Reorg(T, SqlText("x:a[0]:b = 0 AND y::int = 1 AND z?::int = 2")),
        ),
        ("OPTIMIZE t WHERE a -?=?AND b", ["-1", "2"], Optimize(T, where=SqlText("a - -1=2 AND b"))),
        ("VACUUM t RETAIN :hours HOURS", None, ":hours"),
        ("VACUUM t RETAIN :hours HOURS", {"days": "7"}, ":hours"),
        ("VACUUM t RETAIN :hours HOURS", ["7"], ":hours"),
        ("OPTIMIZE t WHERE a = ? AND b = ?", ["1"], "?"),
        ("OPTIMIZE t WHERE a = :b", None, ":b"),
    ],
)
def test_markers_take_their_values(text: str, parameters: object, record: Statement | str) -> None:
    if not isinstance(record, str):
        assert parse(text, parameters) == record  # type: ignore[arg-type]
        return
    with pytest.raises(SqlSyntaxError) as caught:
        parse(text, parameters)  # type: ignore[arg-type]
    assert caught.value.condition == "UNBOUND_SQL_PARAMETER"
    assert text[caught.value.offset :].startswith(record)
