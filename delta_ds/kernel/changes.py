"""The change data feed: a range of versions to the files that hold its changes.

A version with `cdc` actions is read from those alone. Otherwise its adds are inserts and its removes
deletes; where a version only swaps the deletion vector of a file, the rows between the two are the change.

Source: PROTOCOL.md, "Change Data Files" and "Add CDC File"; checklist CDF-*.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any

from delta_ds.exceptions import ChangeDataError, SchemaError, TimestampOutOfRangeError
from delta_ds.kernel.data.deletion_vector import read_positions
from delta_ds.kernel.data.reader import FileSlice, ReadPlan, output_schema, read_slices
from delta_ds.kernel.expressions.arrays import FALSE
from delta_ds.kernel.log import history
from delta_ds.kernel.log.actions import Metadata
from delta_ds.kernel.log.commit import actions_schema, find_actions, parse_file_actions
from delta_ds.kernel.log.segment import LogListing, list_log, read_files
from delta_ds.kernel.scan.scan import DEFAULT_PARTITION_BYTES, descriptor
from delta_ds.kernel.scan.slices import pack
from delta_ds.kernel.schema.column_mapping import PHYSICAL_NAME, physical_name
from delta_ds.kernel.schema.types import LONG, STRING, TIMESTAMP, DataType, StructField, StructType
from delta_ds.kernel.snapshot import Snapshot, open_snapshot
from delta_ds.kernel.storage.filesystem import Storage

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"
_EXTRA = StructType(
    (
        StructField(CHANGE_TYPE, STRING),
        StructField(COMMIT_VERSION, LONG),
        StructField(COMMIT_TIMESTAMP, TIMESTAMP),
    )
)
_ENABLED = "delta.enableChangeDataFeed"


def open_changes(
    storage: Storage,
    start: int | None,
    end: int | None,
    starting_timestamp: int | None,
    ending_timestamp: int | None,
    timezone: str | None,
) -> ChangeFeed:
    """The feed of a range; arguments and errors as for `DeltaLog.changes`, timestamps in ms."""
    latest = open_snapshot(storage)
    listing = list_log(storage)
    if starting_timestamp is not None:
        start = _first_from(storage, listing, latest.metadata, starting_timestamp)
    if ending_timestamp is not None:
        end = history.version_at(storage, listing, latest.metadata, ending_timestamp)
    if start is None:
        raise ChangeDataError(
            f"reading the changes of {storage.url} needs startingVersion or startingTimestamp",
            condition="DELTA_NO_START_FOR_CDC_READ",
        )
    if start > latest.version:
        raise ChangeDataError(
            f"Start version {start} for change data feed of {storage.url} exceeds the latest table version "
            f"{latest.version}",
            condition="DELTA_CDC_START_VERSION_AFTER_LATEST",
        )
    if end is not None and end < start:
        raise ChangeDataError(
            f"CDC range from start {start} to end {end} of {storage.url} was invalid: the end is before the start",
            condition="DELTA_INVALID_CDC_RANGE",
        )
    last = latest.version if end is None else min(end, latest.version)
    return ChangeFeed(storage, listing, latest, start, last, timezone)


def _first_from(storage: Storage, listing: LogListing, metadata: Metadata, timestamp: int) -> int:
    """The first version committed at or after a moment."""
    versions = sorted(listing.commits)
    times = history.commit_times(storage, listing, metadata, versions)
    for version in versions:
        if times[version] >= timestamp:
            return version
    raise TimestampOutOfRangeError(
        f"The timestamp {history.as_text(timestamp)} is after the latest commit of {storage.url}, made at "
        f"{history.as_text(times[versions[-1]])}. Use a timestamp at or before that",
    )


@dataclass(frozen=True, slots=True)
class _Commit:
    version: int
    timestamp: datetime
    actions: pa.Table


class ChangeFeed:
    """The changes of a range of versions, at the schema of its end.

    Attributes
    ----------
    start, end
        The first and last version, inclusive.
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
        self._listing = listing
        self._latest = latest
        self._check_log()
        self._snapshot = latest if end == latest.version else open_snapshot(storage, end)
        files = [listing.commits[version] for version in self._versions]
        self._contents = dict(zip(self._versions, read_files(storage, files), strict=True))
        self._check_range()

    @property
    def _versions(self) -> range:
        return range(self.start, self.end + 1)

    def _check_log(self) -> None:
        for version in self._versions:
            if version not in self._listing.commits:
                raise ChangeDataError(
                    f"the log file of version {version} of {self.storage.url} is gone, so changes from version "
                    f"{self.start} cannot be read; the first version left is {min(self._listing.commits)}",
                    condition="DELTA_LOG_FILE_NOT_FOUND",
                )

    def _check_range(self) -> None:
        """Refuse a range in which changes were not always recorded, or whose schemas do not fit."""
        first = self._snapshot if self.start == self.end else open_snapshot(self.storage, self.start)
        seen = [(self.start, first.metadata)]
        for version in self._versions:
            where = f"{self._listing.commits[version].path} of {self.storage.url}"
            actions = find_actions(self._contents[version], ("metaData",), where)
            seen += [(version, Metadata.from_action(action["metaData"], where)) for action in actions]
        for version, metadata in seen:
            if metadata.configuration.get(_ENABLED, "false").lower() != "true":
                raise ChangeDataError(
                    f"Error getting change data of {self.storage.url} for range [{self.start} , {self.end}] as change "
                    f"data was not recorded for version [{version}]. Start at a version after {_ENABLED} was set "
                    "(see the history), or set it to record changes from now on",
                )
        for version, metadata in seen:
            problem = _incompatibility(metadata.schema, self._snapshot.schema, self._snapshot.mapping_mode)
            if problem:
                raise ChangeDataError(
                    f"Retrieving table changes of {self.storage.url} between version {self.start} and {self.end} "
                    f"failed because of an incompatible data schema at version {version}: {problem}. Read ranges on "
                    "either side of the schema change separately",
                    condition="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA",
                )

    @property
    def schema(self) -> StructType:
        """The columns at the end version, and `_change_type`, `_commit_version`, `_commit_timestamp`."""
        return StructType((*self._snapshot.schema.fields, *_EXTRA.fields))

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
        extra = tuple(f for f in _EXTRA if f.name in chosen)
        fields = []
        for name in chosen:
            if _EXTRA.find(name) is None:
                field = snapshot.schema.find(name)
                if field is None:
                    raise SchemaError(
                        f"column {name!r} is not in the change feed of {self.storage.url}; its columns are "
                        f"{', '.join(self.schema.names)}"
                    )
                fields.append(field)
        return ReadPlan(
            table=self.storage.url,
            version=self.end,
            schema=StructType(tuple(fields)),
            partition_columns=tuple(snapshot.partition_columns),
            mapping_mode=snapshot.mapping_mode,
            timezone=self.timezone,
            extra=StructType(extra),
        )

    def slices(self) -> list[FileSlice]:
        """One slice a changed file and kind of change, in order of version."""
        times = history.commit_times(self.storage, self._listing, self._latest.metadata, list(self._versions))
        columns = self._snapshot.physical_partition_columns
        schema = actions_schema(columns, changes=True)
        out: list[FileSlice] = []
        for version in self._versions:
            where = f"{self._listing.commits[version].path} of {self.storage.url}"
            moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=times[version])
            for table in parse_file_actions([(where, self._contents[version])], schema):
                out += self._slices_of(_Commit(version, moment, table))
        return out

    def _slices_of(self, commit: _Commit) -> Iterator[FileSlice]:
        import pyarrow.compute as pc

        cdc = commit.actions["cdc"].drop_null().to_pylist()
        if cdc:
            for action in cdc:
                yield self._slice(commit, action, None)
            return
        changed = {}
        for name in ("add", "remove"):
            actions = commit.actions[name]
            mask = pc.fill_null(pc.struct_field(actions, "dataChange"), FALSE)
            changed[name] = {a["path"]: a for a in actions.filter(mask).to_pylist()}
        removed = self._with_partition_values(commit, changed["remove"])
        for path, add in changed["add"].items():
            if path in removed:
                yield from self._difference(commit, removed.pop(path), add)
            else:
                yield self._slice(commit, add, "insert")
        for remove in removed.values():
            yield self._slice(commit, remove, "delete")

    def _with_partition_values(
        self, commit: _Commit, removed: dict[str, dict[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        """Removes of old writers lack partition values (REM-R-05): the version before still has them."""
        columns = self._snapshot.physical_partition_columns
        missing = [p for p, a in removed.items() if columns and a.get("partitionValues") is None]
        if not missing:
            return removed
        table = open_snapshot(self.storage, commit.version - 1).live_files().table
        known = dict(zip(table["path"].to_pylist(), table["partitionValues"].to_pylist(), strict=True))
        for path in missing:
            if path not in known:
                raise ChangeDataError(
                    f"version {commit.version} of {self.storage.url} removes {path} without its partition values, and "
                    "the version before does not have the file; read changes from a later version"
                )
            removed[path]["partitionValues"] = known[path]
        return removed

    def _difference(
        self, commit: _Commit, remove: Mapping[str, Any], add: Mapping[str, Any]
    ) -> Iterator[FileSlice]:
        """A file whose deletion vector changed: rows newly in it are deletes, rows no longer in it inserts."""
        import numpy as np

        before, after = self._positions(remove), self._positions(add)
        deleted = np.setdiff1d(after, before, assume_unique=True)
        restored = np.setdiff1d(before, after, assume_unique=True)
        if len(deleted):
            yield self._slice(commit, add, "delete", deleted)
        if len(restored):
            yield self._slice(commit, add, "insert", restored)

    def _positions(self, action: Mapping[str, Any]) -> np.ndarray[Any, Any]:
        import numpy as np

        vector = descriptor(action.get("deletionVector"))
        if vector is None:
            return np.zeros(0, dtype=np.uint64)
        return read_positions(self.storage, vector)

    def _slice(
        self,
        commit: _Commit,
        action: Mapping[str, Any],
        change: str | None,
        selection: np.ndarray[Any, Any] | None = None,
    ) -> FileSlice:
        constants: list[tuple[str, Any]] = [
            (COMMIT_VERSION, commit.version),
            (COMMIT_TIMESTAMP, commit.timestamp),
        ]
        if change is not None:
            # A change file carries the type of each row itself.
            constants.append((CHANGE_TYPE, change))
        values = action.get("partitionValues") or {}
        return FileSlice(
            path=action["path"],
            size=action["size"] or 0,
            partition_values=tuple(values.get(c) for c in self._snapshot.physical_partition_columns),
            deletion_vector=descriptor(action.get("deletionVector")) if selection is None else None,
            constants=tuple(constants),
            selection=selection,
        )

    def tasks(
        self, max_partition_bytes: int = DEFAULT_PARTITION_BYTES, parallelism: int | None = None
    ) -> list[list[FileSlice]]:
        """The slices packed into tasks; see `Scan.tasks`."""
        return pack(self.slices(), max_partition_bytes, parallelism or os.cpu_count() or 1)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The changed rows, version by version."""
        for piece in self.slices():
            yield from read_slices(self.storage, self.plan, [piece])

    def to_arrow(self) -> pa.Table:
        """The changed rows as one Arrow table; files are read in parallel."""
        import pyarrow as pa

        def read(piece: FileSlice) -> list[pa.RecordBatch]:
            return list(read_slices(self.storage, self.plan, [piece]))

        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            batches = [batch for part in pool.map(read, self.slices()) for batch in part]
        return pa.Table.from_batches(batches, schema=output_schema(self.plan))


def _incompatibility(older: StructType, read: StructType, mode: str) -> str | None:
    """Why data of an older schema cannot be read at another one; None if it can.

    Added nullable columns are fine; dropped, renamed or retyped ones, and columns that became NOT NULL, are not.
    """
    for field in older:
        found = read.find(field.name)
        if found is None:
            return f"column {field.name} is not in the schema of the end of the range"
        mapped = mode != "none" and PHYSICAL_NAME in field.metadata
        if mapped and physical_name(field, mode) != physical_name(found, mode):
            return f"column {field.name} is another column in the schema of the end of the range"
        if field.nullable and not found.nullable:
            return f"column {field.name} became NOT NULL"
        problem = _type_incompatibility(field.type, found.type, mode)
        if problem:
            return f"column {field.name}: {problem}"
    return None


def _type_incompatibility(older: DataType, read: DataType, mode: str) -> str | None:
    if isinstance(older, StructType) and isinstance(read, StructType):
        return _incompatibility(older, read, mode)
    return None if older == read else f"its type changed from {older} to {read}"
