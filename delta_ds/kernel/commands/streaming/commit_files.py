"""The files of one commit that a stream reads, in units that a batch can end between."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from delta_ds.conditions.streaming import SOURCE_IGNORE_DELETE, SOURCE_TABLE_IGNORE_CHANGES
from delta_ds.kernel.commands.changes import CommitChanges, SliceMaker
from delta_ds.kernel.commands.streaming.commits import StreamedCommit, data_changing, in_commit_time
from delta_ds.kernel.commands.streaming.offsets import Admission
from delta_ds.kernel.files.read.plan import FileSlice, file_slices
from delta_ds.kernel.format.options.stream_read import StreamReadOptions
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import numpy as np

# A commit, its first unit, and the one to stop before.
Piece: TypeAlias = tuple[StreamedCommit, int, int]


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a commit for admission: each file one, or all of them together one.

    Attributes
    ----------
    sizes
        Bytes of each file, int64.
    whole
        The files belong together: the row changes of one commit must not come in two batches.
    together
        What is left of the files comes in one batch; each counts as one, as where they may come in several.
    """

    sizes: np.ndarray[Any, Any]
    whole: bool = False
    together: bool = False

    @property
    def count(self) -> int:
        return min(1, len(self.sizes)) if self.whole else len(self.sizes)

    def admit(self, admission: Admission, done: int) -> int:
        """How many units after the first `done` are admitted."""
        if done >= self.count:
            return 0
        if self.whole:
            return int(admission.take_whole(len(self.sizes), int(self.sizes.sum())))
        if self.together:
            rest = self.sizes[done:]
            return len(rest) if admission.take_whole(len(rest), int(rest.sum())) else 0
        return admission.take(self.sizes[done:])


class AddedFiles:
    """Commits as the rows that they add.

    Source: delta-spark, `DeltaSource.validateCommitAndDecideSkipping`.
    """

    def __init__(self, table: str, columns: tuple[str, ...], options: StreamReadOptions) -> None:
        self._table = table
        self._columns = columns
        self._options = options

    def units(self, commit: StreamedCommit) -> Units:
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

    def _judge(self, commit: StreamedCommit) -> None:
        version, table = commit.version, self._table
        has_adds = commit.adds.num_rows > 0
        path = _removed(commit)
        if has_adds and not self._options.allows_changes:
            raise SOURCE_TABLE_IGNORE_CHANGES(
                operation=_operation(commit) or path, table=table, version=version, path=path
            )
        if not has_adds and not self._options.allows_deletes:
            raise SOURCE_IGNORE_DELETE(path=path, table=table, version=version)

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

    Parameters
    ----------
    netted
        They are netted batch by batch: the row of a key that a commit takes away and the one that it puts there, which
        may be in two files, come in one.

    Source: delta-spark, `DeltaSourceCDCSupport`.
    """

    def __init__(self, storage: Storage, columns: tuple[str, ...], *, netted: bool = False) -> None:
        self._netted = netted
        self._storage = storage
        self._maker = SliceMaker(storage, columns)
        # The last commit that was sorted out: a large one is asked about many times.
        self._last: tuple[StreamedCommit, CommitChanges, Units] | None = None

    def units(self, commit: StreamedCommit) -> Units:
        """The changes of a commit: one by one where each stands alone, else all as one."""
        return self._sorted_out(commit)[2]

    def _sorted_out(self, commit: StreamedCommit) -> tuple[StreamedCommit, CommitChanges, Units]:
        if self._last is None or self._last[0] is not commit:
            time = commit_time(commit)
            changes = CommitChanges.of(
                self._storage, commit.version, time, commit.actions, commit.info, commit.metadata
            )
            both = self._netted and bool(len(changes.adds)) and bool(len(changes.removes))
            self._last = commit, changes, Units(changes.sizes, whole=changes.inseparable, together=both)
        return self._last

    def slices(self, pieces: Sequence[Piece]) -> list[FileSlice]:
        """The changes of units of commits, in order."""
        found: list[FileSlice] = []
        for commit, first, last in pieces:
            if first < last:
                found += self._maker.slices(self._sorted_out(commit)[1], first, last)
        return found


def commit_time(commit: StreamedCommit) -> int:
    """When a commit was made, ms since 1970: in-commit where it says so, else the time of its file."""
    inside = in_commit_time(commit)
    return commit.file_time if inside is None else inside


def _removed(commit: StreamedCommit) -> str:
    """The path of a file that a commit takes away."""
    removes = commit.actions["remove"]
    found = removes.filter(data_changing(removes, default=True))
    return str(found[0].as_py()["path"])


def _operation(commit: StreamedCommit) -> str | None:
    operation = commit.info.get("operation")
    if operation is None:
        return None
    return f"{operation} ({json.dumps(commit.info.get('operationParameters') or {})})"
