"""An expression as plans of Spark show it before its names are resolved, which the history has of an OPTIMIZE.

Source: Spark, `Expression.simpleString` of what its parser makes; delta-spark, `DeltaOperations.predicatesToString`.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from delta_ds.kernel.format.expressions.tree import Call, Cast, Column, Expression, Literal, fold, quote_name

_INFIX = frozenset(["=", "<=>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "div", "&", "|", "^"])
_FUNCTIONS_OF_SPARK = frozenset(["isnull", "isnotnull"])


def unresolved_text(expression: Expression) -> str:
    """The text of an expression that was parsed and not bound.

    >>> from delta_ds.kernel.format.expressions.sql import parse_predicate
    >>> unresolved_text(parse_predicate("key = 'a' AND NOT (n IN (1, 2))"))
    "(('key = a) AND NOT 'n IN (1,2))"
    """
    return fold(expression, _text)


def _text(node: Expression, parts: list[str]) -> str:
    if isinstance(node, Column):
        return "'" + ".".join(map(quote_name, node.path))
    if isinstance(node, Literal):
        return _constant(node.value)
    if isinstance(node, Cast):
        return f"{'try_' * node.safe}cast({parts[0]} as {node.type})"
    return _call(node, parts)


def _call(node: Call, parts: list[str]) -> str:
    name = node.name
    if name in ("and", "or"):
        return reduce(lambda left, right: f"({left} {name.upper()} {right})", parts)
    if name == "<>":
        return f"NOT ({parts[0]} = {parts[1]})"
    if name in _INFIX and len(parts) == 2:
        return f"({parts[0]} {name} {parts[1]})"
    if name == "not":
        return f"NOT {parts[0]}"
    if name == "in":
        return f"{parts[0]} IN ({','.join(parts[1:])})"
    if name == "like":
        escape = f" ESCAPE '{parts[2]}'" if len(parts) == 3 else ""
        return f"{parts[0]} LIKE {parts[1]}{escape}"
    quote = "" if name in _FUNCTIONS_OF_SPARK else "'"
    return f"{quote}{name}({', '.join(parts)})"


def _constant(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"0x{value.hex().upper()}" if isinstance(value, bytes) else str(value)
