"""`replaceUsing` and `replaceOn` leave what a classic session leaves, from a client of Spark Connect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import delta_ds
from delta_ds import DeltaLog
from delta_ds.exceptions import SchemaError, UnsupportedOperationError
from spark_tests.behaviour.spark.connect_server import Client, Server, connect_client

pytestmark = [pytest.mark.connect, pytest.mark.slow, pytest.mark.long]

TABLE = {(1, "a", 10), (2, "b", 20), (3, "c", 30), (None, "n", 40)}
ROWS = "(2, 'b', 200), (4, 'd', 400), (null, 'n', 999)"
NEW = {(2, "b", 200), (4, "d", 400), (None, "n", 999)}
USING = TABLE - {(2, "b", 20)} | NEW


@pytest.fixture(scope="module")
def client(plain_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with connect_client(plain_server, tmp_path_factory.mktemp("connect")) as started:
        started(lambda spark: bool(delta_ds.register(spark)))
        yield started


@pytest.fixture(params=["files", "vectors"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    columns = zip(*sorted(TABLE, key=str), strict=True)
    ids, keys, values = columns
    rows = pa.table({"id": pa.array(ids, pa.int32()), "k": pa.array(keys), "v": pa.array(values, pa.int32())})
    options = {
        "delta.enableDeletionVectors": str(request.param == "vectors").lower(),
        "delta.enableChangeDataFeed": "true",
    }
    DeltaLog(tmp_path / "t").write(rows, options=options)
    return tmp_path / "t"


def rows(spark: SparkSession) -> DataFrame:
    return spark.sql(f"SELECT * FROM VALUES {ROWS} AS x(id, k, v)")


def save(spark: SparkSession, path: str, options: dict[str, str]) -> None:
    rows(spark).alias("s").write.format("pydelta").mode("overwrite").options(**options).save(path)


def by_place(spark: SparkSession, path: str, options: dict[str, str]) -> None:
    writer = rows(spark).alias("s").write.format("pydelta").mode("overwrite").options(**options)
    writer.insertInto(f"pydelta.`{path}`")


def run(spark: SparkSession, text: str) -> None:
    rows(spark).createOrReplaceTempView("new_rows")
    spark.sql(text)


def found(path: Path) -> set[tuple[Any, ...]]:
    return {tuple(row.values()) for row in DeltaLog(path).snapshot().scan().to_arrow().to_pylist()}


@pytest.mark.parametrize("way", [save, by_place])
def test_rows_that_match_are_replaced(client: Client, path: Path, way: Any) -> None:
    client(way, str(path), {"replaceUsing": "id"})
    assert found(path) == USING
    changes = DeltaLog(path).changes(1).to_arrow().select(["_change_type", "id", "k", "v"]).to_pylist()
    expected = {("delete", 2, "b", 20), *(("insert", *row) for row in NEW)}
    assert {tuple(change.values()) for change in changes} == expected
    assert DeltaLog(path).history()[0]["operationParameters"]["replaceUsingCols"] == "(id)"


def test_conditions_know_both_sides_by_their_aliases(client: Client, path: Path) -> None:
    client(save, str(path), {"replaceOn": "t.id <=> s.id AND s.v > 200", "targetAlias": "t"})
    assert found(path) == TABLE - {(None, "n", 40)} | NEW


@pytest.mark.sampled
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO pydelta.`{path}` REPLACE USING (id) SELECT * FROM new_rows",
        "INSERT INTO pydelta.`{path}` BY NAME REPLACE USING (id) SELECT v, k, id FROM new_rows",
        "INSERT INTO pydelta.`{path}` AS t REPLACE ON t.id = s.id (SELECT * FROM new_rows) AS s",
    ],
)
def test_statements_replace_what_they_match(client: Client, path: Path, statement: str) -> None:
    client(run, statement.format(path=path))
    assert found(path) == USING


def test_what_does_not_fit_is_refused_by_name(client: Client, path: Path) -> None:
    for options, condition in (
        ({"replaceUsing": "nope"}, "UNRESOLVED_INSERT_REPLACE_USING_COLUMN"),
        ({"replaceOn": "id = 1"}, "DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION"),
        ({"replaceOn": "t.id = q.x"}, "DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION"),
    ):
        with pytest.raises(SchemaError, match=condition):
            client(save, str(path), {"targetAlias": "t", **options})
    with pytest.raises(UnsupportedOperationError, match="DELTA_UNSUPPORTED_SUBQUERY"):
        client(save, str(path), {"replaceOn": "t.id IN (SELECT 1)", "targetAlias": "t"})
    assert found(path) == TABLE
