"""Writes in one Spark session: a Delta format against Spark's own Parquet writer, in turn.

    python -m benchmarks.spark_writes '{"format": "pydelta", "case": "append", "rows": 1000, ...}'

The format is pydelta (this package) or delta (delta-spark, whose interpreter runs this file then). Prints one JSON
object: the Spark version, and by writer the seconds of every round, bytes and files. The first round is a warm-up.
Only pyspark and the standard library are needed here.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import MARK, failures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Settings = Mapping[str, Any]

COLUMNS = [
    "id",
    "timestamp_micros(1735689600000000 + id * 60000000) AS event_time",
    "concat('user-', pmod(hash(id), 1000000)) AS user",
    "element_at(array('Aachen', 'Berlin', 'Gdansk', 'Lyon', 'Nantes', 'Porto', 'Torun', 'Zwolle'), "
    "pmod(hash(id, 1), 8) + 1) AS city",
    "pmod(xxhash64(id), 1000000) / 1000.0D AS amount",
    "CAST(pmod(xxhash64(id, 2), 10000000) / 100.0D AS DECIMAL(10,2)) AS price",
    "CAST(pmod(id, 99) + 1 AS INT) AS quantity",
    "date_add(DATE'2020-01-01', CAST(pmod(id, 3650) AS INT)) AS sold_on",
    "hex(xxhash64(id, 3)) AS token",
    "pmod(id, 3) = 0 AS flag",
]


@dataclass(frozen=True)
class Writer:
    """One competitor.

    Attributes
    ----------
    format
        parquet, pydelta or delta.
    codec
        Of the data files.
    properties
        Of the table.
    """

    format: str
    codec: str
    properties: Mapping[str, str] = field(default_factory=dict)


def session(settings: Settings, register: bool = True) -> SparkSession:
    """A session that has the format of the settings; `register` False leaves pydelta's registration to the caller."""
    from pyspark.sql import SparkSession

    # Spark's workers start from the environment, not from this process' sys.path.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("delta_ds benchmarks")
        .config("spark.driver.memory", "3g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
    )
    if settings["format"] == "delta":
        catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        builder = (
            builder.config("spark.jars", settings["jars"])
            .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
            .config("spark.sql.catalog.spark_catalog", catalog)
        )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if settings["format"] == "pydelta" and register:
        import delta_ds

        delta_ds.register(spark)
        for key, value in settings.get("confs", {}).items():
            spark.conf.set(key, value)
    return spark


def source(spark: SparkSession, rows: int, tasks: int, *more: str) -> DataFrame:
    """Ten columns of `rows` rows, computed as they are written: cheap, and the same for all writers."""
    return spark.range(0, rows, 1, tasks).selectExpr(*COLUMNS, *more)


# ---------------------------------------------------------------- large writes


def append_writers(fmt: str) -> dict[str, Writer]:
    return {
        "parquet, snappy": Writer("parquet", "snappy"),
        f"{fmt}, snappy": Writer(fmt, "snappy"),
        "parquet, zstd": Writer("parquet", "zstd"),
        f"{fmt}, zstd": Writer(fmt, "zstd"),
        f"{fmt}, zstd, no statistics": Writer(fmt, "zstd", {"delta.dataSkippingNumIndexedCols": "0"}),
    }


def partitioned_writers(fmt: str) -> dict[str, Writer]:
    return {"parquet, zstd": Writer("parquet", "zstd"), f"{fmt}, zstd": Writer(fmt, "zstd")}


def frame_of(spark: SparkSession, settings: Settings) -> tuple[DataFrame, list[str], dict[str, Writer]]:
    """The rows of a case, the columns to partition by, and who writes them."""
    rows, fmt = settings["rows"], settings["format"]
    if settings["case"] == "append":
        return source(spark, rows, 8), [], append_writers(fmt)
    parts = settings["partitions"]
    if settings["spread"]:  # every task has rows of every partition
        return source(spark, rows, 4, f"pmod(id, {parts}) AS part"), ["part"], partitioned_writers(fmt)
    width = max(1, rows // parts)
    return source(spark, rows, 2, f"id DIV {width} AS part"), ["part"], partitioned_writers(fmt)


def large_writes(spark: SparkSession, settings: Settings) -> dict[str, Any]:
    frame, partition_by, writers = frame_of(spark, settings)
    folder = Path(settings["folder"])
    seconds: dict[str, list[float]] = {"source alone": []}
    sizes: dict[str, list[int]] = {}
    # The first round warms up the JVM and its Python workers.
    for _ in range(settings["rounds"] + 1):
        seconds["source alone"].append(_timed(lambda: frame.write.format("noop").mode("overwrite").save()))
        for name, writer in writers.items():
            path = folder / "target"
            create_target(frame, writer, partition_by, path)
            os.sync()
            taken = _timed(partial(save, frame, writer, partition_by, path))
            seconds.setdefault(name, []).append(taken)
            if writer.format == "parquet":
                flushed = taken + _timed(partial(_flush, path))
                seconds.setdefault(f"{name}, then flushed", []).append(flushed)
            files = data_files(path)
            sizes[name] = [sum(file.stat().st_size for file in files), len(files)]
            shutil.rmtree(path)
    return {"seconds": seconds, "sizes": sizes}


def _timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def create_target(frame: DataFrame, writer: Writer, partition_by: list[str], path: Path) -> None:
    """The empty table to append to; Parquet needs none."""
    if writer.format != "parquet":
        save(frame.limit(0), writer, partition_by, path)


def save(frame: DataFrame, writer: Writer, partition_by: list[str], path: Path) -> None:
    """Append rows as this writer does."""
    to = frame.write.format(writer.format).mode("append").option("compression", writer.codec)
    to = to.options(**writer.properties)
    if partition_by and writer.format == "pydelta":
        # Spark's own partitionBy is refused for tables of a Python data source.
        to = to.option("partitionBy", ", ".join(partition_by))
    elif partition_by:
        to = to.partitionBy(*partition_by)
    to.save(str(path))


def data_files(path: Path) -> list[Path]:
    """The Parquet files under a table or folder, those of the log left out."""
    return [file for file in path.rglob("*.parquet") if "_delta_log" not in file.parts]


def _flush(path: Path) -> None:
    """What a writer does that wants to be sure: every file and folder to the device."""
    for place in [*data_files(path), path, *(p for p in path.rglob("*") if p.is_dir())]:
        handle = os.open(place, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# ---------------------------------------------------------------- small appends


def _small_frame(spark: SparkSession) -> DataFrame:
    return source(spark, 10, 1)


def small_appends(spark: SparkSession, settings: Settings) -> dict[str, Any]:
    """One after the other, ten rows each."""
    frame = _small_frame(spark)
    seconds: dict[str, list[float]] = {}
    for _ in range(settings["rounds"] + 1):
        for fmt in ("parquet", settings["format"]):
            path = Path(settings["folder"]) / "target"
            writer = Writer(fmt, "zstd")
            create_target(frame, writer, [], path)
            taken = _timed(partial(_save_often, settings["count"], frame, writer, path))
            seconds.setdefault(fmt, []).append(taken)
            shutil.rmtree(path)
    return {"seconds": seconds}


def _save_often(count: int, frame: DataFrame, writer: Writer, path: Path) -> None:
    for _ in range(count):
        save(frame, writer, [], path)


def racing_appends(spark: SparkSession, settings: Settings) -> dict[str, Any]:
    """Several threads, each with ten rows at a time for the same table."""
    frame = _small_frame(spark)
    writer = Writer(settings["format"], "zstd")
    rounds = []
    for _ in range(settings["rounds"] + 1):
        path = Path(settings["folder"]) / "target"
        create_target(frame, writer, [], path)
        errors: Counter[str] = Counter()

        def work(path: Path = path, errors: Counter[str] = errors) -> None:
            # Makes the session the active one of this thread, without which Spark finds no Python data source.
            spark.createDataFrame([(1,)], "a int")
            errors.update(failures(partial(save, frame, writer, [], path), settings["count"]))

        threads = [threading.Thread(target=work) for _ in range(settings["writers"])]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        taken = time.perf_counter() - start
        rounds.append({"seconds": taken, "errors": errors, "files": len(data_files(path))})
        shutil.rmtree(path)
    return {"rounds": rounds}


CASES: dict[str, Callable[[SparkSession, Settings], dict[str, Any]]] = {
    "append": large_writes,
    "partitioned": large_writes,
    "small": small_appends,
    "writers": racing_appends,
}


def main(settings: Settings) -> None:
    spark = session(settings)
    found = CASES[settings["case"]](spark, settings)
    print(MARK + json.dumps({**found, "spark": spark.version}))
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
