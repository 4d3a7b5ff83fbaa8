"""Many native queries in a session of its own, and what the driver holds on the way: `memory_probe TABLE QUERIES`.

Prints one JSON list with a sample after a tenth of the queries, after half of them and at the end. A process of
its own, because other tests leave things in a session, and because Spark itself must forget finished queries soon.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERIES_PER_LOAD = 2

# Spark keeps the last 1,000 queries and jobs for its UI, with their plans.
FORGETFUL = {
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "1",
    "spark.ui.retainedDeadExecutors": "1",
    "spark.appStateStore.asyncTracking.enable": "false",
}
# Queries are tiny here, so what costs time is compiling.
QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.files.minPartitionNum": "1",
}


def main(table: str, queries: int) -> None:
    import delta_ds

    spark = _session()
    delta_ds.register(spark)
    samples = []
    for number in range(1, queries + 1):
        if number % QUERIES_PER_LOAD == 1:
            frame = spark.read.format("pydelta").load(table)
        _query(frame, number)
        if number in (queries // 10, queries // 2, queries):
            samples.append(_sample(spark))
    print(json.dumps(samples))
    spark.stop()


def _session() -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.driver.memory", "512m")
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
    settings = {**FORGETFUL, **QUICK, "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _query(frame: DataFrame, number: int) -> None:
    """A query with filters that differ from one to the next, on a partition, statistics and deleted rows."""
    query = frame.where(f"id >= {number % 7} AND part <> {number % 3}")
    rows = query.collect()
    if not rows:
        raise RuntimeError(f"query {number} found no rows")
    if number % 100 == 1:
        plan = query._jdf.queryExecution().optimizedPlan().toString()
        if "pydelta" not in plan:
            raise RuntimeError(f"query {number} does not read natively:\n{plan}")


def _sample(spark: SparkSession) -> dict[str, Any]:
    context: Any = spark.sparkContext
    system, runtime = context._jvm.java.lang.System, context._jvm.java.lang.Runtime.getRuntime()
    # Twice in turn: each side frees what the other let go of.
    for _ in range(5):
        gc.collect()
        system.gc()
        system.runFinalization()
    return {
        "proxies": len(context._gateway.gateway_property.pool),
        "heap_mb": (runtime.totalMemory() - runtime.freeMemory()) / (1 << 20),
        "python_mb": _resident_mb(),
    }


def _resident_mb() -> float | None:
    """What this process holds in memory now; None where the system does not say."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    lines = status.read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
