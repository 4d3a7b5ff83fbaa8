"""`Transaction`: reads of one version and the commit that follows from them."""

from __future__ import annotations

import time
import typing
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.protocol import PROTOCOL_ABSENT
from delta_ds.conditions.transaction import (
    CHANGED_TWICE_IN_TRANSACTION,
    DUPLICATE_DOMAIN_METADATA_INTERNAL_ERROR,
    METADATA_ABSENT,
    SET_TRANSACTION_VERSION_CONFLICT,
    TRANSACTION_FINISHED,
)
from delta_ds.kernel.base.arguments import checked, internal
from delta_ds.kernel.files.write.live_actions import LiveRemoves
from delta_ds.kernel.format.actions import (
    Action,
    AddCDCFile,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from delta_ds.kernel.format.features import ROW_TRACKING
from delta_ds.kernel.format.operations import Operation, operation_named
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.staging import Staging
from delta_ds.kernel.storage.uri import canonical_path
from delta_ds.kernel.transaction import row_ids, validation
from delta_ds.kernel.transaction.commit_loop import CommitCourse, build_commit_info, default_engine, publish
from delta_ds.kernel.transaction.pending import IsolationLevel, Pending, commit_level, stamp, table_level
from delta_ds.kernel.transaction.reads import PartitionValues, Reads, bound_predicate

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.files.scan.scan import Scan
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.transaction.pending import RowChanges

# With pauses in between, about a quarter of an hour of being too late every time.
MAX_ATTEMPTS = 4000


class CommitFollower(typing.Protocol):
    """Who hears of a commit that was published: see `table_log.Current`."""

    def committed(self, version: int, size: int, actions: Sequence[Action]) -> None:
        """Remember a commit; arguments as of `Current.committed`."""


@internal(
    "base",
    "engine_info",
    "looks_into_files",
    "reads",
    "recorded_scan",
    "rows",
    "set_table_state",
    "storage",
    "table_state",
    "txn_id",
    "use_statistics",
)
@checked
class Transaction:
    """An optimistic transaction on a table: read, collect actions, commit once.

    Whatever is read for the sake of the commit has to be read through the transaction, or be made known to it:
    commits of others are checked against it. A transaction without reads that only adds files is a blind append.

    Parameters
    ----------
    storage
        Where the table is.
    base
        The version to read; None if there is no table yet.
    engine_info
        What the commit calls its writer; the kernel's own name by default.
    use_statistics
        Whether a file that another commit added may be let pass because its statistics prove that it holds no
        row that was looked for. By default only its partition values count, as in delta-spark.
    current
        Is told of the commit, so that the next transaction need not read it again.
    """

    def __init__(
        self,
        storage: Storage,
        base: Snapshot | None,
        *,
        engine_info: str | None = None,
        use_statistics: bool = False,
        current: CommitFollower | None = None,
    ) -> None:
        self.storage = storage
        self.base = base
        self.engine_info = engine_info
        self.use_statistics = use_statistics
        self._current = current
        self.txn_id = str(uuid.uuid4())
        self.reads = Reads()
        self._new_protocol: Protocol | None = None
        self._new_metadata: Metadata | None = None
        self._adds: list[AddFile] = []
        self._removes: list[RemoveFile] = []
        self._changes: list[AddCDCFile] = []
        self._live_removes: list[LiveRemoves] = []
        self._txns: dict[str, SetTransaction] = {}
        self._domains: dict[str, DomainMetadata] = {}
        # The rows that the actions change, where the one predicate that was read is all that they hang on.
        self.rows: RowChanges | None = None
        # Where statistics count, whether rows do, too.
        self.looks_into_files = False
        self._finished: str | None = None

    @property
    def read_version(self) -> int:
        """The version that was read; -1 if there was no table."""
        return -1 if self.base is None else self.base.version

    @property
    def is_new_table(self) -> bool:
        """Whether there is no table yet; the commit makes it, as version 0."""
        return self.base is None

    @property
    def protocol(self) -> Protocol:
        """The effective protocol: the new one if set, else that of the snapshot."""
        protocol = self._new_protocol or (self.base.protocol if self.base is not None else None)
        if protocol is None:
            raise PROTOCOL_ABSENT(table=self.storage.url)
        return protocol

    @property
    def metadata(self) -> Metadata:
        """The effective metadata: the new one if set, else that of the snapshot."""
        metadata = self._new_metadata or (self.base.metadata if self.base is not None else None)
        if metadata is None:
            raise METADATA_ABSENT(table=self.storage.url)
        return metadata

    @property
    def table_state(self) -> TableState:
        """The effective protocol and metadata, without metadata domains."""
        return TableState(self.storage.url, self.read_version, self.protocol, self.metadata)

    # --- reads

    def recorded_scan(
        self,
        predicate: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        *,
        timezone: str = "UTC",
        metadata_columns: Sequence[str] = (),
    ) -> Scan:
        """A scan of the version, recorded as read: its predicate, and the files left after skipping.

        Parameters and errors are those of `Snapshot.scan`.
        """
        from delta_ds.kernel.files.scan.scan import Scan

        snapshot = self._existing()
        read = bound_predicate(snapshot, predicate, timezone)
        scan = Scan(snapshot, read.expression, columns, timezone, tuple(metadata_columns))
        self.reads.add_scan(scan, read)
        return scan

    def _existing(self) -> Snapshot:
        if self.base is None:
            from delta_ds.kernel.log.segment import not_a_table

            raise not_a_table(self.storage)
        return self.base

    def read_whole_table(self) -> None:
        """Depend on every row of the table, without a list of files.

        Examples
        --------
        >>> transaction = DeltaLog("/data/orders").start_transaction()
        >>> transaction.read_whole_table()
        """
        self.reads.whole_table = True
        self.reads.add_predicate(self.base, None, None)

    def read_predicate(
        self, predicate: str | Expression | None = None, *, timezone: str | None = "UTC"
    ) -> None:
        """Depend on no new rows matching a predicate; one that is not understood matches every row.

        Parameters
        ----------
        predicate
            Spark SQL text or a tree; None for every row.
        timezone
            The session time zone in which it is meant; None if not known.

        Examples
        --------
        >>> transaction = DeltaLog("/data/orders").start_transaction()
        >>> transaction.read_predicate("country = 'DE'")
        >>> other = DeltaLog("/data/orders").start_transaction().remove_live().commit("DELETE")
        >>> transaction.remove_live().commit("DELETE")
        Traceback (most recent call last):
        ...
        delta_ds.exceptions.ConcurrentDeleteDeleteException: [DELTA_CONCURRENT_DELETE_DELETE...
        """
        self.reads.add_predicate(self.base, predicate, timezone)

    def read_files(self, paths: Iterable[str]) -> None:
        """Depend on files staying live.

        Parameters
        ----------
        paths
            `path` of files as the log spells it.

        Examples
        --------
        >>> transaction = DeltaLog("/data/orders").start_transaction()
        >>> transaction.read_files(transaction.snapshot.files()["path"].to_pylist())
        """
        self.reads.files.update(canonical_path(path, self.storage) for path in paths)

    def read_partitions(self, partitions: Sequence[PartitionValues]) -> None:
        """Depend on no new files in some partitions, as a dynamic partition overwrite does.

        Parameters
        ----------
        partitions
            Physical column name to text, as in `partitionValues` of the log; compared by typed value.

        Examples
        --------
        >>> transaction = DeltaLog("/data/orders").start_transaction()
        >>> transaction.read_partitions([{"country": "DE"}])
        """
        self.reads.partitions.append(tuple(dict(values) for values in partitions))

    def depend_on_app_id(self, app_id: str) -> None:
        """Depend on no new transaction of an application.

        Parameters
        ----------
        app_id
            The application, as in `txnAppId` of a write.

        Examples
        --------
        >>> transaction = DeltaLog("/data/orders").start_transaction()
        >>> transaction.depend_on_app_id("nightly load")
        """
        self.reads.app_ids.add(app_id)

    def read_app_id(self, app_id: str) -> int | None:
        """The version of the latest transaction of an application, recorded as read; None if it has none.

        Parameters
        ----------
        app_id
            The application, as in `txnAppId` of a write.

        Examples
        --------
        >>> transaction = DeltaLog("/data/orders").start_transaction()
        >>> transaction.read_app_id("nightly load") is None
        True
        """
        self.depend_on_app_id(app_id)
        return None if self.base is None else self.base.txns.get(app_id)

    # --- actions

    def add(self, body: AddFile) -> Transaction:
        """Add a file.

        Parameters
        ----------
        body
            Of an `add`, as the log spells it.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from delta_ds.testing import TableBuilder
        >>> file = TableBuilder("/data/orders").write_file(pa.table({"id": [5]}), partition_values={"country": "PL"})
        >>> DeltaLog("/data/orders").start_transaction().add(file["add"]).commit("WRITE", {"mode": "Append"})
        2
        """
        self._adds.append(body)
        return self

    def remove(self, body: RemoveFile) -> Transaction:
        """Remove a file; `remove_live` makes the bodies by itself.

        Parameters
        ----------
        body
            Of a `remove`, as the log spells it.

        Examples
        --------
        >>> transaction = DeltaLog("/data/orders").start_transaction()
        >>> path = transaction.scan("id = 1").files()["path"][0].as_py()
        >>> gone = {"path": path, "deletionTimestamp": 1_700_000_000_000, "dataChange": True}
        >>> transaction.remove(gone).commit("DELETE")
        2
        """
        self._removes.append(body)
        return self

    def cdc(self, body: AddCDCFile) -> Transaction:
        """Add a change file, with the rows that a commit changes.

        Parameters
        ----------
        body
            Of a `cdc`, as the log spells it.

        Examples
        --------
        >>> transaction = DeltaLog("/data/orders").start_transaction()
        >>> change = {"path": "_change_data/a.parquet", "partitionValues": {"country": "DE"}, "size": 400}
        >>> transaction = transaction.cdc({**change, "dataChange": False})
        """
        self._changes.append(body)
        return self

    def add_all(self, bodies: Iterable[AddFile]) -> Transaction:
        """Add files.

        Parameters
        ----------
        bodies
            Of `add`s, as the log spells them.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from delta_ds.testing import TableBuilder
        >>> table = TableBuilder("/data/orders")
        >>> files = [table.write_file(pa.table({"id": [i]}), partition_values={"country": "PL"}) for i in (5, 6)]
        >>> transaction = DeltaLog("/data/orders").start_transaction().add_all(file["add"] for file in files)
        >>> transaction.commit("WRITE", {"mode": "Append"})
        2
        """
        self._adds.extend(bodies)
        return self

    def remove_all(self, bodies: Iterable[RemoveFile]) -> Transaction:
        """Remove files; `remove_live` makes the bodies by itself.

        Parameters
        ----------
        bodies
            Of `remove`s, as the log spells them.

        Examples
        --------
        >>> transaction = DeltaLog("/data/orders").start_transaction()
        >>> paths = transaction.scan("country = 'DE'").files()["path"].to_pylist()
        >>> transaction.remove_all({"path": path, "dataChange": True} for path in paths).commit("DELETE")
        2
        """
        self._removes.extend(bodies)
        return self

    def remove_live(
        self, rows: pa.Array | None = None, *, data_change: bool = True, timestamp_ms: int | None = None
    ) -> Transaction:
        """Remove live files of the version by row number.

        This does not record them as read: what made the rows known, a scan say, has done so.

        Parameters
        ----------
        rows
            int64 row numbers into `snapshot.live_files().table`; None for all.
        data_change
            Whether rows go away with the files.
        timestamp_ms
            `deletionTimestamp`, ms since 1970; now by default.

        Examples
        --------
        >>> transaction = DeltaLog("/data/orders").start_transaction()
        >>> transaction.remove_live().commit("DELETE")
        2
        >>> DeltaLog("/data/orders").snapshot().scan().count()
        0
        """
        removed_ms = _now() if timestamp_ms is None else timestamp_ms
        self._live_removes.append(LiveRemoves(self._existing(), rows, data_change, removed_ms))
        return self

    def set_metadata(self, metadata: Metadata) -> Transaction:
        """Change the metadata of the table; at most once.

        Parameters
        ----------
        metadata
            As `Snapshot.metadata`.

        Examples
        --------
        >>> import dataclasses
        >>> transaction = DeltaLog("/data/orders").start_transaction()
        >>> transaction.set_metadata(dataclasses.replace(transaction.metadata, name="orders")).commit("CHANGE NAME")
        2
        >>> DeltaLog("/data/orders").snapshot().metadata.name
        'orders'
        """
        self._new_metadata = self._only_one("metadata", self._new_metadata, metadata)
        return self

    def set_protocol(self, protocol: Protocol) -> Transaction:
        """Change the protocol of the table; at most once.

        Parameters
        ----------
        protocol
            As `Snapshot.protocol`.

        Examples
        --------
        >>> import dataclasses
        >>> transaction = DeltaLog("/data/orders").start_transaction()
        >>> protocol = transaction.protocol
        >>> more = dataclasses.replace(protocol, writer_features=protocol.writer_features | {"domainMetadata"})
        >>> transaction.set_protocol(more).commit("ADD FEATURE")
        2
        """
        self._new_protocol = self._only_one("protocol", self._new_protocol, protocol)
        return self

    def set_table_state(self, after: TableState) -> Transaction:
        """Change the metadata of the table to those of a state; its protocol too, where that is another one."""
        if after.protocol != self.protocol:
            self.set_protocol(after.protocol)
        return self.set_metadata(after.metadata)

    def _only_one(self, name: str, before: Any, new: Any) -> Any:
        if before is not None and before != new:
            raise CHANGED_TWICE_IN_TRANSACTION(kind=name, table=self.storage.url)
        return new

    def set_txn(self, app_id: str, version: int, last_updated: int | None = None) -> Transaction:
        """Record the latest transaction of an application; equal ones count once.

        Parameters
        ----------
        app_id
            The application, as in `txnAppId` of a write.
        version
            Its own count, from which it knows later what is committed already.
        last_updated
            Milliseconds since 1970; now by default.

        Examples
        --------
        >>> transaction = DeltaLog("/data/orders").start_transaction()
        >>> transaction.set_txn("nightly load", 7).commit("WRITE")
        2
        >>> DeltaLog("/data/orders").snapshot().txns
        {'nightly load': 7}
        """
        before = self._txns.get(app_id)
        if before is not None and before["version"] != version:
            raise SET_TRANSACTION_VERSION_CONFLICT(
                appId=app_id,
                table=self.storage.url,
                first=before["version"],
                second=version,
                versions=[before["version"], version],
            )
        if before is None:
            timestamp = _now() if last_updated is None else last_updated
            self._txns[app_id] = {"appId": app_id, "version": version, "lastUpdated": timestamp}
        return self

    def set_domain_metadata(self, domain: str, configuration: str) -> Transaction:
        """Set the configuration of a metadata domain.

        Parameters
        ----------
        domain
            Its name; those of users do not begin with `delta.`. The table needs the feature `domainMetadata`.
        configuration
            Any text.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from delta_ds.testing import TableBuilder
        >>> schema = pa.schema([("id", pa.int64())])
        >>> created = TableBuilder("/data/new").create(schema, writer_features=["domainMetadata"])
        >>> DeltaLog("/data/new").start_transaction().set_domain_metadata("loads", "{}").commit("WRITE")
        1
        >>> DeltaLog("/data/new").snapshot().domains
        {'loads': '{}'}
        """
        return self._set_domain({"domain": domain, "configuration": configuration, "removed": False})

    def remove_domain_metadata(self, domain: str) -> Transaction:
        """Remove a metadata domain; its configuration stays in the log (DOM-W-04).

        Parameters
        ----------
        domain
            Its name.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from delta_ds.testing import TableBuilder
        >>> schema = pa.schema([("id", pa.int64())])
        >>> created = TableBuilder("/data/new").create(schema, writer_features=["domainMetadata"])
        >>> log = DeltaLog("/data/new")
        >>> version = log.start_transaction().set_domain_metadata("loads", "{}").commit("WRITE")
        >>> version = log.start_transaction().remove_domain_metadata("loads").commit("WRITE")
        >>> log.snapshot().domains
        {}
        """
        before = self._existing().domains.get(domain, "")
        return self._set_domain({"domain": domain, "configuration": before, "removed": True})

    def _set_domain(self, body: DomainMetadata) -> Transaction:
        if body["domain"] in self._domains:
            raise DUPLICATE_DOMAIN_METADATA_INTERNAL_ERROR(domainName=body["domain"], table=self.storage.url)
        self._domains[body["domain"]] = body
        return self

    # --- commit

    def commit(
        self,
        operation: str | Operation,
        parameters: Mapping[str, Any] | None = None,
        metrics: Mapping[str, Any] | None = None,
        *,
        user_metadata: str | None = None,
        tags: Mapping[str, Any] | None = None,
        changes_data: bool | None = None,
        retry: bool | None = None,
        max_attempts: int = MAX_ATTEMPTS,
        post_commit: bool = True,
        staged: Staging | None = None,
    ) -> int:
        """Publish the actions as the next version, on top of what others have committed meanwhile.

        Parameters
        ----------
        operation
            One of `kernel/format/operations.py`, or a name for the history.
        parameters, metrics, user_metadata, tags
            For the history; see `commit_loop.build_commit_info`.
        changes_data
            Whether the operation counts as one that changes rows; as the operation says if None.
        retry
            Whether another version than the next one will do. If None: as the operation says; yes for a name.
        max_attempts
            How many versions it may be too late for.
        post_commit
            Whether checkpoints, checksums and clean-up may follow. Nothing of it fails the commit.
        staged
            The owner of the files that the commit names; hears what becomes of it.

        Returns
        -------
        int
            The version.

        Raises
        ------
        DeltaConcurrentModificationException
            Another commit came first and contradicts this one.
        CommitFailedError, AppendOnlyError, SchemaError, UnsupportedFeatureError, UnsupportedOperationError
            The commit is wrong in itself; see `validation.check_actions`.
        StorageError
            The storage refused. After an `UncertainWriteError` the commit may have happened.

        Examples
        --------
        >>> transaction = DeltaLog("/data/orders").start_transaction()
        >>> transaction.set_txn("nightly load", 7).commit("WRITE", user_metadata="load of monday")
        2
        >>> DeltaLog("/data/orders").history(1)[0]["userMetadata"]
        'load of monday'
        """
        if self._finished is not None:
            raise TRANSACTION_FINISHED(table=self.storage.url, finished=self._finished)
        course = CommitCourse()
        record = operation if isinstance(operation, Operation) else operation_named(operation)
        pending = self._pending(record)
        if self.storage.managed:
            validation.complete(pending)
        validation.check_actions(pending)
        self._finished = "has failed"
        try:
            if pending.protocol.supports(ROW_TRACKING):
                row_ids.assign(pending)
            self._choose_isolation_level(pending, changes_data)
            now = _now()
            pending.commit_info = build_commit_info(
                pending,
                timestamp=now,
                txn_id=self.txn_id,
                engine_info=self.engine_info or default_engine(),
                parameters=parameters,
                metrics=record.shown(metrics),
                user_metadata=user_metadata,
                tags=tags,
            )
            stamp(pending, now)
            if retry is None:
                retry = record.rebased if record is operation else True
            staged = staged or Staging(self.storage.url)
            size = publish(self.storage, pending, staged, course, retry=retry, max_attempts=max_attempts)
        except Exception as error:
            course.tell(pending, self.read_version, error)
            raise
        self._finished = f"is committed as version {pending.version}"
        actions = list(pending.actions())
        if self._current is not None:
            self._current.committed(pending.version, size, actions)
        if post_commit:
            from delta_ds.kernel.transaction.post_commit import Committed, run

            with course.timed("post_commit"):
                run(self.storage, Committed.of(pending, actions))
        course.tell(pending, self.read_version)
        return pending.version

    def _pending(self, operation: Operation) -> Pending:
        return Pending(
            storage=self.storage, snapshot=self.base, reads=self.reads, operation=operation,
            version=self.read_version + 1, state=self.table_state,
            new_protocol=self._new_protocol, new_metadata=self._new_metadata, adds=list(self._adds),
            removes=list(self._removes), live_removes=list(self._live_removes), changes=list(self._changes),
            txns=dict(self._txns), domains=dict(self._domains), use_statistics=self.use_statistics,
            looks_into_files=self.looks_into_files, rows=self.rows,
        )  # fmt: skip

    def _choose_isolation_level(self, pending: Pending, changes_data: bool | None) -> None:
        """The level and the blindness that the first attempt has, every later one keeps."""
        pending.blind = pending.only_adds and self.reads.nothing
        pending.level = commit_level(
            table_level(pending.metadata.configuration, pending.table),
            only_rearranges=pending.only_rearranges,
            changes_data=pending.operation.changes_data if changes_data is None else changes_data,
        )
        if pending.serializable:
            pending.level = IsolationLevel.SERIALIZABLE


def _now() -> int:
    return time.time_ns() // 1_000_000
