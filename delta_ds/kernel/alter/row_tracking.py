"""Row tracking for a table that has files: every one gets row ids before the property may say so.

Source: PROTOCOL.md, "Row Tracking"; protocol-checklist RT-W-03, RT-W-06.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from delta_ds.kernel import features
from delta_ds.kernel.alter.protocol import upgraded

if TYPE_CHECKING:
    from delta_ds.kernel.delta_log import DeltaLog
    from delta_ds.kernel.log.actions import Protocol
    from delta_ds.kernel.snapshot import Snapshot
    from delta_ds.kernel.transaction.transaction import Transaction

FEATURE = "rowTracking"
BACKFILL = "ROW TRACKING BACKFILL"
_FILES_A_COMMIT = 20_000


def backfill(log: DeltaLog, files_a_commit: int = _FILES_A_COMMIT) -> None:
    """Make a table support row tracking, and commit its files again with row ids.

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
    if not txn.protocol.supports(FEATURE):
        _upgrade(txn)
        txn = log.start_transaction()
    while bodies := list(islice(_without_ids(_snapshot(txn)), files_a_commit)):
        txn.read_files([str(body["path"]) for body in bodies])
        txn.add_all(bodies)
        txn.commit(BACKFILL, {"batchId": str(uuid.uuid4())}, changes_data=False)
        txn = log.start_transaction()


def _snapshot(txn: Transaction) -> Snapshot:
    assert txn.snapshot is not None, "row tracking is enabled on tables that exist"
    return txn.snapshot


def _upgrade(txn: Transaction) -> None:
    new = upgraded(txn.protocol, txn.metadata, (FEATURE,))
    table = txn.storage.url
    features.check_writable(new, txn.metadata.configuration, table, txn.metadata.schema)
    txn.set_protocol(new)
    txn.commit("UPGRADE PROTOCOL", {"newProtocol": protocol_text(new)})


def protocol_text(protocol: Protocol) -> str:
    """A protocol as the history of an upgrade shows it: lists that it has not are null."""
    body: dict[str, Any] = {"readerFeatures": None, "writerFeatures": None, **protocol.to_action()}
    order = ("minReaderVersion", "minWriterVersion", "readerFeatures", "writerFeatures")
    return json.dumps({key: body[key] for key in order}, separators=(",", ":"))


def _without_ids(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """The `add` actions of live files that have no row ids, whole but for `dataChange`."""
    import pyarrow.compute as pc

    from delta_ds.kernel.log.checkpoint_state import CheckpointState

    files = snapshot.live_files().table
    if not files["baseRowId"].null_count:
        return
    state = CheckpointState(snapshot.storage, snapshot.segment, time.time_ns() // 1_000_000)
    for rows in state.file_actions(parsed_statistics=False):
        if rows.kind != "add":
            continue
        table = rows.table.filter(pc.is_null(rows.table["baseRowId"]))
        table = table.select([name for name in table.column_names if name in _FIELDS])
        for batch in table.to_batches(max_chunksize=1000):
            for row in batch.to_pylist():
                yield _body(row)


_MAPS = ("partitionValues", "tags")
_FIELDS = (
    "path", "partitionValues", "size", "modificationTime", "stats", "tags", "deletionVector",
    "clusteringProvider", "baseRowId", "defaultRowCommitVersion",
)  # fmt: skip


def _body(row: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"dataChange": False}
    for name, value in row.items():
        if name in _MAPS:
            value = None if value is None else dict(value)
        if name == "deletionVector" and value is not None:
            value = {key: part for key, part in value.items() if part is not None}
        if value is not None:
            body[name] = value
    body.setdefault("partitionValues", {})
    return body
