"""Commands that change rows leave the same table whatever kind of session runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import delta_ds
from delta_ds import DeltaLog, DeltaTable
from delta_ds.exceptions import DeltaError
from spark_tests.behaviour.spark.commands.row_changes import (
    COMMANDS,
    LAYOUTS,
    make_table,
    only_at_server,
    state_of,
    told_by_spark,
)
from spark_tests.behaviour.spark.connect_server import (
    Client,
    another_session,
    connect_client,
    register,
)

pytestmark = [pytest.mark.connect, pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module", params=["plain server", "server of ours"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    name = "plain_server" if request.param == "plain server" else "our_server"
    with connect_client(request.getfixturevalue(name), tmp_path_factory.mktemp("kinds")) as started:
        if request.param == "plain server":
            started(register)
        yield started


def _run_whole(spark: SparkSession, command: str, path: str, ours: bool) -> list[str]:
    """Run a command as one call of the server; why one of others left it to Spark."""
    from delta_ds.spark.commands import row_commands

    if not ours:
        return told_by_spark(path, COMMANDS[command], spark)
    of_the_client = row_commands.DmlExecution
    try:
        COMMANDS[command](only_at_server(spark, path))
    finally:
        row_commands.DmlExecution = of_the_client  # type: ignore[misc]
    return []


@pytest.mark.sampled
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_client_of_a_server_leaves_what_a_classic_session_leaves(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    client: Client,
    tmp_path: Path,
    command: str,
    layout: str,
) -> None:
    """A server of ours runs a command as its own session would, one of others by the kernel."""
    ours = request.node.callspec.params["client"] == "server of ours"
    classic, connect = (make_table(tmp_path / name, LAYOUTS[layout]) for name in ("classic", "connect"))
    COMMANDS[command](DeltaTable.forPath(spark, classic))
    assert client(_run_whole, command, connect, ours) == []
    left = [state_of(path) for path in (classic, connect)]
    if not ours:
        for each in left:
            del each["parameters"]  # conditions are texts of plans in one, as they were written in the other
    assert left[0] == left[1]


_MEANINGS = {
    "int(id) = 1": ("spark.sql.ansi.enabled", "false", 2),
    "t.id NOT IN ('01')": ("spark.sql.ansi.enabled", "false", 2),
    "\"s\" = 'x1'": ("spark.sql.ansi.doubleQuotedIdentifiers", "true", 1),
    "s = 'a\\nb'": ("spark.sql.parser.escapedStringLiterals", "true", 1),
}


def test_a_condition_means_what_the_settings_of_the_session_say(client: Client, tmp_path: Path) -> None:
    """No file is skipped that has rows for it."""

    def program(spark: SparkSession, folder: str) -> list[int]:
        found = []
        for number, (condition, (setting, value, _)) in enumerate(_MEANINGS.items()):
            table = DeltaTable.forPath(spark, f"{folder}/{number}").alias("t")
            spark.conf.set(setting, value)
            found.append(table.delete(condition).collect()[0][0])
            spark.conf.unset(setting)
        return found

    for number in range(len(_MEANINGS)):
        for one, text in ((4294967297, "x1"), (1, "a\\nb")):
            DeltaLog(tmp_path / str(number)).write(pa.table({"id": [one], "s": [text]}))
    assert client(program, str(tmp_path)) == [count for _, _, count in _MEANINGS.values()]


# --- columns of frames


def _of_table(table: DeltaTable) -> None:
    frame = table.toDF()
    table.delete((frame["id"] % 4 == 1) | (frame["s"]["a"] == 6) | (frame["s.a"] == 8))


def _of_aliases(table: DeltaTable) -> None:
    frame, aliased = table.toDF(), table.alias("q").toDF()
    table.alias("q").update(frame["ID"] > 50, {"v": aliased["v"] + frame["id"], "p": F.upper(aliased["p"])})


def _source(table: DeltaTable) -> DataFrame:
    return table._handle.spark.range(30, 70).selectExpr("id", "id % 7 AS w")


def _of_both_sides(table: DeltaTable) -> None:
    frame, source = table.alias("t").toDF(), _source(table)
    merge = table.alias("t").merge(source, frame["id"] == source["id"])
    merge = merge.whenMatchedUpdate(source["w"] > frame["id"] % 5, {"v": frame["v"] + source["w"]})
    merge = merge.whenMatchedDelete(source["w"] == 2).whenNotMatchedBySourceUpdate(
        frame["v"] < 50, {"v": -frame["v"]}
    )
    merge.whenNotMatchedInsert(source["w"] < 4, {"id": source["id"], "v": source["w"] * 2}).execute()


def _of_what_the_source_is_made_of(table: DeltaTable) -> None:
    base = _source(table)
    frame, source = table.toDF(), base.where("w > 1").alias("s")
    merge = table.merge(source, frame["id"] == base["id"]).whenMatchedUpdate(set={"v": base["w"] + F.lit(1)})
    merge.whenNotMatchedInsert(values={"id": base["id"], "v": source["w"]}).execute()


def _of_a_source_alone(table: DeltaTable) -> None:
    source = _source(table)
    merge = table.alias("t").merge(source, F.col("t.id") == source["id"])
    merge = merge.whenMatchedUpdate(set={"v": source["w"]})
    merge.whenNotMatchedInsert(values={"id": source["id"]}).execute()


def _of_frames_made_of_the_table(table: DeltaTable) -> None:
    frame = table.alias("q").toDF()
    some, other = frame.where("id > 3"), frame.withColumnRenamed("id", "key").alias("z")
    table.delete((some["id"] == 41) | (table.toDF().select("s", "id")["s.a"] == 6))
    table.update(other["v"] > 500, {"v": other["v"] + frame.withColumn("x", F.lit(1)).distinct()["id"]})
    joined = some.join(table._handle.spark.range(9).toDF("n"), F.col("id") == F.col("n"))
    table.update(joined["id"] == 5, {"p": F.upper(joined["p"])})


def _of_both_sides_and_frames_made_of_them(table: DeltaTable) -> None:
    frame, base = table.toDF().where("id >= 0"), _source(table)
    source = base.toDF("key", "n").withColumnRenamed("n", "new name").alias("s")
    merge = table.merge(source, (frame["id"] == source["key"]) & (F.col("s.key") < 66))
    merge = merge.whenMatchedUpdate(source["new name"] > 2, {"v": frame["v"] + source["`new name`"]})
    merge = merge.whenNotMatchedInsert(values={"id": source.key, "v": F.col("s.new name")})
    merge.whenNotMatchedBySourceUpdate(frame.select("id")["id"] > 20, {"v": -frame["v"]}).execute()


def _of_a_table_merged_into_itself(table: DeltaTable) -> None:
    frame = table.toDF().where("id > 10")
    source = frame.withColumnRenamed("id", "key").withColumnRenamed("v", "w").drop("s")
    merge = table.merge(source, frame["id"] == source["key"] + 1)
    merge.whenMatchedUpdate(source["w"] > 200, {"v": frame["v"] + source["w"]}).execute()


def _of_swapped_names(table: DeltaTable) -> None:
    source = _source(table).toDF("w", "id")
    merge = table.merge(source, table.toDF()["id"] == source["w"])
    merge.whenMatchedUpdate(set={"v": source["id"]}).execute()


def _by_names_with_aliases(table: DeltaTable) -> None:
    aliased, given = table.toDF().alias("z"), table.alias("q").toDF()
    table.delete((aliased["z.id"] % 4 == 1) | (aliased["Z.s.a"] == 6) | (given["q.id"] == 11))
    some = given.where("id > 3")
    table.alias("q").update(given["q.id"] > 50, {"v": some["q.v"] + aliased.where("id > 3")["z.`id`"]})
    other = table._handle.spark.range(9).alias("y")
    joined = aliased.join(other, F.col("z.id") == F.col("y.id"))
    table.update(joined["z.id"] == 6, {"p": F.upper(joined["z.p"])})


def _by_names_with_aliases_in_a_merge(table: DeltaTable) -> None:
    frame, source = table.toDF().alias("z"), _source(table).alias("s")
    merge = table.alias("t").merge(source, frame["z.id"] == source["s.id"])
    merge = merge.whenMatchedUpdate(source["s.w"] > 2, {"v": frame["z.v"] + source["s.w"]})
    merge.whenNotMatchedInsert(values={"id": source["s.id"]}).execute()


_OF_FRAMES: dict[str, Callable[[DeltaTable], None]] = {
    "by names with aliases": _by_names_with_aliases,
    "by names with aliases in a merge": _by_names_with_aliases_in_a_merge,
    "of the table": _of_table,
    "of aliases of it": _of_aliases,
    "of both sides": _of_both_sides,
    "of what the source is made of": _of_what_the_source_is_made_of,
    "of the source alone": _of_a_source_alone,
    "of frames made of the table": _of_frames_made_of_the_table,
    "of both sides and frames made of them": _of_both_sides_and_frames_made_of_them,
    "of a table merged into itself": _of_a_table_merged_into_itself,
    "of swapped names": _of_swapped_names,
}


def _run_of_frames(spark: SparkSession, command: str, path: str) -> None:
    _OF_FRAMES[command](DeltaTable.forPath(spark, path))


@pytest.mark.sampled
@pytest.mark.parametrize("layout", ["files are replaced", "marked, feed and ids"])
@pytest.mark.parametrize("command", _OF_FRAMES)
def test_columns_of_frames_mean_in_a_client_what_they_mean_in_a_classic_session(
    spark: SparkSession, client: Client, tmp_path: Path, command: str, layout: str
) -> None:
    """Of those of the table, those made of them, those of a source, renamed too, and those that it is made of."""
    classic, connect = (make_table(tmp_path / name, LAYOUTS[layout]) for name in ("classic", "connect"))
    _run_of_frames(spark, command, classic)
    client(_run_of_frames, command, connect)
    left = [state_of(path) for path in (classic, connect)]
    for each in left:
        del each["parameters"]
    assert left[0] == left[1]


_STRANGERS: dict[str, Callable[[DeltaTable, DeltaTable], object]] = {
    "a frame of another table": lambda table, other: table.delete(other.toDF()["id"] == 1),
    "a name that a frame of the table gives": lambda table, _: table.delete(
        table.toDF().withColumnRenamed("id", "key")["key"] == 1
    ),
    "a value that a frame of the table computes": lambda table, _: table.delete(
        table.toDF().withColumn("v", F.lit(1))["v"] == 1
    ),
    "a name of another column": lambda table, _: table.delete(
        table.toDF().toDF("v", "p", "id", "s")["v"] == 1
    ),
    "a name that a source has given up": lambda table, _: (
        table.merge((base := _source(table)).toDF("w", "id"), table.toDF()["id"] == base["id"])
        .whenMatchedDelete()
        .execute()
    ),
    "a name by which a join takes the right side": lambda table, other: table.delete(
        table.toDF().join(other.toDF().select("id"), "id", "right")["id"] == 1
    ),
    "a frame of both sides": lambda table, _: (
        table.merge(table.toDF().where("id = 1"), table._handle.given[-1]["id"] == 1)  # type: ignore[index]
        .whenMatchedDelete()
        .execute()
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("command", _STRANGERS)
def test_columns_of_other_frames_are_refused_in_a_client(
    client: Client, tmp_path: Path, command: str
) -> None:
    def program(spark: SparkSession, one: str, other: str) -> str:
        try:
            _STRANGERS[command](DeltaTable.forPath(spark, one), DeltaTable.forPath(spark, other))
        except DeltaError as error:
            return str(error.condition)
        return "done"

    paths = [make_table(tmp_path / name, {}) for name in ("one", "other")]
    assert client(program, *paths) in ("CANNOT_RESOLVE_DATAFRAME_COLUMN", "AMBIGUOUS_COLUMN_REFERENCE")
    assert [DeltaLog(path).open_snapshot().version for path in paths] == [2, 2]


def test_every_session_of_a_client_runs_its_own_commands(client: Client, tmp_path: Path) -> None:
    """What the server keeps for a command belongs to its session, whichever one is the client's active session."""

    def program(spark: SparkSession, path: str) -> list[Any]:
        session = another_session()
        delta_ds.register(session)
        table = DeltaTable.forPath(session, path)
        frame, source = table.toDF(), session.range(58, 62)
        condition = frame["id"] == source["id"]
        merge = table.merge(source, condition).whenMatchedDelete()
        merge = merge.whenNotMatchedInsert(values={"id": source["id"], "v": source["id"] * 2})
        counts = tuple(merge.execute().collect()[0])
        return [counts, frame.count(), SparkSession.active() is spark]

    path = make_table(tmp_path / "t", {})
    assert client(program, path) == [(4, 0, 2, 2), 60, True]
