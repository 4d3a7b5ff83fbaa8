"""Hashes of Arrow values, by Spark's names.

`hash` is Spark's Murmur3 (seed 42), which differs from the original in how it takes the last bytes; `xxhash64` is XXH64
with that seed. Source: Spark, `Murmur3_x86_32`, `XXH64`, `HashExpression`.
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

from delta_ds.kernel.format.expressions.arrays import array_of, map_rows, plain_values, spread, unscaled
from delta_ds.kernel.format.expressions.casts import Value
from delta_ds.kernel.format.expressions.tree import Call
from delta_ds.kernel.format.schema.types import (
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
)

_MASK = 0xFFFFFFFF
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
    wide = data_type in (LONG, TIMESTAMP, TIMESTAMP_NTZ)
    return struct.pack("<q" if wide else "<i", int(value))


_WIDE = 0xFFFFFFFFFFFFFFFF
_PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)


def _turned(x: int, by: int) -> int:
    return (x << by | x >> (64 - by)) & _WIDE


def _round64(seed: int, word: int) -> int:
    return _turned((seed + word * _PRIMES[1]) & _WIDE, 31) * _PRIMES[0] & _WIDE


def xxh64(data: bytes, seed: int) -> int:
    """XXH64 of some bytes as an unsigned number."""
    p1, p2, p3, p4, p5 = _PRIMES
    at = len(data) // 32 * 32
    if at:
        lanes = [(seed + p1 + p2) & _WIDE, (seed + p2) & _WIDE, seed, (seed - p1) & _WIDE]
        for words in struct.iter_unpack("<4Q", data[:at]):
            lanes = [_round64(lane, word) for lane, word in zip(lanes, words, strict=True)]
        h = sum(_turned(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _WIDE
        for lane in lanes:
            h = ((h ^ _round64(0, lane)) * p1 + p4) & _WIDE
    else:
        h = (seed + p5) & _WIDE
    h = (h + len(data)) & _WIDE
    while at + 8 <= len(data):
        h = (_turned(h ^ _round64(0, int.from_bytes(data[at : at + 8], "little")), 27) * p1 + p4) & _WIDE
        at += 8
    if at + 4 <= len(data):
        h = (_turned(h ^ int.from_bytes(data[at : at + 4], "little") * p1 & _WIDE, 23) * p2 + p3) & _WIDE
        at += 4
    for byte in data[at:]:
        h = _turned(h ^ byte * p5 & _WIDE, 11) * p1 & _WIDE
    h = (h ^ h >> 33) * p2 & _WIDE
    h = (h ^ h >> 29) * p3 & _WIDE
    return h ^ h >> 32


def _hash(
    function: Callable[[bytes, int], int], result: DataType, bits: int
) -> Callable[[Call, list[Any]], Value]:
    """Each argument's hash is the seed of the next; nulls leave it as it is."""

    def run(node: Call, args: list[Any]) -> Value:
        length = next((len(a) for a in args if not isinstance(a, pa.Scalar)), 1)
        seeds = [_SEED] * length
        for arg, value in zip(node.args, args, strict=True):
            assert arg.type is not None
            if arg.type == VOID:
                continue
            items = plain_values(spread(value, length), arg.type)
            cache: dict[tuple[Any, int], int] = {}
            for row, item in enumerate(items):
                if item is None:
                    continue
                key = (_hash_bytes(item, arg.type), seeds[row])
                if key not in cache:
                    cache[key] = function(*key)
                seeds[row] = cache[key]
        found = array_of([s - (1 << bits) if s >> (bits - 1) else s for s in seeds], result)
        return found[0] if all(isinstance(a, pa.Scalar) for a in args) else found

    return run


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
    "hash": _hash(murmur3, INTEGER, 32),
    "xxhash64": _hash(xxh64, LONG, 64),
    "md5": _rows(lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest()),
    "sha1": _rows(lambda data: hashlib.sha1(data, usedforsecurity=False).hexdigest()),
    "sha2": _rows(_sha2),
    "crc32": _rows(zlib.crc32),
}
