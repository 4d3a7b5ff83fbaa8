"""What tasks made of the files in which rows change: what was written, and what the commit has to know.

Source: delta-spark, `DMLUtils`, `MergeStats`: rows are counted where they are written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from delta_ds.kernel.transaction.write.task import TaskResult
from delta_ds.records import dataclass, field

if TYPE_CHECKING:
    import numpy.typing as npt

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
