"""`replaceUsing` and `replaceOn`: written rows take the place of those that they match, as in delta-spark 4.4.0."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_ds import DeltaLog
from delta_ds.exceptions import (
    AppendOnlyError,
    ConcurrentAppendException,
    DeltaError,
    InvariantViolationError,
    SchemaError,
    UnsupportedOperationError,
)
from spark_tests.full_form import examples

pytestmark = [pytest.mark.spark, pytest.mark.long]

TABLE = "(1, 'a', 10), (2, 'b', 20), (3, 'c', 30), (null, 'n', 40)"
ROWS = "(2, 'b', 200), (4, 'd', 400), (null, 'n', 999)"
Row = tuple[Any, ...]


def rows(spark: SparkSession, values: str = ROWS, columns: str = "id, k, v") -> DataFrame:
    return spark.sql(f"SELECT * FROM VALUES {values} AS x({columns})")


def table(spark: SparkSession, path: Path, *, partitioned: str = "", **properties: str) -> Path:
    writer = rows(spark, TABLE).selectExpr("cast(id AS INT) id", "k", "v").coalesce(1)
    options = {name.replace("__", "."): text for name, text in properties.items()}
    writer.write.format("pydelta").partitionBy(*partitioned.split()).options(**options).save(str(path))
    return path


def found(path: Path) -> set[Row]:
    return set(listed(path))


def listed(path: Path) -> list[Row]:
    frame = DeltaLog(path).snapshot().scan().to_arrow()
    return sorted((tuple(row.values()) for row in frame.to_pylist()), key=str)


def save(frame: DataFrame, path: Path, **options: Any) -> None:
    frame.write.format("pydelta").mode("overwrite").options(**options).save(str(path))


def by_name(frame: DataFrame, path: Path, **options: Any) -> None:
    writer = frame.write.format("pydelta").mode("overwrite").options(**options)
    writer.saveAsTable(f"pydelta.`{path}`")


def by_place(frame: DataFrame, path: Path, **options: Any) -> None:
    writer = frame.write.format("pydelta").mode("overwrite").options(**options)
    writer.insertInto(f"pydelta.`{path}`")


def by_writer(frame: DataFrame, path: Path, **options: Any) -> None:
    frame.writeTo(f"pydelta.`{path}`").options(**options).overwrite(F.lit(True))


WAYS = {"save": save, "saveAsTable": by_name, "insertInto": by_place, "writeTo": by_writer}
USING = {(1, "a", 10), (2, "b", 200), (3, "c", 30), (4, "d", 400), (None, "n", 40), (None, "n", 999)}


@pytest.mark.sampled
@pytest.mark.parametrize("way", WAYS)
def test_rows_with_the_values_of_a_written_row_are_replaced(
    session: SparkSession, tmp_path: Path, way: str
) -> None:
    path = table(session, tmp_path / "t")
    WAYS[way](rows(session), path, replaceUsing="id")
    # Null equals nothing.
    assert found(path) == USING
    last = DeltaLog(path).history()[0]
    assert last["operation"] == "WRITE"
    assert last["operationParameters"] == {
        "mode": "Overwrite", "partitionBy": "[]", "replaceUsingCols": "(id)",
    }  # fmt: skip
    counted = {
        name: last["operationMetrics"][name] for name in ("numOutputRows", "numDeletedRows", "numCopiedRows")
    }
    assert counted == {"numOutputRows": "6", "numDeletedRows": "1", "numCopiedRows": "3"}


@pytest.mark.sampled
@pytest.mark.parametrize("way", WAYS)
def test_rows_for_which_a_condition_holds_with_a_written_row_are_replaced(
    session: SparkSession, tmp_path: Path, way: str
) -> None:
    path = table(session, tmp_path / "t")
    WAYS[way](rows(session).alias("s"), path, replaceOn="t.id <=> s.id AND s.v > 200", targetAlias="t")
    assert found(path) == {*found_rows(TABLE), (2, "b", 200), (4, "d", 400), (None, "n", 999)} - {
        (None, "n", 40)
    }
    parameters = DeltaLog(path).history()[0]["operationParameters"]
    assert parameters["replaceOnCond"] == "t.id <=> s.id AND s.v > 200"


def found_rows(values: str) -> set[Row]:
    text = values.replace("(", "[").replace(")", "]").replace("'", '"')
    return {tuple(row) for row in json.loads(f"[{text}]")}


def test_conditions_know_the_names_that_rows_had(session: SparkSession, tmp_path: Path) -> None:
    path = table(session, tmp_path / "t")
    by_place(rows(session, "(2, 'b', 7)", "a, b, c"), path, replaceOn="id = a AND c > 5")
    assert found(path) == {(1, "a", 10), (2, "b", 7), (3, "c", 30), (None, "n", 40)}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("condition", "left"),
    [("true", set()), ("false", found_rows(TABLE)), ("t.id >= 2", {(1, "a", 10), (None, "n", 40)})],
)
def test_a_condition_may_name_one_side_or_none(
    session: SparkSession, tmp_path: Path, condition: str, left: set[Row]
) -> None:
    path = table(session, tmp_path / "t")
    save(rows(session, "(9, 'z', 1)"), path, replaceOn=condition, targetAlias="t")
    assert found(path) == left | {(9, "z", 1)}


@pytest.mark.parametrize("options", [{"replaceUsing": "id"}, {"replaceOn": "true"}])
def test_no_rows_replace_none(session: SparkSession, tmp_path: Path, options: dict[str, str]) -> None:
    path = table(session, tmp_path / "t")
    save(rows(session).where("id < 0"), path, **options)
    assert found(path) == found_rows(TABLE)
    # A version all the same, as with delta-spark.
    assert DeltaLog(path).history()[0]["operationMetrics"]["numFiles"] == "0"


def test_every_key_column_has_to_be_equal(session: SparkSession, tmp_path: Path) -> None:
    path = table(session, tmp_path / "t")
    save(rows(session, "(2, 'b', 1), (2, 'c', 1), (3, 'x', 1)"), path, replaceUsing=" id , K, K ")
    assert found(path) == found_rows(TABLE) - {(2, "b", 20)} | {(2, "b", 1), (2, "c", 1), (3, "x", 1)}


def test_a_row_that_several_written_ones_match_goes_once_and_all_of_them_come(
    session: SparkSession, tmp_path: Path
) -> None:
    path = table(session, tmp_path / "t")
    save(rows(session, "(2, 'x', 1), (2, 'x', 1)"), path, replaceUsing="id")
    assert listed(path) == sorted([*(found_rows(TABLE) - {(2, "b", 20)}), (2, "x", 1), (2, "x", 1)], key=str)


def test_values_that_differ_each_time_are_computed_once(session: SparkSession, tmp_path: Path) -> None:
    path = table(session, tmp_path / "t")
    moving = session.range(50).selectExpr("cast(rand() * 4 AS INT) id", "uuid() k", "0 v")
    save(moving, path, replaceUsing="id")
    left = found(path)
    new = {row[0] for row in left if row[2] == 0}
    assert {row[0] for row in left if row[2] != 0} == {1, 2, 3, None} - new
    assert len(left) == 50 + len({1, 2, 3, None} - new)


@pytest.mark.sampled
@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("partitioned", ["", "k"])
@pytest.mark.parametrize("tracked", [False, True])
def test_readers_of_changes_see_what_went_and_what_came(
    session: SparkSession, tmp_path: Path, vectors: bool, partitioned: str, tracked: bool
) -> None:
    properties = {
        "delta__enableChangeDataFeed": "true",
        "delta__enableDeletionVectors": str(vectors).lower(),
        "delta__enableRowTracking": str(tracked).lower(),
    }
    path = table(session, tmp_path / "t", partitioned=partitioned, **properties)
    save(rows(session), path, replaceUsing="id")
    changes = DeltaLog(path).changes(1).to_arrow().select(["_change_type", "id", "k", "v"]).to_pylist()
    assert {tuple(change.values()) for change in changes} == {
        ("delete", 2, "b", 20), ("insert", 2, "b", 200), ("insert", 4, "d", 400), ("insert", None, "n", 999),
    }  # fmt: skip
    assert set(map(tuple, (row.values() for row in _plain(path)))) == USING
    live = DeltaLog(path).snapshot().files().num_rows
    assert live >= 2


def _plain(path: Path) -> list[dict[str, Any]]:
    return DeltaLog(path).snapshot().scan(columns=["id", "k", "v"]).to_arrow().to_pylist()  # type: ignore[no-any-return]


def test_columns_are_added_where_the_write_may(session: SparkSession, tmp_path: Path) -> None:
    path = table(session, tmp_path / "t")
    wider = rows(session, "(2, 'b', 1, 5)", "id, k, v, w")
    with pytest.raises(SchemaError, match="DELTA_METADATA_MISMATCH"):
        save(wider, path, replaceUsing="id")
    assert found(path) == found_rows(TABLE)
    save(wider, path, replaceUsing="id", mergeSchema=True)
    assert found(path) == {(1, "a", 10, None), (2, "b", 1, 5), (3, "c", 30, None), (None, "n", 40, None)}


def test_generated_values_are_computed_and_clustering_stays(session: SparkSession, tmp_path: Path) -> None:
    from delta_ds import DeltaTable

    path = tmp_path / "t"
    builder = DeltaTable.create(session).location(str(path)).addColumn("id", "int").addColumn("k", "string")
    builder.addColumn("v", "int", generatedAlwaysAs="id * 2").clusterBy("id").execute()
    save(rows(session, "(2, 'b')", "id, k"), path, replaceUsing="id")
    assert found(path) == {(2, "b", 4)}
    assert DeltaLog(path).snapshot().clustering_columns == [["id"]]


def test_a_transaction_and_what_the_history_is_told_are_those_of_the_write(
    session: SparkSession, tmp_path: Path
) -> None:
    path = table(session, tmp_path / "t")
    for _ in range(2):
        save(rows(session), path, replaceUsing="id", txnAppId="app", txnVersion=1, userMetadata="why")
    assert found(path) == USING
    history = DeltaLog(path).history()
    assert (len(history), history[0]["userMetadata"]) == (2, "why")


def test_rows_may_be_those_of_the_table_itself(session: SparkSession, tmp_path: Path) -> None:
    path = table(session, tmp_path / "t")
    own = session.read.format("pydelta").load(str(path)).where("id >= 2").selectExpr("id", "k", "v + 1 v")
    save(own.alias("s"), path, replaceOn="t.id = s.id", targetAlias="t")
    assert found(path) == {(1, "a", 10), (2, "b", 21), (3, "c", 31), (None, "n", 40)}


@pytest.mark.parametrize("vectors", [False, True])
@settings(max_examples=examples(12))
@given(data=st.data())
def test_it_is_a_deletion_of_what_matches_and_an_append(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, vectors: bool, data: st.DataObject
) -> None:
    """The law, on random rows: the table without rows whose key is among the written ones, and these."""
    key = st.none() | st.integers(0, 5)
    old, new = (
        data.draw(st.lists(st.tuples(key, st.integers(10, 19)), min_size=1, max_size=12)) for _ in range(2)
    )
    path = tmp_path_factory.mktemp("law") / "t"
    frame = pa.table({"id": pa.array([r[0] for r in old], pa.int32()), "v": pa.array([r[1] for r in old])})
    DeltaLog(path).write(frame, options={"delta.enableDeletionVectors": str(vectors).lower()})
    written = spark.createDataFrame(new, "id int, v bigint")
    save(written, path, replaceUsing="id")
    keys = {row[0] for row in new} - {None}
    assert listed(path) == sorted([*(row for row in old if row[0] not in keys), *new], key=str)


# --- what is refused, and leaves the table as it was

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "both": ({"replaceUsing": "id", "replaceOn": "true"}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
    "where": (
        {"replaceUsing": "id", "replaceWhere": "id > 1"},
        "DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING",
    ),
    "partitions": (
        {"replaceOn": "true", "partitionOverwriteMode": "static"},
        "DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING",
    ),
    "schema": (
        {"replaceOn": "true", "overwriteSchema": "true"},
        "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS",
    ),
    "no change": ({"replaceUsing": "id", "dataChange": "false"}, "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS"),
    "no name": ({"replaceUsing": "id,"}, "DELTA_ILLEGAL_OPTION"),
    "unknown key": ({"replaceUsing": "nope"}, "UNRESOLVED_INSERT_REPLACE_USING_COLUMN"),
    "ambiguous": ({"replaceOn": "id = 1"}, "DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION"),
    "unresolved": (
        {"replaceOn": "t.id = q.x", "targetAlias": "t"},
        "DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION",
    ),
    "no alias": (
        {"replaceOn": "t.id = 1"},
        "DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION",
    ),
    "syntax": ({"replaceOn": "id = = ("}, "PARSE_SYNTAX_ERROR"),
    "subquery": ({"replaceOn": "t.id IN (SELECT 2)", "targetAlias": "t"}, "DELTA_UNSUPPORTED_SUBQUERY"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_by_name(session: SparkSession, tmp_path: Path, case: str) -> None:
    path = table(session, tmp_path / "t")
    options, condition = REFUSED[case]
    with pytest.raises(DeltaError) as raised:
        save(rows(session), path, **options)
    assert raised.value.condition == condition
    assert len(DeltaLog(path).history()) == 1


def test_columns_that_go_by_place_stand_where_the_table_has_them(
    session: SparkSession, tmp_path: Path
) -> None:
    path = table(session, tmp_path / "t")
    with pytest.raises(SchemaError, match="INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS"):
        by_place(rows(session, "('2', 2, 7)", "k, id, v"), path, replaceUsing="id")
    save(rows(session, "('b', 2, 7)", "k, id, v"), path, replaceUsing="id")
    assert (2, "b", 7) in found(path)


def test_a_row_that_breaks_a_constraint_is_refused(session: SparkSession, tmp_path: Path) -> None:
    path = table(session, tmp_path / "t", **{"delta__constraints__c": "v > 0"})
    with pytest.raises(
        InvariantViolationError, match="DELTA_REPLACE_ON_OR_USING_TABLE_CONSTRAINT_VIOLATION.*id"
    ):
        save(rows(session, "(2, 'b', -1)"), path, replaceUsing="id")
    assert found(path) == found_rows(TABLE)


def test_rows_of_an_append_only_table_are_not_replaced(session: SparkSession, tmp_path: Path) -> None:
    path = table(session, tmp_path / "t", **{"delta__appendOnly": "true"})
    with pytest.raises(AppendOnlyError):
        save(rows(session), path, replaceUsing="id")


@pytest.mark.parametrize("make", ["create", "replace", "createOrReplace"])
def test_a_table_that_is_made_has_no_rows_to_replace(
    session: SparkSession, tmp_path: Path, make: str
) -> None:
    path = tmp_path / "t" if make == "create" else table(session, tmp_path / "t")
    writer = rows(session).writeTo(f"pydelta.`{path}`").using("pydelta").option("replaceUsing", "id")
    with pytest.raises(DeltaError, match="DELTA_DFV2_CREATE_REPLACE_INCOMPATIBLE_REPLACE_ON_OR_USING"):
        getattr(writer, make)()
    with pytest.raises(DeltaError, match="DELTA_PATH_DOES_NOT_EXIST"):
        save(rows(session), tmp_path / "none", replaceUsing="id")
    assert not (tmp_path / "none").exists()


def test_without_a_registered_session_it_is_refused(plain: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    DeltaLog(path).write(pa.table({"id": [1]}))
    for write in (
        lambda: DeltaLog(path).write(pa.table({"id": [1]}), "overwrite", {"replaceOn": "true"}),
        lambda: save(plain.range(1), path, replaceUsing="id"),
    ):
        with pytest.raises(Exception, match="DELTA_REPLACE_ON_OR_USING_NEEDS_SESSION"):
            write()
    assert DeltaLog(path).snapshot().version == 0


# --- statements


@pytest.fixture
def named(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    table(spark, tmp_path / "t")
    spark.sql(f"CREATE TABLE replaced USING pydelta LOCATION '{tmp_path / 't'}'")
    rows(spark).createOrReplaceTempView("new_rows")
    yield tmp_path / "t"
    spark.sql("DROP TABLE replaced")


STATEMENTS = {
    "INSERT INTO replaced REPLACE USING (id) SELECT * FROM new_rows": USING,
    "INSERT INTO TABLE replaced BY NAME REPLACE USING (id) SELECT v, id, k FROM new_rows": USING,
    "WITH n AS (SELECT * FROM new_rows) INSERT INTO replaced REPLACE USING (`id`, k) TABLE n": USING,
    "INSERT INTO replaced AS t REPLACE ON t.id = s.id (SELECT * FROM new_rows) AS s": USING,
    "INSERT INTO replaced REPLACE ON replaced.id = s.id (SELECT * FROM new_rows) s": USING,
    "INSERT INTO replaced REPLACE ON id = a SELECT id AS a, k AS b, v AS c FROM new_rows": USING,
    "INSERT INTO replaced AS t REPLACE ON t.id <=> s.id (SELECT * FROM new_rows) AS s":
        USING - {(None, "n", 40)},
    "INSERT OVERWRITE replaced WITH ('replaceUsing' = 'id') SELECT * FROM new_rows": USING,
}  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_statements_replace_what_they_match(
    spark: SparkSession, named: Path, statement: str, dynamic: bool
) -> None:
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic" if dynamic else "static")
    try:
        spark.sql(statement)
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert found(named) == STATEMENTS[statement]


def test_statements_take_parameters(spark: SparkSession, named: Path) -> None:
    text = "INSERT INTO replaced AS t REPLACE ON t.id = s.id AND s.v > ? (SELECT * FROM new_rows WHERE v < ?) AS s"
    spark.sql(text, args=[100, 400])
    assert found(named) == found_rows(TABLE) - {(2, "b", 20)} | {(2, "b", 200)}


def test_statements_on_tables_of_others_are_left_to_spark(spark: SparkSession, named: Path) -> None:
    from pyspark.errors import PySparkException

    spark.sql("CREATE TABLE of_others USING parquet AS SELECT 1 AS id")
    try:
        with pytest.raises(PySparkException):
            spark.sql("INSERT INTO of_others REPLACE USING (id) SELECT 2 AS id")
        assert spark.table("of_others").collect() == [(1,)]
    finally:
        spark.sql("DROP TABLE of_others")


# --- others who write


@pytest.mark.sampled
@pytest.mark.parametrize("by", ["files", "statistics"])
@pytest.mark.parametrize("other", [3, 100])
def test_a_row_that_another_commit_brings_counts_as_read(
    session: SparkSession, tmp_path: Path, by: str, other: int
) -> None:
    path = table(session, tmp_path / "t")

    def between(number: int) -> int:
        # Evaluated with the rows: the version that is read was looked up by then.
        log = DeltaLog(path)
        if log.snapshot().version == 0:
            log.write(
                pa.table({"id": pa.array([other], pa.int32()), "k": ["z"], "v": pa.array([1], pa.int32())})
            )
        return number

    slow = F.udf(between, "int")
    new = session.range(2, 5, 1, 1).select(slow("id").alias("id"), F.lit("x").alias("k"), F.lit(0).alias("v"))
    session.conf.set("spark.pydelta.conflictDetection", by)
    write: Callable[[], None] = lambda: save(new, path, replaceUsing="id")  # noqa: E731
    try:
        if by == "statistics" and other == 100:
            write()
        else:
            with pytest.raises(ConcurrentAppendException):
                write()
    finally:
        session.conf.unset("spark.pydelta.conflictDetection")
    assert (other, "z", 1) in found(path)
    assert ((3, "x", 0) in found(path)) == (by == "statistics" and other == 100)


def test_streams_do_not_replace_rows(spark: SparkSession, tmp_path: Path) -> None:
    path = table(spark, tmp_path / "t")
    stream = spark.readStream.format("pydelta").load(str(path)).writeStream.format("pydelta")
    with pytest.raises((DeltaError, UnsupportedOperationError), match="batch writes"):
        stream.option("replaceUsing", "id").option("checkpointLocation", str(tmp_path / "c")).start(
            str(tmp_path / "o")
        )
