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
from delta_ds.kernel.commands.dml.rewritten import distinct
from delta_ds.kernel.format.expressions.arrays import values_of
from delta_ds.kernel.format.expressions.coercion import INTEGRAL
from delta_ds.kernel.format.expressions.tree import Call, Expression, Literal
from delta_ds.kernel.format.schema.types import (
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    arrow_type,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]

# So many keys at most are named one by one; more are told by some ranges, each of which costs a little in every file.
_MOST_NAMED = 100
_MOST_RANGES = 32
# A gap between keys counts where it is so much of the range of all of them.
_LEAST_GAP = 1 / 1000
# The cells into which the range of numbers is cut to find gaps.
_CELLS = 1 << 16
# Of more keys than these only the first and the last is looked for, where that needs them in order.
_MOST_SORTED = 1_000_000


def may_equal(column: Expression, keys: pa.Array, data_type: DataType) -> list[Expression]:
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
    present = keys.drop_null()
    if not len(present):
        return [Literal(False)]
    find = _of_texts if data_type == STRING or isinstance(data_type, DecimalType) else _of_numbers
    lows, highs = find(present, data_type)
    try:
        first, last = values_of(lows, data_type), values_of(highs, data_type)
    except (UnicodeDecodeError, OverflowError, PredicateError):
        return []  # there are no literals of such values
    if first == last:
        return [Call("in", (column, *(Literal(value, data_type) for value in first)))]
    ranges = [_between(column, low, high, data_type) for low, high in zip(first, last, strict=True)]
    whole = _between(column, first[0], last[-1], data_type)
    return [whole] if len(ranges) == 1 else [whole, Call("or", tuple(ranges))]


def _has_order(kind: DataType) -> bool:
    """Whether values are in one order for Spark, statistics and Arrow."""
    return (
        kind in INTEGRAL or kind in (STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ) or isinstance(kind, DecimalType)
    )


def _of_numbers(keys: pa.Array, data_type: DataType) -> tuple[pa.Array, pa.Array]:
    """The ends of ranges that hold all keys, in ascending order; equal where all keys are named."""
    kind = arrow_type(data_type)
    numbers = np.asarray(pc.cast(keys.view(pa.int32()) if data_type == DATE else keys, pa.int64()))
    low, high = int(numbers.min()), int(numbers.max())
    width = (high - low) // _CELLS + 1
    occupied = np.zeros(_CELLS + 1, np.bool_)
    # In 64 bits without sign the distance of any two numbers has room.
    occupied[(numbers.view(np.uint64) - np.int64(low).view(np.uint64)) // np.uint64(width)] = True
    cells = np.flatnonzero(occupied)
    if len(cells) <= _MOST_NAMED and (width == 1 or len(numbers) <= _MOST_SORTED):
        few = cells + low if width == 1 else distinct([numbers])
        if len(few) <= _MOST_NAMED:
            return _as(few, kind), _as(few, kind)
    gaps = np.diff(cells) - 1
    wide = np.sort(np.argsort(-gaps, kind="stable")[: _MOST_RANGES - 1])
    before = wide[gaps[wide] > _LEAST_GAP * cells[-1]]
    firsts = [int(cell) for cell in cells[np.concatenate([[0], before + 1])]]
    lasts = [int(cell) for cell in cells[np.concatenate([before, [len(cells) - 1]])]]
    lows = [low + cell * width for cell in firsts]
    highs = [min(high, low + (cell + 1) * width - 1) for cell in lasts]
    return _as(np.array(lows, np.int64), kind), _as(np.array(highs, np.int64), kind)


def _as(numbers: Numbers, kind: pa.DataType) -> pa.Array:
    array = integers(numbers)
    if pa.types.is_date32(kind):
        return array.cast(pa.int32()).view(kind)
    return array.view(kind) if pa.types.is_timestamp(kind) else array.cast(kind)


def _of_texts(keys: pa.Array, data_type: DataType) -> tuple[pa.Array, pa.Array]:
    """As `_of_numbers`: ranges with as many keys each."""
    if len(keys) > _MOST_SORTED:
        ends = pc.min_max(keys)
        return pa.repeat(ends["min"], 1), pa.repeat(ends["max"], 1)
    different = pc.unique(keys)
    in_order = different.take(pc.array_sort_indices(different))
    step = 1 if len(in_order) <= _MOST_NAMED else -(-len(in_order) // _MOST_RANGES)
    firsts = np.arange(0, len(in_order), step)
    lasts = np.append(firsts[1:] - 1, len(in_order) - 1)
    return in_order.take(integers(firsts)), in_order.take(integers(lasts))


def _between(column: Expression, low: Any, high: Any, data_type: DataType) -> Expression:
    bounds: Sequence[tuple[str, Any]] = ((">=", low), ("<=", high))
    parts = tuple(Call(comparison, (column, Literal(bound, data_type))) for comparison, bound in bounds)
    return Call("and", parts)
