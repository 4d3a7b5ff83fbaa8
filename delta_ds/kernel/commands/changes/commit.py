"""The changes of one commit: its actions turned into the file slices that hold the changed rows.

A commit with `cdc` actions is read from those alone. Otherwise its adds are inserts and its removes deletes; where
it only swaps the deletion vector of a file, the rows between the two are the change.

Source: PROTOCOL.md, "Change Data Files" and "Add CDC File"; protocol-checklist CDF-*; delta-spark, `CDCReader`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.streaming import CHANGES_OF_OTHER_COLUMN_MAPPING
from delta_ds.exceptions import ChangeDataError
from delta_ds.kernel.base.arrow_buffers import field_of
from delta_ds.kernel.files.read.plan import FileSlice, vector_descriptor
from delta_ds.kernel.format.actions import AddFile, CommitInfo, Metadata, RemoveFile
from delta_ds.kernel.format.expressions.arrays import FALSE
from delta_ds.kernel.format.operations import MERGE
from delta_ds.kernel.format.schema.types import LONG, STRING, TIMESTAMP, StructField, StructType
from delta_ds.kernel.format.schema.version_changes import stored_otherwise
from delta_ds.kernel.format.values.deletion_vector import read_positions
from delta_ds.kernel.log import history
from delta_ds.kernel.log.segment import earliest_version, list_log
from delta_ds.kernel.log.snapshot import open_snapshot
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.uri import canonical_path, canonical_paths
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"
# What the feed has besides the columns of the table.
CHANGE_FIELDS = StructType(
    (
        StructField(CHANGE_TYPE, STRING),
        StructField(COMMIT_VERSION, LONG),
        StructField(COMMIT_TIMESTAMP, TIMESTAMP),
    )
)
_INSERT, _DELETE = "insert", "delete"
_MERGE_METRICS = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """The file actions of a commit that say what it changed.

    Attributes
    ----------
    storage
        The table's.
    version
        Of the commit.
    time
        When it was made, ms since 1970.
    files
        Structs of change files; empty where there are none.
    adds, removes
        Structs of the actions that change data; empty where `files` say it all.
    """

    storage: Storage
    version: int
    time: int
    files: pa.ChunkedArray
    adds: pa.ChunkedArray
    removes: pa.ChunkedArray

    @classmethod
    def of(
        cls,
        storage: Storage,
        version: int,
        time: int,
        actions: pa.Table,
        info: CommitInfo,
        metadata: Metadata | None,
    ) -> CommitChanges:
        """Sort out a commit.

        Parameters
        ----------
        actions
            Rows of `actions_schema(..., changes=True)`.
        info
            Its `commitInfo`; empty where it has none.
        metadata
            What it changes the metadata to; None for no change.

        Raises
        ------
        ChangeDataError
            It takes away files whose columns have other names than those of the metadata that it brings.
        """
        import pyarrow.compute as pc

        files = actions["cdc"].drop_null()
        adds, removes = (
            actions[name].filter(pc.fill_null(field_of(actions[name], "dataChange"), FALSE))
            for name in ("add", "remove")
        )
        if len(files) or _merged_nothing(info):
            adds, removes = adds.slice(0, 0), removes.slice(0, 0)
        if metadata is not None and len(removes):
            _check_names_of_removed(storage, version, metadata)
        return cls(storage, version, time, files, adds, removes)

    @property
    def count(self) -> int:
        """How many actions say what changed."""
        return len(self.files) + len(self.adds) + len(self.removes)

    @property
    def sizes(self) -> np.ndarray[Any, Any]:
        """Bytes of the file of each action, int64; 0 where a writer left them out."""
        import numpy as np

        return np.concatenate([file_sizes(field_of(part, "size")) for part in self._parts])

    @property
    def _parts(self) -> tuple[pa.ChunkedArray, ...]:
        return self.files, self.adds, self.removes

    @property
    def inseparable(self) -> bool:
        """Whether one action means nothing without another: both sides of an update, or of a deletion vector."""
        if len(self.files):
            return True
        parts = (self.adds, self.removes)
        vectors = any(field_of(part, "deletionVector").null_count < len(part) for part in parts)
        return vectors or self._has_pairs()

    def _has_pairs(self) -> bool:
        import pyarrow.compute as pc

        if not len(self.adds) or not len(self.removes):
            return False
        added, removed = (
            canonical_paths(field_of(part, "path"), self.storage) for part in (self.adds, self.removes)
        )
        return bool(pc.any(pc.is_in(added, removed)).as_py())


class SliceMaker:
    """Makes slices of the changes of commits of one table.

    Parameters
    ----------
    storage
        The table's.
    partition_columns
        Physical names, in the order in which slices have their values.
    """

    def __init__(self, storage: Storage, partition_columns: tuple[str, ...]) -> None:
        self._storage = storage
        self._columns = partition_columns

    def slices(self, commit: CommitChanges, first: int = 0, last: int | None = None) -> list[FileSlice]:
        """The slices of a commit, in order; they give `CHANGE_FIELDS` besides the columns of the table.

        Parameters
        ----------
        first, last
            Of a commit that is not `inseparable`: only those of the actions from `first` to before `last`.

        Raises
        ------
        ChangeDataError
            The commit removes a file without its partition values, and nothing else tells them.
        """
        if len(commit.files):
            return [self._slice(commit, action, None) for action in commit.files.to_pylist()]
        if commit.inseparable:
            return list(self._paired(commit))
        end = commit.count if last is None else last
        adds = commit.adds[first:end].to_pylist()
        removes = commit.removes[
            max(0, first - len(commit.adds)) : max(0, end - len(commit.adds))
        ].to_pylist()
        self._complete(commit, removes)
        return [
            *(self._slice(commit, add, _INSERT) for add in adds),
            *(self._slice(commit, remove, _DELETE) for remove in removes),
        ]

    def _paired(self, commit: CommitChanges) -> Iterator[FileSlice]:
        removes = commit.removes.to_pylist()
        self._complete(commit, removes)
        removed = {canonical_path(remove["path"], self._storage): remove for remove in removes}
        for add in commit.adds.to_pylist():
            remove = removed.pop(canonical_path(add["path"], self._storage), None)
            if remove is None:
                yield self._slice(commit, add, _INSERT)
            else:
                yield from self._difference(commit, remove, add)
        for remove in removed.values():
            yield self._slice(commit, remove, _DELETE)

    def _complete(self, commit: CommitChanges, removes: list[RemoveFile]) -> None:
        """Removes of old writers lack partition values (REM-R-05): the version before still has them."""
        if not self._columns:
            return
        missing = [remove for remove in removes if remove.get("partitionValues") is None]
        if not missing:
            return
        wanted = [canonical_path(remove["path"], self._storage) for remove in missing]
        known = self._values_before(commit.version, wanted)
        for path, remove in zip(wanted, missing, strict=True):
            if path not in known:
                raise ChangeDataError(
                    f"version {commit.version} of {self._storage.url} removes {path} without its partition values, "
                    "and the version before does not have the file; read changes from a later version"
                )
            remove["partitionValues"] = known[path]

    def _values_before(self, version: int, paths: list[str]) -> dict[str, Any]:
        import pyarrow.compute as pc

        from delta_ds.kernel.format.expressions.arrays import array_of

        files = open_snapshot(self._storage, version - 1).live_files()
        found = pc.is_in(files.canonical_paths, array_of(paths, STRING))
        values = files.table["partitionValues"].filter(found)
        return dict(zip(files.canonical_paths.filter(found).to_pylist(), values.to_pylist(), strict=True))

    def _difference(self, commit: CommitChanges, remove: RemoveFile, add: AddFile) -> Iterator[FileSlice]:
        """A file whose deletion vector changed: rows newly in it are deletes, rows no longer in it inserts."""
        import numpy as np

        before, after = self._positions(remove), self._positions(add)
        deleted = np.setdiff1d(after, before, assume_unique=True)
        restored = np.setdiff1d(before, after, assume_unique=True)
        if len(deleted):
            yield self._slice(commit, add, _DELETE, deleted)
        if len(restored):
            yield self._slice(commit, add, _INSERT, restored)

    def _positions(self, action: AddFile | RemoveFile) -> np.ndarray[Any, Any]:
        import numpy as np

        vector = vector_descriptor(action.get("deletionVector"))
        if vector is None:
            return np.zeros(0, dtype=np.uint64)
        return read_positions(self._storage, vector)

    def _slice(
        self,
        commit: CommitChanges,
        action: AddFile | RemoveFile,
        change: str | None,
        selection: np.ndarray[Any, Any] | None = None,
    ) -> FileSlice:
        values = action.get("partitionValues") or {}
        return FileSlice(
            path=action["path"],
            size=action["size"] or 0,
            partition_values=tuple(values.get(c) for c in self._columns),
            deletion_vector=vector_descriptor(action.get("deletionVector")) if selection is None else None,
            constants=change_constants(commit.version, commit.time, change),
            selection=selection,
        )


def change_constants(version: int, time: int, change: str | None = None) -> tuple[tuple[str, Any], ...]:
    """The values of `CHANGE_FIELDS` for all rows of a slice.

    Parameters
    ----------
    time
        Of the commit, ms since 1970.
    change
        None for a change file, which carries the type of each row itself.
    """
    constants: tuple[tuple[str, Any], ...] = (
        (COMMIT_VERSION, version),
        (COMMIT_TIMESTAMP, history.datetime_of(time)),
    )
    return constants if change is None else (*constants, (CHANGE_TYPE, change))


def file_sizes(sizes: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """Sizes of file actions as int64; 0 where a writer left them out, or wrote what none can be."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from delta_ds.kernel.base.arrow_buffers import numbers
    from delta_ds.kernel.format.expressions.arrays import scalar_of
    from delta_ds.kernel.log.file_actions import with_believable_sizes

    known = pa.table({"size": pc.fill_null(sizes, scalar_of(0, LONG))})
    return numbers(with_believable_sizes(known)["size"])


def _check_names_of_removed(storage: Storage, version: int, metadata: Metadata) -> None:
    """RESTORE and CLONE may bring column mapping, or end it, together with files."""
    if version <= earliest_version(list_log(storage)):
        return  # the log does not tell any more what was before
    columns = stored_otherwise(open_snapshot(storage, version - 1).metadata, metadata)
    if columns:
        raise CHANGES_OF_OTHER_COLUMN_MAPPING(
            table=storage.url, version=version, before=version - 1, columns=columns
        )


def _merged_nothing(info: CommitInfo) -> bool:
    """A MERGE that rewrote files without changing a row.

    Source: delta-spark, `CDCReader.shouldSkipFileActionsInCommit`.
    """
    metrics = info.get("operationMetrics")
    if info.get("operation") != MERGE.name or not isinstance(metrics, dict):
        return False
    return all(str(metrics.get(name)) == "0" for name in _MERGE_METRICS)
