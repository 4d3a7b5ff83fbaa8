"""Read what changed between two versions of a Delta table: its change data feed.

    python examples/read_changes.py [path of a table]

Look at: an update shows the row as it was and as it is; the last part follows one order through time.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import delta_ds

SALES = Path(__file__).resolve().parent / "data" / "sales"


def main(spark: SparkSession, path: str) -> None:
    delta_ds.register(spark)

    def changes(**options: int) -> DataFrame:
        feed = spark.read.format("pydelta").option("readChangeFeed", "true")
        return feed.options(**options).load(path)

    print("changes by version")
    everything = changes(startingVersion=1)
    everything.groupBy("_commit_version", "_change_type").count().orderBy("_commit_version").show()

    print("the update of version 4")
    update = changes(startingVersion=4, endingVersion=4)
    update.select("order_id", "amount", "_change_type").orderBy("order_id", "_change_type").show(4)

    busiest = update.select("order_id").orderBy("order_id").first()
    if busiest is not None:
        print(f"the life of order {busiest.order_id}")
        life = everything.where(f"order_id = {busiest.order_id}")
        life.select("_commit_version", "_change_type", "quantity", "amount").orderBy("_commit_version").show()


if __name__ == "__main__":
    # Spark's Python workers must run this interpreter: only it has the package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    main(session, sys.argv[1] if len(sys.argv) > 1 else str(SALES))
    session.stop()
