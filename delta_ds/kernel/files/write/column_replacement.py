"""Write a data file anew with other values in some columns: the bytes of the other columns are copied as they are.

Neither decoding nor encoding happens for columns that stay. Page indexes and Bloom filters, which point to places in
a file, are left out, as in all files that this package writes.
Source: Apache Parquet, parquet.thrift (`FileMetaData`, `RowGroup`, `ColumnChunk`, `ColumnMetaData`).
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa

from delta_ds.exceptions import DataFileError
from delta_ds.kernel.files.write.columns import FileColumns
from delta_ds.kernel.files.write.footer_statistics import check_columns
from delta_ds.kernel.format.expressions.zones import rebase_of

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from delta_ds.kernel.storage.filesystem import Storage

# --- the footer of a Parquet file as a tree, which can be changed and written again
# Arrow reads footers but cannot write one for chunks that are there already.
# Source: Apache Thrift, "Thrift Compact protocol encoding"; Apache Parquet, parquet.thrift.

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


# --- write a data file anew with other values in some columns: the bytes of the other columns are copied as they are

_MAGIC = b"PAR1"
_COPIED_BYTES = 8 << 20
# Writers whose bounds in footers are never cut short, so that statistics can be taken from them.
_EXACT_WRITERS = ("parquet-cpp-arrow version ", "parquet-mr version 1.")

# Fields of parquet.thrift.
_SCHEMA, _ROW_GROUPS, _ENCRYPTION = 2, 4, 8
_ELEMENT_NAME, _ELEMENT_CHILDREN = 4, 5
_CHUNKS, _GROUP_BYTES, _SORTED_BY, _GROUP_OFFSET, _GROUP_COMPRESSED = 1, 2, 4, 5, 6
_CHUNK_FILE, _CHUNK_OFFSET, _CHUNK_METADATA = 1, 2, 3
_CHUNK_PLACES = (4, 5, 6, 7)  # of the offset index and the column index
_CHUNK_CRYPTO = (8, 9)
_PATH, _UNCOMPRESSED, _COMPRESSED = 3, 6, 7
_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE = 9, 10, 11
_BLOOM_FILTER = (14, 15)


def can_replace(footer: pq.FileMetaData, columns: FileColumns, timezone: str) -> bool:
    """Whether the columns of a file are as this package writes them, so that all may be kept as they are.

    Parameters
    ----------
    footer
        Of the file.
    columns
        Those of the table's files.
    timezone
        The session time zone.
    """
    if not (footer.created_by or "").startswith(_EXACT_WRITERS) or rebase_of(footer.metadata, timezone):
        return False
    found = footer.schema.to_arrow_schema()
    try:
        check_columns(list(found), columns.fields, False)
    except DataFileError:
        return False
    return all(found.field(field.name).type == field.type for field in columns.schema)


def replace_columns(
    storage: Storage, path: str, size: int, target: BinaryIO, groups: Iterable[bytes]
) -> None:
    """Write a file with other values in some columns.

    Parameters
    ----------
    storage
        Of the table.
    path, size
        The file as it is, relative to the table and not encoded, with its bytes.
    target
        Where the new file is written to.
    groups
        For each row group of the file a Parquet file of one row group with as many rows: the columns that are replaced,
        none of which is nested.

    Raises
    ------
    ValueError
        The footer cannot be read, or the row groups do not fit.
    """
    with closing(storage.open(path)) as source:
        footer = read_struct(_footer(source, size))
        if _ENCRYPTION in footer:
            raise ValueError("it is encrypted")
        target.write(_MAGIC)
        copy = _Copy(source, target)
        elements: list[Struct] = []
        row_groups = footer[_ROW_GROUPS][1][1]
        for group, data in zip(row_groups, groups, strict=True):
            new = read_struct(_footer(pa.BufferReader(data), len(data)))
            elements = new[_SCHEMA][1][1]
            copy.row_group(group, new[_ROW_GROUPS][1][1], data)
        _replace_elements(footer[_SCHEMA][1][1], elements)
        written = write_struct(footer)
        target.write(written + len(written).to_bytes(4, "little") + _MAGIC)


def _footer(source: Any, size: int) -> bytes:
    source.seek(size - 8)
    tail = source.read(8)
    if tail[4:] != _MAGIC:
        raise ValueError("it does not end as a Parquet file does")
    length = int.from_bytes(tail[:4], "little")
    source.seek(size - 8 - length)
    return bytes(source.read(length))


def _replace_elements(schema: list[Struct], new: Collection[Struct]) -> None:
    """Put the schema elements of the replaced columns into the schema of the file."""
    by_name = {element[_ELEMENT_NAME][1]: element for element in list(new)[1:]}
    at = 1
    while at < len(schema):
        name = schema[at][_ELEMENT_NAME][1]
        if name in by_name:
            schema[at] = by_name.pop(name)
        at = _after(schema, at)
    if by_name:
        raise ValueError(f"it has no columns {sorted(by_name)}")


def _after(schema: list[Struct], at: int) -> int:
    """The place of the element after a column and all that is in it."""
    left = 1
    while left:
        left += schema[at].get(_ELEMENT_CHILDREN, (0, 0))[1] - 1
        at += 1
    return at


class _Copy:
    """Writes the chunks of row groups, one after the other."""

    def __init__(self, source: Any, target: BinaryIO) -> None:
        self._source = source
        self._target = target
        self._at = len(_MAGIC)

    def row_group(self, group: Struct, new: list[Struct], data: bytes) -> None:
        """Write a row group; `group` is changed to say where its chunks are."""
        if len(new) != 1 or new[0][3][1] != group[3][1]:
            raise ValueError("the replaced columns have other rows than the file")
        by_path = {tuple(_about(chunk)[_PATH][1][1]): chunk for chunk in new[0][_CHUNKS][1][1]}
        kind, chunks = group[_CHUNKS][1]
        start, written = self._at, []
        for chunk in chunks:
            about = _about(chunk)
            other = by_path.pop(tuple(about[_PATH][1][1]), None)
            if other is None:
                self._move(chunk, self._source)
                written.append(chunk)
            else:
                self._move(other, pa.BufferReader(data))
                written.append(other)
        if by_path:
            raise ValueError("the file lacks columns that are replaced")
        group[_CHUNKS] = (group[_CHUNKS][0], (kind, written))
        group[_GROUP_BYTES] = (6, sum(_about(chunk)[_UNCOMPRESSED][1] for chunk in written))
        group[_GROUP_OFFSET] = (6, start)
        group[_GROUP_COMPRESSED] = (6, self._at - start)
        group.pop(_SORTED_BY, None)

    def _move(self, chunk: Struct, source: Any) -> None:
        """Copy the bytes of a chunk, and let it say where they are now."""
        about = _about(chunk)
        if _CHUNK_FILE in chunk or any(field in chunk for field in _CHUNK_CRYPTO):
            raise ValueError("it has encrypted columns, or columns in other files")
        first = _first_byte(about)
        moved = self._at - first
        for field in (_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE):
            if field in about and about[field][1] > 0:
                about[field] = (about[field][0], about[field][1] + moved)
        for field in _BLOOM_FILTER:
            about.pop(field, None)
        for field in _CHUNK_PLACES:
            chunk.pop(field, None)
        chunk[_CHUNK_OFFSET] = (chunk[_CHUNK_OFFSET][0], self._at)
        source.seek(first)
        left = about[_COMPRESSED][1]
        while left:
            piece = source.read(min(left, _COPIED_BYTES))
            if not piece:
                raise ValueError("it ends within a column")
            self._target.write(piece)
            self._at += len(piece)
            left -= len(piece)


def _first_byte(about: Struct) -> int:
    """Where a chunk begins: with its dictionary, if it has one. A chunk without rows may have no other page at all."""
    pages = [about[field][1] for field in (_DICTIONARY_PAGE, _DATA_PAGE) if field in about]
    return int(min((place for place in pages if place > 0), default=0))


def _about(chunk: Struct) -> Struct:
    found: Struct = chunk[_CHUNK_METADATA][1]
    return found
