"""Python constants to Arrow and back, without pyarrow's own conversions.

`pa.array(list)`, `pa.scalar(value)` and `as_py()` of timestamps import pandas wherever it is installed, a
quarter of a second that planning a read must not pay. Here arrays are built from buffers and timestamps and
dates are read back as numbers.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Any

import pyarrow as pa

from delta_ds.kernel.arrow_buffers import bitmap, byte_values
from delta_ds.kernel.schema.types import (
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

_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_PACKED: dict[DataType, str] = {
    BYTE: "b", SHORT: "h", INTEGER: "i", LONG: "q", FLOAT: "f", DOUBLE: "d", DATE: "i", TIMESTAMP: "q",
    TIMESTAMP_NTZ: "q",
}  # fmt: skip


def storage_type(data_type: DataType) -> pa.DataType:
    """The Arrow type values are computed in: `arrow_type`, and 256 bits for decimals of more than 38 digits.

    Such decimals exist only inside expressions, where two columns meet that no common decimal type holds.
    """
    if isinstance(data_type, DecimalType) and data_type.precision > 38:
        return pa.decimal256(data_type.precision, data_type.scale)
    return arrow_type(data_type)


def micros(value: datetime.datetime) -> int:
    """Microseconds since 1970 of an aware datetime, or of a naive one as if it were UTC."""
    offset = value.utcoffset() or datetime.timedelta()
    return (value.replace(tzinfo=None) - offset - _EPOCH) // _MICROSECOND


def from_micros(value: int, aware: bool) -> datetime.datetime:
    """The inverse of `micros`; OverflowError outside the years 1 to 9999."""
    timestamp = _EPOCH + datetime.timedelta(microseconds=value)
    return timestamp.replace(tzinfo=datetime.timezone.utc) if aware else timestamp


def array_of(values: Sequence[Any], data_type: DataType) -> pa.Array:
    """An Arrow array of `storage_type(data_type)` from Python values as `Literal` holds them."""
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
    if data_type == DATE:
        values = [None if v is None else v.toordinal() - _EPOCH_DAY for v in values]
    elif data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        values = [None if v is None else micros(v) for v in values]
    packed = struct.pack(f"<{len(values)}{_PACKED[data_type]}", *(0 if v is None else v for v in values))
    return pa.py_buffer(packed)


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
    """The values of an array of a primitive type as `Literal` holds them.

    Raises
    ------
    OverflowError
        A date or timestamp outside the years 1 to 9999, which Python cannot hold.
    """
    if data_type == DATE:
        days = array.cast(pa.int32()).to_pylist()
        return [None if d is None else _date(d) for d in days]
    if data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        aware = data_type == TIMESTAMP
        return [None if m is None else from_micros(m, aware) for m in array.cast(pa.int64()).to_pylist()]
    values: list[Any] = array.to_pylist()
    return values


def _date(days: int) -> datetime.date:
    try:
        return datetime.date.fromordinal(days + _EPOCH_DAY)
    except ValueError as error:
        raise OverflowError(f"day {days} since 1970 is outside the years 1 to 9999") from error


def spread(value: pa.Array | pa.Scalar, length: int) -> pa.Array:
    """The value for each row: scalars are repeated, arrays are given back."""
    return pa.repeat(value, length) if isinstance(value, pa.Scalar) else value


def map_unique(
    function: Callable[[Any], Any], value: pa.Array | pa.Scalar, source: DataType, target: DataType
) -> pa.Array | pa.Scalar:
    """Apply a Python function to each distinct non-null value; nulls stay null."""
    if isinstance(value, pa.Scalar):
        return map_unique(function, pa.repeat(value, 1), source, target)[0]
    if isinstance(source, DecimalType) and source.precision > 38:  # not every kernel knows 256 bits
        results = [None if v is None else function(v) for v in values_of(value, source)]
        return array_of(results, target)
    encoded = value.dictionary_encode()
    distinct = values_of(encoded.dictionary, source)
    results = [None if v is None else function(v) for v in distinct]
    return array_of(results, target).take(encoded.indices)


def map_rows(
    function: Callable[..., Any],
    values: Sequence[pa.Array | pa.Scalar],
    sources: Sequence[DataType],
    target: DataType,
) -> pa.Array | pa.Scalar:
    """Apply a Python function row by row; a row with a null in any argument gives null."""
    if all(isinstance(v, pa.Scalar) for v in values):
        return map_rows(function, [pa.repeat(v, 1) for v in values], sources, target)[0]
    varying = [i for i, v in enumerate(values) if not isinstance(v, pa.Scalar)]
    if len(varying) == 1 and not isinstance(
        values[varying[0]].type, (pa.ListType, pa.MapType, pa.StructType)
    ):
        at = varying[0]
        fixed = [values_of(pa.repeat(v, 1), t)[0] if i != at else None
                 for i, (v, t) in enumerate(zip(values, sources, strict=True))]  # fmt: skip
        if any(f is None for i, f in enumerate(fixed) if i != at):
            return pa.nulls(len(values[at]), storage_type(target))
        return map_unique(
            lambda v: function(*fixed[:at], v, *fixed[at + 1 :]), values[at], sources[at], target
        )
    length = len(values[varying[0]])
    columns = [values_of(spread(v, length), t) for v, t in zip(values, sources, strict=True)]
    rows = zip(*columns, strict=True)
    return array_of([None if any(c is None for c in row) else function(*row) for row in rows], target)
