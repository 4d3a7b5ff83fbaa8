"""Which rows of two tables are equal, column by column on Arrow, nested values too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.arrow_buffers import flags, integers
from delta_ds.kernel.changes.key_codes import comparable

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


def equal_rows(left: pa.Table, right: pa.Table, columns: Iterable[str]) -> np.ndarray[Any, Any]:
    """Whether the rows at the same place are equal: nulls are, NaN is, and there is one zero.

    Parameters
    ----------
    left, right
        Of the same schema and length.
    columns
        Which are compared. Maps are equal with the same entries in the same order.
    """
    import numpy as np

    found = np.ones(left.num_rows, bool)
    for name in columns:
        found &= _equal(left[name].combine_chunks(), right[name].combine_chunks())
    return found


def _equal(left: pa.Array, right: pa.Array) -> np.ndarray[Any, Any]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = left.type
    if isinstance(left, pa.ExtensionArray):
        return _equal(left.storage, right.storage)
    here, there = flags(pc.is_valid(left)), flags(pc.is_valid(right))
    both = here & there
    if pa.types.is_struct(kind):
        inner = np.ones(len(left), bool)
        for at in range(kind.num_fields):
            inner &= _equal(left.field(at), right.field(at))
    elif pa.types.is_list(kind) or pa.types.is_map(kind):
        inner = _equal_lists(left, right, both)
    elif pa.types.is_null(kind):
        inner = np.ones(len(left), bool)
    else:
        one, other = (comparable(pa.chunked_array([a])).combine_chunks() for a in (left, right))
        inner = flags(pc.fill_null(pc.equal(one, other), False))
        if pa.types.is_floating(kind):
            inner |= flags(pc.fill_null(pc.and_(pc.is_nan(one), pc.is_nan(other)), False))
    return np.where(both, inner, here == there)


def _equal_lists(left: pa.Array, right: pa.Array, both: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    import numpy as np

    lengths, others = (np.where(both, np.diff(_ends(column)), 0) for column in (left, right))
    same = both & (lengths == others)
    inner = np.zeros(len(left), bool)
    rows = np.flatnonzero(same)
    if not len(rows):
        return inner
    elements = _equal(*(_elements(column, rows, lengths[rows]) for column in (left, right)))
    misses = np.concatenate([[0], np.cumsum(~elements)])
    stops = np.cumsum(lengths[rows])
    inner[rows] = misses[stops] == misses[stops - lengths[rows]]
    return inner


def _ends(column: pa.Array) -> np.ndarray[Any, Any]:
    import numpy as np

    found = np.frombuffer(column.buffers()[1], np.int32)[column.offset :][: len(column) + 1]
    return found.astype(np.int64)


def _elements(column: pa.Array, rows: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]) -> pa.Array:
    """The elements of some lists, one list after the other."""
    import numpy as np
    import pyarrow as pa

    values = column.values
    if pa.types.is_map(column.type):
        values = pa.StructArray.from_arrays([column.keys, column.items], ["key", "value"])
    starts = _ends(column)[rows]
    before = np.cumsum(lengths) - lengths
    places = np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
    return values.take(integers(places))
