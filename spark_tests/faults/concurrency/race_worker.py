"""A process that appends, or writes checkpoints, and notes which appends were refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import DeltaConcurrentModificationException
from spark_tests.faults.concurrency.append_worker import NO_ROWS, row
from spark_tests.faults.concurrency.workers import serve

Outcome = dict[str, Any]


def work(job: dict[str, Any]) -> Callable[[], list[Outcome]]:
    """Options may hold `{number}`; with `again`, what was refused is tried until it comes through.

    With `checkpoints`, checkpoints of the newest version are written instead.
    """
    log = DeltaLog(job["url"])

    def attempt(number: int, outcome: Outcome) -> bool:
        options = {name: text.format(number=number) for name, text in job.get("options", {}).items()}
        try:
            outcome["version"] = log.write(row(job["writer"], number), options=options)
        except DeltaConcurrentModificationException as error:
            outcome["refused"].append(type(error).__name__)
            return not job.get("again")
        return True

    def append(number: int) -> Outcome:
        outcome: Outcome = {"number": number, "version": None, "refused": []}
        while not attempt(number, outcome):
            pass
        return outcome

    def checkpoint(number: int) -> Outcome:
        return {"number": number, "version": log.checkpoint(), "refused": []}

    act = checkpoint if job.get("checkpoints") else append
    return lambda: [act(number) for number in range(job["commits"])]


def rehearse(folder: Path) -> None:
    DeltaLog(folder).write(NO_ROWS)
    for checkpoints in (False, True):
        work({"url": str(folder), "writer": 0, "commits": 2, "checkpoints": checkpoints})()


if __name__ == "__main__":
    serve(work, rehearse)
