"""What every row of the table meets that a MERGE can match: by it files and row groups are skipped.

Source: delta-spark, `MergeIntoCommand`, `getTargetOnlyPredicates`; the bounds of the source's keys are more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.base.arrow_buffers import integers
from delta_ds.kernel.format.expressions.arrays import values_of
from delta_ds.kernel.format.expressions.coercion import INTEGRAL
from delta_ds.kernel.format.expressions.tree import Call, Expression, Literal
from delta_ds.kernel.format.schema.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType, DecimalType

if TYPE_CHECKING:
    import numpy.typing as npt

# So many keys at most are named one by one; more are told by as many ranges.
_MOST_RANGES = 100


def may_equal(column: Expression, keys: pa.ChunkedArray | pa.Array, data_type: DataType) -> list[Expression]:
    """What a column meets where it equals one of some keys; nothing where that cannot be told.

    Parameters
    ----------
    column
        Of the table, by its own name.
    keys
        Values of the source; null equals nothing.
    data_type
        Of both.
    """
    if not _has_order(data_type):
        return []
    distinct = pc.unique(keys.drop_null())
    if isinstance(distinct, pa.ChunkedArray):
        distinct = distinct.combine_chunks()
    if not len(distinct):
        return [Literal(False)]
    in_order = distinct.take(pc.array_sort_indices(distinct))
    try:
        if len(in_order) <= _MOST_RANGES:
            values = [Literal(value, data_type) for value in values_of(in_order, data_type)]
            return [Call("in", (column, *values))]
        return _ranges(column, in_order, data_type)
    except (UnicodeDecodeError, OverflowError, PredicateError):
        return []


def _has_order(kind: DataType) -> bool:
    """Whether values are in one order for Spark, statistics and Arrow."""
    return (
        kind in INTEGRAL or kind in (STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ) or isinstance(kind, DecimalType)
    )


def _ranges(column: Expression, keys: pa.Array, data_type: DataType) -> list[Expression]:
    """Of keys in ascending order: that the column lies between the first and the last, and in no wide gap."""
    ends = _last_before_gaps(keys, data_type)
    lows = np.concatenate([[0], ends + 1])
    highs = np.concatenate([ends, [len(keys) - 1]])
    bounds = zip(_values(keys, lows, data_type), _values(keys, highs, data_type), strict=True)
    ranges = [_between(column, low, high, data_type) for low, high in bounds]
    first, last = _values(keys, np.array([0, len(keys) - 1]), data_type)
    whole = _between(column, first, last, data_type)
    return [whole] if len(ranges) == 1 else [whole, Call("or", tuple(ranges))]


def _last_before_gaps(keys: pa.Array, data_type: DataType) -> npt.NDArray[np.int64]:
    """The places of the keys before the widest gaps, ascending; of texts, evenly spread ones."""
    if data_type == STRING or isinstance(data_type, DecimalType):
        step = -(-len(keys) // _MOST_RANGES)
        return np.arange(step - 1, len(keys) - 1, step)
    numbers = pc.cast(keys.view(pa.int32()) if data_type == DATE else keys, pa.int64())
    # As floats: the widest gap of 64-bit numbers is more than one of them holds.
    gaps = np.diff(np.asarray(numbers).astype(np.float64))
    wide = np.argpartition(gaps, -(_MOST_RANGES - 1))[-(_MOST_RANGES - 1) :]
    return np.sort(wide[gaps[wide] > 1])


def _values(keys: pa.Array, at: npt.NDArray[np.int64], data_type: DataType) -> Sequence[Any]:
    return values_of(keys.take(integers(at)), data_type)


def _between(column: Expression, low: Any, high: Any, data_type: DataType) -> Expression:
    return Call(
        "and",
        (Call(">=", (column, Literal(low, data_type))), Call("<=", (column, Literal(high, data_type)))),
    )
