"""Read file slices to Arrow batches.

Per file: footer, row groups of the slice, leaf columns, deletion vector; then batch by batch the rows that
count, their columns as the table has them, and the columns that no file holds (partition values,
constants, `_metadata`). Memory is bounded by a batch and, on remote storage, a row group.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

from delta_ds.kernel.files.read.data_file import BATCH_ROWS, Batches, is_remote, open_data_file
from delta_ds.kernel.files.read.file_columns import Layouts

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan
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
