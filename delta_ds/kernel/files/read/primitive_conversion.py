"""Primitive columns: which Parquet types can be read as which types of the table, and how.

A pair that is not here is refused: a silent cast could change values. Widening that the protocol knows,
unannotated binary as string, INT96, and the time units of Parquet are here.
Source: PROTOCOL.md, "Type Widening" (protocol-checklist section 25); Spark, `ParquetVectorUpdaterFactory`.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.data import FAILED_READ_FILE_PARQUET_COLUMN_DATA_TYPE_MISMATCH
from delta_ds.kernel.format.expressions.zones import Rebase, rebase_dates, rebase_timestamps
from delta_ds.kernel.format.schema.types import DataType, DecimalType, PrimitiveType, arrow_type

Converter = Callable[[pa.Array], pa.Array]
_WIDTHS = {"byte": 8, "short": 16, "integer": 32, "long": 64}


def primitive_converter(
    file_type: pa.DataType, wanted: DataType, rebase: Rebase, path: str
) -> Converter | None:
    """The conversion of a primitive column, or None where the file's array is already what is wanted.

    Raises
    ------
    DataFileError
        The file's type cannot be read as the table's; names the column by `path`.
    """
    if isinstance(wanted, DecimalType):
        can_read = pa.types.is_decimal(file_type) or pa.types.is_integer(file_type)
        return _cast(file_type, wanted) if can_read else _refuse(file_type, wanted, path)
    name = wanted.name if isinstance(wanted, PrimitiveType) else ""
    if name == "void":
        return lambda array: pa.nulls(len(array))
    if name == "timestamp" and pa.types.is_timestamp(file_type):
        return _timestamp(file_type, rebase)
    if name == "timestamp_ntz" and pa.types.is_timestamp(file_type) and file_type.tz is None:
        return _to_micros(file_type, arrow_type(wanted))
    if name in ("date", "timestamp_ntz") and pa.types.is_date32(file_type):
        return _date(wanted, rebase)
    if name in ("string", "binary"):
        return _bytes(file_type, wanted, path)
    if _castable(file_type, name):
        return _cast(file_type, wanted)
    return _refuse(file_type, wanted, path)


def _castable(file_type: pa.DataType, name: str) -> bool:
    if name in _WIDTHS:
        # Parquet stores 8, 16 and 32 bits alike: a file may declare less or more than the table, not 64 bits.
        return pa.types.is_integer(file_type) and (file_type.bit_width <= 32 or name == "long")
    if name == "boolean":
        return bool(pa.types.is_boolean(file_type))
    if name == "float":
        return bool(pa.types.is_float32(file_type) or pa.types.is_float16(file_type))
    if name == "double":
        small = pa.types.is_integer(file_type) and file_type.bit_width <= 32
        return bool(pa.types.is_floating(file_type) or small)
    return name == "date" and bool(pa.types.is_int32(file_type))


def _cast(file_type: pa.DataType, wanted: DataType) -> Converter | None:
    target = arrow_type(wanted)
    return None if file_type == target else lambda array: pc.cast(array, target)


def _bytes(file_type: pa.DataType, wanted: DataType, path: str) -> Converter | None:
    target = arrow_type(wanted)
    if file_type == target:
        return None
    if file_type in (pa.string(), pa.binary()):
        return lambda array: array.view(target)  # the same bytes, as unchecked as any Parquet string
    if pa.types.is_fixed_size_binary(file_type) and target == pa.binary():
        return lambda array: array.cast(target)
    stringy = pa.types.is_large_string(file_type) or pa.types.is_string_view(file_type)
    binaryish = pa.types.is_large_binary(file_type) or pa.types.is_binary_view(file_type)
    if stringy or binaryish:
        return lambda array: array.cast(pa.string() if stringy else pa.binary()).view(target)
    return _refuse(file_type, wanted, path)


def _date(wanted: DataType, rebase: Rebase) -> Converter | None:
    target = arrow_type(wanted)
    widen = target != pa.date32()
    if not rebase.datetimes:
        return (lambda array: pc.cast(array, target)) if widen else None
    return lambda array: pc.cast(rebase_dates(array), target) if widen else rebase_dates(array)


def _timestamp(file_type: pa.TimestampType, rebase: Rebase) -> Converter | None:
    target = pa.timestamp("us", "UTC")
    plain = _to_micros(file_type, target)
    # INT96 has no zone in Arrow. A timestamp_ntz file read as timestamp keeps its number, as in Spark.
    legacy = rebase.int96 if file_type.tz is None else rebase.datetimes
    if not legacy:
        return plain
    return lambda array: rebase_timestamps(array if plain is None else plain(array), rebase.timezone)


def _to_micros(file_type: pa.TimestampType, target: pa.TimestampType) -> Converter | None:
    """To microseconds; nanoseconds are cut down, before 1970 too."""
    if file_type == target:
        return None
    unzoned = pa.timestamp(file_type.unit)
    micros = pa.timestamp("us")
    if file_type.unit == "us":
        return lambda array: array.view(target)
    if file_type.unit == "ns":
        return lambda array: (
            pc.floor_temporal(array.view(unzoned), unit="microsecond").cast(micros).view(target)
        )
    return lambda array: array.view(unzoned).cast(micros).view(target)


def _refuse(file_type: pa.DataType, wanted: DataType, path: str) -> Converter | None:
    raise FAILED_READ_FILE_PARQUET_COLUMN_DATA_TYPE_MISMATCH(
        column=path, actualType=str(file_type), expectedType=str(wanted)
    )
