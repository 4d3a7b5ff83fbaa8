"""The binary form of variants, and their text as Spark's `to_json` and `schema_of_variant` give it.

Source: Apache Parquet, "Variant Binary Encoding"; Spark, `Variant.toJson` and `SchemaOfVariant`.
"""

from __future__ import annotations

import base64
import math
import re
import struct
from collections.abc import Iterator
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

from delta_ds.conditions.data import MALFORMED_VARIANT
from delta_ds.exceptions import DataFileError
from delta_ds.kernel.format.expressions.plain_sql import double_text, float_text
from delta_ds.kernel.format.expressions.zones import DAY_US, civil_from_days
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
)

PRIMITIVE, SHORT_STRING, OBJECT, ARRAY = range(4)
(
    NULL, TRUE, FALSE, INT8, INT16, INT32, INT64, DOUBLE_ID, DECIMAL4, DECIMAL8, DECIMAL16, DATE_ID,
    TIMESTAMP_ID, TIMESTAMP_NTZ_ID, FLOAT_ID, BINARY_ID, STRING_ID, TIME_ID, TIMESTAMP_NANOS_ID,
    TIMESTAMP_NTZ_NANOS_ID, UUID_ID,
) = range(21)  # fmt: skip

_FIXED = {
    INT8: "<b", INT16: "<h", INT32: "<i", INT64: "<q", FLOAT_ID: "<f", DOUBLE_ID: "<d", DATE_ID: "<i",
    TIME_ID: "<q", TIMESTAMP_ID: "<q", TIMESTAMP_NTZ_ID: "<q", TIMESTAMP_NANOS_ID: "<q",
    TIMESTAMP_NTZ_NANOS_ID: "<q",
}  # fmt: skip
_DECIMAL_BYTES = {DECIMAL4: 4, DECIMAL8: 8, DECIMAL16: 16}
_TYPES: dict[int, PrimitiveType] = {
    NULL: VOID, TRUE: BOOLEAN, FALSE: BOOLEAN, INT8: LONG, INT16: LONG, INT32: LONG, INT64: LONG,
    DOUBLE_ID: DOUBLE, FLOAT_ID: FLOAT, BINARY_ID: BINARY, STRING_ID: STRING, DATE_ID: DATE,
    TIME_ID: PrimitiveType("time(6)"), TIMESTAMP_ID: TIMESTAMP, TIMESTAMP_NANOS_ID: TIMESTAMP,
    TIMESTAMP_NTZ_ID: TIMESTAMP_NTZ, TIMESTAMP_NTZ_NANOS_ID: TIMESTAMP_NTZ, UUID_ID: PrimitiveType("uuid"),
}  # fmt: skip
_SQL_NAMES = {"long": "BIGINT"}
_PLAIN_NAME = re.compile(r"(?!\d+$)[a-zA-Z0-9_]+")
_CONTROL = {i: f"\\u{i:04X}" for i in range(32)} | {
    ord('"'): '\\"', ord("\\"): "\\\\", 8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r",
}  # fmt: skip
_WIDE = Context(prec=76)


def dictionary(metadata: bytes) -> list[str]:
    """The field names of a variant's metadata, by id.

    Raises
    ------
    DataFileError
        The bytes are not variant metadata of version 1.
    """
    try:
        header = metadata[0]
        if header & 0x0F != 1:
            raise DataFileError(f"variant metadata of version {header & 0x0F}; only version 1 is known")
        width = (header >> 6) + 1
        size = int.from_bytes(metadata[1 : 1 + width], "little")
        offsets = _integers(metadata, 1 + width, size + 1, width)
        start = 1 + width * (size + 2)
        return [metadata[start + a : start + b].decode() for a, b in zip(offsets, offsets[1:], strict=False)]
    except (IndexError, UnicodeDecodeError) as error:
        raise DataFileError(f"malformed variant metadata: {error}") from error


def _integers(data: bytes, start: int, count: int, width: int) -> list[int]:
    end = start + count * width
    if end > len(data):
        raise DataFileError(f"malformed variant: it ends before byte {end}")
    return [int.from_bytes(data[i : i + width], "little") for i in range(start, end, width)]


def object_fields(value: bytes, start: int, names: list[str]) -> Iterator[tuple[str, int]]:
    """Name and position of each field of the object at `start`, in the order of their names."""
    header = value[start] >> 2
    offset_width, id_width, large = (header & 3) + 1, (header >> 2 & 3) + 1, header >> 4 & 1
    count, at = _count(value, start + 1, large)
    ids = _integers(value, at, count, id_width)
    offsets = _integers(value, at + count * id_width, count + 1, offset_width)
    first = at + count * id_width + (count + 1) * offset_width
    for field_id, offset in zip(ids, offsets, strict=False):
        if field_id >= len(names):
            raise DataFileError(f"malformed variant: field id {field_id} is not in its dictionary")
        yield names[field_id], first + offset


def array_elements(value: bytes, start: int) -> Iterator[int]:
    """Position of each element of the array at `start`."""
    header = value[start] >> 2
    width, large = (header & 3) + 1, header >> 2 & 1
    count, at = _count(value, start + 1, large)
    first = at + (count + 1) * width
    for offset in _integers(value, at, count, width):
        yield first + offset


def _count(value: bytes, at: int, large: int) -> tuple[int, int]:
    width = 4 if large else 1
    return int.from_bytes(value[at : at + width], "little"), at + width


def size(value: bytes, start: int) -> int:
    """Length in bytes of the value at `start`."""
    basic, header = value[start] & 3, value[start] >> 2
    if basic == SHORT_STRING:
        return 1 + header
    if basic == PRIMITIVE:
        return _primitive_size(value, start, header)
    offset_width = (header & 3) + 1
    if basic == OBJECT:
        count, at = _count(value, start + 1, header >> 4 & 1)
        at += count * ((header >> 2 & 3) + 1)
    else:
        count, at = _count(value, start + 1, header >> 2 & 1)
    end = _integers(value, at + count * offset_width, 1, offset_width)[0]
    return at + (count + 1) * offset_width + end - start


def _primitive_size(value: bytes, start: int, kind: int) -> int:
    if kind in (NULL, TRUE, FALSE):
        return 1
    if kind in _FIXED:
        return 1 + struct.calcsize(_FIXED[kind])
    if kind in _DECIMAL_BYTES:
        return 2 + _DECIMAL_BYTES[kind]
    if kind in (BINARY_ID, STRING_ID):
        return 5 + int.from_bytes(value[start + 1 : start + 5], "little")
    if kind == UUID_ID:
        return 17
    raise DataFileError(f"unknown variant type id {kind}; a newer version of this package may read it")


def _scalar(value: bytes, start: int) -> tuple[int, Any]:
    """Type id and Python value of the primitive at `start`; times are integers as stored."""
    basic, kind = value[start] & 3, value[start] >> 2
    data = value[start + 1 : start + size(value, start)]
    if basic == SHORT_STRING:
        return STRING_ID, data.decode()
    if kind in _FIXED:
        return kind, struct.unpack(_FIXED[kind], data)[0]
    if kind in _DECIMAL_BYTES:
        unscaled = int.from_bytes(data[1:], "little", signed=True)
        return kind, Decimal(unscaled).scaleb(-data[0], _WIDE)
    if kind == STRING_ID:
        return kind, data[4:].decode()
    if kind == BINARY_ID:
        return kind, data[4:]
    return kind, data if kind == UUID_ID else {TRUE: True, FALSE: False}.get(kind)


def to_json(value: bytes, metadata: bytes) -> str:
    """The JSON text of a variant, as Spark's `to_json` writes it in a session of zone UTC.

    Raises
    ------
    DataFileError
        The bytes are not a variant.
    """
    with _Malformed():
        return _json(value, 0, dictionary(metadata))


def schema_of(value: bytes, metadata: bytes) -> str:
    """The type of a variant as Spark's `schema_of_variant` names it, such as `OBJECT<a: BIGINT>`.

    Raises
    ------
    DataFileError
        The bytes are not a variant.
    """
    with _Malformed():
        return _type_text(_type_of(value, 0, dictionary(metadata)))


class _Malformed:
    """Turns what broken bytes raise into a DataFileError."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (IndexError, struct.error, UnicodeDecodeError, RecursionError)):
            raise MALFORMED_VARIANT(reason=error) from error


def _json(value: bytes, start: int, names: list[str]) -> str:
    basic = value[start] & 3
    if basic == OBJECT:
        fields = object_fields(value, start, names)
        return "{" + ",".join(f"{_quoted(name)}:{_json(value, at, names)}" for name, at in fields) + "}"
    if basic == ARRAY:
        return "[" + ",".join(_json(value, at, names) for at in array_elements(value, start)) + "]"
    kind, scalar = _scalar(value, start)
    return _scalar_json(kind, scalar)


def _scalar_json(kind: int, scalar: Any) -> str:
    if scalar is None or isinstance(scalar, bool):
        return {None: "null", True: "true", False: "false"}[scalar]
    if kind in _DECIMAL_BYTES:
        return format(_stripped(scalar), "f")
    if kind in (DOUBLE_ID, FLOAT_ID):
        text = double_text(scalar) if kind == DOUBLE_ID else float_text(scalar)
        return text if math.isfinite(scalar) else f'"{text}"'
    if kind == STRING_ID:
        return _quoted(scalar)
    if kind == BINARY_ID:
        return f'"{base64.b64encode(scalar).decode()}"'
    if kind == UUID_ID:
        return f'"{UUID(bytes=scalar)}"'
    text = _time_text(kind, scalar)
    return text if text is None or kind in (INT8, INT16, INT32, INT64) else f'"{text}"'


def _time_text(kind: int, number: int) -> str:
    if kind == DATE_ID:
        return _date_text(number)
    if kind == TIME_ID:
        return _clock_text(number)
    if kind in (TIMESTAMP_ID, TIMESTAMP_NTZ_ID, TIMESTAMP_NANOS_ID, TIMESTAMP_NTZ_NANOS_ID):
        micros = number // 1000 if kind in (TIMESTAMP_NANOS_ID, TIMESTAMP_NTZ_NANOS_ID) else number
        days, rest = divmod(micros, DAY_US)
        zone = "+00:00" if kind in (TIMESTAMP_ID, TIMESTAMP_NANOS_ID) else ""
        return f"{_date_text(days)} {_clock_text(rest)}{zone}"
    return str(number)


def _date_text(days: int) -> str:
    year, month, day = civil_from_days(days)
    text = f"{abs(year):04d}-{month:02d}-{day:02d}"
    return f"-{text}" if year < 0 else f"+{text}" if year > 9999 else text


def _clock_text(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


def _quoted(text: str) -> str:
    return f'"{text.translate(_CONTROL)}"'


def _stripped(number: Decimal) -> Decimal:
    return number.normalize(_WIDE) if number else Decimal(0)


def _type_of(value: bytes, start: int, names: list[str]) -> DataType:
    basic = value[start] & 3
    if basic == OBJECT:
        fields = object_fields(value, start, names)
        return StructType(tuple(StructField(name, _type_of(value, at, names)) for name, at in fields))
    if basic == ARRAY:
        element: DataType = VOID
        for at in array_elements(value, start):
            element = _merge(element, _type_of(value, at, names))
        return ArrayType(element)
    kind, scalar = _scalar(value, start)
    if kind not in _DECIMAL_BYTES:
        return _TYPES[kind]
    stripped = _stripped(scalar)
    scale = max(0, -int(stripped.as_tuple().exponent))
    return DecimalType(max(scale, 1, stripped.adjusted() + 1 + scale), scale)


def _merge(a: DataType, b: DataType) -> DataType:
    """The common type of two array elements (Spark, `JsonInferSchema.compatibleType`)."""
    if a == b or b == VOID:
        return a
    if a == VOID:
        return b
    if isinstance(a, StructType) and isinstance(b, StructType):
        types = {f.name: f.type for f in a}
        for f in b:
            types[f.name] = _merge(types[f.name], f.type) if f.name in types else f.type
        return StructType(tuple(StructField(name, types[name]) for name in sorted(types)))
    if isinstance(a, ArrayType) and isinstance(b, ArrayType):
        return ArrayType(_merge(a.element, b.element))
    if isinstance(a, DecimalType) or isinstance(b, DecimalType):
        return _merge_decimal(a, b)
    return _COMMON.get(frozenset((a, b)), VARIANT)


_COMMON: dict[frozenset[DataType], DataType] = {
    frozenset((LONG, FLOAT)): FLOAT,
    frozenset((LONG, DOUBLE)): DOUBLE,
    frozenset((FLOAT, DOUBLE)): DOUBLE,
    frozenset((DATE, TIMESTAMP)): TIMESTAMP,
    frozenset((DATE, TIMESTAMP_NTZ)): TIMESTAMP_NTZ,
    frozenset((TIMESTAMP, TIMESTAMP_NTZ)): TIMESTAMP,
}


def _merge_decimal(a: DataType, b: DataType) -> DataType:
    if {a, b} & {DOUBLE, FLOAT}:
        return DOUBLE
    a, b = (DecimalType(20, 0) if t == LONG else t for t in (a, b))
    if not (isinstance(a, DecimalType) and isinstance(b, DecimalType)):
        return VARIANT
    scale = max(a.scale, b.scale)
    precision = max(a.precision - a.scale, b.precision - b.scale) + scale
    return DOUBLE if precision > 38 else DecimalType(precision, scale)


def _type_text(data_type: DataType) -> str:
    if isinstance(data_type, StructType):
        fields = (f"{_name_text(f.name)}: {_type_text(f.type)}" for f in data_type)
        return f"OBJECT<{', '.join(fields)}>"
    if isinstance(data_type, ArrayType):
        return f"ARRAY<{_type_text(data_type.element)}>"
    name = str(data_type)
    return _SQL_NAMES.get(name, name.upper())


def _name_text(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"
