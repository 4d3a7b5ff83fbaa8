"""RESTORE: commit the state of an earlier version as a new version.

Files come and go by the difference of the two lists, where a file is its path and its deletion vector.
Schema, partitioning and properties become those of the earlier version; what must never go back stays: the
protocol, marks of given-out ids, the enablement of in-commit timestamps.

Source: PROTOCOL.md, "Action Reconciliation"; protocol-checklist REC-R-03, DV-W-10; conflict-matrix section 2;
delta-spark, `RestoreTableCommand` (what it commits).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING

from delta_ds.conditions.commands import (
    CANNOT_RESTORE_TABLE_VERSION,
    CANNOT_RESTORE_TIMESTAMP_EARLIER,
    CANNOT_RESTORE_TIMESTAMP_GREATER,
    MISSING_FILES_UNEXPECTED_VERSION,
)
from delta_ds.conditions.options import ONEOF_IN_RESTORE
from delta_ds.conditions.record import TIMESTAMP_GREATER_THAN_COMMIT
from delta_ds.conditions.tables import ROW_TRACKING_RESTORED_WHILE_SUSPENDED
from delta_ds.events.commands import RESTORE_SKIPPED
from delta_ds.exceptions import (
    TimestampOutOfRangeError,
    VersionNotFoundError,
)
from delta_ds.kernel.base.arrow_buffers import true_rows
from delta_ds.kernel.base.work import Work
from delta_ds.kernel.files.read.plan import vector_descriptor
from delta_ds.kernel.files.write.live_actions import add_bodies, live_adds
from delta_ds.kernel.format.actions import CLUSTERING_DOMAIN, AddFile, Metadata, Protocol
from delta_ds.kernel.format.features import IN_COMMIT_TIMESTAMP
from delta_ds.kernel.format.operations import RESTORE
from delta_ds.kernel.format.properties import (
    CHECKPOINT_PROTECTION_BEFORE_VERSION,
    COLUMN_MAPPING_MAX_ID,
    COLUMN_MAPPING_MODE,
    ENABLE_ROW_TRACKING,
    ICT_ENABLEMENT_TIMESTAMP,
    ICT_ENABLEMENT_VERSION,
    ROW_TRACKING_SUSPENDED,
)
from delta_ds.kernel.format.schema.field_metadata import (
    IDENTITY_HIGH_WATER_MARK,
    IDENTITY_STEP,
    PHYSICAL_NAME,
)
from delta_ds.kernel.format.schema.types import StructField, StructType, schema_to_json
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log.file_actions import keys_of_files
from delta_ds.kernel.transaction.alter.protocol import weakest_protocol
from delta_ds.kernel.transaction.table_log import Timestamp, snapshot_at
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.transaction.table_log import TableLog
    from delta_ds.kernel.transaction.transaction import Transaction

_SHOWN_FILES = 100
_LOOKS_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """What RESTORE did: the columns of its result, in order, and the version it committed. Sizes in bytes."""

    table_size_after_restore: int
    num_of_files_after_restore: int
    num_removed_files: int
    num_restored_files: int
    removed_files_size: int
    restored_files_size: int
    version: int

    def row(self) -> dict[str, int]:
        """The result as delta-spark shows it; all columns are `bigint`."""
        return {name: getattr(self, name) for name in RESULT_COLUMNS}


RESULT_COLUMNS = (
    "table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files",
    "removed_files_size", "restored_files_size",
)  # fmt: skip


def restore(
    log: TableLog,
    *,
    version: int | None = None,
    timestamp: Timestamp | None = None,
    timezone: str = "UTC",
    ignore_missing_files: bool = False,
    protocol_downgrade_allowed: bool = False,
    transaction_id: str | None = None,
) -> RestoreResult | None:
    """Commit the state of an earlier version, by number or timestamp.

    Parameters
    ----------
    log
        The table.
    version, timestamp, timezone
        Where to go back to, see `table_log.snapshot_at`; exactly one of version and timestamp.
    ignore_missing_files
        Whether files that are needed again may be gone from the storage (`spark.sql.files.ignoreMissingFiles`).
    protocol_downgrade_allowed
        Whether the protocol goes back too (`spark.databricks.delta.restore.protocolDowngradeAllowed`); by
        default features are kept, since versions in between need them.
    transaction_id
        The `txnId` of the commit; a new one by default.

    Returns
    -------
    Restored or None
        None where the table is at this version; then nothing was done.

    Raises
    ------
    VersionNotFoundError, TimestampOutOfRangeError
        It cannot be gone back to.
    DataFileError
        Files that are needed again are gone.
    ConcurrentWriteException
        Another commit came first, whatever it did.
    UnsupportedOperationError
        Row ids of the earlier version cannot be brought back.
    AppendOnlyError
        Rows of an append-only table would go away.
    """
    if (version is None) == (timestamp is None):
        raise ONEOF_IN_RESTORE(table=log.storage.url)
    source = _snapshot_to_restore(log, version, timestamp, timezone)
    txn = log.start_transaction()
    latest = txn.base
    assert latest is not None, "the transaction was started on a table that exists"
    if source.version == latest.version:
        RESTORE_SKIPPED.log(table=log.storage.url, version=latest.version)
        return None
    txn.txn_id = transaction_id or txn.txn_id
    _check_row_ids(source, latest)
    change = _FileDifference.between(source, latest)
    adds = list(change.restored_bodies())
    if not ignore_missing_files:
        with Work(RESTORE.name, log.storage.url) as work:
            _check_present(latest.storage, adds, source.version, work)
    txn.read_whole_table()
    txn.add_all(adds).add_all(change.tracked_bodies()).remove_live(change.removed)
    _put_description(txn, source, latest, protocol_downgrade_allowed)
    result = _result(source, latest, change, adds)
    parameters = {"version": version, "timestamp": _shown(timestamp)}
    committed = txn.commit(RESTORE, parameters, _metrics(result))
    return replace(result, version=committed)


def _snapshot_to_restore(
    log: TableLog, version: int | None, timestamp: Timestamp | None, timezone: str
) -> Snapshot:
    url = log.storage.url
    try:
        return snapshot_at(log, version, timestamp, timezone)
    except VersionNotFoundError as error:
        raise CANNOT_RESTORE_TABLE_VERSION(
            error.parameters,
            table=url,
            version=version,
            startVersion=error.parameters.get("earliest"),
            endVersion=error.parameters.get("latest"),
        ) from error
    except TimestampOutOfRangeError as error:
        values, causes = {"table": url}, error.parameters
        if error.condition == TIMESTAMP_GREATER_THAN_COMMIT.name:
            raise CANNOT_RESTORE_TIMESTAMP_GREATER(
                causes,
                **values,
                requestedTimestamp=_shown(timestamp),
                latestTimestamp=causes.get("lastCommitTimestamp"),
            ) from error
        raise CANNOT_RESTORE_TIMESTAMP_EARLIER(
            causes, **values, requestedTimestamp=_shown(timestamp), earliestTimestamp=causes.get("commitTs")
        ) from error


def _shown(timestamp: Timestamp | None) -> str | int | None:
    return timestamp.isoformat(" ") if isinstance(timestamp, datetime) else timestamp


# --- files


@dataclass(frozen=True, slots=True)
class _FileDifference:
    """Which files come back, and which are removed.

    Attributes
    ----------
    wanted
        The version that comes back.
    restored
        Keys (`keys_of_files`) of its files that are not live.
    tracked
        Keys of its files that are live without the row ids that they had.
    removed
        int64 row numbers of the latest version's live files.
    """

    wanted: Snapshot
    restored: pa.Array
    tracked: pa.Array
    removed: pa.Array

    @classmethod
    def between(cls, source: Snapshot, latest: Snapshot) -> _FileDifference:
        import pyarrow.compute as pc

        old, new = source.live_files().table, latest.live_files().table
        old_keys = keys_of_files(old, source.storage)
        new_keys = keys_of_files(new, latest.storage)
        missing = pc.invert(pc.is_in(old_keys, value_set=_one(new_keys)))
        tracked = _one(old_keys.slice(0, 0))
        if ENABLE_ROW_TRACKING.of(source.metadata.configuration):
            tracked = _one(old_keys.filter(_lost_row_ids(old, old_keys, new, new_keys)))
        gone = pc.invert(pc.is_in(new_keys, value_set=_one(old_keys)))
        return cls(source, _one(old_keys.filter(missing)), tracked, true_rows(gone))

    def restored_bodies(self) -> Iterator[AddFile]:
        """The `add` actions of the files that come back."""
        return self._bodies(self.restored, data_change=True)

    def tracked_bodies(self) -> Iterator[AddFile]:
        """The `add` actions that give row ids back. No row comes or goes by them: readers of changes see none."""
        return self._bodies(self.tracked, data_change=False)

    def _bodies(self, keys: pa.Array, *, data_change: bool) -> Iterator[AddFile]:
        import pyarrow.compute as pc

        if not len(keys):
            return
        for table in live_adds(self.wanted):
            chosen = pc.is_in(keys_of_files(table, self.wanted.storage), value_set=keys)
            yield from add_bodies(table.filter(chosen), data_change=data_change)


def _lost_row_ids(
    old: pa.Table, old_keys: pa.ChunkedArray, new: pa.Table, new_keys: pa.ChunkedArray
) -> pa.ChunkedArray:
    """Whether a file had row ids that it has not any more: it has to be added once more with them.

    Where the feature was dropped and added again meanwhile, it has others, which another file may have had before.
    """
    import pyarrow.compute as pc

    now = new["baseRowId"].take(pc.index_in(old_keys, value_set=_one(new_keys)))
    same = pc.fill_null(pc.equal(old["baseRowId"], now), False)
    live = pc.is_in(old_keys, value_set=_one(new_keys))
    return pc.and_(pc.and_(pc.is_valid(old["baseRowId"]), live), pc.invert(same))


def _one(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    import pyarrow as pa

    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _check_present(storage: Storage, adds: list[AddFile], version: int, work: Work) -> None:
    """Source: delta-spark refuses with the first hundred missing files; deletion vectors count here too."""
    paths = dict.fromkeys(path for add in adds for path in _files_of(add))
    with (
        work.phase("looking for files", total=len(paths)) as phase,
        ThreadPoolExecutor(_LOOKS_AT_ONCE) as pool,
    ):
        presence = phase.each(pool.map(lambda path: storage.exists(storage.resolve(path)), paths))
        missing = [path for path, there in zip(paths, presence, strict=True) if not there]
    if missing:
        more = f" and {len(missing) - _SHOWN_FILES} more" if len(missing) > _SHOWN_FILES else ""
        raise MISSING_FILES_UNEXPECTED_VERSION(
            version=version, table=storage.url, files=missing[:_SHOWN_FILES], more=more, count=len(missing)
        )


def _files_of(add: AddFile) -> Iterator[str]:
    yield add["path"]
    descriptor = vector_descriptor(add.get("deletionVector"))
    if descriptor is not None and descriptor.path is not None:
        yield descriptor.path


# --- description


def _check_row_ids(source: Snapshot, latest: Snapshot) -> None:
    """While row tracking is suspended no file that is added has row ids, which an enabled table needs."""
    enabled = ENABLE_ROW_TRACKING.of(source.metadata.configuration)
    if enabled and ROW_TRACKING_SUSPENDED.of(latest.metadata.configuration):
        raise ROW_TRACKING_RESTORED_WHILE_SUSPENDED(
            table=latest.storage.url,
            version=source.version,
            property1=ENABLE_ROW_TRACKING.name,
            property2=ROW_TRACKING_SUSPENDED.name,
        )


def _put_description(txn: Transaction, source: Snapshot, latest: Snapshot, downgrade: bool) -> None:
    protocol = source.protocol if downgrade else protocol_with_both(latest.protocol, source.protocol)
    # delta-spark commits both whether they change or not.
    txn.set_metadata(_metadata(source.table_state, latest.table_state))
    txn.set_protocol(protocol)
    clustering = source.domains.get(CLUSTERING_DOMAIN)
    if clustering is not None:
        txn.set_domain_metadata(CLUSTERING_DOMAIN, clustering)
    elif CLUSTERING_DOMAIN in latest.domains:
        txn.remove_domain_metadata(CLUSTERING_DOMAIN)


def protocol_with_both(protocol: Protocol, other: Protocol) -> Protocol:
    """The weakest protocol with the features of two; the first one itself where it has them all."""
    if other.supported <= protocol.supported:
        return protocol
    readers = {*(protocol.reader_features or ()), *(other.reader_features or ())}
    return weakest_protocol(protocol.supported | other.supported, readers)


def _metadata(source: TableState, latest: TableState) -> Metadata:
    """The earlier metadata, with the values that must never decrease."""
    before = latest.properties
    configuration = dict(source.properties)
    if COLUMN_MAPPING_MODE.of(configuration) != "none":
        highest = max(COLUMN_MAPPING_MAX_ID.of(c) for c in (configuration, before))
        configuration[COLUMN_MAPPING_MAX_ID.name] = str(highest)
    unchanged = [CHECKPOINT_PROTECTION_BEFORE_VERSION.name]
    for name in (ICT_ENABLEMENT_VERSION.name, ICT_ENABLEMENT_TIMESTAMP.name):
        configuration.pop(name, None)  # where timestamps are enabled by this very commit, it says so itself
    if latest.enabled(IN_COMMIT_TIMESTAMP) and source.enabled(IN_COMMIT_TIMESTAMP):
        unchanged += [ICT_ENABLEMENT_VERSION.name, ICT_ENABLEMENT_TIMESTAMP.name]
    configuration |= {name: before[name] for name in unchanged if name in before}
    schema = with_highest_marks(source.schema, latest.schema)
    text = source.metadata.schema_string if schema == source.schema else schema_to_json(schema)
    return replace(source.metadata, configuration=configuration, schema_string=text)


def with_highest_marks(schema: StructType, other: StructType) -> StructType:
    """A schema whose identity columns continue from the higher mark of two, so that no value is repeated.

    A column is the other one's by its name, or by that in files, which stays where it was renamed.
    """

    def moved(field: StructField) -> StructField:
        step = field.metadata.get(IDENTITY_STEP)
        if not isinstance(step, int):
            return field
        same = [f for f in other if _is_same(f, field) and f.metadata.get(IDENTITY_STEP) == step]
        marks = [
            mark for f in (field, *same) if (mark := f.metadata.get(IDENTITY_HIGH_WATER_MARK)) is not None
        ]
        if not marks:
            return field
        furthest = max(marks) if step > 0 else min(marks)
        return replace(field, metadata={**field.metadata, IDENTITY_HIGH_WATER_MARK: furthest})

    return StructType(tuple(moved(field) for field in schema))


def _is_same(one: StructField, other: StructField) -> bool:
    stored = [f.metadata.get(PHYSICAL_NAME, f.name) for f in (one, other)]
    return one.name.lower() == other.name.lower() or stored[0] == stored[1]


# --- metrics


def _result(
    wanted: Snapshot, latest: Snapshot, change: _FileDifference, adds: list[AddFile]
) -> RestoreResult:
    import pyarrow.compute as pc

    after = wanted.live_files().table
    removed = latest.live_files().table["size"].take(change.removed)
    return RestoreResult(
        table_size_after_restore=int(pc.sum(after["size"]).as_py() or 0),
        num_of_files_after_restore=after.num_rows,
        num_removed_files=len(change.removed),
        num_restored_files=len(adds),
        removed_files_size=int(pc.sum(removed).as_py() or 0),
        restored_files_size=sum(add["size"] for add in adds),
        version=-1,
    )


def _metrics(result: RestoreResult) -> dict[str, int]:
    return {
        "numRestoredFiles": result.num_restored_files,
        "removedFilesSize": result.removed_files_size,
        "numRemovedFiles": result.num_removed_files,
        "restoredFilesSize": result.restored_files_size,
        "numOfFilesAfterRestore": result.num_of_files_after_restore,
        "tableSizeAfterRestore": result.table_size_after_restore,
    }
