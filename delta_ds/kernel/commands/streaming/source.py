"""`StreamSource`: offsets, and the files between two of them.

All state is in the offsets, so that every call may happen in another process. What one process has parsed is kept for
its next call: a batch is planned by `latest_offset` and read by `tasks`.

Source: delta-spark, `DeltaSource`, `DeltaSourceCDCSupport`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from delta_ds.conditions.schema import COLUMN_NOT_FOUND_IN_STREAM
from delta_ds.conditions.streaming import NO_TABLE_TO_STREAM
from delta_ds.exceptions import LogError, NotADeltaTableError, TimestampOutOfRangeError, VersionNotFoundError
from delta_ds.kernel.commands.changes import CHANGE_FIELDS
from delta_ds.kernel.commands.changes.key_codes import check_keys
from delta_ds.kernel.commands.changes.net import Net, check_net
from delta_ds.kernel.commands.streaming.commit_files import AddedFiles, ChangedRows, Piece
from delta_ds.kernel.commands.streaming.commits import CommitReader, lost_end
from delta_ds.kernel.commands.streaming.offsets import (
    ALL_AVAILABLE,
    Admission,
    ReadLimits,
    StartingSnapshot,
    StreamOffset,
    default_limits,
    different_table,
    starting_version,
)
from delta_ds.kernel.commands.streaming.read_schema import ReadSchema
from delta_ds.kernel.commands.streaming.schema_log import state_to_read
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.format.options.stream_read import StreamReadOptions
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log.snapshot import open_snapshot
from delta_ds.kernel.storage.filesystem import Storage


class StreamSource:
    """A table as the source of a stream; made by `StreamSource.open`. Can be pickled.

    Attributes
    ----------
    storage, options
        As given.
    read_state
        The version whose schema the stream reads with: the newest one when it was opened, or an entry of the
        schema log.
    """

    def __init__(
        self, storage: Storage, options: StreamReadOptions, read_state: TableState, timezone: str = "UTC"
    ) -> None:
        self.storage = storage
        self.options = options
        self.timezone = options.known_zone or timezone
        self._read_schema = ReadSchema(storage, options, read_state)
        self._origin: StreamOffset | None = None
        self._set_up()

    @classmethod
    def open(cls, storage: Storage, options: StreamReadOptions, timezone: str = "UTC") -> StreamSource:
        """Pin the newest version of a table: once for a query, before its first call.

        Parameters
        ----------
        storage
            The table's.
        options
            See `StreamReadOptions`.
        timezone
            The session time zone; the option `timeZone` goes before it.

        Raises
        ------
        NotADeltaTableError
            There is no table.
        SchemaError
            It has no columns yet, or a column that is asked for does not exist.
        """
        try:
            newest = open_snapshot(storage)
        except NotADeltaTableError as error:
            raise NO_TABLE_TO_STREAM(reason=error.text) from None
        source = cls(storage, options, state_to_read(newest), timezone)
        source.plan(0)
        return source

    def renewed(self) -> StreamSource:
        """The stream on the newest table, if its columns are the same; else this one.

        A stream is begun some time after it was opened.
        """
        now = StreamSource.open(self.storage, self.options, self.timezone)
        return now if now.schema == self.schema else self

    def _set_up(self) -> None:
        """Open what each process needs for itself."""
        columns = self.read_state.physical_partition_columns
        self._commits = CommitReader(
            self.storage, columns, self.read_state.metadata.id, fail_on_gap=self.options.fail_on_data_loss
        )
        self._files: AddedFiles | ChangedRows
        if self.options.change_feed:
            self._files = ChangedRows(self.storage, columns, netted=self.options.net is not None)
        else:
            self._files = AddedFiles(self.storage.url, columns, self.options)
        self._snapshot: StartingSnapshot | None = None

    def __getstate__(self) -> dict[str, Any]:
        made = ("_commits", "_files", "_snapshot")
        return {name: value for name, value in self.__dict__.items() if name not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_up()

    @property
    def read_state(self) -> TableState:
        return self._read_schema.read_state

    @property
    def schema(self) -> StructType:
        """The columns of the stream: those asked for, and of a stream of changes those that describe the change."""
        plan = self.plan(0)
        return StructType((*plan.schema.fields, *plan.extra.fields))

    @property
    def default_limits(self) -> ReadLimits:
        """What a batch reads at most, by the options."""
        return default_limits(self.options)

    def offset(self, given: str | Mapping[str, Any]) -> StreamOffset:
        """An offset out of a checkpoint; errors as `StreamOffset.parse`."""
        return StreamOffset.parse(given, self.read_state.metadata.id, self.storage.url)

    # --- offsets

    def initial_offset(self) -> StreamOffset:
        """The offset before anything was read; the same for as long as the source lives.

        Raises
        ------
        VersionNotFoundError, TimestampOutOfRangeError
            The starting version or timestamp is out of reach.
        """
        if self._origin is None:
            version = starting_version(self.storage, self.options)
            snapshot = version is None
            number = self._read_schema.newest_version if version is None else version
            self._origin = StreamOffset.beginning(self.read_state.metadata.id, number, snapshot=snapshot)
        return self._origin

    def available_now(self, start: StreamOffset | None = None) -> StreamOffset:
        """The current end of the log, by one listing.

        For `Trigger.AvailableNow`, as the bound of `latest_offset`; and for Spark versions that ask for the latest
        offset without saying where they are, with no `start`.
        """
        origin = self._origin_or_now() if start is None else start
        first = origin.version + 1 if origin.is_starting_snapshot else origin.version
        self._check(origin)
        end = self._commits.latest(first) + 1
        return origin.at(max(end, first)) if end > origin.version else origin

    def all_available(self) -> StreamOffset:
        """The end of what one batch can read, for a process that has not been told where the stream is.

        The end of the log; with a schema log, the commit from which on the stream needs another schema.

        Raises
        ------
        DeltaError
            As `latest_offset`, where a schema log has no entry yet.
        """
        if self.options.schema_tracking_location is None:
            return self.available_now()
        if not self._read_schema.is_tracking:
            return self.latest_offset(self.initial_offset(), ALL_AVAILABLE)
        end = self.available_now()
        try:
            for commit in self._commits.commits(self.read_state.version + 1, end.version):
                if self._read_schema.is_barrier(commit):
                    return end.at(commit.version)
        except LogError:
            # Cleaned up: the stream is further on than its entry, and what it reads is looked at again.
            return end
        return end

    def _origin_or_now(self) -> StreamOffset:
        try:
            return self.initial_offset()
        except (VersionNotFoundError, TimestampOutOfRangeError):
            # After a restart the options do not count, and their version may be gone. A first start is told when it
            # asks for its beginning.
            return StreamOffset.beginning(
                self.read_state.metadata.id, self._read_schema.newest_version, snapshot=False
            )

    def latest_offset(
        self,
        start: StreamOffset,
        limits: ReadLimits | None = None,
        bound: StreamOffset | None = None,
    ) -> StreamOffset:
        """The end of the batch that begins at an offset; the offset itself where nothing came after it.

        Reads the commits of the batch and none before it.

        Parameters
        ----------
        start
            Of `initial_offset`, or the end of the batch before.
        limits
            None for those of the options; `ALL_AVAILABLE` for none.
        bound
            Of `available_now`: the batch ends there at the latest.

        Raises
        ------
        UnsupportedOperationError
            A commit changes rows, and no option says what to do then; or this is another table now.
        SchemaError
            The schema has changed: whether a restart helps is in the message.
        LogError
            The log does not reach back to the offset, or is damaged.
        """
        self._check(start)
        self._read_schema.start_at(start)
        admission = Admission(limits or self.default_limits)
        if not start.is_starting_snapshot:
            return self._latest_of_commits(start, start, admission, bound)
        snapshot = self._starting_snapshot(start.version)
        end = start.index + admission.take(snapshot.sizes[start.index :])
        if end < snapshot.count:
            return start.at(start.version, end, snapshot=True)
        return self._latest_of_commits(start, start.at(start.version + 1), admission, bound)

    def _latest_of_commits(
        self, start: StreamOffset, position: StreamOffset, admission: Admission, bound: StreamOffset | None
    ) -> StreamOffset:
        if not admission.has_room():
            return position
        end = None if bound is None else bound.version
        for commit in self._commits.commits(position.version, end, about=admission.files_left):
            if self._read_schema.is_barrier(commit):
                if position == start:
                    # All that came before the change has been read and committed.
                    raise self._read_schema.evolve(commit)
                return position
            self._read_schema.check(commit)
            units = self._files.units(commit)
            done = position.index if commit.version == position.version else 0
            admitted = done + units.admit(admission, done)
            if admitted < units.count:
                return start.at(commit.version, admitted)
            position = start.at(commit.version + 1)
            if not admission.has_room():
                break
        return position

    def _check(self, offset: StreamOffset) -> None:
        if offset.table_id != self.read_state.metadata.id:
            raise different_table(self.storage.url, self.read_state.metadata.id, offset.table_id)

    def _starting_snapshot(self, version: int) -> StartingSnapshot:
        if self._snapshot is None or self._snapshot.version != version:
            self._snapshot = StartingSnapshot(self.storage, version)
            self._read_schema.check_snapshot(self._snapshot.snapshot)
        return self._snapshot

    # --- reading

    def tasks(self, start: StreamOffset, end: StreamOffset) -> tuple[ReadPlan, list[FileSlice]]:
        """The tasks between two offsets, always the same ones.

        Parameters
        ----------
        start, end
            Of one batch, from this process or a checkpoint.

        Returns
        -------
        tuple
            The plan and the slices for `read_slices`: one a file, in order. `read.plan.pack` makes tasks of them.
            Where changes are netted, the plan has all columns, and one task takes all slices: see `netted`.

        Raises
        ------
        UnsupportedOperationError, SchemaError, LogError
            As `latest_offset`.
        """
        start = start.resolved(end)
        self._check(start)
        self._check(end)
        plan = self._plan(end.version, None if self.options.net else self.options.columns)
        if end.position == start.position:
            return plan, []
        self._read_schema.start_at(start, end)
        slices: list[FileSlice] = []
        position = start
        if start.is_starting_snapshot:
            snapshot = self._starting_snapshot(start.version)
            last = end.index if end.is_starting_snapshot else snapshot.count
            slices += snapshot.slices(start.index, last, as_changes=self.options.change_feed)
            position = start.at(start.version + 1)
        if not end.is_starting_snapshot:
            self._snapshot = None
            slices += self._files.slices(list(self._between(position, end)))
        return plan, self._without_excluded(slices)

    def netted(self) -> tuple[tuple[str, ...], Net] | None:
        """The keys by which the rows of a batch have to be netted, and how; None: each change counts."""
        net = check_net(self.options.net, self.options.keys)
        if net is None:
            return None
        return check_keys(self.options.keys or (), self.read_state.schema, self.storage.url), net

    def _between(self, start: StreamOffset, end: StreamOffset) -> Iterator[Piece]:
        """The commits between two offsets, each with its first unit and the one to stop before."""
        stop = end.version + 1 if end.index else end.version
        seen = start.version - 1
        for commit in self._commits.commits(start.version, stop):
            seen = commit.version
            if self._read_schema.is_barrier(commit):
                raise self._read_schema.not_in_one_batch(start.version, end.version)
            self._read_schema.check(commit)
            first = start.index if commit.version == start.version else 0
            count = self._files.units(commit).count
            yield commit, first, end.index if commit.version == end.version else count
        if seen < stop - 1 and self.options.fail_on_data_loss:
            raise lost_end(self.storage.url, stop - 1, seen)

    def _without_excluded(self, slices: list[FileSlice]) -> list[FileSlice]:
        if self.options.exclude_regex is None:
            return slices
        excluded = re.compile(self.options.exclude_regex)
        return [piece for piece in slices if excluded.search(piece.path) is None]

    def plan(self, version: int) -> ReadPlan:
        """What the slices of a batch share.

        Parameters
        ----------
        version
            Up to which the batch reads, for messages.
        """
        if self.options.keys is not None:
            check_keys(self.options.keys, self.read_state.schema, self.storage.url)
        return self._plan(version, self.options.columns)

    def _plan(self, version: int, columns: Sequence[str] | None) -> ReadPlan:
        fields, extra = self._chosen(columns)
        return ReadPlan.of(
            self.read_state,
            schema=fields,
            version=version,
            timezone=self.timezone,
            metadata_columns=self.options.metadata_columns,
            extra=extra,
        )

    def _chosen(self, columns: Sequence[str] | None) -> tuple[StructType, StructType]:
        """The requested columns, of the table and of changes."""
        schema = self.read_state.schema
        offered = CHANGE_FIELDS if self.options.change_feed else StructType()
        if columns is None:
            return schema, offered
        fields = []
        for name in columns:
            field = schema.find(name)
            if field is not None:
                fields.append(field)
            elif offered.find(name) is None:
                raise COLUMN_NOT_FOUND_IN_STREAM(
                    column=name, table=self.storage.url, columns=[*schema.names, *offered.names]
                )
        return StructType(tuple(fields)), StructType(tuple(f for f in offered if f.name in columns))

    def __repr__(self) -> str:
        return f"StreamSource({self.storage.url!r}, version={self.read_state.version})"
