"""Take a text apart at AND, OR and NOT, and at the parentheses around conditions, however deep they are nested.

Programs join conditions by `f"({a}) OR ({b})"`, ten thousand times. Parsers of SQL call themselves for every pair of
parentheses; here each is one entry of a list. What stands between is a condition, for such a parser to read.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from delta_ds.kernel.format.expressions.tree import Call, Expression
from delta_ds.records import dataclass, field

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<value>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`|\d+)
    |(?P<word>[^\W\d]\w*)
    |(?P<open>[(\[])|(?P<close>[)\]])
    |(?P<not>!(?!=))
    |(?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
_JOINTS = frozenset(["and", "or"])


@dataclass(frozen=True, slots=True)
class _Token:
    """A piece of the text; the name of its kind, or the word in small letters."""

    kind: str
    start: int
    end: int
    word: str = ""


@dataclass(slots=True)
class _Level:
    """What has been read since parentheses were opened: conditions joined by AND, in parts joined by OR."""

    disjuncts: list[Expression] = field(default_factory=list)
    conjuncts: list[Expression] = field(default_factory=list)
    negations: int = 0

    def add(self, condition: Expression, *, bare: bool) -> None:
        """Take a condition, under the negations before it; `bare`: it stands in no parentheses."""
        if bare and self.negations and isinstance(condition, Call) and condition.name == "isnull":
            condition, self.negations = Call("isnotnull", condition.args), self.negations - 1
        for _ in range(self.negations):
            condition = Call("not", (condition,))
        self.negations = 0
        self.conjuncts.append(condition)

    def end_conjunction(self) -> None:
        """What comes now is joined by OR, or there is nothing more."""
        self.disjuncts.append(_chain("and", self.conjuncts))
        self.conjuncts = []

    def whole(self) -> Expression:
        """All of it as one condition."""
        self.end_conjunction()
        return _chain("or", self.disjuncts)


class _OneCondition(Exception):
    """There is nothing to be taken apart, or what there is, is no SQL: the parser of SQL says what is wrong."""


def read_conditions(text: str, read: Callable[[str], Expression]) -> Expression | None:
    """The tree of a text, whose conditions are read one by one.

    Parameters
    ----------
    text
        SQL.
    read
        Reads what holds no AND, OR or NOT but inside other things, such as the arguments of a function.

    Returns
    -------
    Expression or None
        None where there is nothing to be taken apart.
    """
    try:
        return _Reader(text, read).whole()
    except _OneCondition:
        return None


class _Reader:
    """A text on its way to a tree; of each pair of parentheses that is open there is a level."""

    def __init__(self, text: str, read: Callable[[str], Expression]) -> None:
        self._text, self._read = text, read
        self._tokens = _tokens(text)
        self._partners = _partners(self._tokens)
        self._of_values = _around_values(self._tokens, self._partners)
        self._next = 0
        self._levels = [_Level()]

    def whole(self) -> Expression:
        wants_condition = True
        while self._next < len(self._tokens):
            token = self._tokens[self._next]
            if wants_condition:
                wants_condition = self._begins(token)
            elif token.word in _JOINTS:
                if token.word == "or":
                    self._levels[-1].end_conjunction()
                self._next += 1
                wants_condition = True
            elif token.kind == ")" and len(self._levels) > 1:
                inside = self._levels.pop().whole()
                self._levels[-1].add(inside, bare=False)
                self._next += 1
            else:
                raise _OneCondition
        if wants_condition or len(self._levels) > 1:
            raise _OneCondition
        return self._levels[-1].whole()

    def _begins(self, token: _Token) -> bool:
        """Take what stands where a condition may begin; whether one still has to follow."""
        if token.word == "not" or token.kind == "not":
            self._levels[-1].negations += 1
            self._next += 1
            return True
        if token.kind == "(" and self._holds_conditions():
            self._levels.append(_Level())
            self._next += 1
            return True
        self._levels[-1].add(self._condition(), bare=True)
        return False

    def _holds_conditions(self) -> bool:
        """Whether the parentheses that open here hold a condition, and are not a part of a larger one."""
        end = self._partners[self._next]
        after = self._tokens[end + 1] if end + 1 < len(self._tokens) else None
        if after is not None and after.kind != ")" and after.word not in _JOINTS:
            return False
        return self._next not in self._of_values

    def _condition(self) -> Expression:
        """What stands up to the next AND or OR, or to the end of the parentheses."""
        first = self._next
        cases = betweens = 0
        while self._next < len(self._tokens):
            token = self._tokens[self._next]
            if token.kind in ("(", "["):
                self._next = self._partners[self._next]
            elif (
                token.kind in (")", "]")
                or token.word in _JOINTS
                and not cases
                and not (betweens and token.word == "and")
            ):
                break
            cases += (token.word == "case") - (token.word == "end" and cases > 0)
            if not cases:
                betweens += (token.word == "between") - (token.word == "and")
            self._next += 1
        if first == self._next or (first == 0 and self._next == len(self._tokens)):
            raise _OneCondition
        return self._read(self._text[self._tokens[first].start : self._tokens[self._next - 1].end])


def _chain(name: str, parts: list[Expression]) -> Expression:
    """The parts joined, those of a part that is joined the same way among them."""
    if len(parts) == 1:
        return parts[0]
    flat: list[Expression] = []
    for part in parts:
        flat.extend(part.args if isinstance(part, Call) and part.name == name else (part,))
    return Call(name, tuple(flat))


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    field_follows = False
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        if kind == "space":
            continue
        word = match[0].lower() if kind == "word" and not field_follows else ""
        field_follows = match[0] == "."
        found.append(_Token(match[0] if kind in ("open", "close") else kind, *match.span(), word))
    return found


def _partners(tokens: list[_Token]) -> dict[int, int]:
    """By the place of what opens parentheses or brackets, the place of what closes them."""
    partners: dict[int, int] = {}
    waiting: list[int] = []
    for place, token in enumerate(tokens):
        if token.kind in ("(", "["):
            waiting.append(place)
        elif token.kind in (")", "]"):
            if not waiting or tokens[waiting[-1]].kind + token.kind not in ("()", "[]"):
                raise _OneCondition
            partners[waiting.pop()] = place
    if waiting:
        raise _OneCondition
    return partners


def _around_values(tokens: list[_Token], partners: dict[int, int]) -> set[int]:
    """The places of parentheses that hold a column or constant and nothing else, as those of `((flag))` do."""
    found: set[int] = set()
    for place in sorted(partners, reverse=True):
        end = partners[place]
        alone = end == place + 2 and tokens[place + 1].kind in ("value", "word")
        if alone or (place + 1 in found and partners[place + 1] == end - 1):
            found.add(place)
    return found
