"""Read file slices to Arrow batches: all their rows, or those that match a predicate; and several streams ahead.

Per file: footer, row groups of the slice, leaf columns, deletion vector; then batch by batch the rows that
count, their columns as the table has them, and the columns that no file holds (partition values,
constants, `_metadata`). With a predicate its columns are read first, the others only where a row matches.
Memory is bounded by a batch and, on remote storage, a row group; threads that work ahead have a bound of bytes.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from threading import Condition, Thread, main_thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_ds.kernel.base.arrow_buffers import flags
from delta_ds.kernel.files.read.data_file import BATCH_ROWS, Batches, DataFile, is_remote, open_data_file
from delta_ds.kernel.files.read.file_columns import METADATA_COLUMN, FileColumns, Layouts, output_schema
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
        self._has_metadata = bool(plan.metadata_columns)
        # By number: a column of the table may have the name of `_metadata`, which comes last.
        count = len(plan.schema)
        self._wanted = [*range(count), *range(count + len(hidden), len(self.schema) + len(hidden))]

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
                            yield matching.select(self._wanted)

    def holds(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """For each row, with the columns of the predicate, whether it is true; `_metadata` is a column of the table."""
        from delta_ds.kernel.format.expressions.evaluate import evaluate

        if len(batch.schema.get_all_field_indices(METADATA_COLUMN)) > 1:
            batch = batch.select(range(batch.num_columns - 1))
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
            of_table: list[Any] = batch.columns
            metadata = [of_table.pop()] if self._has_metadata else []
            arrays: dict[str, Any] = dict(zip(batch.schema.names, of_table, strict=False))
            arrays.update(zip(columns.column_names, columns.slice(done, rows).columns, strict=True))
            names = self.schema.names[: len(self.schema) - len(metadata)]
            yield from pa.table(
                [*(arrays[name] for name in names), *metadata], schema=self.schema
            ).to_batches()
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


_STORE_THREADS = 4
_LOOK_UP_S = 1.0


def threads_for(storage: Storage, cores: int | None = None) -> int:
    """How many threads read files of a table: one a CPU, and more where they mostly wait for a store.

    Parameters
    ----------
    cores
        The CPUs to use; None: all there are.
    """
    cores = cores or os.cpu_count() or 1
    return max(cores, _STORE_THREADS) if is_remote(storage) else cores


def in_order(
    streams: Sequence[Callable[[], Batches]], workers: int, max_bytes: float
) -> Generator[pa.RecordBatch, None, None]:
    """The batches of all streams, one stream after the other, while threads work ahead.

    Parameters
    ----------
    streams
        Each makes one stream; called and drained in a thread.
    workers
        How many threads, and so streams, at a time.
    max_bytes
        A thread whose turn is yet to come makes no further batch while so many bytes wait to be taken.

    Raises
    ------
    Exception
        What a stream raises, when its turn comes; the threads end, as they do where the caller stops early.
    """
    if workers < 2 or len(streams) < 2:
        for stream in streams:
            with closing(stream()) as batches:
                yield from batches
        return
    ahead = _Ahead(streams, max_bytes)
    threads = [
        Thread(target=ahead.work, name=f"delta_ds-read-{n}") for n in range(min(workers, len(streams)))
    ]
    try:
        for thread in threads:
            thread.start()
        for number in range(len(streams)):
            while (batch := ahead.take(number)) is not None:
                yield batch
    finally:
        ahead.stop()
        for thread in threads:
            if thread.ident is not None:
                thread.join()


class _Ahead:
    """What the threads have made and the caller has not taken yet.

    Streams are begun in order, so the one whose turn it is has ended or has a thread, and that never waits
    with nothing to take: the others may fill all room there is.
    """

    def __init__(self, streams: Sequence[Callable[[], Batches]], max_bytes: float) -> None:
        self._streams = streams
        self._max_bytes = max_bytes
        self._made: list[deque[pa.RecordBatch]] = [deque() for _ in streams]
        self._ended = [False] * len(streams)
        self._errors: dict[int, BaseException] = {}
        self._begun = 0
        self._held = 0
        self._turn = 0
        self._stopped = False
        self._changed = Condition()

    def work(self) -> None:
        """Drain streams until none is left; runs in each of the threads."""
        while (number := self._begin()) is not None:
            self._drain(number)

    def _begin(self) -> int | None:
        with self._changed:
            if self._stopped or self._begun == len(self._streams):
                return None
            self._begun += 1
            return self._begun - 1

    def _drain(self, number: int) -> None:
        """Make the batches of a stream; what it raises is kept for its turn."""
        try:
            with closing(self._streams[number]()) as batches:
                for batch in batches:
                    if not self._put(number, batch):
                        return
        except BaseException as error:  # noqa: BLE001 - raised again by `take`
            self._errors[number] = error
        finally:
            with self._changed:
                self._ended[number] = True
                self._changed.notify_all()

    def _put(self, number: int, batch: pa.RecordBatch) -> bool:
        """Hand a batch over, then wait until there is room for another; False: no more is wanted."""
        with self._changed:
            self._made[number].append(batch)
            self._held += batch.nbytes
            self._changed.notify_all()
            # A program may end while its batches are not all taken: nobody will say so.
            while not self._changed.wait_for(lambda: self._stopped or self._may_go_on(number), _LOOK_UP_S):
                if not main_thread().is_alive():
                    return False
            return not self._stopped

    def _may_go_on(self, number: int) -> bool:
        return self._held < self._max_bytes or (number == self._turn and not self._made[number])

    def take(self, number: int) -> pa.RecordBatch | None:
        """The next batch of the stream whose turn it is; None at its end."""
        with self._changed:
            self._turn = number
            self._changed.notify_all()
            self._changed.wait_for(lambda: bool(self._made[number]) or self._ended[number])
            if self._made[number]:
                batch = self._made[number].popleft()
                self._held -= batch.nbytes
                self._changed.notify_all()
                return batch
        if number in self._errors:
            raise self._errors[number]
        return None

    def stop(self) -> None:
        """No more is wanted: threads end after the batch they are at."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
