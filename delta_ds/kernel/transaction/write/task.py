"""One task of a write: batches of rows to data files, and to change files, that the commit will name.

Change files tell what file actions do not. Source: PROTOCOL.md, "Add CDC File"; protocol-checklist section 33.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import StorageError
from delta_ds.kernel.files.rows.pipeline import RowPipeline
from delta_ds.kernel.files.write.write_spec import WriteSpec, encode
from delta_ds.kernel.files.write.writer import FileWriter
from delta_ds.kernel.format.actions import AddCDCFile, AddFile
from delta_ds.kernel.format.schema.types import STRING, StructField
from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.deleter import FOLDERS_OF_WRITES
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.staging import discard, quietly
from delta_ds.kernel.storage.store_errors import NOTHING_WRITTEN
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


_CHECKED_EVERY = 1.0  # seconds
_SIGN = "waiting"


@dataclass
class WriteSign:
    """A file beside what tasks write: as long as it is there, somebody waits for it. Can be pickled.

    Who gives a write up deletes the file first, and then all that was written. A task that Spark no longer waits for
    may still run, and takes the end of a query that failed for the end of its rows: it finds no file, and deletes what
    it has written itself. A machine that does not see the folder of the table finds none either.
    """

    storage: Storage
    path: str
    _seen: float = -_CHECKED_EVERY

    @classmethod
    def of(cls, storage: Storage, folder: str) -> WriteSign:
        """The sign of a write that has a folder of the table to itself."""
        return cls(storage, f"{folder}/{_SIGN}")

    @property
    def folder(self) -> str:
        """That the write has to itself."""
        return self.path.rpartition("/")[0]

    def put(self) -> None:
        """Begin to wait; raises `StorageError`."""
        self.storage.write(self.path, b"")

    def remove(self) -> None:
        """Wait no more."""
        discard(self.storage, [encode(self.path)])

    def tidy(self, paths: Iterable[str]) -> None:
        """Where nobody waits any more, delete the folders of deleted files that hold nothing else.

        Parameters
        ----------
        paths
            The files, relative to the table: a late task may have made their folders anew.
        """
        folders = {self.folder}
        for path in paths:
            while len(path := path.rpartition("/")[0]) > len(self.folder):
                folders.add(path)

        def delete() -> None:
            if not self.storage.exists(self.path):
                deleter.delete_empty_folders(self.storage, FOLDERS_OF_WRITES, sorted(folders))

        quietly(delete, self.storage.url)

    def discard_others(self, results: Iterable[TaskResult]) -> None:
        """Delete what attempts that failed have left in the folder, which no result names."""
        named = {path for result in results for path in result.paths}
        found = (
            encode(path)
            for entries in self.storage.list_below(self.folder)
            for path in entries.filter(pc.invert(entries["is_folder"]))["path"].to_pylist()
        )
        discard(self.storage, [path for path in found if path not in named])

    def check(self, *, now: bool = False) -> None:
        """Look for the file, once a second or `now`.

        Raises
        ------
        StorageError
            It is not there.
        """
        if not now and time.monotonic() - self._seen < _CHECKED_EVERY:
            return
        if not self.storage.exists(self.path):
            raise StorageError(
                f"cannot write to {self.storage.url}: a task does not find {self.path} there, so the write was given "
                "up, or the path does not name one and the same folder on every machine; use a path that does. "
                f"{NOTHING_WRITTEN}",
                parameters={"table": self.storage.url, "path": self.path},
            )
        self._seen = time.monotonic()


def write_rows(
    plan: WritePlan,
    batches: Iterable[pa.RecordBatch],
    task: int = 0,
    *,
    folder: str = "",
    sign: WriteSign | None = None,
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
    sign
        Is there as long as the write counts.

    Raises
    ------
    InvariantViolationError
        A row breaks a constraint; the files of this task are deleted.
    StorageError
        A file cannot be written, or the write does not count any more; the same.
    """
    check = None
    if sign is not None:
        sign.check(now=True)
        check = sign.check
    pipeline = RowPipeline(plan.rows, task)
    files = FileWriter(plan.storage, plan.files, task=task, folder=folder, check=check)
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
        if sign is not None:
            sign.check(now=True)
        result = TaskResult(
            adds=files.close(),
            changes=changes.close() if changes else [],
            rows=rows,
            identity_marks=pipeline.identity_marks(),
            timezone=plan.rows.timezone,
        )
        if sign is not None:
            sign.check(now=True)
        return result
    except BaseException:
        # Also when Spark kills the task: nothing refers to these files, and nothing ever will.
        written = files.written
        files.abort()
        if changes is not None:
            changes.abort()
        if sign is not None:
            sign.tidy(written)
        raise
