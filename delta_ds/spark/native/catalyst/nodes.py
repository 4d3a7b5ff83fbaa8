"""Catalyst trees as Python values, and what `toJSON` leaves out of them.

`toJSON` lists the nodes of a tree from the root on, each with the number of its children: one call across the
border to the JVM. It says nothing of the values of an `InSet`, of binary literals, of how a cast treats values
that do not fit, and of an escape character, and an hour that comes twice when the clock goes back reads the same
both times. These are asked for one by one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_LOGGER = logging.getLogger("delta_ds")
_SEPARATOR = "\u0001"
# Each of the values costs a call; more of them than this are treated as not known.
_MOST_BINARY_ITEMS = 1000


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
        done.append(Node(_kind(fields), fields, children))
    (root,) = done
    return root


def nodes_of(expression: Any) -> list[dict[str, Any]]:
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
        `evalMode` of a `Cast` is `ANSI`, `TRY` or `LEGACY`; `escapeChar` of a `Like` is text.
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


def _node_at(position: int, parents: Sequence[tuple[int, int]], found: dict[int, Any]) -> Any:
    """The JVM's node at a position of the list; those on the way to it are kept in `found`."""
    way = []
    while position not in found:
        way.append(position)
        position = parents[position][0]
    node = found[position]
    for step in reversed(way):
        node = found[step] = node.children().apply(parents[step][1])
    return node


def _complete_literal(literal: Any, node: dict[str, Any]) -> None:
    value = literal.value()
    node["value"] = bytes(value).hex() if isinstance(value, (bytes, bytearray)) else value


def _complete_set(in_set: Any, node: dict[str, Any]) -> None:
    values = in_set.hset()
    size, has_null = values.size(), bool(values.contains(None))
    if in_set.child().dataType().typeName() == "binary":
        node["hset"] = _binary_items(values, size)
        return
    texts: list[str | None] = list(values.mkString(_SEPARATOR).split(_SEPARATOR))
    if len(texts) != size:
        _LOGGER.warning("filter_values_not_read reason=separator_in_value values=%d", size)
        return
    if has_null:
        # The text of null is that of a string which reads so; one of them is the null.
        texts[texts.index("null")] = None
    node["hset"] = texts


def _binary_items(values: Any, size: int) -> list[str | None] | None:
    if size > _MOST_BINARY_ITEMS:
        _LOGGER.warning("filter_values_not_read reason=too_many_binary values=%d", size)
        return None
    items = values.iterator()
    raw = [items.next() for _ in range(size)]
    return [None if item is None else bytes(item).hex() for item in raw]


def _complete_cast(cast: Any, node: dict[str, Any]) -> None:
    node["evalMode"] = str(cast.evalMode().toString())


def _complete_like(like: Any, node: dict[str, Any]) -> None:
    node["escapeChar"] = str(like.escapeChar())


_MISSING = {
    "Literal": _complete_literal,
    "InSet": _complete_set,
    "Cast": _complete_cast,
    "Like": _complete_like,
}
