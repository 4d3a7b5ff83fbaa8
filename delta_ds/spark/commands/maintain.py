"""`DeltaTable.maintain`: what is due, with the files rewritten by Spark."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.commands.health import CHECKPOINT, STATISTICS, VACUUM
from delta_ds.kernel.commands.maintain import (
    Maintenance,
    Runners,
    course,
    examine,
    file_runners,
    run_log_step,
)
from delta_ds.kernel.format.operations import COMPUTE_STATS, VACUUM_END
from delta_ds.spark.base.kinds.origin import engine_info
from delta_ds.spark.base.progress import progress_of
from delta_ds.spark.commands.optimize import optimize_files, session_request
from delta_ds.spark.commands.vacuum import run_vacuum
from delta_ds.spark.engines.connect import log_calls
from delta_ds.spark.engines.connect.connect_bridge import ask, fetch, run

if TYPE_CHECKING:
    from delta_ds.spark.commands.handle import Handle


def run_maintenance(handle: Handle, vacuum: bool, dry_run: bool) -> Maintenance:
    """Run the commands that are due; see `DeltaTable.maintain`."""
    request = session_request(handle.spark)
    runners: Runners = {
        **file_runners(partial(optimize_files, handle), request),
        **{command: partial(_run_log_step, handle, command) for command in (STATISTICS, VACUUM, CHECKPOINT)},
    }
    with progress_of(handle.spark):
        return course(
            lambda: fetch(handle.log, examine, request, vacuum), runners, vacuum=vacuum, dry_run=dry_run
        )


_IN_HISTORY = {STATISTICS: COMPUTE_STATS.name, VACUUM: VACUUM_END.name}


def _run_log_step(handle: Handle, command: str) -> Mapping[str, Any]:
    before = ask(handle.log, log_calls.newest_version)
    if command == VACUUM:
        run_vacuum(handle, None, dry_run=False, mode="FULL", inventory=None)
    else:
        run(handle.log, run_log_step, command, engine_info())
    # What runs on a server of Spark Connect has no answer but the history.
    name = _IN_HISTORY.get(command)
    found = {} if name is None else ask(handle.log, log_calls.metrics_since, before, name)
    return {metric: int(value) for metric, value in found.items()}
