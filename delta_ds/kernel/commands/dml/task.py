"""One task of DELETE, UPDATE or MERGE: rewritten rows to data files, changes to change files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from delta_ds.kernel.arrow_buffers import integers
from delta_ds.kernel.commands.dml.plan import DmlPlan
from delta_ds.kernel.data.rows.pipeline import RowPipeline
from delta_ds.kernel.data.write.writer import FileWriter
from delta_ds.kernel.write.change_files import ChangeWriter
from delta_ds.kernel.write.task import TaskResult

# Columns of the rows beside the table's own.
ACTION = "__pydelta_action"
BEFORE = "__pydelta_before_"  # and the number of the table's column: the value that the row had
ROW_ID, ROW_VERSION = "__pydelta_row_id", "__pydelta_row_version"
# Where a row of the table is: the number of its file among the candidates, and its position there.
FILE, ROW = "__pydelta_file", "__pydelta_row"
# The number of the clause that changes a row; and of one that none changes.
CLAUSE, NONE = "__pydelta_clause", -1
# The number of the row of a MERGE's source that matches.
SOURCE = "__pydelta_source"
# What happens to a row.
COPY, UPDATE, INSERT, DELETE = range(4)


def write_changed_rows(plan: DmlPlan, batches: Iterable[pa.RecordBatch], task: int = 0) -> TaskResult:
    """Write the rows of a task.

    Parameters
    ----------
    plan
        The change.
    batches
        The table's columns as they are after the change (but those that are computed), found by name; `ACTION`
        (tinyint), absent where all rows are copied; `ROW_ID` and `ROW_VERSION` (bigint, null: a new one) under row
        tracking; with change files `BEFORE` columns, looked at in updated and deleted rows.
    task
        The number of the task, different for all tasks of a change.

    Raises
    ------
    InvariantViolationError
        A row breaks a constraint; the files of this task are deleted.
    StorageError
        A file cannot be written; the same.
    """
    writer = _Writer(plan, task)
    try:
        for batch in batches:
            if batch.num_rows:
                writer.write(batch)
        return writer.close()
    except BaseException:
        writer.abort()
        raise


class _Writer:
    def __init__(self, plan: DmlPlan, task: int) -> None:
        write = plan.write
        self._plan = plan
        self._after = RowPipeline(write.rows, task)
        self._before = RowPipeline(plan.before, task)
        self._names = [f.name for f in write.rows.table]
        self._extra = [f.name for f in write.files.extra_columns]
        self._files = FileWriter(write.storage, write.files, task=task, folder=plan.folder)
        self._changes = (
            ChangeWriter(write.storage, write.files, task, plan.folder) if plan.records_changes else None
        )
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        names = batch.schema.names
        hidden = [name for name in names if name.startswith("__pydelta_")]
        data = batch.select([name for name in names if name not in hidden])
        action = np.asarray(batch[ACTION]) if ACTION in names else None
        ids = [batch[name] for name in (ROW_ID, ROW_VERSION)] if self._plan.tracked else []
        if action is None or not (action == DELETE).any():
            self._write(data, ids, action)
        else:
            remaining = integers(np.flatnonzero(action != DELETE))
            self._write(
                data.take(remaining), [column.take(remaining) for column in ids], action[action != DELETE]
            )
        if self._changes is not None and action is not None:
            self._write_before(batch, ids, action)

    def _write(self, data: pa.RecordBatch, ids: list[pa.Array], action: np.ndarray | None) -> None:
        if not data.num_rows:
            return
        ready = self._with(self._after.process(data), ids)
        self._files.write(ready)
        self._rows += ready.num_rows
        if self._changes is not None and action is not None:
            for code, kind in ((UPDATE, "update_postimage"), (INSERT, "insert")):
                for part in _filter_rows(ready, action == code):
                    self._changes.write(part, kind)

    def _write_before(self, batch: pa.RecordBatch, ids: list[pa.Array], action: np.ndarray) -> None:
        assert self._changes is not None
        for code, kind in ((UPDATE, "update_preimage"), (DELETE, "delete")):
            chosen = integers(np.flatnonzero(action == code))
            if not len(chosen):
                continue
            places = [n for n in range(len(self._names)) if f"{BEFORE}{n}" in batch.schema.names]
            columns = [batch[f"{BEFORE}{n}"].take(chosen) for n in places]
            rows = pa.RecordBatch.from_arrays(columns, names=[self._names[n] for n in places])
            ready = self._before.process(rows)
            self._changes.write(self._with(ready, [column.take(chosen) for column in ids]), kind)

    def _with(self, rows: pa.RecordBatch, ids: list[pa.Array]) -> pa.RecordBatch:
        for name, values in zip(self._extra, ids, strict=True):
            rows = rows.append_column(pa.field(name, pa.int64()), values)
        return rows

    def close(self) -> TaskResult:
        return TaskResult(
            adds=self._files.close(),
            changes=self._changes.close() if self._changes else [],
            rows=self._rows,
            identity_marks=self._after.identity_marks(),
            timezone=self._plan.write.rows.timezone,
        )

    def abort(self) -> None:
        self._files.abort()
        if self._changes is not None:
            self._changes.abort()


def _filter_rows(rows: pa.RecordBatch, mask: np.ndarray) -> Iterator[pa.RecordBatch]:
    if mask.all():
        yield rows
    elif mask.any():
        yield rows.take(integers(np.flatnonzero(mask)))
