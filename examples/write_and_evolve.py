"""Write a table, evolve its schema, replace a part of it, and let a constraint guard it."""

from __future__ import annotations

import os
import sys
import tempfile

from pyspark.sql import SparkSession

import delta_ds
from delta_ds import DeltaTable


def main(spark: SparkSession, folder: str) -> None:
    delta_ds.register(spark)
    path = f"{folder}/orders"

    orders = spark.sql("select id, id % 3 as shop, id * 10 as amount from range(9)")
    orders.write.format("pydelta").mode("append").option("partitionBy", "shop").save(path)

    with_notes = spark.sql("select 9L as id, 0L as shop, 90L as amount, 'gift' as note")
    with_notes.write.format("pydelta").mode("append").option("mergeSchema", True).save(path)

    corrected = spark.sql("select id, 2L as shop, 5L as amount from range(100, 102)")
    corrected.write.format("pydelta").mode("overwrite").option("replaceWhere", "shop = 2").save(path)

    table = DeltaTable.forPath(spark, path)
    table.addConstraint("positive", "amount >= 0")
    try:
        refund = spark.sql("select 10L as id, 1L as shop, -10L as amount")
        refund.write.format("pydelta").mode("append").save(path)
    except Exception as error:
        print("refused:", next(line for line in str(error).splitlines() if "positive" in line).strip()[:100])

    table.toDF().groupBy("shop").sum("amount").orderBy("shop").show()
    table.history().select("version", "operation", "operationParameters").show(truncate=80)


if __name__ == "__main__":
    # Spark's Python workers must run this interpreter: only it has the package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    main(session, tempfile.mkdtemp())
    session.stop()
