"""The log calls of `DeltaTable` as functions that can run on a Spark Connect server."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from delta_ds.api.delta_log import DeltaLog
from delta_ds.conditions.transaction import NEW_VERSION_UNCHECKED
from delta_ds.exceptions import (
    NotADeltaTableError,
)
from delta_ds.kernel.commands.clone import CloneResult, shallow_clone
from delta_ds.kernel.commands.deep_clone import deep_clone
from delta_ds.kernel.commands.vacuum import VacuumResult, vacuum
from delta_ds.kernel.format.options.parsing import is_of_store
from delta_ds.kernel.format.options.settings import SCHEMA_LOCATION_ANYWHERE
from delta_ds.kernel.format.properties import DELETED_FILE_RETENTION
from delta_ds.kernel.log.history import read_commit_info
from delta_ds.kernel.log.segment import list_log
from delta_ds.kernel.transaction.alter import columns, definitions
from delta_ds.kernel.transaction.table_log import Timestamp, snapshot_at
from delta_ds.spark.base.session_conf import is_set
from delta_ds.spark.base.table_names import path_option
from delta_ds.spark.engines.connect.connect_bridge import ask, open_log
from delta_ds.spark.engines.connect.needed import reads_in
from delta_ds.spark.engines.portable.stream_source import check_tracked, is_tracked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How many commits of others may follow one before its metrics are asked for, and how long it may have been made ago.
_LOOKED_BACK, _AGO_MS = 200, 24 * 3600 * 1000


def belongs_to_a_table(log: DeltaLog) -> bool:
    """Whether a path is that of a table, or of a folder inside one."""
    try:
        log.snapshot()
    except NotADeltaTableError:
        parent = log.storage.url.rstrip("/").rpartition("/")[0]
        at_the_top = not parent or parent.endswith((":", "/"))
        return not at_the_top and belongs_to_a_table(DeltaLog(parent))
    return True


def at_version(
    log: DeltaLog, version: int | None, function: Callable[..., Any], arguments: Sequence[Any]
) -> Any:
    """The result of `function(snapshot, *arguments)` for a version; None: the newest."""
    return function(log.open_snapshot(version), *arguments)


def detail(log: DeltaLog) -> dict[str, Any]:
    """See `Snapshot.detail`, of the latest version."""
    return {**log.snapshot().detail()}


class _Valid(Exception):
    """Raised when a constraint has passed all checks but that of the rows."""


def constraint_to_check(log: DeltaLog, name: str, expression: str) -> int:
    """Check a new CHECK constraint except against the rows; nothing is written.

    Returns
    -------
    int
        The version whose rows are to be checked before `add_checked_constraint`.

    Raises
    ------
    DeltaError
        As `add_constraint`, for everything but the rows.
    """

    def stop(_: str) -> None:
        raise _Valid

    version = log.snapshot().version
    with suppress(_Valid):
        definitions.add_constraint(log, name, expression, stop)
    return version


def add_checked_constraint(log: DeltaLog, name: str, expression: str, version: int) -> None:
    """Add a CHECK constraint that all rows of a version satisfy.

    Raises
    ------
    DeltaConcurrentModificationException
        There is a newer version, whose rows nobody has checked.
    """

    def check_unchanged(_: str) -> None:
        newest = log.snapshot().version
        if newest != version:
            raise NEW_VERSION_UNCHECKED(
                checked=version, table=log.storage.url, constraint=name, version=newest
            )

    definitions.add_constraint(log, name, expression, check_unchanged)


def blamed(
    log: DeltaLog,
    columns: Sequence[str] | None,
    version: int | None,
    timestamp: Timestamp | None,
    timezone: str,
) -> tuple[int, list[str]]:
    """The version that a blame is of, and its columns as the table calls them.

    Raises
    ------
    DeltaError
        As `DeltaLog.blame`.
    """
    from delta_ds.kernel.commands.blame import Blame

    found = Blame(snapshot_at(log, version, timestamp, timezone), columns=columns)
    return found.scan.snapshot.version, found.scan.schema.names


# --- commands


def metrics_of(log: DeltaLog, transaction: str) -> dict[str, str] | None:
    """The `operationMetrics` of a commit of this very moment; None where it made no commit.

    Parameters
    ----------
    transaction
        Its `txnId`.
    """
    listing = list_log(log.storage)
    for version in sorted(listing.commits, reverse=True)[:_LOOKED_BACK]:
        info = read_commit_info(log.storage, listing.commits[version])
        if info.get("txnId") == transaction:
            return dict(info.get("operationMetrics") or {})
        made = info.get("timestamp")
        if made is not None and int(made) < time.time() * 1000 - _AGO_MS:
            break  # those before it are older still
    return None


def newest_version(log: DeltaLog) -> int:
    """The version of the table at this moment."""
    return log.snapshot().version


def metrics_since(log: DeltaLog, version: int, operation: str) -> dict[str, str]:
    """The `operationMetrics` of the newest commit of an operation after a version; empty where there is none."""
    listing = list_log(log.storage)
    for found in sorted((known for known in listing.commits if known > version), reverse=True):
        info = read_commit_info(log.storage, listing.commits[found])
        if info.get("operation") == operation:
            return dict(info.get("operationMetrics") or {})
    return {}


def clone_to(
    source: DeltaLog, target: str, options: Mapping[str, str], *, shallow: bool, **how: Any
) -> CloneResult:
    """See `shallow_clone` and `deep_clone`; the target is a path, and `options` are for its filesystem."""
    destination = open_log(None, target, options)
    assert isinstance(destination, DeltaLog), "without a session, the log is one of this process"
    return (shallow_clone if shallow else deep_clone)(source, destination, **how)


def identity_step(log: DeltaLog, column: str) -> int:
    """See `kernel.transaction.alter.columns.identity_step`, of the latest version."""
    return columns.identity_step(log.open_snapshot().table_state, column)


def is_shorter_retention(log: DeltaLog, hours: float) -> bool:
    """Whether a retention of VACUUM is shorter than the table's own."""
    kept = DELETED_FILE_RETENTION.of(log.snapshot().metadata.configuration)
    return timedelta(hours=hours) < kept


def metric_of_column(column: str) -> str:
    """The metric of a column of an answer: `num_removed_files` is `numRemovedFiles` in the history."""
    first, *others = column.split("_")
    return first + "".join(word.capitalize() for word in others)


def unneeded_files(log: DeltaLog, *, inventory: bytes | None, **how: Any) -> list[str]:
    """What `vacuum` would delete: files and folders relative to the table. Arguments as for `vacuum_table`."""
    found = _vacuum(log, inventory, dry_run=True, **how)
    return [*found.paths.to_pylist(), *found.folders]


def vacuum_table(log: DeltaLog, *, inventory: bytes | None, **how: Any) -> None:
    """See `vacuum`; the inventory is a stream of Arrow IPC."""
    _vacuum(log, inventory, **how)


def _vacuum(log: DeltaLog, inventory: bytes | None, **how: Any) -> VacuumResult:
    import pyarrow as pa

    rows = None if inventory is None else pa.ipc.open_stream(inventory).read_all()
    return vacuum(log, inventory=rows, **how)


# Where queries have their checkpoints, each under its name, unless they say another place.
_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"


def check_sources(spark: SparkSession, relation: Any, name: str, options: Mapping[str, str]) -> None:
    """Have the server of a client check the sources of a streaming query, see `check_locations`.

    Parameters
    ----------
    relation
        `spark.connect.Relation` of the query.
    name, options
        Of the query; an empty name is none.
    """
    sources = [dict(read) for read in reads_in(relation, streams=True) if is_tracked(read)]
    if not sources:
        return
    checkpoint, folder = options.get("checkpointLocation"), spark.conf.get(_CHECKPOINTS, None)
    if not checkpoint and folder and name:
        checkpoint = f"{folder.rstrip('/')}/{name}"
    anywhere = is_set(spark, SCHEMA_LOCATION_ANYWHERE.full_name, False)
    store = {option: text for option, text in sources[0].items() if is_of_store(option)}
    log = open_log(spark, path_option(sources[0]) or "", store)
    ask(log, check_tracked, sources, checkpoint or None, anywhere)
