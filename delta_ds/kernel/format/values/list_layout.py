"""Lists and maps of any Arrow layout with int32 offsets from 0 over exactly the child values they use.

A slice keeps the children of the whole, a null may stand over values that do not count, views share and reorder
theirs, and a cast of a slice can leave children behind that begin after their own end.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import InvariantViolationError
from delta_ds.kernel.base.arrow_buffers import bitmap, flags, integers, numbers, offsets

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
    return _with_offsets(pa.list_(array.type.value_field), array, pc.list_value_length(array), values)


def plain_maps(array: pa.MapArray) -> pa.MapArray:
    """A map array over exactly the entries that it uses."""
    if _is_plain(array):
        return array
    entries = array.values
    kind = pa.list_(pa.field("entries", entries.type, nullable=False))
    lists = pa.Array.from_buffers(
        kind, len(array), array.buffers()[:2], array.null_count, array.offset, children=[entries]
    )
    return _with_offsets(array.type, array, pc.list_value_length(lists), lists.flatten())


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


def _with_offsets(kind: pa.DataType, like: pa.Array, lengths: pa.Array, values: pa.Array) -> pa.Array:
    counts = numbers(pc.fill_null(lengths.cast(pa.int64()), integers([0])[0]))
    valid = bitmap(flags(like.is_valid())) if like.null_count else None
    return pa.Array.from_buffers(
        kind, len(like), [valid, offsets(counts)], like.null_count, children=[values]
    )
