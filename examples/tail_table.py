"""Tail a Delta table: what is there first, then every commit as it comes.

    python examples/tail_table.py

Look at: each batch is what one commit added; asking for more while nothing comes only lists the end of the log.
"""

from __future__ import annotations

import os
import sys
import tempfile

from pyspark.sql import SparkSession

import delta_ds

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers run in this environment too


def main(spark: SparkSession, folder: str) -> None:
    path = f"{folder}/events"
    grow(spark, path, 0)
    events = spark.readStream.format("pydelta").load(path)
    # Where to go on after a restart is kept in the checkpoint.
    tail = events.writeStream.format("console").option("checkpointLocation", f"{folder}/checkpoint").start()
    for number in (1, 2):
        tail.processAllAvailable()
        grow(spark, path, number)
    # To follow a table for as long as it lives: tail.awaitTermination()
    tail.processAllAvailable()
    for progress in tail.recentProgress:
        print(f"batch {progress.batchId}: {progress.numInputRows} rows")
    tail.stop()


def grow(spark: SparkSession, path: str, number: int) -> None:
    events = spark.range(number * 3, number * 3 + 3).selectExpr("id AS event", f"{number} AS commit")
    events.coalesce(1).write.format("pydelta").mode("append").save(path)


if __name__ == "__main__":
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    delta_ds.register(session)
    main(session, tempfile.mkdtemp())
    session.stop()
