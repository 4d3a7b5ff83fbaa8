"""Which rows another commit took away, brought or only moved; and whether files hold rows a command looks for.

Source: PROTOCOL.md, "Add File and Remove File" (`dataChange`), "Deletion Vectors"; conflict-matrix section 11.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.base.arrow_buffers import field_of, integers
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan, file_slices, vector_descriptor
from delta_ds.kernel.files.read.reader import Matching, read_slices
from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.format.expressions.tree import columns, conjunction
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.kernel.format.values.deletion_vector import read_positions
from delta_ds.kernel.log.commit import parse_commits
from delta_ds.kernel.log.file_actions import actions_schema
from delta_ds.kernel.storage.uri import canonical_paths
from delta_ds.kernel.transaction.append_conflicts import is_widened
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.files.read.plan import FileSlice
    from delta_ds.kernel.format.actions import DeletionVector
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.table_state import TableState
    from delta_ds.kernel.format.values.deletion_vector import Positions
    from delta_ds.kernel.log.live_files import LiveFiles
    from delta_ds.kernel.storage.filesystem import Storage
    from delta_ds.kernel.transaction.pending import Pending
    from delta_ds.kernel.transaction.reads import ReadPredicate
    from delta_ds.kernel.transaction.winning_commit import WinningCommit


@dataclass(frozen=True, slots=True)
class ChangedVector:
    """A file that stays, with another deletion vector.

    Attributes
    ----------
    gone, back
        uint64 positions of rows that count no longer, and of those that count again; ascending.
    """

    gone: Positions
    back: Positions


class WinningRows:
    """The rows of one commit.

    Parameters
    ----------
    winning_commit
        The commit.

    Attributes
    ----------
    removed, added
        Its `remove` and `add` actions by canonical path, as row numbers of its tables.
    """

    def __init__(self, winning_commit: WinningCommit) -> None:
        import pyarrow as pa

        self.commit = winning_commit
        self._storage: Storage = winning_commit.storage
        schema = actions_schema(winning_commit.partition_columns, changes=True)
        actions = pa.concat_tables(parse_commits([winning_commit], schema))
        self._removes, self._adds = (_fields(actions[name]) for name in ("remove", "add"))
        self.removed = self._numbers(self._removes)
        self.added = self._numbers(self._adds)

    def _numbers(self, files: pa.Table) -> dict[str, int]:
        paths = canonical_paths(files["path"], self._storage).to_pylist()
        return {path: row for row, path in enumerate(paths)}

    @cached_property
    def only_moved(self) -> bool:
        """Whether the rows of the table are the same as before: no file action has `dataChange`."""
        import pyarrow.compute as pc

        # An action that does not say counts as one that changes rows.
        return not any(
            pc.any(pc.fill_null(files["dataChange"], True), min_count=0).as_py()
            for files in (self._removes, self._adds)
        )

    def changed_vector(self, path: str) -> ChangedVector:
        """What became of the rows of a file that the commit both removed and added."""
        before = self._positions(self._removes, self.removed[path])
        after = self._positions(self._adds, self.added[path])
        return ChangedVector(_without(after, before), _without(before, after))

    def had_vector(self, path: str) -> bool:
        """Whether rows of a removed file were deleted already, so that some could be back."""
        return self._vector(self._removes, self.removed[path]) is not None

    def removed_piece(self, path: str, physical_partition_columns: tuple[str, ...]) -> FileSlice | None:
        """The rows of a removed file that counted until then; None where its partition values are not told."""
        (piece,) = file_slices(self._removes.slice(self.removed[path], 1), physical_partition_columns)
        if physical_partition_columns and not self._removes["partitionValues"][self.removed[path]].is_valid:
            return None
        return piece if piece.size is not None else replace(piece, size=0)

    def _positions(self, files: pa.Table, row: int) -> Positions:
        descriptor = vector_descriptor(self._vector(files, row))
        return np.empty(0, np.uint64) if descriptor is None else read_positions(self._storage, descriptor)

    @staticmethod
    def _vector(files: pa.Table, row: int) -> DeletionVector | None:
        return cast("DeletionVector | None", files["deletionVector"][row].as_py())

    @cached_property
    def add_bodies(self) -> dict[str, AddFile]:
        """The bodies of its `add` actions, by canonical path."""
        return {p: cast("AddFile", b) for name, p, b in self.commit.file_actions() if name == "add"}


def _fields(actions: pa.ChunkedArray) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    there = actions.filter(pc.is_valid(actions))
    return pa.table({f.name: field_of(there, f.name) for f in there.type})


def _without(positions: Positions, others: Positions) -> Positions:
    rest: Any = np.setdiff1d(positions, others, assume_unique=True)
    return cast("Positions", rest)


# --- where rows are after their files were rewritten as they were: found by their row ids
# Source: PROTOCOL.md, "Row Tracking".


def find_moved(
    storage: Storage, state: TableState, rows: Iterable[FileSlice], targets: Iterable[FileSlice]
) -> Mapping[str, Positions] | None:
    """The places of some rows in other files.

    Parameters
    ----------
    storage, state
        The table, and how its files are read.
    rows
        Files with the rows selected.
    targets
        The files to look into.

    Returns
    -------
    dict or None
        By path of the target, uint64 positions, ascending; None where not each row is there exactly once.
    """
    plan = ReadPlan.of(state, schema=StructType(), metadata_columns=("row_id", "row_index"))
    row_ids_before = [ids for piece in rows for ids, _ in _ids(storage, plan, piece)]
    ids = np.sort(np.concatenate([np.empty(0, np.int64), *row_ids_before]))
    moved: dict[str, Positions] = {}
    missing = len(ids)
    for piece in targets:
        places = [places[np.isin(row_ids, ids)] for row_ids, places in _ids(storage, plan, piece)]
        positions = np.concatenate([np.empty(0, np.int64), *places])
        if len(positions):
            moved[piece.path] = positions.astype(np.uint64)
            missing -= len(positions)
    return moved if missing == 0 and len(np.unique(ids)) == len(ids) and _all_known(ids) else None


def _all_known(ids: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bool:
    return not len(ids) or int(ids[0]) >= 0


def _ids(
    storage: Storage, plan: ReadPlan, piece: FileSlice
) -> Iterable[tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.int64]]]]:
    """Row ids and positions of the rows of a slice, batch by batch; a row without an id has -1."""
    for batch in read_slices(storage, plan, [piece]):
        row_ids, places = batch.column(0).flatten()
        yield np.asarray(row_ids.fill_null(-1)), np.asarray(places)


# To read more than that for one commit that came first costs more than to run the command again.
MOST_BYTES = 256 << 20


class WantedRows:
    """The rows that meet a predicate, in files that the transaction has not read.

    Parameters
    ----------
    pending
        The transaction; its state says how files are read.
    wanted
        The predicate. What of it cannot be evaluated again counts as true.
    """

    def __init__(self, pending: Pending, sought: ReadPredicate) -> None:
        self._storage = pending.storage
        self._state: TableState = pending.state
        self._timezone = sought.timezone
        self.predicate: Expression | None = conjunction(
            [p for p in sought.parts if not is_widened(p) and self._compares_by_bytes(p)]
        )

    def _compares_by_bytes(self, part: Expression) -> bool:
        """Whether the kernel compares its columns as Spark does: not those padded or with a collation."""
        for column in columns(part):
            level: object = self._state.schema
            for name in column.path:
                field = level.find(name) if isinstance(level, StructType) else None
                if field is None:
                    break
                if not compares_by_bytes(field):
                    return False
                level = field.type
        return True

    def candidates(self, files: LiveFiles) -> pa.Int64Array:
        """The row numbers of the files that partition values and statistics do not rule out."""
        from delta_ds.kernel.files.scan.skipping import prune

        return prune(
            files,
            self.predicate,
            schema=self._state.schema,
            partition_columns=self._state.partition_columns,
            mapping_mode=self._state.mapping_mode,
            timezone=self._timezone,
        ).rows

    def first(self, pieces: Iterable[FileSlice]) -> tuple[str, int] | None:
        """The path of the first file with wanted rows, and how many it has; None if no file has any.

        A count of -1: they were not counted, as the predicate cannot be evaluated, or too much would have to be read.
        """
        left = MOST_BYTES
        for piece in pieces:
            left -= piece.size
            count = -1 if left < 0 else self.count(piece)
            if count:
                return piece.path, count
        return None

    def count(self, piece: FileSlice) -> int:
        """How many rows of a slice are wanted; -1: it cannot be told."""
        if self.predicate is None:
            return -1
        try:
            return sum(batch.num_rows for batch in self._matching.read(self._storage, piece))
        except PredicateError:
            # A value on which it fails, as a cast under ANSI rules: then the command would fail on that row, too.
            return -1

    @cached_property
    def _matching(self) -> Matching:
        plan = ReadPlan.of(
            self._state,
            schema=StructType(),
            timezone=self._timezone,
            metadata_columns=("row_index",),
            predicate=self.predicate,
        )
        return Matching(plan, self._state.schema)


def selected(piece: FileSlice, positions: Positions) -> FileSlice:
    """Some rows of a file, whether they are deleted or not."""
    from delta_ds.records import replace

    return replace(piece, deletion_vector=None, selection=np.sort(positions))


def pieces_of(
    files: LiveFiles, rows: Iterable[int], physical_partition_columns: tuple[str, ...]
) -> list[FileSlice]:
    """The slices of some files, by their row numbers."""
    from delta_ds.kernel.files.read.plan import file_slices

    return file_slices(files.table.take(integers(list(rows))), physical_partition_columns)
