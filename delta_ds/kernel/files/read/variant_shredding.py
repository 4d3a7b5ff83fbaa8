"""Reassemble shredded variant columns.

A file holds a variant as `metadata`, `value` and, where shredded, `typed_value`; the table's column is
`struct<value, metadata>`. A file without `typed_value` costs nothing; where there is one, columns are encoded
and joined as a whole. Only objects with fields left in `value` are merged one by one.
Source: Apache Parquet, "Variant Shredding"; PROTOCOL.md, "Variant Shredding" (protocol-checklist section 26).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.data import FAILED_READ_FILE_NO_VARIANT, MALFORMED_SHREDDED_VARIANT
from delta_ds.kernel.base.arrow_buffers import mask
from delta_ds.kernel.format.expressions.arrays import array_of, scalar_of
from delta_ds.kernel.format.schema.types import BINARY, VARIANT, arrow_type
from delta_ds.kernel.format.values import variant
from delta_ds.kernel.format.values import variant_columns as columns
from delta_ds.kernel.format.values.variant_columns import Numbers

Converter = Callable[[pa.Array], pa.Array]
_NO_NAMES = scalar_of(b"\1\0\0", BINARY)


def variant_converter(file_type: pa.DataType, path: str) -> Converter:
    """The conversion of a file's variant column to `struct<value, metadata>`.

    Raises
    ------
    DataFileError
        The file's column is no variant; names the column by `path`.
    """
    names = {f.name for f in file_type} if pa.types.is_struct(file_type) else set()
    if "metadata" not in names or not {"value", "typed_value"} & names:
        raise FAILED_READ_FILE_NO_VARIANT(column=path, actualType=str(file_type), expectedType="variant")
    return _rebuild if "typed_value" in names else _rename


def _parts(array: pa.StructArray) -> dict[str, pa.Array]:
    """The fields by name, null where the struct is: below it Arrow leaves required ones empty instead."""
    return dict(zip((f.name for f in array.type), array.flatten(), strict=True))


def _rename(array: pa.StructArray) -> pa.Array:
    parts = _parts(array)
    return _variants(parts["value"], parts["metadata"], array)


def _variants(value: pa.Array, metadata: pa.Array, like: pa.Array) -> pa.Array:
    null = like.is_null() if like.null_count else None
    # Below a null struct the parts are null, which the type does not allow. A variant without any value is
    # variant null, as the specification wants it.
    value = pc.fill_null(value.cast(pa.binary()), columns.NULL)
    metadata = pc.fill_null(metadata.cast(pa.binary()), _NO_NAMES)
    return pa.StructArray.from_arrays([value, metadata], fields=list(arrow_type(VARIANT)), mask=null)


def _rebuild(array: pa.StructArray) -> pa.Array:
    if not len(array):
        return pa.nulls(0, arrow_type(VARIANT))
    encoded = _parts(array)["metadata"].cast(pa.binary()).dictionary_encode()
    names = [Dictionary(metadata) for metadata in encoded.dictionary.to_pylist()]
    # Null variants have no dictionary; any will do for them.
    which = np.where(columns.valid(encoded.indices), columns.numbers(encoded.indices, "<i4"), 0)
    values = _node(array, _Names(names, which))
    metadata = array_of([d.to_bytes() for d in names], BINARY).take(encoded.indices)
    return _variants(values, metadata, array)


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
        ends = _ends(texts)
        width = columns.width_of(max(ends[-1], len(texts)))
        header = bytes([1 | (width - 1) << 6])
        return header + len(texts).to_bytes(width, "little") + _pack(ends, width) + b"".join(texts)


class _Names:
    """The dictionary of each row: all distinct ones, and the number of each row's."""

    __slots__ = ("dictionaries", "which")

    def __init__(self, dictionaries: list[Dictionary], which: Numbers) -> None:
        self.dictionaries = dictionaries
        self.which = which

    def repeated(self, counts: Numbers) -> _Names:
        return _Names(self.dictionaries, np.repeat(self.which, counts))

    def of(self, row: int) -> Dictionary:
        found: int = self.which[row]
        return self.dictionaries[found]

    def ids(self, name: str, rows: Numbers) -> Numbers:
        """The id of a field name in the dictionary of each row; only `rows` (a mask) need have one."""
        by_dictionary = np.zeros(len(self.dictionaries) or 1, np.int64)
        for used in np.unique(self.which[rows]):
            by_dictionary[used] = self.dictionaries[used].id_of(name)
        return by_dictionary[self.which]


def _node(array: pa.StructArray, names: _Names) -> pa.Array:
    """The encoded values of one shredded group (`value` and `typed_value`), null where both are."""
    if not len(array):
        return pa.nulls(0, pa.binary())
    parts = _parts(array)
    rest = parts["value"].cast(pa.binary()) if "value" in parts else pa.nulls(len(array), pa.binary())
    typed = parts.get("typed_value")
    if typed is None:
        return rest
    if pa.types.is_struct(typed.type):
        return _objects(typed, rest, names)
    if pa.types.is_list(typed.type):
        return pc.coalesce(_arrays(typed, names), rest)
    return pc.coalesce(columns.scalars(typed), rest)


def _objects(typed: pa.StructArray, rest: pa.Array, names: _Names) -> pa.Array:
    parts = sorted(_parts(typed).items(), key=lambda part: part[0].encode())
    fields = {name: _node(part, names) for name, part in parts}
    ids = [names.ids(name, columns.valid(field)) for name, field in fields.items()]
    encoded = columns.objects(list(fields.values()), np.stack(ids, axis=1))
    is_object, has_rest = columns.valid(typed), columns.valid(rest)
    encoded = pc.coalesce(columns.null_where_absent(encoded, is_object), rest)
    both = np.flatnonzero(is_object & has_rest)
    if not len(both):
        return encoded
    merged = [_merge_object(fields, rest, int(row), names.of(int(row))) for row in both]
    return pc.replace_with_mask(encoded, mask(is_object & has_rest), array_of(merged, BINARY))


def _merge_object(fields: dict[str, pa.Array], rest: pa.Array, row: int, names: Dictionary) -> bytes:
    """The object of one row whose `value` holds fields too; shredded ones win."""
    entries = dict(_rest_fields(rest[row].as_py(), names))
    for name, field in fields.items():
        one = field[row].as_py()
        if one is not None:
            entries[name] = one
    return _object(entries, names)


def _rest_fields(rest: bytes, names: Dictionary) -> Iterable[tuple[str, bytes]]:
    if rest[0] & 3 != variant.OBJECT:
        raise MALFORMED_SHREDDED_VARIANT()
    for name, at in variant.object_fields(rest, 0, names.names):
        yield name, rest[at : at + variant.size(rest, at)]


def _arrays(typed: pa.ListArray, names: _Names) -> pa.Array:
    present = columns.valid(typed)
    counts = np.where(present, np.diff(columns.numbers(typed.offsets, "<i4")), 0).astype(np.int64)
    elements = _node(typed.flatten(), names.repeated(counts))
    return columns.null_where_absent(columns.arrays(elements, counts), present)


def _object(entries: dict[str, bytes], names: Dictionary) -> bytes:
    ordered = sorted(entries.items(), key=lambda entry: entry[0].encode())
    ids = [names.id_of(name) for name, _ in ordered]
    values = [value for _, value in ordered]
    ends = _ends(values)
    id_width, width = columns.width_of(max(ids, default=0)), columns.width_of(ends[-1])
    large = len(ids) > 255
    header = variant.OBJECT | ((width - 1) | (id_width - 1) << 2 | large << 4) << 2
    count = struct.pack("<I" if large else "<B", len(ids))
    return bytes([header]) + count + _pack(ids, id_width) + _pack(ends, width) + b"".join(values)


def _ends(values: list[bytes]) -> list[int]:
    out = [0]
    for value in values:
        out.append(out[-1] + len(value))
    return out


def _pack(numbers: list[int], width: int) -> bytes:
    return b"".join(number.to_bytes(width, "little") for number in numbers)
