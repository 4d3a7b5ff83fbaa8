"""Bind an expression to a schema: resolve its columns and types.

Names become exact paths with types, operands are brought to the types that Spark (ANSI mode, the default
since 4.0) would bring them to, constants are computed, and the result is put into the plain forms that
skipping looks for: column on the left, `NOT` pushed inwards, casts moved from columns to constants. Constants that a
`char(n)` column is compared with get its blanks.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from delta_ds.conditions.record import PREDICATE_NOT_BOOLEAN
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.calls import (
    BindScope,
    bind_call,
    cast,
    field_of,
    fold_constant,
    unknown_column,
)
from delta_ds.kernel.format.expressions.coercion import can_cast, in_range
from delta_ds.kernel.format.expressions.moments import (
    FarDate,
    FarTimestamp,
    is_aware,
    micros_of,
    timestamp_of,
)
from delta_ds.kernel.format.expressions.tree import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    fold,
    parts_of,
    with_parts,
)
from delta_ds.kernel.format.expressions.zones import zone_of
from delta_ds.kernel.format.schema.types import (
    BINARY,
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
    StructType,
)
from delta_ds.records import replace

# --- function, type and date part names of SQL in all their spellings

# The canonical name of functions that have more than one.
ALIASES = {
    "character_length": "length",
    "char_length": "length",
    "len": "length",
    "ucase": "upper",
    "lcase": "lower",
    "day": "dayofmonth",
    "week": "weekofyear",
    "substr": "substring",
    "mid": "substring",
    "ceiling": "ceil",
    "power": "pow",
    "sign": "signum",
    "mod": "%",
    "date_diff": "datediff",
    "dateadd": "date_add",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "cardinality": "size",
    "nvl": "coalesce",
    "ifnull": "coalesce",
    "sha": "sha1",
    "curdate": "current_date",
    "now": "current_timestamp",
    "char": "chr",
    "charindex": "locate",
}

# Functions of one argument that only cast it.
CAST_FUNCTIONS: dict[str, DataType] = {
    "boolean": BOOLEAN, "tinyint": BYTE, "smallint": SHORT, "int": INTEGER, "bigint": LONG, "float": FLOAT,
    "double": DOUBLE, "string": STRING, "binary": BINARY, "date": DATE, "timestamp": TIMESTAMP,
    "decimal": DecimalType(10, 0), "to_date": DATE, "to_timestamp": TIMESTAMP, "to_timestamp_ltz": TIMESTAMP,
    "to_timestamp_ntz": TIMESTAMP_NTZ,
}  # fmt: skip

# sqlglot's names of types.
TYPE_NAMES: dict[str, DataType] = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": BYTE,
    "SMALLINT": SHORT,
    "INT": INTEGER,
    "BIGINT": LONG,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "TEXT": STRING,
    "VARCHAR": STRING,
    "CHAR": STRING,
    "BINARY": BINARY,
    "VARBINARY": BINARY,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMPLTZ": TIMESTAMP,
    "TIMESTAMPNTZ": TIMESTAMP_NTZ,
    "NULL": VOID,
}

# The function for a part of a date, as `extract` and `date_part` name parts.
DATE_PARTS = {
    **dict.fromkeys(["year", "years", "y", "yr"], "year"),
    **dict.fromkeys(["month", "months", "mon"], "month"),
    **dict.fromkeys(["day", "days", "d"], "dayofmonth"),
    **dict.fromkeys(["hour", "hours", "h"], "hour"),
    **dict.fromkeys(["minute", "minutes", "min"], "minute"),
    **dict.fromkeys(["quarter", "qtr"], "quarter"),
    **dict.fromkeys(["week", "weeks", "w"], "weekofyear"),
    **dict.fromkeys(["dayofweek", "dow"], "dayofweek"),
    "doy": "dayofyear",
    "yearofweek": "yearofweek",
}


# --- bind an expression to a schema: resolve its columns and types


def bind(
    expression: Expression,
    schema: StructType,
    timezone: str = "UTC",
    *,
    predicate: bool = True,
    stored: bool = False,
) -> Expression:
    """Resolve the columns of an expression, settle every type, and simplify.

    Parameters
    ----------
    expression
        From `parse_predicate`, or built by hand; binding a bound tree again changes nothing.
    schema
        The columns there are; names match exactly, else ignoring case, also inside structs.
    timezone
        The session time zone: for constants without a zone, and for dates and hours of timestamps.
    predicate
        Whether the result has to be boolean.
    stored
        Whether it is for values as they are to be stored: those of `char(n)` columns may lack the blanks that they
        have where they are read.

    Returns
    -------
    Expression
        Every node has its type. Only calls that cannot be evaluated have none: unknown functions, and known
        ones on types they do not take; `evaluate.can_evaluate` finds them.

    Raises
    ------
    PredicateError
        An unknown column (the nearest name is suggested), operands that have no common type, a constant that
        is not of the type it is compared with, or a predicate that is not boolean.

    Source: Spark's `AnsiTypeCoercion`, `UnwrapCastInBinaryComparison`, `NullPropagation`, `ApplyCharTypePadding`.
    """
    zone_of(timezone)
    scope = BindScope(schema, timezone, datetime.datetime.now(datetime.timezone.utc), stored=stored)
    bound = _bound(expression, scope)
    if not predicate:
        return bound
    if type_of(bound) == VOID:
        return Literal(None, BOOLEAN)
    if type_of(bound) not in (BOOLEAN, None):
        raise PREDICATE_NOT_BOOLEAN(predicate=bound, type=type_of(bound))
    return bound


def type_of(expression: Expression) -> DataType | None:
    """The type of a bound expression; None if it cannot be evaluated."""
    return expression.type


def _bound(expression: Expression, scope: BindScope) -> Expression:
    return fold(_with_not_inside(expression), lambda node, parts: _bind(node, parts, scope), _bound_first)


def _bound_first(node: Expression) -> tuple[Expression, ...]:
    """The parts of a node that are bound before it; of a function with a lambda not that, which has to know types."""
    return parts_of(node)[:1] if _has_lambda(node) else parts_of(node)


def _has_lambda(node: Expression) -> bool:
    function = node.args[1] if isinstance(node, Call) and len(node.args) == 2 else None
    return isinstance(function, Call) and function.name == "lambda"


def _bind_lambda(node: Call, container: Expression, scope: BindScope) -> Call:
    """A call with a lambda, over the array that it is to be called for."""
    from delta_ds.kernel.format.expressions.functions_lists import NAMES, result_type, variable_types

    function = node.args[1]
    assert isinstance(function, Call)
    names = [str(n.value).lower() for n in function.args[1:] if isinstance(n, Literal)]
    types = variable_types(node.name, container.type, len(names)) if node.name in NAMES else None
    if types is None or container.type is None:
        return Call(node.name, (container, function), None)
    variables = {**dict(scope.variables), **dict(zip(names, types, strict=True))}
    body = _bound(function.args[0], replace(scope, variables=tuple(variables.items())))
    bound = Call("lambda", (body, *function.args[1:]), body.type)
    return Call(node.name, (container, bound), result_type(node.name, container.type, body.type))


def _bind(node: Expression, parts: list[Expression], scope: BindScope) -> Expression:
    """A node over parts that are bound."""
    if isinstance(node, Column):
        return _resolve(node, scope.schema)
    if isinstance(node, Literal):
        return _typed(node)
    if isinstance(node, Cast):
        child = parts[0]
        if child.type is not None and not can_cast(child.type, node.type):
            raise PredicateError(f"cannot cast {child} from {child.type} to {node.type}")
        return cast(child, node.type, scope.timezone, node.safe)
    if _has_lambda(node):
        return _bind_lambda(node, parts[0], scope)
    bound = bind_call(node, tuple(parts), scope)
    return fold_constant(bound) if isinstance(bound, Call) else bound


_OPPOSITE = {"and": "or", "or": "and"}


def _with_not_inside(expression: Expression) -> Expression:
    """The expression with every NOT below the AND and OR that it negates."""
    return fold((expression, True), _wanted, _asked_of_parts)


# A condition, and whether it is to be true or false.
_Asked = tuple[Expression, bool]


def _asked_of_parts(asked: _Asked) -> tuple[_Asked, ...]:
    node, truth = asked
    if _negates_logic(node):
        return ((parts_of(node)[0], not truth),)
    is_logic = isinstance(node, Call) and node.name in _OPPOSITE
    return tuple((part, truth if is_logic else True) for part in parts_of(node))


def _wanted(asked: _Asked, parts: list[Expression]) -> Expression:
    node, truth = asked
    if _negates_logic(node):
        return parts[0]
    if isinstance(node, Call) and node.name in _OPPOSITE:
        return with_parts(node if truth else replace(node, name=_OPPOSITE[node.name]), parts)
    whole = with_parts(node, parts)
    return whole if truth else Call("not", (whole,))


def _negates_logic(node: Expression) -> bool:
    below = node.args[0] if isinstance(node, Call) and node.name == "not" else None
    return isinstance(below, Call) and (below.name in _OPPOSITE or below.name == "not")


# --- columns and constants


def _resolve(column: Column, schema: StructType) -> Expression:
    path: list[str] = []
    level: DataType = schema
    for depth, name in enumerate(column.path):
        if not isinstance(level, StructType):
            child: Expression = Column(tuple(path), level)
            for rest in column.path[depth:]:
                child = field_of(child, Literal(rest, STRING))
            return child
        field = level.find(name)
        if field is None:
            raise unknown_column(column, name, level)
        path.append(field.name)
        level = field.type
    return Column(tuple(path), level)


def _typed(literal: Literal) -> Literal:
    value: Any = literal.value
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = timestamp_of(micros_of(value), True)
    if literal.type is not None:
        return replace(literal, value=value)
    if isinstance(value, Decimal) and value.is_finite():
        scale = max(-int(value.as_tuple().exponent), 0)
        precision = max(value.adjusted() + 1, 1) + scale
        if precision <= 38:
            return Literal(value, DecimalType(precision, scale))
    elif isinstance(value, int) and not isinstance(value, bool):
        fitting = next((t for t in (INTEGER, LONG) if in_range(value, t)), None)
        return Literal(value, fitting) if fitting else _typed(Literal(Decimal(value)))
    elif isinstance(value, (datetime.datetime, FarTimestamp)) and not is_aware(value):
        return Literal(value, TIMESTAMP_NTZ)
    for kind, data_type in _PYTHON_TYPES:
        if isinstance(value, kind):
            return Literal(value, data_type)
    raise PredicateError(f"{literal.value!r} cannot be used in a predicate")


_PYTHON_TYPES: tuple[tuple[type, DataType], ...] = (
    (type(None), VOID),
    (bool, BOOLEAN),
    (float, DOUBLE),
    (str, STRING),
    (bytes, BINARY),
    (datetime.datetime, TIMESTAMP),
    (FarTimestamp, TIMESTAMP),
    (datetime.date, DATE),
    (FarDate, DATE),
)
