"""Conditions in queries of a client, as expressions of the kernel."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from delta_ds.kernel.format.expressions.tree import Call, Column, Expression, Literal, fold
from delta_ds.spark.base.query_needs import usable_parts

_CALLS = {
    "==": "=", "=": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>", "in": "in", "not": "not", "!": "not",
    "isnull": "isnull", "isnotnull": "isnotnull", "or": "or", "and": "and",
}  # fmt: skip
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
# Conditions of more levels, as programs write them, count for nothing.
_MOST_LEVELS = 50
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def path_of_name(identifier: str) -> tuple[str, ...]:
    """The names in the name of a column or field, as a client sends it."""
    return tuple(quoted.replace("``", "`") or plain for quoted, plain in _PART.findall(identifier))


def conditions_in(expression: Any) -> list[Expression]:
    """The parts of a condition that are understood; the others count for nothing."""
    found: list[Expression] = []
    pending = [expression]
    while pending:
        part = pending.pop()
        function = part.unresolved_function
        if part.WhichOneof("expr_type") == "expression_string":
            trees = usable_parts(part.expression_string.expression)
            found += [tree for tree in trees if fold(tree, _levels) <= _MOST_LEVELS]
        elif function.function_name.lower() == "and" and not function.is_user_defined_function:
            pending += list(function.arguments)[::-1]
        else:
            tree = _tree(part, _MOST_LEVELS)
            found += [] if tree is None else [tree]
    return found


def _levels(node: Expression, below: Sequence[int]) -> int:
    return 1 + max(below, default=0)


def _tree(expression: Any, levels: int) -> Expression | None:
    """An expression of the kernel, of so many levels at most; None: it may be something else to Spark."""
    kind = expression.WhichOneof("expr_type")
    if kind == "unresolved_attribute":
        attribute = expression.unresolved_attribute
        path = path_of_name(attribute.unparsed_identifier)
        return None if attribute.is_metadata_column or not path else Column(path)
    if kind == "literal":
        return _literal(expression.literal)
    function = expression.unresolved_function
    if kind != "unresolved_function" or function.is_user_defined_function or not levels:
        return None
    name = _CALLS.get(function.function_name.lower())
    known: list[Expression] = []
    for argument in function.arguments if name is not None else ():
        part = _tree(argument, levels - 1)
        if part is None:
            return None
        known.append(part)
    return None if name is None or (name == "in" and len(known) < 2) else Call(name, tuple(known))


def _literal(literal: Any) -> Expression | None:
    kind = literal.WhichOneof("literal_type")
    try:
        value = _VALUES[kind](getattr(literal, kind))
    except (KeyError, ArithmeticError, ValueError):
        return None
    return Literal(value)


def _days(value: int) -> dt.date:
    return (_EPOCH + dt.timedelta(days=value)).date()


def _microseconds(value: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=value)


def _finite(value: float) -> float:
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(value)
    return value


_VALUES: Mapping[str, Any] = {
    "boolean": bool,
    "byte": int,
    "short": int,
    "integer": int,
    "long": int,
    "double": _finite,
    "string": str,
    "decimal": lambda value: Decimal(value.value),
    "date": _days,
    "timestamp": _microseconds,
    "timestamp_ntz": lambda value: _microseconds(value).replace(tzinfo=None),
}
