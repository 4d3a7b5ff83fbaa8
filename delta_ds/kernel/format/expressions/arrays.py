"""Python constants to Arrow and back, without pyarrow's own conversions; comparisons by Spark's order.

`pa.array(list)`, `pa.scalar(value)` and `as_py()` of timestamps import pandas wherever it is installed, a
quarter of a second that planning a read must not pay. Here arrays are built from buffers and timestamps and
dates are read back as numbers. The functions that compute with dates and timestamps know numbers only, days and
microseconds since 1970: Python's own values end with the year 9999.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.base.arrow_buffers import bitmap, byte_values, integers, numbers
from delta_ds.kernel.format.expressions.moments import date_of, days_of, micros_of, timestamp_of
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
    arrow_type,
)

if TYPE_CHECKING:
    import numpy as np

_PACKED: dict[DataType, str] = dict(
    zip((BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, DATE, TIMESTAMP, TIMESTAMP_NTZ), "bhiqfdiqq", strict=True)
)


_TIMES = (TIMESTAMP, TIMESTAMP_NTZ)


def storage_type(data_type: DataType) -> pa.DataType:
    """The Arrow type of constants: `arrow_type`, and 256 bits for decimals of more digits than any column has."""
    if isinstance(data_type, DecimalType) and data_type.precision > 38:
        return pa.decimal256(data_type.precision, data_type.scale)
    return arrow_type(data_type)


def array_of(values: Sequence[Any], data_type: DataType) -> pa.Array:
    """An Arrow array of `storage_type(data_type)` from Python values as `Literal` holds them."""
    if data_type == DATE:
        values = [None if v is None else days_of(v) for v in values]
    elif data_type in _TIMES:
        values = [None if v is None else micros_of(v) for v in values]
    return plain_array(values, data_type)


def plain_array(values: Sequence[Any], data_type: DataType) -> pa.Array:
    """As `array_of`, from numbers in the place of dates and timestamps.

    Raises
    ------
    OverflowError
        A number is beyond what the type holds.
    """
    target, size = storage_type(data_type), len(values)
    if data_type == VOID or all(v is None for v in values):
        return pa.nulls(size, target)
    valid = bitmap([v is not None for v in values]) if any(v is None for v in values) else None
    if data_type in (STRING, BINARY):
        chunks = [
            b"" if v is None else v.encode(errors="replace") if isinstance(v, str) else v for v in values
        ]
        return byte_values(chunks, target, valid)
    data = bitmap([bool(v) for v in values]) if data_type == BOOLEAN else _packed(values, data_type, target)
    return pa.Array.from_buffers(target, size, [valid, data])


def _packed(values: Sequence[Any], data_type: DataType, target: pa.DataType) -> pa.Buffer:
    """Values of a fixed width in bytes, zeros for nulls."""
    if isinstance(data_type, DecimalType):
        width, scale = target.bit_width // 8, data_type.scale
        decimals = (unscaled(v, scale).to_bytes(width, "little", signed=True) for v in values)
        return pa.py_buffer(b"".join(decimals))
    filled = [0 if v is None else v for v in values]
    try:
        return pa.py_buffer(struct.pack(f"<{len(filled)}{_PACKED[data_type]}", *filled))
    except struct.error as error:
        raise OverflowError(f"a value is beyond the range of {data_type}") from error


def unscaled(value: Decimal | None, scale: int) -> int:
    """The integer that a decimal of that scale stores; `value` must not have more digits after the point."""
    if value is None:
        return 0
    with localcontext() as context:
        context.prec = 100
        return int(value.scaleb(scale))


def scalar_of(value: Any, data_type: DataType) -> pa.Scalar:
    """One constant as an Arrow scalar."""
    return array_of([value], data_type)[0]


TRUE, FALSE, UNKNOWN = scalar_of(True, BOOLEAN), scalar_of(False, BOOLEAN), scalar_of(None, BOOLEAN)


def values_of(array: pa.Array, data_type: DataType) -> list[Any]:
    """The values of an array of a primitive type as `Literal` holds them."""
    values = plain_values(array, data_type)
    if data_type == DATE:
        return [None if v is None else date_of(v) for v in values]
    if data_type in _TIMES:
        aware = data_type == TIMESTAMP
        return [None if v is None else timestamp_of(v, aware) for v in values]
    return values


def plain_values(array: pa.Array, data_type: DataType) -> list[Any]:
    """As `values_of`, with numbers in the place of dates and timestamps."""
    if data_type == DATE or data_type in _TIMES:
        array = array.view(pa.int32() if data_type == DATE else pa.int64())
    values: list[Any] = array.to_pylist()
    return values


def spread(value: pa.Array | pa.Scalar, length: int) -> pa.Array:
    """The value for each row: scalars are repeated, arrays are given back."""
    return pa.repeat(value, length) if isinstance(value, pa.Scalar) else value


def map_numbers(
    function: Callable[[np.ndarray[Any, np.dtype[np.int64]]], Any],
    value: pa.Array | pa.Scalar,
    target: pa.DataType,
) -> pa.Array | pa.Scalar:
    """Apply a function of NumPy arrays to whole numbers, dates or timestamps; nulls stay null.

    Parameters
    ----------
    function
        From int64 to int64, whatever the values' own type.
    target
        The type of the result: of whole numbers, dates or timestamps.

    Raises
    ------
    OverflowError
        A result is beyond what 32 bits hold, and the target has no more.
    """
    if isinstance(value, pa.Scalar):
        return map_numbers(function, pa.repeat(value, 1), target)[0]
    whole = value.view(pa.int32() if value.type.bit_width == 32 else pa.int64()).cast(pa.int64())
    results = integers(function(numbers(pc.fill_null(whole, scalar_of(0, LONG)))))
    if value.null_count:
        results = pc.if_else(value.is_valid(), results, scalar_of(None, LONG))
    if target.bit_width == 64:
        return results.view(target)
    try:
        return results.cast(pa.int32()).view(target)
    except pa.ArrowInvalid as error:
        raise OverflowError(str(error)) from error


def map_unique(
    function: Callable[[Any], Any], value: pa.Array | pa.Scalar, source: DataType, target: DataType
) -> pa.Array | pa.Scalar:
    """Apply a Python function to each distinct non-null value; nulls stay null.

    Numbers stand for dates and timestamps, in what the function takes and in what it gives.
    """
    if isinstance(value, pa.Scalar):
        return map_unique(function, pa.repeat(value, 1), source, target)[0]
    encoded = value.dictionary_encode()
    distinct = plain_values(encoded.dictionary, source)
    results = [None if v is None else function(v) for v in distinct]
    return plain_array(results, target).take(encoded.indices)


def map_rows(
    function: Callable[..., Any],
    values: Sequence[pa.Array | pa.Scalar],
    sources: Sequence[DataType],
    target: DataType,
) -> pa.Array | pa.Scalar:
    """Apply a Python function row by row; a row with a null in any argument gives null. Numbers as in `map_unique`."""
    if all(isinstance(v, pa.Scalar) for v in values):
        return map_rows(function, [pa.repeat(v, 1) for v in values], sources, target)[0]
    varying = [i for i, v in enumerate(values) if not isinstance(v, pa.Scalar)]
    if len(varying) == 1 and not isinstance(
        values[varying[0]].type, (pa.ListType, pa.MapType, pa.StructType)
    ):
        at = varying[0]
        fixed = [
            plain_values(pa.repeat(v, 1), t)[0] if i != at else None
            for i, (v, t) in enumerate(zip(values, sources, strict=True))
        ]
        if any(f is None for i, f in enumerate(fixed) if i != at):
            return pa.nulls(len(values[at]), arrow_type(target))
        return map_unique(
            lambda v: function(*fixed[:at], v, *fixed[at + 1 :]), values[at], sources[at], target
        )
    length = len(values[varying[0]])
    columns = [plain_values(spread(v, length), t) for v, t in zip(values, sources, strict=True)]
    rows = zip(*columns, strict=True)
    return plain_array([None if any(c is None for c in row) else function(*row) for row in rows], target)


def compare(
    name: str, left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar, data_type: DataType
) -> pa.Array | pa.Scalar:
    """`= <> < <= > >= <=>` on values of one type, by Spark's total order."""
    if name == "<=>":
        equal = pc.fill_null(compare("=", left, right, data_type), FALSE)
        return pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))
    if name in (">", ">="):
        return compare("<" if name == ">" else "<=", right, left, data_type)
    if name in ("<>", "<="):
        # The order is total: not equal is the opposite of equal, not above that of below.
        return pc.invert(
            compare("=", left, right, data_type) if name == "<>" else compare("<", right, left, data_type)
        )
    result = (pc.equal if name == "=" else pc.less)(left, right)
    if data_type not in (FLOAT, DOUBLE):
        return result
    nan_left, nan_right = pc.is_nan(left), pc.is_nan(right)
    special = pc.and_(nan_left, nan_right) if name == "=" else pc.and_(pc.invert(nan_left), nan_right)
    return pc.or_(result, special)
