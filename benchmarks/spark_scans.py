"""Scans in one Spark session: the data source, by its portable path, against Spark's own Parquet reader, in turn.

    python -m benchmarks.spark_scans PLAIN_TABLE VECTOR_TABLE ROUNDS

Every scan writes all its columns to Spark's `noop` sink. Prints one JSON object:
seconds by case, reader and round; the first round is a warm-up.
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


# The path that Spark's public data source API gives; the part `native` measures the other.
PORTABLE = {"spark.pydelta.nativeScan": "false", "spark.pydelta.nativeWrite": "false"}


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
    for key, value in PORTABLE.items():
        spark.conf.set(key, value)
    return spark


def scans(spark: SparkSession, plain: str, vectors: str) -> dict[str, dict[str, Callable[[], DataFrame]]]:
    """The scans by case and reader; `parquet` is the yardstick of each case."""
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

    filtered = {
        "parquet": lambda: spark.read.parquet(*selected).where(one_percent),
        "pydelta": lambda: delta(plain).where(one_percent),
    }
    return {
        "full scan": {"parquet": lambda: spark.read.parquet(*everything), "pydelta": lambda: delta(plain)},
        "filter, 1 % of the files, pushdown": filtered,
        "filter, 1 % of the files, no pushdown": filtered,
        "deletion vectors": {
            "parquet": lambda: spark.read.parquet(*everything),
            "pydelta": lambda: delta(vectors),
        },
    }


def main(plain: str, vectors: str, rounds: int) -> None:
    import delta_ds

    spark = session()
    seconds: dict[str, dict[str, list[float]]] = {}
    for case, readers in scans(spark, plain, vectors).items():
        delta_ds.register(spark, pushdown=True if case.endswith(", pushdown") else None)
        taken = seconds[case] = {reader: [] for reader in readers}
        # The first round warms up the JVM, its Python workers and the page cache.
        for _ in range(rounds + 1):
            for reader, frame in readers.items():
                start = time.perf_counter()
                frame().write.format("noop").mode("overwrite").save()
                taken[reader].append(time.perf_counter() - start)
    print(MARK + json.dumps({"seconds": seconds, "spark": spark.version}))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
