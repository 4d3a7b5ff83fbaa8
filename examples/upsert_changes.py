"""Bring a table up to date from a feed of changes (CDC): insert, update and delete in one MERGE.

Look at: a key that changed twice in one batch, and the batch that arrives twice and then changes nothing.
"""

from __future__ import annotations

import os
import sys
import tempfile

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import delta_ds
from delta_ds import DeltaTable

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers run in this environment too


def main(spark: SparkSession, folder: str) -> None:
    path = f"{folder}/stock"
    stock = spark.sql("select id as product, 10L as pieces, 0L as seq from range(1, 5)")
    stock.write.format("pydelta").save(path)
    table = DeltaTable.forPath(spark, path)

    batch = spark.createDataFrame(
        [("U", 2, 7, 101), ("U", 2, 5, 102), ("D", 3, None, 103), ("I", 9, 40, 104)],
        "op string, product bigint, pieces bigint, seq bigint",
    )
    for attempt in (1, 2):
        print(f"delivery {attempt} of the batch: {apply(table, batch)} rows changed")

    table.toDF().orderBy("product").show()
    kinds = ("Inserted", "Updated", "Deleted")
    counts = [f"operationMetrics.numTargetRows{kind} AS {kind}" for kind in kinds]
    table.history().selectExpr("version", "operation", *counts).show()


def apply(table: DeltaTable, batch: DataFrame) -> int:
    # A merge refuses two source rows for one row of the table: only the newest change of a key counts.
    changes = batch.groupBy("product").agg(F.max_by(F.struct("*"), "seq").alias("newest")).select("newest.*")
    done = (
        table.alias("t")
        .merge(changes.alias("c"), "t.product = c.product")
        .whenMatchedDelete("c.op = 'D' AND c.seq > t.seq")
        .whenMatchedUpdate("c.seq > t.seq", {"pieces": "c.pieces", "seq": "c.seq"})
        .whenNotMatchedInsert("c.op <> 'D'", {"product": "c.product", "pieces": "c.pieces", "seq": "c.seq"})
        .execute()
    )
    return int(done.collect()[0]["num_affected_rows"])


if __name__ == "__main__":
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    delta_ds.register(session)
    main(session, tempfile.mkdtemp())
    session.stop()
