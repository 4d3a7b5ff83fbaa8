"""Old versions that still use a dropped feature: truncated, or protected by `checkpointProtection`.

Source: protocol-checklist CPR-W-01; delta-spark, `DeletionVectorsPreDowngradeCommand`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from delta_ds.conditions.commands import FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD
from delta_ds.kernel.files.read.plan import vector_descriptor
from delta_ds.kernel.format.operations import DELETION_VECTOR_TOMBSTONES
from delta_ds.kernel.format.properties import TRUNCATE_HISTORY_RETENTION
from delta_ds.kernel.log.checkpoint_write.state import CheckpointState
from delta_ds.kernel.log.segment import list_log, read_log_files
from delta_ds.kernel.transaction.feature_removal import trace_of

if TYPE_CHECKING:
    from delta_ds.kernel.transaction.table_log import TableLog


def check_history(log: TableLog, feature: str, shown: re.Pattern[bytes]) -> None:
    """Delete old versions that use a dropped feature, and refuse where a kept version still uses it.

    Parameters
    ----------
    shown
        What in a commit shows that it was used.

    Raises
    ------
    UnsupportedOperationError
        A version is not old enough yet.
    """
    if next(_versions_using(log, feature, shown), None) is None:
        return
    retention = delete_old_versions(log)
    used = next(_versions_using(log, feature, shown), None)
    if used is not None:
        raise FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD(
            feature=feature, table=log.storage.url, version=used, retention=retention
        )


def delete_old_versions(log: TableLog) -> timedelta:
    """Delete versions older than the retention for dropped features; returns that retention."""
    from delta_ds.kernel.log.cleanup import clean_up

    write_latest_checkpoint(log)
    retention: timedelta = TRUNCATE_HISTORY_RETENTION.of(log.open_snapshot().metadata.configuration)
    clean_up(log.storage, retention=retention)
    return retention


def _versions_using(log: TableLog, feature: str, shown: re.Pattern[bytes]) -> Iterator[int]:
    """The versions in the log that use the feature."""
    listing = list_log(log.storage)
    for found in listing.checkpoints:
        if trace_of(feature, log.open_snapshot(found.version)) is not None:
            yield found.version
    for version, file in sorted(listing.commits.items()):
        if shown.search(read_log_files(log.storage, [file])[0]):
            yield version


def write_latest_checkpoint(log: TableLog) -> None:
    """Write a checkpoint of the newest version."""
    from delta_ds.kernel.transaction.post_commit import write_checkpoint

    write_checkpoint(log.storage, log.open_snapshot().segment)


def remove_old_vectors(log: TableLog) -> None:
    """Commit removes of the files that hold deletion vectors of older versions.

    A reader that does not know of deletion vectors would not see that those versions need them, and its VACUUM would
    delete them.
    """
    txn = log.start_transaction()
    snapshot = log.open_snapshot(txn.read_version)
    now_ms = time.time_ns() // 1_000_000
    state = CheckpointState.of_version(snapshot.storage, snapshot.segment, now_ms)
    buried: set[str] = set()
    for rows in state.file_actions(parsed_statistics=False):
        if rows.kind != "remove" or "deletionVector" not in rows.table.column_names:
            continue
        for value in rows.table["deletionVector"].drop_null().to_pylist():
            found = vector_descriptor(value)
            path = None if found is None else found.path  # none: the vector lies in the log
            if path is not None and path not in buried:
                buried.add(path)
                txn.remove({"path": path, "deletionTimestamp": now_ms, "dataChange": False})
    txn.commit(DELETION_VECTOR_TOMBSTONES)
