"""`Pending`: the content of a commit at one attempt.

Conflict resolution rewrites it for every commit that came first; the log line by line is made from it anew for
every attempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING

from delta_ds.conditions.transaction import INVALID_ISOLATION_LEVEL
from delta_ds.kernel.format.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    without_nulls,
)
from delta_ds.kernel.format.features import DELETION_VECTORS, IN_COMMIT_TIMESTAMP, ROW_TRACKING
from delta_ds.kernel.format.operations import ROW_TRACKING_BACKFILL, ROW_TRACKING_UNBACKFILL, Operation
from delta_ds.kernel.format.properties import (
    ICT_ENABLEMENT_TIMESTAMP,
    ICT_ENABLEMENT_VERSION,
    ISOLATION_LEVEL,
)
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.transaction.reads import ReadPredicate
from delta_ds.records import dataclass, field, replace

if TYPE_CHECKING:
    from delta_ds.kernel.files.write.live_actions import LiveRemoves
    from delta_ds.kernel.format.values.deletion_vector import Positions
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.staging import StagedFiles
    from delta_ds.kernel.transaction.reads import Reads


# --- the isolation level a commit is checked at, and whether it is a blind append
# The default level is Serializable, as delta-spark's is; the documentation of the format names WriteSerializable.
# Source: conflict-matrix section 1.


class IsolationLevel(Enum):
    """The isolation levels: which commits in between conflict."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"


def table_level(configuration: Mapping[str, str], table: str) -> IsolationLevel:
    """The isolation level of a table; a stored `SnapshotIsolation` counts although it cannot be set.

    Raises
    ------
    InvalidOptionError
        The table holds a text that is no level.
    """
    text = configuration.get(ISOLATION_LEVEL.name) or ISOLATION_LEVEL.default or ""
    for level in IsolationLevel:
        if level.value.lower() == text.strip().lower():
            return level
    raise INVALID_ISOLATION_LEVEL(
        table=table, isolationLevel=text, levels=", ".join(level.value for level in IsolationLevel)
    )


def commit_level(level: IsolationLevel, *, only_rearranges: bool, changes_data: bool) -> IsolationLevel:
    """The level that one commit is checked at.

    Parameters
    ----------
    level
        The table's.
    only_rearranges
        Whether every action is a file action with `dataChange` false, or the row tracking domain; holds for
        a commit without actions.
    changes_data
        Whether the operation counts as one that changes rows.
    """
    if not only_rearranges:
        return level
    if level is IsolationLevel.SERIALIZABLE or (
        level is IsolationLevel.WRITE_SERIALIZABLE and not changes_data
    ):
        return IsolationLevel.SNAPSHOT
    return level


ROW_TRACKING_DOMAIN = "delta.rowTracking"


@dataclass(slots=True)
class Pending:
    """The actions of a transaction, and what they were based on.

    Attributes
    ----------
    storage
        Where the table is.
    snapshot
        The version that was read; None for a table that did not exist.
    version
        The version to be committed next.
    state
        In force: protocol and metadata of the transaction, else those of the snapshot or of a commit that came
        first.
    new_protocol, new_metadata
        The transaction's own, to be committed.
    domains
        Its own `domainMetadata`, without that of row tracking.
    high_water_mark
        The highest row id in use, to be committed; None if that is not needed.
    read_mark
        The highest row id in use in the snapshot, or in the newest commit that came first.
    commit_info
        In the order of its fields; `inCommitTimestamp` apart.
    use_statistics
        Whether statistics may show that a new file is of no interest.
    serializable
        Whether nothing that others add may be passed over, whatever the isolation level of the table.
    looks_into_files
        Whether rows may show it, too, where statistics do not.
    rows
        The rows that change, where the command knows them; see `row_level`.
    """

    storage: Storage
    snapshot: Snapshot | None
    reads: Reads
    operation: Operation
    version: int
    state: TableState
    new_protocol: Protocol | None = None
    new_metadata: Metadata | None = None
    adds: list[AddFile] = field(default_factory=list)
    removes: list[RemoveFile] = field(default_factory=list)
    live_removes: list[LiveRemoves] = field(default_factory=list)
    changes: list[AddCDCFile] = field(default_factory=list)
    txns: dict[str, SetTransaction] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    level: IsolationLevel = IsolationLevel.WRITE_SERIALIZABLE
    blind: bool = False
    high_water_mark: int | None = None
    read_mark: int = -1
    commit_info: CommitInfo = field(default_factory=CommitInfo)
    in_commit_timestamp: int | None = None
    use_statistics: bool = False
    serializable: bool = False
    looks_into_files: bool = False
    rows: RowChanges | None = None

    @property
    def table(self) -> str:
        """Its address, for messages."""
        return self.storage.url

    @property
    def protocol(self) -> Protocol:
        """In force; setting it keeps the metadata."""
        return self.state.protocol

    @protocol.setter
    def protocol(self, protocol: Protocol) -> None:
        self.state = replace(self.state, protocol=protocol)

    @property
    def metadata(self) -> Metadata:
        """In force; setting it keeps the protocol."""
        return self.state.metadata

    @metadata.setter
    def metadata(self, metadata: Metadata) -> None:
        self.state = replace(self.state, metadata=metadata)

    @property
    def is_backfill(self) -> bool:
        return self.operation == ROW_TRACKING_BACKFILL

    @property
    def is_unbackfill(self) -> bool:
        return self.operation == ROW_TRACKING_UNBACKFILL

    @property
    def only_adds(self) -> bool:
        """Whether every file action is an `add`; true without file actions."""
        return not (self.removes or self.changes or any(self.live_removes))

    @property
    def only_rearranges(self) -> bool:
        """Whether no action changes rows or anything else of the table."""
        if self.new_metadata or self.new_protocol or self.txns or self.domains:
            return False
        if any(removes.data_change for removes in self.live_removes if removes):
            return False
        files = (*self.adds, *self.removes, *self.changes)
        return not any(body.get("dataChange", False) for body in files)

    def tag(self, key: str, value: str) -> None:
        """Set a tag in `commitInfo`."""
        self.commit_info["tags"] = {**(self.commit_info.get("tags") or {}), key: value}

    def actions(self) -> Iterator[Action]:
        """The actions other than those of `live_removes`, in the order they are committed."""
        info = self.commit_info
        if self.in_commit_timestamp is not None:
            info = {"inCommitTimestamp": self.in_commit_timestamp, **info}
        yield {"commitInfo": without_nulls(info)}
        if self.high_water_mark is not None:
            yield {"domainMetadata": high_water_mark_domain(self.high_water_mark)}
        if self.new_metadata is not None:
            yield {"metaData": self.new_metadata.to_action()}
        if self.new_protocol is not None:
            yield {"protocol": self.new_protocol.to_action()}
        for txn in self.txns.values():
            yield {"txn": txn}
        for domain in self.domains.values():
            yield {"domainMetadata": domain}
        for remove in self.removes:
            yield {"remove": remove}
        for add in self.adds:
            yield {"add": add}
        for change in self.changes:
            yield {"cdc": change}


def high_water_mark_domain(mark: int) -> DomainMetadata:
    """The `domainMetadata` that records the highest row id, spelled as delta-spark spells it."""
    configuration = f'{{"rowIdHighWaterMark":{mark},"domainName":"{ROW_TRACKING_DOMAIN}"}}'
    return {"domain": ROW_TRACKING_DOMAIN, "configuration": configuration, "removed": False}


# --- `RowChanges`: what a command has done, row by row, and which rows of others would have changed that
# Source: conflict-matrix section 11.


def tracks_rows(state: TableState) -> bool:
    """Whether rows of a table can be told apart in a commit: by deletion vectors, and by ids where they are moved."""
    return state.enabled(DELETION_VECTORS) and state.enabled(ROW_TRACKING)


@dataclass(slots=True)
class RowChanges:
    """The rows that a command has deleted or replaced, and those that it looked for.

    Attributes
    ----------
    deleted
        By `path` as the log spells it, the uint64 positions of rows that no longer count because of this command.
        Follows the rows where other commits have moved them to.
    wanted
        What every row meets that the outcome depends on: the condition of a DELETE or UPDATE, what the condition of
        a MERGE demands of the table.
    misses_count
        Whether it matters too that a row is not there: a MERGE inserts what it found no match for.
    staged
        The owner of new deletion vectors.
    superseded
        Files of deletion vectors that others have taken the place of, for the owner to delete once the commit is there.
    """

    deleted: Mapping[str, Positions]
    wanted: ReadPredicate
    misses_count: bool
    staged: StagedFiles
    superseded: set[str] = field(default_factory=set)


# --- in-commit timestamps: strictly increasing, also after a rebase
# Source: PROTOCOL.md, "In-Commit Timestamps"; protocol-checklist ICT-W-01, 02, 05; conflict-matrix section 5.


def stamp(pending: Pending, now: int) -> None:
    """Set the timestamp of the first attempt, and record the enablement of timestamps.

    Parameters
    ----------
    now
        Milliseconds since 1970.
    """
    if not pending.state.enabled(IN_COMMIT_TIMESTAMP):
        return
    snapshot = pending.snapshot
    pending.in_commit_timestamp = now if snapshot is None else max(now, snapshot.timestamp + 1)
    _record_enablement(pending, snapshot.table_state if snapshot is not None else None)


def stamp_after(pending: Pending, won: int, before: TableState | None) -> None:
    """Move the timestamp past that of a commit that came first.

    Parameters
    ----------
    won
        Its timestamp; that of its file where it has none, ms since 1970.
    before
        The table after it; None where there was no table.
    """
    if not pending.state.enabled(IN_COMMIT_TIMESTAMP):
        return
    own = pending.in_commit_timestamp
    if own is None:
        own = int(pending.commit_info["timestamp"])
    pending.in_commit_timestamp = max(own, won + 1)
    _record_enablement(pending, before)


def _record_enablement(pending: Pending, before: TableState | None) -> None:
    """The commit that enables timestamps on a table that exists says so; a later one keeps what was said."""
    new = pending.new_metadata
    if new is None or before is None or not pending.state.enabled(IN_COMMIT_TIMESTAMP):
        return
    if not before.enabled(IN_COMMIT_TIMESTAMP):
        since = {
            ICT_ENABLEMENT_VERSION.name: str(pending.version),
            ICT_ENABLEMENT_TIMESTAMP.name: str(pending.in_commit_timestamp),
        }
    elif (
        ICT_ENABLEMENT_VERSION.name in before.properties
        and ICT_ENABLEMENT_VERSION.name not in new.configuration
    ):
        since = {
            k: v
            for k, v in before.properties.items()
            if k in (ICT_ENABLEMENT_VERSION.name, ICT_ENABLEMENT_TIMESTAMP.name)
        }
    else:
        return
    pending.new_metadata = pending.metadata = replace(new, configuration={**new.configuration, **since})
