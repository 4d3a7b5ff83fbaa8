"""The change data feed of a range of versions: its bounds, its schema and its file slices.

Source: protocol-checklist CDF-*; delta-spark, `CDCReader`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

from delta_ds.conditions.options import NO_START_FOR_CDC_READ
from delta_ds.conditions.protocol import LOG_FILE_OF_CHANGES_NOT_FOUND
from delta_ds.conditions.streaming import (
    CDC_START_VERSION_AFTER_LATEST,
    CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA,
    CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE,
    INVALID_CDC_RANGE,
)
from delta_ds.exceptions import ChangeDataError, SchemaError
from delta_ds.kernel.commands.changes.commit import CHANGE_FIELDS, CHANGE_TYPE, CommitChanges, SliceMaker
from delta_ds.kernel.commands.changes.key_codes import check_keys
from delta_ds.kernel.commands.changes.net import Net, check_net
from delta_ds.kernel.commands.changes.net_memory import net_batches
from delta_ds.kernel.files.read.file_columns import output_schema
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan, pack
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.files.scan.scan import DEFAULT_PARTITION_BYTES
from delta_ds.kernel.format.actions import Metadata
from delta_ds.kernel.format.properties import ENABLE_CHANGE_DATA_FEED
from delta_ds.kernel.format.schema.column_mapping import physical_name
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.format.schema.version_changes import incompatibility, mapped_changes
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log import history
from delta_ds.kernel.log.commit import parse_each, read_commits
from delta_ds.kernel.log.file_actions import actions_schema
from delta_ds.kernel.log.json_actions import iterate_bodies
from delta_ds.kernel.log.segment import LogListing, list_log
from delta_ds.kernel.log.snapshot import Snapshot, open_snapshot
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import replace

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from delta_ds.kernel.log.commit import Commit

# --- how the files of a change feed are partitioned: a table may be overwritten with other partition columns

Names = tuple[str, ...]


class Partitionings:
    """The partition columns of the files of each commit: what it adds may have others than what it removes.

    Parameters
    ----------
    state
        By whose schema and partition columns the feed is read.
    first
        The partition columns after the first commit.
    commits
        Of the range, in order.

    Attributes
    ----------
    columns
        Physical names of all of them; those of `state` come first.
    """

    def __init__(self, state: TableState, first: Sequence[str], commits: Sequence[Commit]) -> None:
        fields = {field.name: physical_name(field, state.mapping_mode) for field in state.schema}
        self._read = tuple(state.partition_columns)
        self._physical = fields
        self._logical = {physical: name for name, physical in fields.items()}
        # By version: of what it removes, and of what it adds.
        self._of: dict[int, tuple[Names, Names]] = {}
        before: Names | None = None
        after = tuple(first)
        for commit in commits:
            if commit.metadata is not None:
                after = tuple(commit.metadata.partition_columns)
                if before is None:
                    before = self._removed(commit)
            self._of[commit.version] = (after if before is None else before, after)
            before = after
        others = {name for both in self._of.values() for names in both for name in names}
        more = sorted(others.difference(self._read))
        self.columns = tuple(fields.get(name, name) for name in (*self._read, *more))

    def _removed(self, commit: Commit) -> Names | None:
        """The partition columns of the files that a commit removes, as it tells itself; None where it does not."""
        for _, remove in iterate_bodies(commit.data, commit.where, "remove"):
            values = remove.get("partitionValues")
            if values is not None:
                return tuple(self._logical.get(key, key) for key in values)
        return None

    def fitted(self, version: int, slices: list[FileSlice]) -> list[FileSlice]:
        """The slices of a commit, made with `columns`, as the plan of the feed reads them."""
        removed, added = self._of[version]
        return [
            self._fitted(piece, removed if dict(piece.constants).get(CHANGE_TYPE) == "delete" else added)
            for piece in slices
        ]

    def _fitted(self, piece: FileSlice, names: Names) -> FileSlice:
        values = dict(zip(self.columns, piece.partition_values, strict=True))
        names = self._read if set(names) == set(self._read) else names
        return replace(
            piece,
            partition_values=tuple(values[self._physical.get(name, name)] for name in names),
            partition_columns=None if names == self._read else names,
        )


# --- the change data feed of a range of versions: its bounds, its schema and its file slices


def open_changes(
    storage: Storage,
    start: int | None,
    end: int | None,
    starting_timestamp: datetime | int | None = None,
    ending_timestamp: datetime | int | None = None,
    timezone: str = "UTC",
    net: str | None = None,
    keys: Sequence[str] | None = None,
    newest: int | None = None,
) -> ChangeFeed:
    """The feed of a range; arguments and errors as for `DeltaLog.changes`.

    `newest` is the version that counts as the newest, for a read that was begun before.
    """
    kind = check_net(net, keys)
    latest = open_snapshot(storage, newest)
    listing = list_log(storage)
    if starting_timestamp is not None:
        start = _first_from(storage, listing, latest.table_state, history.milliseconds(starting_timestamp))
    if ending_timestamp is not None:
        end = history.version_at(storage, listing, latest.table_state, history.milliseconds(ending_timestamp))
    if start is None:
        raise NO_START_FOR_CDC_READ(table=storage.url)
    if start > latest.version:
        raise CDC_START_VERSION_AFTER_LATEST(start=start, table=storage.url, latest=latest.version)
    if end is not None and end < start:
        raise INVALID_CDC_RANGE(start=start, end=end, table=storage.url)
    last = latest.version if end is None else min(end, latest.version)
    feed = ChangeFeed(storage, listing, latest, start, last, timezone)
    return feed if kind is None else feed._netted(kind, keys or ())


def _first_from(storage: Storage, listing: LogListing, state: TableState, timestamp: int) -> int:
    """The first version committed at or after a moment."""
    versions = sorted(listing.commits)
    times = history.commit_times(storage, listing, state, versions)
    for version in versions:
        if times[version] >= timestamp:
            return version
    raise history.too_late(storage, timestamp, times[versions[-1]])


class ChangeFeed:
    """The changes of a range of versions, at the newest schema; at that of its end where columns are mapped.

    Attributes
    ----------
    start, end
        The first and last version, inclusive.
    columns_of
        The version whose columns it has.
    net, keys
        What becomes of the changes of a key (`net`, `latest`), and its columns; None and none where each change counts.
    """

    def __init__(
        self,
        storage: Storage,
        listing: LogListing,
        latest: Snapshot,
        start: int,
        end: int,
        timezone: str | None,
    ) -> None:
        self.storage = storage
        self.start = start
        self.end = end
        self.timezone = timezone
        self.net: Net | None = None
        self.keys: tuple[str, ...] = ()
        self._listing = listing
        self._latest = latest
        self._check_log()
        self._at_end = latest if end == latest.version else open_snapshot(storage, end)
        self._snapshot = self._read_by(self._at_end)
        self.columns_of = self._snapshot.version
        files = [listing.commits[version] for version in self._versions]
        self._commits = read_commits(storage, files)
        self._check_range()

    def _read_by(self, end: Snapshot) -> Snapshot:
        """The version whose columns the feed has: the newest, where data of the end of the range can be read with it.

        Source: delta-spark, `CDCReader`: schema mode `legacy` without column mapping, `endVersion` with it.
        """
        latest = self._latest
        mapped = any(s.table_state.mapping_mode != "none" for s in (latest, end))
        if mapped or incompatibility(end.schema, latest.schema, widening=False) is not None:
            return end
        return latest

    def _netted(self, net: Net, keys: Sequence[str]) -> ChangeFeed:
        self.keys = check_keys(keys, self._snapshot.schema, self.storage.url)
        self.net = net
        return self

    @property
    def _versions(self) -> range:
        return range(self.start, self.end + 1)

    def _check_log(self) -> None:
        for version in self._versions:
            if version not in self._listing.commits:
                raise LOG_FILE_OF_CHANGES_NOT_FOUND(
                    version=version,
                    table=self.storage.url,
                    start=self.start,
                    earliest=min(self._listing.commits),
                )

    def _check_range(self) -> None:
        """Refuse a range in which changes were not always recorded, or whose schemas do not fit."""
        first = self._at_end if self.start == self.end else open_snapshot(self.storage, self.start)
        self._first = first.metadata
        self._check_recorded(self._first, self.start)
        changed: list[int] = []
        for commit in self._commits:
            for body in commit.bodies("metaData"):
                metadata = Metadata.from_action(body, commit.where)
                self._check_recorded(metadata, commit.version)
                if commit.version > self.start:
                    changed.append(commit.version)
                    problem = self._unreadable(metadata)
                    if problem is not None:
                        raise CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE(
                            **self._range(commit.version), version=commit.version, problem=problem
                        )
        problem = self._unreadable(self._first)
        if problem is not None:
            raise CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA(
                **self._range(changed[0]), version=self.start, problem=problem
            )

    def _check_recorded(self, metadata: Metadata, version: int) -> None:
        if metadata.configuration.get(ENABLE_CHANGE_DATA_FEED.name, "false").lower() != "true":
            raise ChangeDataError(
                f"Error getting change data for range [{self.start} , {self.end}] as change data was not recorded for "
                f"version [{version}] of {self.storage.url}. Start at a version after "
                f"{ENABLE_CHANGE_DATA_FEED} was set (see the history), or set it to record changes from now on",
                parameters={
                    "version": version,
                    "startVersion": self.start,
                    "endVersion": self.end,
                    "key": ENABLE_CHANGE_DATA_FEED.name,
                },
            )

    def _range(self, change: int) -> dict[str, object]:
        """The range, and the two that lie on either side of a change, for errors."""
        return {
            "table": self.storage.url,
            "start": self.start,
            "end": self.end,
            "before": change - 1,
            "change": change,
        }

    def _unreadable(self, metadata: Metadata) -> str | None:
        """Why data of other columns cannot be read with those of the end of the range; None if it can."""
        read = self._snapshot.metadata
        changes = mapped_changes(metadata, read, repartitioned=True)
        if changes is None:
            return "column mapping was switched off, or its mode changed"
        if changes.renamed or changes.dropped:
            return changes.text
        return incompatibility(metadata.schema, read.schema, widening=False)

    @property
    def schema(self) -> StructType:
        """The columns of the table, and `_change_type`, `_commit_version`, `_commit_timestamp`."""
        return StructType((*self._snapshot.schema.fields, *CHANGE_FIELDS.fields))

    @cached_property
    def plan(self) -> ReadPlan:
        """What the tasks share; see `Scan.plan`."""
        return self.plan_for(None)

    def plan_for(self, columns: Sequence[str] | None) -> ReadPlan:
        """The plan for some of the columns of `schema` (None: all); change columns come last.

        Raises
        ------
        SchemaError
            A column does not exist.
        """
        snapshot = self._snapshot
        chosen = self.schema.names if columns is None else list(columns)
        extra = tuple(f for f in CHANGE_FIELDS if f.name in chosen)
        fields = []
        for name in chosen:
            if CHANGE_FIELDS.find(name) is None:
                field = snapshot.schema.find(name)
                if field is None:
                    raise SchemaError(
                        f"column {name!r} is not in the change feed of {self.storage.url}; its columns are "
                        f"{', '.join(self.schema.names)}"
                    )
                fields.append(field)
        return ReadPlan.of(
            snapshot.table_state,
            schema=StructType(tuple(fields)),
            version=self.end,
            timezone=self.timezone,
            extra=StructType(extra),
        )

    def slices(self) -> list[FileSlice]:
        """One slice a changed file and kind of change, in order of version; of all changes, netted or not."""
        times = history.commit_times(
            self.storage, self._listing, self._latest.table_state, list(self._versions)
        )
        partitionings = Partitionings(
            self._snapshot.table_state, self._first.partition_columns, self._commits
        )
        columns = partitionings.columns
        actions, counts = parse_each(self._commits, actions_schema(columns, changes=True))
        maker = SliceMaker(self.storage, columns)
        out: list[FileSlice] = []
        first = 0
        for commit, count in zip(self._commits, counts, strict=True):
            rows, time = actions.slice(first, count), times[commit.version]
            changes = CommitChanges.of(self.storage, commit.version, time, rows, commit.info, commit.metadata)
            out += partitionings.fitted(commit.version, maker.slices(changes))
            first += count
        return out

    def tasks(
        self, max_partition_bytes: int = DEFAULT_PARTITION_BYTES, parallelism: int | None = None
    ) -> list[list[FileSlice]]:
        """The slices packed into tasks of about equal size, largest first; of all changes, as `slices`."""
        return pack(self.slices(), max_partition_bytes, parallelism or os.cpu_count() or 1)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The changed rows, version by version; net changes in parts, with both sides of an update together."""
        changes = (
            batch for piece in self.slices() for batch in read_slices(self.storage, self.plan, [piece])
        )
        if self.net is None:
            yield from changes
        else:
            schema = output_schema(self.plan)
            yield from net_batches(changes, schema, self.keys, self.net, self.storage.url)

    def to_arrow(self) -> pa.Table:
        """The changed rows as one Arrow table; files are read in parallel."""
        import pyarrow as pa

        if self.net is not None:
            return pa.Table.from_batches(self.to_batches(), schema=output_schema(self.plan))

        def read(piece: FileSlice) -> list[pa.RecordBatch]:
            return list(read_slices(self.storage, self.plan, [piece]))

        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            batches = [batch for part in pool.map(read, self.slices()) for batch in part]
        return pa.Table.from_batches(batches, schema=output_schema(self.plan))
