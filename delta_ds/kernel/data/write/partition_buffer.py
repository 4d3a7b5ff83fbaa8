"""Hold back rows of many partitions until one partition has enough for a row group.

Memory and open files stay bounded whatever the number of partitions: large runs are given out, what remains
goes to one temporary file, which has no name and so cannot be left behind.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import IO, Any

import numpy as np
import pyarrow as pa

from delta_ds.kernel.arrow_buffers import integers
from delta_ds.kernel.storage.write_errors import NOTHING_COMMITTED, cannot_write

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
                self._file = tempfile.TemporaryFile(prefix="delta_ds-")  # noqa: SIM115 (closed by `close`)
            for number, pieces in self._pieces.items():
                data = pa.concat_batches(pieces).serialize()
                self._spilled.setdefault(number, []).append((self._file.tell(), data.size))
                self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise cannot_write(
                f"a temporary file in {tempfile.gettempdir()}", error, NOTHING_COMMITTED
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
