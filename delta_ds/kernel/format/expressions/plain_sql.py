"""Spark SQL without a parser: literals, and the filters that most reads have, columns compared with constants.

sqlglot takes longer to import than a small table takes to be planned. A filter that is read here becomes the tree that
sqlglot's reading becomes; every other text is left to it. Floats are written as Java's `Double.toString` does.

Source: Spark's `SparkParserUtils.unescapeSQLString` and the lexer's `STRING_LITERAL`.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from decimal import Decimal

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.coercion import INTEGER_BITS, in_range
from delta_ds.kernel.format.expressions.tree import Call, Cast, Column, Expression, Literal
from delta_ds.kernel.format.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    VOID,
    DataType,
    DecimalType,
)  # fmt: skip

_TOKENS = r"""(?P<skip>`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|\b[xX]'[0-9a-fA-F]*'|\b[xX]"[0-9a-fA-F]*")
    |(?P<strings>(?:\b[rR])?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      (?:\s*(?:\b[rR])?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))*)
    |(?<![\w.`])(?P<decimal>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[bB][dD]\b"""
_STRING = re.compile(r"""([rR])?('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def normalise_literals(text: str) -> str:
    """Write the literals that dialects read differently in a form that all read alike.

    In strings only ' and \\ stay escaped; `1.5BD` becomes a cast.
    """

    def literal(match: re.Match[str]) -> str:
        if match["skip"]:
            return match["skip"]
        if match["decimal"]:
            number = Decimal(match["decimal"])
            plain = f"{number:f}"
            scale = len(plain.partition(".")[2])
            return f"CAST({plain} AS DECIMAL({max(len(number.as_tuple().digits), scale)},{scale}))"
        value = string_value(match["strings"])
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    # Compiled when the first text comes that is no plain filter; `re` keeps it.
    return re.sub(_TOKENS, literal, text, flags=re.DOTALL | re.VERBOSE)


def string_value(literals: str) -> str:
    """What a string literal stands for, or several beside each other: without quotes and escapes.

    >>> string_value("'it''s' ' here'")
    "it's here"

    Raises
    ------
    PredicateError
        An escape names no character.
    """
    parts: list[str] = []
    end, quote_before = None, ""
    for part in _STRING.finditer(literals):
        raw, quoted = part.groups()
        value = quoted[1:-1] if raw else _ESCAPE.sub(_unescape, quoted[1:-1])
        # A doubled quote, as in 'it''s', stands for one quote; literals further apart are joined.
        if end == part.start() and quoted[0] == quote_before and not raw:
            value = quoted[0] + value
        parts.append(value)
        end, quote_before = part.end(), quoted[0]
    # Escapes may have given the two halves of a character; a half alone is none.
    return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescape(match: re.Match[str]) -> str:
    short, long, octal, char = match.groups()
    if short or long:
        code = int(short or long, 16)
        if code > 0x10FFFF:
            raise PredicateError(f"{match[0]!r} is not a character")
        return chr(code)
    return chr(int(octal, 8)) if octal else _ESCAPED.get(char, char)


def number_literal(text: str) -> Literal:
    """A number as SQL writes it: integer or long, decimal if it has a point, double if it has an exponent."""
    if re.fullmatch(r"-?\d+", text):
        return _integer(int(text), text)
    if re.search("[eE]", text):
        if abs(float(text)) == float("inf"):
            raise PredicateError(f"the number {text} is beyond the range of a double")
        return Literal(float(text), DOUBLE)
    value = Decimal(text)
    scale = -int(value.as_tuple().exponent)
    return Literal(value, _decimal(max(len(value.as_tuple().digits), scale), scale, text))


def _integer(number: int, text: str) -> Literal:
    for data_type in (INTEGER, LONG):
        if in_range(number, data_type):
            return Literal(number, data_type)
    return Literal(Decimal(number), _decimal(len(str(abs(number))), 0, text))


def _decimal(precision: int, scale: int, text: str) -> DecimalType:
    if precision > 38 or scale > 38:
        raise PredicateError(f"the number {text} has more than the 38 digits a decimal can hold")
    return DecimalType(precision, scale)


def constant_cast(child: Expression, target: DataType, safe: bool) -> Expression:
    """`CAST(child AS target)`, or the constant itself where the number fits; so `42L` arrives, too."""
    if isinstance(child, Literal) and child.value is not None:
        value = child.value
        if isinstance(target, DecimalType) and isinstance(value, str):
            if re.fullmatch(r"-?\d+(\.\d+)?", value) and _fits(Decimal(value), target):
                return Literal(Decimal(value), target)
        elif isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
            return _constant_number(value, target) or Cast(child, target, safe)
    return Cast(child, target, safe)


def _constant_number(value: int | float | Decimal, target: DataType) -> Literal | None:
    if target == DOUBLE:
        return Literal(float(value), DOUBLE)
    if target == FLOAT and abs(float(value)) < 3e38:
        return Literal(struct.unpack("<f", struct.pack("<f", float(value)))[0], FLOAT)
    if isinstance(value, float):
        return None
    if isinstance(target, DecimalType) and _fits(Decimal(value), target):
        return Literal(Decimal(value), target)
    if target in INTEGER_BITS and value == int(value) and in_range(int(value), target):
        return Literal(int(value), target)
    return None


def _fits(value: Decimal, target: DecimalType) -> bool:
    """Whether a decimal type holds the value without rounding."""
    exponent = int(value.as_tuple().exponent)
    return exponent >= -target.scale and value.adjusted() < target.precision - target.scale


def double_text(number: float) -> str:
    """Java's text of a double: `1.0`, `1.0E300`, `NaN`, `-Infinity`."""
    return _java_text(number, repr(number))


def float_text(number: float) -> str:
    """Java's text of a float held in a Python float: the shortest that reads back as the same float."""
    import numpy as np

    return _java_text(number, str(np.float32(number)))


def _java_text(number: float, shortest: str) -> str:
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    mantissa, _, power = shortest.lstrip("-").lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = int(power or 0) + len(whole) - 1 - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0") or "0"
    if number == 0:
        return f"{sign}0.0"
    if 1e-3 <= abs(number) < 1e7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        padded = digits.ljust(exponent + 1, "0")
        return f"{sign}{padded[: exponent + 1]}.{padded[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


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
    "connect_by_root", "create", "cross", "current_catalog", "current_date", "current_role", "current_schema",
    "current_time", "current_timestamp", "current_user", "default", "describe", "distinct", "div", "drop", "else",
    "end", "escape", "except", "execute", "exists", "explain", "extract", "false", "fetch", "for", "from", "full",
    "glob", "grant", "group", "having", "if", "ilike", "in", "inner", "insert", "intersect", "interval", "into", "is",
    "isnull", "join", "lateral", "leading", "left", "like", "limit", "localtime", "localtimestamp", "map", "minus",
    "next", "not", "notnull", "null", "on", "optimize", "or", "order", "outer", "over", "overlaps", "partitioned_by",
    "pivot", "prepare", "prior", "qualify", "regexp", "rename", "returning", "revoke", "right", "rlike", "rollback",
    "select", "semi", "serdeproperties", "session_user", "show", "some", "struct", "substring", "table",
    "tablesample", "then", "trailing", "trim", "true", "try_cast", "uncache", "union", "unique", "unknown", "unnest",
    "unpivot", "using", "vacuum", "values", "when", "where", "window", "with", "within", "xor",
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
