"""Struct fields in Catalyst trees, found through the structs a scan builds to rename them.

A scan of a table with column mapping reads physical names and gives logical ones by `named_struct`, `CASE WHEN
struct IS NOT NULL` and casts of whole structs. Spark takes only part of that away again from a filter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from delta_ds.spark.native.catalyst.nodes import Node

_TRANSPARENT = frozenset(
    ["Alias", "KnownNotNull", "KnownNullable", "KnownFloatingPointNormalized", "NormalizeNaNAndZero"]
)
NULL = Node("Literal", {"value": None, "dataType": "void"})
TRUE = Node("Literal", {"value": "true", "dataType": "boolean"})
FALSE = Node("Literal", {"value": "false", "dataType": "boolean"})


def plain(node: Node) -> Node:
    """An equal node, without what stands between a field and the value it is taken from."""
    while node.kind in _TRANSPARENT:
        node = node.children[0]
    if node.kind == "GetStructField":
        return plain(_field(plain(node.children[0]), node.fields["ordinal"]))
    if node.kind in ("If", "CaseWhen"):
        return _without_guard(node)
    return node


def _field(struct: Node, ordinal: int) -> Node:
    if struct.kind == "CreateNamedStruct":
        return struct.children[2 * ordinal + 1]
    if struct.kind in ("If", "CaseWhen"):
        return each_value(struct, lambda value: _field(plain(value), ordinal))
    if struct.kind == "Literal" and struct.fields.get("value") is None:
        return NULL
    if struct.kind == "Cast":
        # Structs are cast field by field, by position.
        told = struct.fields["dataType"]["fields"][ordinal]["type"]
        return Node(
            "Cast", {**struct.fields, "dataType": told}, (_field(plain(struct.children[0]), ordinal),)
        )
    return Node("Field", {"ordinal": ordinal}, (struct,))


def each_value(choice: Node, change: Callable[[Node], Node]) -> Node:
    """An `If` or `CaseWhen` with its values changed, not its conditions; an `ELSE NULL` is not written out."""
    children = list(choice.children)
    # If: condition, value, other value. CaseWhen: condition, value, ..., and the other value if the count is odd.
    for i in range(1, len(children), 2):
        children[i] = change(children[i])
    if len(children) % 2:
        children[-1] = change(children[-1])
    return Node(choice.kind, choice.fields, tuple(children))


def _without_guard(choice: Node) -> Node:
    """`IF(s IS NOT NULL, s.x, NULL)` is `s.x`."""
    condition, value, *other = choice.children
    if condition.kind != "IsNotNull" or len(other) > 1 or (other and not is_null(other[0])):
        return choice
    value = plain(value)
    guarded, used = (
        path(plain(condition.children[0])),
        path(value.children[0] if value.kind == "Cast" else value),
    )
    if guarded is None or used is None or used[: len(guarded)] != guarded:
        return choice
    return value


def is_null(node: Node) -> bool:
    """Tell whether it is the constant null."""
    return node.kind == "Literal" and node.fields.get("value") is None


def path(node: Node) -> tuple[str, ...] | None:
    """The names from the column down to the field of a plain node; None if it is no column or field of one."""
    found = _located(node)
    return None if found is None else found[0]


def told_type(node: Node) -> Any:
    """The type of a column, field, constant or cast, from Catalyst's JSON; None for other nodes."""
    if node.kind in ("Literal", "Cast"):
        return node.fields.get("dataType")
    found = _located(node)
    return None if found is None else found[1]


def _located(node: Node) -> tuple[tuple[str, ...], Any] | None:
    ordinals: list[int] = []
    while node.kind == "Field":
        ordinals.append(node.fields["ordinal"])
        node = node.children[0]
    if node.kind != "AttributeReference":
        return None
    names, told = [str(node.fields["name"])], node.fields["dataType"]
    for ordinal in reversed(ordinals):
        if not isinstance(told, dict) or told.get("type") != "struct":
            return None
        field = told["fields"][ordinal]
        names.append(field["name"])
        told = field["type"]
    return tuple(names), told
