"""Values of every type that has an order as numbers, text or bytes, which compare as the values do.

Structs compare field by field and arrays element by element, nulls first, as in Spark. They become bytes: each part
begins with a byte that tells null from a value, and none is the beginning of another one.

Source: Spark, `PhysicalStructType.interpretedOrdering` and `PhysicalArrayType`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.arrow_buffers import flags
from delta_ds.kernel.data.values.list_layout import over, plain_lists
from delta_ds.kernel.schema.from_arrow import is_list

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
