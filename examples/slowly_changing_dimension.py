"""Keep the history of a dimension (type 2): a change closes the current row of a customer and opens a new one.

Look at: one MERGE does both, for each change comes twice: by its key to close, without a key to insert.
"""

from __future__ import annotations

import os
import sys
import tempfile

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import delta_ds
from delta_ds import DeltaTable

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers run in this environment too


def main(spark: SparkSession, folder: str) -> None:
    path = f"{folder}/customers"
    first = spark.createDataFrame(
        [(1, "Aachen"), (2, "Berlin"), (3, "Porto")], "customer bigint, city string"
    )
    since = "DATE'2025-01-01' AS valid_from"
    first.selectExpr("*", since, "CAST(NULL AS DATE) AS valid_to").write.format("pydelta").save(path)

    table = DeltaTable.forPath(spark, path)
    news = spark.createDataFrame([(2, "Lyon"), (3, "Porto"), (4, "Torun")], "customer bigint, city string")
    updates = news.withColumn("day", F.lit("2025-06-01").cast("date"))

    current = table.toDF().where("valid_to IS NULL").alias("t")
    moved = updates.alias("u").join(current, F.expr("t.customer = u.customer AND t.city <> u.city"))
    staged = updates.selectExpr("customer AS key", "*").unionByName(
        moved.selectExpr("CAST(NULL AS BIGINT) AS key", "u.*")
    )
    (
        table.alias("t")
        .merge(staged.alias("u"), "t.customer = u.key AND t.valid_to IS NULL")
        .whenMatchedUpdate("t.city <> u.city", {"valid_to": "u.day"})
        .whenNotMatchedInsert(values={"customer": "u.customer", "city": "u.city", "valid_from": "u.day"})
        .execute()
        .show()
    )
    table.toDF().orderBy("customer", "valid_from").show()
    day = "DATE'2025-03-01'"
    print(f"as of {day}")
    then = table.toDF().where(f"valid_from <= {day} AND ifnull(valid_to > {day}, true)")
    then.select("customer", "city").orderBy("customer").show()


if __name__ == "__main__":
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    delta_ds.register(session)
    main(session, tempfile.mkdtemp())
    session.stop()
