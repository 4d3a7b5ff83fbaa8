"""DELETE, UPDATE, MERGE and INSERT taken apart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_ds.spark.base.sql_grammar.dml_grammar import parse_dml
from delta_ds.spark.base.sql_grammar.statements import Delete, Insert, Merge, MergeClause, SqlText, Update
from delta_ds.spark.base.sql_grammar.tokens import SqlSyntaxError
from spark_tests.full_form import examples

T, P = ("t",), ("delta", "/p")
S = SqlText


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("DELETE FROM t", Delete(T)),
        ("/* x */ delete from delta.`/p` as d where d.a in (1, 2);", Delete(P, "d", S("d.a in (1, 2)"))),
        ("WITH q (x) AS (SELECT 1), r AS (SELECT 2) DELETE FROM t x WHERE a",
         Delete(T, "x", S("a"), S("WITH q (x) AS (SELECT 1), r AS (SELECT 2)"))),
        ("UPDATE t SET a = f(1, 2), t.b.c == CASE WHEN d THEN 1 ELSE 2 END WHERE e",
         Update(T, ((("a",), S("f(1, 2)")), (("t", "b", "c"), S("CASE WHEN d THEN 1 ELSE 2 END"))), None, S("e"))),
        ("UPDATE delta.`/p` AS u SET a = DEFAULT", Update(P, ((("a",), S("DEFAULT")),), "u")),
        ("MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE",
         Merge(T, S("s"), "s", S("t.a = s.a"), (MergeClause("matched", "delete"),))),
        ("WITH q AS (SELECT 1) MERGE WITH SCHEMA EVOLUTION INTO delta.`/p` AS t USING (SELECT * FROM q) AS s "
         "ON CASE WHEN NOT matched THEN true END AND t.a = s.a "
         "WHEN MATCHED AND CASE WHEN b THEN c END THEN UPDATE SET * "
         "WHEN MATCHED THEN UPDATE SET a = CASE WHEN MATCHED THEN 1 END, b = 2 "
         "WHEN NOT MATCHED AND x THEN INSERT * "
         "WHEN NOT MATCHED BY TARGET THEN INSERT (a, b.c) VALUES (s.a, f(1, 2)) "
         "WHEN NOT MATCHED BY SOURCE AND y THEN UPDATE SET a = 0 WHEN NOT MATCHED BY SOURCE THEN DELETE",
         Merge(P, S("(SELECT * FROM q) AS s"), "s", S("CASE WHEN NOT matched THEN true END AND t.a = s.a"),
               (MergeClause("matched", "update", S("CASE WHEN b THEN c END")),
                MergeClause("matched", "update", None,
                            ((("a",), S("CASE WHEN MATCHED THEN 1 END")), (("b",), S("2")))),
                MergeClause("not_matched", "insert", S("x")),
                MergeClause("not_matched", "insert", None, ((("a",), S("s.a")), (("b", "c"), S("f(1, 2)")))),
                MergeClause("not_matched_by_source", "update", S("y"), ((("a",), S("0")),)),
                MergeClause("not_matched_by_source", "delete")),
               "t", True, S("WITH q AS (SELECT 1)"))),
        ("MERGE INTO t USING delta.`/s` ON true WHEN MATCHED THEN DELETE",
         Merge(T, S("delta.`/s`"), "/s", S("true"), (MergeClause("matched", "delete"),))),
        ("INSERT INTO t VALUES (1, 'a')", Insert(T, S("VALUES (1, 'a')"))),
        ("INSERT INTO TABLE t (SELECT 1) UNION ALL SELECT 2", Insert(T, S("(SELECT 1) UNION ALL SELECT 2"))),
        ("INSERT INTO t (a, `b`) SELECT 1, 2", Insert(T, S("SELECT 1, 2"), columns=(("a",), ("b",)))),
        ("INSERT WITH SCHEMA EVOLUTION INTO t BY NAME TABLE s",
         Insert(T, S("TABLE s"), by_name=True, schema_evolution=True)),
        ("WITH q AS (SELECT 1) INSERT OVERWRITE TABLE t PARTITION (p = f(1, 2), q) IF NOT EXISTS FROM q SELECT *",
         Insert(T, S("FROM q SELECT *"), True, ((("p",), S("f(1, 2)")), (("q",), None)), True,
                ctes=S("WITH q AS (SELECT 1)"))),
        ("INSERT OVERWRITE t WITH (`userMetadata` = 'told', 'maxRecordsPerFile' = 1) BY NAME WITH q AS (SELECT 1) "
         "TABLE q",
         Insert(T, S("WITH q AS (SELECT 1) TABLE q"), True, by_name=True,
                options={"userMetadata": "told", "maxRecordsPerFile": "1"})),
        ("INSERT INTO t WITH (mergeSchema = true) REPLACE WHERE a = 1 SELECT 3",
         Insert(T, S("SELECT 3"), replace_where=S("a = 1"), options={"mergeSchema": "true"})),
        ("INSERT INTO t REPLACE WHERE a IN (SELECT 1) AND b = 2 SELECT 3",
         Insert(T, S("SELECT 3"), replace_where=S("a IN (SELECT 1) AND b = 2"))),
    ],
)  # fmt: skip
def test_a_statement_comes_apart(text: str, record: object) -> None:
    assert parse_dml(text) == record


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "WITH q AS (SELECT 1) SELECT * FROM q",
        "DELETE t",
        "DELETE FROM t WHERE",
        "DELETE FROM t x (a)",
        "UPDATE t SET",
        "UPDATE t SET a",
        "MERGE INTO t USING s AS x (a) ON true WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING s ON true WHEN NOT MATCHED THEN INSERT (a) VALUES (1, 2)",
        "MERGE INTO t USING s ON true WHEN NOT MATCHED THEN DELETE",
        "MERGE INTO t USING s ON true WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *",
        "INSERT INTO t",
        "INSERT INTO t (a)",
        "INSERT INTO t PARTITION (p = 1, P = 2) SELECT 1",
        "INSERT INTO t PARTITION (p = DEFAULT) SELECT 1",
        "INSERT INTO t PARTITION (a.b = 1) SELECT 1",
        "INSERT OVERWRITE DIRECTORY '/p' USING parquet SELECT 1",
        "INSERT INTO t SELECT 1; INSERT INTO t SELECT 2",
    ],
)
def test_what_is_not_understood_is_spark_s(text: str) -> None:
    assert parse_dml(text) is None


def test_markers_take_their_values() -> None:
    update: Any = parse_dml("UPDATE t SET a = ?, b = ? WHERE c = ?", ["1", "'?'", "DATE'2024-01-01'"])
    assert [str(text) for _, text in update.assignments] == ["1", "'?'"]
    assert str(update.where) == "c = DATE'2024-01-01'"
    with pytest.raises(SqlSyntaxError) as caught:
        parse_dml("DELETE FROM t WHERE a = :x", {"y": "1"})
    assert caught.value.condition == "UNBOUND_SQL_PARAMETER"


@settings(max_examples=examples(300), deadline=None)
@given(
    st.sampled_from(["DELETE FROM ", "UPDATE ", "MERGE INTO ", "INSERT INTO ", "WITH a AS (", ""]),
    st.lists(
        st.sampled_from(
            [
                "t",
                " ",
                "SET",
                "a",
                "=",
                "1",
                "WHERE",
                "WHEN",
                "MATCHED",
                "THEN",
                "CASE",
                "END",
                "ON",
                "USING",
                "(",
                ")",
            ]
            + [
                ",",
                "'",
                "`",
                ":x",
                "?",
                "/*",
                "--",
                "VALUES",
                "SELECT",
                "*",
                "PARTITION",
                "INSERT",
                "NOT",
                ";",
                ".",
            ]
        ),
        max_size=25,
    ).map(" ".join),
)
def test_any_text_is_a_record_or_none_or_lacks_a_value(head: str, rest: str) -> None:
    try:
        parse_dml(head + rest)
    except SqlSyntaxError as error:
        assert error.condition == "UNBOUND_SQL_PARAMETER"
