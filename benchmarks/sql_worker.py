"""SQL by name beside the same by path, in one Spark session, in turn.

    python -m benchmarks.sql_worker '{"rows": 1000, "rounds": 3, "calls": 30, "folder": "/tmp/x"}'

Prints one JSON object: the Spark version, and by case and way the seconds of a call, one value a round. The first round
is a warm-up.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import MARK
from benchmarks.spark_writes import session, source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SELECT, POINT, CTAS, INSERT = "SELECT 1", "point query", "new table", "append"
BEFORE, AFTER, PATH, NAME = "before register", "registered", "by path", "by name"
Seconds = dict[str, dict[str, list[float]]]


def measure(spark: SparkSession, settings: Mapping[str, Any]) -> Seconds:
    """The seconds of a call in every round, by case and way; each round goes through all of them."""
    import delta_ds

    delta_ds.register(spark)
    seconds: Seconds = {case: {PATH: [], NAME: []} for case in (POINT, CTAS, INSERT)}
    seconds[SELECT] = {BEFORE: [], AFTER: []}
    rows, folder = settings["rows"], Path(settings["folder"])
    source(spark, rows, 4).createOrReplaceTempView("rows")
    spark.sql(f"CREATE TABLE points USING delta LOCATION '{folder}/points' AS SELECT * FROM rows")
    for name in ("named", "pathed"):
        spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{folder}/{name}' AS SELECT * FROM rows LIMIT 0")
    for number in range(settings["rounds"] + 1):
        calls = settings["calls"]
        delta_ds.unregister(spark)
        seconds[SELECT][BEFORE].append(_mean(calls, lambda: spark.sql("SELECT 1")))
        delta_ds.register(spark)
        seconds[SELECT][AFTER].append(_mean(calls, lambda: spark.sql("SELECT 1")))
        for case, ways in _ways(spark, folder, number).items():
            # Who comes first changes from round to round.
            order = list(ways) if number % 2 else list(reversed(ways))
            for way in order:
                seconds[case][way].append(_mean(calls if case == POINT else 1, ways[way]))
    return seconds


def _ways(spark: SparkSession, folder: Path, number: int) -> dict[str, dict[str, Callable[[], object]]]:
    rows = spark.table("rows")
    loaded = spark.read.format("pydelta")
    return {
        POINT: {
            PATH: lambda: loaded.load(f"{folder}/points").where("id = 77").collect(),
            NAME: lambda: spark.sql("SELECT * FROM points WHERE id = 77").collect(),
        },
        CTAS: {
            PATH: lambda: rows.write.format("pydelta").save(f"{folder}/path-{number}"),
            NAME: lambda: spark.sql(
                f"CREATE TABLE n{number} USING delta LOCATION '{folder}/name-{number}' AS SELECT * FROM rows"
            ),
        },
        INSERT: {
            PATH: lambda: rows.write.format("pydelta").mode("append").save(f"{folder}/pathed"),
            NAME: lambda: spark.sql("INSERT INTO named SELECT * FROM rows"),
        },
    }


def _mean(calls: int, call: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def main() -> None:
    settings = json.loads(sys.argv[1])
    spark = session({"format": "pydelta"}, register=False)
    print(MARK + json.dumps({"spark": spark.version, "seconds": measure(spark, settings)}))
    spark.stop()


if __name__ == "__main__":
    main()
