"""The rows of one file that change: where they are, what happens to them, their new values, and the rows after that.

Source: delta-spark, `UpdateCommand`, `ClassicMergeExecutor`: which rows a command changes, each once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.base.arrow_buffers import integers, mask, numbers
from delta_ds.kernel.commands.dml.new_values import NewValues
from delta_ds.kernel.commands.dml.plan import DmlPlan
from delta_ds.kernel.files.rows.pipeline import RowPipeline
from delta_ds.kernel.files.write.writer import FileWriter
from delta_ds.kernel.transaction.write.task import ChangeWriter
from delta_ds.records import dataclass, replace

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


class RowChanges:
    """Makes the rows after a change, batch by batch, in one task.

    Parameters
    ----------
    change
        How changed rows become rows of the table.
    task
        The number of the task.

    Attributes
    ----------
    feed
        Writes what the change feed has; None where nothing is recorded.
    """

    def __init__(self, change: DmlPlan, task: int) -> None:
        write = change.write
        self._change = change
        # Rows that are there already have their identity values.
        self._after = RowPipeline(replace(write.rows, identities=()), task)
        self._computed = {g.column for g in write.rows.generated}
        self.feed = (
            ChangeWriter(write.storage, write.files, task, change.folder) if change.records_changes else None
        )

    def needs_old_rows(self, changed: ChangedRows) -> bool:
        """Whether new rows are made of the old ones."""
        if isinstance(changed.values, NewValues):
            return True
        change = self._change
        stored = set(change.write.rows.table.names) - self._computed
        return self.feed is not None or change.tracked or stored != set(changed.names)

    def of_values(self, given: pa.RecordBatch) -> pa.RecordBatch:
        """New rows of values for all columns; see `needs_old_rows`."""
        return self._after.process(given)

    def apart(self, batch: pa.RecordBatch) -> tuple[npt.NDArray[np.int64], pa.RecordBatch]:
        """The positions of rows in their file, and the rows as files have them."""
        last = batch.num_columns - 1
        index, *tracked = batch.column(last).flatten()
        rows = batch.select(range(last))
        for column, values in zip(self._change.write.files.extra_columns, tracked, strict=True):
            rows = rows.append_column(pa.field(column.name, pa.int64()), values)
        return numbers(index), rows

    def write(
        self, rows: pa.RecordBatch, places: npt.NDArray[np.int64], changed: ChangedRows, writer: FileWriter
    ) -> int:
        """Write the rows of a batch, changed; how many changed."""
        chosen = changed.within(places)
        if not len(chosen):
            writer.write(rows)
            return 0
        at = np.searchsorted(places, changed.places[chosen])
        if not np.array_equal(places[at], changed.places[chosen]):
            return 0  # a deleted row: the caller counts
        updated = changed.updates[chosen]
        if updated.any():
            rows = self._update(rows, at[updated], chosen[updated], changed)
        if not updated.all():
            gone = at[~updated]
            self.record(rows.take(integers(gone)), "delete")
            keeps = np.ones(rows.num_rows, np.bool_)
            keeps[gone] = False
            rows = rows.filter(mask(keeps))
        if rows.num_rows:
            writer.write(rows)
        return len(chosen)

    def _update(
        self,
        rows: pa.RecordBatch,
        at: npt.NDArray[np.int64],
        chosen: npt.NDArray[np.int64],
        changed: ChangedRows,
    ) -> pa.RecordBatch:
        plan = self._change
        old = rows.take(integers(at))
        values = changed.new_values(chosen, old)
        new = self.updated(old, values)
        version = [column.name for column in plan.write.files.extra_columns[1:]]
        return patch(rows, at, new, {*values.column_names, *self._computed, *version})

    def updated(self, old: pa.RecordBatch, values: pa.RecordBatch) -> pa.RecordBatch:
        """Rows after they were updated; both forms go to the change files."""
        plan = self._change
        new = self._with_ids(self._after.process(self._given(old, values)), old)
        if self.feed is not None:
            self.record(self._with_ids(old.select(plan.write.rows.table.names), old), "update_preimage")
            self.record(new, "update_postimage")
        return new

    def _given(self, old: pa.RecordBatch, values: pa.RecordBatch) -> pa.RecordBatch:
        """The new rows before they are completed: given values, and those that stay."""
        given = set(values.column_names)
        names = [name for name in self._change.write.rows.table.names if name not in self._computed]
        columns = [values[name] if name in given else old[name] for name in names]
        return pa.RecordBatch.from_arrays(columns, names=names)

    def _with_ids(self, rows: pa.RecordBatch, old: pa.RecordBatch) -> pa.RecordBatch:
        """With the ids of the rows as they were; a changed row gets its version from the commit."""
        extra = self._change.write.files.extra_columns
        if extra:
            row_id, version = extra
            rows = rows.append_column(pa.field(row_id.name, pa.int64()), old[row_id.name])
            rows = rows.append_column(pa.field(version.name, pa.int64()), pa.nulls(old.num_rows, pa.int64()))
        return rows

    def record(self, rows: pa.RecordBatch, kind: str) -> None:
        """Have rows in the change feed, as one of its kinds of change."""
        if self.feed is not None:
            self.feed.write(rows, kind)
