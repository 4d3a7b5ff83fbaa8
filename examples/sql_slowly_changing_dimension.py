"""Keep the history of a dimension (type 2) in SQL: a change closes a customer's current row and opens a new one.

Look at: one MERGE does both, for each change comes twice: by its key to close, without a key to insert.
"""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import date

from pyspark.sql import SparkSession

import delta_ds

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers run in this environment too


def main(spark: SparkSession, folder: str) -> None:
    table = f"delta.`{folder}/customers`"
    spark.sql(
        f"CREATE TABLE {table} (customer BIGINT, city STRING, valid_from DATE, valid_to DATE) USING delta"
    )
    spark.sql(f"""
        INSERT INTO {table} (customer, city, valid_from)
        VALUES (1, 'Aachen', DATE'2025-01-01'), (2, 'Berlin', DATE'2025-01-01'), (3, 'Porto', DATE'2025-01-01')""")
    spark.sql("""
        CREATE OR REPLACE TEMPORARY VIEW updates AS
        SELECT *, DATE'2025-06-01' AS day FROM VALUES (2L, 'Lyon'), (3L, 'Porto'), (4L, 'Torun') u(customer, city)""")

    spark.sql(f"""
        MERGE INTO {table} AS t
        USING (
          SELECT customer AS key, * FROM updates
          UNION ALL
          SELECT NULL, u.* FROM updates u JOIN {table} c ON c.customer = u.customer
          WHERE c.valid_to IS NULL AND c.city <> u.city
        ) AS u
        ON t.customer = u.key AND t.valid_to IS NULL
        WHEN MATCHED AND t.city <> u.city THEN UPDATE SET valid_to = u.day
        WHEN NOT MATCHED THEN INSERT (customer, city, valid_from) VALUES (u.customer, u.city, u.day)""").show()
    spark.sql(f"SELECT * FROM {table} ORDER BY customer, valid_from").show()

    print("as of DATE'2025-03-01'")
    spark.sql(
        f"""
        SELECT customer, city FROM {table}
        WHERE valid_from <= :day AND (valid_to > :day OR valid_to IS NULL) ORDER BY customer""",
        args={"day": date(2025, 3, 1)},
    ).show()


if __name__ == "__main__":
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    delta_ds.register(session)
    main(session, tempfile.mkdtemp())
    session.stop()
