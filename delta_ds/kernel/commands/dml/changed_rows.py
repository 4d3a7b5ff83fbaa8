"""The rows of one file that change: where they are, what happens to them, and their new values.

Source: delta-spark, `UpdateCommand`, `ClassicMergeExecutor`: which rows a command changes, each once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.base.arrow_buffers import integers, mask
from delta_ds.kernel.commands.dml.new_values import NewValues
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

# Where a row of the table is: the number of its file among the candidates, and its position there.
FILE, ROW = "__pydelta_file", "__pydelta_row"
# The number of the clause that changes a row; and of one that none changes.
CLAUSE, NONE = "__pydelta_clause", -1
# The number of the row of a MERGE's source that matches.
SOURCE = "__pydelta_source"
# What a clause does to a row.
UPDATE, INSERT, DELETE = range(3)


def by_file(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each file as one table."""
    waiting: list[pa.RecordBatch] = []
    number = None
    for batch in batches:
        if not batch.num_rows:
            continue
        files = np.asarray(batch[FILE])
        starts = [0, *(np.flatnonzero(np.diff(files)) + 1).tolist(), len(files)]
        for start, end in zip(starts[:-1], starts[1:], strict=True):
            if number is not None and files[start] != number:
                yield number, pa.Table.from_batches(waiting)
                waiting = []
            number = int(files[start])
            waiting.append(batch.slice(start, end - start))
    if number is not None:
        yield number, pa.Table.from_batches(waiting)


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """The rows of one file that change, in the order of the file.

    Attributes
    ----------
    places
        Their positions, ascending.
    clauses
        The numbers of the clauses.
    updates
        Which of them are updated; the others are deleted.
    values
        The new values, by column; of rows that do not change too. Or how they are computed.
    numbers
        The rows of `values` that they have; of none where they are computed.
    """

    places: npt.NDArray[np.int64]
    clauses: npt.NDArray[np.int64]
    updates: npt.NDArray[np.bool_]
    values: pa.Table | NewValues
    numbers: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: pa.Table, actions: Sequence[int], repeated: bool) -> ChangedRows | None:
        """What changes; None where a row is named several times though it may not be."""
        places = np.asarray(rows[ROW]).astype(np.int64, copy=False)
        clauses = np.asarray(rows[CLAUSE]).astype(np.int64, copy=False)
        order = np.lexsort((clauses == NONE, places))
        places, clauses = places[order], clauses[order]
        first = np.ones(len(places), np.bool_)
        first[1:] = np.diff(places) != 0
        if not first.all() and not repeated:
            return None
        chosen = first & (clauses != NONE)
        found = np.array(actions)[clauses[chosen]]
        assert np.isin(found, (UPDATE, DELETE)).all()
        places_and_source = {FILE, ROW, CLAUSE, SOURCE}
        values = rows.drop_columns([name for name in rows.column_names if name in places_and_source])
        return cls(places[chosen], clauses[chosen], found == UPDATE, values, order[chosen])

    @classmethod
    def of_one_clause(cls, places: npt.NDArray[np.int64], values: NewValues | None) -> ChangedRows:
        """Rows that all change alike: they get new values, or (None) are deleted."""
        none = np.empty(0, np.int64)
        clauses = np.broadcast_to(np.int64(0), len(places))
        updates = np.full(len(places), values is not None)
        return cls(places, clauses, updates, values or NewValues(()), none)

    def __len__(self) -> int:
        return len(self.places)

    @property
    def names(self) -> list[str]:
        """The columns that get new values."""
        return self.values.names if isinstance(self.values, NewValues) else self.values.column_names

    @property
    def reads(self) -> set[str]:
        """The columns that have to be there to compute new values."""
        return self.values.reads if isinstance(self.values, NewValues) else set()

    @property
    def deletes_only(self) -> bool:
        return not self.updates.any()

    def new_values(self, chosen: npt.NDArray[np.int64], rows: pa.RecordBatch) -> pa.RecordBatch:
        """The new values of some of them, at least one, that lie near to each other.

        Parameters
        ----------
        rows
            As they were, at least what `reads` names.
        """
        if isinstance(self.values, NewValues):
            return self.values.of(rows)
        return self.given_values(chosen)

    def given_values(self, chosen: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """As `new_values`, of values that are not computed."""
        assert isinstance(self.values, pa.Table)
        numbers = self.numbers[chosen]
        first = int(numbers.min())
        # To take rows, Arrow makes one array of all there are, which may be more text than one can hold.
        near = self.values.slice(first, int(numbers.max()) + 1 - first)
        arrays = [column.combine_chunks() for column in near.columns]
        rows = pa.RecordBatch.from_arrays(arrays, names=self.values.column_names)
        return rows.take(integers(numbers - first))

    def by_clause(self) -> dict[int, int]:
        if len(self) and (self.clauses == self.clauses[0]).all():
            return {int(self.clauses[0]): len(self)}
        counts = np.bincount(self.clauses).tolist()
        return {number: rows for number, rows in enumerate(counts) if rows}

    def within(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The numbers of those that lie between the first and the last of some places."""
        low, high = np.searchsorted(self.places, [places[0], places[-1] + 1])
        return np.arange(low, high)


def patch(
    rows: pa.RecordBatch, at: npt.NDArray[np.int64], new: pa.RecordBatch, names: Collection[str]
) -> pa.RecordBatch:
    """Rows with others in some places, ascending; only the columns of some names differ."""
    replaced = np.zeros(rows.num_rows, np.bool_)
    replaced[at] = True
    where = mask(replaced)
    order = np.arange(rows.num_rows)
    order[at] = np.arange(rows.num_rows, rows.num_rows + len(at))
    columns = [
        _patched(old, where, other, order) if name in names else old
        for name, old, other in zip(rows.schema.names, rows.columns, new.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _patched(old: pa.Array, where: pa.BooleanArray, new: pa.Array, order: npt.NDArray[np.int64]) -> pa.Array:
    if pa.types.is_nested(old.type) or isinstance(old, pa.ExtensionArray):
        return pa.concat_arrays([old, new]).take(integers(order))
    return pc.replace_with_mask(old, where, new)
