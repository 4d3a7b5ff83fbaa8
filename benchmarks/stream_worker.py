"""The measured process of the part `streams`: one Spark session that streams from and into tables.

    python -m benchmarks.stream_worker '{"format": "pydelta", "table": "...", "folder": "...", ...}'

The format is pydelta (this package) or delta (delta-spark, whose interpreter runs this file then): the calls are the
same. Prints one JSON object: by case the seconds of each round, and Spark's own account of where a batch spent them.
Only pyspark and the standard library are needed here.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.measure import MARK
from benchmarks.spark_writes import session
from benchmarks.stream_tables import commit_pending

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

Settings = Mapping[str, Any]
# How long a row may take to be seen.
_LONGEST = 60


@dataclass
class Side:
    """One competitor at work.

    Attributes
    ----------
    settings
        `format`, `table`, `folder`, `commits`, `rows`, `batches`, `pending`, `rounds`.
    """

    spark: SparkSession
    settings: Settings
    made: int = 0

    def folder(self) -> Path:
        """A folder that nobody has used."""
        self.made += 1
        return Path(self.settings["folder"]) / str(self.made)

    def load(self, path: str, **options: Any) -> DataFrame:
        return self.spark.readStream.format(self.settings["format"]).options(**options).load(path)

    def run(self, rows: DataFrame, sink: str, target: str | None) -> StreamingQuery:
        """Stream all that is there."""
        writer = rows.writeStream.format(sink).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self.folder())).start(target)
        query.awaitTermination()
        return query


def backlog(side: Side) -> dict[str, Any]:
    """All commits of the table to nowhere, a fifth of them in a batch."""
    settings = side.settings
    started = time.perf_counter()
    limit = max(1, settings["commits"] // 5)
    query = side.run(side.load(settings["table"], maxFilesPerTrigger=limit, startingVersion=1), "noop", None)
    seconds = time.perf_counter() - started
    _expect(sum(p.numInputRows for p in query.recentProgress), settings["commits"] * settings["rows"])
    return {"seconds": seconds, "profile": _profile(query)}


def sink(side: Side) -> dict[str, Any]:
    """Micro-batches of one Parquet file each into a new table."""
    settings, target = side.settings, str(side.folder())
    files = side.spark.readStream.schema("id long, word string").option("maxFilesPerTrigger", 1)
    rows = files.parquet(settings["files"]).where("id IS NOT NULL")
    started = time.perf_counter()
    query = side.run(rows, settings["format"], target)
    seconds = time.perf_counter() - started
    found = side.spark.read.format(settings["format"]).load(target).count()
    _expect(found, settings["batches"] * settings["rows"])
    return {"seconds": seconds, "profile": _profile(query)}


def latency(side: Side) -> dict[str, Any]:
    """From a commit to the moment that a query which tails the table has its rows."""
    settings = side.settings
    table = side.folder()
    shutil.copytree(settings["table"], table)
    seen = threading.Event()

    def arrived(batch: DataFrame, number: int) -> None:
        if batch.count():
            seen.set()

    rows = side.load(str(table), startingVersion="latest")
    query = rows.writeStream.foreachBatch(arrived).option("checkpointLocation", str(side.folder())).start()
    query.processAllAvailable()
    taken = []
    for version in range(settings["commits"] + 1, settings["commits"] + settings["pending"] + 1):
        # Not always at the same point of an idle poll.
        time.sleep(0.3 + 0.07 * (version % 5))
        seen.clear()
        started = time.perf_counter()
        commit_pending(table, version)
        if not seen.wait(_LONGEST):
            raise RuntimeError(f"version {version} was not seen within {_LONGEST} s: {query.exception()}")
        taken.append(time.perf_counter() - started)
    profile = _profile(query)
    query.stop()
    # The first one starts the workers.
    return {"seconds": median(taken[1:] or taken), "profile": profile}


def _profile(query: StreamingQuery) -> dict[str, float]:
    """Median milliseconds of the steps of a batch."""
    batches = [dict(p.durationMs) for p in query.recentProgress if p.numInputRows]
    names = {name for batch in batches for name in batch}
    return {name: median(batch.get(name, 0) for batch in batches) for name in sorted(names)}


def _expect(found: int, wanted: int) -> None:
    if found != wanted:
        raise RuntimeError(f"{found} rows came, not {wanted}")


CASES = {"backlog": backlog, "sink": sink, "latency": latency}


def main(settings: Settings) -> None:
    spark = session(settings)
    side = Side(spark, settings)
    found = {
        name: [case(side) for _ in range(settings["rounds"] + settings["warmups"])][settings["warmups"] :]
        for name, case in CASES.items()
    }
    print(MARK + json.dumps({"spark": spark.version, "cases": found}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
