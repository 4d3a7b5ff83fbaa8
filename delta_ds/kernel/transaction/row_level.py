"""May a command that knows its rows follow a commit that touched the same files; and the command on top of it.

The law: the command may follow if, run after the other commit, it would do the same to the same rows. For a command
whose effect on a row follows from that row (and, in a MERGE, from its source) that holds where

1. no row that it deletes or replaces was deleted or replaced by the other commit;
2. no row that the other commit brought meets what the command looks for; and
3. where a missing row matters too, no row that the other commit took away meets it.

Rows that were only moved into other files are found there by their row ids.

Source: conflict-matrix section 11; PROTOCOL.md, "Row Tracking", "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from delta_ds.conditions.transaction import (
    BROUGHT_ROWS_BACK,
    CHANGED_READ_ROWS,
    CHANGED_SAME_ROWS,
    CONCURRENT_APPEND_OF_ROWS,
    DELETED_CHANGED_FILE,
    MOVED_ROWS_NOT_FOUND,
    REMOVED_FILE_OF_UNKNOWN_PARTITION,
)
from delta_ds.kernel.base.arrow_buffers import texts
from delta_ds.kernel.files.read.plan import FileSlice, vector_descriptor
from delta_ds.kernel.files.write.live_actions import mark_rows
from delta_ds.kernel.format.actions import AddFile, RemoveFile, without_nulls
from delta_ds.kernel.storage.uri import canonical_path
from delta_ds.kernel.transaction.pending import IsolationLevel, tracks_rows
from delta_ds.kernel.transaction.reads import partition_values
from delta_ds.kernel.transaction.winning_commit import Conflict, WinningCommit, file_conflict
from delta_ds.kernel.transaction.winning_rows import (
    WantedRows,
    WinningRows,
    find_moved,
    pieces_of,
    selected,
)

if TYPE_CHECKING:
    from delta_ds.conditions.record import ErrorCondition
    from delta_ds.kernel.format.values.deletion_vector import Positions
    from delta_ds.kernel.transaction.pending import Pending, RowChanges


# Of a predicate that names thousands of keys an error shows the beginning.
_LONGEST_PREDICATE = 300


def goes_by_rows(pending: Pending, winning_commit: WinningCommit) -> bool:
    """Whether a transaction is checked row by row, not by files, against a commit.

    It has to know its rows, on a table with deletion vectors and row tracking, whose description it leaves alone.
    """
    return (
        pending.rows is not None
        and pending.snapshot is not None
        and pending.new_metadata is None
        and not pending.reads.whole_table
        and winning_commit.checked_for_appends
        and tracks_rows(pending.state)
    )


def check_and_rebase_rows(pending: Pending, winning_commit: WinningCommit) -> None:
    """Check the rows of a transaction against one commit, and move its deletion vectors on top of it.

    Parameters
    ----------
    pending
        For which `goes_by_rows`; its `adds`, `removes` and `rows` come out changed.

    Raises
    ------
    ConcurrentDeleteReadException
        A row that the transaction changes, or depends on, is gone or another one.
    ConcurrentAppendException
        There are new rows that it should have seen.
    """
    _RowCheck(pending, winning_commit).run()


class _RowCheck:
    def __init__(self, pending: Pending, winning_commit: WinningCommit) -> None:
        assert pending.rows is not None
        assert pending.snapshot is not None
        self._pending, self._commit = pending, winning_commit
        self._changes: RowChanges = pending.rows
        self._snapshot = pending.snapshot
        self._rows = WinningRows(winning_commit)
        self._wanted = WantedRows(pending, self._changes.wanted)
        self._deleted = {canonical_path(p, pending.storage): n for p, n in self._changes.deleted.items()}

    def run(self) -> None:
        rows = self._rows
        contested = [path for path in self._deleted if path in rows.removed]
        stay = [path for path in contested if path in rows.added]
        gone = [path for path in contested if path not in rows.added]
        for path in stay:
            self._check_shared(path)
        if gone and not rows.only_moved:
            raise self._conflict(DELETED_CHANGED_FILE, gone[0], rows=len(self._deleted[gone[0]]))
        if not rows.only_moved:
            self._check_brought()
            if self._changes.misses_count:
                self._check_taken()
        moved = self._find_moved(gone) if gone else {}
        after = {path: self._deleted[path] for path in stay} | moved
        if contested:
            self._replace(set(contested), after)
            recount_files(self._pending)

    # --- 1. rows that both change

    def _check_shared(self, path: str) -> None:
        vector = self._rows.changed_vector(path)
        shared = np.intersect1d(vector.gone, self._deleted[path], assume_unique=True)
        if len(shared):
            raise self._conflict(CHANGED_SAME_ROWS, path, rows=_rows(len(shared)))
        if len(vector.back):
            raise self._conflict(BROUGHT_ROWS_BACK, path, rows=_rows(len(vector.back)))

    # --- 2. rows that are new

    def _check_brought(self) -> None:
        if self._passes_over_new_rows:
            return
        files = self._commit.adds
        removed = set(self._rows.removed)
        new_files = [
            row
            for row in self._wanted.candidates(files).to_pylist()
            if files.canonical_paths[row].as_py() not in removed
        ]
        pieces = pieces_of(files, new_files, self._snapshot.physical_partition_columns)
        hit = self._wanted.first([*pieces, *self._brought_back()])
        if hit is not None:
            raise self._conflict(CONCURRENT_APPEND_OF_ROWS, hit[0], rows=_some_rows(hit[1]))

    @property
    def _passes_over_new_rows(self) -> bool:
        level = self._pending.level
        blind = level is IsolationLevel.WRITE_SERIALIZABLE and self._commit.is_blind_append
        return blind or level is IsolationLevel.SNAPSHOT

    def _brought_back(self) -> Iterator[FileSlice]:
        """Rows that a deletion vector does not delete any more, as after a RESTORE."""
        for path in self._rows.added:
            if path in self._rows.removed and path not in self._deleted and self._rows.had_vector(path):
                back = self._rows.changed_vector(path).back
                if len(back):
                    (piece,) = self._pieces_added([path])
                    yield selected(piece, back)

    def _pieces_added(self, paths: list[str]) -> list[FileSlice]:
        rows = [self._rows.added[path] for path in paths]
        return pieces_of(self._commit.adds, rows, self._snapshot.physical_partition_columns)

    # --- 3. rows that are missed

    def _check_taken(self) -> None:
        """Of files that the transaction has not seen all rows count: OPTIMIZE may have moved there what it read."""
        import pyarrow.compute as pc

        live = self._snapshot.live_files()
        rows = self._wanted.candidates(live)
        paths = live.canonical_paths.take(rows)
        removed = texts(list(self._rows.removed))
        is_removed = pc.is_in(paths, value_set=removed)
        for row, path in zip(
            rows.filter(is_removed).to_pylist(), paths.filter(is_removed).to_pylist(), strict=True
        ):
            (piece,) = pieces_of(live, [row], self._snapshot.physical_partition_columns)
            if path in self._rows.added:
                piece = selected(piece, self._rows.changed_vector(path).gone)
            self._refuse_taken(piece)
        every = live.canonical_paths
        seen = set(every.filter(pc.is_in(every, value_set=removed)).to_pylist())
        for path in [path for path in self._rows.removed if path not in seen]:
            unseen = self._rows.removed_piece(path, self._snapshot.physical_partition_columns)
            if unseen is None:
                raise self._conflict(REMOVED_FILE_OF_UNKNOWN_PARTITION, path)
            if path in self._rows.added:
                unseen = selected(unseen, self._rows.changed_vector(path).gone)
            self._refuse_taken(unseen)

    def _refuse_taken(self, piece: FileSlice) -> None:
        hit = self._wanted.first([piece])
        if hit is not None:
            raise self._conflict(CHANGED_READ_ROWS, piece.path, rows=_some_rows(hit[1]))

    # --- rows that were moved

    def _find_moved(self, gone: list[str]) -> dict[str, Positions]:
        """The rows in the files that they were moved to, by canonical path."""
        pending = self._pending
        own = {self._canonical(body): body for body in self._own_removes()}
        before = [selected(self._piece(own[path]), self._deleted[path]) for path in gone]
        targets = self._pieces_added([path for path in self._rows.added if path not in self._rows.removed])
        moved = find_moved(pending.storage, pending.state, before, targets)
        if moved is None:
            raise self._conflict(MOVED_ROWS_NOT_FOUND, gone[0])
        return {canonical_path(path, pending.storage): positions for path, positions in moved.items()}

    def _own_removes(self) -> list[RemoveFile]:
        """What the transaction removes, one by one from here on: columns of the snapshot know the vectors of then."""
        pending = self._pending
        pending.removes += [body for removes in pending.live_removes for body in removes.bodies()]
        pending.live_removes = []
        return pending.removes

    def _piece(self, body: RemoveFile) -> FileSlice:
        values = body.get("partitionValues") or {}
        return FileSlice(
            path=str(body["path"]),
            size=int(body.get("size") or 0),
            partition_values=tuple(map(values.get, self._snapshot.physical_partition_columns)),
            base_row_id=body.get("baseRowId"),
            default_row_commit_version=body.get("defaultRowCommitVersion"),
        )

    # --- the commit, on top

    def _replace(self, contested: set[str], after: Mapping[str, Positions]) -> None:
        """Let the commit change its rows in the files as they are now.

        Parameters
        ----------
        contested
            Files of the transaction that were removed, by canonical path.
        after
            Its rows in the files that are there instead.
        """
        pending, changes, bodies = self._pending, self._changes, self._rows.add_bodies
        vectors = self._vector_files()
        removes = self._own_removes()
        removed_ms = next((body.get("deletionTimestamp") for body in removes), None)
        pending.removes = [body for body in removes if self._canonical(body) not in contested]
        pending.removes += [_remove_of(bodies[path], removed_ms) for path in after]
        pending.adds = [body for body in pending.adds if self._canonical(body) not in contested]
        pending.adds += self._marked({path: bodies[path] for path in after}, after)
        changes.superseded |= vectors - self._vector_files()
        uncontested = {
            p: n for p, n in changes.deleted.items() if canonical_path(p, pending.storage) not in contested
        }
        changes.deleted = uncontested | {bodies[path]["path"]: positions for path, positions in after.items()}

    def _vector_files(self) -> set[str]:
        descriptors = (vector_descriptor(body.get("deletionVector")) for body in self._pending.adds)
        return {vector.path for vector in descriptors if vector is not None and vector.path is not None}

    def _marked(self, bodies: Mapping[str, AddFile], after: Mapping[str, Positions]) -> Iterator[AddFile]:
        """Files with deletion vectors of both; those without any row left are not added again."""
        marked = mark_rows(self._pending.storage, bodies, after, self._changes.staged)
        for body in marked.adds.values():
            yield {**body, "dataChange": True}

    def _canonical(self, body: AddFile | RemoveFile) -> str:
        return canonical_path(str(body.get("path")), self._pending.storage)

    # --- errors

    def _conflict(self, condition: ErrorCondition[Conflict], path: str, **values: Any) -> Conflict:
        partition = partition_values(self._snapshot, canonical_path(path, self._pending.storage))
        return file_conflict(
            condition, self._pending, self._commit, path, partition, sought=self._sought(), **values
        )

    def _sought(self) -> str:
        predicate = self._wanted.predicate
        text = "" if predicate is None else str(predicate)
        shown = text if len(text) <= _LONGEST_PREDICATE else f"{text[:_LONGEST_PREDICATE]}..."
        return f", which looks for {shown}" if shown else ""


def _remove_of(body: AddFile, removed_ms: int | None) -> RemoveFile:
    names = ("path", "partitionValues", "size", "deletionVector", "baseRowId", "defaultRowCommitVersion")
    taken = {name: body.get(name) for name in names}
    times = {"deletionTimestamp": removed_ms, "dataChange": True, "extendedFileMetadata": True}
    return cast("RemoveFile", without_nulls({**taken, **times}))


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _some_rows(count: int) -> str:
    return "rows" if count < 0 else _rows(count)


# --- the metrics of files and deletion vectors, of a commit that follows others: what it does to the files as they are
# Source: delta-spark, `DMLWithDeletionVectorsHelper` (which vectors count as updated).

# The metrics of DELETE and UPDATE, and of MERGE.
_REMOVED = ("numRemovedFiles", "numTargetFilesRemoved")
_REMOVED_BYTES = ("numRemovedBytes", "numTargetBytesRemoved")
_VECTORS_ADDED = ("numDeletionVectorsAdded", "numTargetDeletionVectorsAdded")
_VECTORS_REMOVED = ("numDeletionVectorsRemoved", "numTargetDeletionVectorsRemoved")
_VECTORS_UPDATED = ("numDeletionVectorsUpdated", "numTargetDeletionVectorsUpdated")


def recount_files(pending: Pending) -> None:
    """Count anew which files go, and which get another deletion vector; rows and new files stay what they were."""
    added = {canonical_path(str(body.get("path")), pending.storage) for body in pending.adds}
    marked: list[RemoveFile] = []
    gone: list[RemoveFile] = []
    for body in pending.removes:
        stays = canonical_path(str(body.get("path")), pending.storage) in added
        (marked if stays else gone).append(body)
    updated = sum(body.get("deletionVector") is not None for body in marked)
    dropped = sum(body.get("deletionVector") is not None for body in gone)
    counts = {
        _REMOVED: len(gone),
        _REMOVED_BYTES: sum(int(body.get("size") or 0) for body in gone),
        _VECTORS_ADDED: len(marked),
        _VECTORS_REMOVED: dropped + updated,
        _VECTORS_UPDATED: updated,
    }
    before = pending.commit_info.get("operationMetrics") or {}
    after = {name: str(count) for names, count in counts.items() for name in names if name in before}
    pending.commit_info["operationMetrics"] = {**before, **after}
