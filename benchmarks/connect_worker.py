"""The measured process of the part `connect`: one client, or one classic session, that runs all cases in turn.

    python -m benchmarks.connect_worker '{"side": "plain server", "format": "pydelta", "table": "/tmp/x", ...}'

Sides are `plain server` (Spark's own, whose Python has the package), `our server` (`pydelta serve --connect`) and
`classic`; the server is a child of this process, so what it uses counts. Prints one JSON object: by case the seconds
and the processor seconds of each round, and what was found. The first round is a warm-up.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import MARK
from benchmarks.process_tree import Watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLAIN, OURS, CLASSIC = SIDES = ("plain server", "our server", "classic")
READS = ("count", "sum by key", "all columns", "range", "join of two ranges")
CHANGES = ("append", "delete a range", "update 1 %", "merge")
_SETTINGS = {
    "spark.master": "local[2]", "spark.driver.memory": "3g", "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "8",
}  # fmt: skip
_SERVER = """
import json, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder
for name, value in json.loads(sys.argv[1]).items():
    builder = builder.config(name, value)
session = builder.getOrCreate()
service = getattr(session._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
print("serving sc://localhost:%s" % getattr(service, "MODULE$").localPort(), flush=True)
sys.stdin.read()
session.stop()
"""


@contextmanager
def session_of(side: str, folder: Path) -> Iterator[SparkSession]:
    """A session of a side."""
    from pyspark.sql import SparkSession

    settings = {**_SETTINGS, "spark.sql.warehouse.dir": f"{folder}/warehouse"}
    if side == CLASSIC:
        builder: SparkSession.Builder = SparkSession.builder
        for name, value in settings.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        yield spark
        spark.stop()
        return
    port = {"spark.connect.grpc.binding.port": "0"}
    if side == PLAIN:
        plugin = {"spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin"}
        command = [sys.executable, "-c", _SERVER, json.dumps({**settings, **plugin, **port})]
    else:
        command = [sys.executable, "-m", "delta_ds", "connect-server", "--port", "0"]
        command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    with (
        open(folder / f"{side}.log", "w") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as server,
    ):
        assert server.stdin is not None and server.stdout is not None
        started = server.stdout.readline()
        if not started.startswith("serving "):
            raise RuntimeError((folder / f"{side}.log").read_text()[-3000:])
        try:
            spark = SparkSession.builder.remote(started.split()[1]).getOrCreate()
            yield spark
            spark.stop()
        finally:
            server.stdin.close()
            server.terminate()


def reads(spark: SparkSession, fmt: str, table: str, rows: int) -> dict[str, Callable[[], Any]]:
    """The queries, by their names."""

    def load() -> Any:
        return spark.read.format(fmt).load(table)

    def between(start: int) -> str:
        return f"id >= {start} AND id < {start + rows // 100}"

    def joined() -> Any:
        one, other = (load().where(between(rows // 4 + n * (rows // 200))) for n in (0, 1))
        return (
            one.alias("a").join(other.alias("b"), "id").selectExpr("sum(a.amount + b.amount) AS s").collect()
        )

    return {
        "count": lambda: load().count(),
        "sum by key": lambda: sorted(map(tuple, load().groupBy("city").sum("amount").collect()))[0][0],
        "all columns": lambda: load().write.format("noop").mode("overwrite").save(),
        "range": lambda: len(load().where(between(rows // 2)).select("id", "amount").collect()),
        "join of two ranges": lambda: round(joined()[0][0], 3),
    }


def changes(spark: SparkSession, table: str, rows: int) -> dict[str, Callable[[], Any]]:
    """The commands, by their names; each changes the table."""
    from delta_ds import DeltaTable

    def opened() -> DeltaTable:
        return DeltaTable.forPath(spark, table)

    source = spark.range(rows - rows // 200, rows + rows // 200).selectExpr("id", "0.5D AS amount")
    merge = opened().alias("t").merge(source.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedUpdate(set={"amount": "s.amount"})
    new = spark.read.format("pydelta").load(table).where(f"id < {rows // 10}")
    return {
        "append": lambda: new.write.format("pydelta").mode("append").save(table),
        "delete a range": lambda: tuple(
            opened().delete(f"id >= 1000 AND id < {1000 + rows // 100}").collect()[0]
        ),
        "update 1 %": lambda: tuple(opened().update("id % 100 = 7", {"amount": "amount + 1"}).collect()[0]),
        "merge": lambda: tuple(
            merge.whenNotMatchedInsert(values={"id": "s.id", "amount": "s.amount"}).execute().collect()[0]
        ),
    }


def measure(spark: SparkSession, settings: Mapping[str, Any]) -> dict[str, Any]:
    """By case the seconds, the processor seconds, and what was found, in every round."""
    fmt, table, rows = settings["format"], settings["table"], settings["rows"]
    if fmt != "parquet":
        import delta_ds

        delta_ds.register(spark)
    found: dict[str, Any] = {}

    def run(name: str, case: Callable[[], Any]) -> None:
        with Watch() as watch:
            answer = case()
        times = found.setdefault(name, {"seconds": [], "cpu": [], "found": []})
        times["seconds"].append(watch.used.seconds)
        times["cpu"].append(watch.used.cpu_s)
        times["found"].append(answer)

    for number in range(settings["rounds"] + 1):
        for name, case in reads(spark, fmt, table, rows).items():
            run(name, case)
        if fmt != "parquet":
            copy = f"{settings['folder']}/copy-{number}"
            shutil.copytree(table, copy)
            for name, case in changes(spark, copy, rows).items():
                run(name, case)
            shutil.rmtree(copy)
    return found


def main() -> None:
    settings = json.loads(sys.argv[1])
    # Spark's workers start from the environment, not from this process' sys.path.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])
    with session_of(settings["side"], Path(settings["folder"])) as spark:
        print(MARK + json.dumps({"spark": spark.version, "cases": measure(spark, settings)}))


if __name__ == "__main__":
    main()
