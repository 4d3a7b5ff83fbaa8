"""Expression trees: columns, literals, calls and casts.

Four kinds of node are enough. SQL text becomes a tree in `sql.py`, filters that Spark pushes become one in
the Spark half; skipping and evaluation read nothing else. Trees are values: immutable, hashable, picklable.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from delta_ds.kernel.schema.types import BOOLEAN, DataType, DecimalType
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
    aware in UTC for `timestamp`, naive for `timestamp_ntz`.
    """

    value: Any
    type: DataType | None = None

    def __str__(self) -> str:
        return _constant(self.value, self.type)


@dataclass(frozen=True, slots=True)
class Cast:
    """`CAST(child AS type)` with Spark's ANSI meaning; `safe` is `TRY_CAST`.

    `timezone` is set by `bind` where the cast depends on the session time zone.
    """

    child: Expression
    type: DataType
    safe: bool = False
    timezone: str | None = None

    def __str__(self) -> str:
        return f"{'TRY_' * self.safe}CAST({self.child} AS {self.type})"


@dataclass(frozen=True, slots=True)
class Call:
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

    def __str__(self) -> str:
        args = [str(a) for a in self.args]
        if self.name in _INFIX and len(args) >= 2:
            if self.name == "like" and len(args) == 3:
                return f"({args[0]} LIKE {args[1]} ESCAPE {args[2]})"
            return "(" + f" {self.name.upper()} ".join(args) + ")"
        if self.name == "case":
            whens = "".join(f" WHEN {c} THEN {v}" for c, v in zip(args[::2], args[1::2], strict=False))
            return "CASE" + whens + (f" ELSE {args[-1]}" if len(args) % 2 else "") + " END"
        if self.name == "interval" and isinstance(self.args[-1], Literal):
            return f"INTERVAL {args[0]} {self.args[-1].value}"
        form = _FORMS.get(self.name)
        if form is None or not args:
            name = self.name if _PLAIN_NAME.fullmatch(self.name) else quote_name(self.name)
            return f"{name}({', '.join(args)})"
        if self.name == "getfield" and isinstance(self.args[1], Literal):
            args[1] = quote_name(str(self.args[1].value))
        return form.format(args[0], ", ".join(args[1:]))


Expression = Column | Literal | Cast | Call

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
    if isinstance(value, datetime.datetime):
        kind = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP"
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
    pending = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, Column):
            yield node
        pending.extend(reversed(_children(node)))


def nesting(expression: Expression) -> int:
    """The longest way from the expression to a column or literal in it, in nodes."""
    level, found = [expression], 0
    while level:
        found += 1
        level = [child for node in level for child in _children(node)]
    return found


def _children(node: Expression) -> tuple[Expression, ...]:
    if isinstance(node, Call):
        return node.args
    return (node.child,) if isinstance(node, Cast) else ()


def map_columns(expression: Expression, change: Callable[[Column], Expression]) -> Expression:
    """The tree with something else in place of each column."""
    if isinstance(expression, Column):
        return change(expression)
    if isinstance(expression, Cast):
        return replace(expression, child=map_columns(expression.child, change))
    if isinstance(expression, Call):
        return replace(expression, args=tuple(map_columns(part, change) for part in expression.args))
    return expression
