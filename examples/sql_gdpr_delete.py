"""Erase a person in SQL: DELETE hides the rows at once, REORG and VACUUM take them off the disk.

Look at: after DELETE the rows are gone for readers and still in the files; after VACUUM they are nowhere.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import delta_ds

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers run in this environment too


def main(spark: SparkSession, folder: str) -> None:
    spark.sql(f"""
        CREATE TABLE visits USING delta LOCATION '{folder}/visits'
        TBLPROPERTIES (
          'delta.enableDeletionVectors' = 'true', -- DELETE marks rows in place of writing files anew
          -- How long what older versions need is kept: make it less than your deadline. By default a week.
          'delta.deletedFileRetentionDuration' = 'interval 0 seconds'
        ) AS SELECT id % 10 AS person, id AS visit, uuid() AS page FROM range(1000)""")
    count(spark, folder, "at first")

    done = spark.sql("DELETE FROM visits WHERE person IN (:a, :b)", args={"a": 3, "b": 7})
    count(spark, folder, f"{done.collect()[0].num_affected_rows} rows deleted")

    spark.sql("REORG TABLE visits APPLY (PURGE)")  # files with deleted rows are written anew, without them
    count(spark, folder, "purged")

    spark.sql(
        "VACUUM visits"
    )  # files that only older versions need are deleted, and those versions with them
    count(spark, folder, "vacuumed")
    spark.sql("DESCRIBE HISTORY visits").select("version", "operation", "operationParameters").show(
        truncate=50
    )
    spark.sql("DROP TABLE visits")  # its files stay: it has a location of its own


def count(spark: SparkSession, folder: str, when: str) -> None:
    seen = spark.sql("SELECT count(*) FROM visits WHERE person IN (3, 7)").collect()[0][0]
    files = Path(folder, "visits").rglob("*.parquet")
    stored = sum(row["person"] in (3, 7) for file in files for row in pq.read_table(file).to_pylist())
    print(f"{when}: readers see {seen} rows of them, {stored} are in the files")


if __name__ == "__main__":
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    delta_ds.register(session)
    main(session, tempfile.mkdtemp())
    session.stop()
