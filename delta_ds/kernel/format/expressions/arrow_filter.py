"""Filters of pyarrow to trees, by their Substrait form: what Arrow tells of an expression in no other way.

Substrait is a format of Protocol Buffers. Of it are read the numbers and messages of `ExtendedExpression` that filters
are made of: fields, literals, lists of values, if-then-else, and functions by the names of Substrait's standard.

Source: https://substrait.io, `proto/substrait/algebra.proto`, `extended_expression.proto`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

from delta_ds.kernel.format.expressions import engine_filters as filters
from delta_ds.kernel.format.expressions.engine_filters import Part, Value
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.schema.types import StructType

# A message: the number of each field, with a number, bytes, or what was written in so many bytes.
_Message: TypeAlias = "dict[int, list[int | bytes]]"

_COMPARISONS = {"equal": "=", "not_equal": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
# Of a filter that is looked at.
_MOST_CALLS, _MOST_LEVELS = 48, 11
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
# Fields of `Expression`.
_LITERAL, _SELECTION, _FUNCTION, _IF_THEN, _ONE_OF = 1, 2, 3, 6, 8


def tree_of(filter_: pc.Expression, arrow_schema: pa.Schema, schema: StructType) -> Expression | None:
    """What a filter implies, as far as it is understood; None for nothing.

    Parameters
    ----------
    arrow_schema
        Of the rows that are filtered.
    schema
        Of the table.
    """
    import pyarrow as pa

    if _is_deep(str(filter_), arrow_schema.names):
        return None
    try:
        text = bytes(filter_.to_substrait(arrow_schema))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return None  # Substrait has no word for it, such as a cast that Arrow put in: Arrow filters by it
    part = _Filter.of(text, arrow_schema.names, schema).part
    return None if part is None else part.tree


def _is_deep(text: str, names: Sequence[str]) -> bool:
    """Whether the message of a filter would be large: Arrow writes the arguments of each call twice, so that it doubles
    with each level.

    The text of a filter has a pair of parentheses for each call.
    """
    if text.count("(") > _MOST_CALLS:
        return True
    depth = deepest = 0
    for sign in re.findall("[()]", _QUOTED.sub("", text)):
        depth += 1 if sign == "(" else -1
        deepest = max(deepest, depth)
    if any(")" in name for name in names):  # a name is not quoted
        deepest = text.count("(")
    return deepest > _MOST_LEVELS


@dataclass(frozen=True, slots=True)
class _Filter:
    """A filter's message, and what its numbers mean."""

    expression: _Message
    functions: dict[int, str]
    names: Sequence[str]
    schema: StructType

    @classmethod
    def of(cls, data: bytes, names: Sequence[str], schema: StructType) -> _Filter:
        whole = _message(data)
        functions = {}
        for declared in _inner(whole, 2):
            for function in _inner(declared, 3):
                functions[_number(function, 2)] = _text(function, 3)
        return cls(_at(whole, 3, 1), functions, names, schema)

    @property
    def part(self) -> Part | None:
        return self._part(self.expression)

    def _part(self, node: _Message) -> Part | None:
        if _SELECTION in node:
            name = self._name(node)
            return None if name is None else filters.flag(self.schema, name)
        if _FUNCTION in node:
            return self._function(_at(node, _FUNCTION))
        if _ONE_OF in node:
            return self._one_of(_at(node, _ONE_OF))
        return self._guarded(_at(node, _IF_THEN)) if _IF_THEN in node else None

    def _function(self, call: _Message) -> Part | None:
        name = self.functions.get(_number(call, 1), "")
        arguments = [_at(each, 3) for each in _inner(call, 4)]
        if name in ("and", "or"):
            join = filters.all_of if name == "and" else filters.any_of
            return join([self._part(each) for each in arguments])
        if name == "not":
            return filters.negated(self._part(arguments[0]))
        if name in ("is_null", "is_not_null"):
            column = self._name(arguments[0])
            return column and filters.tested_for_null(self.schema, column, is_null=name == "is_null") or None
        sign = _COMPARISONS.get(name)
        if sign is None or len(arguments) != 2:
            return None
        left, right = arguments
        if _LITERAL in left:
            left, right, sign = right, left, filters.MIRRORED[sign]
        column = self._name(left)
        return column and filters.compared(self.schema, sign, column, _value(right)) or None

    def _one_of(self, node: _Message) -> Part | None:
        column = self._name(_at(node, 1))
        values = [_value(each) for each in _inner(node, 2)]
        part = column and filters.one_of(self.schema, column, values) or None
        # To Arrow null is not in a list, so that the negation holds for it.
        return None if part is None else Part(part.tree, exact=False)

    def _guarded(self, node: _Message) -> Part | None:
        """`if is_valid(a) then a in (...) else null`, as DuckDB writes it: implies what is behind `then`."""
        clauses = list(_inner(node, 1))
        otherwise = _at(node, 2)
        if len(clauses) != 1 or 29 not in _at(otherwise, _LITERAL):
            return None
        part = self._part(_at(clauses[0], 2))
        return None if part is None else Part(part.tree, exact=False)

    def _name(self, node: _Message) -> str | None:
        """The top-level column that a node is; None for anything else, fields of structs too."""
        if _SELECTION not in node:
            return None
        reference = _at(node, _SELECTION)
        direct = _at(reference, 1)
        step = _at(direct, 2)
        if 4 not in reference or 2 not in direct or 2 in step:  # not of the row itself; no field; deeper
            return None
        number = _number(step, 1)
        return self.names[number] if number < len(self.names) else None


def _value(node: _Message) -> Value | None:
    """The value of a literal: by the number of its field, as Substrait has its types."""
    literal = _at(node, _LITERAL) if _LITERAL in node else {}
    for kind in literal:
        (content, *_) = literal[kind]
        if isinstance(content, int):
            if kind == 1:
                return bool(content)
            if kind in (2, 3, 5, 7):
                return _signed(content)
            if kind == 16:
                return filters.day(_signed(content))
            if kind in (14, 27):
                return filters.moment(_signed(content), aware=kind == 27)
        elif kind in (10, 11):
            return float(struct.unpack("<f" if kind == 10 else "<d", content)[0])
        elif kind == 12:
            return content.decode()
        elif kind == 24:
            return _decimal(_message(content))
    return None


def _decimal(literal: _Message) -> Decimal:
    (unscaled, *_) = literal[1]
    assert isinstance(unscaled, bytes)
    return filters.decimal(int.from_bytes(unscaled, "little", signed=True), _signed(_number(literal, 3)))


# --- messages


def _message(data: bytes) -> _Message:
    found: _Message = {}
    for number, value in _fields(data):
        found.setdefault(number, []).append(value)
    return found


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        size = 8 if wire == 1 else 4
        if wire == 2:
            size, at = _varint(data, at)
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _inner(message: _Message, number: int) -> Iterator[_Message]:
    """The messages of a field, one after the other."""
    for value in message.get(number, ()):
        if isinstance(value, bytes):
            yield _message(value)


def _at(message: _Message, *numbers: int) -> _Message:
    """The message at a path of fields; an empty one where there is none."""
    for number in numbers:
        message = next(_inner(message, number), {})
    return message


def _number(message: _Message, field: int) -> int:
    (value, *_) = message.get(field, [0])
    return value if isinstance(value, int) else 0


def _text(message: _Message, field: int) -> str:
    (value, *_) = message.get(field, [b""])
    return value.decode() if isinstance(value, bytes) else ""


def _signed(value: int) -> int:
    """A number whose sign is in the highest of 64 bits."""
    return value - (1 << 64) if value >> 63 else value
