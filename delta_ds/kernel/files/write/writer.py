"""Write data files: Arrow batches in, Parquet files and their `add` actions out.

A table without partitions streams into one file. Rows of partitions are told apart by whole columns, gathered
under a memory bound and written one partition after the other; see `PartitionBuffer`.
Source: PROTOCOL.md, "Data Files", "Add File and Remove File", "Per-file Statistics".
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_ds.conditions.schema import METADATA_MISMATCH_OF_BATCH
from delta_ds.kernel.base.arrow_buffers import integers
from delta_ds.kernel.base.environment import scratch_folder
from delta_ds.kernel.files.write.columns import file_columns
from delta_ds.kernel.files.write.partition_files import Output, Partition, PartitionFiles
from delta_ds.kernel.files.write.partition_split import PartitionIndex
from delta_ds.kernel.files.write.statistics import statistics_columns
from delta_ds.kernel.files.write.write_spec import WriteSpec, encode
from delta_ds.kernel.format.actions import AddFile
from delta_ds.kernel.storage.staging import discard, quietly
from delta_ds.kernel.storage.store_errors import NOTHING_COMMITTED, cannot_write

if TYPE_CHECKING:
    from delta_ds.kernel.storage.filesystem import Storage

_WHOLE_TABLE = Partition({}, "")


class FileWriter:
    """Writes the rows of one task to new data files of a table.

    Parameters
    ----------
    storage
        Of the table.
    plan
        Columns, partitions, names and sizes.
    task
        A number for the names of files.
    folder, prefix
        Where files lie and how their names begin: `_change_data` and `cdc` for change files.
    check
        Raises where no file is wanted any more; called before each.

    Attributes
    ----------
    rows, bytes
        Rows taken in so far, and bytes of the files closed so far.

    Raises
    ------
    SchemaError
        The table has columns that data files, or its partition columns that the log, cannot hold.
    InvalidOptionError
        A property that decides how files are written has no known value.

    Source: PROTOCOL.md, "Data Files"; protocol-checklist LOG-W-08, CM-W-06, CM-W-07, PV-RW-01 to 04.
    """

    def __init__(
        self,
        storage: Storage,
        plan: WriteSpec,
        *,
        task: int = 0,
        folder: str = "",
        prefix: str = "part",
        check: Callable[[], None] | None = None,
    ) -> None:
        columns = file_columns(plan)
        statistics = statistics_columns(plan, columns)
        self.rows = 0
        self.bytes = 0
        self._columns = columns
        self._output = Output(storage, plan, columns, statistics, task, folder, prefix, check=check)
        self._index = PartitionIndex(plan, columns) if columns.partitions else None
        self._open: dict[int, PartitionFiles] = {}
        self._adds: list[AddFile] = []
        self._buffer = None if self._index is None else PartitionBuffer(columns.schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Take in rows of any partitions.

        Parameters
        ----------
        batch
            The columns of `plan.schema`, then the extra ones, of exactly their Arrow types.

        Raises
        ------
        SchemaError
            The batch has other columns, or a partition value that the log cannot hold.
        StorageError
            A file cannot be written. After any error, call `abort`.
        """
        if not batch.schema.equals(self._columns.rows):
            raise METADATA_MISMATCH_OF_BATCH(
                table=self._output.plan.table,
                found=_listing(batch.schema),
                wanted=_listing(self._columns.rows),
            )
        if not batch.num_rows:
            return
        self.rows += batch.num_rows
        rows = self._columns.physical(batch)
        if self._index is None or self._buffer is None:
            self._files(0).write(rows)
            return
        self._buffer.add(rows, self._index.numbers(batch))
        if self._buffer.full:
            for number, pieces in self._buffer.release(self._open.keys()):
                files = self._files(number)
                for piece in pieces:
                    files.write(piece)
                files.flush()

    def _files(self, number: int) -> PartitionFiles:
        if number not in self._open:
            partition = _WHOLE_TABLE if self._index is None else self._index.partitions[number]
            self._open[number] = PartitionFiles(self._output, partition)
        return self._open[number]

    @property
    def written(self) -> list[str]:
        """The files begun so far, relative to the table."""
        return list(self._output.written)

    def cut(self) -> None:
        """Finish the files so far: rows that come now go to others. After any error, call `abort`."""
        before = len(self._adds)
        if self._buffer is not None:
            for number, pieces in self._buffer.drain():
                files = self._files(number)
                for piece in pieces:
                    files.write(piece)
                self._adds += files.close()
                del self._open[number]
        while self._open:
            number, files = next(iter(self._open.items()))
            self._adds += files.close()
            del self._open[number]
        self.bytes += sum(add["size"] for add in self._adds[before:])

    def close(self) -> list[AddFile]:
        """Finish all files.

        Returns
        -------
        list
            The bodies of the `add` actions, with statistics; none if there were no rows.

        Raises
        ------
        StorageError
            A file cannot be written; all files are deleted again.
        """
        try:
            self.cut()
            self._output.closing.wait()
            self._output.storage.fsync(self._output.written)
        except BaseException:
            self.abort()
            raise
        return self._adds

    def abort(self) -> None:
        """Delete all that was written; what cannot be deleted is logged and left to VACUUM."""
        if self._buffer is not None:
            self._buffer.close()
        for files in self._open.values():
            quietly(files.discard, self._output.plan.table)
        self._open = {}
        quietly(self._output.closing.wait_for_all, self._output.plan.table)
        written, self._output.written = self._output.written, []
        discard(self._output.storage, [encode(path) for path in written])


def _listing(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {f.type}" for f in schema)


# --- hold back rows of many partitions until one partition has enough for a row group
# Memory and open files stay bounded whatever the number of partitions: large runs are given out, what remains
# goes to one temporary file, which has no name and so cannot be left behind.

Numbers = np.ndarray[Any, Any]

BUDGET_BYTES = 128 << 20  # of rows held in memory
RUN_BYTES = 8 << 20  # of one partition that are worth a row group
OPEN_FILES = 16  # partitions that get rows before the end
# A batch with fewer rows than this for each of its partitions waits to be sorted with others: sorting within
# a batch stays in the processor's cache, but leaves many small pieces.
_ROWS_PER_PIECE = 64


class PartitionBuffer:
    """Collects rows with their partition numbers.

    Parameters
    ----------
    schema
        Of the rows.
    budget_bytes, run_bytes, open_files
        Bounds, by default those of this module.
    """

    def __init__(
        self,
        schema: pa.Schema,
        budget_bytes: int = BUDGET_BYTES,
        run_bytes: int = RUN_BYTES,
        open_files: int = OPEN_FILES,
    ) -> None:
        self._schema = schema
        self._budget = budget_bytes
        self._run_bytes = run_bytes
        self._open_files = open_files
        self._rows = self._bytes = 0
        self._pieces: dict[int, list[pa.RecordBatch]] = {}
        self._mixed: list[tuple[pa.RecordBatch, Numbers]] = []
        self._spilled: dict[int, list[tuple[int, int]]] = {}
        self._file: IO[bytes] | None = None

    def add(self, batch: pa.RecordBatch, numbers: Numbers) -> None:
        """Take in rows; call `release` afterwards if `full`."""
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        order = _order(numbers)
        ordered = numbers if order is None else numbers[order]
        if (np.count_nonzero(ordered[1:] != ordered[:-1]) + 1) * _ROWS_PER_PIECE > len(numbers):
            self._mixed.append((batch, numbers))
        else:
            self._cut(batch if order is None else batch.take(integers(order)), ordered)

    def _cut(self, batch: pa.RecordBatch, numbers: Numbers) -> None:
        """Take in rows in the order of their numbers."""
        cuts = (np.flatnonzero(numbers[1:] != numbers[:-1]) + 1).tolist()
        for start, end in zip([0, *cuts], [*cuts, len(numbers)], strict=True):
            self._pieces.setdefault(int(numbers[start]), []).append(batch.slice(start, end - start))

    def _cut_mixed(self) -> None:
        if not self._mixed:
            return
        batch = pa.concat_batches([batch for batch, _ in self._mixed])
        numbers = np.concatenate([of for _, of in self._mixed])
        self._mixed = []
        order = _order(numbers)
        if order is not None:
            batch, numbers = batch.take(integers(order)), numbers[order]
        self._cut(batch, numbers)

    @property
    def full(self) -> bool:
        return self._bytes >= self._budget

    def release(self, open_: Collection[int]) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
        """Give out the large runs; then hold the rest, or spill it if it is much.

        Parameters
        ----------
        open_
            Partitions that have an open file; a few more may be opened.

        Yields
        ------
        tuple
            Partition number and its rows.
        """
        self._cut_mixed()
        taken = set(open_)
        large = self._run_bytes * self._rows / self._bytes
        for number, pieces in list(self._pieces.items()):
            rows = sum(piece.num_rows for piece in pieces)
            if rows >= large and (number in taken or len(taken) < self._open_files):
                taken.add(number)
                self._forget(rows)
                yield number, self._pieces.pop(number)
        if self._bytes * 2 > self._budget:
            self._spill()
        else:  # copies, so that the batches they were cut from are let go
            self._pieces = {n: [pa.concat_batches(pieces)] for n, pieces in self._pieces.items()}

    def _forget(self, rows: int) -> None:
        self._bytes -= self._bytes * rows // self._rows
        self._rows -= rows

    def _spill(self) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="delta_ds-", dir=scratch_folder())  # noqa: SIM115 (closed by `close`)
            for number, pieces in self._pieces.items():
                data = pa.concat_batches(pieces).serialize()
                self._spilled.setdefault(number, []).append((self._file.tell(), data.size))
                self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise cannot_write(
                f"a temporary file in {scratch_folder() or tempfile.gettempdir()}", error, NOTHING_COMMITTED
            ) from error
        self._pieces, self._rows, self._bytes = {}, 0, 0

    def drain(self) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
        """Give out all that is left, partition by partition; the buffer is empty afterwards."""
        self._cut_mixed()
        for number in sorted(self._pieces.keys() | self._spilled.keys()):
            yield number, self._rest(number)
        self.close()

    def _rest(self, number: int) -> Iterator[pa.RecordBatch]:
        for offset, size in self._spilled.pop(number, ()):
            assert self._file is not None
            self._file.seek(offset)
            yield pa.ipc.read_record_batch(pa.py_buffer(self._file.read(size)), self._schema)
        yield from self._pieces.pop(number, ())

    def close(self) -> None:
        """Let go of all rows and of the temporary file."""
        self._pieces, self._mixed, self._spilled, self._rows, self._bytes = {}, [], {}, 0, 0
        if self._file is not None:
            # What could not be written is not wanted any more.
            with suppress(OSError):
                self._file.close()
            self._file = None


def _order(numbers: Numbers) -> Numbers | None:
    """The stable order that sorts numbers; None if they are sorted."""
    if not (numbers[1:] < numbers[:-1]).any():
        return None
    # 16-bit numbers are sorted by radix, others by merging.
    narrow = numbers.astype(np.uint16) if numbers.max() < 1 << 16 else numbers
    order: Numbers = np.argsort(narrow, kind="stable")
    return order
