"""Type operators and function calls: find the common type of their operands, fold constants.

Each function takes bound arguments and gives a bound expression.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from delta_ds.conditions.expressions import CAST_INVALID_INPUT_LITERAL
from delta_ds.conditions.schema import UNRESOLVED_COLUMN_IN_PREDICATE
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.coercion import (
    INTEGER_BITS,
    INTEGRAL,
    TEMPORAL,
    arithmetic_type,
    can_cast,
    common_type,
    common_type_of,
    in_range,
    unwrap_comparison,
    unwrap_in,
)
from delta_ds.kernel.format.expressions.moments import DAY_US, date_of, micros_of
from delta_ds.kernel.format.expressions.signatures import FUNCTIONS, item_type
from delta_ds.kernel.format.expressions.temporal import interval_parts
from delta_ds.kernel.format.expressions.tree import Call, Cast, Column, Expression, Literal
from delta_ds.kernel.format.expressions.zones import local_micros, zone_of
from delta_ds.kernel.format.schema.char_varchar import char_length
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
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
    is_nested,
)
from delta_ds.records import dataclass, replace

COMPARISONS = frozenset(["=", "<=>", "<>", "<", "<=", ">", ">="])
_FLIPPED = {"=": "=", "<=>": "<=>", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITES = (("=", "<>"), ("<", ">="), (">", "<="), ("isnull", "isnotnull"))
_NEGATED = {**dict(_OPPOSITES), **{opposite: name for name, opposite in _OPPOSITES}}
_ARITHMETIC = frozenset(["+", "-", "*", "/", "%", "div", "pmod"])


_Types = tuple[DataType, DataType] | None


@dataclass(frozen=True, slots=True)
class BindScope:
    """What binding looks things up in: columns, the session time zone, the moment that is now, variables of lambdas.

    `stored`: the values are those to be stored, so texts of `char(n)` columns may lack their blanks.
    """

    schema: StructType
    timezone: str
    now: datetime.datetime
    variables: tuple[tuple[str, DataType], ...] = ()
    stored: bool = False


def bind_call(node: Call, args: tuple[Expression, ...], scope: BindScope) -> Expression:
    """A call over bound arguments; `node` is the call as it was written."""
    name = node.name
    if name in ("and", "or"):
        return _logic(name, args)
    if name == "not":
        return negation(_boolean(args[0]))
    if name in ("isnull", "isnotnull"):
        return Call(name, args, BOOLEAN)
    if name in COMPARISONS:
        return _comparison(name, args, _types_of_operands(node, args), scope)
    if name == "in":
        return _in(args, scope)
    if name == "case":
        return _case(args, scope)
    if name in _ARITHMETIC and len(args) == 2:
        return _arithmetic(name, args, _types_of_operands(node, args), scope)
    if name == "getfield":
        return field_of(args[0], args[1])
    if name == "variable" and isinstance(node.args[0], Literal):
        return replace(node, type=dict(scope.variables).get(str(node.args[0].value).lower()))
    if name in ("current_timestamp", "current_date") and not args:
        today = local_micros(micros_of(scope.now), zone_of(scope.timezone)) // DAY_US
        return Literal(scope.now, TIMESTAMP) if name == "current_timestamp" else Literal(date_of(today), DATE)
    return _function(name, args, scope)


def _boolean(node: Expression) -> Expression:
    if node.type == VOID:
        return Literal(None, BOOLEAN)
    if node.type not in (BOOLEAN, None):
        raise PredicateError(f"{node} is of type {node.type} where a condition is needed")
    return node


def _logic(name: str, args: Sequence[Expression]) -> Expression:
    neutral = name == "and"
    kept: dict[Expression, None] = {}
    for arg in map(_boolean, args):
        parts = arg.args if isinstance(arg, Call) and arg.name == name else (arg,)
        for part in parts:
            if isinstance(part, Literal) and part.value is (not neutral):
                return part
            if not (isinstance(part, Literal) and part.value is neutral):
                kept[part] = None
    if len(kept) <= 1:
        return next(iter(kept), Literal(neutral, BOOLEAN))
    return Call(name, tuple(kept), BOOLEAN)


def negation(node: Expression) -> Expression:
    """`NOT node` for a bound boolean, with the `NOT` as far inside as it goes."""
    if isinstance(node, Literal):
        return Literal(None if node.value is None else not node.value, BOOLEAN)
    if isinstance(node, Call) and node.type == BOOLEAN:
        if node.name in _NEGATED:
            return replace(node, name=_NEGATED[node.name])
        if node.name == "not":
            return node.args[0]
        if node.name in ("and", "or"):
            return _logic("or" if node.name == "and" else "and", [negation(a) for a in node.args])
    return Call("not", (node,), node.type)


def _comparison(name: str, args: tuple[Expression, ...], types: _Types, scope: BindScope) -> Expression:
    left, right = args
    if isinstance(left, Literal) and not isinstance(right, Literal):
        name, left, right = _FLIPPED[name], right, left
    if types is None:
        return Call(name, (left, right), None)
    if isinstance(right, Literal) and right.value is None:
        return Call("isnull", (left,), BOOLEAN) if name == "<=>" else Literal(None, BOOLEAN)
    common = common_type(*types)
    if common is None:
        raise PredicateError(f"cannot compare {left} ({left.type}) with {right} ({right.type})")
    if is_nested(common):
        return Call(name, (left, right), None)
    left, right = _coerce(left, common, scope), _coerce(right, common, scope)
    left, right = _padded((left, right), scope)
    return unwrap_comparison(name, left, right)


def _in(args: tuple[Expression, ...], scope: BindScope) -> Expression:
    types = [a.type for a in args]
    if any(t is None or is_nested(t) for t in types):
        return Call("in", args, None)
    if isinstance(args[0], Literal) and args[0].value is None:
        return Literal(None, BOOLEAN)
    common = common_type_of(t for t in types if t is not None)
    if common is None:
        raise PredicateError(f"cannot compare {args[0]} ({types[0]}) with {', '.join(map(str, args[1:]))}")
    value, *items = _padded([_coerce(a, common, scope) for a in args], scope)
    return unwrap_in(value, list(dict.fromkeys(items)))


def _padded(operands: Sequence[Expression], scope: BindScope) -> Sequence[Expression]:
    """A `char(n)` column and what it is compared with, filled with blanks to the length of the longest.

    Only a column itself is padded, no field inside one, and only where all others are constants or such columns.
    Source: Spark, `ApplyCharTypePaddingHelper`.
    """
    chars = [_char_length(operand, scope.schema) for operand in operands]
    first, *others = operands
    if chars[0] is None or not (
        all(length is not None for length in chars)
        or all(isinstance(other, Literal) and other.type == STRING for other in others)
    ):
        return operands
    constants = [len(o.value) for o in others if isinstance(o, Literal) and o.value is not None]
    longest = max([*constants, *(length for length in chars if length is not None)])

    def filled(operand: Expression, length: int | None) -> Expression:
        if isinstance(operand, Literal):
            return operand if operand.value is None else replace(operand, value=operand.value.ljust(longest))
        if length == longest and not scope.stored:
            return operand  # it is padded where it is read
        return Call("rpad", (operand, Literal(longest, INTEGER)), STRING)

    return [filled(operand, length) for operand, length in zip(operands, chars, strict=True)]


def _char_length(operand: Expression, schema: StructType) -> int | None:
    field = schema.find(operand.path[0]) if isinstance(operand, Column) and len(operand.path) == 1 else None
    return None if field is None else char_length(field)


def _case(args: tuple[Expression, ...], scope: BindScope) -> Expression:
    conditions = [_boolean(c) for c in args[: len(args) - len(args) % 2 : 2]]
    values = [args[i] for i in range(1, len(args), 2)] + list(args[len(args) - len(args) % 2 :])
    if any(v.type is None for v in values):
        return Call("case", args, None)
    common = common_type_of(v.type for v in values if v.type is not None)
    if common is None:
        raise PredicateError(f"the values of CASE have no common type: {', '.join(map(str, values))}")
    cast_values = [_coerce(v, common, scope) for v in values]
    flat = [x for pair in zip(conditions, cast_values, strict=False) for x in pair]
    result = Call("case", (*flat, *cast_values[len(conditions) :]), common)
    return result if all(c.type is not None for c in conditions) else replace(result, type=None)


def _arithmetic(name: str, args: tuple[Expression, ...], types: _Types, scope: BindScope) -> Expression:
    left, right = args
    shifted = _shift(name, left, right, scope)
    if shifted is not None:
        return shifted
    if types is None:
        return Call(name, (left, right), None)
    found = arithmetic_type("%" if name == "pmod" else name, *types)
    if found is None:
        if left.type in TEMPORAL or is_nested(left.type):
            return Call(name, (left, right), None)
        raise PredicateError(f"cannot compute {left} {name} {right} of types {left.type} and {right.type}")
    if name == "/" and found[0] == DOUBLE and common_type(*types) in INTEGRAL:
        # A text beside a whole number is read as one.
        left, right = (_coerce(arg, LONG, scope) if arg.type == STRING else arg for arg in args)
    return Call(name, (_coerce(left, found[0], scope), _coerce(right, found[1], scope)), found[2])


def _types_of_operands(node: Call, args: tuple[Expression, ...]) -> _Types:
    """The types of two operands; None where one is not known.

    A whole constant beside a decimal counts as the smallest decimal that holds it, where it is written as one.
    """
    types = [arg.type for arg in args]
    for at, (written, arg) in enumerate(zip(node.args, args, strict=True)):
        whole = isinstance(written, Literal) and isinstance(arg, Literal) and type(arg.value) is int
        if whole and isinstance(arg, Literal) and isinstance(args[1 - at].type, DecimalType):
            types[at] = DecimalType(len(str(abs(arg.value))), 0)
    left, right = types
    return None if left is None or right is None else (left, right)


def _shift(name: str, left: Expression, right: Expression, scope: BindScope) -> Expression | None:
    """A date plus days, or a date or timestamp plus an interval; None for other operands."""
    if name == "+" and (left.type in (BYTE, SHORT, INTEGER) or _is_interval(left)):
        left, right = right, left
    if left.type not in TEMPORAL or name not in ("+", "-"):
        return None
    if left.type == DATE and right.type in (BYTE, SHORT, INTEGER):
        return _function("date_add" if name == "+" else "date_sub", (left, right), scope)
    if not (isinstance(right, Call) and _is_interval(right)):
        return None
    sign = 1 if name == "+" else -1
    months, days, microseconds = (sign * p for p in interval_parts(right))
    if left.type != DATE:
        # Hours and less are an interval of days too: a day of the calendar for each 24 of them.
        whole = (1 if microseconds > 0 else -1) * (abs(microseconds) // DAY_US)
        days, microseconds = days + whole, microseconds - whole * DAY_US
    if left.type == DATE and microseconds:
        return _shift(name, cast(left, TIMESTAMP, scope.timezone), right, scope)
    parts = (Literal(months, INTEGER), Literal(days, INTEGER), Literal(microseconds, LONG))
    return fold_constant(Call("add_interval", (left, *parts), left.type, scope.timezone))


def _is_interval(node: Expression) -> bool:
    return isinstance(node, Call) and node.name == "interval"


def field_of(child: Expression, name: Expression) -> Expression:
    if isinstance(name, Literal) and isinstance(name.value, str):
        if isinstance(child.type, MapType) and child.type.key == STRING:
            return Call("getitem", (child, name), child.type.value)
        if isinstance(child.type, StructType):
            field = child.type.find(name.value)
            if field is None:
                raise unknown_column(Column((str(child), name.value)), name.value, child.type)
            if isinstance(child, Column):
                return Column((*child.path, field.name), field.type)
            return Call("getfield", (child, Literal(field.name, STRING)), field.type)
    return Call("getfield", (child, name), None)


def _function(name: str, args: tuple[Expression, ...], scope: BindScope) -> Expression:
    signature = FUNCTIONS.get(name)
    types = [a.type for a in args if a.type is not None]
    if signature is None or len(types) < len(args):
        return Call(name, args, None)
    if name == "getitem" and isinstance(types[0], StructType):
        return field_of(args[0], args[1])
    wanted = types if name == "concat" and set(types) == {BINARY} else signature.arguments(types)
    if wanted is None:
        return Call(name, args, None)
    wanted = _element_types(name, wanted)
    if wanted is None:
        return Call(name, args, None)
    if name in _OF_CLOCKS and types[0] in (DATE, STRING):
        args = (_coerce(args[0], TIMESTAMP, scope),)
    bound = tuple(_coerce(a, t, scope) for a, t in zip(args, wanted, strict=True))
    result = BINARY if name == "concat" and BINARY in wanted else signature.result_of(wanted)
    if name in ("round", "bround") and isinstance(wanted[0], DecimalType):
        result = _round_type(wanted[0], bound[1:])
    if name in _UNITS_AT and not _is_unit(name, bound[_UNITS_AT[name]]):
        return Literal(None, result)
    return Call(name, bound, result, scope.timezone if signature.zoned else None)


# What they take of a date or a text is the wall clock time of an instant.
_OF_CLOCKS = frozenset(["hour", "minute", "second"])
_UNITS_AT = {"trunc": 1, "date_trunc": 0}


def _is_unit(name: str, unit: Expression) -> bool:
    """Whether a constant is one of the units of time that a function knows; others give null for every row."""
    from delta_ds.kernel.format.expressions.functions_time import CLOCK_UNITS, DATE_UNITS

    if not isinstance(unit, Literal):
        return True
    known = str(unit.value).lower()
    return unit.value is not None and (known in DATE_UNITS or (name == "date_trunc" and known in CLOCK_UNITS))


def _element_types(name: str, types: list[DataType]) -> list[DataType] | None:
    """Bring the second argument of functions on collections to the type of the elements, keys or indexes."""
    container = types[0] if types else None
    if name in ("getitem", "element_at", "get", "try_element_at") and container is not None:
        item = item_type(container, types[1])
    elif name in ("array_contains", "array_position") and isinstance(container, ArrayType):
        item = container.element if common_type(container.element, types[1]) == container.element else None
    elif name == "map_contains_key" and isinstance(container, MapType):
        item = container.key if common_type(container.key, types[1]) == container.key else None
    else:
        return types
    return [types[0], item] if item is not None else None


def _round_type(decimal: DecimalType, digits: Sequence[Expression]) -> DataType | None:
    places = 0 if not digits else digits[0].value if isinstance(digits[0], Literal) else None
    if places is None:
        return None
    whole = decimal.precision - decimal.scale + 1
    if places < 0:
        return DecimalType(min(max(whole, -places + 1), 38), 0)
    scale = min(decimal.scale, places)
    return DecimalType(min(whole + scale, 38), scale)


def cast(child: Expression, target: DataType, timezone: str, safe: bool = False) -> Expression:
    """The bound child as another type: itself, a new constant, or a `Cast`."""
    if child.type == target:
        return child
    if isinstance(child, Literal) and child.value is None:
        return Literal(None, target)
    value = child.value if isinstance(child, Literal) else None
    if type(value) is int and target in INTEGER_BITS and in_range(value, target):
        return Literal(value, target)
    other = child.type if target == TIMESTAMP else target if child.type == TIMESTAMP else None
    zoned = other in (STRING, DATE, TIMESTAMP_NTZ)
    return fold_constant(Cast(child, target, safe, timezone if zoned else None))


def _coerce(child: Expression, target: DataType, scope: BindScope) -> Expression:
    """As `cast`, for casts nobody wrote: a constant that cannot become the type is an error at once."""
    if child.type != target and (child.type is None or not can_cast(child.type, target)):
        raise PredicateError(f"{child} is of type {child.type} where {target} is needed")
    result = cast(child, target, scope.timezone)
    if isinstance(child, Literal) and isinstance(result, Cast):
        raise CAST_INVALID_INPUT_LITERAL(child=child, target=target)
    return result


def fold_constant(node: Call | Cast) -> Expression:
    """The constant a node of constants amounts to; the node itself if computing it fails."""
    args = (node.child,) if isinstance(node, Cast) else node.args
    if isinstance(node, Call) and node.name == "variable":
        return node
    if node.type is None or is_nested(node.type) or not all(isinstance(a, Literal) for a in args):
        return node
    from delta_ds.kernel.format.expressions.evaluate import constant

    try:
        return Literal(constant(node), node.type)
    except (PredicateError, OverflowError):
        # Spark, too, raises only when a row reaches the expression.
        return node


def unknown_column(column: Column, name: str, struct: StructType) -> PredicateError:
    from delta_ds.kernel.format.schema.column_paths import nearest_name

    nearest = nearest_name(name, struct.names)
    hint = f"did you mean {nearest!r}?" if nearest else f"there are: {', '.join(struct.names[:20])}"
    return UNRESOLVED_COLUMN_IN_PREDICATE(
        column=".".join(column.path),
        hint=hint,
        objectName=".".join(f"`{part}`" for part in column.path),
        proposal=[f"`{n}`" for n in ([nearest] if nearest else struct.names[:20])],
    )
