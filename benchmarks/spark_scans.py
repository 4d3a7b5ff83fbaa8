"""Scans in one Spark session: the data source against Spark's own Parquet reader, case by case in turn.

    python -m benchmarks.spark_scans PLAIN_TABLE VECTOR_TABLE ROUNDS

Every scan writes all its columns to Spark's `noop` sink. Prints one JSON object: seconds of each round.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import MARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def session() -> SparkSession:
    from pyspark.sql import SparkSession

    # Spark's workers start from the environment, not from this process' sys.path.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("delta_ds benchmarks")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def scans(spark: SparkSession, plain: str, vectors: str) -> dict[str, Callable[[], DataFrame]]:
    """The scans by `reader: case`; the reader `parquet` is the yardstick of the case."""
    from delta_ds import DeltaLog

    snapshot = DeltaLog(plain).snapshot()
    rows = sum(json.loads(text)["numRecords"] for text in snapshot.files()["stats"].to_pylist())
    first = rows // 2
    one_percent = f"id BETWEEN {first} AND {first + rows // 100 - 1}"
    everything, selected = (
        [str(Path(plain) / name) for name in snapshot.files(predicate)["path"].to_pylist()]
        for predicate in (None, one_percent)
    )

    def delta(path: str) -> DataFrame:
        return spark.read.format("pydelta").load(path)

    return {
        "parquet: full scan": lambda: spark.read.parquet(*everything),
        "pydelta: full scan": lambda: delta(plain),
        "parquet: filter, 1 % of the files": lambda: spark.read.parquet(*selected).where(one_percent),
        "pydelta, pushdown: filter, 1 % of the files": lambda: delta(plain).where(one_percent),
        "pydelta: filter, 1 % of the files": lambda: delta(plain).where(one_percent),
        "parquet: deletion vectors": lambda: spark.read.parquet(*everything),
        "pydelta: deletion vectors": lambda: delta(vectors),
    }


def main(plain: str, vectors: str, rounds: int) -> None:
    import delta_ds

    spark = session()
    cases = scans(spark, plain, vectors)
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(rounds + 1):
        for name, frame in cases.items():
            delta_ds.register(spark, pushdown=True if "pushdown" in name else None)
            start = time.perf_counter()
            frame().write.format("noop").mode("overwrite").save()
            if turn:  # the first turn warms up the JVM and the page cache
                seconds[name].append(time.perf_counter() - start)
    print(MARK + json.dumps({"seconds": seconds, "spark": spark.version}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
