"""The schema a stream reads with, and the change to another one.

Without a schema log a change that cannot be read with it stops the stream; with one, a batch ends before the change,
the log gets an entry, and the stream stops to be started again.
"""

from __future__ import annotations

from delta_ds.conditions.streaming import (
    SCHEMA_CHANGED_IN_STREAM,
    SCHEMA_CHANGED_WITH_STARTING_OPTIONS,
    STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT,
    STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG,
    STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA,
)
from delta_ds.exceptions import ChangeDataError, DeltaError, LogError, SchemaError
from delta_ds.kernel.commands.streaming.commits import StreamedCommit
from delta_ds.kernel.commands.streaming.offsets import StreamOffset, different_table, snapshot_of_stream
from delta_ds.kernel.commands.streaming.schema_log import (
    SchemaLog,
    differs_from,
    evolved_error,
    state_to_read,
)
from delta_ds.kernel.format.actions import Metadata
from delta_ds.kernel.format.features import TYPE_WIDENING
from delta_ds.kernel.format.options.stream_read import StreamReadOptions
from delta_ds.kernel.format.properties import ENABLE_CHANGE_DATA_FEED
from delta_ds.kernel.format.schema.version_changes import MappedChanges, incompatibility, mapped_changes
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.storage.filesystem import Storage


class ReadSchema:
    """The schema of a stream. Can be pickled.

    Parameters
    ----------
    newest
        The newest version of the table when the stream was opened.
    """

    def __init__(self, storage: Storage, options: StreamReadOptions, newest: TableState) -> None:
        self._storage = storage
        self._options = options
        self.newest = newest
        self._log = SchemaLog(options, newest) if options.schema_tracking_location is not None else None
        # The entry that the source was opened with, which changes up to its version cannot surprise.
        entry = None if self._log is None else self._log.current
        self._tracked_until = -1 if entry is None else entry.read_state.version
        self.read_state = newest if entry is None else entry.read_state
        self._started = False

    @property
    def newest_version(self) -> int:
        return self.newest.version

    @property
    def is_tracking(self) -> bool:
        """Whether a schema log decides the schema of the stream."""
        return self._log is not None and self._log.current is not None

    def start_at(self, start: StreamOffset, end: StreamOffset | None = None) -> None:
        """Check, once a source, that the stream can be read from an offset on.

        Parameters
        ----------
        end
            Of a batch that is in the checkpoint already, so that it must be read as a whole.

        Raises
        ------
        SchemaError
            The schema log has to be looked at: a change that nobody agreed to, or a first entry that is not what the
            source was opened with. Without one: data of the version cannot be read with the schema of the stream.
        ChangeDataError
            Changes are not recorded.
        """
        if self._started:
            return
        # The schema that was read with last, so that a column renamed since then does not go unnoticed.
        has_read = start.version > 0 and not (start.index or start.is_starting_snapshot or start.is_origin)
        # A version that is not there yet begins with the schema of the one before.
        version = start.version - 1 if has_read or start.version > self.newest_version else start.version
        if self._log is not None:
            self._start_log(self._log, version, start, end)
            if self._options.change_feed:
                self._check_changes(self.read_state)
        elif version != self.newest_version:
            self._check_start(version)
        elif self._options.change_feed:
            self._check_changes(self.read_state)
        self._started = True

    def _start_log(self, log: SchemaLog, version: int, start: StreamOffset, end: StreamOffset | None) -> None:
        if log.current is not None:
            log.check_agreed()
            if version > self._tracked_until and not start.is_starting_snapshot:
                self._check_not_missed(version)
            return
        first = self._pinned_at(start.version)
        last = start.version if end is None else end.version if end.index else end.version - 1
        if last > start.version:
            before, first = first, self._pinned_at(last)
            if not readable_with(before.metadata, first):
                raise self.not_in_one_batch(start.version, last)
        log.append(first)
        if differs_from(self.read_state, first.metadata, first.protocol):
            raise evolved_error(first)
        self._tracked_until = first.version

    def _pinned_at(self, version: int) -> TableState:
        """The protocol and metadata in force at a version; at one not there yet, those of the one before."""
        if version > self.newest_version:
            version -= 1
        return self.newest if version == self.newest_version else self._looked_up(version)

    def _looked_up(self, version: int) -> TableState:
        return state_to_read(snapshot_of_stream(self._storage, version))

    def _check_not_missed(self, version: int) -> None:
        """Refuse the schema log of a stream that has not seen all commits up to a version.

        Whoever begins a stream anew, later in the log, with the schema log of an earlier one, passes over changes.
        """
        try:
            found = self._looked_up(version)
        except LogError:
            # Too old to be looked up, while the commits after it are there: the log is of this very stream.
            return
        if differs_from(self.read_state, found.metadata, found.protocol):
            assert self._log is not None
            self._log.append(found)
            raise evolved_error(found)

    def _check_start(self, version: int) -> None:
        """Check the schema in force before the first commit that is read."""
        try:
            snapshot = snapshot_of_stream(self._storage, version)
        except LogError as error:
            if self.read_state.mapping_mode == "none" and not self._options.change_feed:
                # As delta-spark: the commits may still be there, and are checked one by one.
                return
            raise STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT(
                version=version, table=self._storage.url, reason=error.text
            ) from error
        self.check_snapshot(snapshot)

    def check_snapshot(self, snapshot: Snapshot) -> None:
        """Refuse a snapshot that the stream begins with, or in the middle of, as `check` does a commit."""
        if not self.is_tracking:
            self._check_metadata(snapshot.table_state)
        elif snapshot.version > self._tracked_until and differs_from(
            self.read_state, snapshot.metadata, snapshot.protocol
        ):
            # The first snapshot of a stream that was begun anew with the schema log of an earlier one.
            assert self._log is not None
            self._log.append(state_to_read(snapshot), replacing=True)
            raise evolved_error(state_to_read(snapshot))

    def check(self, commit: StreamedCommit) -> None:
        """Refuse a commit whose schema or protocol the stream cannot read with.

        Raises
        ------
        SchemaError, UnsupportedOperationError
            See `check_schema`.
        UnsupportedFeatureError
            Reading on needs a feature that this package does not have.
        ChangeDataError
            Changes are not recorded any more.
        """
        if commit.protocol is not None or commit.metadata is not None:
            self._after(commit).check_readable()
        if commit.metadata is not None and not self.is_tracking:
            self._check_metadata(self._after(commit))

    def _after(self, commit: StreamedCommit) -> TableState:
        """The protocol and metadata in force after a commit."""
        return self.read_state.after(commit.version, commit.protocol, commit.metadata)

    def _check_metadata(self, state: TableState) -> None:
        check_schema(self.read_state, state.metadata, state.version, has_start=self._options.has_start)
        if self._options.change_feed:
            self._check_changes(state)

    def _check_changes(self, state: TableState) -> None:
        # The property alone, as in delta-spark: whether the protocol obliged writers is not asked.
        if not ENABLE_CHANGE_DATA_FEED.of(state.properties):
            raise ChangeDataError(
                f"Error getting change data for range [{state.version} , {state.version}] as change data was not "
                f"recorded for version [{state.version}] of {self._storage.url}. Start at a version after "
                "delta.enableChangeDataFeed was set (see the history), or set it to record changes from now on",
            )

    # --- with a schema log

    def is_barrier(self, commit: StreamedCommit) -> bool:
        """Whether a batch has to end before a commit, since the stream must read on with another schema.

        Raises
        ------
        UnsupportedOperationError
            From the commit on it is another table.
        """
        if not self.is_tracking or commit.version <= self._tracked_until:
            return False
        table_id = self.read_state.metadata.id
        if commit.metadata is not None and commit.metadata.id != table_id:
            raise different_table(self._storage.url, commit.metadata.id, table_id)
        return differs_from(self.read_state, commit.metadata, commit.protocol)

    def evolve(self, commit: StreamedCommit) -> DeltaError:
        """Record a commit's new schema in the schema log; returns the error that stops the stream."""
        assert self._log is not None
        after = self._after(commit)
        self._log.append(after)
        return evolved_error(after)

    def not_in_one_batch(self, start: int, end: int) -> SchemaError:
        """The error for a batch of a checkpoint that no one schema can read."""
        return STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA(
            table=self._storage.url, start=start, end=end
        )


# --- whether a stream can continue after a schema change, and the error if not
# Source: delta-spark, `DeltaSource.checkReadIncompatibleSchemaChanges`.


def check_schema(read_state: TableState, metadata: Metadata, version: int, *, has_start: bool) -> None:
    """Refuse the metadata of another version if its data cannot be read with the schema of the stream.

    Parameters
    ----------
    read_state
        What the stream reads with.
    metadata, version
        Of a commit on the way.
    has_start
        Whether the stream was told where to begin, for the advice.

    Raises
    ------
    SchemaError
        With the advice to restart where that helps: an added column is read after a restart.
    UnsupportedOperationError
        Another table has taken its place.
    """
    backfilling = version < read_state.version
    # What was there before the table was replaced is read on the way to it.
    if metadata.id != read_state.metadata.id and not backfilling:
        raise different_table(read_state.table, metadata.id, read_state.metadata.id)
    old, new = (metadata, read_state.metadata) if backfilling else (read_state.metadata, metadata)
    changes = mapped_changes(old, new)
    if changes is None or changes.renamed or changes.dropped:
        raise _needs_schema_log(read_state, metadata, version, changes)
    problem = incompatibility(
        metadata.schema, read_state.schema, widening=backfilling and read_state.supports(TYPE_WIDENING)
    )
    if problem is None and metadata.partition_columns != read_state.metadata.partition_columns:
        problem = "the partition columns are others"
    if problem is not None:
        raise _changed_error(read_state, metadata, version, problem, has_start)


def readable_with(metadata: Metadata, later: TableState) -> bool:
    """Whether data of one version can be read with the schema of a later one."""
    changes = mapped_changes(metadata, later.metadata)
    if changes is None or changes.renamed or changes.dropped:
        return False
    return incompatibility(metadata.schema, later.schema, widening=later.supports(TYPE_WIDENING)) is None


def _needs_schema_log(
    read_state: TableState, metadata: Metadata, version: int, changes: MappedChanges | None
) -> SchemaError:
    what = changes.text if changes else "the column mapping or the partitioning changed"
    return STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG(
        version=version,
        stream_version=read_state.version,
        table=read_state.table,
        what=what,
        read_schema=read_state.schema,
        data_schema=metadata.schema,
    )


def _changed_error(
    read_state: TableState, metadata: Metadata, version: int, problem: str, has_start: bool
) -> SchemaError:
    advice = "Start the query again with a new readStream...load(), which takes the new schema"
    if version < read_state.version:
        advice = "The change cannot be read across: begin with a new checkpoint"
        if has_start:
            advice += f" and a startingVersion after {version}"
    changed = SCHEMA_CHANGED_WITH_STARTING_OPTIONS if has_start else SCHEMA_CHANGED_IN_STREAM
    return changed(
        version=version,
        table=read_state.table,
        problem=problem,
        advice=advice,
        read_schema=read_state.schema,
        data_schema=metadata.schema,
    )
