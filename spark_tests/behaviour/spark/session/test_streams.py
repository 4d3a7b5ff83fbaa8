"""What a stream cannot do is told before anything is read or written, whichever kind of session starts it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from delta_ds.exceptions import DeltaError
from delta_ds.spark.errors.translation import as_delta_error
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.spark.connect_server import Client, Server, client_of_ours, registered_client
from spark_tests.behaviour.spark.session_settings import session_settings

SECONDS = 180
ANYWHERE = {"spark.databricks.delta.streaming.allowSchemaLocationOutsideCheckpointLocation": "true"}
NOT_UNDER = "DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT"
CONFLICT = "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"
VOID = "DELTA_NULL_SCHEMA_IN_STREAMING_WRITE"
# In a program, what comes before the query runs, and what ends it.
LOAD, START, QUERY = "load", "start", "query"


def condition(error: BaseException) -> str:
    ours = error if isinstance(error, DeltaError) else as_delta_error(error)
    found = ours.condition if ours is not None else getattr(error, "getCondition", lambda: None)()
    assert found is not None, error
    return str(found)


def outcome(loaded: Callable[[], DataFrame], started: Callable[[DataFrame], Any]) -> Any:
    """When a stream is refused, and by which condition; None: it is not."""
    try:
        frame = loaded()
        _ = frame.columns
    except (DeltaError, PySparkException) as error:
        return LOAD, condition(error)
    try:
        query = started(frame)
    except (DeltaError, PySparkException) as error:
        return START, condition(error)
    try:
        assert query.awaitTermination(SECONDS)
    except (DeltaError, StreamingQueryException) as error:
        return QUERY, condition(error)
    return None


def source(spark: SparkSession, folder: str, **options: Any) -> DataFrame:
    return spark.readStream.format("pydelta").options(**options).load(f"{folder}/source")


def into(folder: str) -> Callable[[DataFrame], Any]:
    def start(frame: DataFrame) -> Any:
        writer = frame.writeStream.format("pydelta").trigger(availableNow=True)
        return writer.option("checkpointLocation", f"{folder}/c").start(f"{folder}/target")

    return start


def into_a_function(folder: str | None, name: str | None = None) -> Callable[[DataFrame], Any]:
    # A server that runs it has not this module.
    def nowhere(batch: DataFrame, number: int) -> None:
        pass

    def start(frame: DataFrame) -> Any:
        writer = frame.writeStream.trigger(availableNow=True).foreachBatch(nowhere)
        if folder is not None:
            writer = writer.option("checkpointLocation", f"{folder}/c")
        return writer.start(queryName=name)

    return start


def into_files(folder: str) -> Callable[[DataFrame], Any]:
    def start(frame: DataFrame) -> Any:
        writer = frame.writeStream.format("parquet").trigger(availableNow=True)
        return writer.start(f"{folder}/files", checkpointLocation=f"{folder}/c")

    return start


def tracked(location: str, *, twice: bool = False, ids: tuple[str, str] | None = None) -> Any:
    def load(spark: SparkSession, folder: str) -> DataFrame:
        where = f"{folder}/{location}"
        if ids is not None:
            one, other = (
                source(spark, folder, schemaTrackingLocation=where, streamingSourceTrackingId=id)
                for id in ids
            )
            return one.union(other)
        frame = source(spark, folder, schemaTrackingLocation=where)
        return frame.union(source(spark, folder, schemaLocation=f"{where}/")) if twice else frame

    return load


def given(schema: str, **options: Any) -> Callable[[SparkSession, str], DataFrame]:
    def load(spark: SparkSession, folder: str) -> DataFrame:
        reader = spark.readStream.format("pydelta").schema(schema).options(**options)
        return reader.load(f"{folder}/source")

    return load


def with_void(spark: SparkSession, folder: str) -> DataFrame:
    return source(spark, folder).withColumn("v", F.lit(None))


# What is loaded, how the query is started, what comes of it, and settings of the session.
PROGRAMS: dict[str, tuple[Any, Any, Any, dict[str, str]]] = {
    "void": (with_void, into, (QUERY, VOID), {}),
    "void to a function": (with_void, into_a_function, None, {}),
    "a schema of some columns": (given("ID bigint"), into, None, {}),
    "a schema with another column": (given("id bigint, x int"), into, (LOAD, "DELTA_CANNOT_RESOLVE_COLUMN"), {}),
    "a schema with another type": (given("id int"), into, (LOAD, "DELTA_FAILED_TO_MERGE_FIELDS"), {}),
    "a schema with columns of changes": (
        given("id bigint, _change_type string"), into, (LOAD, "DELTA_CANNOT_RESOLVE_COLUMN"), {},
    ),
    "a schema of changes": (given("id bigint, _change_type string", readChangeFeed="true"), into, None, {}),
    "below the checkpoint": (tracked("c/schemas"), into, None, {}),
    "in the checkpoint": (tracked("c/"), into, None, {}),
    "beside the checkpoint": (tracked("c2"), into, (START, NOT_UNDER), {}),
    "outside by dots": (tracked("c/../schemas"), into, (START, NOT_UNDER), {}),
    "outside, to a function": (tracked("schemas"), into_a_function, (START, NOT_UNDER), {}),
    "outside, to files": (tracked("schemas"), into_files, (START, NOT_UNDER), {}),
    "outside, allowed": (tracked("schemas"), into, None, ANYWHERE),
    "two in one place": (tracked("c/s", twice=True), into, (START, CONFLICT), {}),
    "two in one place, allowed anywhere": (tracked("s", twice=True), into, (START, CONFLICT), ANYWHERE),
    "two with ids": (tracked("c/s", ids=("1", "2")), into, None, {}),
    "two with one id": (tracked("c/s", ids=("1", "1")), into, (START, CONFLICT), {}),
}  # fmt: skip
_EACH = pytest.mark.parametrize("name", PROGRAMS)


def run(spark: SparkSession, name: str, folder: str) -> Any:
    load, start, _, settings = PROGRAMS[name]
    with session_settings(spark, settings):
        return outcome(lambda: load(spark, folder), start(folder))


def numbers(folder: Path) -> None:
    table = TableBuilder(folder / "source")
    table.create(pa.schema([("id", pa.int64())]), properties={"delta.enableChangeDataFeed": "true"})
    table.append(pa.table({"id": [1, 2]}))


def check(name: str, found: Any, folder: Path) -> None:
    assert found == PROGRAMS[name][2]
    written = PROGRAMS[name][1] is into and found is None
    assert (folder / "target").exists() == written


@pytest.mark.spark
@_EACH
def test_in_classic_sessions(spark: SparkSession, tmp_path: Path, name: str) -> None:
    numbers(tmp_path)
    check(name, run(spark, name, str(tmp_path)), tmp_path)


@pytest.mark.spark
def test_a_query_without_a_checkpoint_of_its_own_has_none_to_lie_under(
    spark: SparkSession, tmp_path: Path
) -> None:
    numbers(tmp_path)
    folder = str(tmp_path)
    assert outcome(lambda: tracked("schemas")(spark, folder), into_a_function(None)) == (START, NOT_UNDER)
    with session_settings(spark, {"spark.sql.streaming.checkpointLocation": f"{folder}/all"}):
        named = outcome(lambda: tracked("all/mine/schemas")(spark, folder), into_a_function(None, "mine"))
    assert named is None


@pytest.mark.spark
def test_a_frame_that_a_query_reads_twice_is_one_source(spark: SparkSession, tmp_path: Path) -> None:
    numbers(tmp_path)
    folder = str(tmp_path)

    def twice() -> DataFrame:
        frame = tracked("c/s")(spark, folder)
        return frame.union(frame)

    assert outcome(twice, into_a_function(folder)) is None


@pytest.mark.spark
def test_statements_and_names_are_looked_at_too(spark: SparkSession, tmp_path: Path) -> None:
    numbers(tmp_path)
    folder = str(tmp_path)
    text = f"SELECT * FROM STREAM delta.`{folder}/source` WITH (schemaTrackingLocation = '{folder}/schemas')"
    assert outcome(lambda: spark.sql(text), into(folder)) == (START, NOT_UNDER)
    reader = spark.readStream.option("schemaTrackingLocation", f"{folder}/schemas")
    assert outcome(lambda: reader.table(f"delta.`{folder}/source`"), into(folder)) == (START, NOT_UNDER)
    jreader = spark._jsparkSession.readStream().format("delta").schema("id int")
    assert outcome(lambda: DataFrame(jreader.load(f"{folder}/source"), spark), into(folder)) == (
        LOAD, "DELTA_FAILED_TO_MERGE_FIELDS",
    )  # fmt: skip
    assert not (tmp_path / "target").exists()


@pytest.mark.spark
def test_void_makes_no_table_of_a_query_into_a_name(spark: SparkSession, tmp_path: Path) -> None:
    numbers(tmp_path)
    spark.sql("CREATE TABLE streamed_void (id BIGINT, v STRING) USING delta")
    try:
        found = outcome(
            lambda: with_void(spark, str(tmp_path)),
            lambda frame: (
                frame.writeStream.option("checkpointLocation", f"{tmp_path}/c")
                .trigger(availableNow=True)
                .toTable("streamed_void")
            ),
        )
        assert found == (QUERY, VOID)
        assert spark.table("streamed_void").count() == 0
    finally:
        spark.sql("DROP TABLE streamed_void")


@pytest.fixture(scope="module")
def client(plain_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with registered_client(plain_server, tmp_path_factory.mktemp("streams")) as started:
        yield started


@pytest.mark.connect
@pytest.mark.long
# That server has no client in its Python, which Spark runs a function for batches with.
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "void to a function"])
def test_of_a_client_of_any_server(client: Client, tmp_path: Path, name: str) -> None:
    numbers(tmp_path)
    check(name, client(run, name, str(tmp_path)), tmp_path)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with client_of_ours(tmp_path_factory.mktemp("served")) as started:
        yield started


@pytest.mark.connect
@pytest.mark.slow
@pytest.mark.long
@_EACH
def test_of_a_client_of_our_server(served: Client, tmp_path: Path, name: str) -> None:
    numbers(tmp_path)
    check(name, served(run, name, str(tmp_path)), tmp_path)
