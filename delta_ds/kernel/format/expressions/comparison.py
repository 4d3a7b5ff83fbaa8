"""Comparison of values as Spark orders them: NaN equals NaN and is above every number, -0.0 equals 0.0."""

from __future__ import annotations

import pyarrow.compute as pc

from delta_ds.kernel.format.expressions.arrays import FALSE
from delta_ds.kernel.format.expressions.casts import Value
from delta_ds.kernel.format.expressions.coercion import FRACTIONAL
from delta_ds.kernel.format.schema.types import DataType


def compare(name: str, left: Value, right: Value, data_type: DataType) -> Value:
    """`= <> < <= > >= <=>` on values of one type, by Spark's total order."""
    if name == "<=>":
        equal = pc.fill_null(compare("=", left, right, data_type), FALSE)
        return pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))
    if name in (">", ">="):
        return compare("<" if name == ">" else "<=", right, left, data_type)
    if name in ("<>", "<="):
        # The order is total: not equal is the opposite of equal, not above that of below.
        return pc.invert(
            compare("=", left, right, data_type) if name == "<>" else compare("<", right, left, data_type)
        )
    result = (pc.equal if name == "=" else pc.less)(left, right)
    if data_type not in FRACTIONAL:
        return result
    nan_left, nan_right = pc.is_nan(left), pc.is_nan(right)
    special = pc.and_(nan_left, nan_right) if name == "=" else pc.and_(pc.invert(nan_left), nan_right)
    return pc.or_(result, special)
