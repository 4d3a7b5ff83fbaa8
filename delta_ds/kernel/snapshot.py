"""`Snapshot`: one version of a table, immutable."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.log import CHECKSUM_MISMATCH, MISSING_PART_COLUMN
from delta_ds.events import log as events
from delta_ds.kernel.actions import Metadata, Protocol
from delta_ds.kernel.arguments import checked, internal
from delta_ds.kernel.card import Card, Shown, listed, size_text, table_of
from delta_ds.kernel.features import CLUSTERING
from delta_ds.kernel.log import cache, history
from delta_ds.kernel.log.checkpoint_files import CheckpointReplacedError, UnreadableCheckpointError
from delta_ds.kernel.log.checksum import read_checksum
from delta_ds.kernel.log.kept_columns import KeptColumns
from delta_ds.kernel.log.live_files import FileFilter, LiveFiles
from delta_ds.kernel.log.replay import Base, FoundActions, State, load_state, load_table_state, select_files
from delta_ds.kernel.log.segment import LogFileGoneError, LogSegment, find_segment, with_fallback
from delta_ds.kernel.protocol_checks import check_managed
from delta_ds.kernel.schema.types import StructType
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.table_state import TableState
from delta_ds.records import dataclass, field, replace
from delta_ds.reporting import listeners
from delta_ds.reporting.reports import SnapshotReport

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.blame.blame import Blame
    from delta_ds.kernel.expressions.tree import Expression
    from delta_ds.kernel.layout.column import ColumnLayout
    from delta_ds.kernel.layout.timeline import Timeline
    from delta_ds.kernel.plot.plots import Plots
    from delta_ds.kernel.scan.scan import Scan

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


@internal(
    "clustering_paths", "is_loaded", "live_files", "physical_partition_columns", "segment", "select_files", "state",
    "statistics_count_nan", "storage", "table_state",
)  # fmt: skip
@checked
class Snapshot(Shown):
    """The state of a table at one version.

    Made by `DeltaLog.snapshot`. Opening reads protocol and metadata only and refuses what cannot be
    read; files are replayed on first use.

    Examples
    --------
    >>> from delta_ds import DeltaLog
    >>> snapshot = DeltaLog("examples/data/sales").snapshot()
    >>> snapshot.version > 0, len(snapshot.partition_columns)
    (True, 1)
    """

    def __init__(self, storage: Storage, segment: LogSegment, opened: OpenedVersion) -> None:
        self.storage = storage
        self.segment = segment
        self.table_state = opened.table
        self._opened = opened
        self._kept = KeptColumns()
        self.table_state.check_readable()
        check_managed(self.table_state.protocol, storage)
        for column in self.table_state.partition_columns:
            if self.schema.find(column) is None:
                raise MISSING_PART_COLUMN(
                    version=segment.version, table=storage.url, column=column, columns=self.schema.names
                )

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
        """Whether the live files have been replayed."""
        return "state" in vars(self)

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
        """See `replay.select_files`; also None where replay has to find out what else the log still has."""
        try:
            return select_files(self.storage, self.segment, self._opened.found, keep, self._kept)
        except (UnreadableCheckpointError, LogFileGoneError) as error:
            if isinstance(error, CheckpointReplacedError) and attempt < _SELECTIONS:
                events.CHECKPOINT_READ_ANEW.log(table=self.storage.url, reason=error)
                return self._select(keep, attempt + 1)
            events.STREAM_GIVEN_UP.log(table=self.storage.url, reason=error)
            return None

    @cached_property
    def statistics_count_nan(self) -> bool:
        """Whether bounds of floats hold for NaN, too; see `log/statistics_writers.py`."""
        from delta_ds.kernel.log.statistics_writers import statistics_count_nan

        return statistics_count_nan(self.storage, self.segment)

    def files(self, predicate: str | Expression | None = None, *, timezone: str = "UTC") -> pa.Table:
        """The live files, or those that may hold rows matching a predicate.

        Parameters
        ----------
        predicate
            Spark SQL text or a tree; None for every file.
        timezone
            The session time zone in which the predicate is meant.

        Returns
        -------
        pyarrow.Table
            A row a file: `path`, `size` in bytes, `partitionValues`, `modificationTime` in ms; `stats` is JSON text.

        Examples
        --------
        >>> snapshot = DeltaLog("/data/orders").snapshot()
        >>> snapshot.files().num_rows, snapshot.files("country = 'DE'").num_rows
        (4, 2)
        """
        return self.scan(predicate, timezone=timezone).files()

    def scan(
        self,
        predicate: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        *,
        timezone: str = "UTC",
        metadata_columns: Sequence[str] = (),
    ) -> Scan:
        """A scan of this version: which files, in which slices, to which rows.

        Parameters
        ----------
        predicate
            Spark SQL text or a tree; files that cannot match are skipped, rows that do not match are not
            returned.
        columns
            Top-level columns to return, in order; None for all.
        timezone
            The session time zone: for the predicate, and for partition timestamps in local form.
        metadata_columns
            Fields of a struct column `_metadata` to append: file_path, file_name, file_size, row_index,
            row_id, row_commit_version.

        Raises
        ------
        PredicateError
            The predicate cannot be parsed or names an unknown column.
        SchemaError
            A column does not exist.

        Examples
        --------
        >>> snapshot = DeltaLog("/data/orders").snapshot()
        >>> snapshot.scan("country = 'DE' AND amount > 10", ["id", "amount"]).to_arrow().to_pylist()
        [{'id': 3, 'amount': 30.0}]
        """
        from delta_ds.kernel.scan.scan import Scan

        return Scan(self, predicate, columns, timezone, tuple(metadata_columns))

    def blame(
        self,
        predicate: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        *,
        timezone: str = "UTC",
    ) -> Blame:
        """The rows of this version, each with the commit that last wrote it: version, time, operation, user, job.

        Copying a row is not writing it: rows that OPTIMIZE moves, or that a command leaves as they are in a file that
        it rewrites, keep their commit. Of commits that the log no longer has only the version is known.

        Parameters
        ----------
        predicate
            As in `scan`.
        columns
            Top-level columns to return, in order; None for all.
        timezone
            As in `scan`.

        Raises
        ------
        UnsupportedOperationError
            The table does not track rows.
        SchemaError
            A column does not exist, or has a name that is one of this answer's own.
        PredicateError
            As in `scan`.

        Examples
        --------
        >>> import pyarrow as pa
        >>> log = DeltaLog("/data/tracked")
        >>> version = log.write(pa.table({"id": [1]}), options={"delta.enableRowTracking": "true"})
        >>> version = log.write(pa.table({"id": [2]}), options={"userMetadata": "late rows"})
        >>> rows = log.snapshot().blame("id = 2").to_arrow()
        >>> rows.select(["id", "_commit_version", "_commit_user_metadata"]).to_pylist()
        [{'id': 2, '_commit_version': 1, '_commit_user_metadata': 'late rows'}]
        """
        from delta_ds.kernel.blame.blame import Blame

        return Blame(self, predicate, columns, timezone)

    def column_layout(self, column: str, *, timezone: str = "UTC") -> ColumnLayout:
        """The range of a column's values in each file, and how many files lookups by it read.

        Parameters
        ----------
        column
            Its name as in SQL: a field of a struct as `s.a`, backticks around odd names.
        timezone
            The zone of a partition column of timestamps whose values name none.

        Raises
        ------
        SchemaError
            There is no such column.
        UnsupportedOperationError
            Logs hold no bounds of values of its type.

        Examples
        --------
        >>> from delta_ds import DeltaLog
        >>> layout = DeltaLog("examples/data/sales").snapshot().column_layout("sold_on")
        >>> layout.num_files > layout.files_read() > 0
        True
        """
        from delta_ds.kernel.layout.column import column_layout

        return column_layout(self, column, timezone=timezone)

    @property
    def plot(self) -> Plots:
        """Pictures of the table up to this version: `history()`, `layout(column)`, `skipping(predicate)`; see `Plots`.

        They need matplotlib: `pip install "delta-ds[plot]"`.
        """
        from delta_ds.kernel.plot.plots import Plots

        log = _UpTo(self)
        return Plots(lambda function, *arguments: function(log, *arguments))

    def timeline(self, limit: int | None = None) -> Timeline:
        """How many files and bytes the table had at each version up to this one; see `DeltaLog.timeline`.

        Parameters
        ----------
        limit
            At most so many versions, the newest ones; None for all that the log still holds.

        Examples
        --------
        >>> snapshot = DeltaLog("/data/orders").snapshot()
        >>> snapshot.timeline().versions["version"].to_pylist()
        [0, 1]
        """
        from delta_ds.kernel.layout.timeline import timeline

        return timeline(self.storage, self, lambda version: open_snapshot(self.storage, version), limit)

    def detail(self) -> dict[str, Any]:
        """The table's description under the keys of `DESCRIBE DETAIL`; sizes in bytes, times in ms since 1970.

        Returns
        -------
        dict
            `format`, `id`, `location`, `numFiles`, `sizeInBytes`, `partitionColumns`, `properties`, ...

        Examples
        --------
        >>> snapshot = DeltaLog("/data/orders").snapshot()
        >>> snapshot.detail()["numFiles"], snapshot.detail()["partitionColumns"]
        (4, ['country'])
        """
        import pyarrow.compute as pc

        files = self.live_files()
        return {
            "format": "delta",
            "id": self.metadata.id,
            "name": self.metadata.name,
            "description": self.metadata.description,
            "location": self.storage.address.as_written,
            "createdAt": self.metadata.created_time,
            "lastModified": self.timestamp,
            "partitionColumns": self.partition_columns,
            "clusteringColumns": [".".join(path) for path in self.clustering_columns],
            "numFiles": files.num_rows,
            "sizeInBytes": pc.sum(files.table["size"]).as_py() or 0,
            "properties": self.properties,
            "minReaderVersion": self.protocol.min_reader,
            "minWriterVersion": self.protocol.min_writer,
            "tableFeatures": sorted(self.protocol.supported),
        }

    def __repr__(self) -> str:
        return f"Snapshot({self.storage.url!r}, version={self.version})"

    def __str__(self) -> str:
        return self._card().text()

    @property
    def _known_state(self) -> State | None:
        """The state, where nothing has to be read for it."""
        if self.is_loaded:
            return self.state
        base = self._opened.base
        return base.state if base is not None and base.version == self.version else None

    def _card(self) -> Card:
        state, metadata = self._known_state, self.metadata
        in_commit = history.in_commit_timestamps(self.table_state) is not None
        known_time = "timestamp" in vars(self) or not in_commit
        features = listed(sorted(self.protocol.supported)) or "no features"
        return Card(
            f"Delta table {self.storage.url}, version {self.version}",
            (
                ("name", metadata.name),
                ("description", metadata.description or None),
                ("committed", history.as_text(self.timestamp) if known_time else None),
                ("files", None if state is None else _files_text(state)),
                ("partitioned by", listed(self.partition_columns)),
                ("clustered by", None if state is None else listed(_dotted(state.table.clustering_columns))),
                ("properties", listed([f"{k}={v}" for k, v in sorted(metadata.configuration.items())])),
                ("protocol", f"{self.protocol.min_reader}, {self.protocol.min_writer}: {features}"),
            ),
            (
                table_of(
                    ("column", "type", "nullable", "comment"),
                    self.schema.fields,
                    lambda f: (f.name, str(f.type), "yes" if f.nullable else "no", f.metadata.get("comment")),
                ),
            ),
        )


class _UpTo:
    """The log of a table as it was at a version."""

    def __init__(self, latest: Snapshot) -> None:
        self._latest = latest

    def snapshot(self, version: int | None = None) -> Snapshot:
        latest = self._latest
        return latest if version in (None, latest.version) else open_snapshot(latest.storage, version)

    def timeline(self, limit: int | None = None) -> Timeline:
        return self._latest.timeline(limit)


def _dotted(paths: Sequence[Sequence[str]]) -> list[str]:
    return [".".join(path) for path in paths]


def _files_text(state: State) -> str:
    import pyarrow.compute as pc

    size = pc.sum(state.files.table["size"]).as_py() or 0
    return f"{state.files.num_rows:,}, {size_text(size)}"


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
