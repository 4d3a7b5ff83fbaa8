"""A pipeline between two Delta tables: each row of the source is in the target once, however often it is restarted.

    python examples/stream_table_to_table.py

Look at: the second run reads only what came after the first; the third finds nothing to do and commits nothing.
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
    orders, german = f"{folder}/orders", f"{folder}/german"
    sales = spark.read.format("pydelta").load(str(SALES))
    sales.where("order_id % 2 = 0").write.format("pydelta").save(orders)
    run(spark, orders, german)
    sales.where("order_id % 2 = 1").write.format("pydelta").mode("append").save(orders)
    run(spark, orders, german)
    run(spark, orders, german)
    history = DeltaTable.forPath(spark, german).history()
    history.selectExpr("version", "operation", "operationParameters.epochId AS batch").show(truncate=False)


def run(spark: SparkSession, source: str, target: str) -> None:
    """Bring the target up to date with all that is in the source now."""
    orders = spark.readStream.format("pydelta").option("maxFilesPerTrigger", 100).load(source)
    query = (
        orders.where("country = 'DE'")
        .writeStream.format("pydelta")
        .partitionBy("sold_on")
        .option("checkpointLocation", f"{target}/_checkpoints/from_orders")
        .trigger(availableNow=True)
        .start(target)
    )
    query.awaitTermination()
    read = sum(progress.numInputRows for progress in query.recentProgress)
    print(f"read {read} orders; the target has {spark.read.format('pydelta').load(target).count()}")


if __name__ == "__main__":
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    delta_ds.register(session)
    main(session, tempfile.mkdtemp())
    session.stop()
