"""The footer of a Parquet file as a tree, which can be changed and written again.

Arrow reads footers but cannot write one for chunks that are there already.
Source: Apache Thrift, "Thrift Compact protocol encoding"; Apache Parquet, parquet.thrift.
"""

from __future__ import annotations

import struct
from typing import Any

# Types of the compact protocol. A boolean field has its value in its type.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)

# A struct: by the number of a field its type and value. Lists are a type and values.
Struct = dict[int, tuple[int, Any]]


def read_struct(data: bytes) -> Struct:
    """The struct that bytes begin with.

    Raises
    ------
    ValueError
        They are none.
    """
    try:
        return _Reader(data).struct()
    except (IndexError, struct.error, RecursionError) as error:
        raise ValueError("it is no struct of Thrift's compact protocol") from error


def write_struct(value: Struct) -> bytes:
    """The bytes of a struct, such that `read_struct` gives it again."""
    out = bytearray()
    _write_struct(out, value)
    return bytes(out)


class _Reader:
    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _byte(self) -> int:
        byte = self._data[self._at]
        self._at += 1
        return byte

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    def _zigzag(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _bytes(self, length: int) -> bytes:
        end = self._at + length
        if end > len(self._data):
            raise IndexError(end)
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while head := self._byte():
            kind, delta = head & 0x0F, head >> 4
            number = number + delta if delta else self._zigzag()
            fields[number] = kind, self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind in (_I16, _I32, _I64):
            return self._zigzag()
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _STRUCT:
            return self.struct()
        if kind in (_LIST, _SET):
            return self._list()
        if kind == _BYTE:
            return self._byte()
        if kind == _DOUBLE:
            return struct.unpack("<d", self._bytes(8))[0]
        raise ValueError(f"a footer has no values of the type {kind}")

    def _list(self) -> tuple[int, list[Any]]:
        head = self._byte()
        kind, size = head & 0x0F, head >> 4
        if size == 15:
            size = self._varint()
        if kind in (_TRUE, _FALSE):
            return kind, [self._byte() == _TRUE for _ in range(size)]
        return kind, [self._value(kind) for _ in range(size)]


def _write_struct(out: bytearray, value: Struct) -> None:
    last = 0
    for number, (kind, content) in sorted(value.items()):
        if kind in (_TRUE, _FALSE):
            kind = _TRUE if content else _FALSE
        if 0 < number - last <= 15:
            out.append((number - last) << 4 | kind)
        else:
            out.append(kind)
            _write_zigzag(out, number)
        last = number
        if kind not in (_TRUE, _FALSE):
            _write_value(out, kind, content)
    out.append(0)


def _write_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write_zigzag(out: bytearray, value: int) -> None:
    _write_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)


def _write_value(out: bytearray, kind: int, content: Any) -> None:
    if kind in (_I16, _I32, _I64):
        _write_zigzag(out, content)
    elif kind == _BINARY:
        _write_varint(out, len(content))
        out += content
    elif kind == _STRUCT:
        _write_struct(out, content)
    elif kind in (_LIST, _SET):
        _write_list(out, *content)
    elif kind == _BYTE:
        out.append(content)
    else:
        out += struct.pack("<d", content)


def _write_list(out: bytearray, kind: int, values: list[Any]) -> None:
    if len(values) < 15:
        out.append(len(values) << 4 | kind)
    else:
        out.append(0xF0 | kind)
        _write_varint(out, len(values))
    for value in values:
        if kind in (_TRUE, _FALSE):
            out.append(_TRUE if value else _FALSE)
        else:
            _write_value(out, kind, value)
