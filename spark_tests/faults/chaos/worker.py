"""One process of the load: does one thing after the other to the table, and notes each before and after.

A note is a line of JSON, written at once: whoever is killed has said what it was about to do.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import signal
import time
import traceback
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import (
    CommitFailedError,
    DeltaConcurrentModificationException,
    DeltaError,
    UncertainWriteError,
)
from delta_ds.kernel.commands.vacuum import vacuum
from delta_ds.kernel.log import cleanup
from delta_ds.kernel.log.checkpoint_write import writer as checkpoint_writer
from spark_tests.faults.chaos.local_faults import Chances
from spark_tests.faults.concurrency import row_commands
from spark_tests.faults.concurrency.faults import injected
from spark_tests.faults.concurrency.row_model import APPEND, DELETE, MERGE, OPTIMIZE, PURGE, UPDATE, Choices

READ, VACUUM, FEED = "read", "vacuum", "feed"
# How often each kind is chosen by a writer that has made its appends.
KINDS = (
    (APPEND,) * 4 + (DELETE,) * 2 + (UPDATE,) * 3 + (MERGE,) * 4 + (OPTIMIZE,) * 2 + (PURGE,) + (READ,) * 3
)

_AFTER_AN_ERROR = 1.0  # seconds

Job = dict[str, Any]


class Notes:
    """The file that a process writes its notes to."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, **note: Any) -> None:
        os.write(self._file, (json.dumps(note) + "\n").encode())


class Worker:
    """Does what its job says.

    Parameters
    ----------
    job
        `url` and `options` of the table; `events`, the table that a stream reads; `writer`, a number that no other
        process has; `seed`; `role`: `writer`, `reader`, `vacuum` or `feeder` of the stream; `appends`, which a writer
        makes first; `ends`, on the monotonic clock; `skew_hours` of its clock; `notes`, a folder; `retention_hours`
        of VACUUM; `fault_rate` of a local disk.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._notes = Notes(Path(job["notes"], f"{job['writer']}.jsonl"))
        self._choices = Choices(job["writer"], job["seed"])
        self._random = random.Random(f"kinds {job['seed']} {job['writer']}")
        self._number = 0

    def run(self) -> None:
        job = self._job
        _skew(job["skew_hours"])
        with self._faults():
            while time.monotonic() < job["ends"]:
                self._step(self._kind())
                if job["role"] != "writer":
                    time.sleep(self._random.uniform(0, 2 * job["pause"]))

    def _faults(self) -> AbstractContextManager[Any]:
        rate = self._job["fault_rate"]
        if not rate:
            return nullcontext()
        seed = self._random.randrange(1 << 30)
        return injected(Chances(self._job["url"], seed, rate, lambda kind: self._notes.write(fault=kind)))

    def _kind(self) -> str:
        role = self._job["role"]
        if role != "writer":
            return {"reader": READ, "vacuum": VACUUM, "feeder": FEED}[role]
        return APPEND if self._number < self._job["appends"] else self._random.choice(KINDS)

    def _step(self, kind: str) -> None:
        said = f"{self._job['writer']}-{self._number}"
        self._number += 1
        command = None if kind in (READ, VACUUM) else self._choices.command(APPEND if kind == FEED else kind)
        self._notes.write(
            said=said, kind=kind, command=command and asdict(command), began=time.monotonic_ns()
        )
        try:
            # A handle of its own now and then: some users keep one, some open the table each time.
            if self._number % 5 == 1:
                url = self._job["events" if kind == FEED else "url"]
                self._log = DeltaLog(url, self._job["options"])
            outcome = self._do(kind, command, said)
        except DeltaError as error:
            outcome = {"error": type(error).__name__, "text": error.text, "told": told(error)}
            time.sleep(self._random.uniform(0, _AFTER_AN_ERROR))
        except Exception:
            outcome = {"unnamed": traceback.format_exc()}
        self._notes.write(said=said, ended=time.monotonic_ns(), **outcome)

    def _do(self, kind: str, command: Any, said: str) -> dict[str, Any]:
        if kind == READ:
            snapshot = self._log.snapshot()
            rows = sorted(row_commands.rows_of(snapshot.scan().to_arrow()))
            return {"version": snapshot.version, "rows": rows}
        if kind == VACUUM:
            hours = self._job["retention_hours"]
            result = vacuum(self._log, hours, retention_check=False)
            return {"version": None, "deleted": len(result.paths)}
        return {"version": row_commands.run(self._log, command, said)}


def told(error: DeltaError) -> str:
    """What an error says of the commit."""
    if isinstance(error, UncertainWriteError):
        return "uncertain"
    lost = isinstance(error, (DeltaConcurrentModificationException, CommitFailedError))
    return "conflict" if lost else "refused"


class _SkewedTime:
    """Stands for the module `time` in modules that ask it for seconds."""

    def __init__(self, hours: float) -> None:
        self._seconds = hours * 3600
        self._time = time.time

    def time(self) -> float:
        return self._time() + self._seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


def _skew(hours: float) -> None:
    """Put the clock of the kernel forward or back; requests to stores are signed by the true one."""
    if not hours:
        return
    ahead, true = round(hours * 3600 * 1e9), time.time_ns
    time.time_ns = lambda: true() + ahead
    for module in (cleanup, checkpoint_writer):
        module.time = _SkewedTime(hours)  # type: ignore[attr-defined]


def work(job: Job) -> None:
    """The whole life of a process."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(2)
    with Path(job["notes"], f"{job['writer']}.trace").open("w") as trace:
        faulthandler.register(signal.SIGUSR1, trace, all_threads=True)
        Worker(job).run()


def rehearse(folder: Path) -> None:
    """Everything once, on a local disk."""
    log = DeltaLog(folder / "table")
    row_commands.create(log, PROPERTIES, partitioned=True)
    choices = Choices(0, 0)
    for number, kind in enumerate((APPEND, MERGE, UPDATE, DELETE, APPEND, PURGE, OPTIMIZE) * 2):
        row_commands.run(log, choices.command(kind), str(number))
    log.snapshot().scan().to_arrow()
    vacuum(log, 0, retention_check=False)


# Of the table of the load.
PROPERTIES = {
    "delta.isolationLevel": "WriteSerializable",
    "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.checkpointPolicy": "v2",
}
