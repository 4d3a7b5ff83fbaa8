"""Enable row tracking on a table that has files: every file gets row ids before the property is set.

Source: PROTOCOL.md, "Row Tracking"; protocol-checklist RT-W-03, RT-W-06.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.files.write.live_actions import add_bodies, live_adds
from delta_ds.kernel.format import features
from delta_ds.kernel.format.actions import AddFile, without
from delta_ds.kernel.format.operations import ROW_TRACKING_BACKFILL, ROW_TRACKING_UNBACKFILL, UPGRADE_PROTOCOL
from delta_ds.kernel.format.properties import (
    ENABLE_ROW_TRACKING,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    ROW_TRACKING_SUSPENDED,
)
from delta_ds.kernel.transaction.alter.protocol import upgrade_protocol
from delta_ds.records import replace

if TYPE_CHECKING:
    from delta_ds.kernel.format.actions import Protocol
    from delta_ds.kernel.format.operations import Operation
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.transaction.table_log import TableLog
    from delta_ds.kernel.transaction.transaction import Transaction

PROPERTIES = (
    ENABLE_ROW_TRACKING.name,
    ROW_TRACKING_SUSPENDED.name,
    ROW_ID_COLUMN.name,
    ROW_COMMIT_VERSION_COLUMN.name,
)
_FILES_A_COMMIT = 20_000
_IDS = ("baseRowId", "defaultRowCommitVersion")


def backfill(log: TableLog, files_a_commit: int = _FILES_A_COMMIT) -> None:
    """Add row tracking to a table, and commit its files again with row ids.

    Files that others add in the meantime have ids already; files that others remove are left out by the
    transaction. What was committed stays when a later commit fails: calling this again goes on from there.

    Parameters
    ----------
    log
        The table.
    files_a_commit
        How many files one commit holds at most.

    Raises
    ------
    CommitFailedError
        A file has no `numRecords`, without which no ids can be given out.
    """
    txn = log.start_transaction()
    if not txn.protocol.supports(features.ROW_TRACKING):
        _upgrade(txn)
    _commit_in_batches(log, ROW_TRACKING_BACKFILL, _without_ids, files_a_commit)


def unbackfill(log: TableLog, files_a_commit: int = _FILES_A_COMMIT) -> None:
    """Commit the files of a table, whose row tracking is suspended, again without row ids; parameters as `backfill`."""
    _commit_in_batches(log, ROW_TRACKING_UNBACKFILL, _with_ids, files_a_commit)


def _commit_in_batches(
    log: TableLog,
    operation: Operation,
    bodies: Callable[[Snapshot], Iterator[AddFile]],
    files_a_commit: int,
) -> None:
    """Commit files as they are to be, some at a time, until the newest version has no others."""
    for batch in count():
        txn = log.start_transaction()
        assert txn.base is not None, "row tracking is enabled on tables that exist"
        found = list(islice(bodies(txn.base), files_a_commit))
        if not found:
            return
        txn.read_files([str(body["path"]) for body in found])
        txn.add_all(found)
        txn.commit(operation, {"batchId": str(batch)})


def _upgrade(txn: Transaction) -> None:
    before = txn.table_state
    new = upgrade_protocol(before.protocol, before.metadata, (features.ROW_TRACKING.name,))
    replace(before, protocol=new).check_writable()
    txn.set_protocol(new)
    txn.commit(UPGRADE_PROTOCOL, {"newProtocol": protocol_text(new)})


def protocol_text(protocol: Protocol) -> str:
    """A protocol as the history of an upgrade shows it; missing lists are null."""
    body: dict[str, Any] = {"readerFeatures": None, "writerFeatures": None, **protocol.to_action()}
    order = ("minReaderVersion", "minWriterVersion", "readerFeatures", "writerFeatures")
    return json.dumps({key: body[key] for key in order}, separators=(",", ":"))


def _without_ids(snapshot: Snapshot) -> Iterator[AddFile]:
    """The `add` actions of live files that have no row ids, whole but for `dataChange`."""
    import pyarrow.compute as pc

    if not snapshot.live_files().table["baseRowId"].null_count:
        return
    for table in live_adds(snapshot):
        yield from add_bodies(table.filter(pc.is_null(table["baseRowId"])), data_change=False)


def _with_ids(snapshot: Snapshot) -> Iterator[AddFile]:
    """The same of files that have row ids or a commit version, without them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def given(rows: pa.Table) -> pa.ChunkedArray:
        return pc.or_(pc.is_valid(rows["baseRowId"]), pc.is_valid(rows["defaultRowCommitVersion"]))

    if not pc.any(given(snapshot.live_files().table)).as_py():
        return
    for table in live_adds(snapshot):
        for body in add_bodies(table.filter(given(table)), data_change=False):
            yield without(body, *_IDS)
