"""Keep a copy of a Delta table in step with its changes: a change feed, foreachBatch and MERGE.

Look at: inserts, updates and deletes all arrive; of several changes to one order in a batch only the last counts.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import delta_ds
from delta_ds import DeltaTable

SALES = Path(__file__).resolve().parent / "data" / "sales"
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers run in this environment too


def main(spark: SparkSession, folder: str) -> None:
    sales = spark.read.format("pydelta").load(str(SALES))
    copy = DeltaTable.create(spark).location(f"{folder}/copy").addColumns(sales.schema).execute()
    columns = {name: f"c.{name}" for name in sales.columns}

    def upsert(batch: DataFrame, number: int) -> None:
        # A batch that is tried again after a crash merges the same rows: nothing changes the second time.
        newest = F.max_by(F.struct("*"), "_commit_version").alias("newest")
        after = batch.where("_change_type <> 'update_preimage'")
        changes = after.groupBy("order_id").agg(newest).select("newest.*")
        (
            copy.alias("t")
            .merge(changes.alias("c"), "t.order_id = c.order_id")
            .whenMatchedDelete("c._change_type = 'delete'")
            .whenMatchedUpdate(set=columns)
            .whenNotMatchedInsert("c._change_type <> 'delete'", columns)
            .execute()
        )

    feed = spark.readStream.format("pydelta").option("readChangeFeed", "true").option("startingVersion", 1)
    query = feed.load(str(SALES)).writeStream.foreachBatch(upsert).trigger(availableNow=True)
    query.option("checkpointLocation", f"{folder}/checkpoint").start().awaitTermination()

    print("orders in the source:", sales.count(), "and in its copy:", copy.toDF().count())
    print("orders that differ:", sales.exceptAll(copy.toDF()).count())


if __name__ == "__main__":
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    delta_ds.register(session)
    main(session, tempfile.mkdtemp())
    session.stop()
