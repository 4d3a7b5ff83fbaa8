"""`Snapshot`: the state of a table at one version, immutable; what is known of it, and what replay finds out."""

from __future__ import annotations

import time
from functools import cached_property

from delta_ds.conditions.protocol import CHECKSUM_MISMATCH, MISSING_PART_COLUMN
from delta_ds.events import log as events
from delta_ds.kernel.format.actions import Metadata, Protocol
from delta_ds.kernel.format.features import CLUSTERING
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.format.table_state import TableState, check_managed, check_readable
from delta_ds.kernel.log import cache, history
from delta_ds.kernel.log.checkpoint_files import CheckpointReplacedError, UnreadableCheckpointError
from delta_ds.kernel.log.checksum import read_checksum
from delta_ds.kernel.log.live_files import FileFilter, LiveFiles
from delta_ds.kernel.log.replay import Base, FoundActions, Selections, State, load_state, load_table_state
from delta_ds.kernel.log.segment import LogFileGoneError, LogSegment, find_segment, with_fallback
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass, field, replace
from delta_ds.reporting import listeners
from delta_ds.reporting.reports import SnapshotReport

# With fewer commits and a smaller checkpoint to look through, reading them is as quick as trusting a checksum file.
_CHECKSUM_PAYS_COMMITS = 16
_CHECKSUM_PAYS_BYTES = 1 << 20
# So often a checkpoint that is written again meanwhile is looked through from its start.
_SELECTIONS = 3


@dataclass(frozen=True, slots=True)
class OpenedVersion:
    """What opening a version found out, and what of it replay need not find out again."""

    table: TableState
    base: Base | None = None
    found: FoundActions = field(default_factory=dict)


class Snapshot:
    """The state of a table at one version.

    Opening reads protocol and metadata only and refuses what cannot be read; files are replayed on first use. Users
    hold it as `delta_ds.Snapshot`, which is above.

    Attributes
    ----------
    storage
        Where the table is.
    segment
        The files of the log that make the version.
    table_state
        Protocol and metadata, without metadata domains.
    selection
        Where only some live files are known (`with_files`): a text of no other selection, as row numbers into its files
        mean nothing elsewhere. None: all live files.
    """

    def __init__(
        self, storage: Storage, segment: LogSegment, opened: OpenedVersion, *, selection: str | None = None
    ) -> None:
        self.storage = storage
        self.segment = segment
        self.table_state = opened.table
        self.selection = selection
        self._opened = opened
        self._selections = Selections()
        self.table_state.check_readable()
        check_managed(self.table_state.protocol, storage)
        for column in self.table_state.partition_columns:
            if self.schema.find(column) is None:
                raise MISSING_PART_COLUMN(
                    version=segment.version, table=storage.url, column=column, columns=self.schema.names
                )

    def with_files(self, state: State) -> Snapshot:
        """The version with some of its live files, for what reads or changes no others.

        What it says of all files (their number, sums, whether some file has a deletion vector) holds for those alone.

        Parameters
        ----------
        state
            Of the version, but for the files: some of the live ones, in their order.

        Raises
        ------
        LogError
            A checksum file contradicts the log.
        """
        import uuid

        self._check_description(state.table)
        opened = OpenedVersion(self.table_state)
        selected = Snapshot(self.storage, self.segment, opened, selection=uuid.uuid4().hex)
        selected.state = state
        return selected

    @property
    def version(self) -> int:
        """The version of the table."""
        return self.segment.version

    @property
    def protocol(self) -> Protocol:
        """Which versions and features a client must have."""
        return self.table_state.protocol

    @property
    def metadata(self) -> Metadata:
        """The `metaData` action: schema, partitioning and properties."""
        return self.table_state.metadata

    @property
    def schema(self) -> StructType:
        """Logical names, with the metadata of the fields."""
        return self.table_state.schema

    @property
    def mapping_mode(self) -> str:
        """`none`, `name` or `id`: how columns are found in files."""
        return self.table_state.mapping_mode

    @cached_property
    def timestamp(self) -> int:
        """When the version was committed, ms since 1970: in-commit where enabled, else the file's time."""
        inside = history.in_commit_timestamps(self.table_state)
        if inside is not None and self.version >= inside.version:
            return history.in_commit_time(self.storage, self.segment.last_commit)
        return self.segment.last_commit.status.modified_ms

    @property
    def knows_timestamp(self) -> bool:
        """Whether nothing has to be read for `timestamp`."""
        return "timestamp" in vars(self) or history.in_commit_timestamps(self.table_state) is None

    @property
    def partition_columns(self) -> list[str]:
        """The logical names of the partition columns, in order."""
        return list(self.metadata.partition_columns)

    @property
    def properties(self) -> dict[str, str]:
        """The table properties (`metaData.configuration`)."""
        return dict(self.metadata.configuration)

    @property
    def physical_partition_columns(self) -> tuple[str, ...]:
        """The keys of partition values in the log, in the order of `partition_columns`."""
        return self.table_state.physical_partition_columns

    @property
    def txns(self) -> dict[str, int]:
        """The latest version of each application's transactions."""
        return dict(self.state.txns)

    @property
    def domains(self) -> dict[str, str]:
        """The configuration of each live metadata domain."""
        return dict(self.state.table.domains or {})

    @property
    def is_loaded(self) -> bool:
        """Whether all live files have been replayed."""
        return "state" in vars(self) and self.selection is None

    @cached_property
    def state(self) -> State:
        """The replayed state; from the cache where that is current.

        Raises
        ------
        LogError
            A file of the log is damaged, or a checksum file contradicts the log.
        """
        started, base = time.perf_counter(), self._opened.base
        state = self._replay()
        self._check_description(state.table)
        self._report_checksum(state)
        if listeners.is_wanted(SnapshotReport):
            _report(self, state.files.num_rows, base, started)
        return state

    def _check_description(self, replayed: TableState) -> None:
        if replace(replayed, domains=None) != self.table_state:
            raise CHECKSUM_MISMATCH(version=self.version, table=self.storage.url)

    def _replay(self) -> State:
        def replay(segment: LogSegment) -> State:
            opened = self._opened if segment is self.segment else _open(self.storage, segment)
            base = opened.base
            if base is not None and base.version == self.version:
                return base.state
            state = load_state(self.storage, segment, base, opened.found)
            since = base.version if base else -1
            cache.store(self.storage, segment, state, sum(f.end > since for f in segment.commits))
            return state

        state = with_fallback(self.storage, self.segment, replay)[1]
        self._opened = OpenedVersion(self.table_state)
        return state

    def _report_checksum(self, state: State) -> None:
        import pyarrow.compute as pc

        checksum = read_checksum(self.storage, self.segment)
        if checksum is None:
            return
        size = pc.sum(state.files.table["size"]).as_py() or 0
        found = (state.table.protocol, state.table.metadata, state.files.num_rows, size)
        recorded = (checksum.protocol, checksum.metadata, checksum.num_files, checksum.size_bytes)
        if found != recorded:
            events.CHECKSUM_MISMATCH.log(
                table=self.storage.url,
                version=self.version,
                files=found[2],
                recorded_files=recorded[2],
                bytes=found[3],
                recorded_bytes=recorded[3],
            )

    @property
    def clustering_columns(self) -> list[list[str]]:
        """The logical path of each clustering column; empty for a table that is not clustered."""
        return [list(path) for path in self.state.table.clustering_columns]

    @property
    def clustering_paths(self) -> tuple[tuple[str, ...], ...]:
        """The physical path of each clustering column; none, and no replay, without the feature."""
        return self.state.table.clustering_paths if self.table_state.supports(CLUSTERING) else ()

    def live_files(self) -> LiveFiles:
        """The live files as the kernel sees them; see `LiveFiles`."""
        return self.state.files

    @property
    def _state_at_hand(self) -> bool:
        """Whether the files are known, or take a few commits to know."""
        return "state" in self.__dict__ or self._opened.base is not None

    def select_files(self, keep: FileFilter) -> LiveFiles:
        """The live files that a filter keeps.

        Where the files are not at hand yet, those of a checkpoint are looked at part by part, and no others than
        those kept are held in memory.

        Parameters
        ----------
        keep
            Tells of some files the ascending numbers of those to keep; called from several threads.

        Raises
        ------
        LogError
            As `state`.
        """
        selected = None if self._state_at_hand else self._select(keep)
        if selected is not None:
            self._check_description(selected.table)
            return selected.files
        files = self.live_files()
        return files.take(keep(files))

    def _select(self, keep: FileFilter, attempt: int = 1) -> State | None:
        """See `Selections.select_files`; also None where replay has to find out what else the log still has."""
        try:
            return self._selections.select_files(self.storage, self.segment, self._opened.found, keep)
        except (UnreadableCheckpointError, LogFileGoneError) as error:
            if isinstance(error, CheckpointReplacedError) and attempt < _SELECTIONS:
                events.CHECKPOINT_READ_ANEW.log(table=self.storage.url, reason=error)
                return self._select(keep, attempt + 1)
            events.STREAM_GIVEN_UP.log(table=self.storage.url, reason=error)
            return None

    @cached_property
    def statistics_count_nan(self) -> bool:
        """Whether bounds of floats hold for NaN, too; see `log/later_statistics.py`."""
        from delta_ds.kernel.log.later_statistics import statistics_count_nan

        return statistics_count_nan(self.storage, self.segment)

    @property
    def known_state(self) -> State | None:
        """The state, where nothing has to be read for it."""
        if self.is_loaded:
            return self.state
        base = self._opened.base
        return base.state if base is not None and base.version == self.version else None

    def __repr__(self) -> str:
        return f"Snapshot({self.storage.url!r}, version={self.version})"


def open_snapshot(storage: Storage, version: int | None = None) -> Snapshot:
    """The snapshot of a version (None: the latest), protocol and metadata resolved.

    Raises
    ------
    DeltaError
        See `DeltaLog.snapshot`.
    """
    started = time.perf_counter()
    segment, opened = with_fallback(storage, find_segment(storage, version), lambda s: _open(storage, s))
    snapshot = Snapshot(storage, segment, opened)
    if listeners.is_wanted(SnapshotReport):
        _report(snapshot, None, opened.base, started)
    return snapshot


def open_table_state(storage: Storage) -> TableState:
    """Protocol and metadata of the latest version, for what needs neither rows nor columns: the schema may be any text.

    Raises
    ------
    DeltaError
        See `DeltaLog.snapshot`; not for what the schema or the partition columns are.
    """
    _, opened = with_fallback(storage, find_segment(storage, None), lambda s: _open(storage, s))
    table = opened.table
    check_readable(table.protocol, table.properties, table.table)
    check_managed(table.protocol, storage)
    return table


def _report(snapshot: Snapshot, files: int | None, base: Base | None, started: float) -> None:
    segment = snapshot.segment
    since = -1 if base is None else base.version
    listeners.report(
        SnapshotReport(
            table=snapshot.storage.url,
            version=snapshot.version,
            files=files,
            checkpoint_version=None if segment.checkpoint is None else segment.checkpoint.version,
            commits=sum(file.end > since for file in segment.commits),
            from_cache=base is not None,
            seconds=time.perf_counter() - started,
        )
    )


def _checksum_pays(segment: LogSegment) -> bool:
    files = () if segment.checkpoint is None else segment.checkpoint.files
    size = sum(file.status.size for file in files)
    return len(segment.commits) > _CHECKSUM_PAYS_COMMITS or size > _CHECKSUM_PAYS_BYTES


def _open(storage: Storage, segment: LogSegment) -> OpenedVersion:
    base = cache.load(storage, segment)
    if base is None and _checksum_pays(segment):
        checksum = read_checksum(storage, segment)
        if checksum is not None:
            return OpenedVersion(
                TableState(storage.url, segment.version, checksum.protocol, checksum.metadata)
            )
    found: FoundActions = {}
    return OpenedVersion(load_table_state(storage, segment, base, found), base, found)
