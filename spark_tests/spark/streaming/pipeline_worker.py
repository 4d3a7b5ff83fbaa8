"""A pipeline between two tables in a process of its own, which a test kills: `python pipeline_worker.py source target`.

With a third argument it stops when it has caught up, else it goes on.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from pyspark.sql import SparkSession


def main(source: str, target: str, catch_up: bool) -> None:
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.memory", "600m")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    rows = (
        spark.readStream.format("pydelta").option("maxFilesPerTrigger", 100 if catch_up else 1).load(source)
    )
    writer = rows.writeStream.format("pydelta").option(
        "checkpointLocation", f"{target}/_checkpoints/pipeline"
    )
    if catch_up:
        writer = writer.trigger(availableNow=True)
    writer.start(target).awaitTermination()
    spark.stop()


def outlive_nobody() -> None:
    """End with the test: a process group of its own is not ended with it."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=outlive_nobody, daemon=True).start()
    main(sys.argv[1], sys.argv[2], len(sys.argv) > 3)
