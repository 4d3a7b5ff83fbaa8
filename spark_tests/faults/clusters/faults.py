"""Faults of a running application: tasks that fail once or stay behind, executors that are killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

SCENARIO = "clusters.scenario"
_PATIENCE = 120.0


def fails_once(column: Column, partition: int = 1) -> Column:
    """The values of a bigint column; the first attempt of the task of one partition fails in the middle."""
    from pyspark.sql.functions import udf

    def value(number: int) -> int:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0 and context.partitionId() == partition and number % 100 == 50:
            raise RuntimeError("fails on its first attempt")
        return number

    return udf(value, "bigint")(column)


def waits_until(marker: Path, column: Column, *, first_attempt: bool = False, seconds: float = 20) -> Column:
    """The values of a bigint column; tasks wait in their middle until there is a file.

    Parameters
    ----------
    marker
        The file. Each task that waits makes one beside it, called `<marker>.<partition>`.
    first_attempt
        Only the first attempt of the task of partition 0 waits.
    seconds
        How long at most.
    """
    from pyspark.sql.functions import udf

    place = str(marker)

    def value(number: int) -> int:
        import os
        import time

        from pyspark import TaskContext

        if number % 100 == 50 and not os.path.exists(place):
            context = TaskContext.get()
            assert context is not None
            if not first_attempt or (context.attemptNumber() == 0 and context.partitionId() == 0):
                open(f"{place}.{context.partitionId()}", "w").close()
                end = time.monotonic() + seconds
                while not os.path.exists(place) and time.monotonic() < end:
                    time.sleep(0.02)
        return number

    return udf(value, "bigint")(column)


class Killer(threading.Thread):
    """Kills an executor as soon as something is there.

    Parameters
    ----------
    spark
        A classic session on a cluster.
    when
        Asked again and again.
    marker
        A file that is made when the executor is dead.

    Attributes
    ----------
    killed
        The process id; 0: none yet.
    """

    def __init__(self, spark: SparkSession, when: Callable[[], bool], marker: Path | None = None) -> None:
        super().__init__(daemon=True)
        self._port = str(spark.sparkContext.getConf().get("spark.driver.port"))
        self._when, self._marker = when, marker
        self._stop_asked = threading.Event()
        self.killed = 0

    def run(self) -> None:
        while not self._stop_asked.wait(0.01):
            if self._when():
                running = executors(self._port)
                if running:
                    os.kill(running[0], signal.SIGKILL)
                    self.killed = running[0]
                    break
        if self._marker is not None:
            self._marker.touch()

    def __enter__(self) -> Killer:
        self.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._stop_asked.set()
        self.join()
        assert kind is not None or self.killed, "nothing was killed: the moment never came"


def new_file(table: Path) -> Callable[[], bool]:
    """Whether there is a data file below a table that was not there when this was called."""

    def below() -> set[str]:
        return {str(file) for file in table.rglob("*.parquet") if "_delta_log" not in file.parts}

    before = below()
    return lambda: bool(below() - before)


def new_marker(marker: Path) -> Callable[[], bool]:
    """Whether a task waits in `waits_until`."""
    return lambda: any(marker.parent.glob(f"{marker.name}.*"))


def executors(driver_port: str) -> list[int]:
    """The process ids of the executors of a driver on this machine, the oldest first."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in command and any(
            word.startswith(b"spark://CoarseGrainedScheduler@") and word.endswith(f":{driver_port}".encode())
            for word in command
        ):
            found.append(int(entry.name))
    return sorted(found)


def wait_for_executors(spark: SparkSession, count: int) -> None:
    """Wait until so many executors are registered."""
    end = time.monotonic() + _PATIENCE
    context: Any = spark.sparkContext
    while len(context._jsc.sc().statusTracker().getExecutorInfos()) - 1 < count:
        assert time.monotonic() < end, "the executors do not come"
        time.sleep(0.05)


def failed_tasks(event_log: Path) -> Counter[str]:
    """How many attempts of tasks did not end well, by the scenario that they belong to, and `speculative` ones."""
    scenario: dict[int, str] = {}
    found: Counter[str] = Counter()
    for event in _events(event_log):
        kind = event["Event"]
        if kind == "SparkListenerJobStart":
            name = (event.get("Properties") or {}).get(SCENARIO, "")
            scenario.update(dict.fromkeys(event["Stage IDs"], name))
        elif kind == "SparkListenerTaskEnd":
            name = scenario.get(event["Stage ID"], "")
            found[name] += event["Task End Reason"]["Reason"] != "Success"
            found[f"{name}.speculative"] += bool(event["Task Info"]["Speculative"])
    return found


def _events(event_log: Path) -> Iterable[dict[str, Any]]:
    for file in sorted(event_log.iterdir()):
        with file.open() as lines:
            for line in lines:
                yield json.loads(line)
