"""`Pending`: the content of a commit at one attempt.

Conflict resolution rewrites it for every commit that came first; the log line by line is made from it anew for
every attempt.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from delta_ds.kernel.actions import (
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
from delta_ds.kernel.operations import ROW_TRACKING_BACKFILL, ROW_TRACKING_UNBACKFILL, Operation
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.table_state import TableState
from delta_ds.kernel.transaction.isolation import IsolationLevel
from delta_ds.records import dataclass, field, replace

if TYPE_CHECKING:
    from delta_ds.kernel.snapshot import Snapshot
    from delta_ds.kernel.transaction.live_removes import LiveRemoves
    from delta_ds.kernel.transaction.reads import Reads
    from delta_ds.kernel.transaction.row_changes import RowChanges


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
