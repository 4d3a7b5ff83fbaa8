"""What a program does where only `pyspark-client` is installed: no JVM, no py4j; run by `test_thin_client.py`."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import delta_ds
from delta_ds import DeltaTable
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


def main(url: str, folder: str) -> None:
    """Print what each of the parts above answers."""
    assert importlib.util.find_spec("py4j") is None, "this is not the thin client"
    spark = SparkSession.builder.remote(url).getOrCreate()
    answers: dict[str, Any] = {"registered": str(delta_ds.register(spark)).splitlines()[0]}
    for part in (by_path, by_name, statements, streams, functions, errors):
        answers[part.__name__] = part(spark, folder)
    delta_ds.unregister(spark)
    answers["unregistered"] = spark.read.format("delta").load(f"{folder}/by_path").count()
    Path(folder, "answers.json").write_text(json.dumps(answers))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
