"""One open data file: the row groups of a slice, and batches of those of its rows that count."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_ds.conditions.data import FAILED_READ_FILE_FILE_NOT_EXIST, FAILED_READ_FILE_NO_HINT
from delta_ds.exceptions import DataFileError, DeltaError
from delta_ds.kernel.base.arrow_buffers import mask
from delta_ds.kernel.files.read import column_conversion, row_groups
from delta_ds.kernel.files.read.file_columns import FileColumns, Layouts
from delta_ds.kernel.files.read.plan import FileSlice, ReadPlan
from delta_ds.kernel.format.expressions.zones import rebase_of
from delta_ds.kernel.format.values.deletion_vector import read_positions

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from delta_ds.kernel.format.values.deletion_vector import Positions
    from delta_ds.kernel.storage.filesystem import Storage

Batches = Generator[pa.RecordBatch, None, None]


@contextmanager
def errors_name_file(plan: ReadPlan, piece: FileSlice) -> Iterator[None]:
    """Turn errors of reading a file into a DataFileError that names file, table and version."""
    try:
        yield
    except DeltaError as error:
        if not isinstance(error, DataFileError) or "table" in error.parameters:
            raise
        raise _naming(plan, piece, error) from error
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise _naming(plan, piece, error) from error


def _naming(plan: ReadPlan, piece: FileSlice, error: Exception) -> DataFileError:
    place = f"data file {piece.path} of table {plan.table} at version {plan.version}"
    parameters = {"path": piece.path, "table": plan.table, "version": plan.version}
    if isinstance(error, DataFileError):
        text = f"{place} cannot be read: {error.text}"
        return DataFileError(text, condition=error.condition, parameters=parameters | error.parameters)
    if isinstance(error, FileNotFoundError):
        return FAILED_READ_FILE_FILE_NOT_EXIST(parameters, place=place)
    return FAILED_READ_FILE_NO_HINT(parameters, place=place, reason=error)


@contextmanager
def open_data_file(storage: Storage, plan: ReadPlan, piece: FileSlice) -> Iterator[DataFile]:
    """The file of a slice, closed at the end of the block.

    Raises
    ------
    DataFileError
        The file is missing or damaged, or its deletion vector is; names it. Errors of the block stay as they are.
    """
    with errors_name_file(plan, piece):
        source = storage.open(storage.resolve(piece.path))
    with closing(source):
        with errors_name_file(plan, piece):
            file = DataFile(storage, plan, piece, source)
        yield file


class DataFile:
    """The rows of a slice that count: not deleted, and selected.

    Attributes
    ----------
    remote
        Row groups are fetched whole and one by one.
    """

    def __init__(self, storage: Storage, plan: ReadPlan, piece: FileSlice, source: Any) -> None:
        self.remote = is_remote(storage)
        self._plan = plan
        self._piece = piece
        self._source = source
        self._file = self._open()
        metadata = self._file.metadata
        self._schema = self._file.schema_arrow
        timezone = plan.timezone or "UTC"
        rebase = rebase_of(metadata.metadata, timezone)
        self._rules = column_conversion.Rules(plan.mapping_mode, rebase, timezone)
        vector = piece.deletion_vector
        self._deleted = None if vector is None else read_positions(storage, vector, metadata.num_rows)
        self._starts = row_groups.row_starts(metadata)

    def _open(self, **options: Any) -> pq.ParquetFile:
        import pyarrow.parquet as pq

        return pq.ParquetFile(
            self._source, pre_buffer=self.remote, coerce_int96_timestamp_unit="us", **options
        )

    @property
    def num_rows(self) -> int:
        """How many rows the file has, deleted ones included."""
        return int(self._file.metadata.num_rows)

    @property
    def deleted(self) -> Positions | None:
        """The sorted positions of the rows that its deletion vector hides; None where it has none."""
        return self._deleted

    def columns(self, layouts: Layouts) -> FileColumns:
        """The output columns of a plan in this file.

        Raises
        ------
        DataFileError
            They cannot be found in it.
        """
        with errors_name_file(self._plan, self._piece):
            return FileColumns(layouts, self._piece, layouts.of(self._piece, self._schema, self._rules))

    def stores_int96(self, columns: FileColumns) -> bool:
        """Whether one of the output columns has timestamps in Parquet's old type of 96 bits."""
        leaves = self._file.schema
        return any(leaves.column(leaf).physical_type == "INT96" for leaf in columns.layout.leaves)

    def row_groups(self, columns: FileColumns) -> list[list[int]]:
        """The row groups to read at a time: those of the slice that may hold rows that count and match.

        Parameters
        ----------
        columns
            Of the plan whose predicate counts.
        """
        with errors_name_file(self._plan, self._piece):
            piece, metadata = self._piece, self._file.metadata
            groups = row_groups.in_range(metadata, piece.start, piece.length, piece.size)
            if piece.selection is not None:
                groups = row_groups.groups_of_positions(groups, self._starts, piece.selection)
            if self._plan.predicate is not None and groups:
                statistics = row_groups.StatisticsFilter(
                    self._plan.predicate, columns.layout.wanted, self._rules, self._schema
                )
                groups = statistics.matching(metadata, groups)
            return _runs(groups, alone=self.remote)

    def read(
        self,
        columns: FileColumns,
        groups: Sequence[int],
        batch_rows: int | None,
        use_threads: bool = False,
        selection: Positions | None = None,
    ) -> Generator[tuple[int, np.ndarray[Any, Any] | None, pa.RecordBatch], None, None]:
        """Batches of output columns of consecutive row groups.

        Parameters
        ----------
        batch_rows
            Rows of a batch at most; None: as many as are decoded well at a time.
        selection
            The sorted physical positions of the rows that count; None: all that the slice has.

        Yields
        ------
        tuple
            Physical position of the first row that was read for a batch, the mask of the rows that count among
            those that were read (None: all do), and those that count, at least one.
        """
        rows = self._read(columns, groups, batch_rows, use_threads, selection)
        with closing(rows):
            while True:
                with errors_name_file(self._plan, self._piece):
                    batch = next(rows, None)
                if batch is None:
                    return
                yield batch

    def _read(
        self,
        columns: FileColumns,
        groups: Sequence[int],
        batch_rows: int | None,
        use_threads: bool,
        selection: Positions | None,
    ) -> Generator[tuple[int, np.ndarray[Any, Any] | None, pa.RecordBatch], None, None]:
        deleted = self._deleted if selection is None else None
        chosen = self._piece.selection if selection is None else selection
        for first, batch in self._physical(groups, columns.layout.leaves, batch_rows, use_threads):
            is_read = _kept(first, batch.num_rows, deleted, chosen)
            if is_read is not None:
                batch = batch.filter(mask(is_read)) if is_read.any() else batch.slice(0, 0)
            if batch.num_rows:
                yield first, is_read, columns.output(batch, first, is_read)

    def _physical(
        self, groups: Sequence[int], leaves: list[int], batch_rows: int | None, use_threads: bool
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of the leaf columns, each with the physical position of its first row."""
        first, end = int(self._starts[groups[0]]), int(self._starts[groups[-1] + 1])
        if not leaves:
            step = batch_rows or BATCH_ROWS
            for at in range(first, end, step):
                yield at, _rows_only(min(step, end - at))
            return
        metadata = self._file.metadata
        row_groups = [metadata.row_group(number) for number in groups]
        rows = batch_rows or rows_at_a_time(row_groups, leaves)
        texts = small_dictionaries(row_groups[0], leaves)
        reader = (self._open(metadata=metadata, read_dictionary=texts) if texts else self._file).reader
        for read in reader.iter_batches(
            rows, row_groups=list(groups), column_indices=leaves, use_threads=use_threads
        ):
            for batch in decodable(read) if texts else (read,):
                yield first, batch
                first += batch.num_rows


def is_remote(storage: Storage) -> bool:
    """Whether opening a file of a table means waiting for a store."""
    return ":/" in storage.url


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
    is_read = None
    if selection is not None:
        chosen = _within(selection, first, rows)
        if len(chosen) < rows:
            is_read = np.zeros(rows, np.bool_)
            is_read[chosen] = True
    if deleted is not None:
        gone = _within(deleted, first, rows)
        if len(gone):
            is_read = np.ones(rows, np.bool_) if is_read is None else is_read
            is_read[gone] = False
    return is_read


def _within(positions: Positions, first: int, rows: int) -> np.ndarray[Any, Any]:
    low, high = np.searchsorted(positions, np.array([first, first + rows], positions.dtype))
    return (positions[low:high] - positions.dtype.type(first)).astype(np.int64)


# --- how many rows are decoded at a time, and which texts as dictionaries: fewer, larger steps cost less
# Neither changes a value. All is decided by the footer of a row group, whose figures only estimate what its rows need
# once they are decoded.

BATCH_ROWS = 65_536
_MOST_ROWS = 1 << 20
_DECODED_BYTES = 16 << 20
# A dictionary of this size holds so few texts that numbers of them are read and repeated faster than texts are.
_DICTIONARY_BYTES = 64 << 10
_FEW_ROWS = 8192
_LEAST_WIDTH = 8
_ALIKE = 2
# What a text may be taken for whose column chunk is small because a dictionary holds it once.
_TEXT_WIDTH = 256


def rows_at_a_time(groups: Sequence[Any], leaves: Sequence[int]) -> int:
    """Rows to decode at a time, of about `_DECODED_BYTES`; never fewer than `BATCH_ROWS`.

    Parameters
    ----------
    groups
        `pyarrow.parquet.RowGroupMetaData` of the row groups that are read. The first stands for all of them,
        unless the rows of another one are much larger.
    leaves
        The leaf columns that are read.
    """
    first = groups[0]
    rows = max(1, first.num_rows)
    if sum(group.num_rows for group in groups) <= BATCH_ROWS:
        return BATCH_ROWS
    if any(_row_bytes(group) > _ALIKE * (_row_bytes(first) + _LEAST_WIDTH) for group in groups):
        return BATCH_ROWS
    width = 0
    for leaf in leaves:
        column = first.column(leaf)
        text = column.physical_type == "BYTE_ARRAY"
        if "." in column.path_in_schema and (text or column.num_values > rows):
            return BATCH_ROWS  # Arrow cannot split nested texts of more than 2 GiB
        least = _TEXT_WIDTH if text and column.has_dictionary_page and not _is_small(column) else _LEAST_WIDTH
        width += max(least, column.total_uncompressed_size // rows)
    return max(BATCH_ROWS, min(_MOST_ROWS, _DECODED_BYTES // max(1, width)))


def _row_bytes(group: Any) -> int:
    size: int = group.total_byte_size // max(1, group.num_rows)
    return size


def small_dictionaries(group: Any, leaves: Sequence[int]) -> list[str]:
    """The columns of texts or bytes, by their path in the file, that a row group holds as numbers of few values."""
    if group.num_rows < _FEW_ROWS:
        return []
    columns = (group.column(leaf) for leaf in leaves)
    return [
        column.path_in_schema
        for column in columns
        if column.physical_type == "BYTE_ARRAY" and "." not in column.path_in_schema and _is_small(column)
    ]


def _is_small(column: Any) -> bool:
    """Whether a chunk is numbers of a small dictionary; texts themselves have a length of four bytes each."""
    if not column.has_dictionary_page:
        return False
    size = column.data_page_offset - column.dictionary_page_offset
    numbers = 2 * column.num_values + 2 * _DICTIONARY_BYTES
    return 0 < size <= _DICTIONARY_BYTES and bool(column.total_uncompressed_size <= numbers)


def decodable(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in pieces of which no dictionary becomes more than `_DECODED_BYTES` of texts, or one row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    longest = 1
    for column in batch.columns:
        if pa.types.is_dictionary(column.type) and len(column.dictionary):
            longest = max(longest, pc.max(pc.binary_length(column.dictionary)).as_py() or 1)
    step = max(1, _DECODED_BYTES // longest)
    for at in range(0, batch.num_rows, step):
        yield batch.slice(at, step)
