"""A process that lets commands be run and killed: for each job it forks one, and tells how that one ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.commands.vacuum.command import vacuum
from spark_tests.faults.concurrency import row_commands
from spark_tests.faults.concurrency.faults import Calls, Fault, injected
from spark_tests.faults.concurrency.row_model import FIRST_ROWS, MERGE, OPTIMIZE, Command, from_json
from spark_tests.faults.concurrency.workers import fork_each


def clean(log: DeltaLog) -> None:
    """Delete what the newest version does not need."""
    vacuum(log, 0, retention_check=False)


def rehearse(folder: Path) -> None:
    for name, value in (("delta.enableDeletionVectors", "true"), ("delta.enableChangeDataFeed", "true")):
        log = DeltaLog(folder / name)
        row_commands.create(log, {name: value}, partitioned=True)
        for number, kind in enumerate((MERGE, OPTIMIZE)):
            row_commands.run(log, Command(kind, FIRST_ROWS[:3]), str(number))
        clean(log)


def live(job: dict[str, Any]) -> None:
    """One command; without one, VACUUM."""
    calls = Calls(job["folder"], Fault(**job["fault"]) if job["fault"] else None)
    log = DeltaLog(job["folder"])
    with injected(calls):
        if job["command"] is None:
            clean(log)
        else:
            row_commands.run(log, from_json(job["command"]), "killed")
    Path(job["seen"]).write_text(json.dumps(calls.seen))


if __name__ == "__main__":
    fork_each(rehearse, live)
