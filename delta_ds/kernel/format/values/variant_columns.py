"""Encode columns of values as variants with NumPy and Arrow kernels.

An encoded column is an Arrow binary array, null where there is no value. Offsets and ids inside objects and
arrays take the width that the largest of a batch needs: longer than the shortest form here and there, and
as valid. Source: Apache Parquet, "Variant Binary Encoding".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import DataFileError
from delta_ds.kernel.base.arrow_buffers import bitmap, flags
from delta_ds.kernel.format.expressions.arrays import scalar_of
from delta_ds.kernel.format.schema.types import BINARY
from delta_ds.kernel.format.values import variant

Numbers = np.ndarray[Any, Any]

NULL = scalar_of(b"\0", BINARY)
_NOTHING = scalar_of(b"", BINARY)
_UTF8 = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_SMALL = 255  # most elements of an object or array whose count takes one byte
_INT_IDS = np.array([variant.INT8, variant.INT16, variant.INT32, variant.INT64], np.uint8) << 2
_DECIMAL_IDS = np.array([variant.DECIMAL4, variant.DECIMAL8, variant.DECIMAL16], np.uint8) << 2


def numbers(array: pa.Array, dtype: str) -> Numbers:
    """The data buffer of a fixed-width array as NumPy has it; rubbish where the array is null."""
    width = np.dtype(dtype).itemsize
    data = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * width :]
    return data[: len(array) * width].view(dtype)


def valid(array: pa.Array) -> Numbers:
    """Which values are there."""
    found: Numbers = flags(array.is_valid()) if array.null_count else np.ones(len(array), np.bool_)
    return found


def lengths(encoded: pa.Array) -> Numbers:
    """Bytes of each value of a binary array, 0 for a null."""
    return np.where(valid(encoded), np.diff(_offsets(encoded)), 0)


def _offsets(array: pa.Array) -> Numbers:
    offsets = np.frombuffer(array.buffers()[1], np.int32)
    return offsets[array.offset : array.offset + len(array) + 1]


def null_where_absent(encoded: pa.Array, present: Numbers) -> pa.Array:
    """The binary array with only the values that are present."""
    if present.all():
        return encoded
    _, offsets, data = encoded.buffers()
    if encoded.offset:
        encoded = pa.concat_arrays([encoded.slice(0, 0), encoded])
        _, offsets, data = encoded.buffers()
    return pa.Array.from_buffers(pa.binary(), len(encoded), [bitmap(present), offsets, data])


def join(*parts: pa.Array) -> pa.Array:
    """Binary arrays joined row by row; a null counts as empty."""
    return pc.binary_join_element_wise(*parts, _NOTHING, null_handling="replace", null_replacement="")


def pieces(block: Numbers, kept: Numbers) -> pa.Array:
    """One binary value per row of a matrix of bytes: those of its bytes that are kept."""
    ends = np.cumsum(np.concatenate([[0], kept.sum(axis=1)]), dtype=np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(block), [None, pa.py_buffer(ends), pa.py_buffer(block[kept])]
    )


def prefixes(block: Numbers, widths: Numbers) -> pa.Array:
    """One binary value per row of a matrix of bytes: its first `widths` bytes."""
    return pieces(block, np.arange(block.shape[1]) < widths[:, None])


def width_of(largest: int) -> int:
    """Bytes that an offset or id needs."""
    return max(1, (int(largest).bit_length() + 7) // 8)


def little(values: Numbers, width: int) -> Numbers:
    """Unsigned numbers as a matrix of `width` little-endian bytes."""
    data = np.ascontiguousarray(values, "<u4").reshape(-1, 1).view(np.uint8)
    return data[:, :width]


def scalars(typed: pa.Array) -> pa.Array:
    """Encode a shredded primitive column.

    Integers and decimals take the smallest form that holds them, as Spark rebuilds them.

    Raises
    ------
    DataFileError
        The column's type is none that a variant can be shredded to.
    """
    kind = typed.type
    if pa.types.is_boolean(kind):
        ids = np.where(flags(typed), variant.TRUE, variant.FALSE).astype(np.uint8)
        encoded = prefixes((ids << 2).reshape(-1, 1), np.ones(len(typed)))
    elif pa.types.is_signed_integer(kind):
        encoded = _integers(numbers(typed.cast(pa.int64()), "<i8"))
    elif pa.types.is_decimal128(kind):
        encoded = _decimals(typed)
    elif any(is_kind(kind) for is_kind in _UTF8):
        encoded = _texts(typed.cast(pa.string()).view(pa.binary()), short=True)
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        encoded = _texts(typed.cast(pa.binary()), short=False)
    else:
        encoded = _fixed(typed)
    return null_where_absent(encoded, valid(typed))


def _integers(values: Numbers) -> pa.Array:
    size = sum((values < -(1 << bits)) | (values >= 1 << bits) for bits in (7, 15, 31))
    block = np.concatenate([_INT_IDS[size].reshape(-1, 1), _bytes(values)], axis=1)
    return prefixes(block, 1 + (1 << np.asarray(size)))


def _bytes(values: Numbers) -> Numbers:
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)


def _decimals(typed: pa.Array) -> pa.Array:
    scale = typed.type.scale
    words = numbers(typed, "V16").view("<i8").reshape(-1, 2)
    low, high = words[:, 0], words[:, 1]
    one_word = high == low >> 63
    size = np.where(one_word & (np.abs(low) < 10**9) & (scale <= 9), 0, 1)
    size = np.where(one_word & (np.abs(low) < 10**18) & (low != -(1 << 63)) & (scale <= 18), size, 2)
    head = np.stack([_DECIMAL_IDS[size], np.full(len(size), scale, np.uint8)], axis=1)
    return prefixes(np.concatenate([head, _bytes(words)], axis=1), 2 + (4 << size))


def _texts(data: pa.Array, short: bool) -> pa.Array:
    size = lengths(data)
    is_short = (size < 64) & short
    block = np.empty((len(size), 5), np.uint8)
    long_id = (variant.STRING_ID if short else variant.BINARY_ID) << 2
    block[:, 0] = np.where(is_short, size << 2 | variant.SHORT_STRING, long_id)
    block[:, 1:] = little(size, 4)
    return join(prefixes(block, np.where(is_short, 1, 5)), data)


def _fixed(typed: pa.Array) -> pa.Array:
    form = _fixed_form(typed.type)
    if form is None:
        raise DataFileError(f"a variant is shredded as {typed.type}, which no variant type is")
    type_id, dtype = form
    values = numbers(typed, dtype)
    block = np.concatenate([np.full((len(typed), 1), type_id << 2, np.uint8), _bytes(values)], axis=1)
    return prefixes(block, np.full(len(typed), block.shape[1]))


def _fixed_form(kind: pa.DataType) -> tuple[int, str] | None:
    """Type id and NumPy type of the types that are stored as they are."""
    if pa.types.is_timestamp(kind) and kind.unit in ("us", "ns"):
        ids = {"us": (variant.TIMESTAMP_NTZ_ID, variant.TIMESTAMP_ID)}
        ids["ns"] = (variant.TIMESTAMP_NTZ_NANOS_ID, variant.TIMESTAMP_NANOS_ID)
        return ids[kind.unit][kind.tz is not None], "<i8"
    return {
        pa.float32(): (variant.FLOAT_ID, "<f4"),
        pa.float64(): (variant.DOUBLE_ID, "<f8"),
        pa.date32(): (variant.DATE_ID, "<i4"),
        pa.time64("us"): (variant.TIME_ID, "<i8"),
        pa.binary(16): (variant.UUID_ID, "V16"),
    }.get(kind)


def arrays(elements: pa.Array, counts: Numbers) -> pa.Array:
    """Encode arrays from their encoded elements.

    Parameters
    ----------
    elements
        All elements, one array after the other; a null one becomes variant null.
    counts
        Elements of each array.
    """
    elements = pc.fill_null(elements, NULL)
    starts = np.concatenate([[0], np.cumsum(counts)])
    ends = _offsets(elements) if len(elements) else np.zeros(1, np.int32)
    first, last = ends[starts[:-1]], ends[starts[1:]]
    # Per array one offset more than elements: those of its elements and the end of the last.
    rows = np.repeat(np.arange(len(counts)), counts + 1)
    index = np.arange(len(rows)) - rows
    relative = ends[index] - first[rows]
    width = width_of(int((last - first).max(initial=0)))
    offset_ends = (np.concatenate([[0], np.cumsum(counts + 1)]) * width).astype(np.int32)
    table = np.ascontiguousarray(little(relative, width))
    offsets = pa.Array.from_buffers(
        pa.binary(), len(counts), [None, pa.py_buffer(offset_ends), pa.py_buffer(table)]
    )
    value_ends = np.append(first, last[-1:] if len(last) else ends[-1:]).astype(np.int32)
    values = pa.Array.from_buffers(
        pa.binary(), len(counts), [None, pa.py_buffer(value_ends), elements.buffers()[2]]
    )
    return join(_heads(variant.ARRAY, counts, width - 1, 2), offsets, values)


def _heads(basic: int, counts: Numbers, header: int, large_bit: int) -> pa.Array:
    """Header byte and number of elements of arrays or objects."""
    large = counts > _SMALL
    block = np.empty((len(counts), 5), np.uint8)
    block[:, 0] = basic | (header | large.astype(np.uint8) << large_bit) << 2
    block[:, 1:] = little(counts, 4)
    return prefixes(block, np.where(large, 5, 2))


def objects(fields: list[pa.Array], ids: Numbers) -> pa.Array:
    """Encode objects from their encoded fields.

    Parameters
    ----------
    fields
        One encoded column per field, in the byte order of their names; null where an object lacks the field.
    ids
        Matrix (row, field) of dictionary ids.
    """
    present = np.stack([valid(field) for field in fields], axis=1)
    sizes = np.stack([lengths(field) for field in fields], axis=1).astype(np.int64)
    ends = np.cumsum(sizes, axis=1)
    id_width = width_of(int(ids[present].max(initial=0)))
    width = width_of(int(ends[:, -1].max(initial=0)))
    heads = _heads(variant.OBJECT, present.sum(axis=1), (width - 1) | (id_width - 1) << 2, 4)
    return join(
        heads,
        _table(ids, present, id_width),
        _table(ends - sizes, present, width),
        prefixes(little(ends[:, -1], width), np.full(len(ends), width)),
        *fields,
    )


def _table(values: Numbers, present: Numbers, width: int) -> pa.Array:
    """Per row the numbers of its present fields, in `width` bytes each."""
    rows, count = values.shape
    block = little(values, width).reshape(rows, count * width)
    return pieces(block, np.repeat(present, width, axis=1))
