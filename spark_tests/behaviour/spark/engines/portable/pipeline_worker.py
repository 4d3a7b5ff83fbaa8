"""A pipeline between two tables in a process of its own, which a test kills: `python pipeline_worker.py source target`.

One file a batch, until it is killed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery


def main(source: str, target: str) -> None:
    # Not registered: it works without that too.
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.memory", "600m")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    start(spark, source, target, processingTime="0 seconds").awaitTermination()


def start(spark: SparkSession, source: str, target: str, files: int = 1, **trigger: Any) -> StreamingQuery:
    rows = spark.readStream.format("pydelta").option("maxFilesPerTrigger", files).load(source)
    writer = rows.writeStream.format("pydelta").option(
        "checkpointLocation", f"{target}/_checkpoints/pipeline"
    )
    return writer.trigger(**trigger).start(target)


def outlive_nobody() -> None:
    """End with the test: a process group of its own is not ended with it."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=outlive_nobody, daemon=True).start()
    main(sys.argv[1], sys.argv[2])
