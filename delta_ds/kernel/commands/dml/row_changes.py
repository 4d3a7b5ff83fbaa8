"""The rows of a file after a change: those that go, those that get new values, and what the change feed has of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from delta_ds.kernel.base.arrow_buffers import integers, mask, numbers
from delta_ds.kernel.commands.dml.changed_rows import ChangedRows, patch
from delta_ds.kernel.commands.dml.new_values import NewValues
from delta_ds.kernel.commands.dml.plan import DmlPlan
from delta_ds.kernel.files.rows.pipeline import RowPipeline
from delta_ds.kernel.files.write.writer import FileWriter
from delta_ds.kernel.transaction.write.change_files import ChangeWriter
from delta_ds.records import replace

if TYPE_CHECKING:
    import numpy.typing as npt


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
