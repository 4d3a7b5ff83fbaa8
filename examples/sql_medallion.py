"""Bronze, silver and gold in SQL.

Look at: the batch that arrives again changes nothing in silver, and gold is replaced in one commit.
"""

from __future__ import annotations

import os
import sys
import tempfile

from pyspark.sql import SparkSession

import delta_ds

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers run in this environment too


def main(spark: SparkSession, folder: str) -> None:
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS medallion LOCATION '{folder}/medallion'")
    spark.sql("""
        CREATE TABLE medallion.bronze (line STRING, at TIMESTAMP DEFAULT current_timestamp()) USING delta
        TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported', 'delta.appendOnly' = 'true')""")
    silver = "(id BIGINT NOT NULL, country STRING, amount DECIMAL(10, 2)) USING delta CLUSTER BY (country)"
    spark.sql(f"CREATE TABLE medallion.silver {silver}")
    spark.sql("ALTER TABLE medallion.silver ADD CONSTRAINT positive CHECK (amount > 0)")

    first = "1;DE;10.00 2;FR;20.50 3;DE;oops"
    for batch in (first, first, "2;FR;25.00 4;PL;7.25"):
        spark.sql("INSERT INTO medallion.bronze (line) SELECT explode(split(?, ' '))", args=[batch])
        print(f"{len(batch.split())} lines arrived: {refine(spark)} orders changed")
        spark.sql("""
            CREATE OR REPLACE TABLE medallion.gold USING delta COMMENT 'turnover by country' AS
            SELECT country, count(*) AS orders, sum(amount) AS turnover FROM medallion.silver GROUP BY country""")

    for gold in ("medallion.gold", "medallion.gold VERSION AS OF 0"):
        spark.sql(f"SELECT * FROM {gold} ORDER BY country").show()
    spark.sql("DESCRIBE HISTORY medallion.gold").select("version", "operation").show(truncate=False)
    spark.sql("DROP SCHEMA medallion CASCADE")


def refine(spark: SparkSession) -> int:
    done = spark.sql("""
        WITH parsed AS (
          SELECT int(p[0]) AS id, p[1] AS country, try_cast(p[2] AS DECIMAL(10, 2)) AS amount, at
          FROM (SELECT split(line, ';') AS p, at FROM medallion.bronze)
        ), newest AS (SELECT max_by(struct(*), at) AS n FROM parsed WHERE amount > 0 GROUP BY id)
        MERGE INTO medallion.silver AS t USING (SELECT n.* EXCEPT (at) FROM newest) AS s ON t.id = s.id
        WHEN MATCHED AND (t.country, t.amount) <> (s.country, s.amount) THEN UPDATE SET *
        WHEN NOT MATCHED THEN INSERT *""")
    return int(done.collect()[0].num_affected_rows)


if __name__ == "__main__":
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    delta_ds.register(session)
    main(session, tempfile.mkdtemp())
    session.stop()
