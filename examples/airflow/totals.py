"""An Airflow DAG with Spark in the worker: the totals of each day, merged into a Delta table. The worker needs Java.

Copy it into your folder of DAGs, and set ORDERS_TABLE (orders.py writes it) and TOTALS_TABLE in the workers.
"""

import os
from datetime import datetime, timedelta

from airflow.sdk import dag, task


@dag(schedule="@daily", start_date=datetime(2026, 1, 1), catchup=False)
def totals():
    @task(retries=3, retry_delay=timedelta(minutes=1))
    def merge(ds: str) -> None:
        from pyspark.sql import SparkSession

        import delta_ds

        spark = SparkSession.builder.appName("totals").getOrCreate()
        delta_ds.register(spark)
        orders = spark.read.format("delta").load(os.environ["ORDERS_TABLE"]).where(f"day = '{ds}'")
        new = orders.groupBy("day", "country").agg({"amount": "sum"}).toDF("day", "country", "amount")

        builder = delta_ds.DeltaTable.createIfNotExists(spark).location(os.environ["TOTALS_TABLE"])
        table = builder.addColumns(new.schema).execute()
        (
            table.alias("t")
            .merge(new.alias("s"), f"t.day = '{ds}' AND t.day = s.day AND t.country = s.country")
            .whenMatchedUpdateAll()
            .whenNotMatchedInsertAll()
            .whenNotMatchedBySourceDelete(f"t.day = '{ds}'")  # countries without orders any more
            .execute()
        )
        spark.stop()

    merge()


totals()
