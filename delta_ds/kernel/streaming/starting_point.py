"""The first version of a stream: a whole snapshot, or what the options name.

Source: delta-spark, `DeltaSource.getStartingVersion`.
"""

from __future__ import annotations

from delta_ds.conditions.log import TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION
from delta_ds.exceptions import TimestampOutOfRangeError
from delta_ds.kernel.log import history
from delta_ds.kernel.log.segment import list_log, version_not_found
from delta_ds.kernel.options.stream_read import LATEST, StreamReadOptions
from delta_ds.kernel.snapshot import open_snapshot
from delta_ds.kernel.storage.filesystem import Storage


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
