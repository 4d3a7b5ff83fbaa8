"""The course of VACUUM, from the checks to the VACUUM END commit.

What goes is settled before the first commit, VACUUM START. Commits of others up to that one are looked at once
more, as they may have brought back what is to go. A crash at any time leaves files that the next VACUUM finds.

Source: PROTOCOL.md, "VACUUM Protocol Check"; protocol-checklist section 23.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.commands import (
    VACUUM_RETENTION_PERIOD_NEGATIVE,
    VACUUM_RETENTION_PERIOD_TOO_SHORT,
)
from delta_ds.events.commands import INNER_TABLES_KEPT, VACUUM_END_NOT_RECORDED
from delta_ds.exceptions import DeltaError, InvalidOptionError
from delta_ds.kernel.base.work import Phase, Work
from delta_ds.kernel.commands.vacuum import candidates
from delta_ds.kernel.commands.vacuum.candidates import Candidates, find_candidates
from delta_ds.kernel.commands.vacuum.inventory import Inventory, read_inventory
from delta_ds.kernel.commands.vacuum.paths import Hidden
from delta_ds.kernel.commands.vacuum.references import (
    Needed,
    NeededPaths,
    exclude_paths,
    needed_paths,
    paths_added_since,
)
from delta_ds.kernel.format.operations import VACUUM_END, VACUUM_START
from delta_ds.kernel.format.properties import DELETED_FILE_RETENTION
from delta_ds.kernel.log.segment import LogListing, list_log
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.deleter import DATA_FILES
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.maintenance import Maintenance
from delta_ds.kernel.storage.uri import unambiguous
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from delta_ds.kernel.transaction.table_log import TableLog


Mode = Literal["full", "lite"]
# Of the folders of other tables below this one.
_FOLDERS_TOLD = 10
# Finds the files that must stay: of the newest version, a listing of the log made after it, and the horizon.
FindNeeded = Callable[[Snapshot, LogListing, int], Needed]


@dataclass(frozen=True, slots=True)
class VacuumResult:
    """What a VACUUM deleted, or would delete.

    Attributes
    ----------
    paths
        The files, relative to the table and not encoded.
    folders
        Empty folders; of a real run those that were deleted.
    num_bytes
        Of the files together. In lite mode as the log has it, also for files that were gone already.
    num_folders
        How many folders were looked at, the table's own included; 1 in lite mode.
    dry_run
        Whether nothing was deleted.
    version
        Of the commit VACUUM END; None if there is none.
    """

    paths: pa.ChunkedArray
    folders: tuple[str, ...]
    num_bytes: int
    num_folders: int
    dry_run: bool
    version: int | None = None

    @property
    def num_files(self) -> int:
        return len(self.paths)


def vacuum(
    log: TableLog,
    retention_hours: float | None = None,
    *,
    dry_run: bool = False,
    mode: Mode = "full",
    inventory: Inventory | None = None,
    retention_check: bool = True,
    record: bool = True,
    now_ms: int | None = None,
    find_needed: FindNeeded | None = None,
) -> VacuumResult:
    """Delete the files below a table's folder that no version within the retention refers to.

    Files younger than the retention stay whatever they are: a writer may not have committed them yet.

    Parameters
    ----------
    log
        The table.
    retention_hours
        How long what was removed is kept; None: as `delta.deletedFileRetentionDuration` says.
    dry_run
        Only tell what would be deleted.
    mode
        `full` lists the table's folder; `lite` reads from the log what was removed, and leaves files that were
        never committed.
    inventory
        The files there are, in place of a listing; see `read_inventory`.
    retention_check
        Whether a retention shorter than the property's is refused
        (`spark.databricks.delta.retentionDurationCheck.enabled`).
    record
        Whether to commit VACUUM START and VACUUM END to the history.
    now_ms
        The timestamp that the retention is counted back from, ms since 1970; None: now.
    find_needed
        Finds the files that must stay in place of this process.

    Raises
    ------
    InvalidOptionError
        The retention is negative or too short, the inventory has other columns, or the mode is unknown.
    UnsupportedFeatureError
        The table has a feature that this package cannot write: it may keep files that only that feature explains.
    UnsupportedOperationError
        Lite mode, and the log does not reach back far enough.
    StorageError
        Listing or deleting failed; in the latter case the history says that VACUUM failed.
    """
    if mode not in ("full", "lite"):
        raise InvalidOptionError(f"VACUUM is full or lite, not {mode!r}; nothing was deleted")
    if mode == "lite" and inventory is not None:
        raise InvalidOptionError(
            "VACUUM LITE reads the log and has no use for an inventory; nothing was deleted"
        )
    now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    snapshot = log.open_snapshot()
    configuration = snapshot.metadata.configuration
    snapshot.table_state.check_writable()
    if not dry_run:
        log.storage.check_allowed(Maintenance.VACUUM, "VACUUM")
    horizon = horizon_of(configuration, log.storage.url, retention_hours, checked=retention_check, now_ms=now)
    with Work("VACUUM", log.storage.url) as work:
        with work.phase("listing") as phase:
            found, reached = _candidates(
                snapshot, horizon, mode, inventory, phase, find_needed or exactly_needed
            )
        if dry_run:
            return _result(found, dry_run=True)
        result = _delete(log, snapshot.version, found, horizon, record, work)
        if inventory is None:  # which may lack files
            candidates.write_mark(log.storage, reached)
        return result


def removed_files(snapshot: Snapshot) -> pa.Table:
    """The files that VACUUM LITE would delete: a version that is loaded, the table's retention, nothing listed.

    Returns
    -------
    pyarrow.Table
        `path`, relative to the table and not encoded, and `size` in bytes.

    Raises
    ------
    UnsupportedFeatureError, UnsupportedOperationError
        As `vacuum`.
    """
    snapshot.table_state.check_writable()
    configuration, now = snapshot.metadata.configuration, time.time_ns() // 1_000_000
    horizon = horizon_of(configuration, snapshot.storage.url, None, checked=True, now_ms=now)
    return _candidates(snapshot, horizon, "lite", None, None, exactly_needed)[0].files


def exactly_needed(snapshot: Snapshot, listing: LogListing, cutoff_ms: int) -> Needed:
    """What must stay, by all paths; see `needed_paths`."""
    return NeededPaths(needed_paths(snapshot, listing, cutoff_ms))


def _candidates(
    snapshot: Snapshot,
    horizon: Horizon,
    mode: Mode,
    inventory: Inventory | None,
    listing_phase: Phase | None,
    find_needed: FindNeeded,
) -> tuple[Candidates, int | None]:
    """The files that can be deleted, and the newest version committed before the horizon."""
    storage = snapshot.storage
    hidden = Hidden(snapshot.table_state)
    listing = list_log(storage)
    last = candidates.last_version_before(snapshot, listing, horizon.cutoff_ms)
    if mode == "lite":
        commits = candidates.commits_to_read(storage, listing, last)
        needed = find_needed(snapshot, listing, horizon.cutoff_ms)
        return candidates.find_removed_files(storage, commits, needed, hidden, horizon.cutoff_ms), last
    if inventory is not None:
        batches = iter(read_inventory(inventory, storage).to_batches())
    else:
        batches = storage.list_below("", lambda folder: folder not in hidden)
    needed = find_needed(snapshot, listing, horizon.cutoff_ms)
    counted = _counted(batches, listing_phase)
    found = find_candidates(counted, needed, hidden, horizon.cutoff_ms)
    if found.num_inner_files:
        INNER_TABLES_KEPT.log(
            table=storage.url, files=found.num_inner_files, folders=found.inner_tables[:_FOLDERS_TOLD]
        )
    return found, last


def _counted(batches: Iterator[pa.RecordBatch], phase: Phase | None) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if phase is not None:
            phase.advance(batch.num_rows)
        yield batch


def _result(found: Candidates, *, dry_run: bool) -> VacuumResult:
    return VacuumResult(found.files["path"], found.folders, _bytes(found), found.num_folders, dry_run)


def _bytes(found: Candidates) -> int:
    return int(pc.sum(found.files["size"]).as_py() or 0)


def _delete(
    log: TableLog, read: int, found: Candidates, horizon: Horizon, record: bool, work: Work
) -> VacuumResult:
    started = None
    if record:
        started = log.start_transaction().commit(
            VACUUM_START,
            horizon.parameters(),
            {
                "numFilesToDelete": found.files.num_rows + len(found.folders),
                "sizeOfDataToDelete": _bytes(found),
            },
        )
    try:
        found = replace(
            found, files=exclude_paths(found.files, paths_added_since(log.storage, read, started))
        )
        # Checksums first: without its file nothing would tell that one is not needed any more.
        delete_files(log.storage, found.checksums)
        with work.phase("deleting", total=found.files.num_rows) as phase:
            delete_files(log.storage, found.files["path"], phase)
            folders = deleter.delete_empty_folders(log.storage, DATA_FILES, found.folders)
    except Exception:
        if record:
            _record_failure(log)
        raise
    found = replace(found, folders=tuple(sorted(folders)))
    version = None
    if record:
        version = log.start_transaction().commit(
            VACUUM_END,
            {"status": "COMPLETED"},
            {
                "numDeletedFiles": found.files.num_rows + len(found.folders),
                "numVacuumedDirectories": found.num_folders,
            },
        )
    return replace(_result(found, dry_run=False), version=version)


def _record_failure(log: TableLog) -> None:
    try:
        log.start_transaction().commit(VACUUM_END, {"status": "FAILED"})
    except DeltaError as error:
        VACUUM_END_NOT_RECORDED.log(table=log.storage.url, reason=error)


# --- deletion

# As many as S3 deletes in one request; the stores that take one file a request share them out themselves.
_FILES_A_REQUEST = 1_000
_REQUESTS_AT_ONCE = 4


def delete_files(storage: Storage, paths: pa.ChunkedArray, phase: Phase | None = None) -> None:
    """Delete data files; missing ones are fine.

    Parameters
    ----------
    paths
        Relative to the table and not encoded.
    phase
        Is told of the files that are deleted.

    Raises
    ------
    StorageError
        Some could not be deleted; that did not stop the requests for the others.
    """

    def delete(start: int) -> int:
        names = paths.slice(start, _FILES_A_REQUEST).to_pylist()
        deleter.delete(storage, DATA_FILES, [unambiguous(name) for name in names])
        return len(names)

    total = len(paths)
    problem: Exception | None = None
    with ThreadPoolExecutor(_REQUESTS_AT_ONCE) as pool:
        waiting = [pool.submit(delete, start) for start in range(0, total, _FILES_A_REQUEST)]
        for future in as_completed(waiting):
            failure = future.exception()
            if isinstance(failure, Exception):
                problem = problem or failure
            elif phase is not None:
                phase.advance(future.result())
    if problem is not None:
        raise problem


# --- the retention of files that were removed, and the check that a shorter one is safe

_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Horizon:
    """The cut-off of a VACUUM: files older than `cutoff_ms` may be deleted.

    Attributes
    ----------
    cutoff_ms
        ms since 1970; a file of exactly this time stays.
    default_ms, specified_ms
        The retention by the table's property, and the one that was asked for (None: not said).
    checked
        Whether a retention shorter than the property's is refused.
    """

    cutoff_ms: int
    default_ms: int
    specified_ms: int | None
    checked: bool

    def parameters(self) -> dict[str, bool | int]:
        """The parameters of VACUUM START."""
        named: dict[str, bool | int] = {
            "retentionCheckEnabled": self.checked,
            "defaultRetentionMillis": self.default_ms,
        }
        return (
            named if self.specified_ms is None else {**named, "specifiedRetentionMillis": self.specified_ms}
        )


def horizon_of(
    configuration: Mapping[str, str], table: str, hours: float | None, *, checked: bool, now_ms: int
) -> Horizon:
    """The horizon of one VACUUM.

    Parameters
    ----------
    configuration
        The table's properties.
    table
        Its address, for messages.
    hours
        The retention asked for; None: the table's own. Differs: delta-spark rounds it to whole hours.

    Raises
    ------
    InvalidOptionError
        A negative retention, or one shorter than the table's while that is checked.
    """
    default_ms = DELETED_FILE_RETENTION.of(configuration) // timedelta(milliseconds=1)
    if hours is None:
        return Horizon(now_ms - default_ms, default_ms, None, checked)
    if not math.isfinite(hours):
        raise InvalidOptionError(
            f"retentionHours is {hours}, which is no number of hours; table {table} was not touched",
            parameters={"retentionHours": hours},
        )
    if hours < 0:
        raise VACUUM_RETENTION_PERIOD_NEGATIVE(retentionHours=hours, table=table)
    specified_ms = math.ceil(hours * _HOUR_MS)
    if checked and specified_ms < default_ms:
        wanted = -(-default_ms // _HOUR_MS)
        raise VACUUM_RETENTION_PERIOD_TOO_SHORT(
            retentionHours=hours,
            table=table,
            configuredRetentionHours=wanted,
        )
    return Horizon(now_ms - specified_ms, default_ms, specified_ms, checked)
