"""Functions on Arrow values: arithmetic, numbers, choice and collections, by Spark's names.

Each entry of `RUN` takes the bound call and the values of its arguments. Arguments already have the types of
`signatures.FUNCTIONS`. Functions of text and of time are in modules of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, localcontext
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.expressions import DIVIDE_BY_ZERO, INVALID_ARRAY_INDEX, INVALID_INDEX_OF_ZERO
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.expressions import functions_hash, functions_text, functions_time
from delta_ds.kernel.expressions.arrays import (
    FALSE,
    array_of,
    map_rows,
    map_unique,
    scalar_of,
    spread,
)
from delta_ds.kernel.expressions.casts import Value, to_decimal
from delta_ds.kernel.expressions.coercion import INTEGRAL
from delta_ds.kernel.expressions.comparison import compare
from delta_ds.kernel.expressions.tree import Call
from delta_ds.kernel.schema.types import (
    BOOLEAN,
    DOUBLE,
    INTEGER,
    LONG,
    DataType,
    DecimalType,
    MapType,
)

Function: TypeAlias = "Callable[[Call, list[Any]], Value]"


def argument_types(node: Call) -> list[DataType]:
    """The types of a bound call's arguments."""
    return [a.type for a in node.args if a.type is not None]


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
    one, minus_one, zero = (scalar_of(n, result) for n in (1, -1, 0))
    # x % -1 is 0 like x % 1, but the lowest number cannot be divided by -1; nulls on the left may meet zeros.
    safe = pc.if_else(pc.or_(pc.equal(right, minus_one), pc.equal(right, zero)), one, right)
    rest = pc.subtract(left, pc.multiply(pc.divide(left, safe), safe))
    if name == "%":
        return rest
    positive = pc.if_else(pc.less(rest, zero), pc.add(rest, safe), rest)
    negative_divisor = pc.and_(pc.less(rest, zero), pc.less(safe, zero))
    return pc.if_else(
        negative_divisor,
        pc.subtract(pc.add(rest, safe), pc.multiply(pc.divide(pc.add(rest, safe), safe), safe)),
        positive,
    )


def float_arithmetic(name: str, left: Value, right: Value, result: DataType) -> Value:
    """Arithmetic of two floats or doubles; dividing by zero raises."""
    simple = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
    if name in simple:
        return simple[name](left, right)
    _refuse_zero(right, left, result)
    if name == "/":
        return pc.divide(left, right)
    types = [result, result]
    if name == "div":
        raise PredicateError("div takes whole numbers and decimals; use floor(a / b)")
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
    if name in ("/", "%", "div", "pmod"):
        _refuse_zero(values[1], values[0], types[1])

    def compute(left: Decimal, right: Decimal) -> Any:
        with localcontext() as context:
            context.prec = 120
            exact = _decimal_result(name, left, right)
            if not isinstance(result, DecimalType):
                return int(exact)
            rounded = to_decimal(exact, result)
            if rounded is None:
                raise PredicateError(f"{left} {name} {right} does not fit into {result}")
            return rounded

    return map_rows(compute, values, types, result)


def _decimal_result(name: str, left: Decimal, right: Decimal) -> Decimal:
    if name == "+":
        return left + right
    if name == "-":
        return left - right
    if name == "*":
        return left * right
    if name == "/":
        return left / right
    if name == "div":
        return (left / right).to_integral_value(rounding=ROUND_DOWN)
    rest = left % right
    return (rest + right) % right if name == "pmod" and rest < 0 else rest


# --- numbers


def _negative(node: Call, args: list[Any]) -> Value:
    if isinstance(node.type, DecimalType):
        return map_unique(lambda x: x.copy_negate(), args[0], node.type, node.type)
    return pc.negate_checked(args[0]) if node.type in INTEGRAL else pc.negate(args[0])


def _abs(node: Call, args: list[Any]) -> Value:
    if isinstance(node.type, DecimalType):
        return map_unique(abs, args[0], node.type, node.type)
    return pc.abs_checked(args[0]) if node.type in INTEGRAL else pc.abs(args[0])


def _whole(rounding: Callable[[Any], int]) -> Function:
    def run(node: Call, args: list[Any]) -> Value:
        source, target = argument_types(node)[0], node.type
        assert target is not None
        if source == LONG:
            return args[0]
        if isinstance(target, DecimalType):
            return map_unique(lambda x: Decimal(rounding(x)), args[0], source, target)
        return map_unique(lambda x: _saturate(x, rounding), args[0], source, target)

    return run


def _saturate(number: float, rounding: Callable[[Any], int]) -> int:
    """Java's conversion of a double to a long."""
    if math.isnan(number):
        return 0
    lowest, highest = -(1 << 63), (1 << 63) - 1
    if math.isinf(number):
        return highest if number > 0 else lowest
    return max(lowest, min(highest, rounding(number)))


def _round(node: Call, args: list[Any]) -> Value:
    types, target = argument_types(node), node.type
    assert target is not None
    places = args[1] if len(args) > 1 else scalar_of(0, INTEGER)

    def half_up(number: Any, digits: int) -> Any:
        if isinstance(number, float) and not math.isfinite(number):
            return number
        with localcontext() as context:
            context.prec = 400
            exact = Decimal(repr(number)) if isinstance(number, float) else Decimal(number)
            rounded = exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
            if isinstance(number, Decimal):
                return rounded.quantize(Decimal(1).scaleb(-target.scale))  # type: ignore[union-attr]
        return type(number)(rounded)

    return map_rows(half_up, (args[0], places), (types[0], INTEGER), target)


def _math(function: Callable[[float], float | None]) -> Function:
    return lambda node, args: map_unique(function, args[0], DOUBLE, DOUBLE)


def _exp(number: float) -> float:
    try:
        return math.exp(number)
    except OverflowError:
        return math.inf


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float | None]:
    return lambda number: None if number <= 0 else function(number)


def _pow(base: float, exponent: float) -> float:
    try:
        if math.isnan(exponent) or (abs(base) == 1 and math.isinf(exponent)):
            return math.nan  # unlike C, Java gives NaN here
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ValueError:
        return math.inf if base == 0 else math.nan


def _signum(number: float) -> float:
    return number if number == 0 or math.isnan(number) else math.copysign(1.0, number)


def _sqrt(number: float) -> float:
    return math.sqrt(number) if number >= 0 else math.nan


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


def _isnan(node: Call, args: list[Any]) -> Value:
    return pc.fill_null(pc.is_nan(args[0]), FALSE)


# --- collections


def _size(node: Call, args: list[Any]) -> Value:
    value = args[0]
    if isinstance(value.type, pa.MapType):
        lengths = [None if v is None else len(v) for v in spread(value, 1).to_pylist()]
        return array_of(lengths, INTEGER)
    return pc.list_value_length(value).cast(pa.int32())


def _element(node: Call, args: list[Any]) -> Value:
    """`getitem`, `get`, `element_at`, `try_element_at`; they differ in what a missing element is."""
    container_type = argument_types(node)[0]
    length = len(args[0])
    containers = spread(args[0], length)
    items = spread(args[1], length).to_pylist()
    strict = node.name in ("getitem", "element_at")
    from_one = node.name in ("element_at", "try_element_at")
    positions: list[int | None] = []
    offsets = containers.offsets.to_pylist()
    valid = pc.is_valid(containers).to_pylist()
    keys = containers.keys.to_pylist() if isinstance(container_type, MapType) else []
    for row, item in enumerate(items):
        start, end = offsets[row], offsets[row + 1]
        if not valid[row] or item is None:
            positions.append(None)
        elif isinstance(container_type, MapType):
            positions.append(next((i for i in range(end - 1, start - 1, -1) if keys[i] == item), None))
        else:
            positions.append(_position(item, end - start, start, strict, from_one))
    elements = containers.items if isinstance(container_type, MapType) else containers.values
    return elements.take(array_of(positions, LONG))


def _position(item: int, size: int, start: int, strict: bool, from_one: bool) -> int | None:
    if from_one and item == 0:
        raise INVALID_INDEX_OF_ZERO(function="element_at")
    index = (item - 1 if item > 0 else size + item) if from_one else item
    if 0 <= index < size:
        return start + index
    if strict:
        raise INVALID_ARRAY_INDEX(item=item, size=size)
    return None


def _contains(node: Call, args: list[Any]) -> Value:
    """`array_contains` is null where the element is not found but the array holds a null."""
    length = len(args[0])
    wanted = spread(args[1], length).to_pylist()
    containers = spread(args[0], length).to_pylist()
    results: list[bool | None] = []
    for container, item in zip(containers, wanted, strict=True):
        if container is None or item is None:
            results.append(None)
            continue
        elements = [pair[0] for pair in container] if node.name == "map_contains_key" else container
        same = any(e == item or (e != e and item != item) for e in elements)  # noqa: PLR0124
        results.append(True if same else None if None in elements else False)
    return array_of(results, BOOLEAN)


def _map_part(part: str) -> Function:
    def run(node: Call, args: list[Any]) -> Value:
        value = args[0]
        lists = pa.ListArray.from_arrays(value.offsets, getattr(value, part))
        missing = pa.nulls(len(value), lists.type)
        return pc.if_else(pc.is_valid(value), lists, missing)

    return run


RUN: dict[str, Function] = {
    **functions_hash.RUN,
    **functions_text.RUN,
    **functions_time.RUN,
    "negative": _negative,
    "abs": _abs,
    "ceil": _whole(math.ceil),
    "floor": _whole(math.floor),
    "round": _round,
    "sqrt": _math(_sqrt),
    "exp": _math(_exp),
    "ln": _math(_logarithm(math.log)),
    "log10": _math(_logarithm(math.log10)),
    "log2": _math(_logarithm(math.log2)),
    "signum": _math(_signum),
    "pow": lambda node, args: map_rows(_pow, args, [DOUBLE, DOUBLE], DOUBLE),
    "&": lambda node, args: pc.bit_wise_and(*args),
    "|": lambda node, args: pc.bit_wise_or(*args),
    "^": lambda node, args: pc.bit_wise_xor(*args),
    "~": lambda node, args: pc.bit_wise_not(args[0]),
    "isnan": _isnan,
    "nanvl": lambda node, args: pc.if_else(pc.is_nan(args[0]), args[1], args[0]),
    "greatest": _extreme(">"),
    "least": _extreme("<"),
    "size": _size,
    "array_size": _size,
    **dict.fromkeys(["getitem", "get", "element_at", "try_element_at"], _element),
    "array_contains": _contains,
    "map_contains_key": _contains,
    "map_keys": _map_part("keys"),
    "map_values": _map_part("items"),
}
