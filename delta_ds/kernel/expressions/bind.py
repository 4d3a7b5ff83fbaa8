"""Bind an expression to a schema: resolve its columns and types.

Names become exact paths with types, operands are brought to the types that Spark (ANSI mode, the default
since 4.0) would bring them to, constants are computed, and the result is put into the plain forms that
skipping looks for: column on the left, `NOT` pushed inwards, casts moved from columns to constants.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from delta_ds.conditions.classes import PREDICATE_NOT_BOOLEAN
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.expressions.calls import (
    BindScope,
    bind_call,
    cast,
    field_of,
    fold_constant,
    unknown_column,
)
from delta_ds.kernel.expressions.coercion import can_cast, in_range
from delta_ds.kernel.expressions.temporal import zone_of
from delta_ds.kernel.expressions.tree import Call, Cast, Column, Expression, Literal, nesting
from delta_ds.kernel.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
    StructType,
)
from delta_ds.records import replace

# Of a tree that all that walks one, several calls a level, can take; chains of AND and OR count as one level.
_DEEPEST = 200


def bind(
    expression: Expression, schema: StructType, timezone: str = "UTC", *, predicate: bool = True
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

    Source: Spark's `AnsiTypeCoercion`, `UnwrapCastInBinaryComparison`, `NullPropagation`.
    """
    zone_of(timezone)
    if nesting(expression) > _DEEPEST:
        raise PredicateError(f"the predicate is nested more than {_DEEPEST} levels deep; split it up")
    scope = BindScope(schema, timezone, datetime.datetime.now(datetime.timezone.utc))
    try:
        bound = _bind(expression, scope)
    except RecursionError as error:
        raise PredicateError("the predicate is nested too deeply to be evaluated; split it up") from error
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


def _bind(node: Expression, scope: BindScope) -> Expression:
    if isinstance(node, Column):
        return _resolve(node, scope.schema)
    if isinstance(node, Literal):
        return _typed(node)
    if isinstance(node, Cast):
        child = _bind(node.child, scope)
        if child.type is not None and not can_cast(child.type, node.type):
            raise PredicateError(f"cannot cast {child} from {child.type} to {node.type}")
        return cast(child, node.type, scope.timezone, node.safe)
    args = tuple(_bind(a, scope) for a in node.args)
    bound = bind_call(node.name, args, scope)
    return fold_constant(bound) if isinstance(bound, Call) else bound


# --- columns and constants


def _resolve(column: Column, schema: StructType) -> Expression:
    path: list[str] = []
    found: DataType = schema
    for depth, name in enumerate(column.path):
        if not isinstance(found, StructType):
            child: Expression = Column(tuple(path), found)
            for rest in column.path[depth:]:
                child = field_of(child, Literal(rest, STRING))
            return child
        field = found.find(name)
        if field is None:
            raise unknown_column(column, name, found)
        path.append(field.name)
        found = field.type
    return Column(tuple(path), found)


def _typed(literal: Literal) -> Literal:
    value: Any = literal.value
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.timezone.utc)
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
    elif isinstance(value, datetime.datetime) and value.tzinfo is None:
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
    (datetime.date, DATE),
)
