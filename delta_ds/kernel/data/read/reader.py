"""Read file slices to Arrow batches.

Per file: footer, row groups of the slice, leaf columns, deletion vector; then batch by batch the rows that
count, their columns as the table has them, and the columns that no file holds (partition values,
constants, `_metadata`). Memory is bounded by a batch and, on remote storage, a row group.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_ds.conditions.data import FAILED_READ_FILE_FILE_NOT_EXIST, FAILED_READ_FILE_NO_HINT
from delta_ds.exceptions import DataFileError, DeltaError
from delta_ds.kernel.arrow_buffers import mask
from delta_ds.kernel.data.read import char_padding, column_conversion, row_groups
from delta_ds.kernel.data.read.exists_default import repeat
from delta_ds.kernel.data.read.metadata_column import METADATA_COLUMN, RowMetadata, metadata_type
from delta_ds.kernel.data.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.data.values import partition_values
from delta_ds.kernel.data.values.calendars import rebase_of
from delta_ds.kernel.data.values.deletion_vector import read_positions
from delta_ds.kernel.expressions.arrays import array_of
from delta_ds.kernel.schema.field_metadata import PHYSICAL_NAME
from delta_ds.kernel.schema.types import (
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    StructField,
    StructType,
    arrow_schema,
    arrow_type,
)

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from delta_ds.kernel.data.values.deletion_vector import Positions
    from delta_ds.kernel.storage.filesystem import Storage

BATCH_ROWS = 65_536
_FILES_AHEAD = 4  # remote files that are opened before their turn


def output_schema(plan: ReadPlan) -> pa.Schema:
    """The schema of every batch: `schema`, then `extra`, then `_metadata` if asked for."""
    schema = arrow_schema(StructType((*plan.schema.fields, *plan.extra.fields)))
    if plan.metadata_columns:
        schema = schema.append(pa.field(METADATA_COLUMN, metadata_type(plan.metadata_columns), False))
    return schema


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
    schema = output_schema(plan)
    streams = (_read_naming_file(storage, plan, piece, schema, batch_rows, use_threads) for piece in slices)
    with closing(_prefetch(streams) if _is_remote(storage) else streams) as ready:
        for stream in ready:
            with closing(stream):
                yield from stream


_Batches = Generator[pa.RecordBatch, None, None]


def _is_remote(storage: Storage) -> bool:
    return ":/" in storage.url


def _prefetch(streams: Iterator[_Batches]) -> Generator[_Batches, None, None]:
    """The same streams with the next few opened ahead, as small remote files cost mostly waiting."""
    waiting: deque[Future[_Batches]] = deque()
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


def _start(stream: _Batches) -> _Batches:
    first = next(stream, None)

    def resumed() -> _Batches:
        with closing(stream):
            if first is not None:
                yield first
                yield from stream

    return resumed()


def _read_naming_file(
    storage: Storage, plan: ReadPlan, piece: FileSlice, schema: pa.Schema, batch_rows: int, use_threads: bool
) -> _Batches:
    """The batches of one slice; errors of reading it name its file."""
    with closing(_read_slice(storage, plan, piece, schema, batch_rows, use_threads)) as batches:
        while True:
            with _errors_name_file(plan, piece):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch


@contextmanager
def _errors_name_file(plan: ReadPlan, piece: FileSlice) -> Iterator[None]:
    """Turn errors of reading a file into a DataFileError that names file, table and version."""
    place = f"data file {piece.path} of table {plan.table} at version {plan.version}"
    parameters = {"path": piece.path, "table": plan.table, "version": plan.version}
    try:
        yield
    except FileNotFoundError as error:
        raise FAILED_READ_FILE_FILE_NOT_EXIST(parameters, place=place) from error
    except DataFileError as error:
        if "table" in error.parameters:
            raise
        text = f"{place} cannot be read: {error.text}"
        raise DataFileError(
            text, condition=error.condition, parameters=parameters | error.parameters
        ) from error
    except DeltaError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise FAILED_READ_FILE_NO_HINT(parameters, place=place, reason=error) from error


def _read_slice(
    storage: Storage, plan: ReadPlan, piece: FileSlice, schema: pa.Schema, batch_rows: int, use_threads: bool
) -> _Batches:
    import pyarrow.parquet as pq

    remote = _is_remote(storage)
    with (
        closing(storage.open(storage.resolve(piece.path))) as source,
        pq.ParquetFile(source, pre_buffer=remote, coerce_int96_timestamp_unit="us") as file,
    ):
        vector = piece.deletion_vector
        deleted = None if vector is None else read_positions(storage, vector, file.metadata.num_rows)
        columns = _Columns(plan, piece, file)
        starts = row_groups.row_starts(file.metadata)
        groups = _row_groups(file, columns, plan, piece, starts)
        runs = _runs(groups, alone=remote)
        for first, batch in _physical(file, runs, starts, columns.leaves, batch_rows, use_threads):
            kept = _kept(first, batch.num_rows, deleted, piece.selection)
            if kept is not None:
                batch = batch.filter(mask(kept))
            if batch.num_rows:
                yield columns.output(batch, first, kept, schema)


def _row_groups(
    file: pq.ParquetFile, columns: _Columns, plan: ReadPlan, piece: FileSlice, starts: np.ndarray[Any, Any]
) -> list[int]:
    metadata = file.metadata
    groups = row_groups.in_range(metadata, piece.start, piece.length, piece.size)
    if piece.selection is not None:
        groups = row_groups.groups_of_positions(groups, starts, piece.selection)
    if plan.predicate is not None and groups:
        statistics = row_groups.StatisticsFilter(
            plan.predicate, columns.wanted, columns.rules, file.schema_arrow
        )
        groups = statistics.matching(metadata, groups)
    return groups


def _physical(
    file: pq.ParquetFile,
    runs: list[list[int]],
    starts: np.ndarray[Any, Any],
    leaves: list[int],
    batch_rows: int,
    use_threads: bool,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of the leaf columns, each with the physical position of its first row."""
    for run in runs:
        first, end = int(starts[run[0]]), int(starts[run[-1] + 1])
        if leaves:
            for batch in file.reader.iter_batches(
                batch_rows, row_groups=run, column_indices=leaves, use_threads=use_threads
            ):
                yield first, batch
                first += batch.num_rows
        else:
            for at in range(first, end, batch_rows):
                yield at, _rows_only(min(batch_rows, end - at))


def _runs(groups: list[int], alone: bool) -> list[list[int]]:
    """Consecutive row groups together; one by one where each is fetched whole."""
    runs: list[list[int]] = []
    for group in groups:
        if runs and not alone and runs[-1][-1] == group - 1:
            runs[-1].append(group)
        else:
            runs.append([group])
    return runs


def _rows_only(rows: int) -> pa.RecordBatch:
    """A batch without columns: only a struct array without fields can tell Arrow the number of rows."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))


def _kept(
    first: int, rows: int, deleted: Positions | None, selection: Positions | None
) -> np.ndarray[Any, Any] | None:
    """The mask of live rows among `rows` from position `first`; None for all."""
    kept = None
    if selection is not None:
        kept = np.zeros(rows, np.bool_)
        kept[_within(selection, first, rows)] = True
    if deleted is not None:
        gone = _within(deleted, first, rows)
        if len(gone):
            kept = np.ones(rows, np.bool_) if kept is None else kept
            kept[gone] = False
    return kept


def _within(positions: Positions, first: int, rows: int) -> np.ndarray[Any, Any]:
    low, high = np.searchsorted(positions, np.array([first, first + rows], positions.dtype))
    return (positions[low:high] - positions.dtype.type(first)).astype(np.int64)


class _Columns:
    """How the output columns of one file come about."""

    def __init__(self, plan: ReadPlan, piece: FileSlice, file: pq.ParquetFile) -> None:
        timezone = plan.timezone or "UTC"
        self.rules = column_conversion.Rules(
            plan.mapping_mode, rebase_of(file.metadata.metadata, timezone), timezone
        )
        from_file: list[StructField] = []
        # Per output column its number among the columns of the file, or its value as an array of length one.
        self._sources: list[int | pa.Array] = []
        for field, constant in _output_fields(plan, piece, timezone):
            if constant is None:
                self._sources.append(len(from_file))
                from_file.append(field)
            else:
                self._sources.append(constant)
        self._metadata = RowMetadata(plan, piece) if plan.metadata_columns else None
        tracking = self._metadata.tracking_fields() if self._metadata else []
        self.wanted = StructType((*from_file, *tracking))
        self._tracked = len(from_file)
        if from_file:
            column_conversion.check_field_ids(file.schema_arrow, plan.mapping_mode)
        self.leaves = column_conversion.select_leaves(file.schema_arrow, self.wanted, plan.mapping_mode)
        self._convert: Callable[[pa.RecordBatch], list[pa.Array]] | None = None

    def output(
        self, batch: pa.RecordBatch, first: int, kept: np.ndarray[Any, Any] | None, schema: pa.Schema
    ) -> pa.RecordBatch:
        if not len(schema):
            return batch
        if self._convert is None:  # the batches of a file share a schema
            self._convert = column_conversion.compile_columns(batch.schema, self.wanted, self.rules)
        rows = batch.num_rows
        found = self._convert(batch)
        arrays = [found[s] if isinstance(s, int) else repeat(s, rows) for s in self._sources]
        if self._metadata is not None:
            arrays.append(self._metadata.column(rows, first, kept, found[self._tracked :]))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _output_fields(
    plan: ReadPlan, piece: FileSlice, timezone: str
) -> Iterator[tuple[StructField, pa.Array | None]]:
    """The fields of `schema` and `extra`, each with its value where it is the same for the whole file."""
    partition = dict(zip(plan.partition_columns, piece.partition_values, strict=True))
    for field in plan.schema:
        is_partition = field.name in partition
        yield field, _partition_value(field, partition[field.name], timezone) if is_partition else None
    constants = dict(piece.constants)
    for field in plan.extra:
        if field.name in constants:
            yield field, _constant(constants[field.name], field)
        else:
            yield replace(field, metadata={PHYSICAL_NAME: field.name}), None


def _constant(value: Any, field: StructField) -> pa.Array:
    if isinstance(value, int) and field.type in (TIMESTAMP, TIMESTAMP_NTZ):
        return array_of([value], LONG).view(arrow_type(field.type))  # microseconds
    return array_of([value], field.type)


def _partition_value(field: StructField, text: str | None, timezone: str) -> pa.Array:
    one = partition_values.parse(array_of([text], STRING), field.type, timezone)
    width = char_padding.char_width(char_padding.declared_char_type(field))
    return one if width is None else char_padding.pad(width)(one)
