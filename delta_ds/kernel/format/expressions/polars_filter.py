"""Filters of polars, by the JSON form of its expressions, to trees.

The form is polars' own and changes with its versions: what is not as expected is left to polars.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.format.expressions import engine_filters as filters
from delta_ds.kernel.format.expressions.engine_filters import Part, Value

if TYPE_CHECKING:
    import polars

    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.schema.types import StructType

_COMPARISONS = {
    "Eq": "=",
    "EqValidity": "<=>",
    "NotEq": "<>",
    "Lt": "<",
    "LtEq": "<=",
    "Gt": ">",
    "GtEq": ">=",
}
_AND, _OR = ("And", "LogicalAnd"), ("Or", "LogicalOr")
_INTEGERS = frozenset(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64, 128)) | {"Int"}
_FLOATS = frozenset(["Float", "Float32", "Float64"])
_TEXTS = frozenset(["String", "StringOwned", "Str"])
# Of one microsecond, and of how many of the unit it is made.
_UNITS = {"Microseconds": (1, 1), "Milliseconds": (1_000, 1), "Nanoseconds": (1, 1_000)}
# Of conditions inside one another; long chains of one operator count as one.
_MOST_LEVELS = 50
_BOUNDS = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}


def tree_of(filter_: polars.Expr, schema: StructType) -> Expression | None:
    """What a filter implies, as far as it is understood; None for nothing.

    Parameters
    ----------
    schema
        Of the table.
    """
    try:
        written = json.loads(filter_.meta.serialize(format="json"))
    except RecursionError:
        return None  # hundreds of conditions in one another: polars filters by them itself
    part = _part(written, schema, _MOST_LEVELS)
    return None if part is None else part.tree


def _part(node: Any, schema: StructType, levels: int) -> Part | None:
    if not levels:
        return None
    kind, body = _only(node)
    if kind == "Column" and isinstance(body, str):
        return filters.flag(schema, body)
    if kind == "BinaryExpr" and isinstance(body, dict):
        return _binary(body, schema, levels - 1)
    if kind == "Function" and isinstance(body, dict) and isinstance(body.get("input"), list):
        return _function(body, schema, levels - 1)
    return None


def _binary(body: dict[str, Any], schema: StructType, levels: int) -> Part | None:
    operator, left, right = body.get("op"), body.get("left"), body.get("right")
    for joining, join in ((_AND, filters.all_of), (_OR, filters.any_of)):
        if operator in joining:
            return join([_part(each, schema, levels) for each in _joined(body, joining)])
    sign = _COMPARISONS.get(operator) if isinstance(operator, str) else None
    if sign is None:
        return None
    name, value = _name(left), _value(right)
    if name is None:
        name, value, sign = _name(right), _value(left), filters.MIRRORED[sign]
    return None if name is None else filters.compared(schema, sign, name, value)


def _joined(body: dict[str, Any], operators: Sequence[str]) -> Iterator[Any]:
    """What a chain of one operator joins, from left to right, however the chain is nested."""
    pending = [body.get("right"), body.get("left")]
    while pending:
        node = pending.pop()
        kind, inner = _only(node)
        if kind == "BinaryExpr" and isinstance(inner, dict) and inner.get("op") in operators:
            pending += (inner.get("right"), inner.get("left"))
        else:
            yield node


def _function(body: dict[str, Any], schema: StructType, levels: int) -> Part | None:
    inputs, (kind, what) = body["input"], _only(body.get("function"))
    if kind != "Boolean" or not inputs:
        return None
    if what == "Not":
        return filters.negated(_part(inputs[0], schema, levels))
    name = _name(inputs[0])
    if name is None:
        return None
    if what in ("IsNull", "IsNotNull"):
        return filters.tested_for_null(schema, name, is_null=what == "IsNull")
    called, details = _only(what)
    if called == "IsIn" and len(inputs) == 2 and isinstance(details, dict) and not details.get("nulls_equal"):
        values = _values(inputs[1])
        return None if values is None else filters.one_of(schema, name, values)
    if called == "IsBetween" and len(inputs) == 3 and isinstance(details, dict):
        signs = _BOUNDS.get(str(details.get("closed")))
        if signs is not None:
            ends = zip(signs, map(_value, inputs[1:]), strict=True)
            return filters.all_of([filters.compared(schema, sign, name, end) for sign, end in ends])
    return None


def _only(node: Any) -> tuple[str, Any]:
    """The name and the content of a node; a text is a name without content."""
    if isinstance(node, dict) and len(node) == 1:
        ((name, body),) = node.items()
        return str(name), body
    return "", node


def _name(node: Any) -> str | None:
    kind, body = _only(node)
    return body if kind == "Column" and isinstance(body, str) else None


def _constant(node: Any) -> tuple[str, Any]:
    """Type and content of a literal."""
    kind, body = _only(node)
    if kind != "Literal":
        return "", None
    kind, body = _only(body)
    return _only(body) if kind in ("Scalar", "Dyn") else (kind, body)


def _value(node: Any) -> Value | None:
    kind, body = _constant(node)
    if kind in _INTEGERS:
        return body if isinstance(body, int) else None
    if kind in _FLOATS:
        return float(body) if isinstance(body, (int, float)) else None
    if kind in _TEXTS:
        return body if isinstance(body, str) else None
    if kind == "Boolean":
        return body if isinstance(body, bool) else None
    if kind == "Date":
        return filters.day(body) if isinstance(body, int) else None
    if kind == "Decimal" and isinstance(body, list) and len(body) == 3:
        return filters.decimal(body[0], body[2])
    if kind in ("Datetime", "DateTime") and isinstance(body, list) and len(body) == 3:
        return _moment(*body)
    return None


def _moment(count: Any, unit: Any, zone: Any) -> Value | None:
    scale = _UNITS.get(unit)
    if scale is None or not isinstance(count, int) or count % scale[1]:
        return None
    return filters.moment(count * scale[0] // scale[1], aware=zone is not None)


def _values(node: Any) -> list[Value | None] | None:
    """The values of a list, which polars writes as the bytes of an Arrow stream of one column."""
    import pyarrow as pa

    kind, body = _constant(node)
    if kind not in ("List", "Series") or not isinstance(body, list):
        return None
    try:
        column = pa.ipc.open_stream(bytes(body)).read_all().column(0)
    except (pa.ArrowInvalid, ValueError, TypeError):
        return None  # a list of another version of polars: it filters by it itself
    if pa.types.is_nested(column.type) or len(column) > filters.MOST_VALUES:
        return None
    found: list[Value | None] = column.to_pylist()
    return found
