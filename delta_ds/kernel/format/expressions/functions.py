"""Functions on Arrow values: arithmetic and choice; those of other subjects are in modules of their own.

Each entry of `RUN` takes the bound call and the values of its arguments. Arguments already have the types of
`signatures.FUNCTIONS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, localcontext
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.expressions import DIVIDE_BY_ZERO
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions import (
    functions_hash,
    functions_json,
    functions_lists,
    functions_numbers,
    functions_text,
    functions_time,
)
from delta_ds.kernel.format.expressions.arrays import FALSE, compare, map_rows, scalar_of
from delta_ds.kernel.format.expressions.casts import Value, to_decimal
from delta_ds.kernel.format.expressions.coercion import exact_type
from delta_ds.kernel.format.expressions.tree import Call
from delta_ds.kernel.format.schema.types import BYTE, LONG, SHORT, DataType, DecimalType, arrow_type

Function: TypeAlias = "Callable[[Call, list[Any]], Value]"


# --- arithmetic


def _refuse_zero(right: Value, left: Value, data_type: DataType) -> None:
    zero = scalar_of(Decimal(0) if isinstance(data_type, DecimalType) else 0, data_type)
    divided = pc.and_(pc.fill_null(pc.equal(right, zero), FALSE), pc.is_valid(left))
    if isinstance(divided, pa.Scalar) or len(divided) == 0:
        found = isinstance(divided, pa.Scalar) and divided.as_py()
    else:
        found = pc.any(divided).as_py()
    if found:
        raise DIVIDE_BY_ZERO()


def whole_arithmetic(name: str, left: Value, right: Value, result: DataType) -> Value:
    """Arithmetic of two values of one integral type; an overflow raises."""
    simple = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
    if name in simple:
        return simple[name](left, right)
    _refuse_zero(right, left, result)
    if name == "div":
        return pc.divide_checked(left, right)
    if name == "pmod" and result in (BYTE, SHORT):
        # Java computes with ints.
        return _rest(name, left.cast(pa.int32()), right.cast(pa.int32())).cast(arrow_type(result))
    return _rest(name, left, right)


def _rest(name: str, left: Value, right: Value) -> Value:
    one, minus_one, zero = (scalar_of(n, LONG).cast(right.type) for n in (1, -1, 0))
    # x % -1 is 0 like x % 1, but the lowest number cannot be divided by -1; nulls on the left may meet zeros.
    safe = pc.if_else(pc.or_(pc.equal(right, minus_one), pc.equal(right, zero)), one, right)
    rest = pc.subtract(left, pc.multiply(pc.divide(left, safe), safe))
    if name == "%":
        return rest
    moved = pc.add(rest, safe)
    above = pc.subtract(moved, pc.multiply(pc.divide(moved, safe), safe))
    return pc.if_else(pc.less(rest, zero), above, rest)


def float_arithmetic(name: str, left: Value, right: Value, result: DataType) -> Value:
    """Arithmetic of two floats or doubles; dividing by zero raises."""
    simple = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
    if name in simple:
        return simple[name](left, right)
    _refuse_zero(right, left, result)
    if name == "/":
        return pc.divide(left, right)
    types = [result, result]
    return map_rows(_float_rest if name == "%" else _float_pmod, (left, right), types, result)


def _float_rest(left: float, right: float) -> float:
    return math.fmod(left, right) if math.isfinite(left) and not math.isnan(right) else math.nan


def _float_pmod(left: float, right: float) -> float:
    rest = _float_rest(left, right)
    return _float_rest(rest + right, right) if rest < 0 else rest


def decimal_arithmetic(
    name: str, values: tuple[Value, Value], types: Sequence[DataType], result: DataType
) -> Value:
    """Arithmetic of two decimals, rounded half up to the result's scale; too many digits raise."""
    by_arrow = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}.get(name)
    left_type, right_type = types
    assert isinstance(left_type, DecimalType) and isinstance(right_type, DecimalType)
    if by_arrow is not None and exact_type(name, left_type, right_type) == result:
        return by_arrow(*values)
    if name in ("/", "%", "div", "pmod"):
        _refuse_zero(values[1], values[0], types[1])

    def compute(left: Decimal, right: Decimal) -> Any:
        with localcontext() as context:
            context.prec, context.rounding = 120, ROUND_HALF_UP
            exact = _decimal_result(name, left, right)
            fits = isinstance(result, DecimalType) or abs(exact) < 10**38
            if fits and not isinstance(result, DecimalType):
                return _low_long(int(exact))
            rounded = to_decimal(exact, result) if isinstance(result, DecimalType) else None
            if rounded is None:
                raise PredicateError(f"{left} {name} {right} does not fit into {result}")
            return rounded

    return map_rows(compute, values, types, result)


def _low_long(number: int) -> int:
    """What is left of a whole number in the lowest 64 bits, with their sign."""
    low = number & ((1 << 64) - 1)
    return low - (1 << 64) if low >> 63 else low


def _decimal_result(name: str, left: Decimal, right: Decimal) -> Decimal:
    if name == "+":
        return left + right
    if name == "-":
        return left - right
    if name == "*":
        with localcontext() as context:
            context.prec, context.rounding = 38, ROUND_HALF_UP  # digits that Spark keeps of a product
            return left * right
    if name == "/":
        return (left / right).quantize(Decimal(1).scaleb(-38))
    if name == "div":
        return (left / right).to_integral_value(rounding=ROUND_DOWN)
    rest = left % right
    return (rest + right) % right if name == "pmod" and rest < 0 else rest


# --- choice


def _extreme(comparison: str) -> Function:
    """`greatest` and `least` skip nulls and put NaN above all numbers."""

    def run(node: Call, args: list[Any]) -> Value:
        assert node.type is not None
        result = args[0]
        for value in args[1:]:
            better = pc.fill_null(compare(comparison, value, result, node.type), FALSE)
            better = pc.or_(better, pc.is_null(result))
            result = pc.if_else(pc.and_(better, pc.is_valid(value)), value, result)
        return result

    return run


RUN: dict[str, Function] = {
    **functions_hash.RUN,
    **functions_json.RUN,
    **functions_lists.RUN,
    **functions_numbers.RUN,
    **functions_text.RUN,
    **functions_time.RUN,
    "greatest": _extreme(">"),
    "least": _extreme("<"),
}
