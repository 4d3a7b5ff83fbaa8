"""A process with a Spark session of its own that runs commands of `DeltaTable` on some tables, by turns.

At the end it may be killed in the middle of a last command, on a table of its own.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delta_ds.api.delta_log import DeltaLog
from spark_tests.faults.concurrency import row_race_worker
from spark_tests.faults.concurrency.faults import Calls, What, injected, kind_of
from spark_tests.faults.concurrency.row_model import (
    APPEND,
    DELETE,
    MERGE,
    NAMES,
    PURGE,
    UPDATE,
    Command,
    from_json,
)
from spark_tests.faults.concurrency.row_race_worker import Step, race
from spark_tests.faults.concurrency.workers import serve

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.spark.api.table import DeltaTable

SAID = "spark.databricks.delta.commitInfo.userMetadata"


_sessions: list[SparkSession] = []


def session(job: dict[str, Any]) -> SparkSession:
    """In the JVM of a host where the job names one, else with one of its own."""
    import delta_ds
    from spark_tests.faults.concurrency.spark_host import own_session, shared_session

    if job["connection"] is None:
        spark = own_session(str(Path(job["folder"], f"warehouse-{job['writer']}")))
    else:
        port, secret = job["connection"]
        spark = shared_session(port, secret, os.environ)
    delta_ds.register(spark)
    _sessions.append(spark)
    return spark


def run(spark: SparkSession, log: DeltaLog, command: Command, said: str) -> None:
    """Do a command as one commit."""
    from delta_ds import DeltaTable

    spark.conf.set(SAID, said)
    path = log.storage.url
    if command.kind == APPEND:
        frame(spark, command).write.format("pydelta").mode("append").option("userMetadata", said).save(path)
        return
    table = DeltaTable.forPath(spark, path)
    if command.kind == DELETE:
        table.delete(command.condition)
    elif command.kind == UPDATE:
        table.update(command.condition, {"value": "value + 1"})
    elif command.kind == MERGE:
        merge(spark, table, command)
    else:
        optimize = table.optimize()
        if command.parts and log.snapshot().partition_columns:
            optimize = optimize.where(command.condition)
        optimize.executePurge() if command.kind == PURGE else optimize.executeCompaction()


def frame(spark: SparkSession, command: Command) -> DataFrame:
    return spark.createDataFrame(list(command.rows), ", ".join(f"{name} bigint" for name in NAMES))


def merge(spark: SparkSession, table: DeltaTable, command: Command) -> None:
    places = f"t.part IN ({', '.join(map(str, command.parts))})" if command.parts else "true"
    rows = frame(spark, command).alias("s")
    merge = (
        table.alias("t")
        .merge(rows, f"t.id = s.id AND {places}")
        .whenMatchedDelete("s.value < 0")
        .whenMatchedUpdate(set={"value": "(t.value * 3 + s.value) % 1000003"})
        .whenNotMatchedInsert("s.value >= 0", {name: f"s.{name}" for name in NAMES})
    )
    if command.modulus:
        rest = f"t.id % {command.modulus} = {command.rest} AND {places}"
        merge = merge.whenNotMatchedBySourceDelete(rest)
    merge.execute()


class DeathAt(Calls):
    """Death right before a call; see `faults`."""

    def __init__(self, folder: str, what: What) -> None:
        super().__init__(folder)
        self._root = os.path.abspath(folder)
        self._what = what

    def run(
        self, call: str, path: Any, action: Callable[[], Any], half: Callable[[], Any] | None = None
    ) -> Any:
        found = os.path.abspath(os.fspath(path))
        if found.startswith(self._root + os.sep) and (call, kind_of(found, self._root)) == self._what:
            die()
        return super().run(call, path, action, half)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def last(job: dict[str, Any]) -> None:
    """Run a command, and be killed in the middle of it: right before a call, or after some time."""
    (spark,), how = _sessions, job["dies"]
    log, command = DeltaLog(how["url"]), from_json(how["command"])
    if "after_seconds" in how:
        threading.Timer(how["after_seconds"], die).start()
        run(spark, log, command, "killed")
        die()
    with injected(DeathAt(how["url"], tuple(how["at"]))) as calls:
        run(spark, log, command, "killed")
    raise AssertionError(f"it has not come to {how['at']}, but to {calls.seen}")


def work(job: dict[str, Any]) -> Callable[[], list[Step]]:
    spark = session(job)

    def act() -> list[Step]:
        given = job["urls"], job["writer"], job["seed"], job["seconds"]
        return race(*given, lambda log, command, said: run(spark, log, command, said))

    return act


def rehearse(folder: Path) -> None:
    """Only what needs no session."""
    import delta_ds.spark.api.table  # noqa: F401

    row_race_worker.rehearse(folder)


if __name__ == "__main__":
    serve(work, rehearse, last)
