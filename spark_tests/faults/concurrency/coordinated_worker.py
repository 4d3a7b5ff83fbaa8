"""Processes that commit to catalog-managed tables: race, transfer, and are killed between the steps of a commit."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

import delta_ds
from delta_ds import DeltaLog
from delta_ds.kernel.storage.coordination.log_store import CoordinatedLogStore
from spark_tests.faults.concurrency.workers import fork, load_modules


def die(*_: Any, **__: Any) -> None:
    """End as by a power failure, with nothing cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)


def append(log: DeltaLog, *numbers: int) -> int | None:
    return log.write(pa.table({"id": pa.array(numbers, pa.int64())}))


def killed(log: DeltaLog, step: str) -> None:
    """Commit, and be killed before or after a step of it."""
    store: Any = CoordinatedLogStore
    when, _, name = step.partition(" ")
    done = getattr(store, name)

    def run(*arguments: Any, **named: Any) -> Any:
        if when == "before":
            die()
        answer = done(*arguments, **named)
        die()
        return answer

    setattr(store, name, run)
    append(log, 1)


def many(log: DeltaLog, first: int, count: int) -> None:
    """Commits of one number each."""
    for number in range(first, first + count):
        append(log, number)


def transfers(debits: DeltaLog, credits: DeltaLog, count: int) -> None:
    """Take from one table, then give to the other."""
    for number in range(count):
        append(debits, number)
        append(credits, number)


def work(job: list[str]) -> None:
    """What one process does."""
    kind, url, *rest = job

    def table(name: str, path: str) -> DeltaLog:
        return DeltaLog(path, {"commitCoordinator": "sqlite", "coordinatorUrl": url, "catalogTable": name})

    if kind == "killed":
        killed(table(rest[0], rest[1]), rest[2])
    elif kind == "many":
        many(table(rest[0], rest[1]), int(rest[2]), int(rest[3]))
    else:
        transfers(table(rest[0], rest[1]), table(rest[2], rest[3]), int(rest[4]))


def rehearse(folder: Path) -> None:
    log = delta_ds.catalog("sqlite", str(folder / "rehearsal.db")).create(
        "rehearsal", str(folder / "rehearsal")
    )
    append(log, 1)
    append(log, 2)


def main() -> None:
    """Fork a process for each job, and tell how they ended."""
    load_modules(rehearse)
    jobs = json.loads(sys.stdin.read())
    children = [fork(lambda job=job: work(job)) for job in jobs]
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]))


if __name__ == "__main__":
    main()
