"""Tables by path in the text of a query."""

from __future__ import annotations

import pytest

from delta_ds.spark.sql.client_references import find_references

P = {"path": "/p"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT * FROM delta.`/p`", [("delta.`/p`", P)]),
        ("select * from PYDELTA . `/p` t", [("PYDELTA . `/p`", P)]),
        ("SELECT * FROM spark_catalog.delta.`/p@v3`", [("spark_catalog.delta.`/p@v3`", {"path": "/p@v3"})]),
        ("TABLE delta.`/p`", [("delta.`/p`", P)]),
        ("DESCRIBE EXTENDED delta.`/p`", [("delta.`/p`", P)]),
        ("SELECT 1 FROM a, delta.`/p` JOIN `delta`.`s3://b/c` USING (id)",
         [("delta.`/p`", P), ("`delta`.`s3://b/c`", {"path": "s3://b/c"})]),
        ("SELECT * FROM delta.`/p` VERSION AS OF 3", [("delta.`/p` VERSION AS OF 3", {**P, "versionAsOf": "3"})]),
        ("SELECT * FROM delta.`/p` FOR SYSTEM_TIME AS OF TIMESTAMP'2024-01-01' x",
         [("delta.`/p` FOR SYSTEM_TIME AS OF TIMESTAMP'2024-01-01'", {**P, "timestampAsOf": "2024-01-01"})]),
        ("SELECT * FROM (SELECT * FROM delta.`/p`) -- delta.`/q`", [("delta.`/p`", P)]),
        ("SELECT * FROM table_changes('delta.`/p`', 0, '2024-01-01')",
         [("table_changes('delta.`/p`', 0, '2024-01-01')",
           {**P, "readChangeFeed": "true", "startingVersion": "0", "endingTimestamp": "2024-01-01"})]),
        ("SELECT * FROM table_changes_by_path('/p', 2)",
         [("table_changes_by_path('/p', 2)", {**P, "readChangeFeed": "true", "startingVersion": "2"})]),
    ],
)  # fmt: skip
def test_a_table_by_path_is_found_with_its_options(
    text: str, found: list[tuple[str, dict[str, str]]]
) -> None:
    assert [(text[r.start : r.end], r.options) for r in find_references(text)] == found


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("current_timestamp() t WHERE a = 1", "current_timestamp()"),
        ("now() - INTERVAL 1 DAY AS t, delta.`/q`", "now() - INTERVAL 1 DAY"),
        ("date_sub(current_date(), 1) + interval '2' hours)", "date_sub(current_date(), 1) + interval '2' hours"),
        ("CAST('2024-01-01' AS TIMESTAMP) JOIN a USING (id)", "CAST('2024-01-01' AS TIMESTAMP)"),
    ],
)  # fmt: skip
def test_a_call_in_the_place_of_a_timestamp_is_its_moment(text: str, moment: str) -> None:
    found = find_references(f"SELECT * FROM (SELECT * FROM delta.`/p` FOR SYSTEM_TIME AS OF {text}")
    assert (found[0].options, found[0].moment) == (P, moment)


@pytest.mark.parametrize("text", ["(SELECT 1)", "now() - x", "current_timestamp", "1 + 1"])
def test_any_other_expression_of_a_timestamp_is_left_to_spark(text: str) -> None:
    assert find_references(f"SELECT * FROM delta.`/p` TIMESTAMP AS OF {text}") == []


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("SELECT 1 FROM (delta.`/a` a JOIN delta.`/b` b ON a.id = b.id)", "/a /b"),
        ("SELECT 1 FROM ((delta.`/a` JOIN (delta.`/b`) ON true) CROSS JOIN LATERAL (SELECT d.`a/b`)), delta.`/c`",
         "/a /b /c"),
        ("WITH a AS (TABLE delta.`/a`), b(x) AS ((SELECT 1 FROM delta.`/b`)) SELECT * FROM a, b, delta.`/c`",
         "/a /b /c"),
        ("SELECT * FROM (WITH a AS (SELECT 1 FROM delta.`/a`), b AS (TABLE delta.`/b`) TABLE a) c, delta.`/c`",
         "/a /b /c"),
        ("FROM delta.`/a` a |> WHERE x = d.`b/c` |> JOIN delta.`/b` b ON a.x = delta.`x/y` |> UNION TABLE delta.`/c`",
         "/a /b /c"),
        ("(SELECT 1 FROM delta.`/a`) UNION ALL (TABLE delta.`/b`) EXCEPT TABLE delta.`/c`", "/a /b /c"),
        ("SELECT * FROM f(TABLE delta.`/a`, x => TABLE(delta.`/b`)), delta.`/c`", "/a /b /c"),
        ("SELECT (SELECT max(a) FROM delta.`/a`), exists(SELECT 1 FROM delta.`/b`) WHERE x IN (TABLE delta.`/c`)",
         "/a /b /c"),
        ("SELECT * FROM VALUES (1), (2) AS t(a), delta.`/a`", "/a"),
        ("SELECT * FROM delta.`/a` PIVOT (sum(x) FOR y IN (1, 2)), delta.`/b` TABLESAMPLE (10 ROWS), a NATURAL JOIN "
         "delta.`/c`", "/a /b /c"),
        ("MERGE INTO t AS delta USING (TABLE delta.`/a`) s ON delta.`a/b` = 1 WHEN MATCHED THEN UPDATE SET a = 1, "
         "delta.`c/d` = 2", "/a"),
        ("MERGE INTO t USING delta.`/a` s ON true WHEN MATCHED THEN DELETE", "/a"),
        ("INSERT INTO t (SELECT * FROM delta.`/a` UNION (TABLE delta.`/b`))", "/a /b"),
        ("CREATE TABLE delta.`/x` AS SELECT * FROM delta.`/a`", "/a"),
        ("CREATE TEMPORARY VIEW v (a, b) AS TABLE delta.`/a`", "/a"),
        ("EXPLAIN EXTENDED TABLE delta.`/a`", "/a"),
        ("DESCRIBE SELECT * FROM delta.`/a`", "/a"),
        ("SHOW COLUMNS FROM delta.`/a`", "/a"),
        ("SELECT 1; TABLE delta.`/a`; SELECT 2, delta.`a/b` FROM t AS delta, delta.`/b`", "/a /b"),
    ],
)  # fmt: skip
def test_tables_are_found_wherever_a_relation_stands(text: str, paths: str) -> None:
    assert [reference.options["path"] for reference in find_references(text)] == paths.split()


@pytest.mark.parametrize(
    "expression",
    [
        "delta.`a/b`",
        "(delta.`a/b`)",
        "1, delta.`a/b`",
        "sum(delta.`a/b`) OVER (PARTITION BY x, delta.`a/b` ORDER BY x, delta.`a/b`)",
        "EXTRACT(DAY FROM delta.`a/b`)",
        "trim(BOTH 'x' FROM delta.`a/b`)",
        "x IS NOT DISTINCT FROM delta.`a/b`",
        "f(x, delta.`a/b`)",
        "CASE WHEN x THEN delta.`a/b` END",
        "t.from, delta.`a/b`",
        "x IN (1, delta.`a/b`)",
        "transform(a, x -> delta.`a/b`)",
    ],
)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT {} FROM delta.`/p` AS delta",
        "SELECT x, {} FROM delta.`/p` AS delta",
        "SELECT 1 FROM delta.`/p` AS delta WHERE a > 1 AND f({})",
        "SELECT 1 FROM delta.`/p` AS delta GROUP BY x, {} HAVING max({}) > 1 ORDER BY y, {}",
        "SELECT 1 FROM delta.`/p` AS delta JOIN u ON f({}) = 1",
        "SELECT 1 FROM delta.`/p` AS delta LATERAL VIEW explode(f({})) v AS k, l WHERE f({})",
        "WITH c AS (SELECT {} FROM delta.`/p` AS delta) SELECT 1, c.d FROM c",
        "SELECT * FROM (SELECT x, {} FROM delta.`/p` AS delta) ORDER BY 1",
        "SELECT (SELECT x, {} FROM delta.`/p` AS delta)",
        "FROM delta.`/p` AS delta |> SELECT x, {}",
    ],
)
def test_a_column_is_never_taken_for_a_table(query: str, expression: str) -> None:
    found = find_references(query.replace("{}", expression))
    assert [reference.options["path"] for reference in found] == ["/p"]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE delta.`/p` (a INT)",
        "INSERT INTO TABLE delta.`/p` VALUES (1)",
        "DELETE FROM delta.`/p` WHERE a = 1",
        "TRUNCATE TABLE delta.`/p`",
        "ALTER TABLE delta.`/p` ADD COLUMN a INT",
        "SELECT x, delta.`a/b` FROM t AS delta",
        "SELECT 1 FROM t AS delta LATERAL VIEW explode(a) v AS k, delta.`a/b`",
        "SELECT * FROM delta",
        "SELECT * FROM sales.delta",
        "SELECT delta.`a b` FROM delta",
        "SELECT delta.`/a` FROM delta",
        "SELECT a, delta.b FROM t delta",
        "SELECT * FROM parquet.`/p`",
        "SELECT 'FROM delta.`/p`', \"FROM delta.`/p`\", `FROM delta./p`",
        "SELECT * FROM table_changes('sales', 0)",
        "SELECT * FROM table_changes(:t, 0)",
        "SELECT * FROM",
    ],
)
def test_others_are_spark_s(text: str) -> None:
    assert find_references(text) == []
