"""Stream offsets, positions in a table's history and their JSON: where a stream begins, and how far a batch may go.

It begins at the version that the options name, or with a whole snapshot, whose files come in a fixed order.

Source: delta-spark, `DeltaSource.getStartingVersion`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.protocol import LOG_FILE_NOT_FOUND, TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION
from delta_ds.conditions.streaming import (
    DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE,
    INVALID_FORMAT_FROM_SOURCE_VERSION,
    INVALID_SOURCE_OFFSET_FORMAT,
    LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE,
)
from delta_ds.exceptions import (
    LogError,
    TimestampOutOfRangeError,
    TruncatedLogError,
    UnsupportedOperationError,
    VersionNotFoundError,
)
from delta_ds.kernel.base.json_text import parse_json
from delta_ds.kernel.commands.changes.commit import change_constants, file_sizes
from delta_ds.kernel.files.read.plan import FileSlice, file_slices
from delta_ds.kernel.format.options.stream_read import DEFAULT_MAX_FILES, LATEST, StreamReadOptions
from delta_ds.kernel.log import history
from delta_ds.kernel.log.segment import list_log, version_not_found
from delta_ds.kernel.log.snapshot import Snapshot, open_snapshot
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    import numpy as np


FORMAT = 1
_FORMAT_KEY = "pydeltaOffset"


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """A position of a stream: everything before it has been read, nothing after it.

    Attributes
    ----------
    table_id
        `metaData.id` of the table.
    version, index
        The version that comes next, and how many of its files (or groups of changes) are done.
    is_starting_snapshot
        The version is the snapshot that the stream began with, and its files are all live ones, in order of
        modification time and path; otherwise they are what the commit added.
    origin_version, origin_is_snapshot
        Where the stream began. A query that crashed in its first batch asks for the beginning again, and must not
        get that of today.
    is_origin
        This was made as the beginning, not by reading.
    """

    table_id: str
    version: int
    index: int = 0
    is_starting_snapshot: bool = False
    origin_version: int = 0
    origin_is_snapshot: bool = False
    is_origin: bool = False

    @classmethod
    def beginning(cls, table_id: str, version: int, *, snapshot: bool) -> StreamOffset:
        """The offset before anything was read."""
        return cls(table_id, version, 0, snapshot, version, snapshot, is_origin=True)

    def at(self, version: int, index: int = 0, *, snapshot: bool = False) -> StreamOffset:
        """The offset of another position in the same stream."""
        if (version, index, snapshot) == self.position:
            return self
        return replace(self, version=version, index=index, is_starting_snapshot=snapshot, is_origin=False)

    @property
    def position(self) -> tuple[int, int, bool]:
        return self.version, self.index, self.is_starting_snapshot

    @property
    def key(self) -> tuple[int, int]:
        """Offsets of one stream in order: the files of a starting snapshot come before the next version."""
        return self.version, self.index

    def resolved(self, end: StreamOffset) -> StreamOffset:
        """The start of a batch that ends at `end`: this offset, or the beginning its query was started with."""
        if not self.is_origin or (self.origin_version, self.origin_is_snapshot) == end.origin:
            return self
        return StreamOffset.beginning(self.table_id, end.origin_version, snapshot=end.origin_is_snapshot)

    @property
    def origin(self) -> tuple[int, bool]:
        return self.origin_version, self.origin_is_snapshot

    def to_dict(self) -> dict[str, Any]:
        """The offset as plain JSON values, for Spark's checkpoint."""
        return {
            _FORMAT_KEY: FORMAT,
            "tableId": self.table_id,
            "version": self.version,
            "index": self.index,
            "isStartingSnapshot": self.is_starting_snapshot,
            "originVersion": self.origin_version,
            "originIsSnapshot": self.origin_is_snapshot,
            "isOrigin": self.is_origin,
        }

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), separators=(",", ":"))

    @classmethod
    def parse(cls, given: str | Mapping[str, Any], table_id: str, table: str) -> StreamOffset:
        """An offset out of a checkpoint.

        Parameters
        ----------
        given
            Of `to_json` or `to_dict`.
        table_id, table
            Of the table that is read now, and its address for messages.

        Raises
        ------
        LogError
            It is no offset of this package, or damaged.
        UnsupportedFeatureError
            A newer version of this package wrote it.
        UnsupportedOperationError
            It belongs to another table.
        """
        values = _values(given, table)
        form = values.get(_FORMAT_KEY)
        if isinstance(form, int) and _is_number(form) and form > FORMAT:
            raise INVALID_FORMAT_FROM_SOURCE_VERSION(table=table, found=form, known=FORMAT)
        found = _check_values(values, table)
        if found.table_id != table_id:
            raise different_table(table, table_id, found.table_id)
        return found


def different_table(table: str, now: str, before: str) -> UnsupportedOperationError:
    """The error for a table that is not the one a stream was reading."""
    return DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE(table=table, newTableId=now, oldTableId=before)


def _values(given: str | Mapping[str, Any], table: str) -> Mapping[str, Any]:
    if not isinstance(given, str):
        return given
    try:
        parsed = parse_json(given)
    except ValueError as error:
        raise _damaged_error(table, given) from error
    if not isinstance(parsed, dict):
        raise _damaged_error(table, given)
    return parsed


def _check_values(values: Mapping[str, Any], table: str) -> StreamOffset:
    if values.get(_FORMAT_KEY) != FORMAT or isinstance(values.get(_FORMAT_KEY), bool):
        if "reservoirId" in values:
            raise _damaged_error(table, values, _of_delta_spark(values))
        raise _damaged_error(table, values)
    numbers = [values.get(key) for key in ("version", "index", "originVersion")]
    flags = [values.get(key) for key in ("isStartingSnapshot", "originIsSnapshot", "isOrigin")]
    if (
        not isinstance(values.get("tableId"), str)
        or not all(_is_number(n) for n in numbers)
        or not all(isinstance(flag, bool) for flag in flags)
    ):
        raise _damaged_error(table, values)
    version, index, origin = numbers
    return StreamOffset(values["tableId"], version, index, flags[0], origin, flags[1], flags[2])  # type: ignore[arg-type]


def _of_delta_spark(values: Mapping[str, Any]) -> str:
    """What to say of an offset of delta-spark: where a new stream goes on, if the old one was between two versions."""
    said = "It was written by delta-spark, whose checkpoints cannot be continued here"
    version = values.get("reservoirVersion")
    if _is_number(version) and values.get("isStartingVersion") is False and values.get("index") in (-1, -100):
        return f"{said}; it has read all before version {version}, where startingVersion={version} goes on"
    return said


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _damaged_error(table: str, given: Any, more: str = "The checkpoint is damaged") -> LogError:
    return INVALID_SOURCE_OFFSET_FORMAT(table=table, given=given, more=more)


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What one batch reads at most; None for no limit.

    Attributes
    ----------
    max_files
        Files of a batch.
    max_bytes
        Soft: the file that passes it is still read, so that large files get through.
    """

    max_files: int | None = None
    max_bytes: int | None = None


ALL_AVAILABLE = ReadLimits()


def default_limits(options: StreamReadOptions) -> ReadLimits:
    """The limits that the options ask for.

    Source: delta-spark, `DeltaSource.AdmissionLimits`: bytes alone lift the default number of files.
    """
    files = options.max_files
    if files is None and options.max_bytes is None:
        files = DEFAULT_MAX_FILES
    return ReadLimits(files, options.max_bytes)


class Admission:
    """What is left of the limits of a batch."""

    def __init__(self, limits: ReadLimits) -> None:
        self._files = limits.max_files
        self._bytes = limits.max_bytes
        self._taken = False

    def has_room(self) -> bool:
        """Whether another file is admitted."""
        return (self._files is None or self._files > 0) and (self._bytes is None or self._bytes > 0)

    @property
    def files_left(self) -> int | None:
        """How many files may still come; None for no limit."""
        return self._files

    def take(self, sizes: np.ndarray[Any, Any]) -> int:
        """Admit files in order until the limits are reached; returns how many.

        Parameters
        ----------
        sizes
            Bytes of each file, int64.
        """
        import numpy as np

        if not self.has_room():
            return 0
        count = len(sizes)
        if self._files is not None:
            count = min(count, self._files)
        if self._bytes is not None:
            # A file is let in as long as those before it leave room.
            before = np.cumsum(sizes[:count]) - sizes[:count]
            count = int(np.searchsorted(before, self._bytes, "left"))
        self._spend(count, int(sizes[:count].sum()))
        return count

    def take_whole(self, files: int, size: int) -> bool:
        """Admit files that belong together, all or none; the first of a batch always."""
        fits = (self._files is None or files <= self._files) and (self._bytes is None or size <= self._bytes)
        if self._taken and not fits:
            return False
        self._spend(files, size)
        return True

    def _spend(self, files: int, size: int) -> None:
        if files:
            self._taken = True
        if self._files is not None:
            self._files -= files
        if self._bytes is not None:
            self._bytes -= size


def starting_version(storage: Storage, options: StreamReadOptions) -> int | None:
    """The first version to read as a commit; None for a stream that begins with a whole snapshot.

    Raises
    ------
    VersionNotFoundError
        The log does not hold the version: cleaned up, or not there yet.
    TimestampOutOfRangeError
        The timestamp is after the latest commit.
    """
    if options.starting_timestamp is not None:
        return _version_from(storage, history.milliseconds(options.starting_timestamp))
    if options.starting_version is None:
        return None
    if options.starting_version == LATEST:
        return open_snapshot(storage).version + 1
    version = int(options.starting_version)
    # From the version itself on: a long log need not be listed whole.
    if version not in list_log(storage, version).commits:
        raise version_not_found(list_log(storage), version)
    return version


def _version_from(storage: Storage, timestamp: int) -> int:
    """The first version committed at or after a timestamp, or the first there is."""
    state = open_snapshot(storage).table_state
    listing = list_log(storage)
    try:
        version = history.version_at(storage, listing, state, timestamp)
    except TimestampOutOfRangeError as error:
        if error.condition != TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION.name:
            raise
        return min(listing.commits)
    time = history.commit_times(storage, listing, state, [version])[version]
    return version if time >= timestamp else version + 1


# --- the initial snapshot


class StartingSnapshot:
    """The live files of a version by modification time and path, as delta-spark orders them.

    Made once a process: this alone of a stream replays the table.
    """

    def __init__(self, storage: Storage, version: int) -> None:
        self.version = version
        self.snapshot = snapshot_of_stream(storage, version)
        files = self.snapshot.live_files().table
        self._files = files.sort_by([("modificationTime", "ascending"), ("path", "ascending")])
        # Bytes of each file, int64.
        self.sizes: np.ndarray[Any, Any] = file_sizes(self._files["size"])

    @property
    def count(self) -> int:
        return int(self._files.num_rows)

    def slices(self, first: int, last: int, *, as_changes: bool) -> list[FileSlice]:
        """The files from `first` to before `last`; as inserts of the version for a stream of changes."""
        chosen = self._files.slice(first, last - first)
        slices = file_slices(chosen, self.snapshot.physical_partition_columns)
        if not as_changes:
            return slices
        constants = change_constants(self.version, self.snapshot.timestamp, "insert")
        return [replace(piece, constants=constants) for piece in slices]


def snapshot_of_stream(storage: Storage, version: int) -> Snapshot:
    """The snapshot of a version that a stream needs.

    Raises
    ------
    LogError
        The log does not hold it any more.
    """
    try:
        return open_snapshot(storage, version)
    except (VersionNotFoundError, TruncatedLogError) as error:
        raise _lagging_error(storage, version, error) from error
    except LogError as error:
        if error.condition != LOG_FILE_NOT_FOUND.name:
            raise
        raise _lagging_error(storage, version, error) from error


def _lagging_error(storage: Storage, version: int, error: LogError | VersionNotFoundError) -> LogError:
    return LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE(table=storage.url, version=version, reason=error.text)
