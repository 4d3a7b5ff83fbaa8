"""One task of a write: batches of rows to data files, and to change files, that the commit will name.

Change files tell what file actions do not. Source: PROTOCOL.md, "Add CDC File"; protocol-checklist section 33.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from delta_ds.kernel.files.rows.pipeline import RowPipeline
from delta_ds.kernel.files.write.write_spec import WriteSpec
from delta_ds.kernel.files.write.writer import FileWriter
from delta_ds.kernel.format.actions import AddCDCFile, AddFile
from delta_ds.kernel.format.schema.types import STRING, StructField
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.transaction.write.plan import WritePlan
from delta_ds.records import dataclass, field, replace

CHANGE_TYPE = "_change_type"
FOLDER, _PREFIX = "_change_data", "cdc"


class ChangeWriter:
    """Writes rows with the kind of their change; used like a `FileWriter`.

    Parameters
    ----------
    storage, plan, task
        As for `FileWriter`.
    folder
        Below that of change files; none by default.
    """

    def __init__(self, storage: Storage, plan: WriteSpec, task: int = 0, folder: str = "") -> None:
        extra = (*plan.extra_columns, StructField(CHANGE_TYPE, STRING))
        self._writer = FileWriter(
            storage,
            replace(plan, extra_columns=extra),
            task=task,
            folder=f"{FOLDER}/{folder}" if folder else FOLDER,
            prefix=_PREFIX,
        )

    def write(self, rows: pa.RecordBatch, kind: str) -> None:
        """Record rows under one kind: `insert`, `delete`, `update_preimage` or `update_postimage`."""
        kinds = pa.repeat(pa.scalar(kind, pa.string()), rows.num_rows)
        self._writer.write(rows.append_column(pa.field(CHANGE_TYPE, pa.string()), kinds))

    def close(self) -> list[AddCDCFile]:
        """The bodies of the `cdc` actions."""
        return [
            {
                "path": add["path"],
                "partitionValues": add["partitionValues"],
                "size": add["size"],
                "dataChange": False,
            }
            for add in self._writer.close()
        ]

    def abort(self) -> None:
        """Delete what was written."""
        self._writer.abort()


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What a task wrote. Can be pickled.

    Attributes
    ----------
    adds, changes
        The bodies of `add` and `cdc` actions.
    rows
        How many rows.
    identity_marks
        The last value generated for each identity column.
    timezone
        The session time zone, which the commit has to go by as well; None where nothing was written.
    """

    adds: list[AddFile] = field(default_factory=list)
    changes: list[AddCDCFile] = field(default_factory=list)
    rows: int = 0
    identity_marks: dict[str, int] = field(default_factory=dict)
    timezone: str | None = None

    @property
    def paths(self) -> list[str]:
        """The files that were written, as actions name them."""
        return [body["path"] for body in (*self.adds, *self.changes)]


def write_rows(
    plan: WritePlan, batches: Iterable[pa.RecordBatch], task: int = 0, *, folder: str = ""
) -> TaskResult:
    """Write the rows of a task.

    Parameters
    ----------
    plan
        From `plan_write`.
    batches
        Rows of the schema that was planned for.
    task
        The number of the task, from 0 on, different for all tasks of a write.
    folder
        Of the table, in which data files come to lie, and change files in one of that name below theirs.

    Raises
    ------
    InvariantViolationError
        A row breaks a constraint; the files of this task are deleted.
    StorageError
        A file cannot be written; the same.
    """
    pipeline = RowPipeline(plan.rows, task)
    files = FileWriter(plan.storage, plan.files, task=task, folder=folder)
    records = plan.overwrite_scope.records_changes
    changes = ChangeWriter(plan.storage, plan.files, task, folder) if records else None
    rows = 0
    try:
        for batch in batches:
            if not batch.num_rows:
                continue
            ready = pipeline.process(batch)
            rows += ready.num_rows
            files.write(ready)
            if changes is not None:
                changes.write(ready, "insert")
        return TaskResult(
            adds=files.close(),
            changes=changes.close() if changes else [],
            rows=rows,
            identity_marks=pipeline.identity_marks(),
            timezone=plan.rows.timezone,
        )
    except BaseException:
        # Also when Spark kills the task: nothing refers to these files, and nothing ever will.
        files.abort()
        if changes is not None:
            changes.abort()
        raise
