"""Rewrite the data files in which rows change: each is read, changed in these rows, and written anew, in Arrow.

Whoever finds the rows hands over their places and the new values, nothing of the rows that stay as they are.

Source: delta-spark, `DeleteCommand`, `UpdateCommand`, `MergeIntoCommand`: files are replaced as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from delta_ds.exceptions import DataFileError
from delta_ds.kernel.base.arrow_buffers import integers, mask
from delta_ds.kernel.commands.dml.candidates import NO_SOURCES, Rewritten, distinct, together
from delta_ds.kernel.commands.dml.changed_rows import SOURCE, ChangedRows, RowChanges, by_file, patch
from delta_ds.kernel.commands.dml.column_rewrite import ColumnRewrite
from delta_ds.kernel.commands.dml.plan import FileRewrite
from delta_ds.kernel.files.read.data_file import BATCH_ROWS, Batches, errors_name_file, open_data_file
from delta_ds.kernel.files.read.file_columns import Layouts
from delta_ds.kernel.files.read.plan import FileSlice
from delta_ds.kernel.files.read.reader import read_slice
from delta_ds.kernel.files.write.writer import FileWriter
from delta_ds.kernel.transaction.write.task import TaskResult
from delta_ds.records import replace

if TYPE_CHECKING:
    import numpy.typing as npt

# The rows of files below this size share new files, up to this size: a file costs more than its rows.
SMALL_BYTES = 4 << 20
# Of fewer files each becomes one of its own: what OPTIMIZE finds to do afterwards is what it finds with other engines.
FEWEST_SHARED = 32
# Of smaller files all rows are written anew: columns are copied at the price of three footers.
LEAST_COPIED = 192 << 10
# Smaller files are read once, where what changes in them follows from their rows alone.
_READ_ONCE = 512 << 10
# Rows of small files are held up to so many bytes of Arrow data: a file may hold much more than its size, as repeated
# texts, and one array no more than 2 GiB of text.
HELD_BYTES = 32 << 20


def rewrite_changed_files(plan: FileRewrite, batches: Iterable[pa.RecordBatch], task: int = 0) -> Rewritten:
    """Rewrite the files in which rows change.

    Parameters
    ----------
    plan
        The files, and what happens to rows.
    batches
        The rows to change, those of a file together and in the order of the file: `FILE` (int), `ROW` (bigint),
        `CLAUSE` (int), perhaps `SOURCE` (bigint), and by name the columns that get new values.
    task
        The number of the task, different for all tasks of a change.

    Raises
    ------
    InvariantViolationError
        A new row breaks a constraint; the files of this task are deleted, as with all errors.
    DataFileError
        A file is missing or damaged.
    StorageError
        A file cannot be written.
    """
    work = _Task(plan, task)
    try:
        for number, rows in by_file(batches):
            work.rewrite(number, rows)
        return work.close()
    except BaseException:
        work.abort()
        raise


class Search(Protocol):
    """Finds the rows of files that change."""

    def in_file(self, piece: FileSlice) -> ChangedRows:
        """Those of a file, of which as little is read as needed."""

    def among(self, rows: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Which of some rows with all columns change."""

    def change(self, places: npt.NDArray[np.int64]) -> ChangedRows:
        """What becomes of such rows in some places."""


def rewrite_found_files(plan: FileRewrite, search: Search, files: Iterable[int], task: int = 0) -> Rewritten:
    """Rewrite the files in which rows change, file by file as they are found; as `rewrite_changed_files`.

    Parameters
    ----------
    search
        Finds the rows of a file that change, perhaps none.
    files
        The numbers of files, each once.
    """
    work = _Task(plan, task)
    try:
        for number in files:
            work.find(number, search)
        work.change_held(search)
        return work.close()
    except BaseException:
        work.abort()
        raise


class _Held:
    """The rows of small files, and how many they are: rows, bytes of Arrow data, bytes of the files."""

    def __init__(self) -> None:
        self.files: list[tuple[int, pa.RecordBatch]] = []
        self.rows = self.bytes = self.size = 0

    def add(self, number: int, size: int, batches: Sequence[pa.RecordBatch]) -> None:
        """Take in all rows of a file of so many bytes."""
        self.files += [(number, batch) for batch in batches]
        self.rows += sum(batch.num_rows for batch in batches)
        self.bytes += sum(batch.nbytes for batch in batches)
        self.size += size


class _Task:
    def __init__(self, plan: FileRewrite, task: int) -> None:
        self._plan = plan
        self._task = task
        self._rows = RowChanges(plan.change, task)
        self._writer: FileWriter | None = None
        self._gathered = 0  # bytes of the files whose rows go to the file that is being written
        self._shares = len(plan.files) >= FEWEST_SHARED
        self._layouts = Layouts(plan.reading)
        self._copies_columns: bool | None = None  # not known before the first file
        self._columns: ColumnRewrite | None = None
        self._sources: list[npt.NDArray[np.int64]] = [NO_SOURCES]
        self._found: list[Rewritten] = []
        self._matched = False  # rows of the files before changed
        self._held = _Held()  # files whose rows are read

    def find(self, number: int, search: Search) -> None:
        """Rewrite one file, if rows of it change.

        A small file is read once, and changed with others, where its rows are likely to be written anew: as those of
        the one before were.
        """
        piece = self._plan.files[number]
        rows = self._plan.rows.get(number)
        is_small = self._shares and piece.size < _READ_ONCE and rows is not None and rows <= BATCH_ROWS
        if not (is_small and self._matched) or self._plan.change.uses_deletion_vectors:
            changed = search.in_file(piece)
            self._matched = bool(len(changed))
            self.change(number, changed)
            return
        if self._held.size + piece.size > SMALL_BYTES:
            self.change_held(search)
        if self._hold(number, piece):
            if self._held.rows >= BATCH_ROWS or self._held.bytes >= HELD_BYTES:
                self.change_held(search)
        else:
            self.change(number, search.in_file(piece))

    def _hold(self, number: int, piece: FileSlice) -> bool:
        """Read the rows of a small file; whether they were few enough to be held."""
        held, size = [], 0
        with closing(self._rows_of(piece)) as batches:
            for batch in batches:
                held.append(batch)
                size += batch.nbytes
                if size > HELD_BYTES:
                    return False
        self._held.add(number, piece.size, held)
        return True

    def change_held(self, search: Search) -> None:
        """Rewrite the small files that were read."""
        held, self._held = self._held.files, _Held()
        if not held:
            return
        started = time.monotonic()
        numbers = np.array([number for number, _ in held])
        lengths = [batch.num_rows for _, batch in held]
        rows = pa.concat_batches([batch for _, batch in held])
        changes = search.among(rows)
        there = np.unique(np.repeat(numbers, lengths)[changes])
        matched = np.isin(numbers, there)
        self._matched = bool(matched.all())
        if not self._matched:
            stays = np.repeat(matched, lengths)
            rows, changes = rows.filter(mask(stays)), changes[stays]
        if not len(there):
            self._found.append(Rewritten(seen=True))
            return
        changed = search.change(np.flatnonzero(changes))
        writer = self._writer_for(sum(self._plan.files[number].size for number in there.tolist()))
        before = writer.rows
        self._rows.write(self._rows.apart(rows)[1], np.arange(rows.num_rows), changed, writer)
        result, counts = TaskResult(rows=writer.rows - before), changed.by_clause()
        took = int((time.monotonic() - started) * 1000)
        self._found.append(Rewritten(result, tuple(there.tolist()), True, counts, milliseconds=took))

    def rewrite(self, number: int, rows: pa.Table) -> None:
        """Rewrite one file; `rows` are those of its rows that clauses may apply to."""
        if SOURCE in rows.column_names:
            self._sources.append(rows[SOURCE].drop_null().to_numpy())
        changed = ChangedRows.of(rows, self._plan.actions, self._plan.repeated)
        if changed is None:
            self._found.append(Rewritten(seen=True, ambiguous=True))
        else:
            self.change(number, changed)

    def change(self, number: int, changed: ChangedRows) -> None:
        """Rewrite one file, or mark its rows."""
        started = time.monotonic()
        if not len(changed):
            self._found.append(Rewritten(seen=True))
            return
        if self._plan.change.uses_deletion_vectors:
            result = TaskResult(rows=self._write_new_rows(number, changed))
            positions = {number: changed.places.astype(np.uint64)}
        else:
            result, positions = self._write(number, changed), {}
        self._found.append(
            Rewritten(
                result,
                (number,),
                True,
                changed.by_clause(),
                positions,
                milliseconds=int((time.monotonic() - started) * 1000),
            )
        )

    def _write(self, number: int, changed: ChangedRows) -> TaskResult:
        piece = self._plan.files[number]
        if changed.deletes_only and self._rows.feed is None and self._are_all_rows(number, len(changed)):
            return TaskResult()
        if changed.updates.all() and piece.size >= LEAST_COPIED:
            replaced = self._replace_columns(piece, changed)
            if replaced is not None:
                return replaced
        writer = self._writer_for(piece.size)
        done, before = 0, writer.rows
        with closing(self._rows_of(piece)) as batches:
            for batch in batches:
                places, rows = self._rows.apart(batch)
                done += self._rows.write(rows, places, changed, writer)
        self._check_all_found(piece, done, len(changed))
        return TaskResult(rows=writer.rows - before)

    def _are_all_rows(self, number: int, count: int) -> bool:
        """Whether a file has so many rows that are not deleted: by the log and, as that may be wrong, by its footer."""
        plan = self._plan
        if plan.rows.get(number) != count:
            return False
        with open_data_file(plan.change.write.storage, plan.reading, plan.files[number]) as file:
            deleted = 0 if file.deleted is None else len(file.deleted)
            return file.num_rows - deleted == count

    def _rows_of(self, piece: FileSlice) -> Batches:
        return read_slice(self._plan.change.write.storage, self._layouts, piece, BATCH_ROWS, False)

    def _write_new_rows(self, number: int, changed: ChangedRows) -> int:
        """Write updated rows to new files, and changes to change files; how many rows were written."""
        updates = np.flatnonzero(changed.updates)
        numbers = np.arange(len(changed)) if self._rows.feed is not None else updates
        if not len(numbers):
            return 0
        writer = self._writer_of_rows()
        if not self._rows.needs_old_rows(changed):
            for at in range(0, len(updates), BATCH_ROWS):
                writer.write(self._rows.of_values(changed.given_values(updates[at : at + BATCH_ROWS])))
            return len(updates)
        plan = self._plan
        piece = replace(plan.files[number], selection=changed.places[numbers].astype(np.uint64))
        done = 0
        with closing(self._rows_of(piece)) as batches:
            for batch in batches:
                places, rows = self._rows.apart(batch)
                chosen = np.searchsorted(changed.places, places)
                done += len(chosen)
                updated = changed.updates[chosen]
                if updated.any():
                    old = rows.filter(mask(updated))
                    writer.write(self._rows.updated(old, changed.new_values(chosen[updated], old)))
                if not updated.all():
                    self._rows.record(rows.filter(mask(~updated)), "delete")
        self._check_all_found(piece, done, len(numbers))
        return len(updates)

    def _writer_for(self, size: int) -> FileWriter:
        """The writer of the rows of files of so many bytes that are replaced."""
        writer = self._writer_of_rows()
        if self._gathered and (self._gathered + size > SMALL_BYTES or not self._shares):
            writer.cut()
            self._gathered = 0
        self._gathered += size
        return writer

    def _writer_of_rows(self) -> FileWriter:
        if self._writer is None:
            change = self._plan.change
            self._writer = FileWriter(
                change.write.storage, change.write.files, task=self._task, folder=change.folder
            )
        return self._writer

    def _replace_columns(self, piece: FileSlice, changed: ChangedRows) -> TaskResult | None:
        """Rewrite only the columns that get new values; None where the whole file has to be rewritten."""
        names = changed.names
        change = self._plan.change
        if self._copies_columns is None:
            self._copies_columns = ColumnRewrite.serves(change, names)
        if not self._copies_columns:
            return None
        if self._columns is None:
            self._columns = ColumnRewrite(change, self._plan.reading, names, self._task, changed.reads)
        columns = self._columns
        names = columns.schema.names
        with errors_name_file(self._plan.reading, piece):
            footer = columns.footer(piece)
            if footer is None:
                return None
            done = 0

            def rows() -> Iterator[pa.RecordBatch]:
                nonlocal done
                for batch in columns.batches(piece):
                    places, old = self._rows.apart(batch)
                    chosen = changed.within(places)
                    at = changed.places[chosen] - places[0]
                    done += len(chosen)
                    new_rows = old.select(names)
                    if len(chosen):
                        new_values = changed.new_values(chosen, old.take(integers(at))).select(names)
                        new_rows = patch(new_rows, at, columns.pipeline.process(new_values), names)
                    yield new_rows

            add, count = columns.write(piece, footer, rows())
        self._check_all_found(piece, done, len(changed))
        return TaskResult(adds=[add], rows=count)

    def _check_all_found(self, piece: FileSlice, done: int, wanted: int) -> None:
        reading = self._plan.reading
        if done != wanted:
            raise DataFileError(
                f"data file {piece.path} of version {reading.version} of {reading.table} has "
                f"{done} of the {wanted} rows that were found in it; nothing was committed",
                parameters={"path": piece.path, "table": reading.table},
            )

    def close(self) -> Rewritten:
        started = time.monotonic()
        rewritten = together(self._found)
        adds = [*rewritten.result.adds, *(self._writer.close() if self._writer else ())]
        if self._columns is not None:
            self._columns.close()
        result = replace(
            rewritten.result,
            adds=adds,
            changes=self._rows.feed.close() if self._rows.feed else [],
            timezone=self._plan.change.write.rows.timezone,
        )
        closing_ms = int((time.monotonic() - started) * 1000)
        milliseconds = closing_ms + sum(part.milliseconds for part in self._found)
        return replace(rewritten, result=result, sources=distinct(self._sources), milliseconds=milliseconds)

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.abort()
        if self._columns is not None:
            self._columns.abort()
        if self._rows.feed is not None:
            self._rows.feed.abort()
