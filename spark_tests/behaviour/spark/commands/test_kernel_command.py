"""Commands of a client that the kernel runs at a server of others: as a classic session would, or left to Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from delta_ds import DeltaLog, DeltaTable
from spark_tests.behaviour.spark.commands.row_changes import (
    make_table,
    merge_of,
    state_of,
    told_by_spark,
)
from spark_tests.behaviour.spark.commands.test_rows_found_by_arrow import (
    FOREIGN,
    KEYS,
    TRANSLATED,
    table_of_values,
)
from spark_tests.behaviour.spark.connect_server import Client, Server, registered_client
from spark_tests.full_form import part

pytestmark = [pytest.mark.connect, pytest.mark.slow, pytest.mark.long]
ZONE = "Europe/Berlin"


@pytest.fixture(scope="module")
def client(plain_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with registered_client(plain_server, tmp_path_factory.mktemp("in_kernel")) as started:
        yield started


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return table_of_values(str(tmp_path_factory.mktemp("values") / "t"))


@pytest.fixture
def in_berlin(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    yield
    spark.conf.unset("spark.sql.session.timeZone")


def test_every_condition_finds_the_rows_that_spark_finds(
    spark: SparkSession, client: Client, base: str, tmp_path: Path, in_berlin: None
) -> None:
    # Tasks of a classic session evaluate them all; each fourth here, all in the full form.
    conditions = part([*TRANSLATED, *FOREIGN], every=8)
    wanted = spark.read.format("pydelta").load(base)
    counts = wanted.agg(
        *(F.expr(f"sum(int(({c}) <=> true))").alias(f"c{n}") for n, c in enumerate(conditions))
    ).first()

    def program(spark: SparkSession, copies: list[str], some: list[str]) -> list[Any]:
        spark.conf.set("spark.sql.session.timeZone", ZONE)
        tables = [DeltaTable.forPath(spark, copy) for copy in copies]
        found = [
            table.delete(condition).collect()[0][0] for table, condition in zip(tables, some, strict=True)
        ]
        spark.conf.unset("spark.sql.session.timeZone")
        return found

    assert counts is not None
    for first in range(0, len(conditions), 10):
        some, copies = conditions[first : first + 10], [str(tmp_path / f"{first + n}") for n in range(10)]
        for copy in copies:
            shutil.copytree(base, copy)
        found = client(program, copies[: len(some)], some)
        assert dict(zip(some, found, strict=True)) == dict(zip(some, counts[first : first + 10], strict=True))


def test_a_merge_matches_the_rows_that_spark_joins(
    spark: SparkSession, client: Client, base: str, tmp_path: Path, in_berlin: None
) -> None:
    table, source = spark.read.format("pydelta").load(base), str(tmp_path / "source")
    table.where("id >= 40 AND id < 90").write.parquet(source)
    keys = part(KEYS, every=4)
    joined = [table.alias("t").join(spark.read.parquet(source).alias("s"), F.expr(on)) for on in keys]
    wanted = [frame.select("t.id").distinct().count() for frame in joined]

    def program(spark: SparkSession, base: str, copy: str) -> list[Any]:
        spark.conf.set("spark.sql.session.timeZone", ZONE)
        found = []
        for number, on in enumerate(keys):
            shutil.copytree(base, f"{copy}-{number}")
            merge = (
                DeltaTable.forPath(spark, f"{copy}-{number}")
                .alias("t")
                .merge(spark.read.parquet(source).alias("s"), on)
            )
            found.append(merge.whenMatchedDelete().execute().collect()[0].num_deleted_rows)
        spark.conf.unset("spark.sql.session.timeZone")
        return found

    found = client(program, base, str(tmp_path / "t"))
    assert dict(zip(keys, found, strict=True)) == dict(zip(keys, wanted, strict=True))


def _upsert(table: DeltaTable) -> Any:
    merge = merge_of(table, "SELECT id, id AS v FROM range(55, 65)").whenMatchedUpdate(set={"v": "s.v"})
    return merge.whenNotMatchedInsert(values={"id": "s.id", "v": "s.v"}).execute()


_SETTINGS = {
    "not ANSI": {"spark.sql.ansi.enabled": "false"},
    "case counts": {"spark.sql.caseSensitive": "true"},
    "a transaction": {
        "spark.databricks.delta.write.txnAppId": "app",
        "spark.databricks.delta.write.txnVersion": "1",
    },
    "files are compacted": {"spark.databricks.delta.autoCompact.enabled": "true"},
    "the source is too large": {"spark.pydelta.mergeSourceSize": "10b"},
    "no source is collected": {"spark.pydelta.mergeSourceSize": "0"},
    "nothing is done by one process": {"spark.pydelta.localOptimizeSize": "0"},
    "literals of another type": {"spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true"},
    "another precision": {"spark.sql.decimalOperations.allowPrecisionLoss": "false"},
}


@pytest.mark.sampled
@pytest.mark.parametrize("why", _SETTINGS)
def test_what_settings_of_the_session_change_is_left_to_spark(
    client: Client, tmp_path: Path, why: str
) -> None:
    def program(spark: SparkSession, path: str) -> list[str]:
        for name, value in _SETTINGS[why].items():
            spark.conf.set(name, value)
        try:
            return told_by_spark(path, _upsert, spark)
        finally:
            for name in _SETTINGS[why]:
                spark.conf.unset(name)

    path = make_table(tmp_path / "t", {})
    assert len(client(program, path)) == 1
    log = DeltaLog(path)
    assert log.to_arrow().num_rows == 65
    assert len([c for c in log.history() if c["operation"] == "MERGE"]) == 1


def _by_the_name_of_a_view(table: DeltaTable) -> Any:
    spark = table._handle.spark
    spark.sql("SELECT 2L AS id").createOrReplaceTempView("s")
    merge = table.merge(spark.table("s"), "s.id = v - 18").whenMatchedDelete()
    return merge.execute()


_FOREIGN: dict[str, Callable[[DeltaTable], Any]] = {
    "a Column that casts": lambda table: table.delete(F.col("id").cast("string") == "1"),
    "a column of a frame": lambda table: table.delete(table.toDF()["id"] == 1),
    "a function that the kernel does not know": lambda table: table.delete("soundex(p) = 'x' OR id = 1"),
    "the present": lambda table: table.update("id = 1", {"p": "cast(current_date() AS string)"}),
    "a column that is not there": lambda table: table.delete("nope = 1"),
    "a name of both sides": lambda table: (
        table.alias("t")
        .merge(table._handle.spark.range(3).alias("s"), "t.id = s.id AND id > 1")
        .whenMatchedDelete()
        .execute()
    ),
    "a column twice": lambda table: table.alias("t").update("t.id = 1", {"v": "10", "t.v": "20"}),
    "a column twice in a merge": lambda table: (
        merge_of(table, "SELECT 1L AS id").whenMatchedUpdate(set={"v": "10", "t.v": "20"}).execute()
    ),
    "both sides of one alias": lambda table: (
        table.alias("t")
        .merge(table._handle.spark.range(3).selectExpr("id AS k").alias("t"), "id = k")
        .whenMatchedDelete()
        .execute()
    ),
    "an alias with a dot": lambda table: (
        table.merge(table._handle.spark.range(3).selectExpr("id AS k").alias("my.s"), "id = k")
        .whenMatchedDelete()
        .execute()
    ),
    "texts of the source with an order of their own": lambda table: (
        merge_of(table, "SELECT 1L AS id, 'ABC' COLLATE UTF8_LCASE AS k FROM range(1)")
        .whenMatchedDelete("s.k = 'abc'")
        .execute()
    ),
    "a view's name": _by_the_name_of_a_view,
    "a type that does not fit": lambda table: table.update("id = 1", {"s": "5"}),
}


@pytest.mark.sampled
@pytest.mark.parametrize("why", _FOREIGN)
def test_what_the_kernel_does_not_read_means_what_spark_says(
    spark: SparkSession, client: Client, tmp_path: Path, why: str
) -> None:
    def program(spark: SparkSession, path: str) -> tuple[list[str], str | None]:
        try:
            return told_by_spark(path, _FOREIGN[why], spark), None
        except Exception as error:
            return [], error.getCondition()  # type: ignore[attr-defined]

    classic, connect = (make_table(tmp_path / name, {}) for name in ("classic", "connect"))
    try:
        _FOREIGN[why](DeltaTable.forPath(spark, classic))
        wanted = None
    except Exception as error:
        wanted = error.getCondition()  # type: ignore[attr-defined]
    reasons, condition = client(program, connect)
    assert condition == wanted
    assert len(reasons) == (wanted is None)
    assert state_of(connect)["rows"] == state_of(classic)["rows"]


def _merge_by_columns(table: DeltaTable) -> Any:
    source = table._handle.spark.range(55, 65).selectExpr("id", "id % 3 AS `null`").alias("s")
    merge = table.alias("t").merge(source, F.col("t.id") == F.col("s.id"))
    merge = merge.whenMatchedDelete(F.col("s.null") == 1)
    merge = merge.whenMatchedUpdate(~F.col("s.null").isin(1, None), {"v": -F.col("t.v"), "p": F.lit("x")})
    merge = merge.whenMatchedUpdate(set={"v": F.col("t.v") * 2 - F.expr("s.id + 1")})
    return merge.whenNotMatchedInsert(values={"id": "s.id", "v": F.lit(None)}).execute()


_COLUMNS: dict[str, Callable[[DeltaTable], Any]] = {
    "delete": lambda table: table.delete(
        (F.col("id") % 4 == 1) | F.col("p").like("0%") & (F.col("s.a") > 30)
    ),
    "delete by SQL": lambda table: table.alias("t").delete(F.expr("t.id < 5 OR t.v = 70") & F.lit(True)),
    "update": lambda table: table.update(
        F.col("id").between(3, 30),
        {"v": F.col("v") + F.lit(5_000_000_000), "p": F.coalesce("p", F.lit("none"))},
    ),
    "update by values": lambda table: table.update(F.col("v") >= 100, {"p": F.upper("p"), "s.b": F.lit("y")}),
    "merge": lambda table: _merge_by_columns(table),
}


@pytest.mark.parametrize("command", _COLUMNS)
def test_columns_mean_what_they_mean_in_a_classic_session(
    spark: SparkSession, client: Client, tmp_path: Path, command: str
) -> None:
    def program(spark: SparkSession, path: str) -> list[str]:
        return told_by_spark(path, _COLUMNS[command], spark)

    classic, connect = (make_table(tmp_path / name, {}) for name in ("classic", "connect"))
    _COLUMNS[command](DeltaTable.forPath(spark, classic))
    assert client(program, connect) == []
    assert state_of(connect)["rows"] == state_of(classic)["rows"]


def test_a_merge_that_finds_nothing_makes_the_version_that_delta_spark_makes(
    spark: SparkSession, client: Client, tmp_path: Path
) -> None:
    def command(table: DeltaTable) -> None:
        merge = merge_of(table, "SELECT 1L AS id FROM range(1)").whenMatchedUpdate("t.v < 0", {"v": "0"})
        merge.whenNotMatchedInsert("false", {"id": "s.id"}).execute()

    def program(spark: SparkSession, path: str) -> list[str]:
        return told_by_spark(path, command, spark)

    classic, connect = (make_table(tmp_path / name, {}) for name in ("classic", "connect"))
    command(DeltaTable.forPath(spark, classic))
    assert client(program, connect) == []
    assert DeltaLog(connect).open_snapshot().version == DeltaLog(classic).open_snapshot().version


@pytest.mark.parametrize("name", ["t.a", "t.t.a", "a", "` a`"])
def test_names_that_get_values_are_those_of_a_classic_session(
    spark: SparkSession, client: Client, tmp_path: Path, name: str
) -> None:
    """Of columns with the name of the alias, and with blanks in front."""

    def update(table: DeltaTable) -> None:
        table.alias("t").update("true", {name: "99"})

    def merge(table: DeltaTable) -> None:
        source = table._handle.spark.range(1).selectExpr("id + 99 AS w").alias("s")
        table.alias("t").merge(source, "t.a < s.w").whenMatchedUpdate(set={name: "s.w"}).execute()

    for number, command in enumerate((update, merge)):

        def program(spark: SparkSession, path: str, command: Any) -> None:
            command(DeltaTable.forPath(spark, path))

        rows = pa.table({"a": [1], "t": [{"a": 2}], " a": [3]})
        paths = [str(tmp_path / f"{kind}-{number}") for kind in ("classic", "connect")]
        for path in paths:
            DeltaLog(path).write(rows, options={"delta.columnMapping.mode": "name"})
        command(DeltaTable.forPath(spark, paths[0]))
        client(program, paths[1], command)
        assert DeltaLog(paths[1]).to_arrow() == DeltaLog(paths[0]).to_arrow()


def test_a_command_is_done_once_whatever_follows_it(client: Client, tmp_path: Path) -> None:
    path = make_table(tmp_path / "t", {})

    def program(spark: SparkSession, path: str) -> None:
        from delta_ds.exceptions import SchemaError
        from delta_ds.spark.commands.kernel_command import KernelCommand

        def fail(*_: Any) -> None:
            raise SchemaError("an answer that never came")

        before, KernelCommand._counts = KernelCommand._counts, fail  # type: ignore[method-assign, assignment]
        try:
            DeltaTable.forPath(spark, path).update("id < 60", {"v": "v + 1"})
        finally:
            KernelCommand._counts = before  # type: ignore[method-assign]

    told = client.failure(program, path)
    assert "an answer that never came" in told.text
    assert DeltaLog(path).open_snapshot().version == 3
    assert sorted(DeltaLog(path).to_arrow()["v"].to_pylist()) == [i * 10 + 1 for i in range(60)]


def test_a_source_with_many_large_tasks_is_left_to_spark(client: Client, tmp_path: Path) -> None:
    def program(spark: SparkSession, path: str) -> list[str]:
        text = "SELECT id, repeat(cast(id AS string), 7000000) AS long FROM range(0, 12, 1, 2)"
        merge = merge_of(DeltaTable.forPath(spark, path), text).whenMatchedUpdate(set={"v": "0"})
        return told_by_spark(path, lambda _: merge.execute(), spark)

    path = make_table(tmp_path / "t", {})
    (reason,) = client(program, path)
    assert "its source has more than" in reason
    assert DeltaLog(path).to_arrow().filter(pc.equal(DeltaLog(path).to_arrow()["v"], 0)).num_rows == 12


def test_a_source_may_be_made_of_the_table_that_others_change_meanwhile(
    client: Client, tmp_path: Path
) -> None:
    path = make_table(tmp_path / "t", {})

    def program(spark: SparkSession, path: str) -> None:
        from delta_ds.spark.engines.connect.connect_bridge import ServerLog

        original = ServerLog.run_on

        def after_another(self: Any, *arguments: Any) -> None:
            ServerLog.run_on = original  # type: ignore[method-assign]
            DeltaLog(path).delete("id = 5")
            original(self, *arguments)

        ServerLog.run_on = after_another  # type: ignore[assignment, method-assign]
        table = DeltaTable.forPath(spark, path)
        source = table.toDF().select("id", "v").alias("s")
        merge = table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdate(set={"v": "s.v + 1"})
        merge.whenNotMatchedInsert(values={"id": "s.id"}).execute()

    told = client.failure(program, path)
    assert told.recognised is not None and type(told.recognised).__name__.startswith("Concurrent")
    assert DeltaLog(path).to_arrow().num_rows == 59
    assert DeltaLog(path).history(1)[0]["operation"] == "DELETE"


def test_files_for_executors_are_left_to_them(client: Client, tmp_path: Path) -> None:
    """A driver of a cluster rewrites little itself."""

    def program(spark: SparkSession, path: str) -> list[str]:
        from delta_ds.spark.commands import kernel_command

        pattern = kernel_command._LOCAL
        kernel_command._LOCAL = kernel_command.re.compile("none")
        try:
            spark.conf.set("spark.pydelta.localOptimizeSize", "1b")
            few = told_by_spark(path, lambda table: table.delete("id = 1"), spark)
            spark.conf.unset("spark.pydelta.localOptimizeSize")
            return [*few, *told_by_spark(path, lambda table: table.delete("id = 2"), spark)]
        finally:
            kernel_command._LOCAL = pattern

    path = make_table(tmp_path / "t", {})
    (reason,) = client(program, path)
    assert "is for jobs of Spark" in reason
    assert DeltaLog(path).to_arrow().num_rows == 58


def test_commits_say_what_the_client_says_of_them(client: Client, tmp_path: Path) -> None:
    path = make_table(tmp_path / "t", {})

    def program(spark: SparkSession, path: str) -> None:
        spark.conf.set("spark.pydelta.commitInfo.userName", "somebody")
        spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", "why")
        DeltaTable.forPath(spark, path).delete("id = 1")
        spark.conf.unset("spark.pydelta.commitInfo.userName")
        spark.conf.unset("spark.databricks.delta.commitInfo.userMetadata")

    client(program, path)
    (last,) = DeltaLog(path).history(1)
    assert (last["userName"], last["userMetadata"]) == ("somebody", "why")
    assert last["engineInfo"].startswith("Apache-Spark/")
