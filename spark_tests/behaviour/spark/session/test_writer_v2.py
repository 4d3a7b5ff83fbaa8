"""``df.writeTo("pydelta.`/path`")``, as delta-spark answers it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_ds import DeltaLog
from delta_ds.exceptions import (
    InvalidOptionError,
    InvariantViolationError,
    NotADeltaTableError,
    SchemaError,
    TableExistsError,
    UnsupportedOperationError,
)
from delta_ds.spark.session.writing import PathWriter

pytestmark = [pytest.mark.spark, pytest.mark.long]


def rows(spark: SparkSession, *ids: int) -> DataFrame:
    values = ", ".join(f"({i}L, {i % 2}L, 's{i}')" for i in ids)
    return spark.sql(f"select * from values {values} as t(id, p, s)")


def to(df: DataFrame, path: Path) -> PathWriter:
    writer = df.writeTo(f"pydelta.`{path}`")
    assert isinstance(writer, PathWriter)
    return writer


def ids(path: Path) -> list[int]:
    return sorted(DeltaLog(path).snapshot().scan(columns=["id"]).to_arrow()["id"].to_pylist())


def test_create_makes_a_table_as_described(session: SparkSession, tmp_path: Path) -> None:
    writer = to(rows(session, 1), tmp_path / "t").using("pydelta").partitionedBy("p", F.col("s"))
    # As with delta-spark, the option counts where a table may be there, and the session's setting always.
    session.conf.set("spark.databricks.delta.commitInfo.userMetadata", "why")
    try:
        writer.tableProperty("delta.appendOnly", "true").option("userMetadata", "other").create()
    finally:
        session.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
    snapshot = DeltaLog(tmp_path / "t").snapshot()
    assert (snapshot.partition_columns, snapshot.properties["delta.appendOnly"]) == (["p", "s"], "true")
    assert DeltaLog(tmp_path / "t").history()[0]["userMetadata"] == "why"
    with pytest.raises(TableExistsError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        to(rows(session, 2), tmp_path / "t").create()
    assert ids(tmp_path / "t") == [1]


def test_create_makes_a_clustered_table(session: SparkSession, tmp_path: Path) -> None:
    to(rows(session, 1), tmp_path / "t").clusterBy("id").create()
    assert DeltaLog(tmp_path / "t").snapshot().clustering_columns == [["id"]]


def test_append_goes_by_names(session: SparkSession, tmp_path: Path) -> None:
    to(rows(session, 1), tmp_path / "t").create()
    to(rows(session, 2).select("s", "id"), tmp_path / "t").append()
    assert session.table(f"pydelta.`{tmp_path / 't'}`").where("id = 2").select("s", "p").collect() == [
        ("s2", None)
    ]
    wider = rows(session, 3).withColumn("x", F.lit(1))
    with pytest.raises(SchemaError):
        to(wider, tmp_path / "t").append()
    to(wider, tmp_path / "t").option("mergeSchema", True).append()
    assert ids(tmp_path / "t") == [1, 2, 3]


NESTED = "id bigint, s struct<a: bigint, b: string>, l array<bigint>, m map<string, decimal(5,1)>"
CASTS = {
    "select 1 id, named_struct('a', 1, 'b', 'x') s, array(1) l, map('k', 1) m":
        '{"id":1,"s":{"a":1,"b":"x"},"l":[1],"m":{"k":1.0}}',
    "select map('k', 1) m, array(1) l, named_struct('b', 'x', 'a', 1) s, '7' id":
        '{"id":7,"s":{"a":1,"b":"x"},"l":[1],"m":{"k":1.0}}',
    "select 1.5D ID, named_struct('A', 1) S, array('5') l, map(2, 1.5D) m":
        '{"id":1,"s":{"a":1},"l":[5],"m":{"2":1.5}}',
    "select 1L id, null s, array() l": '{"id":1,"l":[]}',
}  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("query", CASTS)
def test_values_are_cast_to_the_types_of_columns_and_fields_of_the_same_names(
    session: SparkSession, tmp_path: Path, query: str
) -> None:
    path = tmp_path / "t"
    for number, way in enumerate(("writeTo", "saveAsTable", "overwritePartitions", "overwrite")):
        to(session.createDataFrame([], NESTED), path).createOrReplace()
        df = session.sql(query)
        if way == "writeTo":
            to(df, path).append()
        elif way == "saveAsTable":
            df.write.mode("append").saveAsTable(f"pydelta.`{path}`")
        elif way == "overwrite":
            to(df, path).overwrite(F.lit(True))
        else:
            to(df, path).overwritePartitions()
        (found,) = session.table(f"pydelta.`{path}`").selectExpr("to_json(struct(*)) t").collect()
        assert found["t"] == CASTS[query], (number, way)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("int", "3000000000L", "OVERFLOW"),
        ("int", "'x'", "CAST_INVALID_INPUT"),
        ("date", "1", "DATATYPE_MISMATCH"),
        ("struct<a: int>", "named_struct('a', 3000000000L)", "OVERFLOW"),
        ("array<int>", "array(1L, 3000000000L)", "OVERFLOW"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_before_the_commit(
    session: SparkSession, tmp_path: Path, kind: str, value: str, message: str
) -> None:
    path = tmp_path / "t"
    to(session.createDataFrame([], f"id {kind}"), path).create()
    for write in (
        lambda df: to(df, path).append(),
        lambda df: df.write.mode("append").saveAsTable(f"pydelta.`{path}`"),
    ):
        with pytest.raises(Exception, match=message):
            write(session.sql(f"select {value} id"))
    assert DeltaLog(path).snapshot().version == 0
    assert not list(path.glob("*.parquet"))


def test_types_stay_where_the_schema_is_to_follow(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    to(session.createDataFrame([], "id int"), path).tableProperty("delta.enableTypeWidening", "true").create()
    to(session.sql("select 3000000000L id"), path).option("mergeSchema", "true").append()
    assert session.table(f"pydelta.`{path}`").schema.simpleString() == "struct<id:bigint>"
    with pytest.raises(SchemaError, match="DELTA_FAILED_TO_MERGE_FIELDS"):
        to(session.sql("select '7' id"), path).option("overwriteSchema", "true").append()
    assert ids(path) == [3000000000]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("settings", "value", "found"),
    [
        ({}, "'7'", 7),
        ({"spark.sql.ansi.enabled": "false"}, "'7'", 7),
        ({"spark.sql.ansi.enabled": "false"}, "'x'", "CAST_INVALID_INPUT"),
        ({"spark.sql.ansi.enabled": "false"}, "99999999999L", "CAST_OVERFLOW_IN_TABLE_INSERT"),
        ({}, "99999999999L", "CAST_OVERFLOW_IN_TABLE_INSERT"),
        ({"spark.sql.storeAssignmentPolicy": "LEGACY"}, "'x'", None),
        ({"spark.sql.storeAssignmentPolicy": "LEGACY", "spark.sql.ansi.enabled": "false"}, "'x'", None),
        ({"spark.sql.storeAssignmentPolicy": "STRICT"}, "7L", "CANNOT_UP_CAST_DATATYPE"),
        ({"spark.sql.storeAssignmentPolicy": "STRICT"}, "CAST(7 AS SMALLINT)", 7),
    ],
)
def test_values_are_cast_by_the_store_assignment_policy_of_the_session(
    session: SparkSession, tmp_path: Path, settings: dict[str, str], value: str, found: object
) -> None:
    path = tmp_path / "t"
    to(session.createDataFrame([], "id int"), path).create()
    for name, text in settings.items():
        session.conf.set(name, text)
    try:
        if isinstance(found, str):
            with pytest.raises(Exception, match=found):
                to(session.sql(f"select {value} id"), path).append()
            assert ids(path) == []
        else:
            to(session.sql(f"select {value} id"), path).append()
            assert DeltaLog(path).snapshot().scan().to_arrow()["id"].to_pylist() == [found]
    finally:
        for name in settings:
            session.conf.unset(name)


def test_what_needs_a_table_says_so_where_there_is_none(session: SparkSession, tmp_path: Path) -> None:
    writer = to(rows(session, 1), tmp_path / "t")
    for call in (writer.append, lambda: writer.overwrite(F.lit(True)), writer.overwritePartitions):
        with pytest.raises(NotADeltaTableError):
            call()
    with pytest.raises(NotADeltaTableError, match="DELTA_CANNOT_REPLACE_MISSING_TABLE"):
        writer.replace()
    assert not (tmp_path / "t").exists()


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("condition", "left"),
    [
        (lambda: F.col("id") == 4, [1, 2, 3, 4]),
        (lambda: F.col("p") == 0, [1, 3, 4]),
        (lambda: F.col("id").isin(2, 4) & F.col("s").isNotNull(), [1, 3, 4]),
        (lambda: F.expr("id >= 2 and id <= 9"), [1, 4]),
        (lambda: ~F.col("s").isin("s1", "it's"), [1, 4]),
        (lambda: F.lit(True), [4]),
    ],
)
def test_overwrite_replaces_the_rows_that_match(
    session: SparkSession, tmp_path: Path, condition: Callable[[], Column], left: list[int]
) -> None:
    to(rows(session, 1, 2, 3), tmp_path / "t").create()
    to(rows(session, 4), tmp_path / "t").overwrite(condition())
    assert ids(tmp_path / "t") == left


def test_overwrite_refuses_rows_that_do_not_match(session: SparkSession, tmp_path: Path) -> None:
    to(rows(session, 1, 2), tmp_path / "t").create()
    with pytest.raises(InvariantViolationError, match="DELTA_REPLACE_WHERE_MISMATCH"):
        to(rows(session, 4), tmp_path / "t").overwrite(F.col("id") == 1)
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        to(rows(session, 4), tmp_path / "t").overwrite(F.col("nope") == 1)
    assert ids(tmp_path / "t") == [1, 2]


def test_overwrite_partitions_replaces_those_written_to(session: SparkSession, tmp_path: Path) -> None:
    to(rows(session, 1, 2), tmp_path / "t").partitionedBy("p").create()
    to(rows(session, 4), tmp_path / "t").overwritePartitions()
    assert ids(tmp_path / "t") == [1, 4]
    to(rows(session, 1, 2), tmp_path / "whole").create()
    to(rows(session, 4), tmp_path / "whole").overwritePartitions()
    assert ids(tmp_path / "whole") == [4]


def test_overwrite_of_everything_follows_the_session_in_what_it_replaces(
    session: SparkSession, tmp_path: Path
) -> None:
    to(rows(session, 1, 2), tmp_path / "t").partitionedBy("p").create()
    session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        to(rows(session, 4), tmp_path / "t").overwrite(F.lit(True))
    finally:
        session.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert ids(tmp_path / "t") == [1, 4]


def test_replace_puts_another_table_in_the_place_of_one(session: SparkSession, tmp_path: Path) -> None:
    to(rows(session, 1), tmp_path / "t").partitionedBy("p").tableProperty(
        "delta.checkpointInterval", "5"
    ).create()
    to(session.range(3).toDF("x"), tmp_path / "t").replace()
    snapshot = DeltaLog(tmp_path / "t").snapshot()
    assert (snapshot.version, list(snapshot.partition_columns), snapshot.properties) == (1, [], {})
    assert session.table(f"pydelta.`{tmp_path / 't'}`").columns == ["x"]


def test_create_or_replace_does_either(session: SparkSession, tmp_path: Path) -> None:
    to(rows(session, 1), tmp_path / "t").createOrReplace()
    to(rows(session, 2), tmp_path / "t").clusterBy("id").createOrReplace()
    assert (ids(tmp_path / "t"), DeltaLog(tmp_path / "t").snapshot().clustering_columns) == ([2], [["id"]])


def test_what_delta_does_not_have_is_refused(session: SparkSession, tmp_path: Path) -> None:
    writer = to(rows(session, 1).withColumn("d", F.current_date()), tmp_path / "t")
    with pytest.raises(UnsupportedOperationError, match="cannot be partitioned by the expression"):
        writer.partitionedBy(F.partitioning.days("d"))
    with pytest.raises(InvalidOptionError, match="cannot be written using 'parquet'"):
        writer.using("parquet")
    with pytest.raises(InvalidOptionError, match="ifExists is given twice"):
        to(rows(session, 1), tmp_path / "t").option("ifexists", "ignore").create()
    to(rows(session, 1), tmp_path / "there").create()
    with pytest.raises(InvalidOptionError, match="DELTA_REPLACE_WHERE_IN_OVERWRITE"):
        to(rows(session, 1), tmp_path / "there").option("replaceWhere", "id = 1").overwrite(F.col("id") == 1)
    assert not (tmp_path / "t").exists()
