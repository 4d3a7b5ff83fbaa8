"""Vectors of `pyspark.ml`, and other types that users define, are columns like others in every kind of session."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.ml.linalg import DenseVector, SparseVector, VectorUDT
from pyspark.sql.types import ArrayType, IntegerType, StructField, StructType
from pyspark.testing.objects import PythonOnlyPoint, PythonOnlyUDT

import delta_ds
from delta_ds import DeltaTable
from delta_ds.exceptions import SchemaError, UnsupportedFeatureError
from spark_tests.behaviour.spark.connect_server import Server, registered_client

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PATHS = ("spark.pydelta.nativeScan", "spark.pydelta.nativeWrite", "spark.pydelta.arrowWrite")
_SCHEMA = StructType(
    [
        StructField("id", IntegerType()),
        StructField("v", VectorUDT()),
        StructField("list", ArrayType(VectorUDT())),
        StructField("point", PythonOnlyUDT()),
    ]
)
_VECTORS = [DenseVector([1.0, 2.0]), SparseVector(3, {1: 5.0}), None]


def _row(n: int) -> tuple[Any, ...]:
    vector = _VECTORS[n % 3]
    return n, vector, [vector], None if vector is None else PythonOnlyPoint(float(n), 0.5)


def _frame(spark: SparkSession, *ids: int) -> DataFrame:
    return spark.createDataFrame([_row(n) for n in ids], _SCHEMA).coalesce(1)


def _rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=lambda row: row[0])


def _read(spark: SparkSession, path: str) -> DataFrame:
    return spark.read.format("pydelta").load(path)


@pytest.fixture(params=["native", "portable"])
def session(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    session = spark.newSession()
    for name in _PATHS:
        session.conf.set(name, str(request.param == "native").lower())
    delta_ds.register(session)
    yield session
    delta_ds.unregister(session)


def _make(session: SparkSession, path: str) -> None:
    for ids in ((0, 1, 2), (3, 4)):
        _frame(session, *ids).write.format("pydelta").mode("append").save(path)


def test_vectors_are_read_as_they_were_written(session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    _make(session, path)
    found = _read(session, path)
    assert found.schema == _SCHEMA
    assert _rows(found) == [_row(n) for n in range(5)]
    assert [row["v"] for row in found.where("v is null").collect()] == [None]
    assert sorted(row["id"] for row in found.where("v is not null").select("id").collect()) == [0, 1, 3, 4]


def test_row_commands_keep_and_assign_vectors(session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    _make(session, path)
    table = DeltaTable.forPath(session, path)
    table.delete("id = 0")
    table.update("id = 1", {"v": "null"})
    merge = table.alias("t").merge(_frame(session, 3, 7).alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate(set={"v": "null", "point": "s.point"}).whenNotMatchedInsertAll().execute()
    table.optimize().executeCompaction()
    expected = {n: list(_row(n)) for n in (1, 2, 3, 4, 7)}
    expected[1][1] = expected[3][1] = None
    assert _rows(_read(session, path)) == [tuple(row) for row in expected.values()]


def test_a_vector_is_not_stored_where_another_class_is(session: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    _make(session, path)
    other = _frame(session, 9).selectExpr("id", "point as v")
    with pytest.raises(SchemaError) as caught:
        other.write.format("pydelta").mode("append").save(path)
    assert caught.value.condition == "DELTA_FAILED_TO_MERGE_FIELDS"
    assert _read(session, path).count() == 5


def test_vectors_go_through_names_streams_and_the_change_feed(spark: SparkSession, tmp_path: Path) -> None:
    path, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    properties = {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "name"}
    _frame(spark, 0, 1, 2).write.format("pydelta").options(**properties).save(path)
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN v TO vector")
    spark.sql(f"UPDATE delta.`{path}` SET id = 6 WHERE id = 0")
    feed = (
        spark.read.format("pydelta").option("readChangeFeed", "true").option("startingVersion", 2).load(path)
    )
    found = [(row["_change_type"], row["id"], row["vector"]) for row in feed.orderBy("id").collect()]
    assert found == [("update_preimage", 0, _VECTORS[0]), ("update_postimage", 6, _VECTORS[0])]
    stream = spark.readStream.format("pydelta").option("ignoreChanges", "true").load(path)
    started = stream.writeStream.format("pydelta").option("checkpointLocation", str(tmp_path / "checkpoint"))
    started.trigger(availableNow=True).start(copy).awaitTermination()
    assert [tuple(row) for row in _rows(_read(spark, copy))] == [_row(1), _row(2), (6, *_row(0)[1:])]
    described = {row["col_name"]: row["data_type"] for row in spark.sql(f"DESCRIBE delta.`{path}`").collect()}
    assert (described["vector"], described["list"]) == ("vector", "array<vector>")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["plain_server", "our_server"])
def test_clients_of_connect_read_and_write_vectors(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(kind)
    path = str(tmp_path / "t")
    with registered_client(server, tmp_path) as client:
        assert client(_written_and_changed, path) == [_row(1), (2, None, *_row(2)[2:])]


def _written_and_changed(spark: SparkSession, path: str) -> list[tuple[Any, ...]]:
    _frame(spark, 0, 1, 2).write.format("pydelta").save(path)
    table = DeltaTable.forPath(spark, path)
    table.delete("id = 0")
    table.update("id = 2", {"v": "null"})
    return _rows(_read(spark, path))


def test_a_class_that_stores_its_values_otherwise_than_the_table_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    _frame(spark, 0).write.format("pydelta").save(path)
    commit = Path(path, "_delta_log", f"{0:020}.json")
    commit.write_text(commit.read_text().replace('\\"name\\":\\"size\\"', '\\"name\\":\\"length\\"'))
    with pytest.raises(UnsupportedFeatureError, match="the version of the class that wrote the table"):
        _read(spark, path)


class _Planted:
    def __reduce__(self) -> Any:
        return (print, ("a class of a table's log was loaded",))


def test_a_class_that_is_not_there_is_refused_and_not_unpickled(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import base64

    path = str(tmp_path / "t")
    _frame(spark, 0).write.format("pydelta").save(path)
    commit = Path(path, "_delta_log", f"{0:020}.json")
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    (metadata,) = (action["metaData"] for action in actions if "metaData" in action)
    schema = json.loads(metadata["schemaString"])
    planted = base64.b64encode(pickle.dumps(_Planted())).decode()
    schema["fields"][3]["type"] |= {"pyClass": "os.NoSuchUDT", "serializedClass": planted}
    metadata["schemaString"] = json.dumps(schema)
    commit.write_text("\n".join(map(json.dumps, actions)))
    with pytest.raises(
        UnsupportedFeatureError, match=r"column point has the user-defined type os\.NoSuchUDT"
    ):
        _read(spark, path)
    assert "was loaded" not in capfd.readouterr().out
