"""Streams by name, and those that Spark's own JVM resolves, which do what streams of a registered session do."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import delta_ds
from delta_ds import DeltaLog
from delta_ds.exceptions import DeltaError, InvalidOptionError, UnsupportedOperationError
from delta_ds.spark.errors.translation import as_delta_error, delta_errors

pytestmark = pytest.mark.spark

SECONDS = 180


def rows_of(stream: DataFrame, checkpoint: Path) -> list[tuple[Any, ...]]:
    """What a stream brings until its end is reached."""
    found: list[tuple[Any, ...]] = []
    query = (
        stream.writeStream.option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .foreachBatch(lambda batch, number: found.extend(map(tuple, batch.collect())))
        .start()
    )
    assert query.awaitTermination(SECONDS)
    return sorted(found)


def reader(spark: SparkSession, **options: str) -> Any:
    """Spark's own reader of streams, which no method of this package stands before."""
    found = spark._jsparkSession.readStream()
    for name, text in options.items():
        found = found.option(name, text)
    return found


def loaded(spark: SparkSession, path: Path | str, **options: str) -> DataFrame:
    return DataFrame(reader(spark, **options).format("delta").load(str(path)), spark)


def named(spark: SparkSession, name: str, **options: str) -> DataFrame:
    return DataFrame(reader(spark, **options).table(name), spark)


def run(
    stream: DataFrame,
    checkpoint: Path,
    start: Callable[[Any], Any],
    mode: str = "append",
    partition_by: str | None = None,
    **options: str,
) -> None:
    """Write a stream by Spark's own writer, to its end; errors are those of this package."""
    spark = stream.sparkSession
    assert spark._jvm is not None
    writer = stream._jdf.writeStream().outputMode(mode).option("checkpointLocation", str(checkpoint))
    writer = writer.trigger(spark._jvm.org.apache.spark.sql.streaming.Trigger.AvailableNow())
    for name, text in options.items():
        writer = writer.option(name, text)
    if partition_by is not None:
        columns = spark.sparkContext._gateway.new_array(spark._jvm.java.lang.String, 1)  # type: ignore[union-attr]
        columns[0] = partition_by
        writer = writer.partitionBy(columns)
    with delta_errors():
        try:
            start(writer).awaitTermination(SECONDS * 1000)
        except StreamingQueryException as error:
            raise as_delta_error(error) or error from None


def path_writer(path: Path) -> Callable[[Any], Any]:
    return lambda writer: writer.format("delta").start(str(path))


def name_writer(name: str) -> Callable[[Any], Any]:
    return lambda writer: writer.toTable(name)


def numbers(spark: SparkSession, name: str, *groups: int, feed: bool = False) -> None:
    """A table with a commit a group of ids."""
    properties = f"TBLPROPERTIES ('delta.enableChangeDataFeed' = '{str(feed).lower()}')"
    spark.sql(f"CREATE TABLE {name} (id BIGINT) USING delta {properties}")
    for start, end in zip((0, *groups), groups, strict=False):
        spark.range(start, end).write.insertInto(name)


class TestReading:
    def test_each_way_gives_the_same_rows(self, spark: SparkSession, folder: Path, tmp_path: Path) -> None:
        numbers(spark, "source", 2, 3)
        spark.sql("CREATE TEMPORARY VIEW streamed AS SELECT id + 0 AS id FROM STREAM source")
        ways = {
            "name": named(spark, "source"),
            "path": loaded(spark, folder / "source"),
            "path as a name": named(spark, f"delta.`{folder / 'source'}`"),
            "statement": spark.sql("SELECT * FROM STREAM source"),
            "brackets": spark.sql("WITH w AS (SELECT s.id FROM STREAM(source) AS s WHERE s.id >= 0) TABLE w"),
            "statement of a path": spark.sql(f"SELECT id FROM STREAM delta.`{folder / 'source'}`"),
            "a view": spark.table("streamed"),
            "registered": spark.readStream.table("source"),
        }
        try:
            assert {way: stream.isStreaming for way, stream in ways.items()} == dict.fromkeys(ways, True)
            found = {way: rows_of(stream, tmp_path / way) for way, stream in ways.items()}
            assert found == dict.fromkeys(ways, [(0,), (1,), (2,)])
        finally:
            spark.catalog.dropTempView("streamed")

    def test_a_checkpoint_goes_on_by_any_of_them(
        self, spark: SparkSession, folder: Path, tmp_path: Path
    ) -> None:
        numbers(spark, "continued", 2)
        assert rows_of(spark.readStream.table("continued"), tmp_path / "c") == [(0,), (1,)]
        spark.sql("INSERT INTO continued VALUES (2)")
        assert rows_of(named(spark, "continued"), tmp_path / "c") == [(2,)]
        spark.sql("INSERT INTO continued VALUES (3)")
        assert rows_of(loaded(spark, folder / "continued"), tmp_path / "c") == [(3,)]

    def test_options_are_those_of_streams(self, spark: SparkSession, folder: Path, tmp_path: Path) -> None:
        numbers(spark, "fed", 1, 2, 3, feed=True)
        fed = folder / "fed"
        changes = [(1, "insert"), (2, "insert")]
        options = {"readChangeFeed": "true", "startingVersion": "2"}
        columns = ("id", "_change_type")
        statement = (
            "SELECT id, _change_type FROM STREAM fed WITH (readChangeFeed = true, startingVersion = 2)"
        )
        assert rows_of(loaded(spark, fed, startingVersion="3"), tmp_path / "a") == [(2,)]
        assert rows_of(loaded(spark, fed, maxFilesPerTrigger="1"), tmp_path / "b") == [(0,), (1,), (2,)]
        assert rows_of(loaded(spark, fed, **options).select(*columns), tmp_path / "c") == changes
        assert rows_of(named(spark, "fed", **options).select(*columns), tmp_path / "d") == changes
        assert rows_of(spark.sql(statement), tmp_path / "e") == changes
        assert len(loaded(spark, fed, readChangeFeed="true").columns) == 4

    def test_a_schema_chooses_columns(self, spark: SparkSession, folder: Path, tmp_path: Path) -> None:
        spark.sql("CREATE TABLE wide USING delta AS SELECT 1 AS a, 'x' AS b, 2 AS c")
        chosen = DataFrame(reader(spark).format("delta").schema("b string").load(str(folder / "wide")), spark)
        assert rows_of(chosen, tmp_path / "c") == [("x",)]

    @pytest.mark.parametrize(
        "options", [{"maxFilePerTrigger": "1"}, {"versionAsOf": "0"}, {"startingVersion": "9"}]
    )
    def test_what_is_refused_is_refused_alike(
        self, spark: SparkSession, schema: str, folder: Path, tmp_path: Path, options: dict[str, str]
    ) -> None:
        spark.sql("CREATE TABLE IF NOT EXISTS refused USING delta AS SELECT 1 AS a")
        path = str(folder / "refused")

        def condition(stream: Callable[[], DataFrame], name: str) -> str:
            with pytest.raises((DeltaError, StreamingQueryException)) as error, delta_errors():
                rows_of(stream(), tmp_path / name)
            found = as_delta_error(error.value)
            assert found is not None, error.value
            return found.condition

        expected = condition(lambda: spark.readStream.format("pydelta").options(**options).load(path), "a")
        assert condition(lambda: loaded(spark, path, **options), "b") == expected

    def test_a_batch_passes_over_options_of_streams(self, spark: SparkSession, folder: Path) -> None:
        numbers(spark, "batch", 1)
        jreader = spark._jsparkSession.read().format("delta").option("maxFilesPerTrigger", "1")
        assert jreader.load(str(folder / "batch")).count() == 1
        jreader.option("versionAs", "1")
        with pytest.raises(InvalidOptionError), delta_errors():
            jreader.load(str(folder / "batch"))


class TestWriting:
    def test_into_a_table_by_its_name(self, spark: SparkSession, folder: Path, tmp_path: Path) -> None:
        numbers(spark, "from", 2, 3)
        numbers(spark, "into")
        for end in (3, 4):
            run(named(spark, "from"), tmp_path / "c", name_writer("into"), userMetadata=f"to {end}")
            assert sorted(map(tuple, spark.table("into").collect())) == [(n,) for n in range(end)]
            spark.range(end, end + 1).write.insertInto("from")
        history = DeltaLog(folder / "into").history()
        assert [commit["operation"] for commit in history[:2]] == ["STREAMING UPDATE"] * 2
        assert [commit["userMetadata"] for commit in history[:2]] == ["to 4", "to 3"]

    def test_a_table_that_is_there_takes_the_rows_whatever_place_the_options_name(
        self, spark: SparkSession, folder: Path, tmp_path: Path
    ) -> None:
        numbers(spark, "offered", 2)
        numbers(spark, "taking")
        elsewhere = str(tmp_path / "elsewhere")
        run(named(spark, "offered"), tmp_path / "c", name_writer("taking"), path=elsewhere)
        registered = spark.readStream.table("offered").writeStream.trigger(availableNow=True)
        registered = registered.options(checkpointLocation=str(tmp_path / "d"), path=elsewhere)
        assert registered.format("delta").toTable("taking").awaitTermination(SECONDS)
        assert sorted(map(tuple, spark.table("taking").collect())) == [(0,), (0,), (1,), (1,)]
        assert not (tmp_path / "elsewhere").exists()

    def test_into_a_new_table_by_its_name(self, spark: SparkSession, folder: Path, tmp_path: Path) -> None:
        numbers(spark, "origin", 2)
        stream = named(spark, "origin").selectExpr("id", "id % 2 AS p")
        run(stream, tmp_path / "c", lambda w: w.format("delta").toTable("made"), partition_by="p")
        snapshot = DeltaLog(folder / "made").snapshot()
        assert list(snapshot.partition_columns) == ["p"]
        assert sorted(map(tuple, spark.table("made").collect())) == [(0, 0), (1, 1)]

    def test_into_a_path(self, spark: SparkSession, folder: Path, tmp_path: Path) -> None:
        numbers(spark, "origins", 2)
        stream = named(spark, "origins").selectExpr("id", "id % 2 AS p")
        target = tmp_path / "t"
        run(stream, tmp_path / "c", path_writer(target), partition_by="p")
        assert list(DeltaLog(target).snapshot().partition_columns) == ["p"]
        with pytest.raises(DeltaError) as error:
            run(stream, tmp_path / "d", path_writer(target), partition_by="id")
        assert "partition" in error.value.text
        assert len(DeltaLog(target).history()) == 1

    def test_settings_of_the_session_count(self, spark: SparkSession, schema: str, tmp_path: Path) -> None:
        numbers(spark, "told", 1)
        spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", "of the session")
        try:
            run(named(spark, "told"), tmp_path / "c", path_writer(tmp_path / "t"))
        finally:
            spark.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
        assert DeltaLog(tmp_path / "t").history()[0]["userMetadata"] == "of the session"

    def test_complete_replaces_the_rows(self, spark: SparkSession, schema: str, tmp_path: Path) -> None:
        numbers(spark, "counted", 3)
        spark.sql("CREATE TABLE counts (count BIGINT) USING delta")
        counts = named(spark, "counted").groupBy().count()
        run(counts, tmp_path / "c", name_writer("counts"), "complete")
        run(counts, tmp_path / "d", path_writer(tmp_path / "t"), "complete")
        spark.range(3, 5).write.insertInto("counted")
        run(counts, tmp_path / "c", name_writer("counts"), "complete")
        run(counts, tmp_path / "d", path_writer(tmp_path / "t"), "complete")
        assert spark.table("counts").collect() == [(5,)]
        assert DeltaLog(tmp_path / "t").snapshot().scan().to_arrow().to_pylist() == [{"count": 5}]

    def test_what_is_refused_is_refused_alike(self, spark: SparkSession, schema: str, tmp_path: Path) -> None:
        numbers(spark, "asked", 3)
        numbers(spark, "given")
        stream, counts = named(spark, "asked"), named(spark, "asked").groupBy().count()
        for number, start in enumerate((name_writer("given"), path_writer(tmp_path / "t"))):
            with pytest.raises(UnsupportedOperationError):
                run(counts, tmp_path / f"u{number}", start, "update")
            for name in ("replaceWhere", "mergeSchemas"):
                with pytest.raises(InvalidOptionError):
                    run(stream, tmp_path / f"{name}{number}", start, **{name: "id = 1"})
        assert spark.table("given").count() == 0
        assert not (tmp_path / "t").exists()


class TestThreads:
    @pytest.mark.parametrize("registered", ["first", "new"])
    def test_streams_start_in_any_thread(
        self, spark: SparkSession, schema: str, tmp_path: Path, registered: str
    ) -> None:
        """Also in a session that is not the one that the thread of the JVM has as its active one."""
        session = spark if registered == "first" else spark.newSession()
        delta_ds.register(session)
        path = tmp_path / "source"
        session.range(10).write.format("pydelta").save(str(path))

        def started(name: str, by_name: bool) -> int:
            stream = session.readStream.format("pydelta").load(str(path))
            writer = stream.writeStream.format("pydelta").option(
                "checkpointLocation", str(tmp_path / f"c{name}")
            )
            writer = writer.trigger(availableNow=True)
            target = str(tmp_path / name)
            query = writer.toTable(f"pydelta.`{target}`") if by_name else writer.start(target)
            assert query.awaitTermination(SECONDS)
            return session.read.format("pydelta").load(target).count()

        active = spark._jvm.org.apache.spark.sql.classic.SparkSession.getActiveSession()  # type: ignore[union-attr]
        try:
            with ThreadPoolExecutor(2) as pool:
                assert [*pool.map(started, ("a", "b"), (False, True))] == [10, 10]
            assert started("c", False) == 10
            assert spark._jvm.org.apache.spark.sql.classic.SparkSession.getActiveSession() == active  # type: ignore[union-attr]
        finally:
            if session is not spark:
                delta_ds.unregister(session)
