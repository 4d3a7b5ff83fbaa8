"""A Spark job for a container or a cluster: it replaces the rows of one day of a table, and says what the table has.

    spark-submit job.py TABLE DAY

Run it again for a day, and the table has the same rows: `replaceWhere` replaces what the first run wrote.
"""

import sys

from pyspark.sql import SparkSession

import delta_ds
from delta_ds import DeltaTable


def main(table: str, day: str) -> None:
    spark = SparkSession.builder.appName("orders").getOrCreate()
    delta_ds.register(spark)
    rows = spark.range(1000).selectExpr("id", "id % 7 AS customer", f"'{day}' AS day")
    writer = rows.write.format("delta").mode("overwrite").partitionBy("day")
    writer.option("replaceWhere", f"day = '{day}'").save(table)
    DeltaTable.forPath(spark, table).delete(f"day = '{day}' AND customer = 3")  # tasks of this package
    count = spark.read.format("delta").load(table).count()
    print(f"{table}: {count} rows on {spark.sparkContext.master.partition(':')[0]}")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
