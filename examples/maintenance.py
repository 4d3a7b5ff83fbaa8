"""What a table wants every night: small files joined, rows that are asked for together put together, rubbish deleted.

Look at: the number of files falls, the rows stay, and what VACUUM would delete can be seen before.
"""

from __future__ import annotations

import os
import sys
import tempfile

from pyspark.sql import DataFrame, SparkSession

import delta_ds
from delta_ds import DeltaTable

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers run in this environment too


def main(spark: SparkSession, folder: str) -> None:
    path = f"{folder}/events"
    for hour in range(6):
        events = spark.sql(f"select id, id % 100 as user, {hour % 2} as day from range({hour}000, {hour}500)")
        # Deletes what nobody needs any more at once, for you to see it. By default a week is kept: leave it so.
        keep = {"delta.deletedFileRetentionDuration": "interval 0 seconds"} if hour == 0 else {}
        events.repartition(4).write.format("pydelta").mode("append").options(**keep).partitionBy("day").save(
            path
        )

    table = DeltaTable.forPath(spark, path)
    show("before", table)

    report("compaction of day 0", table.optimize().where("day = 0").executeCompaction())
    report("order by user, id", table.optimize().executeZOrderBy("user", "id"))
    show("after", table)

    print(f"vacuum would delete {table.vacuum(dryRun=True).count()} files")
    table.vacuum()
    table.history().select("version", "operation", "operationMetrics").show(4, truncate=60)


def show(when: str, table: DeltaTable) -> None:
    detail = table.detail().collect()[0]
    print(f"{when}: {detail.numFiles} files, {table.toDF().count()} rows")


def report(what: str, done: DataFrame) -> None:
    metrics = done.collect()[0].metrics
    print(f"{what}: {metrics.numFilesRemoved} files became {metrics.numFilesAdded}")


if __name__ == "__main__":
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    delta_ds.register(session)
    main(session, tempfile.mkdtemp())
    session.stop()
