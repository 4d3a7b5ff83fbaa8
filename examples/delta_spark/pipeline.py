"""A pipeline as it is written for delta-spark, unchanged: no line of it names this package.

    python -m delta_ds run -- examples/delta_spark/pipeline.py FOLDER

With delta-spark itself: `python examples/delta_spark/pipeline.py FOLDER`. Either prints what `pipeline.txt` holds.
"""

import logging
import sys

from delta import configure_spark_with_delta_pip
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

folder = sys.argv[1]
orders, copy, seen = f"{folder}/orders", f"{folder}/copy", f"{folder}/seen"

builder = (
    SparkSession.builder.appName("orders")
    .master("local[2]")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.databricks.delta.snapshotPartitions", "2")
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
logging.getLogger("py4j").setLevel(logging.ERROR)


def fingerprint(name: str, df: DataFrame) -> None:
    """How many rows there are, and a number that their order does not change."""
    count, checksum = df.selectExpr("count(*)", "sum(CAST(xxhash64(*) AS DECIMAL(38, 0)))").first()
    print(f"{name:8} {count:6} rows  {checksum}")


# A table, with a property, a constraint and partitions
(
    DeltaTable.createIfNotExists(spark)
    .location(orders)
    .addColumn("id", "BIGINT", nullable=False)
    .addColumn("country", "STRING")
    .addColumn("amount", "DECIMAL(10, 2)")
    .addColumn("day", "DATE")
    .partitionedBy("country")
    .property("delta.enableChangeDataFeed", "true")
    .execute()
)
spark.sql(f"ALTER TABLE delta.`{orders}` ADD CONSTRAINT paid CHECK (amount >= 0)")


def batch(first: int, last: int) -> DataFrame:
    return spark.range(first, last).select(
        "id",
        F.element_at(F.array(*map(F.lit, ["DE", "FR", "PL"])), (F.col("id") % 3 + 1).cast("int")).alias(
            "country"
        ),
        (F.col("id") * 7 % 1000 / 10).cast("decimal(10,2)").alias("amount"),
        F.expr("date_add(DATE'2026-01-01', CAST(id % 30 AS INT))").alias("day"),
    )


batch(0, 600).write.format("delta").mode("append").save(orders)
fingerprint("written", spark.read.format("delta").load(orders))

# Changes: an upsert, an update, a delete
table = DeltaTable.forPath(spark, orders)
late = batch(550, 650).withColumn("amount", F.col("amount") + 1)
(
    table.alias("t")
    .merge(late.alias("s"), "t.id = s.id")
    .whenMatchedUpdateAll()
    .whenNotMatchedInsertAll()
    .execute()
)
table.update("country = 'FR' AND amount < 10", {"amount": F.lit(10)})
table.delete("day = '2026-01-30'")
fingerprint("changed", table.toDF())

# A correction of one country, with a new column
(
    batch(0, 60)
    .where("country = 'PL'")
    .withColumn("note", F.lit("corrected"))
    .write.format("delta")
    .mode("overwrite")
    .option("replaceWhere", "country = 'PL'")
    .option("mergeSchema", "true")
    .save(orders)
)
fingerprint("replaced", spark.sql(f"SELECT * FROM delta.`{orders}`"))

# What changed, and what was
feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 2).load(orders)
fingerprint("feed", feed.drop("_commit_timestamp"))
fingerprint("version2", spark.read.format("delta").option("versionAsOf", 2).load(orders))

# A stream into another table
query = (
    spark.readStream.format("delta")
    .option("skipChangeCommits", "true")
    .load(orders)
    .writeStream.format("delta")
    .option("checkpointLocation", seen)
    .trigger(availableNow=True)
    .start(copy)
)
query.awaitTermination()
fingerprint("streamed", spark.read.format("delta").load(copy))

# The night
table.optimize().executeZOrderBy("id")
table.restoreToVersion(2)
fingerprint("restored", table.toDF())
try:
    batch(0, 1).withColumn("amount", F.lit(-1).cast("decimal(10,2)")).write.format("delta").mode(
        "append"
    ).save(orders)
except Exception as error:
    print("refused ", "paid" in str(error))
operations = [row.operation for row in table.history().collect()]
print("history ", ", ".join(reversed(operations)))
spark.stop()
