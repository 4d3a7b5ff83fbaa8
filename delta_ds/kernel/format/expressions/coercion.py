"""Spark's ANSI type coercion: common types, result types of arithmetic, and comparisons of columns that were cast.

`CAST(i AS decimal(11,1)) > 41.5` says the same as `i > 41` for a whole number `i`. Statistics and partition values
are of the column's own type, so only the second form lets them decide. Each rewrite is exact.

Source: Spark's `AnsiTypeCoercion` and `DecimalPrecisionTypeCoercion`; `UnwrapCastInBinaryComparison`, extended to
decimals, dates and constants between two values.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from decimal import ROUND_FLOOR, Decimal, localcontext
from typing import Any

from delta_ds.kernel.format.expressions.moments import DAY_US, Timestamp, date_of, is_aware, micros_of
from delta_ds.kernel.format.expressions.tree import Call, Cast, Column, Expression, Literal
from delta_ds.kernel.format.expressions.zones import instant_micros, local_micros, zone_of
from delta_ds.kernel.format.schema.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
    is_nested,
)
from delta_ds.records import dataclass

INTEGRAL: tuple[DataType, ...] = (BYTE, SHORT, INTEGER, LONG)
FRACTIONAL: tuple[DataType, ...] = (FLOAT, DOUBLE)
TEMPORAL: tuple[DataType, ...] = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
INTEGER_BITS: dict[DataType, int] = {BYTE: 8, SHORT: 16, INTEGER: 32, LONG: 64}
_DIGITS: dict[DataType, int] = {BYTE: 3, SHORT: 5, INTEGER: 10, LONG: 20}


def in_range(number: int, data_type: DataType) -> bool:
    """Whether the integral type can hold the number."""
    limit = 1 << (INTEGER_BITS[data_type] - 1)
    return -limit <= number < limit


def is_numeric(data_type: DataType | None) -> bool:
    """Whether it is an integral, fractional or decimal type."""
    return data_type in INTEGRAL or data_type in FRACTIONAL or isinstance(data_type, DecimalType)


def as_decimal(data_type: DataType) -> DecimalType:
    """The decimal type that holds every value of an integral type; decimals are given back."""
    return data_type if isinstance(data_type, DecimalType) else DecimalType(_DIGITS[data_type], 0)


def common_type(left: DataType, right: DataType) -> DataType | None:
    """The type that both are cast to when they are compared or chosen between; None if there is none."""
    if left == right or right == VOID:
        return left
    if left == VOID:
        return right
    if left == STRING or right == STRING:
        return _with_string(right if left == STRING else left)
    if is_numeric(left) and is_numeric(right):
        return _numeric(left, right)
    if left in TEMPORAL and right in TEMPORAL:
        return TIMESTAMP if TIMESTAMP in (left, right) else TIMESTAMP_NTZ
    return None


def _with_string(other: DataType) -> DataType | None:
    if other in INTEGRAL:
        return LONG
    if is_numeric(other):
        return DOUBLE
    return None if is_nested(other) else other


def _numeric(left: DataType, right: DataType) -> DataType:
    if left in FRACTIONAL or right in FRACTIONAL:
        # A whole number or decimal meets a float in double, where it loses less.
        return DOUBLE
    if left in INTEGRAL and right in INTEGRAL:
        return max(left, right, key=INTEGRAL.index)
    a, b = as_decimal(left), as_decimal(right)
    whole, scale = max(a.precision - a.scale, b.precision - b.scale), max(a.scale, b.scale)
    # Of digits that are too many, those after the point are given up.
    return DecimalType(min(whole + scale, 38), min(scale, 38 - whole))


def common_type_of(types: Iterable[DataType]) -> DataType | None:
    """The common type of all; None if two of them have none."""
    result: DataType | None = VOID
    for data_type in types:
        result = common_type(result, data_type) if result is not None else None
    return result


def arithmetic_type(
    operator: str, left: DataType, right: DataType
) -> tuple[DataType, DataType, DataType] | None:
    """The types both operands of `+ - * / % div` are cast to, and the type of the result.

    Returns
    -------
    tuple or None
        (left, right, result); None if the operator does not take such operands.
    """
    left, right = (DOUBLE if t == VOID and operator == "/" else t for t in (left, right))
    common = common_type(left, right)
    if common is None or not is_numeric(common):
        return None
    if operator == "div":
        if common in INTEGRAL:
            return LONG, LONG, LONG
        return (as_decimal(left), as_decimal(right), LONG) if isinstance(common, DecimalType) else None
    if not isinstance(common, DecimalType):
        if operator == "/":
            common = DOUBLE
        return common, common, common
    a, b = as_decimal(left), as_decimal(right)
    return a, b, _decimal_result(operator, a, b)


def exact_type(operator: str, left: DecimalType, right: DecimalType) -> DecimalType | None:
    """The type of the result of `+ - *` where it holds all digits of all results, as Arrow's kernels have it too."""
    scale = max(left.scale, right.scale)
    if operator == "*":
        precision, scale = left.precision + right.precision + 1, left.scale + right.scale
    elif operator in ("+", "-"):
        precision = max(left.precision - left.scale, right.precision - right.scale) + scale + 1
    else:
        return None
    return DecimalType(precision, scale) if precision <= 38 else None


def _decimal_result(operator: str, a: DecimalType, b: DecimalType) -> DecimalType:
    whole_a, whole_b, scale = a.precision - a.scale, b.precision - b.scale, max(a.scale, b.scale)
    if operator in "+-":
        return _adjust_precision(max(whole_a, whole_b) + scale + 1, scale)
    if operator == "*":
        return _adjust_precision(a.precision + b.precision + 1, a.scale + b.scale)
    if operator == "/":
        scale = max(6, a.scale + b.precision + 1)
        return _adjust_precision(whole_a + b.scale + scale, scale)
    return _adjust_precision(min(whole_a, whole_b) + scale, scale)


def _adjust_precision(precision: int, scale: int) -> DecimalType:
    """Keep 38 digits, giving up digits after the point, but not below six of them."""
    if precision <= 38:
        return DecimalType(precision, scale)
    return DecimalType(38, max(38 - (precision - scale), min(scale, 6)))


def can_cast(source: DataType, target: DataType) -> bool:
    """Whether Spark's ANSI `CAST` takes these types at all."""
    if source in (target, VOID, STRING) or (target == STRING and not is_nested(source)):
        return not is_nested(target) or source == target
    if is_numeric(source) or source == BOOLEAN:
        return is_numeric(target) or target == BOOLEAN or (target == TIMESTAMP and source != BOOLEAN)
    if source in TEMPORAL:
        return target in TEMPORAL or (source == TIMESTAMP and is_numeric(target))
    return False


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a constant lies among the values of a narrower type."""

    floor: (
        Any  # the greatest value not above the constant; None if there is none or the constant is above all
    )
    exact: bool = False
    side: int = 0  # -1: below every value, +1: above every value


def unwrap_comparison(name: str, left: Expression, right: Expression) -> Expression:
    """The comparison of two operands of one type, on the bare column if that is possible."""
    plain = Call(name, (left, right), BOOLEAN)
    if not (isinstance(left, Cast) and isinstance(right, Literal) and _is_reference(left.child)):
        return plain
    place = _place(right.value, left)
    return plain if place is None else _compare(name, left.child, place)


def unwrap_in(value: Expression, items: Sequence[Expression]) -> Expression:
    """`value IN (items)` for operands of one type, on the bare column if that is possible."""
    if len(items) == 1:
        return unwrap_comparison("=", value, items[0]) if not _is_null(items[0]) else Literal(None, BOOLEAN)
    plain = Call("in", (value, *items), BOOLEAN)
    if not (isinstance(value, Cast) and _is_reference(value.child)):
        return plain
    narrow: list[Expression] = []
    for item in items:
        if _is_null(item):
            narrow.append(Literal(None, value.child.type))
            continue
        place = _place(item.value, value) if isinstance(item, Literal) else None
        if place is None:
            return plain
        if place.exact:
            narrow.append(Literal(place.floor, value.child.type))
    if not narrow:
        return _never(value.child)
    if len(narrow) == 1 and not _is_null(narrow[0]):
        return Call("=", (value.child, narrow[0]), BOOLEAN)
    return Call("in", (value.child, *narrow), BOOLEAN)


def _is_null(node: Expression) -> bool:
    return isinstance(node, Literal) and node.value is None


def _is_reference(node: Expression) -> bool:
    return isinstance(node, (Column, Call, Cast))


def _never(child: Expression) -> Expression:
    """False, but null for a null."""
    return Call("and", (Call("isnull", (child,), BOOLEAN), Literal(None, BOOLEAN)), BOOLEAN)


def _always(child: Expression) -> Expression:
    """True, but null for a null."""
    return Call("or", (Call("isnotnull", (child,), BOOLEAN), Literal(None, BOOLEAN)), BOOLEAN)


def _compare(name: str, child: Expression, place: _Place) -> Expression:
    if place.side or (not place.exact and name in ("=", "<=>", "<>")):
        if name == "<=>":
            return Literal(False, BOOLEAN)
        if name in ("=", "<>"):
            return _never(child) if name == "=" else _always(child)
        return _always(child) if (name in ("<", "<=")) == (place.side > 0) else _never(child)
    if not place.exact:
        # The constant lies between two values: below it means not above the lower one.
        name = "<=" if name in ("<", "<=") else ">"
    return Call(name, (child, Literal(place.floor, child.type)), BOOLEAN)


def _place(value: Any, cast: Cast) -> _Place | None:
    """The constant's place in the type below the cast; None where that cannot be said exactly."""
    source, target = cast.child.type, cast.type
    if source in INTEGER_BITS and _widens(source, target):
        return _whole_place(Decimal(value), 1 << (INTEGER_BITS[source] - 1))
    if source in (BYTE, SHORT, INTEGER) and target in (DOUBLE, FLOAT):
        if target == FLOAT and source == INTEGER:
            return None  # floats cannot hold every int
        if math.isnan(value) or math.isinf(value):
            return _Place(None, side=-1 if value < 0 else 1)  # NaN is above everything
        return _whole_place(Decimal(value), 1 << (INTEGER_BITS[source] - 1))
    if isinstance(source, DecimalType) and isinstance(target, DecimalType):
        return _decimal_place(Decimal(value), source) if _holds(target, source) else None
    if source == FLOAT and target == DOUBLE:
        return _float_place(value)
    if source == DATE and target in (TIMESTAMP, TIMESTAMP_NTZ):
        return _date_place(value, cast.timezone if target == TIMESTAMP else None)
    return None


def _widens(source: DataType, target: DataType) -> bool:
    if isinstance(target, DecimalType):
        return _holds(target, as_decimal(source))
    return INTEGER_BITS.get(target, 0) >= INTEGER_BITS[source]


def _whole_place(value: Decimal, limit: int) -> _Place:
    floor = math.floor(value)
    if floor < -limit or floor >= limit:
        return _Place(None, side=-1 if floor < 0 else 1)
    return _Place(floor, exact=value == floor)


def _holds(target: DecimalType, source: DecimalType) -> bool:
    return target.scale >= source.scale and target.precision - target.scale >= source.precision - source.scale


def _decimal_place(value: Decimal, source: DecimalType) -> _Place:
    with localcontext() as context:
        context.prec = 100
        floor = value.quantize(Decimal(1).scaleb(-source.scale), rounding=ROUND_FLOOR)
        highest = Decimal(10) ** (source.precision - source.scale)
        if floor >= highest or floor <= -highest:
            return _Place(None, side=-1 if floor < 0 else 1)
        return _Place(floor, exact=floor == value)


def _float_place(value: float) -> _Place | None:
    if math.isnan(value) or math.isinf(value):
        return _Place(value, exact=True)
    try:
        narrow = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return None
    return _Place(narrow, exact=True) if narrow == value else None


def _date_place(value: Timestamp, timezone: str | None) -> _Place | None:
    micros = micros_of(value)
    if timezone is None:
        if is_aware(value):
            return None
        return _Place(date_of(micros // DAY_US), exact=micros % DAY_US == 0)
    zone = zone_of(timezone)
    day = local_micros(micros, zone) // DAY_US
    start, end = (instant_micros(midnight, zone) for midnight in (day * DAY_US, (day + 1) * DAY_US))
    return _Place(date_of(day), exact=micros == start) if start <= micros < end else None
