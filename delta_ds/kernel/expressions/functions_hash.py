"""Hashes of Arrow values, by Spark's names.

`hash` is Spark's Murmur3 (seed 42), which differs from the original in how it takes the last bytes.
Source: Spark, `Murmur3_x86_32`, `HashExpression`.
"""

from __future__ import annotations

import hashlib
import math
import struct
import zlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from delta_ds.kernel.expressions.arrays import array_of, map_rows, micros, spread, unscaled, values_of
from delta_ds.kernel.expressions.casts import Value
from delta_ds.kernel.expressions.tree import Call
from delta_ds.kernel.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
)

_MASK = 0xFFFFFFFF
_EPOCH_DAY = 719163  # 1970-01-01, counted as Python counts days
_SEED = 42


def _mix(h: int, word: int) -> int:
    word = word * 0xCC9E2D51 & _MASK
    word = ((word << 15 | word >> 17) & _MASK) * 0x1B873593 & _MASK
    h ^= word
    h = (h << 13 | h >> 19) & _MASK
    return (h * 5 + 0xE6546B64) & _MASK


def _finish(h: int, length: int) -> int:
    h ^= length
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    return h ^ h >> 16


def murmur3(data: bytes, seed: int) -> int:
    """Spark's Murmur3 of some bytes as an unsigned 32-bit number; the bytes after the last full word are
    mixed in one by one, with their sign."""
    h, aligned = seed, len(data) // 4 * 4
    for (word,) in struct.iter_unpack("<I", data[:aligned]):
        h = _mix(h, word)
    for byte in data[aligned:]:
        h = _mix(h, (byte - 256 if byte > 127 else byte) & _MASK)
    return _finish(h, len(data))


def _hash_bytes(value: Any, data_type: DataType) -> bytes:
    """The bytes of a value that Spark hashes."""
    if data_type == STRING:
        return bytes(value.encode())
    if isinstance(value, bytes):
        return value
    if data_type == FLOAT:
        return struct.pack("<f", math.nan if math.isnan(value) else value + 0.0)
    if data_type == DOUBLE:
        return struct.pack("<d", math.nan if math.isnan(value) else value + 0.0)
    if isinstance(data_type, DecimalType):
        number = unscaled(Decimal(value), data_type.scale)
        if data_type.precision <= 18:
            return struct.pack("<q", number)
        bits = (number if number >= 0 else ~number).bit_length()
        return number.to_bytes(bits // 8 + 1, "big", signed=True)
    if data_type in (TIMESTAMP, TIMESTAMP_NTZ):
        return struct.pack("<q", micros(value))
    if data_type == DATE:
        return struct.pack("<i", value.toordinal() - _EPOCH_DAY)
    return struct.pack("<q" if data_type == LONG else "<i", int(value) if data_type == BOOLEAN else value)


def _hash(node: Call, args: list[Any]) -> Value:
    """Each argument's hash is the seed of the next; nulls leave it as it is."""
    length = next((len(a) for a in args if not isinstance(a, pa.Scalar)), 1)
    seeds = [_SEED] * length
    for arg, value in zip(node.args, args, strict=True):
        assert arg.type is not None
        items = values_of(spread(value, length), arg.type)
        cache: dict[tuple[Any, int], int] = {}
        for row, item in enumerate(items):
            if item is None:
                continue
            key = (_hash_bytes(item, arg.type), seeds[row])
            if key not in cache:
                cache[key] = murmur3(*key)
            seeds[row] = cache[key]
    result = array_of([s - (1 << 32) if s >> 31 else s for s in seeds], INTEGER)
    return result[0] if all(isinstance(a, pa.Scalar) for a in args) else result


def _sha2(data: bytes, bits: int) -> str | None:
    functions = {
        0: hashlib.sha256, 224: hashlib.sha224, 256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512,
    }  # fmt: skip
    return functions[bits](data).hexdigest() if bits in functions else None


def _rows(function: Callable[..., Any]) -> Callable[[Call, list[Any]], Value]:
    def run(node: Call, args: list[Any]) -> Value:
        assert node.type is not None
        return map_rows(function, args, [a.type for a in node.args if a.type is not None], node.type)

    return run


RUN: dict[str, Callable[[Call, list[Any]], Value]] = {
    "hash": _hash,
    "md5": _rows(lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest()),
    "sha1": _rows(lambda data: hashlib.sha1(data, usedforsecurity=False).hexdigest()),
    "sha2": _rows(_sha2),
    "crc32": _rows(zlib.crc32),
}
