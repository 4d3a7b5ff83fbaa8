"""The measured process of the part `large`: one Spark session that plans scans of a table of millions of files.

    python -m benchmarks.large_worker '{"master": "local[2]", "table": "...", "files": 5000000, "filters": {...}}'

Nothing is read but the log: the files of a scan are listed, the data files need not be there. Prints a line of JSON for
each filter and round.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchmarks.measure import MARK
from benchmarks.process_tree import Process, processes, tree

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVERY_S = 0.1
MEMORY = ("driver_python_mb", "driver_jvm_mb", "others_mb")


class Peaks:
    """The most memory (MiB) of the driver's Python and JVM, and of executors with all their Python workers together."""

    def __enter__(self) -> Peaks:
        self.found = dict.fromkeys(MEMORY, 0.0)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._start, self._cpu = time.perf_counter(), self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        seconds = time.perf_counter() - self._start
        self._end.set()
        self._thread.join()
        self.found |= {"seconds": seconds, "cpu_s": self._look() - self._cpu}

    def _watch(self) -> None:
        while not self._end.wait(_EVERY_S):
            self._look()

    def _look(self) -> float:
        found = tree(processes(), os.getpid())
        now = dict.fromkeys(MEMORY, 0.0)
        for number, process in found.items():
            now[_part_of(number, process, found)] += process.rss_mb
        for part, mb in now.items():
            self.found[part] = max(self.found[part], mb)
        return sum(process.cpu_s for process in found.values())


def _part_of(number: int, process: Process, found: Mapping[int, Process]) -> str:
    if number == os.getpid():
        return "driver_python_mb"
    parent = found.get(process.parent)
    # What the JVM starts is itself a JVM for a moment.
    is_driver = process.name == "java" and (parent is None or parent.name != "java")
    return "driver_jvm_mb" if is_driver else "others_mb"


def session(master: str) -> SparkSession:
    """A session with a driver of 1 GB."""
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master(master)
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def plan(spark: SparkSession, table: str, predicate: str) -> int:
    """List the files of a scan as Spark does when it runs; how many they are."""
    from delta_ds.spark.engines.classic.file_index import DeltaFileIndex

    frame = spark.read.format("pydelta").load(table).where(predicate)
    execution = frame._jdf.queryExecution()
    execution.toRdd().getNumPartitions()
    leaf = execution.optimizedPlan().collectLeaves().apply(0)
    index = DeltaFileIndex.of_identity(leaf.relation().location().toString())
    assert index is not None
    assert index.last_listed is not None
    return index.last_listed


def main() -> None:
    settings: dict[str, Any] = json.loads(sys.argv[1])
    import delta_ds

    spark = session(settings["master"])
    spark.sparkContext.setLogLevel("ERROR")
    delta_ds.register(spark)
    spark.conf.set("spark.pydelta.largeTableFiles", str(settings["bound"]))
    # Executors and their Python workers are there.
    tasks = spark.range(0, 8, 1, 8).mapInArrow(lambda batches: batches, "id bigint")
    tasks.count()
    for number in range(settings["rounds"]):
        for name, predicate in settings["filters"].items():
            with Peaks() as peaks:
                files = plan(spark, settings["table"], predicate)
            found = {"filter": name, "round": number, "files": files, **peaks.found}
            print(MARK + json.dumps(found), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
