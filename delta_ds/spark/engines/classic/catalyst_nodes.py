"""Catalyst trees as Python values, what `toJSON` leaves out of them, and the struct fields that they read.

`toJSON` lists the nodes of a tree from the root on, each with the number of its children: one call across the
border to the JVM. It says nothing of the values of an `InSet`, of binary literals, of how a cast treats values
that do not fit, of an escape character and of the names of common values, and an hour that comes twice when the
clock goes back reads the same both times. These are asked for one by one.

A scan of a table with column mapping reads physical names and gives logical ones by `named_struct`, `CASE WHEN
struct IS NOT NULL` and casts of whole structs. Spark takes only part of that away again from a filter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.events.spark import FILTER_VALUES_NOT_READ
from delta_ds.records import dataclass

if TYPE_CHECKING:
    from delta_ds.spark.base.kinds.java_object import JavaObject, JavaValue

_SEPARATOR = "\u0001"
# Each of the values costs a call; more of them than this are treated as not known.
_MOST_BINARY_ITEMS = 1000
# A value that is used twice, in a value that is used twice, ...: where more nodes than these came of it, it stays.
_MOST_REPEATED = 10_000


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a Catalyst tree.

    Attributes
    ----------
    kind
        The name of its class, without the package.
    fields
        What `toJSON` says of it, filled up by `nodes_of`.
    children
        In Catalyst's order.
    """

    kind: str
    fields: Mapping[str, Any]
    children: tuple[Node, ...] = ()


def tree(nodes: Sequence[Mapping[str, Any]]) -> Node:
    """The tree of the nodes that `toJSON` lists, the parent before its children.

    Parameters
    ----------
    nodes
        Parsed JSON, as `nodes_of` gives it.
    """
    done: list[Node] = []
    # Backwards, the children of a node are there before it, and no depth is too great.
    for fields in reversed(nodes):
        count = fields["num-children"]
        children = tuple(done.pop() for _ in range(count))
        done.append(_plain(Node(_kind(fields), fields, children)))
    (root,) = done
    return root


def _plain(node: Node) -> Node:
    """What a node stands for: its replacement; common values (the `x` of `x BETWEEN a AND b`) where they are used."""
    if node.fields.get("replacement") == 0 and len(node.children) == 1:
        return node.children[0]
    if node.kind != "With":
        return node
    value, *definitions = node.children
    placed = _with_values(value, {one.fields["id"]: one.children[0] for one in definitions})
    return node if _has_more_nodes(placed, _MOST_REPEATED) else placed


def _has_more_nodes(node: Node, most: int) -> bool:
    waiting, count = [node], 0
    while waiting and count <= most:
        count += 1
        waiting += waiting.pop().children
    return count > most


def _with_values(node: Node, values: Mapping[Any, Node]) -> Node:
    if node.kind == "CommonExpressionRef":
        return values.get(node.fields["id"], node)
    children = tuple(_with_values(child, values) for child in node.children)
    return node if children == node.children else Node(node.kind, node.fields, children)


def nodes_of(expression: JavaObject) -> list[dict[str, Any]]:
    """The nodes of a Catalyst expression, with what `toJSON` leaves out filled in.

    Parameters
    ----------
    expression
        A JVM `Expression`.

    Returns
    -------
    list of dict
        As `toJSON`, except: `value` of a `Literal` is an int (microseconds since 1970) for timestamps and hex for
        binary; `hset` of an `InSet` is a list of Catalyst's own values as text (binary as hex), None for null;
        `evalMode` of a `Cast` is `ANSI`, `TRY` or `LEGACY`; `escapeChar` of a `Like` is text; `id` of a
        `CommonExpressionDef` and of what refers to it is text; `resultType` of arithmetic is the name of its type,
        which of decimals depends on settings.
    """
    nodes: list[dict[str, Any]] = json.loads(expression.toJSON())
    parents = _parents(nodes)
    found = {0: expression}
    for position, node in enumerate(nodes):
        missing = _MISSING.get(_kind(node))
        if missing is not None and (_kind(node) != "Literal" or node["dataType"] in ("binary", "timestamp")):
            missing(_node_at(position, parents, found), node)
    return nodes


def _kind(node: Mapping[str, Any]) -> str:
    return str(node["class"]).rpartition(".")[2]


def _parents(nodes: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """For each node the position of its parent, and which of the parent's children it is."""
    out: list[tuple[int, int]] = []
    waiting: list[list[int]] = []  # position, children seen, children in all
    for position, node in enumerate(nodes):
        while waiting and waiting[-1][1] == waiting[-1][2]:
            waiting.pop()
        if waiting:
            out.append((waiting[-1][0], waiting[-1][1]))
            waiting[-1][1] += 1
        else:
            out.append((-1, 0))
        waiting.append([position, 0, node["num-children"]])
    return out


def _node_at(position: int, parents: Sequence[tuple[int, int]], found: dict[int, Any]) -> JavaValue:
    """The JVM's node at a position of the list; those on the way to it are kept in `found`."""
    way = []
    while position not in found:
        way.append(position)
        position = parents[position][0]
    node = found[position]
    for step in reversed(way):
        node = found[step] = node.children().apply(parents[step][1])
    return node


def _complete_literal(literal: JavaObject, node: dict[str, Any]) -> None:
    value = literal.value()
    node["value"] = bytes(value).hex() if isinstance(value, (bytes, bytearray)) else value


def _complete_set(in_set: JavaObject, node: dict[str, Any]) -> None:
    values = in_set.hset()
    size, has_null = values.size(), bool(values.contains(None))
    if in_set.child().dataType().typeName() == "binary":
        node["hset"] = _binary_items(values, size)
        return
    texts: list[str | None] = list(values.mkString(_SEPARATOR).split(_SEPARATOR))
    if len(texts) != size:
        FILTER_VALUES_NOT_READ.log(reason="separator_in_value", values=size)
        return
    if has_null:
        # The text of null is that of a string which reads so; one of them is the null.
        texts[texts.index("null")] = None
    node["hset"] = texts


def _binary_items(values: JavaObject, size: int) -> list[str | None] | None:
    if size > _MOST_BINARY_ITEMS:
        FILTER_VALUES_NOT_READ.log(reason="too_many_binary", values=size)
        return None
    items = values.iterator()
    raw = [items.next() for _ in range(size)]
    return [None if item is None else bytes(item).hex() for item in raw]


def _complete_cast(cast: JavaObject, node: dict[str, Any]) -> None:
    node["evalMode"] = str(cast.evalMode().toString())


def _complete_name(named: JavaObject, node: dict[str, Any]) -> None:
    node["id"] = str(named.id().toString())


def _complete_like(like: JavaObject, node: dict[str, Any]) -> None:
    node["escapeChar"] = str(like.escapeChar())


def _complete_arithmetic(arithmetic: JavaObject, node: dict[str, Any]) -> None:
    node["resultType"] = str(arithmetic.dataType().typeName())


# The kernel's names of arithmetic.
ARITHMETIC = {"Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%", "Pmod": "pmod"}
_MISSING = {
    "Literal": _complete_literal,
    "InSet": _complete_set,
    "Cast": _complete_cast,
    "Like": _complete_like,
    "CommonExpressionDef": _complete_name,
    "CommonExpressionRef": _complete_name,
    **dict.fromkeys(ARITHMETIC, _complete_arithmetic),
}


_TRANSPARENT = frozenset(
    ["Alias", "KnownNotNull", "KnownNullable", "KnownFloatingPointNormalized", "NormalizeNaNAndZero"]
)
NULL = Node("Literal", {"value": None, "dataType": "void"})
TRUE = Node("Literal", {"value": "true", "dataType": "boolean"})
FALSE = Node("Literal", {"value": "false", "dataType": "boolean"})


def unwrap(node: Node) -> Node:
    """An equal node, without what stands between a field and the value it is taken from."""
    while node.kind in _TRANSPARENT:
        node = node.children[0]
    if node.kind == "GetStructField":
        return unwrap(_field(unwrap(node.children[0]), node.fields["ordinal"]))
    if node.kind in ("If", "CaseWhen"):
        return _without_guard(node)
    return node


def _field(struct: Node, ordinal: int) -> Node:
    if struct.kind == "CreateNamedStruct":
        return struct.children[2 * ordinal + 1]
    if struct.kind in ("If", "CaseWhen"):
        return each_value(struct, lambda value: _field(unwrap(value), ordinal))
    if struct.kind == "Literal" and struct.fields.get("value") is None:
        return NULL
    if struct.kind == "Cast":
        # Structs are cast field by field, by position.
        raw = struct.fields["dataType"]["fields"][ordinal]["type"]
        return Node(
            "Cast", {**struct.fields, "dataType": raw}, (_field(unwrap(struct.children[0]), ordinal),)
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
    value = unwrap(value)
    guarded, used = (
        path(unwrap(condition.children[0])),
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
    found = _locate(node)
    return None if found is None else found[0]


def type_json(node: Node) -> Any:
    """The type of a column, field, constant or cast, from Catalyst's JSON; None for other nodes."""
    if node.kind in ("Literal", "Cast"):
        return node.fields.get("dataType")
    found = _locate(node)
    return None if found is None else found[1]


def _locate(node: Node) -> tuple[tuple[str, ...], Any] | None:
    ordinals: list[int] = []
    while node.kind == "Field":
        ordinals.append(node.fields["ordinal"])
        node = node.children[0]
    if node.kind != "AttributeReference":
        return None
    names, raw = [str(node.fields["name"])], node.fields["dataType"]
    for ordinal in reversed(ordinals):
        if not isinstance(raw, dict) or raw.get("type") != "struct":
            return None
        field = raw["fields"][ordinal]
        names.append(field["name"])
        raw = field["type"]
    return tuple(names), raw
