"""Parse the filters that most reads have, columns compared with constants, without a parser of SQL.

sqlglot takes longer to import than a small table takes to be planned. What is read here becomes the tree that
sqlglot's reading becomes; every other text is left to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.literals import constant_cast, number_literal, string_value
from delta_ds.kernel.format.expressions.tree import Call, Column, Expression, Literal
from delta_ds.kernel.format.schema.types import BOOLEAN, DATE, STRING, VOID

_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
      (?P<date>[dD][aA][tT][eE][ ]?(?='))
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*(?![\w'"]))
    | (?P<quoted>`(?:[^`]|``)+`)
    | (?P<number>\d+(?:\.\d+)?(?![\w.]))
    | (?P<string>(?:'[^'\\]*'|"[^"\\]*")(?![ \t\r\n]*['"]))
    | (?P<compare><=>|<=|>=|<>|!=|==|=|<|>)
    | (?P<sign>-(?=\d))
    | (?P<mark>[(),.])
    )""",
    re.ASCII | re.VERBOSE,
)
_LONGEST = 10_000
_DEEPEST = 20
_COMPARISONS = {"==": "=", "!=": "<>"}
# Words that are, or may be, more than the name of a column.
_NO_NAMES = frozenset([
    "all", "alter", "and", "any", "anti", "array", "as", "between", "both", "by", "call", "case", "cast",
    "connect_by_root", "create", "cross", "current_catalog", "current_date", "current_role",
    "current_schema", "current_time", "current_timestamp", "current_user", "default", "describe",
    "distinct", "div", "drop", "else", "end", "escape", "except", "execute", "exists", "explain",
    "extract", "false", "fetch", "for", "from", "full", "glob", "grant", "group", "having", "if", "ilike",
    "in", "inner", "insert", "intersect", "interval", "into", "is", "isnull", "join", "lateral",
    "leading", "left", "like", "limit", "localtime", "localtimestamp", "map", "minus", "next", "not",
    "notnull", "null", "on", "optimize", "or", "order", "outer", "over", "overlaps", "partitioned_by",
    "pivot", "prepare", "prior", "qualify", "regexp", "rename", "returning", "revoke", "right", "rlike",
    "rollback", "select", "semi", "serdeproperties", "session_user", "show", "some", "struct",
    "substring", "table", "tablesample", "then", "trailing", "trim", "true", "try_cast", "uncache",
    "union", "unique", "unknown", "unnest", "unpivot", "using", "vacuum", "values", "when", "where",
    "window", "with", "within", "xor",
])  # fmt: skip
_CONSTANTS = {"true": Literal(True, BOOLEAN), "false": Literal(False, BOOLEAN), "null": Literal(None, VOID)}


def plain_filter(text: str) -> Expression | None:
    """The tree of a filter made of columns, constants, comparisons, `IN`, `BETWEEN`, `IS NULL`, `AND`, `OR`, `NOT`.

    None for everything else, wrong SQL included.

    >>> str(plain_filter("day = '2024-01-01' AND i > 5"))
    "((day = '2024-01-01') AND (i > 5))"
    >>> plain_filter("year(day) = 2024") is None
    True
    """
    try:
        return _Filter(text).whole()
    except (_NotPlain, PredicateError):  # what is wrong is for the other parser to say
        return None


class _NotPlain(Exception):
    """Something that is left to the parser of SQL."""


class _Filter:
    """One text on its way to a tree: its tokens and how many of them have been read."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = 0
        self._depth = 0

    def whole(self) -> Expression:
        tree = self._disjunction()
        if self._kind() != "end":
            raise _NotPlain
        return tree

    def _disjunction(self) -> Expression:
        return self._chain("or", self._conjunction)

    def _conjunction(self) -> Expression:
        return self._chain("and", self._negation)

    def _chain(self, name: str, part: Callable[[], Expression]) -> Expression:
        parts = [part()]
        while self._word(name):
            parts.append(part())
        if len(parts) == 1:
            return parts[0]
        flat: list[Expression] = []
        for condition in parts:
            flat.extend(
                condition.args if isinstance(condition, Call) and condition.name == name else (condition,)
            )
        return Call(name, tuple(flat))

    def _negation(self) -> Expression:
        if not self._word("not"):
            return self._condition()
        if self._mark("("):
            return Call("not", (self._in_parentheses(),))
        condition = self._condition()
        if isinstance(condition, Call) and condition.name in ("isnull", "isnotnull", "not"):
            raise _NotPlain  # how these are nested is for the other parser to say
        return Call("not", (condition,))

    def _in_parentheses(self) -> Expression:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _NotPlain
        condition = self._disjunction()
        self._need_mark(")")
        self._depth -= 1
        return condition

    def _condition(self) -> Expression:
        if self._mark("("):
            return self._in_parentheses()
        value = self._value()
        if self._kind() == "compare":
            operator = self._take()
            return Call(_COMPARISONS.get(operator, operator), (value, self._value()))
        if self._word("is"):
            negated = self._word("not")
            if not self._word("null"):
                raise _NotPlain
            return Call("isnotnull" if negated else "isnull", (value,))
        negated = self._word("not")
        if self._word("in"):
            condition = self._in(value)
        elif self._word("between"):
            low = self._value()
            if not self._word("and"):
                raise _NotPlain
            condition = Call("and", (Call(">=", (value, low)), Call("<=", (value, self._value()))))
        elif negated:
            raise _NotPlain
        else:
            return value
        return Call("not", (condition,)) if negated else condition

    def _in(self, value: Expression) -> Call:
        self._need_mark("(")
        items = [self._value()]
        while self._mark(","):
            items.append(self._value())
        self._need_mark(")")
        return Call("in", (value, *items))

    def _value(self) -> Expression:
        kind, text = self._kind(), self._take()
        if kind == "number":
            return number_literal(text)
        if kind == "sign":
            return _negative(self._take())
        if kind == "string":
            return Literal(string_value(text), STRING)
        if kind == "date" and self._kind() == "string":
            return constant_cast(Literal(string_value(self._take()), STRING), DATE, False)
        if kind == "word" and text.lower() in _CONSTANTS and not self._mark("."):
            return _CONSTANTS[text.lower()]
        path = [_name(kind, text)]
        while self._mark("."):
            path.append(_name(self._kind(), self._take()))
        return Column(tuple(path))

    # --- tokens

    def _kind(self) -> str:
        return self._tokens[self._next][0]

    def _take(self) -> str:
        text = self._tokens[self._next][1]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return text

    def _word(self, word: str) -> bool:
        return self._is("word", word)

    def _mark(self, mark: str) -> bool:
        return self._is("mark", mark)

    def _need_mark(self, mark: str) -> None:
        if not self._mark(mark):
            raise _NotPlain

    def _is(self, kind: str, text: str) -> bool:
        token = self._tokens[self._next]
        if token[0] != kind or token[1].lower() != text:
            return False
        self._next += 1
        return True


def _tokens(text: str) -> list[tuple[str, str]]:
    if len(text) > _LONGEST:
        raise _NotPlain
    tokens, at, text = [], 0, text.rstrip(" \t\r\n")
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _NotPlain
        kind = str(match.lastgroup)
        tokens.append((kind, match[kind]))
        at = match.end()
    return [*tokens, ("end", "")]


def _name(kind: str, text: str) -> str:
    if kind == "quoted":
        return text[1:-1].replace("``", "`")
    if kind == "word" and text.lower() not in _NO_NAMES:
        return text
    raise _NotPlain


def _negative(number: str) -> Literal:
    if "." not in number:
        return number_literal(f"-{number}")  # the lowest int has no positive twin
    positive = number_literal(number)
    assert isinstance(positive.value, Decimal)
    return Literal(positive.value.copy_negate(), positive.type)
