"""`vacuum`: delete files that no version within the retention needs.

`DeltaTable.maintain`: what is due, with the files rewritten by Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.commands.health import CHECKPOINT, STATISTICS, VACUUM
from delta_ds.kernel.commands.maintain import (
    Maintenance,
    Runners,
    course,
    examine,
    file_runners,
    run_log_step,
)
from delta_ds.kernel.commands.vacuum.inventory import COLUMNS
from delta_ds.kernel.format.operations import COMPUTE_STATS, VACUUM_END
from delta_ds.kernel.format.options.settings import RETENTION_CHECK, VACUUM_LOGGING
from delta_ds.spark.base.kinds.frames import frame, nothing, progress_of
from delta_ds.spark.base.kinds.session_facts import engine_info
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.base.session_conf import is_set
from delta_ds.spark.commands.optimize import optimize_files, session_request
from delta_ds.spark.engines.connect import log_calls
from delta_ds.spark.engines.connect.connect_bridge import ask, run
from delta_ds.spark.engines.large_tables import find_needed_files
from delta_ds.spark.errors.translation import delta_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from delta_ds.spark.commands.handle import Handle


def run_vacuum(
    handle: Handle,
    retention_hours: float | None,
    dry_run: bool,
    mode: str,
    inventory: DataFrame | None,
) -> DataFrame:
    """Delete what nobody needs any more, or say what that is; arguments as for `DeltaTable.vacuum`.

    Returns
    -------
    DataFrame
        Without rows and columns; of a dry run one column `path`, full addresses.
    """
    if mode.upper() not in ("FULL", "LITE"):
        raise InvalidOptionError(f"the mode of vacuum is FULL or LITE, not {mode!r}. Nothing was deleted")
    spark = handle.spark
    how: dict[str, Any] = {
        "retention_hours": retention_hours,
        "mode": mode.lower(),
        "inventory": None if inventory is None else _pack(inventory),
        "retention_check": is_set(spark, RETENTION_CHECK.full_name, True),
        "record": is_set(spark, VACUUM_LOGGING.full_name, True),
    }
    if isinstance(handle.log, DeltaLog):
        how["find_needed"] = partial(find_needed_files, spark)
    if dry_run:
        found = ask(handle.log, log_calls.unneeded_files, **how)
        root = f"file:{handle.where}" if handle.where.startswith("/") else handle.where
        rows = [{"path": f"{root.rstrip('/')}/{path}"} for path in found]
        return frame(spark, rows, {"path": "string"})
    with progress_of(spark):
        run(handle.log, log_calls.vacuum_table, **how)
    return nothing(spark)


def _pack(inventory: DataFrame) -> bytes:
    """The rows of an inventory, small enough to travel to a server: paths compress well."""
    import pyarrow as pa
    from pyspark.sql.functions import col

    known = {name.lower(): name for name in COLUMNS}
    # Of other names nothing is asked; which are missing, and of what types they have to be, the kernel says.
    chosen = [(name, known[name.lower()]) for name in inventory.columns if name.lower() in known]
    with delta_errors():
        rows = inventory.select(*(col(quoted(name)).alias(plain) for name, plain in chosen)).toArrow()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue())


def run_maintenance(handle: Handle, vacuum: bool, dry_run: bool) -> Maintenance:
    """Run the commands that are due; see `DeltaTable.maintain`."""
    request = session_request(handle.spark)
    runners: Runners = {
        **file_runners(partial(optimize_files, handle), request),
        **{command: partial(_run_log_step, handle, command) for command in (STATISTICS, VACUUM, CHECKPOINT)},
    }
    with progress_of(handle.spark):
        return course(
            lambda: ask(handle.log, examine, request, vacuum), runners, vacuum=vacuum, dry_run=dry_run
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
