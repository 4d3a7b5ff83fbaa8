"""Count, minimum and maximum of all live rows from statistics alone, where they are exact; and from the rows.

Statistics bound the values of a file; whether a bound *is* a value depends on its type and its writer. Only what
holds for every writer that keeps to the protocol is used:

- a count needs `numRecords` of every file, less what its deletion vector deletes;
- null counts of files with deleted rows say something only where no row or every row is null;
- bounds are values for integers, dates, and decimals of few digits: some writers put decimals through doubles, where
  others are rounded, up or down. The minimum of floats passes NaN over, as Spark's does; their maximum may or may
  not, so it is none;
- strings may be cut, and bounds of files with deleted rows may be too wide: they are values where both are equal;
- timestamps are cut to milliseconds, so their bounds say nothing exact.

A bound that is not a value still bounds: where another file has a value at least as extreme, it does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.commands import INVALID_ORDERING_TYPE_OF_EXTREME
from delta_ds.kernel.base.arrow_buffers import integers
from delta_ds.kernel.files.scan.file_pruning import StatisticsColumnRef, find_statistics_column
from delta_ds.kernel.files.scan.partitions import PartitionTuples, partition_tuples
from delta_ds.kernel.files.scan.skipping import row_numbers
from delta_ds.kernel.format.expressions.arrays import FALSE, TRUE, scalar_of
from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.format.schema.column_mapping import physical_name
from delta_ds.kernel.format.schema.field_metadata import COLLATIONS
from delta_ds.kernel.format.schema.types import (
    LONG,
    STRING,
    DataType,
    DecimalType,
    PrimitiveType,
    StructField,
    arrow_type,
)
from delta_ds.kernel.format.values.statistics import Path, Statistics, load_statistics
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from delta_ds.kernel.log.live_files import LiveFiles
    from delta_ds.kernel.log.snapshot import Snapshot

_ORDERED = frozenset(
    ["byte", "short", "integer", "long", "float", "double", "boolean", "string", "date"]
    + ["timestamp", "timestamp_ntz"]
)
_VALUES = frozenset(["byte", "short", "integer", "long", "float", "double", "date"])
_COUNTED = _ORDERED | {"binary"}
_DIGITS_OF_DOUBLES = 15
_NONE = scalar_of(0, LONG)
_UNKNOWN = scalar_of(None, LONG)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate over all rows.

    Attributes
    ----------
    function
        `count` of rows, or of values that are not null; `min` and `max` in Spark's order.
    path
        The logical path of the column; empty to count rows.
    """

    function: Literal["count", "min", "max"]
    path: Path = ()


def exact_aggregates(
    snapshot: Snapshot, requests: Sequence[Aggregate], *, timezone: str | None = None
) -> list[pa.Scalar] | None:
    """Answer aggregates over the live rows of a version, without reading a data file.

    Statistics are parsed once, for the columns asked for. Cost is linear in files, without a Python object a file.

    Parameters
    ----------
    requests
        What to answer, in the order of the result.
    timezone
        Zone of partition timestamps that name none; None if not known.

    Returns
    -------
    list of pa.Scalar or None
        int64 counts and extremes in the column's Arrow type (null if there is no value); None if one of them
        is not certain.

    Source: PROTOCOL.md, "Per-file Statistics"; delta-spark, `OptimizeMetadataOnlyDeltaQuery`.
    """
    partitions = {r.path: _Partition.of(snapshot, r.path) for r in requests}
    columns = {
        path: find_statistics_column(snapshot.schema, path, snapshot.mapping_mode)
        for path in partitions
        if path
    }
    data = {path: leaf for path, leaf in columns.items() if partitions[path] is None}
    if not all(_may_be_known(r, columns.get(r.path), r.path in data) for r in requests):
        return None
    files = snapshot.live_files()
    leaves = [(leaf.path, leaf.type) for leaf in data.values() if leaf is not None]
    statistics = load_statistics(files, row_numbers(files.num_rows), leaves)
    live = _live_rows(files, statistics)
    if live is None:
        return None
    tuples = _tuples(files, [p for p in partitions.values() if p is not None], timezone)
    rows = _Rows(live, _whole(files, statistics), statistics, tuples)
    answers: list[pa.Scalar] = []
    for request in requests:
        leaf, partition = columns.get(request.path), partitions[request.path]
        if not request.path:
            found: pa.Scalar | None = pc.sum(live, min_count=0)
        elif partition is not None:
            found = rows.of_partition(request.function, partition)
        else:
            assert leaf is not None
            found = rows.of_column(request.function, leaf)
        if found is None:
            return None
        answers.append(found)
    return answers


def check_order(field: StructField, function: str, table: str) -> None:
    """Refuse a column whose values have no order here.

    Raises
    ------
    UnsupportedOperationError
        It is of a nested type, a variant, or a string with a collation.
    """
    ordered = isinstance(field.type, DecimalType) or str(field.type) in _ORDERED | {"binary"}
    if not ordered or COLLATIONS in field.metadata:
        raise INVALID_ORDERING_TYPE_OF_EXTREME(
            function=function, columnName=field.name, table=table, dataType=field.type
        )


def extreme_of(
    function: Literal["min", "max"], batches: Iterator[pa.RecordBatch], field: StructField
) -> pa.Scalar:
    """The least or greatest value of the only column of batches, in Spark's order; null if there is none."""
    kind = arrow_type(field.type)
    found = [_extreme_in(function, batch.column(0)) for batch in batches if batch.num_rows]
    return _extreme_in(function, pa.concat_arrays([pa.array([], kind), *found]))[0]


def _extreme_in(function: str, values: pa.Array) -> pa.Array:
    """The least or greatest of some values, as an array of length one."""
    values = values.drop_null()
    if pa.types.is_floating(values.type):
        odd = pc.is_nan(values)
        numbers = values.filter(pc.invert(odd))
        if odd.true_count and (function == "max" or not len(numbers)):
            return values.filter(odd)[:1]
        values = numbers
    if not len(values):
        return pa.nulls(1, values.type)
    return pa.repeat(pc.min(values) if function == "min" else pc.max(values), 1)


@dataclass(frozen=True, slots=True)
class _Partition:
    """A partition column; opaque if its strings are not what is read, or not ordered by their bytes."""

    name: str
    physical: str
    type: DataType
    opaque: bool

    @classmethod
    def of(cls, snapshot: Snapshot, path: Path) -> _Partition | None:
        names = {name.lower() for name in snapshot.partition_columns}
        field = snapshot.schema.find(path[0]) if len(path) == 1 and path[0].lower() in names else None
        if field is None:
            return None
        return cls(
            field.name, physical_name(field, snapshot.mapping_mode), field.type, not compares_by_bytes(field)
        )


def _may_be_known(request: Aggregate, leaf: StatisticsColumnRef | None, is_data: bool) -> bool:
    """Whether statistics could answer at all, so that none are parsed in vain."""
    if not request.path:
        return request.function == "count"
    if leaf is None:
        return False
    name = str(leaf.type)
    if request.function == "count":
        return isinstance(leaf.type, DecimalType) or name in _COUNTED
    if not leaf.comparable or not (isinstance(leaf.type, DecimalType) or name in _ORDERED):
        return False
    if not is_data:
        return True
    floats = name in ("float", "double")
    certain = leaf.type == STRING or _are_values(leaf.type)
    return certain and not leaf.was_float and not (floats and request.function == "max")


def _live_rows(files: LiveFiles, statistics: Statistics) -> pa.Int64Array | None:
    """The rows of each file that are not deleted; None if that is not known of every file."""
    vectors = files.table["deletionVector"].combine_chunks()
    deleted = pc.struct_field(vectors, "cardinality").cast(pa.int64())
    deleted = pc.if_else(vectors.is_valid(), deleted, _NONE)
    live = pc.subtract(statistics.num_records, deleted)
    return live if pc.all(pc.greater_equal(live, _NONE), skip_nulls=False, min_count=0).as_py() else None


def _whole(files: LiveFiles, statistics: Statistics) -> pa.BooleanArray:
    """Whether the statistics of a file describe its live rows, and no others."""
    return pc.and_(files.table["deletionVector"].combine_chunks().is_null(), statistics.tight_bounds)


def _tuples(files: LiveFiles, partitions: Sequence[_Partition], timezone: str | None) -> PartitionTuples:
    wanted = {p.name: (p.physical, p.type) for p in partitions}
    return partition_tuples(files, wanted, frozenset(p.name for p in partitions if p.opaque), timezone)


@dataclass(frozen=True, slots=True)
class _Rows:
    """What is known of the rows of each file.

    Attributes
    ----------
    live
        How many there are.
    whole
        Whether statistics describe just these.
    """

    live: pa.Int64Array
    whole: pa.BooleanArray
    statistics: Statistics
    tuples: PartitionTuples

    def of_partition(self, function: str, partition: _Partition) -> pa.Scalar | None:
        values = self.tuples.table[partition.name].combine_chunks().take(self.tuples.code)
        if function == "count":
            return pc.sum(pc.if_else(values.is_valid(), self.live, _NONE), min_count=0)
        if partition.name in self.tuples.inexact:
            return None
        present = pc.and_(values.is_valid(), pc.greater(self.live, _NONE))
        values = values.filter(present)
        return _extreme(function, values, pa.repeat(TRUE, len(values)))

    def of_column(self, function: str, leaf: StatisticsColumnRef) -> pa.Scalar | None:
        present = self._present(leaf.path)
        if function == "count":
            return None if present.null_count else pc.sum(present, min_count=0)
        low, high = self.statistics.min[leaf.path], self.statistics.max[leaf.path]
        attained = self._equal(low, high, present)
        if _are_values(leaf.type):
            attained = pc.or_(attained, self.whole)
        may_have = pc.not_equal(present, _NONE).fill_null(TRUE)
        side = low if function == "min" else high
        return _extreme(function, side.filter(may_have), attained.filter(may_have))

    def _present(self, path: Path) -> pa.Int64Array:
        """Live values that are not null, a file; null where that is not known."""
        nulls, records = self.statistics.null_count[path], self.statistics.num_records
        rest = pc.if_else(self.whole, pc.subtract(self.live, nulls), _UNKNOWN)
        rest = pc.if_else(pc.greater_equal(rest, _NONE), rest, _UNKNOWN)
        some = pc.if_else(pc.equal(nulls, _NONE), self.live, rest)
        return pc.if_else(pc.or_(pc.equal(nulls, records).fill_null(FALSE), self._empty), _NONE, some)

    @property
    def _empty(self) -> pa.BooleanArray:
        return pc.equal(self.live, _NONE)

    def _equal(self, low: pa.Array, high: pa.Array, present: pa.Int64Array) -> pa.BooleanArray:
        """Whether every value of a file is the same, and there is one."""
        if pa.types.is_floating(low.type):
            return pa.repeat(FALSE, len(low))
        there = pc.greater(present, _NONE).fill_null(FALSE)
        return pc.and_(there, pc.equal(low, high).fill_null(FALSE))


def _are_values(data_type: DataType) -> bool:
    """Whether tight bounds of a column are values of it, whoever wrote them."""
    if isinstance(data_type, DecimalType):
        return data_type.precision <= _DIGITS_OF_DOUBLES
    return isinstance(data_type, PrimitiveType) and data_type.name in _VALUES


def _extreme(function: str, bounds: pa.Array, attained: pa.BooleanArray) -> pa.Scalar | None:
    """The least or greatest of bounds where it is the value of a row; None if a bound is missing."""
    if bounds.null_count:
        return None
    if len(bounds) == 0:
        return pa.nulls(1, bounds.type)[0]
    found = pc.min(bounds) if function == "min" else pc.max(bounds)
    if pa.types.is_floating(bounds.type):
        # Arrow passes NaN over, and which zero Spark returns depends on the order of rows.
        zero = pc.equal(found, integers([0])[0].cast(found.type)).as_py()
        if zero or pc.any(pc.is_nan(bounds)).as_py():
            return None
    return found if pc.any(pc.and_(attained, pc.equal(bounds, found))).as_py() else None
