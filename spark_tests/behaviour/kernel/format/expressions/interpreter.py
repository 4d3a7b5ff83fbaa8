"""A second, slow reading of expressions: row by row, in plain Python, straight from the unbound tree.

It shares no code with the package beyond the tree, and is what `evaluate` is compared with.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from delta_ds.kernel.format.expressions.tree import Call, Cast, Column, Expression, Literal


def interpret(node: Expression, row: Mapping[str, Any]) -> Any:
    """The value of the expression on one row; None is null."""
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, Column):
        value: Any = row
        for name in node.path:
            value = None if value is None else value[name]
        return value
    if isinstance(node, Cast):
        raise AssertionError("casts are tested by example")
    return _call(node, row)


def _call(node: Call, row: Mapping[str, Any]) -> Any:
    name = node.name
    if name == "case":
        pairs = len(node.args) // 2
        for i in range(pairs):
            if interpret(node.args[2 * i], row) is True:
                return interpret(node.args[2 * i + 1], row)
        return interpret(node.args[-1], row) if len(node.args) % 2 else None
    values = [interpret(a, row) for a in node.args]
    if name in ("and", "or"):
        decisive = name == "or"
        return decisive if decisive in values else None if None in values else not decisive
    if name == "isnull":
        return values[0] is None
    if name == "isnotnull":
        return values[0] is not None
    if name == "<=>":
        return values[0] is values[1] if None in values else _order(*values) == 0
    if name == "in":
        results = [None if values[0] is None or v is None else _order(values[0], v) == 0 for v in values[1:]]
        return True if True in results else None if None in results else False
    if name == "coalesce":
        return next((v for v in values if v is not None), None)
    if name == "isnan":
        return values[0] is not None and math.isnan(values[0])
    if None in values:
        return None
    return _strict(name, values)


def _strict(name: str, values: list[Any]) -> Any:
    if name == "not":
        return not values[0]
    if name in ("=", "<>", "<", "<=", ">", ">="):
        sign = _order(*values)
        return {
            "=": sign == 0,
            "<>": sign != 0,
            "<": sign < 0,
            "<=": sign <= 0,
            ">": sign > 0,
            ">=": sign >= 0,
        }[name]
    if name in ("+", "-", "*"):
        a, b = values
        return a + b if name == "+" else a - b if name == "-" else a * b
    if name == "length":
        return len(values[0])
    if name == "startswith":
        return values[0].startswith(values[1])
    if name == "contains":
        return values[1] in values[0]
    if name == "like":
        return _like(values[0], values[1])
    if name == "year":
        return values[0].year
    raise AssertionError(name)


def _order(a: Any, b: Any) -> int:
    """-1, 0 or 1: Spark's total order; dates count from midnight UTC."""
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
    if isinstance(a, datetime.date) and type(a) is not type(b):
        a, b = _midnight(a), _midnight(b)
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) - math.isnan(b)
    elif isinstance(a, Decimal) or isinstance(b, Decimal):
        a, b = Decimal(a), Decimal(b)
    return (a > b) - (a < b)


def _midnight(value: Any) -> datetime.datetime:
    if isinstance(value, datetime.datetime):
        return value
    return datetime.datetime.combine(value, datetime.time(), datetime.timezone.utc)


def _like(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(_like(text[i:], pattern[1:]) for i in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and _like(text[1:], pattern[1:])
