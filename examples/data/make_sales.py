"""Write the table `sales` beside this script with delta-spark: the examples read what Spark users have.

Needs `pip install pyspark==4.2.0 delta-spark==4.4.0` in an environment of its own (delta-spark pins its
Spark) and Java 17+. `DELTA_JARS` may name local jars, comma separated, instead of a download from Maven.

    python examples/data/make_sales.py

Eight versions: create, three months appended, an update, a delete that leaves deletion vectors, a merge,
one more month. The change data feed is on, and so are in-commit timestamps: time travel by timestamp must
not depend on file times, which a checkout of the repository does not keep.
"""

from __future__ import annotations

import datetime
import os
import random
import shutil
from pathlib import Path
from typing import Any

TABLE = Path(__file__).resolve().parent / "sales"
PRODUCTS = {"apples": 2.5, "bread": 3.2, "cheese": 11.9, "honey": 7.4}
COUNTRIES = ["DE", "FR", "PL"]
SCHEMA = "order_id bigint, sold_on date, country string, product string, quantity int, amount decimal(10,2)"
PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true",
}


def session() -> Any:
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[1]")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.ui.enabled", "false")
    )
    if jars := os.environ.get("DELTA_JARS"):
        return builder.config("spark.jars", jars).getOrCreate()
    from delta import configure_spark_with_delta_pip

    return configure_spark_with_delta_pip(builder).getOrCreate()


def orders(month: int, count: int = 60) -> list[tuple[Any, ...]]:
    """A month of made-up orders, the same ones at every run."""
    chance = random.Random(month)
    rows = []
    for number in range(count):
        product, price = chance.choice(sorted(PRODUCTS.items()))
        quantity = chance.randint(1, 9)
        amount = round(price * quantity, 2)
        day = datetime.date(2026, month, chance.randint(1, 28))
        rows.append((month * 1000 + number, day, chance.choice(COUNTRIES), product, quantity, str(amount)))
    return rows


def main() -> None:
    shutil.rmtree(TABLE, ignore_errors=True)
    spark = session()
    name = f"delta.`{TABLE}`"
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in PROPERTIES.items())
    spark.sql(
        f"CREATE TABLE {name} ({SCHEMA}) USING delta PARTITIONED BY (country) TBLPROPERTIES ({properties})"
    )

    def frame(month: int) -> Any:
        text = SCHEMA.replace("decimal(10,2)", "string")
        rows = spark.createDataFrame(orders(month), text)
        return rows.withColumn("amount", rows["amount"].cast("decimal(10,2)")).coalesce(1)

    for month in (1, 2, 3):
        frame(month).write.format("delta").mode("append").save(str(TABLE))
    spark.sql(f"UPDATE {name} SET amount = amount * 0.9 WHERE product = 'honey' AND sold_on < '2026-02-01'")
    spark.sql(f"DELETE FROM {name} WHERE country = 'PL' AND quantity = 1")
    frame(3).limit(20).selectExpr(
        "IF(order_id % 2 = 0, order_id, order_id + 500) AS order_id", "sold_on", "country", "product",
        "quantity + 1 AS quantity", "amount",
    ).createOrReplaceTempView("corrections")  # fmt: skip
    spark.sql(
        f"MERGE INTO {name} t USING corrections s ON t.order_id = s.order_id AND t.country = s.country "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    frame(4).write.format("delta").mode("append").save(str(TABLE))
    spark.stop()

    for side_file in TABLE.rglob(".*.crc"):  # Hadoop's checksums of its local file system, not Delta's
        side_file.unlink()


if __name__ == "__main__":
    main()
