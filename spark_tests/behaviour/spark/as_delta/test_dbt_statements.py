"""The statements that dbt sends for Delta tables, as it sends them, and what it reads out of the answers.

Each comes behind a comment, from a thread of its own, to the session that a builder gives. `spark_tests/engines/dbt`
runs dbt itself, in an environment that has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.long

SCHEMA = "dbt_shop"
HEAD = '/* {"app": "dbt", "dbt_version": "1.11.10", "profile_name": "shop", "node_id": "model.shop.t"} */\n'


def send(text: str) -> list[Row]:
    """Run a statement in the way of dbt's method `session`; its answer."""

    def sent() -> list[Row]:
        session = SparkSession.builder.enableHiveSupport().config("spark.dbt", "1").getOrCreate()
        return session.sql(f"\n\n{HEAD}\n\n  {text}").collect()

    with ThreadPoolExecutor(1) as worker:
        return worker.submit(sent).result()


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A schema, in a folder of the test."""
    spark.sql(f"CREATE SCHEMA {SCHEMA} LOCATION '{tmp_path / SCHEMA}'")
    yield SCHEMA
    send(f"drop schema if exists {SCHEMA} cascade")
    spark.catalog.dropTempView("t__dbt_tmp")


def rows(name: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in send(f"select * from {name}")), key=str)


def make(name: str, query: str, clauses: str = "") -> None:
    send(f"create or replace table {name}\n\n  using delta\n  {clauses}\n\n  as\n  -- a comment\n\n{query}")


# --- what there is


def test_a_schema_that_is_not_there_is_told_by_its_condition(spark: SparkSession):
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        send("show table extended in dbt_nothing like '*'")


def test_a_table_that_is_not_there_is_told_by_its_condition(shop: str):
    for text in (f"select * from {shop}.gone", f"optimize {shop}.gone", f"describe history {shop}.gone"):
        with pytest.raises(
            AnalysisException, match=r"\[TABLE_OR_VIEW_NOT_FOUND\]|\[DELTA_MISSING_DELTA_TABLE\]"
        ):
            send(text)


def test_relations_are_told_apart_by_the_text_of_their_information(shop: str):
    make(f"{shop}.t", "select 1 as id")
    send(f"create or replace view {shop}.v as select * from {shop}.t")
    send(f"create table {shop}.p (id bigint) using parquet")
    found = {row[1]: row for row in send(f"show table extended in {shop} like '*'")}
    assert {len(row) for row in found.values()} == {4}
    information = {name: row[3] for name, row in found.items()}
    assert {name for name, text in information.items() if "Provider: delta" in text} == {"t"}
    assert {name for name, text in information.items() if "Type: VIEW" in text} == {"v"}
    assert {tuple(row)[1] for row in send(f"show tables in {shop} like '*'")} == {"t", "v", "p"}
    assert shop in [row[0] for row in send("show databases")]


def test_describe_extended_begins_with_the_columns(shop: str):
    make(f"{shop}.t", "select 1L as `id`, 'x' as day", "partitioned by (day)")
    described = send(f"describe extended {shop}.t")
    ends = next(i for i, row in enumerate(described) if row["col_name"] in ("",) or row["col_name"][0] == "#")
    assert [(row["col_name"], row["data_type"]) for row in described[:ends]] == [
        ("id", "bigint"),
        ("day", "string"),
    ]
    details = {row["col_name"]: row["data_type"] for row in described[ends:]}
    assert (details["Provider"], details["Type"]) == ("delta", "MANAGED")


# --- seeds and models


def test_a_seed_is_loaded_and_loaded_again(shop: str, spark: SparkSession):
    for _ in range(2):
        send(f"drop table if exists {shop}.seed")
        send(f"create table {shop}.seed (`id` bigint,`name` string)\n    using delta\n\n  ")
        # This one has no comment in front.
        values = "(cast(1 as bigint),cast('a' as string)),(cast(2 as bigint),cast(null as string))"
        assert spark.sql(f"\n  insert into {shop}.seed values\n  {values}\n ").collect() == []
        assert rows(f"{shop}.seed") == [(1, "a"), (2, None)]


def test_a_table_is_replaced_by_a_query_on_itself(shop: str):
    make(f"{shop}.t", "select 1 as n")
    make(f"{shop}.t", f"with old as (select * from {shop}.t) select n + 1 as n from old")
    assert rows(f"{shop}.t") == [(2,)]
    history = send(f"describe history {shop}.t limit 1")
    assert (history[0]["version"], history[0]["operation"]) == (1, "CREATE OR REPLACE TABLE AS SELECT")


def test_a_table_is_replaced_by_one_of_another_layout(shop: str):
    make(f"{shop}.t", "select 1 as a, 2 as b", "partitioned by (a)")
    clauses = "tblproperties ('delta.enableChangeDataFeed' = 'true' , 'k' = 'v')\n comment 'it''s'"
    make(f"{shop}.t", "select 'x' as b, 1.5 as c", f"partitioned by (b)\n {clauses}")
    detail = send(f"describe detail {shop}.t")[0]
    assert (detail["partitionColumns"], detail["description"], detail["properties"]["k"]) == (
        ["b"],
        "it's",
        "v",
    )
    assert rows(f"{shop}.t") == [("x", Decimal("1.5"))]


def test_comments_of_columns_travel_through_views_into_new_tables(shop: str):
    make(f"{shop}.t", "select 1 as id")
    send(f"alter table {shop}.t change column `id` comment 'a key\\'s key'")
    send(f"create or replace view {shop}.v as select * from {shop}.t")
    make(f"{shop}.u", f"select * from {shop}.v")
    assert send(f"describe {shop}.u")[0]["comment"] == "a key's key"


# --- incremental models


@pytest.fixture
def target(shop: str) -> str:
    """A table of two rows, and rows for it in a temporary view that reads it."""
    make(f"{shop}.t", "select stack(2, 1, 'a', 2, 'b') as (id, s)", "partitioned by (s)")
    query = f"select id + 1 as id, 'new' as s from {shop}.t where id >= (select max(id) - 1 from {shop}.t)"
    send(f"create or replace temporary view t__dbt_tmp as\n{query}")
    return f"{shop}.t"


def test_rows_are_appended_from_a_view_over_the_target(target: str):
    send(f"insert into table {target}\n  select `id`, `s` from t__dbt_tmp")
    assert rows(target) == [(1, "a"), (2, "b"), (2, "new"), (3, "new")]


def test_partitions_are_overwritten_and_an_unpartitioned_table_is_overwritten_whole(
    target: str, shop: str, spark: SparkSession
):
    send("set spark.sql.sources.partitionOverwriteMode = DYNAMIC")
    try:
        send(f"insert overwrite table {target} partition (s) select id, 'b' as s from t__dbt_tmp")
        assert rows(target) == [(1, "a"), (2, "b"), (3, "b")]
        make(f"{shop}.whole", "select 1 as id")
        send(f"insert overwrite table {shop}.whole\n  select `id` + 6 as id from {shop}.whole")
        assert rows(f"{shop}.whole") == [(7,)]
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


def merge(target: str, on: str, clauses: str, source: str = "t__dbt_tmp") -> None:
    sides = f"{target} as DBT_INTERNAL_DEST\n using {source} as DBT_INTERNAL_SOURCE"
    send(f"-- a comment\nmerge into {sides}\n on {on}\n\n{clauses}")


def test_rows_are_merged_with_all_columns(target: str):
    on = "\n DBT_INTERNAL_SOURCE.id = DBT_INTERNAL_DEST.id\n and DBT_INTERNAL_DEST.s >= 'a'"
    merge(target, on, "when matched then update set\n *\n\n when not matched then insert *")
    assert rows(target) == [(1, "a"), (2, "new"), (3, "new")]


def test_rows_are_merged_with_some_columns(target: str):
    clauses = "when matched then update set `s` = DBT_INTERNAL_SOURCE.`s` when not matched then insert *"
    merge(target, "DBT_INTERNAL_SOURCE.id = DBT_INTERNAL_DEST.id", clauses)
    assert rows(target) == [(1, "a"), (2, "new"), (3, "new")]


def test_rows_are_merged_without_a_key(target: str):
    merge(target, "FALSE", "when not matched then insert *")
    assert rows(target) == [(1, "a"), (2, "b"), (2, "new"), (3, "new")]


def test_columns_are_added_with_and_without_parentheses(target: str):
    send(f"alter table {target}\n add columns\n `c` string, `d` struct<a:int>")
    send(f"alter table {target} add columns (`e` timestamp)")
    assert [row["col_name"] for row in send(f"describe {target}")][:5] == ["id", "s", "c", "d", "e"]


# --- snapshots


def test_a_snapshot_merges_from_a_permanent_view_over_itself(shop: str):
    make(
        f"{shop}.snap",
        "select 1 as id, 'a' as v, cast(null as timestamp) as dbt_valid_to, 'h1' as dbt_scd_id",
    )
    query = f"""
    with kept as (select * from {shop}.snap where dbt_valid_to is null),
    changed as (
      select id, v, timestamp'2026-01-01' as dbt_valid_to, dbt_scd_id, 'update' as dbt_change_type, 1 as more from kept
    ),
    fresh as (
      select 1 as id, 'b' as v, cast(null as timestamp) as dbt_valid_to, 'h2' as dbt_scd_id,
             'insert' as dbt_change_type, 1 as more
    )
    select * from changed union all select * from fresh"""
    send(f"create or replace view {shop}.snap__dbt_tmp\n as\n{query}")
    merge(
        f"{shop}.snap",
        "DBT_INTERNAL_SOURCE.dbt_scd_id = DBT_INTERNAL_DEST.dbt_scd_id",
        "when matched\n and DBT_INTERNAL_DEST.dbt_valid_to is null\n and DBT_INTERNAL_SOURCE.dbt_change_type in "
        "('update', 'delete')\n then update\n set dbt_valid_to = DBT_INTERNAL_SOURCE.dbt_valid_to\n"
        "when not matched\n and DBT_INTERNAL_SOURCE.dbt_change_type = 'insert'\n then insert *",
        f"{shop}.snap__dbt_tmp",
    )
    found = [(id, v, to is None, scd) for id, v, to, scd in rows(f"{shop}.snap")]
    assert found == [(1, "a", False, "h1"), (1, "b", True, "h2")]
    send(f"drop view if exists {shop}.snap__dbt_tmp")
    assert [row[1] for row in send(f"show tables in {shop}")] == ["snap"]


# --- contracts, tests, the rest


def test_constraints_may_have_names_that_begin_with_a_digit(shop: str):
    make(f"{shop}.t", "select 1 as id")
    send(f"alter table {shop}.t add constraint 0abc12 check (id > 0)")
    with pytest.raises(Exception, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        send(f"insert into {shop}.t values (0)")
    schema = SparkSession.builder.getOrCreate().sql(
        f"select * from ( select id from {shop}.t ) as __dbt_sbq where false limit 0"
    )
    assert [field.name for field in schema.schema] == ["id"]


def test_a_clone_takes_the_place_of_a_table_that_is_empty(shop: str):
    make(f"{shop}.t", "select 1 as id")
    for _ in range(2):
        send(f"create or replace table {shop}.c\n  shallow clone {shop}.t")
        assert rows(f"{shop}.c") == [(1,)]
        send(f"truncate table {shop}.c")


def test_the_temporary_view_of_a_unit_test_is_dropped_as_a_table(shop: str):
    send("create or replace temporary view t__dbt_tmp as select * from (select 1 as id) where false limit 0")
    assert send("describe extended t__dbt_tmp")[0]["data_type"] == "int"
    send("drop table if exists t__dbt_tmp")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        send("select * from t__dbt_tmp")


def test_a_table_is_renamed_truncated_and_dropped_with_its_folder(shop: str, tmp_path: Path):
    make(f"{shop}.a", "select 1 as id")
    send(f"alter table {shop}.a rename to {shop}.b")
    send(f"truncate table {shop}.b")
    assert rows(f"{shop}.b") == []
    send(f"drop table if exists {shop}.b")
    send(f"drop table if exists {shop}.b")
    assert not list((tmp_path / SCHEMA).glob("*/_delta_log"))
    make(f"{shop}.b", "select 2 as id")
    assert rows(f"{shop}.b") == [(2,)]


def test_hooks_are_run_behind_the_comment(shop: str):
    make(f"{shop}.t", "select stack(3, 1, 'a', 2, 'b', 3, 'c') as (id, s)", "partitioned by (s)")
    send(f"optimize {shop}.t where s = 'a'")
    send(f"optimize {shop}.t zorder by (id)")
    send(f"vacuum {shop}.t retain 168 hours")
    send(f"vacuum {shop}.t dry run")
    send(f"delete from {shop}.t where id = 1")
    send(f"update {shop}.t set id = id + 10 where s = 'b'")
    send(f"merge into {shop}.t t using (select 3 as id) s on t.id = s.id when matched then delete")
    send(f"insert into {shop}.t (s, id) values ('d', 4)")
    send(f"comment on table {shop}.t is 'it is'")
    send(f"alter table {shop}.t set tblproperties ('k' = 'v')")
    send(f"refresh table {shop}.t")
    assert rows(f"{shop}.t") == [(12, "b"), (4, "d")]
    assert send(f"describe detail {shop}.t")[0]["description"] == "it is"
    assert [tuple(row) for row in send(f"show tblproperties {shop}.t ('k')")] == [("k", "v")]
    assert rows(f"{shop}.t version as of 0") == [(1, "a"), (2, "b"), (3, "c")]
    send(f"restore table {shop}.t to version as of 0")
    assert len(rows(f"{shop}.t")) == 3


def test_many_threads_write_their_own_tables(shop: str):
    def build(n: int) -> list[tuple[Any, ...]]:
        make(f"{shop}.t{n}", f"select {n} as n")
        send(f"insert into table {shop}.t{n} select n + 10 as n from {shop}.t{n}")
        return rows(f"{shop}.t{n}")

    with ThreadPoolExecutor(4) as workers:
        assert [set(found) for found in workers.map(build, range(4))] == [{(n,), (n + 10,)} for n in range(4)]
