"""Where a stream begins: the version that the options name, or a whole snapshot, whose files come in a fixed order.

Source: delta-spark, `DeltaSource.getStartingVersion`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from delta_ds.conditions.protocol import LOG_FILE_NOT_FOUND, TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION
from delta_ds.conditions.streaming import LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE
from delta_ds.exceptions import LogError, TimestampOutOfRangeError, TruncatedLogError, VersionNotFoundError
from delta_ds.kernel.commands.changes.commit import change_constants, file_sizes
from delta_ds.kernel.files.read.plan import FileSlice, file_slices
from delta_ds.kernel.format.options.stream_read import LATEST, StreamReadOptions
from delta_ds.kernel.log import history
from delta_ds.kernel.log.segment import list_log, version_not_found
from delta_ds.kernel.log.snapshot import Snapshot, open_snapshot
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import replace

if TYPE_CHECKING:
    import numpy as np


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
