"""Tables by path in the text of a query."""

from __future__ import annotations

import pytest

from delta_ds.spark.connect_sql.references import find_references

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
    "text",
    [
        "SELECT * FROM delta",
        "SELECT * FROM sales.delta",
        "SELECT delta.`a b` FROM delta",
        "SELECT delta.`/a` FROM delta",
        "SELECT a, delta.b FROM t delta",
        "SELECT * FROM parquet.`/p`",
        "SELECT 'FROM delta.`/p`', \"FROM delta.`/p`\", `FROM delta./p`",
        "SELECT * FROM table_changes('sales', 0)",
        "SELECT * FROM table_changes(:t, 0)",
        "SELECT * FROM delta.`/p` TIMESTAMP AS OF current_timestamp()",
        "SELECT * FROM",
    ],
)
def test_others_are_spark_s(text: str) -> None:
    assert find_references(text) == []
