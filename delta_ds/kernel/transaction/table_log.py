"""`TableLog`: the log of a table as commands take it: its versions, and transactions on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from delta_ds.exceptions import InvalidOptionError, LogError, NotADeltaTableError
from delta_ds.kernel.format.actions import SINGLE_ACTIONS, Action, Metadata, Protocol
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log import history
from delta_ds.kernel.log.commit import full_name, read_commits
from delta_ds.kernel.log.filenames import LogFile
from delta_ds.kernel.log.replay import Base, FoundActions
from delta_ds.kernel.log.segment import LogListing, LogSegment, choose_segment, first_missing, list_log
from delta_ds.kernel.log.snapshot import OpenedVersion, Snapshot, open_snapshot
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.local import LocalStorage
from delta_ds.kernel.storage.log_store import relative_commit_path
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from delta_ds.kernel.transaction.transaction import Transaction


class TableLog:
    """The log of the table on a storage; what users hold is a `DeltaLog`."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._current: Current | None = None

    def open_snapshot(self, version: int | None = None, timestamp: datetime | int | None = None) -> Snapshot:
        """The state of the table at a version, at a timestamp, or (neither given) as it is now.

        Parameters and errors are those of `DeltaLog.snapshot`.
        """
        latest = open_snapshot(self.storage)
        if timestamp is not None:
            if version is not None:
                raise InvalidOptionError("give a version or a timestamp, not both")
            version = history.version_at(
                self.storage, list_log(self.storage), latest.table_state, history.milliseconds(timestamp)
            )
        # A table whose newest version is damaged or not supported is refused at every version, as delta-spark does.
        return latest if version in (None, latest.version) else open_snapshot(self.storage, version)

    def newest(self) -> Snapshot:
        """The newest version, found from the one that this handle knows. Errors as of `open_snapshot`."""
        if self._current is None:
            self._current = Current(self.storage)
        return self._current.snapshot()

    def start_transaction(
        self,
        version: int | None = None,
        *,
        create: bool = False,
        engine_info: str | None = None,
        use_statistics: bool = False,
    ) -> Transaction:
        """A transaction on the table.

        Parameters and errors are those of `DeltaLog.start_transaction`.
        """
        from delta_ds.kernel.transaction.transaction import Transaction

        base: Snapshot | None
        try:
            base = self.newest() if version is None else open_snapshot(self.storage, version)
        except NotADeltaTableError:
            if not create or version is not None:
                raise
            base = None
        return Transaction(
            self.storage, base, engine_info=engine_info, use_statistics=use_statistics, current=self._current
        )


# --- the newest version for a handle that commits again and again, updated incrementally
# Nothing is believed that the log could contradict. Each time the log is listed from the version last seen on, and if
# its commit is not the very same file, the table is opened from scratch.
# Source: PROTOCOL.md, "Action Reconciliation".

# A handle that has followed so many commits opens the table anew: newer checkpoints are shorter to read.
_LONGEST_CHASE = 200


@dataclass(frozen=True, slots=True)
class _Own:
    """A commit made through this handle, which need not be read again."""

    version: int
    size: int
    actions: list[Action]


class Current:
    """The newest version as one handle knows it; `known` is a version that is open already."""

    def __init__(self, storage: Storage, known: Snapshot | None = None) -> None:
        self._storage = storage
        self._known = known
        self._own: _Own | None = None

    def committed(self, version: int, size: int, actions: Sequence[Action]) -> None:
        """Remember a commit that was just published.

        Parameters
        ----------
        size
            Of the commit file, bytes.
        actions
            Its actions; those that are no file actions are kept.
        """
        single = [action for action in actions if not action.keys().isdisjoint(SINGLE_ACTIONS)]
        self._own = _Own(version, size, single)

    def snapshot(self, *, quick: bool = False) -> Snapshot:
        """The newest version. Errors as those of `open_snapshot`.

        Parameters
        ----------
        quick
            Where a folder is listed whole, look for the one name that comes next instead: enough for readers.
        """
        known = self._known
        if quick and known is not None and self._is_newest(known):
            return known
        newest = None if known is None else self._following(known)
        self._known = newest or open_snapshot(self._storage)
        return self._known

    def _is_newest(self, known: Snapshot) -> bool:
        if not isinstance(self._storage, LocalStorage):
            return False
        last_commit = known.segment.last_commit
        try:
            unchanged = self._storage.status(last_commit.path) == last_commit.status
        except FileNotFoundError:
            return False
        return unchanged and not self._storage.exists(relative_commit_path(known.version + 1))

    def _following(self, known: Snapshot) -> Snapshot | None:
        """The newest version, from an older one; None if that does not lead to it."""
        try:
            listing = list_log(self._storage, known.version)
        except NotADeltaTableError:
            return None
        last_commit = listing.commits.get(known.version)
        if last_commit is None or last_commit.status != known.segment.last_commit.status:
            self._tell_replaced(known.segment.last_commit, last_commit)
            return None
        ahead = listing.latest - known.version
        if not ahead:
            return known
        if ahead + len(known.segment.commits) >= _LONGEST_CHASE:
            return None
        if first_missing(listing.commits, known.version, listing.latest) is not None:
            return None
        newer = [listing.commits[known.version + 1 + n] for n in range(ahead)]
        try:
            found = self._read(newer)
        except LogError:
            return None  # opening from scratch names what is wrong
        return _advance(known, listing, newer, found)

    def _tell_replaced(self, before: LogFile, now: LogFile | None) -> None:
        """Say that a commit is another file now; on local disks its tag changes with its permissions, too."""
        tags = (before.status.etag, now.status.etag if now is not None else None)
        if self._storage.address.scheme != "file" and None not in tags and tags[0] != tags[1]:
            from delta_ds.events.storage import COMMIT_REPLACED

            COMMIT_REPLACED.log(table=self._storage.url, version=before.version)

    def _read(self, files: Sequence[LogFile]) -> FoundActions:
        own = self._own
        found: FoundActions = {}
        for file in files:
            if own is not None and (file.version, file.status.size) == (own.version, own.size):
                found[file.path] = own.actions
        missing = [file for file in files if file.path not in found]
        for commit in read_commits(self._storage, missing):
            commit.check_whole()
            found[commit.file.path] = commit.find(*SINGLE_ACTIONS)
        return found


def _advance(
    known: Snapshot, listing: LogListing, newer: Sequence[LogFile], found: FoundActions
) -> Snapshot | None:
    protocol, metadata = known.protocol, known.metadata
    for file in newer:
        for action in found[file.path]:
            if isinstance(action.get("protocol"), Mapping):
                protocol = Protocol.from_action(action["protocol"], full_name(known.storage, file))
            if isinstance(action.get("metaData"), Mapping):
                metadata = Metadata.from_action(action["metaData"], full_name(known.storage, file))
    if metadata.provider != known.metadata.provider:
        return None
    base = Base(known.version, known.state) if known.is_loaded else known._opened.base
    if base is None and listing.checkpoints:
        segment = choose_segment(listing)
    else:
        # With the state at hand, a newer checkpoint would only have to be read again.
        commits = (*known.segment.commits, *newer)
        checksum = listing.checksums.get(listing.latest)
        segment = LogSegment(listing.latest, known.segment.checkpoint, commits, newer[-1], checksum)
    kept = {file.path for file in segment.commits}
    state = TableState(known.storage.url, segment.version, protocol, metadata)
    all_found = {path: a for path, a in {**known._opened.found, **found}.items() if path in kept}
    return Snapshot(known.storage, segment, OpenedVersion(state, base, all_found))


# --- the version a command goes back to, by number or by timestamp

Timestamp = datetime | int | str


def snapshot_at(
    log: TableLog, version: int | None, timestamp: Timestamp | None, timezone: str = "UTC"
) -> Snapshot:
    """The snapshot of a version, of a timestamp, or (neither given) the latest.

    Parameters
    ----------
    log
        The table.
    version
        The version.
    timestamp
        An aware datetime, ms since 1970, or text as Spark casts it to a timestamp.
    timezone
        The session time zone: that of texts without one.

    Raises
    ------
    InvalidOptionError
        Both are given, or the text is no timestamp.
    DeltaError
        As `DeltaLog.snapshot`.
    """
    if not isinstance(timestamp, str):
        return log.open_snapshot(version, timestamp)
    from delta_ds.conditions.options import TIMESTAMP_INVALID
    from delta_ds.kernel.format.options import parsing as values

    try:
        timestamp = values.timestamp(timestamp, values.zone_by_name(timezone))
    except ValueError as error:
        raise TIMESTAMP_INVALID(timestamp=timestamp, table=log.storage.url, reason=error) from error
    return log.open_snapshot(version, timestamp)
