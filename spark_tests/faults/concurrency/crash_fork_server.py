"""A process that lets writers be born and die: for each job it forks one, and tells how that one ended."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from delta_ds.api.delta_log import DeltaLog
from spark_tests.faults.concurrency.append_worker import NO_ROWS, append, row
from spark_tests.faults.concurrency.faults import Calls, Fault, injected
from spark_tests.faults.concurrency.workers import fork_each

EVERY_STEP = {
    "delta.checkpointInterval": "1", "delta.logRetentionDuration": "interval 1 day",
    "delta.deletedFileRetentionDuration": "interval 1 day",
}  # fmt: skip


def rehearse(folder: Path) -> None:
    for policy in ("classic", "v2"):
        table = folder / policy
        properties = {**EVERY_STEP, "delta.checkpointPolicy": policy}
        DeltaLog(table).write(NO_ROWS, options=properties)
        for number in range(3):
            for file in (table / "_delta_log").glob("*.*"):
                os.utime(file, (0, 0))
            append(DeltaLog(table), "cold", row(0, number))


def live(job: dict[str, Any]) -> None:
    """The life of one writer."""
    calls = Calls(job["folder"], Fault(**job["fault"]) if job["fault"] else None)
    with injected(calls, hidden_names=job["hidden_names"]):
        append(DeltaLog(job["folder"]), "cold", row(0, job["number"]))
    Path(job["seen"]).write_text(json.dumps(calls.seen))


if __name__ == "__main__":
    fork_each(rehearse, live)
