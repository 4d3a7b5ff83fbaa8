"""Variant columns of a file: shredded fields put back together.

A file holds a variant as `metadata`, `value` and, where shredded, `typed_value`; the table's column is
`struct<value, metadata>`. A file without `typed_value` costs nothing. Where there is one, leaves are encoded
column by column and objects joined row by row.
Source: Apache Parquet, "Variant Shredding"; PROTOCOL.md, "Variant Shredding" (protocol-checklist 26).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import DataFileError
from delta_ds.kernel.data import variant
from delta_ds.kernel.expressions.arrays import scalar_of
from delta_ds.kernel.schema.types import BINARY, VARIANT, arrow_type

Converter = Callable[[pa.Array], pa.Array]
Encoded = list[bytes | None]  # one encoded value per row; None where the value is missing
_NULL = b"\0"
_NO_VALUE, _NO_NAMES = scalar_of(_NULL, BINARY), scalar_of(b"\1\0\0", BINARY)
_DECIMALS = ((variant.DECIMAL4, 4, 9), (variant.DECIMAL8, 8, 18), (variant.DECIMAL16, 16, 38))
_UTF8 = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)


def converter(file_type: pa.DataType, path: str) -> Converter:
    """The conversion of a file's variant column to `struct<value, metadata>`.

    Raises
    ------
    DataFileError
        The file's column is no variant; names the column by `path`.
    """
    names = {f.name for f in file_type} if pa.types.is_struct(file_type) else set()
    if "metadata" not in names or not {"value", "typed_value"} & names:
        raise DataFileError(
            f"column {path} is {file_type} in the file, which is no variant",
            condition="FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH",
            parameters={"column": path, "expectedType": "variant", "actualType": str(file_type)},
        )
    return _rebuild if "typed_value" in names else _rename


def _parts(array: pa.StructArray) -> dict[str, pa.Array]:
    """The fields by name, null where the struct is: below it Arrow leaves required ones empty instead."""
    return dict(zip((f.name for f in array.type), array.flatten(), strict=True))


def _rename(array: pa.StructArray) -> pa.Array:
    parts = _parts(array)
    return _variants(parts["value"], parts["metadata"], array)


def _variants(value: pa.Array, metadata: pa.Array, like: pa.Array) -> pa.Array:
    mask = like.is_null() if like.null_count else None
    # Below a null struct, and for a missing value, the parts are null, which the type does not allow.
    value = value.cast(pa.binary()).fill_null(_NO_VALUE)
    metadata = metadata.cast(pa.binary()).fill_null(_NO_NAMES)
    return pa.StructArray.from_arrays([value, metadata], fields=list(arrow_type(VARIANT)), mask=mask)


def _rebuild(array: pa.StructArray) -> pa.Array:
    encoded = _parts(array)["metadata"].dictionary_encode()
    dictionaries = [Dictionary(metadata) for metadata in encoded.dictionary.to_pylist()]
    rows = [None if i is None else dictionaries[i] for i in encoded.indices.to_pylist()]
    values = _node(array, rows)
    metadata = _binary([d.to_bytes() for d in dictionaries]).take(encoded.indices)
    return _variants(_binary(values), metadata, array)


def _binary(values: Sequence[bytes | None]) -> pa.Array:
    """A binary array; where a value is missing, variant null."""
    chunks = [_NULL if value is None else value for value in values]
    ends = np.cumsum([0, *map(len, chunks)], dtype=np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(chunks), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(chunks))]
    )


class Dictionary:
    """The field names of one distinct metadata, which grows where a shredded field is not in it."""

    __slots__ = ("_ids", "_metadata", "names", "used")

    def __init__(self, metadata: bytes) -> None:
        self._metadata = metadata
        self.names = variant.dictionary(metadata)
        self._ids = {name: i for i, name in enumerate(self.names)}
        self.used = len(self.names)

    def id_of(self, name: str) -> int:
        found = self._ids.get(name)
        if found is None:
            found = self._ids[name] = len(self.names)
            self.names.append(name)
        return found

    def to_bytes(self) -> bytes:
        if len(self.names) == self.used:
            return self._metadata
        texts = [name.encode() for name in self.names]
        ends = _offsets(texts)
        width = _width(max(ends[-1], len(texts)))
        header = bytes([1 | (width - 1) << 6])
        return header + len(texts).to_bytes(width, "little") + _pack(ends, width) + b"".join(texts)


def _node(array: pa.StructArray, rows: list[Dictionary | None]) -> Encoded:
    """The values of one shredded group (`value` and `typed_value`), one per row."""
    parts = _parts(array)
    residual: Encoded = parts["value"].to_pylist() if "value" in parts else [None] * len(array)
    typed = parts.get("typed_value")
    if typed is None:
        return residual
    if pa.types.is_struct(typed.type):
        return _objects(typed, residual, rows)
    if pa.types.is_list(typed.type) or pa.types.is_large_list(typed.type):
        shredded = _arrays(typed, rows)
    else:
        shredded = encode_scalars(typed)
    return [rest if one is None else one for one, rest in zip(shredded, residual, strict=True)]


def _objects(typed: pa.StructArray, residual: Encoded, rows: list[Dictionary | None]) -> Encoded:
    fields = [(name, _node(part, rows)) for name, part in _parts(typed).items()]
    out: Encoded = []
    for i, is_object in enumerate(typed.is_valid().to_pylist()):
        names = rows[i]
        rest = residual[i]
        if not is_object or names is None:
            out.append(rest)
            continue
        entries = dict(_rest_fields(rest, names)) if rest is not None else {}
        for name, column in fields:
            one = column[i]
            if one is not None:
                entries[name] = one
        out.append(_object(entries, names))
    return out


def _rest_fields(rest: bytes, names: Dictionary) -> Iterable[tuple[str, bytes]]:
    if rest[0] & 3 != variant.OBJECT:
        raise DataFileError(
            "a variant is shredded as an object, but its residual value is none",
            condition="MALFORMED_VARIANT",
        )
    for name, at in variant.object_fields(rest, 0, names.names):
        yield name, rest[at : at + variant.size(rest, at)]


def _arrays(typed: pa.Array, rows: list[Dictionary | None]) -> Encoded:
    lengths = pc.list_value_length(typed).to_pylist()
    repeated = [rows[i] for i, length in enumerate(lengths) if length for _ in range(length)]
    elements = iter(_node(typed.flatten(), repeated))
    out: Encoded = []
    for length in lengths:
        if length is None:
            out.append(None)
        else:
            # An element must be there; where it is missing the specification reads it as variant null.
            out.append(_array([next(elements) or _NULL for _ in range(length)]))
    return out


def _object(entries: dict[str, bytes], names: Dictionary) -> bytes:
    ordered = sorted(entries.items(), key=lambda entry: entry[0].encode())
    ids = [names.id_of(name) for name, _ in ordered]
    values = [value for _, value in ordered]
    ends = _offsets(values)
    id_width, width = _width(max(ids, default=0)), _width(ends[-1])
    large = len(ids) > 255
    header = variant.OBJECT | ((width - 1) | (id_width - 1) << 2 | large << 4) << 2
    count = len(ids).to_bytes(4 if large else 1, "little")
    return bytes([header]) + count + _pack(ids, id_width) + _pack(ends, width) + b"".join(values)


def _array(values: list[bytes]) -> bytes:
    ends = _offsets(values)
    width = _width(ends[-1])
    large = len(values) > 255
    header = variant.ARRAY | ((width - 1) | large << 2) << 2
    count = len(values).to_bytes(4 if large else 1, "little")
    return bytes([header]) + count + _pack(ends, width) + b"".join(values)


def _offsets(values: list[bytes]) -> list[int]:
    out = [0]
    for value in values:
        out.append(out[-1] + len(value))
    return out


def _width(largest: int) -> int:
    return max(1, (largest.bit_length() + 7) // 8)


def _pack(numbers: list[int], width: int) -> bytes:
    return b"".join(number.to_bytes(width, "little") for number in numbers)


def encode_scalars(typed: pa.Array) -> Encoded:
    """The variant encoding of each value of a shredded primitive column.

    Integers and decimals take the smallest form that holds them, as Spark rebuilds them.

    Raises
    ------
    DataFileError
        The column's type is none that a variant can be shredded to.
    """
    kind = typed.type
    encode = _encoder(kind)
    if encode is None:
        raise DataFileError(f"a variant is shredded as {kind}, which no variant type is")
    plain = typed
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        plain = typed.view(pa.int64())
    elif pa.types.is_date32(kind):
        plain = typed.view(pa.int32())
    elif any(is_kind(kind) for is_kind in _UTF8):
        plain = typed.cast(pa.string()).view(pa.binary())
    return [None if value is None else encode(value) for value in plain.to_pylist()]


def _encoder(kind: pa.DataType) -> Callable[..., bytes] | None:
    if pa.types.is_boolean(kind):
        return lambda value: bytes([(variant.TRUE if value else variant.FALSE) << 2])
    if pa.types.is_signed_integer(kind):
        return _integer
    if pa.types.is_decimal(kind):
        return lambda value: _decimal(value, kind.scale)
    if any(is_kind(kind) for is_kind in _UTF8):
        return _string
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return lambda value: bytes([variant.BINARY_ID << 2]) + struct.pack("<I", len(value)) + value
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16:
        return lambda value: bytes([variant.UUID_ID << 2]) + value
    fixed = _fixed_type(kind)
    return None if fixed is None else lambda value: struct.pack(fixed[0], fixed[1] << 2, value)


def _fixed_type(kind: pa.DataType) -> tuple[str, int] | None:
    if pa.types.is_float32(kind):
        return "<Bf", variant.FLOAT_ID
    if pa.types.is_float64(kind):
        return "<Bd", variant.DOUBLE_ID
    if pa.types.is_date32(kind):
        return "<Bi", variant.DATE_ID
    if kind == pa.time64("us"):
        return "<Bq", variant.TIME_ID
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return "<Bq", variant.TIMESTAMP_ID if kind.tz else variant.TIMESTAMP_NTZ_ID
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return "<Bq", variant.TIMESTAMP_NANOS_ID if kind.tz else variant.TIMESTAMP_NTZ_NANOS_ID
    return None


def _integer(value: int) -> bytes:
    if -128 <= value < 128:
        return struct.pack("<Bb", variant.INT8 << 2, value)
    if -32768 <= value < 32768:
        return struct.pack("<Bh", variant.INT16 << 2, value)
    if -(1 << 31) <= value < 1 << 31:
        return struct.pack("<Bi", variant.INT32 << 2, value)
    return struct.pack("<Bq", variant.INT64 << 2, value)


def _decimal(value: Decimal, scale: int) -> bytes:
    sign, coefficient, _ = value.as_tuple()  # Arrow gives every value at the type's scale
    unscaled = int("".join(map(str, coefficient))) * (-1 if sign else 1)
    digits = max(len(str(abs(unscaled))), scale)
    kind, width = next((k, w) for k, w, most in _DECIMALS if digits <= most)
    return bytes([kind << 2, scale]) + unscaled.to_bytes(width, "little", signed=True)


def _string(value: bytes) -> bytes:
    if len(value) < 64:
        return bytes([len(value) << 2 | variant.SHORT_STRING]) + value
    return bytes([variant.STRING_ID << 2]) + struct.pack("<I", len(value)) + value
