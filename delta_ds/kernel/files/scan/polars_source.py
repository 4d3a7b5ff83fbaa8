"""A scan as a source of polars' lazy frames: columns, filters and limits of a query reach the scan.

Which files are read, what columns are called in them, and which rows are deleted is decided here; data pages are
decoded by polars' own reader where it gives the table's values as they are (`_Native`), else by this package's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from delta_ds.events.commands import PARQUET_READ_AGAIN
from delta_ds.kernel.files.read import column_conversion
from delta_ds.kernel.files.read.data_file import open_data_file
from delta_ds.kernel.files.read.file_columns import Layout, Layouts, output_schema
from delta_ds.kernel.files.read.reader import threads_for
from delta_ds.kernel.files.scan.scan import Scan, package_of
from delta_ds.kernel.format.schema.char_varchar import declared_char_type
from delta_ds.kernel.format.schema.types import arrow_type
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import polars

    from delta_ds.kernel.files.read.plan import FileSlice
    from delta_ds.kernel.format.schema.types import StructField
    from delta_ds.kernel.format.values.deletion_vector import Positions

# Files that are looked at together: few at first, as a query may end after some rows.
_FIRST_FILES, _MOST_FILES = 8, 512
_ROW = "__delta_ds_row"
# Before, errors of `collect_batches` were lost, and the rows behind them.
_FROM_MAJOR = 2
# To polars one type of texts, and one of bytes.
_ALIKE = {
    pa.string(): (pa.large_string(), pa.string_view()),
    pa.binary(): (pa.large_binary(), pa.binary_view()),
}


def lazy_frame(scan: Scan) -> polars.LazyFrame:
    """The rows of a scan as a lazy frame; what a query does not need is not read.

    Raises
    ------
    ImportError
        polars is not installed.
    SchemaError
        The scan has a column twice.
    """
    package_of("polars", "to_polars")
    from polars.io.plugins import register_io_source

    scan.refuse_repeated_columns()
    names = scan.schema.names

    def rows(
        columns: list[str] | None, filter_: polars.Expr | None, limit: int | None, _: int | None
    ) -> Iterator[polars.DataFrame]:
        names_asked = names if columns is None else columns
        yield from _limited(_frames(scan, names_asked, filter_, limit), limit)

    return register_io_source(rows, schema=_types(output_schema(scan.plan)))


def _types(schema: pa.Schema) -> polars.Schema:
    """The columns in the types of polars."""
    import polars as pl

    # `empty_table` loads pandas, which takes longer than many a query.
    return pl.DataFrame(pa.Table.from_batches([], schema)).schema


def _limited(frames: Iterator[polars.DataFrame], limit: int | None) -> Iterator[polars.DataFrame]:
    left = limit
    for frame in frames:
        if left is not None:
            frame = frame.head(left)
            left -= frame.height
        yield frame
        if left == 0:
            return


def _frames(
    scan: Scan, columns: list[str], filter_: polars.Expr | None, limit: int | None
) -> Iterator[polars.DataFrame]:
    """Frames of the rows that a filter lets pass, file by file in log order."""
    import polars as pl

    tree = None
    if filter_ is not None:
        from delta_ds.kernel.format.expressions.polars_filter import tree_of

        tree = tree_of(filter_, scan.snapshot.schema)
    query = _Query(scan.narrowed(columns, tree), filter_, limit)
    # A predicate of Spark SQL is evaluated by this package.
    if scan.predicate is None and columns and int(pl.__version__.partition(".")[0]) >= _FROM_MAJOR:
        yield from query.frames()
    else:
        yield from query.decoded_here(query.scan.slices())


@dataclass(frozen=True, slots=True)
class _Column:
    """Where polars finds a column of a query in files of one schema.

    Attributes
    ----------
    name, stored
        What it is called there, and its type there; None: the files have no such column.
    value
        Its value where the whole file has one, as an array of length one.
    """

    name: str | None
    stored: pa.DataType | None = None
    value: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class _Native:
    """A file that polars reads by itself.

    Attributes
    ----------
    layout
        That of its schema.
    columns
        Of the query, in its order.
    deleted
        Sorted positions of the rows that are gone.
    """

    piece: FileSlice
    path: str
    layout: Layout
    columns: tuple[_Column, ...]
    num_rows: int
    deleted: Positions | None


class _Query:
    """The read of some columns of a scan, with a filter of polars and a limit."""

    def __init__(self, scan: Scan, filter_: polars.Expr | None, limit: int | None) -> None:
        self.scan = scan
        self._filter = filter_
        self._limit = limit
        self._layouts = Layouts(scan.plan)
        self._columns: dict[Layout, tuple[_Column, ...] | None] = {}

    def frames(self) -> Iterator[polars.DataFrame]:
        """The rows; polars decodes what it can, and its filter decides."""
        pieces, at, many = self.scan.slices(), 0, _FIRST_FILES
        with ThreadPoolExecutor(threads_for(self.scan.snapshot.storage)) as pool:
            while at < len(pieces):
                looked_at = pool.map(self._native, pieces[at : at + many])
                pairs = zip(looked_at, pieces[at : at + many], strict=True)
                for native, run in groupby(pairs, key=lambda pair: pair[0] is not None):
                    from_files, those = zip(*run, strict=True)
                    yield from self._decoded_there(from_files, those) if native else self.decoded_here(those)
                at, many = at + many, min(2 * many, _MOST_FILES)

    def decoded_here(self, pieces: Sequence[FileSlice]) -> Iterator[polars.DataFrame]:
        """The rows of some files by this package's reader."""
        import polars as pl

        for batch in self.scan.batches_of(pieces):
            frame = pl.DataFrame(batch)
            yield frame if self._filter is None else frame.filter(self._filter)

    def _native(self, piece: FileSlice) -> _Native | None:
        """A file as polars reads it; None where it does not give the table's values as they are.

        Raises
        ------
        DataFileError
            The file is missing or damaged, or its deletion vector is.
        """
        storage = self.scan.snapshot.storage
        path = storage.local_path(storage.resolve(piece.path))
        if path is None:
            return None
        with open_data_file(storage, self._layouts.plan, piece) as file:
            columns = file.columns(self._layouts)
            layout = columns.layout
            if layout not in self._columns:
                self._columns[layout] = _columns_in(layout, self._layouts.plan.timezone or "UTC")
            file_columns = self._columns[layout]
            # Of a timestamp of 96 bits polars keeps the years from 1677 to 2262.
            if file_columns is None or file.stores_int96(columns):
                return None
            from_file = iter(file_columns)
            all_ = tuple(
                next(from_file) if one is None else _Column(None, value=one) for one in columns.constants
            )
            return _Native(piece, path, layout, all_, file.num_rows, file.deleted)

    def _decoded_there(
        self, files: Sequence[_Native], pieces: Sequence[FileSlice]
    ) -> Iterator[polars.DataFrame]:
        """The rows of some files by polars' reader, or, where that fails, by the one of this package."""
        from polars.exceptions import PolarsError

        rows_given = 0
        try:
            for frame in self._lazy(files).collect_batches(maintain_order=True):
                rows_given += frame.height
                yield frame
            if self._is_all(files, rows_given):
                return
            reason = f"{rows_given} rows came"
        except (PolarsError, OSError) as error:
            reason = next(iter(str(error).splitlines()), type(error).__name__)
        PARQUET_READ_AGAIN.log(table=self.scan.snapshot.storage.url, reason=reason)
        # It names the file if that is at fault, and its rows come in the same order.
        for frame in self.decoded_here(pieces):
            yield frame.slice(rows_given)
            rows_given = max(0, rows_given - frame.height)

    def _is_all(self, files: Sequence[_Native], given: int) -> bool:
        """Whether no row is missing, where their number is known."""
        if self._filter is not None or self._limit is not None:
            return True
        return given == sum(f.num_rows - (0 if f.deleted is None else len(f.deleted)) for f in files)

    def _lazy(self, files: Sequence[_Native]) -> polars.LazyFrame:
        import polars as pl

        # Files of one schema, one set of partition values and no deleted rows are one scan.
        runs = [
            list(run)
            for _, run in groupby(files, lambda f: (f.layout, f.piece.partition_values, f.deleted is None))
        ]
        frame = pl.concat([self._lazy_run(run) for run in runs])
        return frame if self._limit is None else frame.head(self._limit)

    def _lazy_run(self, files: Sequence[_Native]) -> polars.LazyFrame:
        import polars as pl

        first, schema = files[0], self._layouts.schema
        stored = [pa.field(each.name, each.stored) for each in first.columns if each.name is not None]
        frame = pl.scan_parquet(
            [file.path for file in files],
            glob=False,
            hive_partitioning=False,
            extra_columns="ignore",
            schema=_types(pa.schema(stored)),
            row_index_name=None if first.deleted is None else _ROW,
        )
        if first.deleted is not None:
            frame = frame.filter(_is_live(files))
        types = _types(schema)
        frame = frame.select(
            _as_in_table(each, name, types[name])
            for each, name in zip(first.columns, schema.names, strict=True)
        )
        return frame if self._filter is None else frame.filter(self._filter)


def _columns_in(layout: Layout, timezone: str) -> tuple[_Column, ...] | None:
    """The wanted columns in files of a layout; None where polars does not give the table's values."""
    fields, rules, schema = layout.wanted, layout.key.rules, layout.schema
    # The reader of polars finds columns by their names.
    if len(set(schema.names)) < len(schema.names) or _ROW in schema.names:
        return None
    columns = []
    indices = column_conversion.match_fields(list(schema), fields, rules.mapping_mode)
    for index, field in zip(indices, fields, strict=True):
        if index is None:
            value = column_conversion.default_value(field, timezone)
            if value.null_count == 0 and pa.types.is_nested(value.type):
                return None
            columns.append(_Column(None, value=value))
            continue
        stored = _type_there(schema.field(index), field, rules)
        if stored is None:
            return None
        columns.append(_Column(schema.field(index).name, stored))
    # It needs a column to know how many rows there are.
    return tuple(columns) if any(each.name is not None for each in columns) else None


def _type_there(stored: pa.Field, field: StructField, rules: column_conversion.Rules) -> pa.DataType | None:
    """The type in which polars reads a column, which is the table's or cast to it; None where that is not enough."""
    if column_conversion.is_as_stored(stored, field, rules):
        return stored.type
    if declared_char_type(field) is not None:
        return None
    kind, target = stored.type, arrow_type(field.type)
    for plain, others in _ALIKE.items():
        if target == plain and kind in others:
            return plain
    both = (pa.types.is_signed_integer(kind) and pa.types.is_signed_integer(target)) or (
        pa.types.is_floating(kind) and kind != pa.float16() and pa.types.is_floating(target)
    )
    return kind if both and kind.bit_width < target.bit_width else None


def _as_in_table(column: _Column, name: str, type_: Any) -> polars.Expr:
    import polars as pl

    if column.name is None:
        value = None if column.value is None else column.value[0].as_py()
        return pl.lit(value, dtype=type_).alias(name)
    return pl.col(column.name).cast(type_).alias(name)


def _is_live(files: Sequence[_Native]) -> polars.Expr:
    """Whether a row is not deleted, by its number among those of all the files."""
    import polars as pl

    live = np.ones(sum(file.num_rows for file in files), np.bool_)
    start = 0
    for file in files:
        if file.deleted is not None:
            live[file.deleted.astype(np.int64) + start] = False
        start += file.num_rows
    return pl.col(_ROW).map_batches(
        lambda rows: pl.Series(live[rows.to_numpy()]), return_dtype=pl.Boolean, is_elementwise=True
    )
