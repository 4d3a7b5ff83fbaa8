"""Commands that change rows leave the same table whatever kind of session runs them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import delta_ds
from delta_ds import DeltaLog, DeltaTable
from spark_tests.behaviour.spark.commands.row_changes import COMMANDS, LAYOUTS, make_table, state_of
from spark_tests.behaviour.spark.connect_server import Client, client_of_ours, connect_client

pytestmark = [pytest.mark.connect, pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module", params=["plain server", "server of ours"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: install delta-ds[connect]")
    folder = tmp_path_factory.mktemp("connect")
    if request.param == "plain server":
        with connect_client(folder) as started:
            started(_register)
            yield started
        return
    with client_of_ours(folder) as started:
        yield started


def _register(spark: SparkSession) -> None:
    delta_ds.register(spark)


def run(spark: SparkSession, command: str, path: str) -> None:
    COMMANDS[command](DeltaTable.forPath(spark, path))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_client_of_a_server_leaves_what_a_classic_session_leaves(
    spark: SparkSession, client: Client, tmp_path: Path, command: str, layout: str
) -> None:
    classic, connect = (make_table(tmp_path / name, LAYOUTS[layout]) for name in ("classic", "connect"))
    run(spark, command, classic)
    client(run, command, connect)
    left = [state_of(path) for path in (classic, connect)]
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
