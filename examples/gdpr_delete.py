"""Erase a person: DELETE hides the rows at once, but only a purge and VACUUM take them off the disk.

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
from delta_ds import DeltaTable

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers run in this environment too


def main(spark: SparkSession, folder: str) -> None:
    path = f"{folder}/visits"
    visits = spark.sql("select id % 10 as person, id as visit, uuid() as page from range(1000)")
    properties = {
        "delta.enableDeletionVectors": "true",  # DELETE marks rows in place of writing files anew
        # How long what older versions need is kept: make it less than your deadline. By default a week.
        "delta.deletedFileRetentionDuration": "interval 0 seconds",
    }
    visits.write.format("pydelta").options(**properties).save(path)

    table = DeltaTable.forPath(spark, path)
    count(table, path, "at first")

    deleted = table.delete("person IN (3, 7)").collect()[0]["num_affected_rows"]
    count(table, path, f"{deleted} rows deleted")

    table.optimize().executePurge()  # files with deleted rows are written anew, without them
    count(table, path, "purged")

    table.vacuum()  # files that only older versions need are deleted, and those versions with them
    count(table, path, "vacuumed")
    table.history().select("version", "operation", "operationParameters").show(truncate=50)


def count(table: DeltaTable, path: str, when: str) -> None:
    seen = table.toDF().where("person IN (3, 7)").count()
    files = [file for file in Path(path).rglob("*.parquet") if "_delta_log" not in file.parts]
    rows = [row for file in files for row in pq.read_table(file, partitioning=None).to_pylist()]
    stored = sum(row["person"] in (3, 7) for row in rows)
    print(f"{when}: readers see {seen} rows of them, {stored} are in the files")


if __name__ == "__main__":
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    delta_ds.register(session)
    main(session, tempfile.mkdtemp())
    session.stop()
