"""Read a Delta table with nothing but a Python package: run by `make quickstart`.

`examples/data/sales` was written by delta-spark: partitioned by country, changed by UPDATE, DELETE (with
deletion vectors) and MERGE. Look at the skipped files: the log alone says that they cannot match.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

import delta_ds
from delta_ds import DeltaLog, DeltaTable

SALES = str(Path(__file__).resolve().parent / "data" / "sales")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers run in this environment too


def main() -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    print(delta_ds.register(spark))

    print("\nLatest rows: spark.read.format('pydelta').load(path)")
    sales = spark.read.format("pydelta").load(SALES)
    sales.groupBy("country").agg({"*": "count", "amount": "sum"}).orderBy("country").show()

    print("Time travel: option('versionAsOf', 3) is before the update, the delete and the merge")
    before = spark.read.format("pydelta").option("versionAsOf", 3).load(SALES)
    before.groupBy("country").agg({"*": "count", "amount": "sum"}).orderBy("country").show()

    print("History: DeltaTable.forPath(spark, path).history()")
    history = DeltaTable.forPath(spark, SALES).history()
    history.select("version", "timestamp", "operation", "operationMetrics.numOutputRows").show(truncate=False)
    spark.stop()

    print("Skipped files, from the kernel alone (no Spark, no JVM): scan(...).explain()")
    scan = DeltaLog(SALES).snapshot().scan("country = 'DE' AND sold_on >= '2026-04-01'")
    verdicts = Counter((file["kept"], file["rule"]) for file in scan.explain().to_pylist())
    for (kept, rule), files in sorted(verdicts.items()):
        print(f"{files:4} {'read:   ' if kept else 'skipped:'} {rule}")


if __name__ == "__main__":
    main()
