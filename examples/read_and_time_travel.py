"""Read a Delta table in Spark, as it is and as it was.

    python examples/read_and_time_travel.py [path of a table]

Look at: the same path gives other rows for another version; the history says who made which version.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import delta_ds
from delta_ds import DeltaTable

SALES = Path(__file__).resolve().parent / "data" / "sales"


def main(spark: SparkSession, path: str) -> None:
    print(delta_ds.register(spark))

    now = spark.read.format("pydelta").load(path)
    print(f"\nnow: {now.count()} orders")
    now.groupBy("country").sum("amount").orderBy("country").show()

    before = spark.read.format("pydelta").option("versionAsOf", 1).load(path)
    print(f"at version 1: {before.count()} orders")

    history = DeltaTable.forPath(spark, path).history()
    history.select("version", "timestamp", "operation").show(truncate=False)

    moment = history.where("version = 2").selectExpr("CAST(timestamp AS STRING)").collect()[0][0]
    then = spark.read.format("pydelta").option("timestampAsOf", moment).option("timeZone", "UTC").load(path)
    print(f"at {moment}: {then.count()} orders")

    # Spark hands a data source all columns of a table: a given schema reads just these.
    spark.read.format("pydelta").schema("product string, quantity int").load(path).show(3)


if __name__ == "__main__":
    # Spark's Python workers must run this interpreter: only it has the package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    main(session, sys.argv[1] if len(sys.argv) > 1 else str(SALES))
    session.stop()
