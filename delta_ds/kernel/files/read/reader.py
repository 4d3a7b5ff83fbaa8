"""Read file slices to Arrow batches: all their rows, or those that match a predicate.

Per file: footer, row groups of the slice, leaf columns, deletion vector; then batch by batch the rows that
count, their columns as the table has them, and the columns that no file holds (partition values,
constants, `_metadata`). With a predicate its columns are read first, the others only where a row matches.
Memory is bounded by a batch and, on remote storage, a row group.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_ds.kernel.base.arrow_buffers import flags
from delta_ds.kernel.files.read.data_file import BATCH_ROWS, Batches, DataFile, is_remote, open_data_file
from delta_ds.kernel.files.read.file_columns import FileColumns, Layouts, output_schema
from delta_ds.kernel.format.expressions.arrays import FALSE
from delta_ds.kernel.format.expressions.tree import columns
from delta_ds.kernel.format.schema.types import StructType
from delta_ds.records import dataclass, replace

if TYPE_CHECKING:
    from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.values.deletion_vector import Positions
    from delta_ds.kernel.storage.filesystem import Storage


_FILES_AHEAD = 4  # remote files that are opened before their turn


def read_slices(
    storage: Storage,
    plan: ReadPlan,
    slices: Sequence[FileSlice],
    batch_rows: int = BATCH_ROWS,
    use_threads: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Read the live rows of file slices, one slice after the other.

    Parameters
    ----------
    storage
        Opens the files.
    plan
        Columns, names and types.
    slices
        What to read; a slice gives its rows in file order.
    batch_rows
        Rows of a batch at most.
    use_threads
        Decode columns in parallel; off inside Spark tasks, which have one core each.

    Yields
    ------
    pa.RecordBatch
        Not empty, with exactly `output_schema(plan)`. Without any column a batch still has its `num_rows`.

    Raises
    ------
    DataFileError
        A file is missing, damaged, or holds a column of a type that is not the table's.
    """
    layouts = Layouts(plan)
    streams = (read_slice(storage, layouts, piece, batch_rows, use_threads) for piece in slices)
    with closing(_prefetch(streams) if is_remote(storage) else streams) as ready:
        for stream in ready:
            with closing(stream):
                yield from stream


def read_slice(
    storage: Storage, layouts: Layouts, piece: FileSlice, batch_rows: int | None, use_threads: bool
) -> Batches:
    """The batches of one slice; see `read_slices`."""
    with open_data_file(storage, layouts.plan, piece) as file:
        columns = file.columns(layouts)
        for groups in file.row_groups(columns):
            for _, _, batch in file.read(columns, groups, batch_rows, use_threads):
                yield batch


def _prefetch(streams: Iterator[Batches]) -> Generator[Batches, None, None]:
    """The same streams with the next few opened ahead, as small remote files cost mostly waiting."""
    waiting: deque[Future[Batches]] = deque()
    with ThreadPoolExecutor(_FILES_AHEAD) as pool:
        try:
            for stream in streams:
                waiting.append(pool.submit(_start, stream))
                if len(waiting) > _FILES_AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                if future.exception() is None:
                    future.result().close()


def _start(stream: Batches) -> Batches:
    first = next(stream, None)

    def resumed() -> Batches:
        with closing(stream):
            if first is not None:
                yield first
                yield from stream

    return resumed()


class Matching:
    """How the rows of a plan that match its predicate are read; slices may be read by several threads.

    Parameters
    ----------
    plan
        With the predicate. Files give its `schema`.
    table
        All columns of the table, among them those of the predicate.
    """

    def __init__(self, plan: ReadPlan, table: StructType) -> None:
        assert plan.predicate is not None
        self.predicate: Expression = plan.predicate
        self.schema = output_schema(plan)
        asked = dict.fromkeys(column.path[0] for column in columns(self.predicate))
        fields = [table.find(name) for name in asked]
        first = StructType(tuple(field for field in fields if field is not None))
        names = set(first.names)
        others = StructType(tuple(field for field in plan.schema if field.name not in names))
        hidden = tuple(field for field in first if field.name not in plan.schema.names)
        self._first = Layouts(replace(plan, schema=first, metadata_columns=()))
        self._others = Layouts(replace(plan, schema=others))
        self._whole = Layouts(replace(plan, schema=StructType((*plan.schema.fields, *hidden))))

    def read(self, storage: Storage, piece: FileSlice, use_threads: bool = False) -> Batches:
        """The matching rows of a slice, in file order.

        Raises
        ------
        PredicateError
            The predicate cannot be evaluated, or not on a value; see `evaluate`.
        DataFileError
            As `read_slices`.
        """
        with open_data_file(storage, self._whole.plan, piece) as file:
            whole, first = file.columns(self._whole), file.columns(self._first)
            others = file.columns(self._others)
            for groups in file.row_groups(whole):
                if first.layout.leaves and others.layout.leaves:
                    for group in groups:
                        matches = self._find(file, first, group, use_threads)
                        yield from self._complete(file, matches, others, group, use_threads)
                else:
                    for _, _, batch in file.read(whole, groups, None, use_threads):
                        matching = batch.filter(self.holds(batch))
                        if matching.num_rows:
                            yield matching.select(self.schema.names)

    def holds(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """For each row, with the columns of the predicate, whether it is true."""
        from delta_ds.kernel.format.expressions.evaluate import evaluate

        return evaluate(self.predicate, batch).fill_null(FALSE)

    def _find(self, file: DataFile, first: FileColumns, group: int, use_threads: bool) -> list[_Found]:
        """The matching rows of a row group, as far as the columns of the predicate go."""
        parts = []
        for start, is_read, batch in file.read(first, [group], None, use_threads):
            matches = self.holds(batch)
            if matches.true_count:
                places = np.flatnonzero(flags(matches))
                if is_read is not None:
                    places = np.flatnonzero(is_read)[places]
                parts.append(_Found((places + start).astype(np.uint64), batch.filter(matches)))
        return parts

    def _complete(
        self, file: DataFile, parts: Sequence[_Found], others: FileColumns, group: int, use_threads: bool
    ) -> Iterator[pa.RecordBatch]:
        """The rows found with all their columns; reading ends behind the last of them."""
        if not parts:
            return
        positions = np.concatenate([part.positions for part in parts])
        columns = pa.Table.from_batches([part.rows for part in parts])
        done = 0
        for _, _, batch in file.read(others, [group], None, use_threads, positions):
            rows = batch.num_rows
            arrays: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
            arrays.update(zip(columns.column_names, columns.slice(done, rows).columns, strict=True))
            yield from pa.table([arrays[name] for name in self.schema.names], schema=self.schema).to_batches()
            done += rows
            if done == len(positions):
                return


@dataclass(frozen=True, slots=True)
class _Found:
    """Rows for which the predicate is true.

    Attributes
    ----------
    positions
        Physical, ascending.
    rows
        The columns of the predicate.
    """

    positions: Positions
    rows: pa.RecordBatch
