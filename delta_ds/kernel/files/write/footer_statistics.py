"""Statistics of files another writer made, from their footers and only where needed from their rows.

The text is the one that `file_statistics` gives for the same rows. What a footer does not tell exactly (a chunk
without statistics, whether floats hold NaN, INT96, another calendar, the nulls of lists) is taken from that
column of that row group.
Source: PROTOCOL.md, "Per-file Statistics"; Apache Parquet, `Statistics` in parquet.thrift; parquet-java,
`ParquetMetadataConverter.toParquetStatistics` and `DoubleStatistics`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.data import FAILED_READ_BACK
from delta_ds.exceptions import DataFileError
from delta_ds.kernel.files.read import column_conversion
from delta_ds.kernel.files.write.columns import file_columns
from delta_ds.kernel.files.write.statistics import FileStatistics, StatisticsColumn, statistics_columns
from delta_ds.kernel.files.write.write_spec import WriteSpec
from delta_ds.kernel.format.expressions.zones import Rebase, rebase_of
from delta_ds.kernel.format.features import DELETION_VECTORS, VARIANT_SHREDDING, VARIANT_SHREDDING_PREVIEW
from delta_ds.kernel.format.properties import DATA_SKIPPING_STRING_PREFIX_LENGTH
from delta_ds.kernel.format.schema.column_mapping import nested_ids
from delta_ds.kernel.format.schema.field_metadata import FIELD_ID
from delta_ds.kernel.format.schema.types import (
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    arrow_type,
)
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from delta_ds.kernel.storage.filesystem import Storage

_TAIL_BYTES = 64 << 10  # read at once from the end of a file: the footer of all but very wide ones
_MAGIC = b"PAR1"
_BATCH_ROWS = 65_536
_WIDE = Context(prec=76)
_SHREDDING = frozenset([VARIANT_SHREDDING.name, VARIANT_SHREDDING_PREVIEW.name])
_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a leaf with statistics is in a file.

    Attributes
    ----------
    about
        The leaf; an array, map or variant is one.
    leaves
        Its Parquet leaf columns.
    telling
        The Parquet leaf column whose footer statistics are used.
    flat
        Whether that one is null exactly where `about` is: not inside arrays and maps.
    exact
        The function from a bound in the footer to a comparable value; None where footers have no exact ones.
    """

    about: StatisticsColumn
    leaves: range
    telling: int
    flat: bool
    exact: Callable[[Any], Any] | None


_Places = tuple["_Place | None", ...]  # None for void columns, which no file holds


class FooterStatistics:
    """Reads the statistics of files that have the columns of a plan. Threads may share one.

    Footers do not tell cut bounds from whole ones: the writer must not cut them (parquet-java does so only where
    `parquet.statistics.truncate.length` is set).

    Parameters
    ----------
    storage
        Of the table.
    plan
        As for `FileWriter`: columns, names, and which of them get statistics.

    Raises
    ------
    SchemaError, InvalidOptionError
        As `FileWriter`.
    """

    def __init__(self, storage: Storage, plan: WriteSpec) -> None:
        self._storage = storage
        self._plan = plan
        self._columns = file_columns(plan)
        self._about = statistics_columns(plan, self._columns)
        self._prefix_length = DATA_SKIPPING_STRING_PREFIX_LENGTH.of(plan.properties)
        self._tight_bounds = DELETION_VECTORS.name in plan.features
        self._known: tuple[pa.Schema, Rebase, _Places] | None = None

    def of(self, path: str, size: int) -> tuple[int, str]:
        """The number of rows of a file, and its statistics as text.

        Parameters
        ----------
        path
            Relative to the table, not encoded.
        size
            In bytes.

        Raises
        ------
        DataFileError
            The file is damaged, or does not hold the columns that the table's files have.
        """
        with self._naming(path):
            footer = read_footer(self._storage, path, size)
            rules = column_conversion.Rules(
                "none", rebase_of(footer.metadata, self._plan.timezone), self._plan.timezone
            )
            places = self._places(footer.schema.to_arrow_schema(), rules)
            found = _Collected(self._about, self._prefix_length, self._tight_bounds)
            missing = found.take(footer, places)
            if missing:
                self._read(path, footer, places, missing, lambda n, batch: found.add_rows(n, batch, rules))
            return found.rows, found.text(footer)

    def _places(self, schema: pa.Schema, rules: column_conversion.Rules) -> _Places:
        known = self._known  # the files of one write have one schema
        if known is not None and known[1] == rules.rebase and known[0].equals(schema, check_metadata=True):
            return known[2]
        check_columns(list(schema), self._columns.fields, not _SHREDDING.isdisjoint(self._plan.features))
        column_conversion.compile_columns(schema, StructType(self._columns.fields), rules)
        places = tuple(_place(schema, about, rules.rebase) if about.route else None for about in self._about)
        self._known = schema, rules.rebase, places
        return places

    def _read(
        self,
        path: str,
        footer: pq.FileMetaData,
        places: _Places,
        missing: Mapping[int, Sequence[int]],
        take: Callable[[int, pa.RecordBatch], None],
    ) -> None:
        """Hand over rows of the columns, whose numbers `missing` has by row group."""
        import pyarrow.parquet as pq

        with (
            closing(self._storage.open(path)) as source,
            pq.ParquetFile(
                source,
                metadata=footer,
                pre_buffer=":/" in self._storage.url,
                coerce_int96_timestamp_unit="us",
            ) as file,
        ):
            for g, numbers in missing.items():
                group = footer.row_group(g)
                leaves = sorted({_smallest(group, place) for n in numbers if (place := places[n])})
                for batch in file.reader.iter_batches(
                    _BATCH_ROWS, row_groups=[g], column_indices=leaves, use_threads=False
                ):
                    for n in numbers:
                        take(n, batch)

    @contextmanager
    def _naming(self, path: str) -> Iterator[None]:
        """Turn errors into a DataFileError that names file and table."""
        place = f"data file {path}, just written for table {self._plan.table},"
        parameters = {"path": path, "table": self._plan.table}
        try:
            yield
        except DataFileError as error:
            raise DataFileError(
                f"{place} cannot become part of it: {error.text}; nothing was committed",
                condition=error.condition,
                parameters=parameters | error.parameters,
            ) from error
        except (pa.ArrowException, OSError) as error:
            raise FAILED_READ_BACK(parameters, place=place, reason=error) from error


def read_footer(storage: Storage, path: str, size: int) -> pq.FileMetaData:
    """The footer of a Parquet file of `size` bytes, by one read of its end, or two if it is large.

    Raises
    ------
    DataFileError
        The file does not end as Parquet files do.
    """
    import pyarrow.parquet as pq

    tail = storage.read_range(path, max(size - _TAIL_BYTES, 0), min(size, _TAIL_BYTES))
    if tail[-4:] != _MAGIC:
        raise DataFileError("it is no Parquet file, or one with an encrypted footer, or cut off")
    length = int.from_bytes(tail[-8:-4], "little") + 8
    if length > len(tail):
        tail = storage.read_range(path, max(size - length, 0), min(size, length))
    return pq.read_metadata(pa.BufferReader(tail))


def check_columns(
    found: Sequence[pa.Field], wanted: Sequence[StructField], shredded: bool, above: str = ""
) -> None:
    """Check that a file has columns of exactly these names and ids, in any order and whatever their types.

    Parameters
    ----------
    shredded
        Whether variants may be shredded.

    Raises
    ------
    DataFileError
        A column is missing, too many, has another id, or is a shredded variant where none may be.
    """
    by_name = {field.name: field for field in found}
    names = [field.name for field in wanted]
    if len(found) != len(names) or set(by_name) != set(names):
        where = f"column {above}" if above else "it"
        raise DataFileError(f"{where} has the fields {[f.name for f in found]} instead of {names}")
    for field in wanted:
        path = f"{above}.{field.name}" if above else field.name
        number = field.metadata.get(FIELD_ID)
        there = (by_name[field.name].metadata or {}).get(_FIELD_ID)
        if number is not None and there != str(number).encode():
            raise DataFileError(f"column {path} has the field id {there!r} instead of {number}")
        _check_inside(by_name[field.name].type, field.type, shredded, path)
        for key, found_id, wanted_id in _nested_ids(by_name[field.name].type, field.type, field, field.name):
            if found_id != wanted_id:
                raise DataFileError(
                    f"column {path} has the field id {found_id} for {key} instead of {wanted_id}"
                )


def _nested_ids(
    found: pa.DataType, wanted: DataType, field: StructField, path: str
) -> Iterator[tuple[str, int | None, int]]:
    """The ids in arrays and maps of a field that are wanted, with those that are there."""
    ids = nested_ids(field)
    if isinstance(wanted, ArrayType) and pa.types.is_list(found):
        parts = [("element", found.value_field, wanted.element)]
    elif isinstance(wanted, MapType) and pa.types.is_map(found):
        parts = [("key", found.key_field, wanted.key), ("value", found.item_field, wanted.value)]
    else:
        return
    for name, part, kind in parts:
        here = f"{path}.{name}"
        text = (part.metadata or {}).get(_FIELD_ID)
        if here in ids:
            yield here, None if text is None else int(text), ids[here]
        yield from _nested_ids(part.type, kind, field, here)


def _check_inside(found: pa.DataType, wanted: DataType, shredded: bool, path: str) -> None:
    if isinstance(wanted, StructType) and pa.types.is_struct(found):
        check_columns(list(found), wanted.fields, shredded, path)
    elif isinstance(wanted, ArrayType) and pa.types.is_list(found):
        _check_inside(found.value_type, wanted.element, shredded, f"{path}.element")
    elif isinstance(wanted, MapType) and pa.types.is_map(found):
        _check_inside(found.key_type, wanted.key, shredded, f"{path}.key")
        _check_inside(found.item_type, wanted.value, shredded, f"{path}.value")
    elif wanted == VARIANT and not shredded and _storage(found).num_fields != 2:
        raise DataFileError(
            f"column {path} is a shredded variant, and the table does not have variantShredding"
        )


def _storage(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _place(schema: pa.Schema, about: StatisticsColumn, rebase: Rebase) -> _Place:
    """Where a leaf is in a file of this schema, which has all columns of the table."""
    level, first = list(schema), 0
    for name in about.path:
        at = next(i for i, f in enumerate(level) if f.name == name)
        field, first = level[at], column_conversion.first_leaves(level, first)[at]
        level = list(field.type) if pa.types.is_struct(field.type) else []
    leaves = range(first, column_conversion.first_leaves([field], first)[-1])
    telling, flat = _telling(field.type, first, about.type == VARIANT)
    return _Place(about, leaves, telling, flat, _exact(field.type, about.type, rebase))


def _telling(kind: pa.DataType, first: int, is_variant: bool) -> tuple[int, bool]:
    """The Parquet leaf of a column that counts its nulls best, and whether the count is exact."""
    kind = _storage(kind)
    if is_variant:  # its metadata is there wherever the variant is
        at = kind.get_field_index("metadata")
        return column_conversion.first_leaves(list(kind), first)[at], not kind.field(at).nullable
    return first, not pa.types.is_nested(kind)


def _smallest(group: Any, place: _Place) -> int:
    """The leaf that is read for a column: where only nulls count, any will do."""
    return min(place.leaves, key=lambda leaf: group.column(leaf).total_compressed_size)


def _exact(file_type: pa.DataType, data_type: DataType, rebase: Rebase) -> Callable[[Any], Any] | None:
    """The function from raw bounds of a file's column to values as `bound_texts` takes them."""
    if isinstance(data_type, DecimalType):
        return _decimal(data_type.scale) if file_type == arrow_type(data_type) else None
    if data_type in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        # Bounds in the old calendar rebase to bounds, but where the two overlap not to the exact ones.
        same = file_type == arrow_type(data_type) and not rebase
        return _itself if same else None
    if data_type in (FLOAT, DOUBLE, STRING):
        return _itself if file_type == arrow_type(data_type) else None
    return _itself if pa.types.is_signed_integer(file_type) else None


def _itself(raw: Any) -> Any:
    return raw


def _decimal(scale: int) -> Callable[[Any], Decimal]:
    def value(raw: Any) -> Decimal:
        unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
        return Decimal(unscaled).scaleb(-scale, _WIDE)

    return value


class _Collected(FileStatistics):
    """The statistics of one file, from its footer and from rows."""

    def take(self, footer: pq.FileMetaData, places: _Places) -> dict[int, list[int]]:
        """Take what the footer tells; returns the numbers of the columns it leaves open, by row group."""
        by_java = str(footer.created_by or "").startswith("parquet-mr")
        missing: dict[int, list[int]] = {}
        for g in range(footer.num_row_groups):
            group = footer.row_group(g)
            rows = group.num_rows
            self.rows += rows
            for n, place in enumerate(places):
                if place is None:
                    self._columns[n].nulls += rows
                elif rows and not self._take(n, place, group.column(place.telling), rows, by_java):
                    missing.setdefault(g, []).append(n)
        return missing

    def _take(self, n: int, place: _Place, chunk: Any, rows: int, by_java: bool) -> bool:
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            return False
        nulls = statistics.null_count
        # parquet-java counts an empty or missing list as a null; others count only nulls inside lists.
        if not place.flat and (nulls or not by_java):
            return False
        if place.about.bounded and nulls < rows:
            if place.exact is None or not statistics.has_min_max:
                return False
            # parquet-java orders NaN above all numbers, as Spark does, and keeps the sign of zero; others leave
            # NaN out of the bounds.
            if place.about.type in (FLOAT, DOUBLE) and not by_java:
                return False
            self._widen(n, place.exact(statistics.min_raw), place.exact(statistics.max_raw))
        self._columns[n].nulls += nulls
        return True

    def _widen(self, n: int, low: Any, high: Any) -> None:
        column = self._columns[n]
        if column.low is None or _order(low) < _order(column.low):
            column.low = low
        if column.high is None or _order(high) > _order(column.high):
            column.high = high

    def add_rows(self, n: int, batch: pa.RecordBatch, rules: column_conversion.Rules) -> None:
        """Take one column from rows of a file."""
        column = self._columns[n]
        values = _leaf(batch, column.about.path)
        if not column.about.bounded:
            column.nulls += values.null_count
            return
        values = _convert(values, column.about.type, rules)
        if column.about.type != STRING:
            column.add(len(values), pa.chunked_array([values]))
            return
        column.nulls += values.null_count
        if values.null_count < len(values):
            found = pc.min_max(values)
            self._widen(n, *(found[name].as_buffer().to_pybytes() for name in ("min", "max")))


def _order(value: Any) -> Any:
    """A key that sorts as Spark does: NaN is the greatest."""
    if not isinstance(value, float):
        return value
    return (1, 0.0) if math.isnan(value) else (0, value)


def _leaf(batch: pa.RecordBatch, path: Sequence[str]) -> pa.Array:
    """A leaf of a batch, null where a struct above it is."""
    array = batch.column(batch.schema.get_field_index(path[0]))
    for name in path[1:]:
        array = array.flatten()[array.type.get_field_index(name)]
    return array


def _convert(values: pa.Array, data_type: DataType, rules: column_conversion.Rules) -> pa.Array:
    one = pa.RecordBatch.from_arrays([values], names=["x"])
    return column_conversion.compile_columns(one.schema, StructType((StructField("x", data_type),)), rules)(
        one
    )[0]
