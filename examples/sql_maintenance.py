"""What tables want every night, in SQL: small files joined, rows arranged, rubbish deleted; and back after a mistake.

Look at: the number of files falls, the rows stay, and RESTORE undoes a DELETE without a condition.
"""

from __future__ import annotations

import os
import sys
import tempfile

from pyspark.sql import SparkSession

import delta_ds

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers run in this environment too


def main(spark: SparkSession, folder: str) -> None:
    # Deletes what nobody needs any more at once, for you to see it. By default a week is kept: leave it so.
    keep = "TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 seconds')"
    for table, layout in (("events", "PARTITIONED BY (day)"), ("clicks", "CLUSTER BY (user)")):
        columns = f"(id BIGINT, user BIGINT, day BIGINT) USING delta {layout}"
        spark.sql(f"CREATE TABLE {table} {columns} LOCATION '{folder}/{table}' {keep}")
        for hour in range(6):
            rows = f"SELECT /*+ REPARTITION(4) */ id, id % 100, {hour % 2} FROM range({hour}000, {hour}500)"
            spark.sql(f"INSERT INTO {table} {rows}")

    show(spark, "before")
    for what in ("events WHERE day = 0", "events ZORDER BY (user, id)", "clicks"):
        metrics = spark.sql(f"OPTIMIZE {what}").collect()[0].metrics
        print(f"OPTIMIZE {what}: {metrics.numFilesRemoved} files became {metrics.numFilesAdded}")
    show(spark, "after")

    print(f"vacuum would delete {spark.sql('VACUUM events DRY RUN').count()} files")
    spark.sql("VACUUM events")
    spark.sql("DELETE FROM events")  # no WHERE
    show(spark, "emptied")
    mistake = spark.sql("DESCRIBE HISTORY events LIMIT 1").collect()[0].version
    spark.sql(f"RESTORE TABLE events TO VERSION AS OF {mistake - 1}")
    show(spark, "restored")
    spark.sql("DROP TABLE events")
    spark.sql("DROP TABLE clicks")


def show(spark: SparkSession, when: str) -> None:
    for table in ("events", "clicks"):
        detail = spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]
        print(f"{when}: {table}: {detail.numFiles} files, {spark.table(table).count()} rows")


if __name__ == "__main__":
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    delta_ds.register(session)
    main(session, tempfile.mkdtemp())
    session.stop()
