"""Plain Python values as variants, for tests: a second, independent encoder."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from typing import Any


def names_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*(names_in(v) for v in value.values()))
    if isinstance(value, list):
        return set().union(*(names_in(v) for v in value)) if value else set()
    return set()


def metadata_of(names: list[str]) -> bytes:
    """A dictionary with four-byte offsets: the widest form there is."""
    texts = [name.encode() for name in names]
    ends = [sum(map(len, texts[:i])) for i in range(len(texts) + 1)]
    return b"\xc1" + struct.pack(f"<{len(texts) + 2}I", len(texts), *ends) + b"".join(texts)


def value_of(value: Any, names: list[str]) -> bytes:
    if isinstance(value, dict):
        return _container(
            2, [(names.index(k), value_of(v, names)) for k, v in sorted(value.items(), key=_bytes)]
        )
    if isinstance(value, list):
        return _container(3, [(None, value_of(v, names)) for v in value])
    if value is None or isinstance(value, bool):
        return bytes([{None: 0, True: 1, False: 2}[value] << 2])
    if isinstance(value, int):
        return struct.pack("<Bq", 6 << 2, value)
    if isinstance(value, float):
        return struct.pack("<Bd", 7 << 2, value)
    if isinstance(value, Decimal):
        scale = max(0, -int(value.as_tuple().exponent))
        return bytes([10 << 2, scale]) + int(value.scaleb(scale)).to_bytes(16, "little", signed=True)
    if isinstance(value, dt.date):
        return struct.pack("<Bi", 11 << 2, value.toordinal() - 719_163)
    kind, data = (16, value.encode()) if isinstance(value, str) else (15, value)
    return struct.pack("<BI", kind << 2, len(data)) + data


def _bytes(item: tuple[str, Any]) -> bytes:
    return item[0].encode()


def _container(basic: int, entries: list[tuple[int | None, bytes]]) -> bytes:
    """An object or array in its large form, with offsets and ids of four bytes."""
    is_object = basic == 2
    header = basic | (3 | (3 << 2 | 1 << 4 if is_object else 1 << 2)) << 2
    ends = [sum(len(v) for _, v in entries[:i]) for i in range(len(entries) + 1)]
    ids = b"".join(struct.pack("<I", i) for i, _ in entries if i is not None)
    offsets = struct.pack(f"<{len(ends)}I", *ends)
    return struct.pack("<BI", header, len(entries)) + ids + offsets + b"".join(v for _, v in entries)


def variant_of(value: Any) -> tuple[bytes, bytes]:
    """(value, metadata) of a Python value."""
    names = sorted(names_in(value))
    return value_of(value, names), metadata_of(names)
