"""A process that runs commands by the kernel on some tables in turn until its time is over, and notes all it did."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import DeltaConcurrentModificationException
from spark_tests.faults.concurrency import row_commands
from spark_tests.faults.concurrency.row_model import (
    APPEND,
    DELETE,
    MERGE,
    OPTIMIZE,
    PURGE,
    UPDATE,
    Choices,
    Command,
)
from spark_tests.faults.concurrency.workers import serve

# How often each kind is chosen.
KINDS = (APPEND,) * 4 + (DELETE,) * 2 + (UPDATE,) * 3 + (MERGE,) * 4 + (OPTIMIZE,) * 2 + (PURGE,)

Step = dict[str, Any]
Run = Callable[[DeltaLog, Command, str], Any]


def race(urls: Sequence[str], writer: int, seed: int, seconds: float, run: Run) -> list[Step]:
    """Run commands by chance until the time is over.

    Parameters
    ----------
    urls
        The tables, by turns.
    writer
        The number of the process.
    run
        Does a command on a table, with user metadata.

    Returns
    -------
    list of dict
        `table`; `said`, the user metadata; `command`; `before` and `after`, the newest versions then; `error`, with
        `winner`, `winning_operation` and `text`, where it was refused.
    """
    logs = [DeltaLog(url) for url in urls]
    choices, chance = Choices(writer, seed), random.Random(f"kinds {seed} {writer}")
    end = time.monotonic() + seconds
    steps: list[Step] = []
    while time.monotonic() < end:
        number = len(steps)
        log, command = logs[(writer + number) % len(logs)], choices.command(chance.choice(KINDS))
        said = f"{writer}-{number}"
        step: Step = {
            "table": log.storage.url,
            "said": said,
            "command": asdict(command),
            "before": _newest(log),
        }
        try:
            run(log, command, said)
        except DeltaConcurrentModificationException as error:
            step |= {
                "error": type(error).__name__,
                "winner": error.winning_version,
                "winning_operation": error.winning_operation,
                "text": str(error),
            }
        steps.append({**step, "after": _newest(log)})
    return steps


def _newest(log: DeltaLog) -> int:
    return log.start_transaction().read_version


def work(job: dict[str, Any]) -> Callable[[], list[Step]]:
    _hurry()
    return lambda: race(job["urls"], job["writer"], job["seed"], job["seconds"], row_commands.run)


def _hurry() -> None:
    """Processor time for commits, and none for what other tests look at: threads inside Arrow, durable files."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    os.fsync = os.fdatasync = lambda file: None  # type: ignore[assignment]


def rehearse(folder: Path) -> None:
    for vectors in ("true", "false"):
        log = DeltaLog(folder / vectors)
        row_commands.create(log, {"delta.enableDeletionVectors": vectors}, partitioned=True)
        choices = Choices(0, 0)
        for number, kind in enumerate((APPEND, MERGE, UPDATE, DELETE, APPEND, PURGE, OPTIMIZE) * 2):
            row_commands.run(log, choices.command(kind), str(number))


if __name__ == "__main__":
    serve(work, rehearse)
