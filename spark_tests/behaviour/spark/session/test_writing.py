"""`df.write` with everything it can say, as delta-spark answers it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import (
    DeltaError,
    InvalidOptionError,
    InvariantViolationError,
    NotADeltaTableError,
    SchemaError,
    TableExistsError,
    UnsupportedOperationError,
)
from delta_ds.spark.base.session_conf import NATIVE_WRITE_CONF
from delta_ds.spark.engines.classic.jvm import NotNative
from delta_ds.spark.engines.seam import classic
from delta_ds.spark.session import writing
from delta_ds.spark.session.writes import write

pytestmark = [pytest.mark.spark, pytest.mark.long]


def rows(spark: SparkSession, *ids: int) -> DataFrame:
    values = ", ".join(f"({i}L, {i % 2}L, 's{i}')" for i in ids)
    return spark.sql(f"select * from values {values} as t(id, p, s)")


def save(df: DataFrame, path: Path, mode: str | None = None, **options: Any) -> None:
    df.write.format("pydelta").save(str(path), mode=mode, **options)


def ids(path: Path) -> list[int]:
    return sorted(DeltaLog(path).snapshot().scan(columns=["id"]).to_arrow()["id"].to_pylist())


def history(path: Path) -> list[tuple[str, str]]:
    commits = reversed(DeltaLog(path).history())
    return [(c["operation"], c["operationParameters"].get("mode")) for c in commits]


@pytest.mark.parametrize("mode", [None, "error", "errorifexists", "ErrorIfExists"])
def test_default_mode_creates_a_table_and_refuses_one_that_is_there(
    session: SparkSession, tmp_path: Path, mode: str | None
) -> None:
    save(rows(session, 1), tmp_path / "t", mode)
    with pytest.raises(TableExistsError) as caught:
        save(rows(session, 2), tmp_path / "t", mode)
    assert caught.value.condition == "DELTA_PATH_EXISTS"
    assert (ids(tmp_path / "t"), history(tmp_path / "t")) == ([1], [("WRITE", "ErrorIfExists")])


def test_ignore_creates_a_table_and_leaves_one_that_is_there(session: SparkSession, tmp_path: Path) -> None:
    save(rows(session, 1), tmp_path / "t", "ignore")
    save(session.range(5).selectExpr("id as another"), tmp_path / "t", "ignore")
    assert (ids(tmp_path / "t"), history(tmp_path / "t")) == ([1], [("WRITE", "Ignore")])


def test_append_and_overwrite_create_or_use_the_table(session: SparkSession, tmp_path: Path) -> None:
    for path, first in ((tmp_path / "a", "append"), (tmp_path / "o", "overwrite")):
        save(rows(session, 1), path, first)
        save(rows(session, 2), path, "append")
        assert ids(path) == [1, 2]
        save(rows(session, 3), path, "overwrite")
        assert ids(path) == [3]


@pytest.mark.parametrize("mode", ["error", "ignore"])
def test_mode_holds_against_one_who_creates_the_table_in_the_meantime(
    session: SparkSession, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(rows(session, 1), tmp_path / "t")
    # What the driver knows when it looks first: nothing is there yet.
    monkeypatch.setattr(write, "find_table", lambda *_: None)
    if mode == "error":
        with pytest.raises(TableExistsError, match="DELTA_PATH_EXISTS"):
            save(rows(session, 2), tmp_path / "t", mode)
    else:
        save(rows(session, 2), tmp_path / "t", mode)
    assert ids(tmp_path / "t") == [1]
    assert len(list((tmp_path / "t").glob("**/*.parquet"))) == 1


def test_unknown_mode_is_refused(portable: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="INVALID_SAVE_MODE"):
        writing.save(rows(portable, 1), str(tmp_path / "t"), "upsert", {})
    assert not (tmp_path / "t").exists()


def test_partition_by_lays_out_a_new_table_and_is_checked_on_an_old_one(
    session: SparkSession, tmp_path: Path
) -> None:
    rows(session, 1, 2).write.format("pydelta").partitionBy("p", "s").save(str(tmp_path / "t"))
    assert DeltaLog(tmp_path / "t").snapshot().partition_columns == ["p", "s"]
    save(rows(session, 3), tmp_path / "t", "append", partitionBy=["P", "S"])
    save(rows(session, 4), tmp_path / "t", "append")
    with pytest.raises(SchemaError, match="partition"):
        save(rows(session, 5), tmp_path / "t", "append", partitionBy="p")
    assert ids(tmp_path / "t") == [1, 2, 3, 4]


def test_partition_columns_may_have_any_name(session: SparkSession, tmp_path: Path) -> None:
    odd = rows(session, 1).withColumnRenamed("p", "a`b, c").write.format("pydelta")
    odd.option("delta.columnMapping.mode", "name").partitionBy("a`b, c").save(str(tmp_path / "t"))
    assert DeltaLog(tmp_path / "t").snapshot().partition_columns == ["a`b, c"]


def test_layout_that_delta_does_not_have_is_refused(session: SparkSession, tmp_path: Path) -> None:
    writer = rows(session, 1).write.format("pydelta")
    with pytest.raises(UnsupportedOperationError, match=r"bucketBy\(id\)"):
        writer.bucketBy(4, "id").sortBy("p").save(str(tmp_path / "t"))
    with pytest.raises(InvalidOptionError, match="SORT_BY_WITHOUT_BUCKETING"):
        rows(session, 1).write.format("pydelta").sortBy("p").save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("name", ["partitionBy", "PARTITIONBY"])
def test_what_is_said_twice_is_refused(session: SparkSession, tmp_path: Path, name: str) -> None:
    writer = rows(session, 1).write.format("pydelta").option(name, "p").partitionBy("s")
    with pytest.raises(InvalidOptionError, match="partitionBy is given twice"):
        writer.save(str(tmp_path / "t"))
    with pytest.raises(InvalidOptionError, match="path is given twice"):
        rows(session, 1).write.format("pydelta").option("path", "/x").save(str(tmp_path / "t"))


def test_path_may_be_an_option_and_must_be_somewhere(session: SparkSession, tmp_path: Path) -> None:
    rows(session, 1).write.format("pydelta").option("path", str(tmp_path / "t")).save()
    assert ids(tmp_path / "t") == [1]
    for mode in ("ignore", "error", "append"):
        with pytest.raises(InvalidOptionError, match="'path' is missing"):
            rows(session, 1).write.format("pydelta").mode(mode).save()


def test_options_set_to_none_are_left_out(session: SparkSession, tmp_path: Path) -> None:
    rows(session, 1).write.format("pydelta").option("userMetadata", None).save(
        str(tmp_path / "t"), mergeSchema=None
    )
    assert ids(tmp_path / "t") == [1]


def test_constraint_on_a_column_that_an_overwrite_took_away_is_broken_by_every_row(
    session: SparkSession, tmp_path: Path
) -> None:
    save(rows(session, 1), tmp_path / "t")
    table = DeltaTable.forPath(session, str(tmp_path / "t"))
    table.addConstraint("c", "p IS NOT NULL OR id > 1")
    one, two = (session.sql(f"select {number}L id") for number in (1, 2))
    with pytest.raises(InvariantViolationError, match="- p : null"):
        save(one, tmp_path / "t", "overwrite", overwriteSchema=True)
    save(two, tmp_path / "t", "overwrite", overwriteSchema=True)
    assert ids(tmp_path / "t") == [2]


def test_errors_are_those_of_the_package(session: SparkSession, tmp_path: Path) -> None:
    save(rows(session, 1), tmp_path / "t")
    with pytest.raises(InvalidOptionError, match="did you mean 'mergeSchema'"):
        save(rows(session, 2), tmp_path / "t", "append", megreSchema=True)
    with pytest.raises(SchemaError):
        save(rows(session, 2).drop("p").selectExpr("*", "1 as extra"), tmp_path / "t", "append")
    with pytest.raises(DeltaError, match="DELTA_REPLACE_WHERE_MISMATCH"):
        save(rows(session, 2), tmp_path / "t", "overwrite", replaceWhere="id = 3")
    assert ids(tmp_path / "t") == [1]


def test_overwrite_follows_the_session_in_what_it_replaces(session: SparkSession, tmp_path: Path) -> None:
    conf = "spark.sql.sources.partitionOverwriteMode"
    save(rows(session, 1, 2), tmp_path / "t", partitionBy="p")
    session.conf.set(conf, "dynamic")
    try:
        save(rows(session, 4), tmp_path / "t", "overwrite")
        assert ids(tmp_path / "t") == [1, 4]
        save(rows(session, 6), tmp_path / "t", "overwrite", replaceWhere="id = 6")
        assert ids(tmp_path / "t") == [1, 4, 6]
        save(rows(session, 8), tmp_path / "t", "overwrite", partitionOverwriteMode="static")
        assert ids(tmp_path / "t") == [8]
    finally:
        session.conf.unset(conf)


# --- tables by name


def name_of(path: Path) -> str:
    return f"pydelta.`{path}`"


def test_save_as_table_creates_a_table_by_path(session: SparkSession, tmp_path: Path) -> None:
    rows(session, 1).write.saveAsTable(name_of(tmp_path / "t"), partitionBy="p")
    assert (ids(tmp_path / "t"), DeltaLog(tmp_path / "t").snapshot().partition_columns) == ([1], ["p"])
    with pytest.raises(TableExistsError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        rows(session, 2).write.format("pydelta").saveAsTable(name_of(tmp_path / "t"))
    rows(session, 3).write.mode("ignore").saveAsTable(name_of(tmp_path / "t"))
    assert ids(tmp_path / "t") == [1]


def test_save_as_table_goes_by_names(session: SparkSession, tmp_path: Path) -> None:
    save(rows(session, 1), tmp_path / "t")
    rows(session, 2).select("s", "id").write.mode("append").saveAsTable(name_of(tmp_path / "t"))
    assert session.table(name_of(tmp_path / "t")).where("id = 2").select("s", "p").collect() == [("s2", None)]
    with pytest.raises(SchemaError):
        rows(session, 3).toDF("a", "b", "c").write.mode("append").saveAsTable(name_of(tmp_path / "t"))


def test_save_as_table_appends_only_to_a_table(session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NotADeltaTableError, match="saveAsTable in mode append"):
        rows(session, 1).write.mode("append").saveAsTable(name_of(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


def test_save_as_table_overwrites_rows_and_keeps_the_layout(session: SparkSession, tmp_path: Path) -> None:
    save(rows(session, 1, 2), tmp_path / "t", partitionBy="p")
    rows(session, 4).write.mode("overwrite").saveAsTable(name_of(tmp_path / "t"))
    assert (ids(tmp_path / "t"), DeltaLog(tmp_path / "t").snapshot().partition_columns) == ([4], ["p"])
    with pytest.raises(SchemaError):
        session.range(1).toDF("zz").write.mode("overwrite").saveAsTable(name_of(tmp_path / "t"))
    writer = session.range(1).toDF("zz").write.mode("overwrite").option("overwriteSchema", True)
    writer.saveAsTable(name_of(tmp_path / "t"))
    assert session.table(name_of(tmp_path / "t")).columns == ["zz"]


def test_table_by_path_has_one_format(session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="cannot be written with format"):
        rows(session, 1).write.format("orc").saveAsTable(name_of(tmp_path / "t"))


MAKES_A_TABLE: dict[str, Callable[[DataFrame, str], object]] = {
    "save as table": lambda df, path: df.write.format("pydelta").saveAsTable("orders"),
    "with a path": lambda df, path: df.write.format("pydelta").option("path", path).saveAsTable("orders"),
    "by argument": lambda df, path: df.write.saveAsTable("orders", format="pydelta", path=path),
    "append": lambda df, path: (
        df.write.format("pydelta").mode("append").saveAsTable("default.orders", path=path)
    ),
    "create": lambda df, path: df.writeTo("orders").using("pydelta").option("path", path).create(),
    "createOrReplace": lambda df, path: df.writeTo("orders").using("pydelta").createOrReplace(),
    "stream": lambda df, path: (
        df.sparkSession.readStream.format("rate")
        .load()
        .writeStream.format("pydelta")
        .option("checkpointLocation", f"{path}-checkpoint")
        .toTable("orders", path=path)
    ),
    "catalog": lambda df, path: df.sparkSession.catalog.createTable(
        "orders", path=path, source="pydelta", schema=df.schema
    ),
    "catalog with a schema": lambda df, path: df.sparkSession.catalog.createTable(
        "orders", source="pydelta", schema=df.schema
    ),
}


@pytest.mark.parametrize("call", MAKES_A_TABLE)
def test_table_of_a_catalog_is_made_by_every_call(session: SparkSession, tmp_path: Path, call: str) -> None:
    try:
        made = MAKES_A_TABLE[call](rows(session, 1), str(tmp_path / "t"))
        if isinstance(made, StreamingQuery):
            made.stop()
        table = DeltaTable.forName(session, "orders").detail().collect()[0]
        assert table.format == "delta"
        external = call in ("with a path", "by argument", "append", "create", "stream", "catalog")
        assert (table.location == f"file:{tmp_path / 't'}") is external
    finally:
        session.sql("DROP TABLE IF EXISTS orders")
    assert (tmp_path / "t").exists() is external


# --- insertInto


def test_insert_into_goes_by_position(session: SparkSession, tmp_path: Path) -> None:
    save(rows(session, 1), tmp_path / "t")
    session.sql("select 10L as p, 20L as id, 'x' as s").write.insertInto(name_of(tmp_path / "t"))
    session.sql("select '30' as a, 3L as a, 7 as b").write.insertInto(name_of(tmp_path / "t"))
    found = session.table(name_of(tmp_path / "t")).orderBy("id").collect()
    assert [tuple(row) for row in found] == [(1, 1, "s1"), (10, 20, "x"), (30, 3, "7")]


def test_insert_into_overwrites_if_asked(session: SparkSession, tmp_path: Path) -> None:
    save(rows(session, 1, 2), tmp_path / "t", partitionBy="p")
    rows(session, 3).write.mode("ignore").insertInto(name_of(tmp_path / "t"))
    assert ids(tmp_path / "t") == [1, 2, 3]
    rows(session, 4).write.insertInto(name_of(tmp_path / "t"), overwrite=True)
    assert ids(tmp_path / "t") == [4]
    writer = rows(session, 5).write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
    writer.insertInto(name_of(tmp_path / "t"))
    assert ids(tmp_path / "t") == [4, 5]


def test_insert_into_refuses_what_does_not_fit(session: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NotADeltaTableError, match="insertInto"):
        rows(session, 1).write.insertInto(name_of(tmp_path / "t"))
    save(rows(session, 1), tmp_path / "t")
    with pytest.raises(SchemaError, match="DELTA_INSERT_COLUMN_ARITY_MISMATCH"):
        rows(session, 2).select("id").write.insertInto(name_of(tmp_path / "t"))
    with pytest.raises(SchemaError):
        rows(session, 2).selectExpr("*", "1 as x").write.insertInto(name_of(tmp_path / "t"))
    with pytest.raises(UnsupportedOperationError, match="PARTITION_BY_NOT_ALLOWED_WITH_INSERT_INTO"):
        rows(session, 2).write.partitionBy("p").insertInto(name_of(tmp_path / "t"))
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        session.sql("select 'abc' as id, 1L as p, 's' as s").write.insertInto(name_of(tmp_path / "t"))
    assert ids(tmp_path / "t") == [1]


def test_insert_into_takes_new_columns_if_asked(session: SparkSession, tmp_path: Path) -> None:
    save(rows(session, 1), tmp_path / "t")
    wider = rows(session, 2).selectExpr("id as x", "p as y", "s as z", "true as extra")
    wider.write.option("mergeSchema", "true").insertInto(name_of(tmp_path / "t"))
    assert session.table(name_of(tmp_path / "t")).columns == ["id", "p", "s", "extra"]


@pytest.mark.parametrize(
    ("fields", "stored"),
    [
        # The names are the table's: they count. Others: their places do.
        ("named_struct('b', 10, 'a', 20)", (20, 10)),
        ("named_struct('x', 10, 'y', 20)", (10, 20)),
        ("named_struct('b', '10', 'a', 20)", (10, 20)),
    ],
)
def test_insert_into_places_fields_of_structs(
    session: SparkSession, tmp_path: Path, fields: str, stored: tuple[int, int]
) -> None:
    save(session.sql("select 1L as id, named_struct('a', 1, 'b', 2) as st"), tmp_path / "t")
    session.sql(f"select 2L as id, {fields} as st").write.insertInto(name_of(tmp_path / "t"))
    found = session.table(name_of(tmp_path / "t")).where("id = 2").select("st.a", "st.b").first()
    assert tuple(found) == stored


# --- which way


@pytest.fixture
def native_writer(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("delta_ds.spark.engines.classic.writer")
    module.refresh_written_rows = lambda *_: None  # type: ignore[attr-defined]
    monkeypatch.setattr(classic, "writer", module)
    return module


def test_native_writer_is_told_what_the_data_source_would_be(
    portable: SparkSession, tmp_path: Path, native_writer: ModuleType
) -> None:
    calls = []
    native_writer.save = lambda df, options, **named: calls.append((dict(options), named))  # type: ignore[attr-defined]
    portable.conf.set(NATIVE_WRITE_CONF, "true")
    save(rows(portable, 1), tmp_path / "t", partitionBy="p", userMetadata="x")
    save(rows(portable, 1), tmp_path / "t", "overwrite")
    path = str(tmp_path / "t")
    settings = [options.pop("sessionSettings") for options, _ in calls]
    assert all("spark.pydelta.origin" in given for given in settings)
    assert calls == [
        (
            {"path": path, "partitionBy": "`p`", "userMetadata": "x", "ifExists": "error"},
            {"overwrite": False},
        ),
        ({"path": path}, {"overwrite": True}),
    ]


def test_what_the_native_writer_cannot_write_goes_to_the_data_source(
    portable: SparkSession, tmp_path: Path, native_writer: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise NotNative("identity columns")

    native_writer.save = refuse  # type: ignore[attr-defined]
    portable.conf.set(NATIVE_WRITE_CONF, "true")
    with caplog.at_level(logging.WARNING, "delta_ds"):
        save(rows(portable, 1), tmp_path / "t")
    assert ids(tmp_path / "t") == [1]
    assert 'portable_write reason="identity columns' in caplog.text


def test_rows_come_back_as_they_were(session: SparkSession, tmp_path: Path) -> None:
    df = session.range(0, 100, numPartitions=3).selectExpr("id", "id % 7 as p", "cast(id as string) as s")
    save(df, tmp_path / "t", partitionBy="p")
    found = session.read.format("pydelta").load(str(tmp_path / "t"))
    assert_df_equality(found, df, ignore_row_order=True, ignore_nullable=True)


def test_another_schema_gives_no_values_to_an_identity_column(session: SparkSession) -> None:
    """The table stays, so delta-spark refuses them; a table that takes its place may have such values."""
    session.sql("DROP TABLE IF EXISTS numbered")
    session.sql("CREATE TABLE numbered (id BIGINT GENERATED ALWAYS AS IDENTITY, v INT) USING pydelta")
    session.sql("INSERT INTO numbered (v) VALUES (1)")
    path = str(session.sql("DESCRIBE DETAIL numbered").first()["location"])  # type: ignore[index]
    other = session.sql("SELECT 5L AS id, 'x' AS w")
    writer = other.write.format("pydelta").mode("overwrite").option("overwriteSchema", "true")
    for call in (lambda: writer.save(path), lambda: writer.saveAsTable("numbered")):
        with pytest.raises(UnsupportedOperationError, match="DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT"):
            call()
    assert [tuple(row) for row in session.table("numbered").collect()] == [(1, 1)]
    other.writeTo("numbered").using("pydelta").replace()
    assert [tuple(row) for row in session.table("numbered").collect()] == [(5, "x")]
    session.sql("DROP TABLE numbered")
