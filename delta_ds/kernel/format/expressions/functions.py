"""Functions on Arrow values: numbers, arithmetic and choice; those of other subjects are in modules of their own.

Each entry of `RUN` takes the bound call and the values of its arguments. Arguments already have the types of
`signatures.FUNCTIONS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, localcontext
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.expressions import DIVIDE_BY_ZERO
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions import (
    functions_hash,
    functions_json,
    functions_lists,
    functions_text,
    functions_time,
    strict_math,
)
from delta_ds.kernel.format.expressions.arrays import FALSE, compare, map_rows, map_unique, scalar_of
from delta_ds.kernel.format.expressions.casts import SCALA, Value, to_decimal
from delta_ds.kernel.format.expressions.coercion import INTEGRAL, exact_type
from delta_ds.kernel.format.expressions.tree import Call
from delta_ds.kernel.format.schema.types import (
    BYTE,
    DOUBLE,
    INTEGER,
    LONG,
    SHORT,
    DataType,
    DecimalType,
    arrow_type,
)

Function: TypeAlias = "Callable[[Call, list[Any]], Value]"


# --- numbers


def _argument_types(node: Call) -> list[DataType]:
    """The types of a bound call's arguments."""
    return [a.type for a in node.args if a.type is not None]


def _negated(number: Decimal, data_type: DecimalType) -> Decimal:
    """The negative of a decimal, as Spark has it.

    Raises
    ------
    PredicateError
        It has more digits than the type.
    """
    found = to_decimal(SCALA.minus(number), data_type)
    if found is None:
        raise PredicateError(f"the negative of {number} does not fit into {data_type}")
    return found


def _negative(node: Call, args: list[Any]) -> Value:
    kind = node.type
    if isinstance(kind, DecimalType):
        return map_unique(lambda x: _negated(x, kind), args[0], kind, kind)
    return pc.negate_checked(args[0]) if kind in INTEGRAL else pc.negate(args[0])


def _abs(node: Call, args: list[Any]) -> Value:
    kind = node.type
    if isinstance(kind, DecimalType):
        return map_unique(lambda x: _negated(x, kind) if x < 0 else x, args[0], kind, kind)
    return pc.abs_checked(args[0]) if kind in INTEGRAL else pc.abs(args[0])


def _whole(rounding: Callable[[Any], int]) -> Function:
    def run(node: Call, args: list[Any]) -> Value:
        source, target = _argument_types(node)[0], node.type
        assert target is not None
        if source == LONG:
            return args[0]
        if isinstance(target, DecimalType):
            return map_unique(lambda x: Decimal(rounding(x)), args[0], source, target)
        return map_unique(lambda x: _long_of(x, rounding), args[0], source, target)

    return run


def _long_of(number: float, rounding: Callable[[Any], int]) -> int:
    if math.isnan(number):
        return 0
    if math.isinf(number):
        raise OverflowError(f"{number} is beyond the range of a long")
    whole = rounding(number)
    return whole - 1 if whole == 1 << 63 else whole  # the greatest long is this double


def _round(rounding: str) -> Function:
    def run(node: Call, args: list[Any]) -> Value:
        types, target = _argument_types(node), node.type
        assert target is not None
        places = args[1] if len(args) > 1 else scalar_of(0, INTEGER)
        return map_rows(
            lambda number, digits: _rounded(number, digits, rounding, target),
            (args[0], places),
            (types[0], INTEGER),
            target,
        )

    return run


def _rounded(number: Any, digits: int, rounding: str, target: DataType) -> Any:
    if isinstance(number, float) and not math.isfinite(number):
        return number
    with localcontext() as context:
        context.prec = 400
        exact = Decimal(repr(number)) if isinstance(number, float) else Decimal(number)
        found = exact.quantize(Decimal(1).scaleb(-digits), rounding=rounding)
    if isinstance(target, DecimalType):
        fitting = to_decimal(found, target)
        if fitting is None:
            raise PredicateError(f"{number} rounded to {digits} digits does not fit into {target}")
        return fitting
    return type(number)(found) + 0  # there is no negative zero among decimals


def _math(function: Callable[[float], float | None]) -> Function:
    return lambda node, args: map_unique(function, args[0], DOUBLE, DOUBLE)


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float | None]:
    return lambda number: None if number <= 0 else function(number)


def _log_to_base(base: float, number: float) -> float | None:
    if base <= 0 or number <= 0:
        return None
    low = strict_math.log(base)
    if low == 0.0:
        high = strict_math.log(number)
        return math.nan if high == 0.0 or math.isnan(high) else math.copysign(math.inf, high)
    return strict_math.log(number) / low


def _signum(number: float) -> float:
    return number if number == 0 or math.isnan(number) else math.copysign(1.0, number)


def _sqrt(number: float) -> float:
    return math.sqrt(number) if number >= 0 else math.nan


def _nearest_whole(number: float) -> float:
    return math.copysign(round(number), number) if math.isfinite(number) else number


def _shift(name: str) -> Function:
    def run(node: Call, args: list[Any]) -> Value:
        kind = node.type
        assert kind is not None
        bits = 64 if kind == LONG else 32

        def shifted(number: int, by: int) -> int:
            by %= bits
            if name == "shiftright":
                return number >> by
            unsigned = number & ((1 << bits) - 1)
            found = unsigned >> by if name == "shiftrightunsigned" else (unsigned << by) & ((1 << bits) - 1)
            return found - (1 << bits) if found >> (bits - 1) else found

        return map_rows(shifted, args, [kind, INTEGER], kind)

    return run


def _bit_count(node: Call, args: list[Any]) -> Value:
    return map_unique(lambda n: (n & ((1 << 64) - 1)).bit_count(), args[0], LONG, INTEGER)


def _factorial(number: int) -> int | None:
    return math.factorial(number) if 0 <= number <= 20 else None


def _isnan(node: Call, args: list[Any]) -> Value:
    return pc.fill_null(pc.is_nan(args[0]), FALSE)


_LOG_OF_2 = strict_math.log(2.0)

_NUMBERS: dict[str, Function] = {
    "negative": _negative,
    "abs": _abs,
    "ceil": _whole(math.ceil),
    "floor": _whole(math.floor),
    "round": _round(ROUND_HALF_UP),
    "bround": _round(ROUND_HALF_EVEN),
    "rint": _math(_nearest_whole),
    "sqrt": _math(_sqrt),
    "exp": _math(strict_math.exp),
    "ln": _math(_logarithm(strict_math.log)),
    "log10": _math(_logarithm(strict_math.log10)),
    "log2": _math(_logarithm(lambda number: strict_math.log(number) / _LOG_OF_2)),
    "log": lambda node, args: map_rows(_log_to_base, args, [DOUBLE, DOUBLE], DOUBLE),
    "signum": _math(_signum),
    "degrees": _math(lambda number: number * 57.29577951308232),
    "radians": _math(lambda number: number * 0.017453292519943295),
    "pow": lambda node, args: map_rows(strict_math.pow, args, [DOUBLE, DOUBLE], DOUBLE),
    "e": lambda node, args: scalar_of(math.e, DOUBLE),
    "pi": lambda node, args: scalar_of(math.pi, DOUBLE),
    "&": lambda node, args: pc.bit_wise_and(*args),
    "|": lambda node, args: pc.bit_wise_or(*args),
    "^": lambda node, args: pc.bit_wise_xor(*args),
    "~": lambda node, args: pc.bit_wise_not(args[0]),
    **{name: _shift(name) for name in ("shiftleft", "shiftright", "shiftrightunsigned")},
    "bit_count": _bit_count,
    "factorial": lambda node, args: map_unique(_factorial, args[0], INTEGER, LONG),
    "isnan": _isnan,
    "nanvl": lambda node, args: pc.if_else(pc.is_nan(args[0]), args[1], args[0]),
}


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
    **_NUMBERS,
    **functions_text.RUN,
    **functions_time.RUN,
    "greatest": _extreme(">"),
    "least": _extreme("<"),
}
