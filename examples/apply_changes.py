"""Keep a copy of a table and the history of its rows, from its change feed, with applyChanges.

Look at: `keys` and the type of the dimension are all that a change feed needs; a second run has nothing to do.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

import delta_ds
from delta_ds import DeltaTable

SALES = Path(__file__).resolve().parent / "data" / "sales"
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers run in this environment too


def main(spark: SparkSession, folder: str) -> None:
    sales = spark.read.format("pydelta").load(str(SALES))
    copy = DeltaTable.create(spark).location(f"{folder}/copy").addColumns(sales.schema)
    copy = copy.addColumn("_sequence", "bigint").execute()
    history = DeltaTable.create(spark).location(f"{folder}/history").addColumns(sales.schema)
    history = history.addColumn("valid_from", "bigint").addColumn("valid_to", "bigint").execute()

    changes = spark.readStream.format("pydelta").option("readChangeFeed", "true").option("startingVersion", 1)
    for run in (1, 2):
        feed = changes.load(str(SALES))
        for table, name in ((copy, "copy"), (history, "history")):
            builder = table.applyChanges(feed).keys("order_id")
            stream = (builder.scd1() if name == "copy" else builder.scd2()).writeStream()
            stream = stream.option("checkpointLocation", f"{folder}/checkpoint_{name}").trigger(
                availableNow=True
            )
            stream.start().awaitTermination()
        versions = [len(table.history().collect()) for table in (copy, history)]
        print(f"after run {run}: versions of copy and history {versions}")

    print("orders that differ:", sales.exceptAll(copy.toDF().drop("_sequence")).count())
    now = history.toDF().where("valid_to IS NULL")
    print("orders that hold:", now.count(), "of", sales.count(), "- states in all:", history.toDF().count())


if __name__ == "__main__":
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    delta_ds.register(session)
    main(session, tempfile.mkdtemp())
    session.stop()
