"""The files of a version in which a command may find rows to change, and what tasks made of them.

Source: delta-spark, `DMLUtils`, `MergeStats`: rows are counted where they are written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.base.arrow_buffers import flags, integers
from delta_ds.kernel.files.scan.partitions import partition_tuples
from delta_ds.kernel.files.scan.scan import Scan
from delta_ds.kernel.files.write.live_actions import footer_rows
from delta_ds.kernel.format.expressions.arrays import FALSE
from delta_ds.kernel.format.expressions.bind import bind
from delta_ds.kernel.format.expressions.evaluate import can_evaluate, evaluate
from delta_ds.kernel.format.expressions.tree import Expression, columns, conjunction, conjuncts
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.format.values.statistics import load_statistics
from delta_ds.kernel.log.snapshot import Snapshot
from delta_ds.kernel.transaction.write.task import TaskResult
from delta_ds.records import dataclass, field

if TYPE_CHECKING:
    import numpy.typing as npt

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class CandidateFiles:
    """Some live files of a version. Can be pickled.

    Attributes
    ----------
    numbers
        int64: their rows in `LiveFiles.table` of the process that chose them, by which rows name their file.
    paths
        string, as in the log.
    rows
        int64: how many rows that are not deleted; null where the log does not say.
    """

    numbers: pa.Int64Array
    paths: pa.StringArray
    rows: pa.Int64Array

    def __len__(self) -> int:
        return len(self.numbers)

    def only(self, numbers: Sequence[int]) -> CandidateFiles:
        """The files with some of the numbers."""
        chosen = pc.is_in(self.numbers, value_set=integers(list(numbers)))
        return CandidateFiles(
            self.numbers.filter(chosen), self.paths.filter(chosen), self.rows.filter(chosen)
        )

    def by_path(self, values: Mapping[int, _Value]) -> dict[str, _Value]:
        """Values that are known by the numbers of files, by their paths."""
        paths = dict(zip(self.numbers.to_pylist(), self.paths.to_pylist(), strict=True))
        return {paths[number]: value for number, value in values.items()}

    @property
    def num_rows(self) -> int | None:
        """All rows together; None where that is not known."""
        return None if self.rows.null_count else int(pc.sum(self.rows, min_count=0).as_py())


def candidate_files(snapshot: Snapshot, predicate: Expression | None, timezone: str) -> CandidateFiles:
    """The files that may hold rows for which a predicate is true; None: all.

    Parameters
    ----------
    predicate
        Not bound.
    timezone
        The session time zone.
    """
    scan = Scan(snapshot, predicate, timezone=timezone)
    return files_of(snapshot, scan.pruning.rows)


def files_of(snapshot: Snapshot, rows: pa.Int64Array) -> CandidateFiles:
    """Live files by their rows."""
    live = snapshot.live_files()
    physical = load_statistics(live, rows, []).num_records
    deleted = pc.struct_field(live.table["deletionVector"].take(rows), "cardinality")
    left = pc.subtract(physical, pc.fill_null(deleted.cast(pa.int64()), integers([0])[0]))
    return CandidateFiles(rows, _one(live.table["path"].take(rows)), _one(left))


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def usable_predicate(snapshot: Snapshot, parts: Sequence[Expression], timezone: str) -> Expression | None:
    """The part of a predicate that the kernel can use to choose files; None for no part.

    Parameters
    ----------
    parts
        Each implied by the predicate, not bound.
    """
    usable = []
    for part in (piece for whole in parts for piece in conjuncts(whole)):
        try:
            bind(part, snapshot.schema, timezone)
        except DeltaError:
            # Not an expression of the kernel's: Spark evaluates it on every row, only no file is skipped by it.
            continue
        usable.append(part)
    return conjunction(usable)


def all_evaluable(snapshot: Snapshot, parts: Sequence[Expression], timezone: str) -> bool:
    """Whether the kernel knows everything in some expressions, not bound, and so what they depend on."""
    try:
        return all(can_evaluate(bind(part, snapshot.schema, timezone)) for part in parts)
    except DeltaError:
        return False


def distinct_partitions(snapshot: Snapshot, timezone: str) -> tuple[pa.Table, pa.Int64Array]:
    """The distinct partition tuples of a version.

    Returns
    -------
    pyarrow.Table
        One row a tuple, one typed column a partition column, by logical name.
    pyarrow.Int64Array
        For each live file the row of its tuple.
    """
    columns = {}
    for name, physical in zip(snapshot.partition_columns, snapshot.physical_partition_columns, strict=True):
        field = snapshot.schema.find(name)
        assert field is not None  # a snapshot without its partition columns is refused
        columns[field.name] = (physical, field.type)
    tuples = partition_tuples(snapshot.live_files(), columns, frozenset(), timezone)
    return tuples.table, _one(tuples.code)


def covered_files(
    snapshot: Snapshot, files: CandidateFiles, predicate: Expression, timezone: str
) -> CandidateFiles | None:
    """Where a predicate reads partition columns only: those of the files all of whose rows it is true for.

    Parameters
    ----------
    files
        Those that may hold matching rows.
    predicate
        Bound.

    Returns
    -------
    CandidateFiles or None
        None where rows have to be looked at: other columns are read, or texts are not stored as they compare.
    """
    fields = [snapshot.schema.find(column.path[0]) for column in columns(predicate)]
    partitions = set(snapshot.partition_columns)
    if not fields or any(f is None or f.name not in partitions or not compares_by_bytes(f) for f in fields):
        return None
    tuples, codes = distinct_partitions(snapshot, timezone)
    matching = np.flatnonzero(
        flags(evaluate(predicate, tuples.combine_chunks()).combine_chunks().fill_null(FALSE))
    )
    chosen = pc.is_in(codes.take(files_rows(snapshot, files)), value_set=integers(matching))
    return CandidateFiles(*(v.filter(chosen) for v in (files.numbers, files.paths, files.rows)))


def with_row_counts(snapshot: Snapshot, files: CandidateFiles) -> CandidateFiles:
    """The same files with the number of their rows, read from them where the log does not say it."""
    table = snapshot.live_files().table.take(files_rows(snapshot, files))
    deleted = pc.fill_null(pc.struct_field(table["deletionVector"], "cardinality").cast(pa.int64()), 0)
    rows = [
        count_in_log if count_in_log is not None else footer_rows(snapshot.storage, path) - gone
        for count_in_log, path, gone in zip(
            files.rows.to_pylist(), files.paths.to_pylist(), deleted.to_pylist(), strict=True
        )
    ]
    return CandidateFiles(files.numbers, files.paths, integers(rows))


def files_rows(snapshot: Snapshot, files: CandidateFiles) -> pa.Int64Array:
    """The row numbers of files in `LiveFiles.table` of this process, which can differ from their own numbers."""
    live_paths = _one(snapshot.live_files().table["path"])
    return pc.index_in(files.paths, value_set=live_paths).cast(pa.int64())


NO_SOURCES = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What a task, or all of them together, made of files. Can be pickled.

    Attributes
    ----------
    result
        What was written.
    files
        The numbers of the files in which rows changed: replaced, or marked where there are deletion vectors.
    seen
        Whether there was any row at all, changed or not.
    by_clause
        How many rows changed, by the number of the clause.
    positions
        With deletion vectors, by the number of a file, the rows of it that no longer count; the file stays.
    sources
        Where rows name the row of the source that matches them: the numbers of all such, ascending.
    ambiguous
        Whether a row was named several times though it may not be; files may then be missing.
    milliseconds
        What reading and writing the files took, in the task that took longest.
    """

    result: TaskResult = field(default_factory=TaskResult)
    files: tuple[int, ...] = ()
    seen: bool = False
    by_clause: Mapping[int, int] = field(default_factory=dict)
    positions: Mapping[int, npt.NDArray[np.uint64]] = field(default_factory=dict)
    sources: npt.NDArray[np.int64] = field(default_factory=lambda: NO_SOURCES, compare=False)
    ambiguous: bool = False
    milliseconds: int = 0

    @property
    def rows(self) -> int:
        """How many rows changed."""
        return sum(self.by_clause.values())


def together(parts: Sequence[Rewritten]) -> Rewritten:
    """What several tasks made of files of their own."""
    counts: dict[int, int] = {}
    for part in parts:
        for clause, rows in part.by_clause.items():
            counts[clause] = counts.get(clause, 0) + rows
    result = TaskResult(
        adds=[add for part in parts for add in part.result.adds],
        changes=[change for part in parts for change in part.result.changes],
        rows=sum(part.result.rows for part in parts),
        timezone=next((part.result.timezone for part in parts if part.result.timezone), None),
    )
    return Rewritten(
        result,
        tuple(sorted(number for part in parts for number in part.files)),
        any(part.seen for part in parts),
        counts,
        {number: places for part in parts for number, places in part.positions.items()},
        distinct([part.sources for part in parts]),
        any(part.ambiguous for part in parts),
        max((part.milliseconds for part in parts), default=0),
    )


def distinct(parts: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    """The numbers in some arrays, each once, ascending."""
    # By sorting: NumPy finds distinct numbers by a hash table, ten times as slowly.
    found = np.sort(np.concatenate([NO_SOURCES, *parts]), kind="stable")
    first = np.ones(len(found), np.bool_)
    first[1:] = found[1:] != found[:-1]
    return found if first.all() else found[first]


def replacement_metrics(
    rewritten: Rewritten, written: int, rows_of_marked_files: int | None
) -> dict[str, int]:
    """What the history counts of a write whose rows take the place of others.

    Rows that stay in a file in which rows go count as written, copied or where they are.

    Parameters
    ----------
    rewritten
        What became of the files in which rows go.
    written
        How many rows the write brings.
    rows_of_marked_files
        How many rows the files in which rows were marked had; None where they were rewritten.
    """
    copied = rewritten.result.rows if rows_of_marked_files is None else rows_of_marked_files - rewritten.rows
    if not written + copied:
        return {}
    return {"numOutputRows": written + copied, "numDeletedRows": rewritten.rows, "numCopiedRows": copied}
