"""Spark's ANSI type coercion: the common type of two values, and the result type of arithmetic.

Source: Spark's `AnsiTypeCoercion` and `DecimalPrecisionTypeCoercion`.
"""

from __future__ import annotations

from collections.abc import Iterable

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
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
)

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


def is_nested(data_type: DataType | None) -> bool:
    """Whether it is a struct, array or map."""
    return isinstance(data_type, (StructType, ArrayType, MapType))


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
