"""What a program does where only `pyspark-client` is installed: no JVM, no py4j; run by `test_thin_client.py`."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructType

import delta_ds
from delta_ds import DeltaTable, IdentityGenerator
from delta_ds.exceptions import DeltaError

SECONDS = 120


def by_path(spark: SparkSession, folder: str) -> Any:
    """Reads and writes of a path, with all save modes; the table then in all its versions."""
    path = f"{folder}/by_path"
    rows = spark.range(4).selectExpr("id", "id % 2 AS p")
    rows.write.format("delta").partitionBy("p").save(path)
    rows.write.format("delta").mode("ignore").save(path)
    spark.createDataFrame([(9, 1)], "id BIGINT, p BIGINT").write.format("pydelta").mode("append").save(path)
    rows.where("p = 0").write.format("delta").mode("overwrite").option("replaceWhere", "p = 0").save(path)
    reader = spark.read.format("delta")
    return [
        sorted(row.id for row in reader.load(path).collect()),
        reader.option("versionAsOf", 0).load(path).count(),
        spark.table(f"delta.`{path}`").where("p = 1").count(),
        DeltaTable.isDeltaTable(spark, path),
        [row.operation for row in DeltaTable.forPath(spark, path).history().collect()],
    ]


def by_name(spark: SparkSession, folder: str) -> Any:
    """A table of the catalog, made by its builder and changed by all commands."""
    builder = DeltaTable.create(spark).tableName("thin").addColumn("id", "BIGINT").addColumn("v", "STRING")
    table = builder.property("delta.enableChangeDataFeed", "true").clusterBy("id").execute()
    spark.range(6).selectExpr("id", "'a' AS v").write.format("delta").mode("append").saveAsTable("thin")
    table.delete("id = 0")
    table.update(F.col("id") == 1, {"v": F.lit("b")})
    source = spark.range(5, 8).withColumn("v", F.lit("m")).alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    merge.execute()
    table.optimize().executeCompaction()
    table.restoreToVersion(table.history(1).collect()[0].version)
    table.vacuum(200)
    feed = spark.read.option("readChangeFeed", "true").option("startingVersion", 2).table("thin")
    return [
        sorted(map(tuple, DeltaTable.forName(spark, "thin").toDF().collect())),
        sorted((row._change_type, row["count"]) for row in feed.groupBy("_change_type").count().collect()),
        table.detail().collect()[0].clusteringColumns,
    ]


def statements(spark: SparkSession, folder: str) -> Any:
    """SQL of Delta's own and of Spark's, on a name and on a path."""
    for text in (
        "CREATE TABLE told (id BIGINT, v STRING) USING delta",
        "INSERT INTO told VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "UPDATE told SET v = upper(v) WHERE id = 1",
        "DELETE FROM told WHERE id = 3",
        "MERGE INTO told t USING (SELECT 4 AS id, 'd' AS v) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        "ALTER TABLE told ADD CONSTRAINT positive CHECK (id > 0)",
        "OPTIMIZE told ZORDER BY (id)",
        f"CREATE TABLE delta.`{folder}/told` SHALLOW CLONE told VERSION AS OF 1",
    ):
        spark.sql(text).collect()
    return [
        sorted(map(tuple, spark.sql("SELECT * FROM told").collect())),
        spark.sql(f"SELECT * FROM delta.`{folder}/told`").count(),
        [row.operation for row in spark.sql("DESCRIBE HISTORY told LIMIT 2").collect()],
    ]


def streams(spark: SparkSession, folder: str) -> Any:
    """From a name into a path, and on into a name."""
    spark.range(5).write.format("delta").saveAsTable("streamed")

    def ran(query: Any) -> None:
        assert query.awaitTermination(SECONDS)

    there, path = f"{folder}/checkpoint", f"{folder}/streamed"
    for _ in range(2):
        writer = spark.readStream.table("streamed").writeStream.format("delta").trigger(availableNow=True)
        ran(writer.option("checkpointLocation", f"{there}_path").start(path))
    writer = spark.readStream.format("delta").load(path).writeStream.trigger(availableNow=True)
    ran(writer.option("checkpointLocation", f"{there}_name").format("delta").toTable("streamed_into"))
    return [spark.read.format("delta").load(path).count(), spark.table("streamed_into").count()]


def functions(spark: SparkSession, folder: str) -> Any:
    """A function of the client's Python in a MERGE, in a condition and in a query."""
    twice = F.udf(lambda value: 2 * value, "bigint")
    spark.udf.register("twice", twice)
    path = f"{folder}/functions"
    spark.range(3).write.format("delta").save(path)
    table = DeltaTable.forPath(spark, path).alias("t")
    source = spark.range(2, 4).alias("s")
    table.merge(source, "t.id = s.id").whenMatchedUpdate(set={"id": twice("s.id")}).execute()
    table.delete("twice(id) = 2")
    return sorted(row.id for row in table.toDF().collect())


def errors(spark: SparkSession, folder: str) -> Any:
    """Conditions and classes of what is refused."""

    def raised(call: Callable[[], object]) -> list[str | None]:
        try:
            call()
        except DeltaError as error:
            return [type(error).__name__, error.condition]
        return [None, None]

    spark.range(2).write.format("delta").save(f"{folder}/errors")
    table = DeltaTable.forPath(spark, f"{folder}/errors")
    wrong = spark.createDataFrame([("x",)], "other STRING")
    return [
        raised(lambda: DeltaTable.forPath(spark, f"{folder}/nothing")),
        raised(lambda: table.restoreToVersion(7)),
        raised(lambda: wrong.write.format("pydelta").mode("append").save(f"{folder}/errors")),
    ]


def methods(spark: SparkSession, folder: str) -> Any:
    """Each public method of `DeltaTable`, and which of them were called."""
    asked: set[str] = set()
    public = [
        name for name in dir(DeltaTable) if not name.startswith("_") and callable(getattr(DeltaTable, name))
    ]
    with _recorded(public, asked):
        answers = [_definition(spark, folder), _copies(spark, folder), _upkeep(spark, folder)]
    return [*answers, sorted(set(public) - asked)]


@contextmanager
def _recorded(names: Iterable[str], asked: set[str]) -> Iterator[None]:
    originals = {name: inspect.getattr_static(DeltaTable, name) for name in names}

    def recording(name: str, original: Any) -> Any:
        bound = isinstance(original, (classmethod, staticmethod))
        function = original.__func__ if bound else original

        @functools.wraps(function)
        def called(*arguments: Any, **keywords: Any) -> Any:
            asked.add(name)
            return function(*arguments, **keywords)

        return type(original)(called) if bound else called

    for name, original in originals.items():
        setattr(DeltaTable, name, recording(name, original))
    yield
    for name, original in originals.items():
        setattr(DeltaTable, name, original)


def _definition(spark: SparkSession, folder: str) -> Any:
    """What a table is made of, changed by every method that does; its columns, rows and history."""
    path = f"{folder}/definition"
    DeltaTable.create(spark).location(path).addColumn("old", "STRING").execute()
    DeltaTable.createIfNotExists(spark).location(path).addColumn("id", "BIGINT").execute()
    DeltaTable.createOrReplace(spark).location(path).addColumn("old", "STRING").execute()
    builder = DeltaTable.replace(spark).location(path).addColumn("v", "STRING")
    table = builder.addColumn("id", "BIGINT", generatedByDefaultAs=IdentityGenerator()).execute()
    spark.sql(f"INSERT INTO delta.`{path}` (v, id) VALUES ('a', 7)").collect()
    table.syncIdentity("id")
    spark.sql(f"INSERT INTO delta.`{path}` (v) VALUES ('b')").collect()
    table.upgradeTableProtocol(3, 7)
    table.setProperties({"delta.columnMapping.mode": "name", "mine": "1"})
    table.unsetProperties(["mine"])
    table.addColumns(StructType().add("n", IntegerType()).add("m", IntegerType()), first=True)
    table.renameColumn("n", "o")
    table.alterColumn("o", comment="told", after="id")
    table.dropColumns(["m"])
    table.addConstraint("small", "id < 100")
    table.dropConstraint("small")
    table.addFeatureSupport("deletionVectors")
    table.dropFeatureSupport("deletionVectors", truncateHistory=False)
    table.clusterBy(["id"])
    alias = table.alias("t")
    alias.update("t.id = 7", {"o": F.lit(1)})
    alias.delete("t.v = 'z'")
    rows = spark.createDataFrame([(3, "m")], "id BIGINT, v STRING").alias("s")
    alias.merge(rows, "t.id = s.id").whenNotMatchedInsert(values={"id": "s.id", "v": "s.v"}).execute()
    told = DeltaTable.forPath(spark, path).toDF()
    return [
        [(field.name, field.metadata.get("comment")) for field in told.schema],
        sorted(map(tuple, told.select("id", "v", "o").collect())),
        [row.operation for row in table.history().collect()],
        table.detail().collect()[0].clusteringColumns,
    ]


def _copies(spark: SparkSession, folder: str) -> Any:
    """Copies of a table and of its versions, back to one of these, and a folder of Parquet files made a table."""
    spark.range(3).write.format("delta").saveAsTable("copied")
    spark.range(3, 5).write.format("delta").mode("append").saveAsTable("copied")
    table = DeltaTable.forName(spark, "copied")
    first = table.history().where("version = 0").collect()[0].timestamp
    copies = [
        table.clone(f"{folder}/clone", isShallow=True),
        table.cloneAtVersion(0, f"{folder}/at_version", isShallow=True, properties={"mine": "2"}),
        table.cloneAtTimestamp(str(first), f"{folder}/at_timestamp", isShallow=True),
    ]
    found = [copy.toDF().count() for copy in copies]
    table.restoreToVersion(0)
    found.append(table.toDF().count())
    table.restoreToVersion(1)
    table.restoreToTimestamp(str(first))
    found.append(table.toDF().count())
    spark.range(4).write.parquet(f"{folder}/files")
    found.append(DeltaTable.convertToDelta(spark, f"parquet.`{folder}/files`").toDF().count())
    return [*found, DeltaTable.isDeltaTable(spark, f"{folder}/files")]


def _upkeep(spark: SparkSession, folder: str) -> Any:
    """Files and rows: what became of them, and what keeps them in order."""
    path = f"{folder}/upkeep"
    builder = DeltaTable.create(spark).location(path).addColumn("id", "BIGINT").addColumn("v", "STRING")
    builder = builder.addColumn("_sequence", "BIGINT").property("delta.enableRowTracking", "true")
    table = builder.property("delta.enableChangeDataFeed", "true").execute()
    events = spark.createDataFrame([(1, "a", 1), (1, "b", 2), (2, "c", 3)], "id BIGINT, v STRING, at BIGINT")
    table.applyChanges(events).keys("id").sequenceBy("at").scd1().execute()
    table.delete("id = 2")
    changes = table.changes(1).groupBy("_change_type").count().collect()
    blamed = table.blame("id = 1", ["v"]).collect()
    table.checkpoint()
    table.generate("symlink_format_manifest")
    table.optimize().executeCompaction()
    return [
        sorted((row._change_type, row["count"]) for row in changes),
        [(row.v, row._commit_version) for row in blamed],
        table.vacuum(200, dryRun=True).count(),
        type(table.health()).__name__,
        type(table.maintain(dryRun=True)).__name__,
    ]


def main(url: str, folder: str) -> None:
    """Print what each of the parts above answers."""
    assert importlib.util.find_spec("py4j") is None, "this is not the thin client"
    spark = SparkSession.builder.remote(url).getOrCreate()
    answers: dict[str, Any] = {"registered": str(delta_ds.register(spark)).splitlines()[0]}
    for part in (by_path, by_name, statements, streams, functions, errors, methods):
        answers[part.__name__] = part(spark, folder)
    delta_ds.unregister(spark)
    answers["unregistered"] = spark.read.format("delta").load(f"{folder}/by_path").count()
    Path(folder, "answers.json").write_text(json.dumps(answers))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
