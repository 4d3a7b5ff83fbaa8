"""Functions of numbers on Arrow values, by Spark's names.

Source: Spark, `mathExpressions.scala`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import pyarrow.compute as pc

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions import strict_math
from delta_ds.kernel.format.expressions.arrays import FALSE, map_rows, map_unique, scalar_of
from delta_ds.kernel.format.expressions.casts import SCALA, Value, to_decimal
from delta_ds.kernel.format.expressions.coercion import INTEGRAL
from delta_ds.kernel.format.expressions.tree import Call
from delta_ds.kernel.format.schema.types import DOUBLE, INTEGER, LONG, DataType, DecimalType

_Function = Callable[[Call, "list[Any]"], Value]


def argument_types(node: Call) -> list[DataType]:
    """The types of a bound call's arguments."""
    return [a.type for a in node.args if a.type is not None]


def negated(number: Decimal, data_type: DecimalType) -> Decimal:
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
        return map_unique(lambda x: negated(x, kind), args[0], kind, kind)
    return pc.negate_checked(args[0]) if kind in INTEGRAL else pc.negate(args[0])


def _abs(node: Call, args: list[Any]) -> Value:
    kind = node.type
    if isinstance(kind, DecimalType):
        return map_unique(lambda x: negated(x, kind) if x < 0 else x, args[0], kind, kind)
    return pc.abs_checked(args[0]) if kind in INTEGRAL else pc.abs(args[0])


def _whole(rounding: Callable[[Any], int]) -> _Function:
    def run(node: Call, args: list[Any]) -> Value:
        source, target = argument_types(node)[0], node.type
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


def _round(rounding: str) -> _Function:
    def run(node: Call, args: list[Any]) -> Value:
        types, target = argument_types(node), node.type
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


def _math(function: Callable[[float], float | None]) -> _Function:
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


def _shift(name: str) -> _Function:
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

RUN: dict[str, _Function] = {
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
__all__ = ["RUN", "argument_types", "negated"]
