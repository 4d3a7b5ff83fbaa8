"""Z-order and Hilbert curves: keys that keep rows near each other which are near in every column.

The curve goes by range ids: the rank of a value, of any orderable type, among sorted boundaries. These are quantiles
of a sample, so that about as many rows have one rank as another, however the values are spread. Nulls have rank 0.
Text is compared by its bytes, NaN is above every number. A key has at most 63 bits: an int64 that is not negative.

Source: J. Skilling, "Programming the Hilbert curve" (AIP Conference Proceedings 707, 2004); delta-spark,
`MultiDimClustering` (`ZOrderClustering`, `HilbertClustering`), `range_partition_id`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.base.arrow_buffers import field_of, flags, integers
from delta_ds.kernel.base.nested_arrays import over, plain_lists
from delta_ds.kernel.format.schema.from_arrow import is_list
from delta_ds.records import dataclass

HILBERT = "hilbert"
ZORDER = "zorder"

KEY_BITS = 63
_AT_ONCE = 1 << 14

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


def bits_for(dimensions: int, most: int) -> int:
    """How many bits of each dimension fit into a key: at least one, at most `most`."""
    return max(1, min(most, KEY_BITS // max(1, dimensions)))


def curve_keys(curve: str, ranks: Sequence[Numbers], bits: int) -> Numbers:
    """The position of points along a curve.

    Parameters
    ----------
    curve
        `hilbert` or `zorder`.
    ranks
        One int64 array a dimension, all of one length, with values of `bits` bits. Where there are more than 63
        dimensions, the first 63 count.
    bits
        Of each rank that count; from `bits_for`.

    Returns
    -------
    numpy.ndarray
        int64 keys below 2 ** (dimensions * bits). With one dimension a point is its own key.
    """
    counted = ranks[: KEY_BITS // bits]
    if len(counted) == 1:
        return counted[0]
    keys = np.empty(len(counted[0]), np.int64)
    # Piece by piece: the many steps work on what a processor's cache holds.
    for start in range(0, len(keys), _AT_ONCE):
        part = [values[start : start + _AT_ONCE] for values in counted]
        keys[start : start + _AT_ONCE] = interleave_bits(
            hilbert_index_axes(part, bits) if curve == HILBERT else part, bits
        )
    return keys


def interleave_bits(ranks: Sequence[Numbers], bits: int) -> Numbers:
    """The bits of all dimensions by turns, the highest bit of the first dimension first."""
    keys = np.zeros(len(ranks[0]), np.int64)
    for bit in range(bits - 1, -1, -1):
        for values in ranks:
            keys <<= 1
            keys |= (values >> bit) & 1
    return keys


def hilbert_index_axes(ranks: Sequence[Numbers], bits: int) -> list[Numbers]:
    """Points turned and mirrored such that their interleaved bits count along the Hilbert curve."""
    axes = [values.copy() for values in ranks]
    _undo_excess_work(axes, bits)
    for number in range(1, len(axes)):
        axes[number] ^= axes[number - 1]
    flips = np.zeros_like(axes[0])
    for bit in range(bits - 1, 0, -1):
        flips ^= np.where(axes[-1] >> bit & 1, (1 << bit) - 1, 0)
    for values in axes:
        values ^= flips
    return axes


def _undo_excess_work(axes: list[Numbers], bits: int) -> None:
    first = axes[0]
    for bit in range(bits - 1, 0, -1):
        below = (1 << bit) - 1
        for values in axes:
            is_set = (values >> bit & 1).astype(bool)
            # Where the bit is set the lower bits of the first axis are mirrored, else exchanged with this one's.
            exchanged = np.where(is_set, 0, (first ^ values) & below)
            first ^= np.where(is_set, below, exchanged)
            values ^= exchanged


# --- range ids: ranks of values among boundaries, which the curve goes by

MOST_BITS = 12  # 4,094 boundaries a column
ONE_COLUMN_BITS = 16

Path: TypeAlias = tuple[str, ...]
Rows: TypeAlias = pa.RecordBatch | pa.Table


@dataclass(frozen=True, slots=True)
class ClusteringCurve:
    """The curve that rows are arranged along, and its columns.

    Attributes
    ----------
    kind
        `hilbert` or `zorder`.
    columns
        Logical paths.
    """

    kind: str
    columns: tuple[Path, ...]

    @property
    def bits(self) -> int:
        most = MOST_BITS if len(self.columns) > 1 else ONE_COLUMN_BITS
        return bits_for(len(self.columns), most)


@dataclass(frozen=True, slots=True)
class CurveRanges:
    """A curve, and the boundaries of the ranks of its columns. Can be pickled."""

    curve: ClusteringCurve
    boundaries: tuple[pa.Array, ...]

    def keys(self, rows: Rows) -> Numbers:
        """The place of rows along the curve, as int64.

        Parameters
        ----------
        rows
            Have the columns of the curve by their logical names.
        """
        return self.keys_of([column_at(rows, path) for path in self.curve.columns])

    def keys_of(self, columns: Sequence[pa.Array]) -> Numbers:
        """The same, by the values of the curve's columns."""
        bits = self.curve.bits
        counted = list(zip(columns, self.boundaries, strict=True))[: KEY_BITS // bits]
        ranks = [scale_to_bits(range_ids(values, limits), len(limits), bits) for values, limits in counted]
        return curve_keys(self.curve.kind, ranks, bits)


def ranges_of(curve: ClusteringCurve, sample: pa.Table) -> CurveRanges:
    """The ranges that a sample of rows suggests.

    Parameters
    ----------
    sample
        The columns of the curve, numbered from 0 on.
    """
    most = (1 << curve.bits) - 2
    return CurveRanges(curve, tuple(range_boundaries(column, most) for column in sample.columns))


def column_at(rows: Rows, path: Sequence[str]) -> pa.Array:
    """The values at a path; null where a struct above them is."""
    found = rows.column(path[0])
    for name in path[1:]:
        found = field_of(found, name)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    return found


def range_boundaries(sample: pa.ChunkedArray, most: int) -> pa.Array:
    """At most so many distinct values, in order, that split a sample into parts of about equal size.

    Returns
    -------
    pa.Array
        Of the type in which `range_ids` compares, see `comparable`.
    """
    values = comparable(sample.combine_chunks() if isinstance(sample, pa.ChunkedArray) else sample)
    values = values.drop_null()
    if not len(values):
        return values
    ordered = values.take(pc.sort_indices(values))
    count = min(most, len(ordered))
    picked = np.linspace(0, len(ordered) - 1, count + 1)[1:].astype(np.int64) if count > 1 else np.zeros(1)
    return pc.unique(ordered.take(integers(picked)))


def range_ids(values: pa.Array, limits: pa.Array) -> Numbers:
    """The ranks of values: 0 for null, else one more than the number of limits at or below it."""
    found = comparable(values)
    if is_text(found.type):
        ranks = _range_ids_of_texts(found, limits)
    else:
        ranks = np.searchsorted(data(limits), data(found), side="right").astype(np.int64)
    ranks += 1
    if found.null_count:
        ranks[flags(found.is_null())] = 0
    return ranks


def scale_to_bits(ranks: Numbers, limits: int, bits: int) -> Numbers:
    """Spread ranks over all numbers of some bits, so that columns of few values count in the highest bits too."""
    return ranks * ((1 << bits) - 1) // (limits + 1)


def _range_ids_of_texts(values: pa.Array, limits: pa.Array) -> Numbers:
    """The number of limits at or below each text, by one sort of the distinct texts together with the limits."""
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary
    order = data(pc.sort_indices(pa.concat_arrays([limits, distinct])).cast(pa.int64()))
    below = np.empty(len(order), np.int64)
    # Sorting is stable: a limit stands before the texts that equal it.
    below[order] = np.cumsum(order < len(limits))
    indices = data(encoded.indices.cast(pa.int64()).fill_null(integers([0])[0]))
    return below[len(limits) :][indices] if len(distinct) else np.zeros(len(values), np.int64)


# --- values of every type that has an order as numbers, text or bytes, which compare as the values do
# Structs compare field by field and arrays element by element, nulls first, as in Spark. They become bytes: each part
# begins with a byte that tells null from a value, and none is the beginning of another one.
# Source: Spark, `PhysicalStructType.interpretedOrdering` and `PhysicalArrayType`.

_END, _NULL, _VALUE = b"\x00", b"\x01", b"\x02"
# Of a text in a struct or array so many bytes count: enough to tell rows apart, and no batch becomes too long.
_COUNTED_BYTES = 256
_SIGN = np.uint64(1 << 63)


def comparable(values: pa.Array) -> pa.Array:
    """Values as int64, double, string or binary, in the same order; null where they are."""
    kind = values.type
    if pa.types.is_struct(kind) or is_list(kind):
        return pc.if_else(values.is_valid(), _ordered(values), pa.scalar(None, pa.binary()))
    return _plain(values)


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def data(values: pa.Array) -> np.ndarray[Any, Any]:
    """The numbers of an int64 or double array; anything where it is null."""
    view = np.float64 if pa.types.is_floating(values.type) else np.int64
    if not len(values):
        return np.empty(0, view)
    return np.frombuffer(values.buffers()[1], view)[values.offset :][: len(values)]


def _plain(values: pa.Array) -> pa.Array:
    kind = values.type
    if is_text(kind):
        return values
    if pa.types.is_boolean(kind):
        return values.cast(pa.int8()).cast(pa.int64())
    if pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        return values.cast(pa.float64())
    if pa.types.is_integer(kind) or pa.types.is_null(kind):
        return values.cast(pa.int64())
    return values.view(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.int64())


# --- bytes


def _ordered(values: pa.Array) -> pa.Array:
    """Values as bytes that tell their own end, nulls among them."""
    if pa.types.is_struct(values.type):
        parts = [_ordered(part) for part in values.flatten()]
    elif is_list(values.type):
        lists = plain_lists(values)
        elements = over(lists, pa.list_(pa.binary()), _ordered(lists.values))
        parts = [pc.binary_join(elements, _scalar(b"")), _scalar(_END)]
    else:
        plain = _plain(values)
        parts = _of_text(plain) if is_text(plain.type) else [_of_numbers(plain)]
    joined = pc.binary_join_element_wise(_scalar(_VALUE), *parts, _scalar(b""), null_handling="replace")
    return pc.if_else(values.is_valid(), joined, _scalar(_NULL))


def _scalar(value: bytes) -> pa.Scalar:
    return pa.scalar(value, pa.binary())


def _of_text(values: pa.Array) -> list[pa.Array | pa.Scalar]:
    cut = pc.binary_slice(values.cast(pa.binary()), 0, _COUNTED_BYTES)
    return [pc.replace_substring(cut, b"\x00", b"\x00\xff"), _scalar(b"\x00\x00")]


def _of_numbers(values: pa.Array) -> pa.Array:
    """Eight bytes a number, the highest first; NaN is above every number, and zeros are equal."""
    numbers = data(values)
    if pa.types.is_floating(values.type):
        bits = np.where(np.isnan(numbers), np.nan, numbers + 0.0).view(np.uint64)
        bits = np.where(bits & _SIGN, ~bits, bits ^ _SIGN)
    else:
        bits = numbers.view(np.uint64) ^ _SIGN
    if values.null_count:
        bits = np.where(flags(values.is_valid()), bits, np.uint64(0))
    whole = pa.py_buffer(bits.astype(">u8").tobytes())
    return pa.Array.from_buffers(pa.binary(8), len(values), [None, whole]).cast(pa.binary())
