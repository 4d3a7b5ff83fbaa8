"""What of one commit a stream reads: its added files, or its changes, in units that a batch can end between."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from delta_ds.exceptions import UnsupportedOperationError
from delta_ds.kernel.changes import _EXTRA as CHANGE_FIELDS
from delta_ds.kernel.changes import ChangeFeed, _Commit
from delta_ds.kernel.data.reader import FileSlice
from delta_ds.kernel.options.stream_read import StreamReadOptions
from delta_ds.kernel.scan.scan import file_slices
from delta_ds.kernel.snapshot import Snapshot
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.streaming.commits import Commit, data_changing, file_sizes, in_commit_time
from delta_ds.kernel.streaming.limits import Admission

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

__all__ = ["CHANGE_FIELDS", "AddedFiles", "ChangedRows", "Piece", "Units", "commit_time", "moment"]

# A commit, its first unit, and the one to stop before.
Piece: TypeAlias = tuple[Commit, int, int]

_MERGE_METRICS = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a commit, for admission: each a file, or all of them one.

    Attributes
    ----------
    sizes
        Bytes of each file, int64.
    whole
        The files belong together: the row changes of one commit must not come in two batches.
    """

    sizes: np.ndarray[Any, Any]
    whole: bool = False

    @property
    def count(self) -> int:
        return min(1, len(self.sizes)) if self.whole else len(self.sizes)

    def admit(self, admission: Admission, done: int) -> int:
        """How many units after the first `done` may come."""
        if done >= self.count:
            return 0
        if self.whole:
            return int(admission.take_whole(len(self.sizes), int(self.sizes.sum())))
        return admission.take(self.sizes[done:])


class AddedFiles:
    """Commits as the rows that they add.

    Source: delta-spark, `DeltaSource.validateCommitAndDecideSkipping`.
    """

    def __init__(self, table: str, columns: tuple[str, ...], options: StreamReadOptions) -> None:
        self._table = table
        self._columns = columns
        self._options = options

    def units(self, commit: Commit) -> Units:
        """The adds of a commit, judged.

        Raises
        ------
        UnsupportedOperationError
            It takes rows away, and no option says what to do then.
        """
        if commit.removes:
            self._judge(commit)
            if self._options.skip_change_commits:
                return Units(commit.sizes[:0])
        return Units(commit.sizes)

    def _judge(self, commit: Commit) -> None:
        version, table = commit.version, self._table
        has_adds = commit.adds.num_rows > 0
        path = _removed(commit)
        if has_adds and not self._options.allows_changes:
            raise UnsupportedOperationError(
                f"Detected a data update (for example {_operation(commit) or path}) in the source table {table} at "
                f"version {version}. A stream reads only rows that are added. If this happens regularly and changes "
                "may be passed over, set the option 'skipChangeCommits' to 'true'; 'readChangeFeed' reads them as "
                "changes. To have the update in the result, begin with a new checkpoint",
                condition="DELTA_SOURCE_TABLE_IGNORE_CHANGES",
                parameters={"version": version, "path": path, "table": table},
            )
        if not has_adds and not self._options.allows_deletes:
            raise UnsupportedOperationError(
                f"Detected deleted data (for example {path}) from streaming source {table} at version {version}. A "
                "stream reads only rows that are added. To pass over deletes, set the option 'ignoreDeletes' to "
                "'true'; 'readChangeFeed' reads them as changes",
                condition="DELTA_SOURCE_IGNORE_DELETE",
                parameters={"version": version, "path": path, "table": table},
            )

    def slices(self, pieces: Sequence[Piece]) -> list[FileSlice]:
        """The files of units of commits, in order."""
        import pyarrow as pa

        tables = [
            commit.adds.slice(first, last - first)
            for commit, first, last in pieces
            if self.units(commit).count
        ]
        return file_slices(pa.concat_tables(tables), self._columns) if tables else []


class ChangedRows:
    """Commits as the changes of rows.

    Source: delta-spark, `DeltaSourceCDCSupport`; `CDCReader.shouldSkipFileActionsInCommit`.
    """

    def __init__(self, storage: Storage, columns: tuple[str, ...]) -> None:
        self._feed = _CommitChanges(storage, columns)

    def units(self, commit: Commit) -> Units:
        """The changes of a commit: one by one where each stands alone, else all as one."""
        import numpy as np

        changes = commit.actions["cdc"].drop_null()
        if len(changes):
            return Units(file_sizes(_field(changes, "size")), whole=True)
        if _merged_nothing(commit):
            return Units(np.zeros(0, np.int64))
        parts = [_changing(commit, name) for name in ("add", "remove")]
        sizes = np.concatenate([file_sizes(_field(part, "size")) for part in parts])
        vectors = any(_field(part, "deletionVector").null_count < len(part) for part in parts)
        return Units(sizes, whole=vectors or _overlap(*parts))

    def slices(self, pieces: Sequence[Piece]) -> list[FileSlice]:
        """The changes of units of commits, in order."""
        return [piece for commit, first, last in pieces for piece in self._slices(commit, first, last)]

    def _slices(self, commit: Commit, first: int, last: int) -> list[FileSlice]:
        units = self.units(commit)
        if not units.count or first >= last:
            return []
        found = self._feed.slices_of(commit)
        return found if units.whole else found[first:last]


class _CommitChanges(ChangeFeed):
    """The change feed's way from the actions of one commit to slices, without a range of versions."""

    def __init__(self, storage: Storage, columns: tuple[str, ...]) -> None:
        self.storage = storage
        self._snapshot = cast(Snapshot, _Layout(columns))

    def slices_of(self, commit: Commit) -> list[FileSlice]:
        return list(self._slices_of(_Commit(commit.version, moment(commit_time(commit)), commit.actions)))


@dataclass(frozen=True, slots=True)
class _Layout:
    """All that the change feed asks of a snapshot while it looks at one commit."""

    physical_partition_columns: tuple[str, ...]


def commit_time(commit: Commit) -> int:
    """When a commit was made, ms since 1970: in-commit where it says so, else the time of its file."""
    inside = in_commit_time(commit)
    return commit.file_time if inside is None else inside


def moment(milliseconds: int) -> datetime:
    """A time of the log as an aware datetime."""
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=milliseconds)


def _field(structs: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    return pc.struct_field(structs, name)


def _changing(commit: Commit, name: str) -> pa.ChunkedArray:
    actions = commit.actions[name]
    return actions.filter(data_changing(actions, default=False))


def _overlap(adds: pa.ChunkedArray, removes: pa.ChunkedArray) -> bool:
    import pyarrow.compute as pc

    if not len(adds) or not len(removes):
        return False
    return bool(pc.any(pc.is_in(_field(adds, "path"), _field(removes, "path"))).as_py())


def _merged_nothing(commit: Commit) -> bool:
    """A MERGE that rewrote files without changing a row."""
    metrics = commit.info.get("operationMetrics")
    if commit.info.get("operation") != "MERGE" or not isinstance(metrics, dict):
        return False
    return all(str(metrics.get(name)) == "0" for name in _MERGE_METRICS)


def _removed(commit: Commit) -> str:
    """The path of a file that a commit takes away."""
    removes = commit.actions["remove"]
    found = removes.filter(data_changing(removes, default=True))
    return str(found[0].as_py()["path"])


def _operation(commit: Commit) -> str | None:
    operation = commit.info.get("operation")
    if operation is None:
        return None
    return f"{operation} ({json.dumps(commit.info.get('operationParameters') or {})})"
