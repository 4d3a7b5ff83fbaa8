"""Expression trees: columns, literals, calls and casts.

Four kinds of node are enough. SQL text becomes a tree in `sql.py`, filters that Spark pushes become one in
the Spark half; skipping and evaluation read nothing else. Trees are values: immutable, hashable, picklable.

Programs write predicates of ten thousand conditions, each in the parentheses of the next. So nothing here calls itself
for the parts of a node: what is computed from the leaves up is a `fold`, what comes from the root down has a list of
what is still to be looked at.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

from delta_ds.kernel.format.expressions.moments import FarTimestamp, is_aware
from delta_ds.kernel.format.schema.types import BOOLEAN, DataType, DecimalType
from delta_ds.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field inside structs, by its logical path; `type` is known once bound."""

    path: tuple[str, ...]
    type: DataType | None = None

    def __str__(self) -> str:
        return ".".join(map(quote_name, self.path))


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant as a plain Python value.

    `value` is None, bool, int, float, str, bytes, decimal.Decimal, datetime.date, or datetime.datetime:
    aware in UTC for `timestamp`, naive for `timestamp_ntz`. Beyond the years of Python it is one of `moments.py`.
    """

    value: Any
    type: DataType | None = None

    def __str__(self) -> str:
        return _constant(self.value, self.type)


class _Branch:
    """What nodes with parts have in common: their hash is computed once, and none of this goes deeper with the tree."""

    __slots__ = ("_known_hash",)

    def __hash__(self) -> int:
        for node in postorder(self, _of_unknown_hash):
            if isinstance(node, _Branch) and not hasattr(node, "_known_hash"):
                object.__setattr__(node, "_known_hash", hash((_own(node), parts_of(node))))  # type: ignore[arg-type]
        stored_hash: int = self._known_hash  # type: ignore[attr-defined]
        return stored_hash

    def __eq__(self, other: object) -> bool:
        pending: list[tuple[Any, Any]] = [(self, other)]
        while pending:
            left, right = pending.pop()
            if left is right:
                continue
            if type(left) is not type(right):
                return False
            if not isinstance(left, _Branch):
                if left != right:
                    return False
                continue
            ours, theirs = parts_of(left), parts_of(right)  # type: ignore[arg-type]
            if _own(left) != _own(right) or len(ours) != len(theirs):
                return False
            pending.extend(zip(ours, theirs, strict=True))
        return True

    def __reduce__(self) -> Any:
        return _planted, (_flattened(self),)

    def __str__(self) -> str:
        return _joined(fold(self, _text))  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return _joined(fold(self, _representation))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Cast(_Branch):
    """`CAST(child AS type)` with Spark's ANSI meaning; `safe` is `TRY_CAST`.

    `timezone` is set by `bind` where the cast depends on the session time zone.
    """

    child: Expression
    type: DataType
    safe: bool = False
    timezone: str | None = None

    __hash__, __eq__, __repr__ = _Branch.__hash__, _Branch.__eq__, _Branch.__repr__


@dataclass(frozen=True, slots=True)
class Call(_Branch):
    """An operator or function on arguments, by its canonical lower-case name.

    Operators: `and or not = <=> <> < <= > >= + - * / % div & | ^ ~ in isnull isnotnull like startswith
    endswith contains negative case getitem getfield`. `in` has the value first, then the list. `and` and `or`
    may have more than two arguments. `case` has condition, value, condition, value, ..., and an `else` value
    if the count is odd. `like` may have an escape character as its third argument. `getitem` takes an element
    of an array or map by index or key, `getfield` a field of a struct that is not a plain column.
    Functions go by Spark's name (`length`, `year`, `coalesce`, `isnan`, ...).
    `timezone` is set by `bind` where the function depends on the session time zone; who rebuilds a node
    should keep it (`dataclasses.replace`).
    """

    name: str
    args: tuple[Expression, ...]
    type: DataType | None = None
    timezone: str | None = None

    __hash__, __eq__, __repr__ = _Branch.__hash__, _Branch.__eq__, _Branch.__repr__


Expression = Column | Literal | Cast | Call
_N = TypeVar("_N")
_T = TypeVar("_T")
_Rope: TypeAlias = "str | tuple[_Rope, ...]"


# --- walking trees


def parts_of(node: Expression) -> tuple[Expression, ...]:
    """The nodes directly below."""
    if isinstance(node, Call):
        return node.args
    return (node.child,) if isinstance(node, Cast) else ()


def _of_unknown_hash(node: Any) -> tuple[Any, ...]:
    return () if hasattr(node, "_known_hash") else parts_of(node)


def with_parts(node: Expression, parts: Sequence[Expression]) -> Expression:
    """The node over other parts, as many as it has; itself where they are the same objects."""
    if all(new is old for new, old in zip(parts, parts_of(node), strict=True)):
        return node
    if isinstance(node, Cast):
        return replace(node, child=parts[0])
    return replace(node, args=tuple(parts)) if isinstance(node, Call) else node


def postorder(root: _N, below: Callable[[_N], Sequence[_N]] = parts_of) -> list[_N]:  # type: ignore[assignment]
    """All nodes of a tree, each after those below it, from the left to the right."""
    pending, order = [root], []
    while pending:
        node = pending.pop()
        order.append(node)
        pending.extend(below(node))
    order.reverse()
    return order


def fold(
    root: _N,
    combine: Callable[[_N, list[_T]], _T],
    below: Callable[[_N], Sequence[_N]] = parts_of,  # type: ignore[assignment]
) -> _T:
    """What a function gives for a tree, of a node and of what it gives for the nodes directly below it.

    Parameters
    ----------
    below
        The nodes directly below one; for other trees than those of expressions.
    """
    results: list[_T] = []
    for node in postorder(root, below):
        at = len(results) - len(below(node))
        parts = results[at:]
        del results[at:]
        results.append(combine(node, parts))
    return results[0]


def _own(node: Any) -> tuple[Any, ...]:
    """What a node is apart from its parts."""
    if isinstance(node, Call):
        return node.name, len(node.args), node.type, node.timezone
    return node.type, node.safe, node.timezone


def _flattened(expression: Any) -> list[Any]:
    """The nodes of a tree, each after its parts, without references from one to another."""
    return [_own(node) if isinstance(node, _Branch) else node for node in postorder(expression)]


def _planted(flat: list[Any]) -> Expression:
    """The inverse of `_flattened`."""
    grown: list[Expression] = []
    for node in flat:
        if not isinstance(node, tuple):
            grown.append(node)
        elif len(node) == 4:
            name, count, data_type, timezone = node
            args = tuple(grown[len(grown) - count :])
            del grown[len(grown) - count :]
            grown.append(Call(name, args, data_type, timezone))
        else:
            grown.append(Cast(grown.pop(), *node))
    return grown[0]


# --- as text


_INFIX = frozenset([
    "and", "or", "=", "<=>", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "div", "&", "|", "^",
    "like",
])  # fmt: skip
_FORMS = {
    "not": "(NOT {})",
    "isnull": "({} IS NULL)",
    "isnotnull": "({} IS NOT NULL)",
    "in": "({} IN ({}))",
    "negative": "(- {})",
    "~": "(~ {})",
    "getitem": "{}[{}]",
    "getfield": "{}.{}",
}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset([
    "all", "and", "any", "anti", "array", "between", "by", "case", "cast", "cross", "current_date",
    "current_timestamp", "date", "div", "end", "escape", "exists", "extract", "false", "for", "from",
    "full", "group", "having", "if", "in", "interval", "is", "join", "left", "like", "map", "natural",
    "not", "null", "on", "or", "order", "outer", "regexp", "right", "rlike", "select", "semi", "some",
    "struct", "substring", "table", "then", "timestamp", "trim", "true", "union", "unique", "using",
    "values", "when", "where", "with",
])  # fmt: skip


def _joined(rope: _Rope) -> str:
    """The text of a rope: what parts of an expression are to be written is not copied once for every node above."""
    pending, pieces = [rope], []
    while pending:
        piece = pending.pop()
        if isinstance(piece, str):
            pieces.append(piece)
        else:
            pending.extend(reversed(piece))
    return "".join(pieces)


def _between(separator: str, parts: Iterable[_Rope]) -> _Rope:
    return tuple(piece for part in parts for piece in (separator, part))[1:]


def _text(node: Expression, args: list[_Rope]) -> _Rope:
    if isinstance(node, Cast):
        return f"{'TRY_' * node.safe}CAST(", args[0], f" AS {node.type})"
    if not isinstance(node, Call):
        return str(node)
    name = node.name
    if name in _INFIX and len(args) >= 2:
        if name == "like" and len(args) == 3:
            return "(", args[0], " LIKE ", args[1], " ESCAPE ", args[2], ")"
        return "(", _between(f" {name.upper()} ", args), ")"
    if name == "case":
        whens = tuple((" WHEN ", c, " THEN ", v) for c, v in zip(args[::2], args[1::2], strict=False))
        return "CASE", whens, (" ELSE ", args[-1]) if len(args) % 2 else "", " END"
    if name == "interval" and isinstance(node.args[-1], Literal):
        return "INTERVAL ", args[0], f" {node.args[-1].value}"
    form = _FORMS.get(name)
    if form is None or not args:
        name = name if _PLAIN_NAME.fullmatch(name) else quote_name(name)
        return name, "(", _between(", ", args), ")"
    if name == "getfield" and isinstance(node.args[1], Literal):
        args[1] = quote_name(str(node.args[1].value))
    before, *behind = form.split("{}")
    first, rest = args[0], _between(", ", args[1:])
    return before, first, behind[0], rest if len(behind) > 1 else "", *behind[1:]


def _representation(node: Expression, parts: list[_Rope]) -> _Rope:
    if isinstance(node, Call):
        ending = f"), {node.type!r}, {node.timezone!r})"
        return f"Call({node.name!r}, (", tuple((part, ", ") for part in parts), ending
    if isinstance(node, Cast):
        return "Cast(", parts[0], f", {node.type!r}, {node.safe!r}, {node.timezone!r})"
    return repr(node)


def quote_name(name: str) -> str:
    """The name as SQL writes it: in backticks unless it is a plain word."""
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in _RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def _constant(value: Any, data_type: DataType | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return f"{value}{ {'long': 'L', 'short': 'S', 'byte': 'Y'}.get(str(data_type), '') }"
    if isinstance(value, float):
        if not math.isfinite(value):
            name = "float" if str(data_type) == "float" else "double"
            return f"{name}('{'NaN' if math.isnan(value) else 'Infinity' if value > 0 else '-Infinity'}')"
        return f"{value!r}{'F' if str(data_type) == 'float' else 'D'}"
    if isinstance(value, decimal.Decimal):
        digits, scale = len(value.as_tuple().digits), max(-int(value.as_tuple().exponent), 0)
        plain = data_type is None or (scale and data_type == DecimalType(max(digits, scale), scale))
        return f"{value:f}" if plain else f"CAST({value:f} AS {data_type})"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, (datetime.datetime, FarTimestamp)):
        kind = "TIMESTAMP" if is_aware(value) else "TIMESTAMP_NTZ"
        return f"{kind}'{value.isoformat(sep=' ')}'"
    return f"DATE'{value.isoformat()}'"


def conjuncts(expression: Expression) -> Iterator[Expression]:
    """The parts that must all be true, flattened."""
    pending = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, Call) and node.name == "and":
            pending.extend(reversed(node.args))
        else:
            yield node


def conjunction(parts: list[Expression]) -> Expression | None:
    """All parts joined by `and`; None for no part at all."""
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Call("and", tuple(parts), BOOLEAN)


def columns(expression: Expression) -> Iterator[Column]:
    """Every column the expression reads, in order of appearance, repeated where it repeats."""
    return (node for node in postorder(expression) if isinstance(node, Column))


def map_columns(expression: Expression, change: Callable[[Column], Expression]) -> Expression:
    """The tree with something else in place of each column."""
    return fold(
        expression, lambda node, parts: change(node) if isinstance(node, Column) else with_parts(node, parts)
    )


def without_qualifier(tree: Expression, name: str) -> Expression:
    """An expression without the name of its table before columns, in any case."""

    def bare(column: Column) -> Column:
        qualified = len(column.path) > 1 and column.path[0].lower() == name.lower()
        return replace(column, path=column.path[1:]) if qualified else column

    return map_columns(tree, bare)
