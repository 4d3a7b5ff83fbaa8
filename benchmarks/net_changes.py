"""Net changes beside the window query that a user of delta-spark writes for the last change of each key.

    python -m benchmarks.net_changes --rows 1000000 --delta-spark-python .venv-interop/bin/python

A table of so many rows, of which each of six updates changes a fifth. Every competitor has a Spark session of its own,
on two cores, and takes turns with the others; the kernel has none. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

UPDATES = 6
JAR = "io.delta:delta-spark_4.2_2.13:4.4.0"
HERE = Path(__file__).resolve().parents[1]


def session(fmt: str) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "8").config("spark.driver.memory", "4g")
    if fmt == "delta":
        builder = builder.config("spark.jars.packages", JAR)
        builder = builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension").config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    if fmt == "pydelta":
        import delta_ds

        delta_ds.register(spark)
    return spark


def make(path: str, rows: int) -> None:
    from delta_ds import DeltaTable

    spark = session("pydelta")
    frame = spark.range(rows).selectExpr(
        "id", "concat('customer ', id) AS name", "id * 1.5D AS amount", "id % 97 AS kind"
    )
    frame.write.format("pydelta").option("delta.enableChangeDataFeed", "true").save(path)
    table = DeltaTable.forPath(spark, path)
    for number in range(UPDATES):
        table.update(f"(id + {number}) % 5 = 0", {"amount": "amount + 1"})


def naive(spark: Any, fmt: str, path: str) -> Any:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    feed = spark.read.format(fmt).option("readChangeFeed", "true").option("startingVersion", 1).load(path)
    last = Window.partitionBy("id").orderBy(F.desc("_commit_version"))
    found = feed.where("_change_type <> 'update_preimage'").withColumn("n", F.row_number().over(last))
    return found.where("n = 1").drop("n")


def cases(fmt: str, path: str) -> dict[str, Callable[[], int]]:
    """What is measured: by name, a function that answers how many rows there are."""
    if fmt == "kernel":
        from delta_ds import DeltaLog

        def kernel(net: str) -> int:
            changes = DeltaLog(path).changes(1, net=net, keys=["id"])
            return sum(batch.num_rows for batch in changes.to_batches())

        return {f"`{net}`": lambda net=net: kernel(net) for net in ("latest", "net")}  # type: ignore[misc]
    spark = session(fmt)

    def run(make: Callable[[], Any]) -> Callable[[], int]:
        def noop() -> int:
            frame = make()
            frame.write.format("noop").mode("overwrite").save()
            return 0

        return noop

    found = {"window query": run(lambda: naive(spark, fmt, path))}
    if fmt == "pydelta":
        read = spark.read.format(fmt).options(readChangeFeed=True, startingVersion=1, keys="id")
        for by, size in (("one task", "1g"), ("Spark's plan", "256k")):
            for net in ("latest", "net"):
                asked = {"net": net, "maxPartitionBytes": size}
                found[f"`{net}`, {by}"] = run(lambda asked=asked: read.options(**asked).load(path))  # type: ignore[misc]
    return found


def worker(fmt: str, path: str, rounds: int) -> None:
    todo, taken = cases(fmt, path), {}
    for name, case in todo.items():
        case()  # not counted: what is compiled and opened once
        seconds = []
        for _ in range(rounds):
            started = time.perf_counter()
            case()
            seconds.append(time.perf_counter() - started)
        taken[name] = median(seconds)
    print("RESULT " + json.dumps(taken), flush=True)


def measured(python: str, *arguments: str) -> dict[str, float]:
    command = [python, "-m", "benchmarks.net_changes", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(HERE), "PYSPARK_PYTHON": python}
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE, env=environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if done.returncode or ("--worker" in arguments and not lines):
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    found: dict[str, float] = json.loads(lines[-1][len("RESULT ") :]) if lines else {}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delta-spark-python", help="of an environment with delta-spark 4.4")
    parser.add_argument("--worker", nargs=2, metavar=("FORMAT", "PATH"), help=argparse.SUPPRESS)
    parser.add_argument("--make", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make(options.make, options.rows)
        return
    if options.worker:
        worker(*options.worker, options.rounds)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/table"
        measured(sys.executable, "--rows", str(options.rows), "--make", path)
        sides = {
            "delta-spark": (options.delta_spark_python, "delta"),
            "pydelta, Spark": (sys.executable, "pydelta"),
        }
        sides["pydelta, kernel"] = (sys.executable, "kernel")
        found = {
            f"{who}: {name}": seconds
            for who, (python, fmt) in sides.items()
            if python
            for name, seconds in measured(
                python, "--rounds", str(options.rounds), "--worker", fmt, path
            ).items()
        }
    changes = options.rows * UPDATES * 2 // 5
    print(f"{options.rows:,} rows, {changes:,} rows of changes\n\n| | seconds | ratio |\n|---|---|---|")
    first = next(iter(found.values()))
    for name, seconds in found.items():
        print(f"| {name} | {seconds:.2f} | {seconds / first:.2f} |")


if __name__ == "__main__":
    main()
