"""A program that tries everything on executors that may lack this package, and says as JSON what came of it.

    python -m spark_tests.faults.clusters.executors '{"master": "spark://...", "folder": "/tmp/x", "ship": true}'

Tables that tasks have to write by this package have a change feed; see `STEPS`.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import delta_ds
from delta_ds import DeltaTable
from spark_tests.faults.clusters.application import SETTINGS

COUNT = 1000


class Steps:
    """What is tried, one after the other, on one table; each answers with rows that must be those of `expected`."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.path = str(folder / "table")
        self.feed = str(folder / "feed")
        self.sink = folder / "sink"

    def _read(self, path: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.spark.read.format("pydelta").load(path).collect())

    def _rows(self, start: int = 0) -> Any:
        return self.spark.range(start, start + COUNT, 1, 4).selectExpr("id", "id % 3 as part")

    def write(self) -> list[tuple[Any, ...]]:
        self._rows().write.format("pydelta").partitionBy("part").mode("overwrite").save(self.path)
        writer = self._rows().write.format("pydelta").option("delta.enableChangeDataFeed", "true")
        writer.mode("overwrite").save(self.feed)
        return self._read(self.path)

    def delete(self) -> list[tuple[Any, ...]]:
        DeltaTable.forPath(self.spark, self.path).delete("id = 17")
        return [row for row in self._read(self.path) if row[0] == 17]

    def update(self) -> list[tuple[Any, ...]]:
        DeltaTable.forPath(self.spark, self.path).update("id = 18", {"id": "-id"})
        return [row for row in self._read(self.path) if row[0] < 0]

    def merge(self) -> list[tuple[Any, ...]]:
        table = DeltaTable.forPath(self.spark, self.path).alias("t")
        merge = table.merge(self._rows(COUNT - 5).alias("s"), "t.id = s.id")
        merge.whenMatchedDelete().whenNotMatchedInsertAll().execute()
        return [(len(self._read(self.path)),)]

    def optimize(self) -> list[tuple[Any, ...]]:
        table = DeltaTable.forPath(self.spark, self.path)
        table.optimize().executeCompaction()
        return [(len(self._read(self.path)),)]

    def write_parquet_as_it_is(self) -> list[tuple[Any, ...]]:
        plain = f"{self.path}-parquet"
        self._rows().write.mode("overwrite").parquet(plain)
        self.spark.read.parquet(plain).write.format("pydelta").mode("overwrite").save(f"{self.path}-plain")
        return [(len(self._read(f"{self.path}-plain")),)]

    def change_feed(self) -> list[tuple[Any, ...]]:
        read = self.spark.read.format("pydelta").option("readChangeFeed", "true").option("startingVersion", 0)
        return [(len(read.load(self.feed).collect()),)]

    def merge_with_change_feed(self) -> list[tuple[Any, ...]]:
        table = DeltaTable.forPath(self.spark, self.feed).alias("t")
        merge = table.merge(self._rows(COUNT - 5).alias("s"), "t.id = s.id")
        merge.whenMatchedDelete().whenNotMatchedInsertAll().execute()
        return [(len(self._read(self.feed)),)]

    def portable_read(self) -> list[tuple[Any, ...]]:
        self.spark.conf.set("spark.pydelta.nativeScan", "false")
        try:
            return [(len(self._read(self.path)),)]
        finally:
            self.spark.conf.unset("spark.pydelta.nativeScan")

    def portable_write(self) -> list[tuple[Any, ...]]:
        self.spark.conf.set("spark.pydelta.nativeWrite", "false")
        try:
            self._rows().write.format("pydelta").mode("overwrite").save(f"{self.path}-portable")
            return [(len(self._read(f"{self.path}-portable")),)]
        finally:
            self.spark.conf.unset("spark.pydelta.nativeWrite")

    def stream(self) -> list[tuple[Any, ...]]:
        read = self.spark.readStream.format("pydelta").load(self.path)
        place = str(self.sink)
        writer = read.writeStream.format("pydelta").option("checkpointLocation", f"{place}-checkpoint")
        query = writer.trigger(availableNow=True).start(place)
        query.awaitTermination()
        return [(len(self._read(place)),)]


# By Spark's own reader and writer, whatever executors have.
NATIVE = ("write", "optimize", "write_parquet_as_it_is")
# By tasks of this package.
OURS = ("change_feed", "portable_read", "portable_write", "stream")
# By such tasks too; the commands send the package where it lacks.
ROWS = ("delete", "update", "merge", "merge_with_change_feed")


def main() -> None:
    """Try the steps of a job: `master`, `folder`, `conf`, `ship` (code that prints its answer), `steps`."""
    job = json.loads(sys.argv[1])
    folder = Path(job["folder"])
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("delta_ds").addHandler(handler)
    logging.getLogger("delta_ds").setLevel(logging.INFO)
    settings = {
        **SETTINGS,
        "spark.eventLog.enabled": "false",
        # Tasks do what threads of the driver would do of tables so small.
        "spark.pydelta.localOptimizeSize": "0",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }
    builder = SparkSession.builder.config(map={**settings, **job.get("conf", {})})
    spark = (builder.master(job["master"]) if "master" in job else builder).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    delta_ds.register(spark)
    if job.get("ship"):
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            exec(job["ship"], {"spark": spark})  # noqa: S102 - of a page of ours
        answer = told.getvalue()
        print(json.dumps({"step": "ship", "answer": answer.startswith("on"), "error": None, "log": [answer]}))
    steps = Steps(spark, folder)
    for name in job.get("steps", (*NATIVE, *OURS, *ROWS)):
        print(json.dumps(_try(name, getattr(steps, name), said)), flush=True)
    spark.stop()


def _try(name: str, step: Callable[[], Any], said: list[str]) -> dict[str, Any]:
    said.clear()
    try:
        answer, error = step(), None
    except Exception as raised:
        answer, error = None, {"class": type(raised).__name__, "text": str(raised)}
    return {"step": name, "answer": answer, "error": error, "log": list(said)}


if __name__ == "__main__":
    main()
