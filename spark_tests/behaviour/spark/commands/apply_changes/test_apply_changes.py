"""Changes applied from change feeds and streams, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from delta_ds import DeltaLog, DeltaTable, InvalidOptionError, InvariantViolationError, SchemaError
from delta_ds.exceptions import UnsupportedOperationError
from spark_tests.full_form import FULL

ROWS = "id long, city string"


def source_table(spark: SparkSession, path: Path) -> DeltaTable:
    rows = spark.createDataFrame([(n, f"c{n}") for n in range(5)], ROWS).coalesce(1)
    rows.write.format("pydelta").option("delta.enableChangeDataFeed", "true").save(str(path))
    table = DeltaTable.forPath(spark, str(path))
    table.update("id = 1", {"city": "'moved'"})
    table.delete("id = 2")
    table.update("id = 3", {"id": "30"})  # the key itself
    return table


def replace_all(spark: SparkSession, path: Path) -> None:
    rows = spark.createDataFrame([(n, f"r{n}") for n in (0, 2, 30, 7)], ROWS).repartition(2)
    rows.write.format("pydelta").mode("overwrite").save(str(path))


def made(spark: SparkSession, path: Path, **more: str) -> DeltaTable:
    builder = (
        DeltaTable.create(spark).location(str(path)).addColumn("id", "bigint").addColumn("city", "string")
    )
    for name, kind in more.items():
        builder = builder.addColumn(name, kind)
    return builder.execute()


def content(table: DeltaTable, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in table.toDF().select(*columns).collect())


def stream(spark: SparkSession, path: Path, **options: Any) -> Any:
    return spark.readStream.format("pydelta").options(readChangeFeed=True, **options).load(str(path))


def run(builder: Any, checkpoint: Path) -> Any:
    writer = builder.writeStream().option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()
    return query


def test_a_change_feed_keeps_a_copy_and_a_history(spark: SparkSession, tmp_path: Path) -> None:
    source = source_table(spark, tmp_path / "source")
    copy = made(spark, tmp_path / "copy", _sequence="bigint")
    history = made(spark, tmp_path / "history", valid_from="timestamp", valid_to="timestamp")
    copy.applyChanges(source.changes()).keys("ID").scd1().execute()
    assert content(copy, "id", "city") == content(source, "id", "city")
    rest = made(spark, tmp_path / "rest", _sequence="bigint")
    rest.applyChanges(source.changes()).keys("id").applyAsDeletes("id = 30").scd1().execute()
    assert content(rest, "id") == [(0,), (1,), (4,)]
    dated = history.applyChanges(source.changes()).keys("id").sequenceBy("_commit_timestamp").scd2()
    dated.execute()
    times = [row["timestamp"] for row in source.history().orderBy("version").collect()]
    found = content(history, "id", "valid_from", "valid_to", "city")
    assert [row for row in found if row[0] in (1, 2, 3, 30)] == [
        (1, times[0], times[1], "c1"), (1, times[1], None, "moved"), (2, times[0], times[2], "c2"),
        (3, times[0], times[3], "c3"), (30, times[3], None, "c3"),
    ]  # fmt: skip


def test_a_change_feed_is_in_order_of_its_commits_only(spark: SparkSession, tmp_path: Path) -> None:
    table = made(spark, tmp_path / "t", ts="bigint", _sequence="bigint")
    source = made(spark, tmp_path / "source", ts="bigint")
    source.setProperties({"delta.enableChangeDataFeed": "true"})
    rows = spark.createDataFrame([(1, "a", 5)], "id long, city string, ts long")
    rows.write.format("pydelta").mode("append").save(str(tmp_path / "source"))
    source.delete("id = 1")
    for sequence in ("ts", "_commit_version + ts", F.struct("_commit_version", "ts")):
        builder = table.applyChanges(source.changes(2)).keys("id").sequenceBy(sequence)
        with pytest.raises(InvalidOptionError, match="a delete has the values of the row that is gone"):
            builder.scd1().execute()
    assert DeltaLog(tmp_path / "t").snapshot().version == 0


def test_columns_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    odd = "`a.b` bigint, `c``d` string, `at.x` bigint"
    events = spark.createDataFrame([(1, "x", 1), (1, "y", 2)], odd)
    for build, kept in (
        ("scd1", {"s.q": "bigint"}),
        ("scd2", {"from.x": "bigint", "to`x": "bigint", "is.so": "boolean"}),
    ):
        table = DeltaTable.create(spark).location(str(tmp_path / build)).addColumns(events.schema)
        for name, type in kept.items():
            table = table.addColumn(name, type)
        builder = table.property("delta.columnMapping.mode", "name").execute().applyChanges(events)
        builder = builder.keys("a.b").sequenceBy("`at.x`")
        getattr(builder, build)(*kept).execute()
        rows = DeltaTable.forPath(spark, str(tmp_path / build)).toDF().collect()
        assert sorted(row["c`d"] for row in rows) == (["y"] if build == "scd1" else ["x", "y"])


OPTIONS: list[dict[str, Any]] = [{"maxFilesPerTrigger": 1, "startingVersion": 0}, *([{}] if FULL else [])]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_stream_of_changes_is_applied_once(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any]
) -> None:
    source = source_table(spark, tmp_path / "source")
    copy = made(spark, tmp_path / "copy", _sequence="bigint")
    builder = copy.applyChanges(stream(spark, tmp_path / "source", **options)).keys("id").scd1()
    query = run(builder, tmp_path / "checkpoint")
    assert content(copy, "id", "city") == content(source, "id", "city")
    log = DeltaLog(tmp_path / "copy")
    assert list(log.snapshot().txns) == [query.id]
    # All rows go and come in one version, in files of their own: a batch may end between them.
    replace_all(spark, tmp_path / "source")
    run(builder, tmp_path / "checkpoint")
    assert content(copy, "id", "city") == content(source, "id", "city")
    # The last batch again, as after a crash between its commit and Spark's note of it.
    commits = sorted((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    for note in (commits[-1], commits[-1].with_name(f".{commits[-1].name}.crc")):
        note.unlink()
    before = log.snapshot().version
    run(builder, tmp_path / "checkpoint")
    assert log.snapshot().version == before and log.snapshot().txns[query.id] == int(commits[-1].name)
    assert content(copy, "id", "city") == content(source, "id", "city")


def test_what_does_not_fit_is_refused_and_nothing_is_written(spark: SparkSession, tmp_path: Path) -> None:
    table = made(
        spark, tmp_path / "t", _sequence="bigint", valid_from="bigint", valid_to="bigint", late="string"
    )
    events = spark.createDataFrame([(1, "a", 1, "U")], "id long, city string, ts long, op string")
    plain = events.drop("op")

    def refused(error: type[Exception], text: str, builder: Any) -> None:
        with pytest.raises(error, match=text):
            builder.execute()

    start = table.applyChanges(plain)
    refused(
        InvalidOptionError,
        r'say the columns that tell rows apart: \.keys\("id"\)',
        start.sequenceBy("ts").scd1(),
    )
    keyed = start.keys("id")
    refused(InvalidOptionError, r"the order of events: \.sequenceBy", keyed.scd1())
    refused(InvalidOptionError, r"the type of the dimension: \.scd1\(\) or \.scd2", keyed.sequenceBy("ts"))
    ordered = keyed.sequenceBy("ts")
    refused(
        SchemaError, "'idd', which the table does not have; did you mean 'id'", ordered.keys("idd").scd1()
    )
    refused(
        SchemaError,
        "'cty', which the source does not have; did you mean 'city'",
        ordered.exceptColumns("cty").scd1(),
    )
    refused(SchemaError, "'id', which the source does not have", ordered.exceptColumns("id").scd1())
    unknown = table.applyChanges(events).keys("id").sequenceBy("ts")
    refused(SchemaError, "'op', which the table does not have; add it .* exceptColumns", unknown.scd1())
    wrong = table.applyChanges(plain.withColumn("id", F.col("id").cast("double"))).keys("id").sequenceBy("ts")
    refused(SchemaError, "'id' of the changes .* is of type double, .* of long: cast it", wrong.scd2())
    refused(SchemaError, r"no column '_seq'.*add\('_seq', 'long'\)", ordered.scd1("_seq"))
    refused(SchemaError, "'late' .* is of type string; .* of long", ordered.scd1("late"))
    refused(SchemaError, r"no column 'until'", ordered.scd2(validTo="until"))
    refused(SchemaError, "'valid_to' .* type long; .* of boolean", ordered.scd2(current="valid_to"))
    refused(InvalidOptionError, "sequence", ordered.trackHistory("city").scd2())
    refused(InvalidOptionError, "exclude each other", ordered.trackHistory("city").lateEvents("late").scd2())
    refused(
        SchemaError,
        "'late', which the source does not have",
        ordered.trackHistory("late").scd2(sequence="_sequence"),
    )
    for query in (ordered.scd1(), ordered.scd2()):
        with pytest.raises(UnsupportedOperationError, match=r"no stream: use execute\(\)"):
            query.writeStream()
    feed = spark.readStream.format("rate").load().selectExpr("value AS id", "'a' AS city", "value AS ts")
    refused(
        UnsupportedOperationError,
        r"use writeStream\(\)",
        table.applyChanges(feed).keys("id").sequenceBy("ts").scd1(),
    )

    def of(*rows: tuple[Any, ...]) -> Any:
        found = spark.createDataFrame(list(rows), "id long, city string, ts long")
        return table.applyChanges(found).keys("id").sequenceBy(F.col("ts")).exceptColumns("ts")

    for build in ("scd1", "scd2"):
        null = r'null in its key \(id\) .*The key is "\{"id":%s\}"'
        refused(InvariantViolationError, null % "null", getattr(of((None, "a", 1)), build)())
        refused(InvariantViolationError, null % "7", getattr(of((7, "a", None)), build)())
        refused(
            InvariantViolationError,
            'two different rows .*"id":7',
            getattr(of((7, "a", 1), (7, "b", 1)), build)(),
        )
        # Rows that differ by where their nulls are.
        two = spark.createDataFrame(
            [(7, "a", None, 1), (7, None, "a", 1)], "id long, city string, late string, ts long"
        )
        differing = table.applyChanges(two).keys("id").sequenceBy("ts")
        refused(InvariantViolationError, 'two different rows .*"id":7', getattr(differing, build)())
    assert DeltaLog(tmp_path / "t").snapshot().version == 0
    with pytest.raises(AttributeError, match=r"first call execute\(\)"):
        ordered.show()
    told = f"<events into {tmp_path / 't'} by id: nothing happens before execute() or writeStream()>"
    assert repr(ordered) == told
    ordered._unfinished.done()
