"""Nested Arrow arrays from their buffers: structs, lists and maps; and those of any layout in the plain one.

pyarrow's own conversion of Python values imports pandas wherever it is installed, and Arrow's JSON reader
knows no maps: both are needed to write a checkpoint.

In the plain layout lists have int32 offsets from 0 over exactly the child values they use. Else a slice keeps the
children of the whole, a null may stand over values that do not count, views share and reorder theirs, and a cast of a
slice can leave children behind that begin after their own end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import InvariantViolationError
from delta_ds.kernel.base.arrow_buffers import (
    bitmap,
    byte_values,
    flags,
    integers,
    mask,
    numbers,
    offsets,
    texts,
)


def array_of_values(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow array of Python values, None for null.

    Parameters
    ----------
    values
        Texts, whole numbers, truth values; sequences for lists; mappings for maps and structs, where what a
        struct does not name is dropped and what the mapping lacks is null.
    kind
        string, int32, int64, bool, and lists, maps and structs of them.
    """
    if all(value is None for value in values):
        return pa.nulls(len(values), kind)
    valid = np.array([value is not None for value in values])
    if pa.types.is_struct(kind):
        children = [array_of_values([v and v.get(f.name) for v in values], f.type) for f in kind]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask(~valid))
    if pa.types.is_list(kind):
        inner = array_of_values([item for value in values for item in value or ()], kind.value_type)
        return _with_offsets(kind, valid, [len(value or ()) for value in values], inner)
    if pa.types.is_map(kind):
        pairs = [pair for value in values for pair in (value or {}).items()]
        keys = array_of_values([key for key, _ in pairs], kind.key_type)
        items = array_of_values([item for _, item in pairs], kind.item_type)
        return _with_offsets(kind, valid, [len(value or ()) for value in values], _entries(kind, keys, items))
    return _flat(values, valid, kind)


def _flat(values: Sequence[Any], valid: Any, kind: pa.DataType) -> pa.Array:
    bits = None if valid.all() else bitmap(valid)
    if pa.types.is_string(kind):
        return byte_values([(value or "").encode() for value in values], kind, bits)
    if pa.types.is_boolean(kind):
        return pa.Array.from_buffers(kind, len(values), [bits, bitmap([bool(v) for v in values])])
    numbers = np.array([value or 0 for value in values], dtype=f"i{kind.bit_width // 8}")
    return pa.Array.from_buffers(kind, len(values), [bits, pa.py_buffer(numbers)])


def _entries(kind: pa.MapType, keys: pa.Array, items: pa.Array) -> pa.StructArray:
    fields = [pa.field("key", kind.key_type, nullable=False), kind.item_field]
    return pa.StructArray.from_arrays([keys, items], fields=fields)


def _with_offsets(kind: pa.DataType, valid: Any, lengths: Sequence[int], inner: pa.Array) -> pa.Array:
    bits = None if valid.all() else bitmap(valid)
    return pa.Array.from_buffers(kind, len(lengths), [bits, offsets(lengths)], children=[inner])


def map_of_struct(values: pa.StructArray, always: Callable[[str], bool], kind: pa.MapType) -> pa.MapArray:
    """A struct of texts as a map from its field names.

    Parameters
    ----------
    values
        A struct of strings; a null struct gives a null map.
    always
        Whether a field is a key of every map, with null where the field is; the others only where they have a
        value, since a struct does not tell an absent key from a null one.
    kind
        `map<string, string>`.
    """
    names = [field.name for field in values.type]
    rows, width = len(values), len(names)
    whole = flags(values.is_valid()) if rows else np.zeros(0, bool)
    if rows == 0 or width == 0:
        return _with_offsets(kind, whole, [0] * rows, _no_entries(kind))
    columns = [values.field(i) for i in range(width)]
    present = np.empty((rows, width), dtype=bool)
    for i, (name, column) in enumerate(zip(names, columns, strict=True)):
        present[:, i] = whole if always(name) else whole & flags(column.is_valid())
    # Row by row, the cells that are there; a cell of a column lies rows further than that of the one before.
    cells = np.flatnonzero(present.ravel())
    row, column_of = cells // width, cells % width
    keys = texts(names).take(integers(column_of))
    items = columns[0] if width == 1 else pa.concat_arrays(columns)
    if not (width == 1 and len(cells) == rows):
        items = items.take(integers(column_of * rows + row))
    return _with_offsets(kind, whole, present.sum(axis=1), _entries(kind, keys, items))


def _no_entries(kind: pa.MapType) -> pa.StructArray:
    return _entries(kind, pa.nulls(0, kind.key_type), pa.nulls(0, kind.item_type))


def as_text_map(values: pa.Array, kind: pa.MapType) -> pa.MapArray:
    """A map read from Parquet under whatever names as a map of the wanted type."""
    return values if values.type == kind else values.cast(kind)


def split_at_changes(keys: Sequence[Any]) -> list[tuple[int, int]]:
    """The runs (start, end) of equal neighbours, in order."""
    runs, start = [], 0
    for _, group in itertools.groupby(keys):
        length = sum(1 for _ in group)
        runs.append((start, start + length))
        start += length
    return runs


def plain_map(value: Any) -> dict[str, Any]:
    """A map as a dictionary, also where Arrow handed it out as pairs, or nothing where it was empty."""
    if isinstance(value, Mapping):
        return dict(value)
    return dict(value) if isinstance(value, list) and all(isinstance(pair, tuple) for pair in value) else {}


_MOST_VALUES = (1 << 31) - 1


def plain_lists(array: pa.Array) -> pa.ListArray:
    """A list array of any layout as a `list`."""
    if pa.types.is_list(array.type) and _is_plain(array):
        return array
    values = array.flatten()
    if len(values) > _MOST_VALUES:
        raise InvariantViolationError(
            f"{len(array)} rows hold {len(values)} list elements, more than one batch can; write fewer rows a batch"
        )
    return _by_offsets(pa.list_(array.type.value_field), array, pc.list_value_length(array), values)


def plain_maps(array: pa.MapArray) -> pa.MapArray:
    """A map array over exactly the entries that it uses."""
    if _is_plain(array):
        return array
    entries = array.values
    kind = pa.list_(pa.field("entries", entries.type, nullable=False))
    lists = pa.Array.from_buffers(
        kind, len(array), array.buffers()[:2], array.null_count, array.offset, children=[entries]
    )
    return _by_offsets(array.type, array, pc.list_value_length(lists), lists.flatten())


def over(array: pa.Array, kind: pa.DataType, values: pa.Array) -> pa.Array:
    """Plain lists or maps as another type of such, over as many other child values."""
    if values.offset:  # which Arrow's casts of the whole would lose
        values = values.take(integers(np.arange(len(values))))
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:2], array.null_count, array.offset, children=[values]
    )


def _is_plain(array: pa.Array) -> bool:
    """Whether a list or map array is plain, by both ends of its offsets and its nulls."""
    if array.offset or not len(array):
        return False
    ends = array.offsets
    if ends[0].as_py() != 0 or ends[-1].as_py() != len(array.values):
        return False
    return (
        not array.null_count
        or not pc.any(pc.and_(array.is_null(), pc.not_equal(ends[1:], ends[:-1]))).as_py()
    )


def _by_offsets(kind: pa.DataType, like: pa.Array, lengths: pa.Array, values: pa.Array) -> pa.Array:
    counts = numbers(pc.fill_null(lengths.cast(pa.int64()), integers([0])[0]))
    valid = bitmap(flags(like.is_valid())) if like.null_count else None
    return pa.Array.from_buffers(
        kind, len(like), [valid, offsets(counts)], like.null_count, children=[values]
    )
