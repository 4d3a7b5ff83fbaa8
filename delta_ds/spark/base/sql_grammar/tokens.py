"""SQL text to words, names, strings, numbers and signs, with Spark's comments, escapes and parameter markers.

Nothing inside a string, a quoted name or a comment is taken for a keyword. The text is read as far as it is asked for,
so a statement of another kind costs its first words.

Source: Spark's `SqlBaseLexer.g4`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NoReturn, TypeAlias

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.plain_sql import string_value
from delta_ds.records import dataclass
from delta_ds.spark.base.sql_grammar.statements import Name, SqlText

Parameters: TypeAlias = Mapping[str, str] | Sequence[str]

# Characters that Spark takes for space, without those that end a line.
BLANKS = r" \t\f\x0B\u00A0\u1680\u2000-\u200A\u2028\u202F\u205F\u3000"
_SPACES = re.compile(rf"[\r\n{BLANKS}]*")
# A line that ends with a backslash goes on.
_LINE_COMMENT = re.compile(r"--(?:\\\n|[^\r\n])*")
_BRACKET = re.compile(r"/\*|\*/")
_TOKEN = re.compile(
    r"""(?P<string>[rR]'[^']*'|[rR]"[^"]*"|(?:'[^'\\]*(?:\\.[^'\\]*)*')+|(?:"[^"\\]*(?:\\.[^"\\]*)*")+)
    |(?P<quoted>`[^`]*`(?:`[^`]*`)*)
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[lLsSyYdDfF])?(?!\w))
    |(?P<word>\w+)
    |(?P<unclosed>['"`].*)
    |(?P<marker>\?(?!::)|(?<![\w)\]`'":]):\w+)
    |(?P<sign>\?::|::|.)""",
    re.DOTALL | re.VERBOSE,
)
_NUMBER = re.compile(r"([0-9.]+(?:[eE][+-]?[0-9]+)?)[a-zA-Z]*")
_OPEN, _CLOSE = "([{", ")]}"
# Words that Delta's grammar never takes for a name unless they are quoted.
_RESERVED = frozenset(
    [
        "ADD",
        "ALTER",
        "COMMENT",
        "CONSTRAINT",
        "CREATE",
        "DROP",
        "FALSE",
        "HISTORY",
        "IF",
        "LOCATION",
        "NOT",
        "NULL",
    ]
    + [
        "OR",
        "REPLACE",
        "SYSTEM_TIME",
        "SYSTEM_VERSION",
        "TBLPROPERTIES",
        "TIMESTAMP",
        "TRUE",
        "VERSION",
        "WHERE",
    ]
)


class SqlSyntaxError(Exception):
    """A statement of Delta's own that is not written as its grammar says.

    Parameters
    ----------
    condition, parameters
        Spark's condition for it, and the parameters of its message.
    offset
        Where in the text, in characters.
    """

    def __init__(self, condition: str, offset: int, text: str, **parameters: str) -> None:
        super().__init__(text)
        self.condition = condition
        self.offset = offset
        self.parameters = parameters


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text: its kind is the name of a group of `_TOKEN`, and says how it was written."""

    kind: str
    text: str
    start: int
    end: int


_END = Token("end", "", 0, 0)


class Tokens:
    """The tokens of a text, and how far they have been read.

    Parameters
    ----------
    text
        One statement.
    parameters
        SQL literals for the markers in it: by name for `:name`, in order for `?`.
    """

    def __init__(self, text: str, parameters: Parameters | None = None) -> None:
        self.text = text
        self.at = 0
        self._parameters = {} if parameters is None else parameters
        self._found: list[Token] = []
        self._scanned = 0
        self._marks = 0
        self._bound: list[tuple[Token, str]] = []

    # --- what comes next

    def token(self, ahead: int = 0) -> Token:
        """The next token, or one further ahead, or before it; one of kind `end` behind the last."""
        while len(self._found) <= self.at + ahead:
            if not self._scan():
                return _END
        return self._found[self.at + ahead]

    def follows(self, *words: str) -> bool:
        """Whether these keywords and signs come next."""
        return all(_keyword(self.token(ahead)) == word for ahead, word in enumerate(words))

    def take(self, *words: str) -> bool:
        """Whether these keywords and signs come next; then they are read."""
        found = self.follows(*words)
        if found:
            self.at += len(words)
        return found

    def need(self, *words: str) -> None:
        """Read these keywords and signs."""
        for word in words:
            if not self.take(word):
                self.fail(f"{word} was expected")

    def end(self) -> None:
        """Make sure that nothing follows but semicolons, and that all that was read is whole."""
        while self.take(";"):
            pass
        if self.token() is not _END:
            self.fail("the end of the statement was expected")
        for number, token in enumerate(self._found):
            if token.kind in ("unclosed", "marker"):
                self.at = number
                self.fail("")

    def fail(self, hint: str) -> NoReturn:
        """Refuse the next token.

        Raises
        ------
        SqlSyntaxError
            Always; of the condition UNBOUND_SQL_PARAMETER where the token is a marker without a value.
        """
        token = self.token()
        if token.kind == "marker":
            name = token.text[1:] or f"_{token.start}"
            raise SqlSyntaxError(
                "UNBOUND_SQL_PARAMETER",
                token.start,
                f"the parameter {token.text} has no value: give one by args",
                name=name,
            )
        if token.kind == "unclosed":
            hint = "it is not closed"
        near = "end of input" if token is _END else f"'{token.text[:40]}'"
        raise SqlSyntaxError(
            "PARSE_SYNTAX_ERROR",
            len(self.text) if token is _END else token.start,
            f"Syntax error at or near {near}: {hint}",
            error=near,
            hint=f": {hint}",
        )

    # --- names and values

    def part(self) -> str:
        """Read one part of a name."""
        token = self.token()
        text = token.text
        if token.kind == "quoted":
            text = text[1:-1].replace("``", "`")
        elif token.kind != "word" and not (token.kind == "number" and re.fullmatch(r"\w*[a-zA-Z]\w*", text)):
            self.fail("a name was expected")
        if not text:
            self.fail("a name was expected")
        self.at += 1
        return text

    def name(self) -> Name:
        """Read a name of one or more parts."""
        parts = [self.part()]
        while self.take("."):
            parts.append(self.part())
        return tuple(parts)

    def table(self, path: bool = False) -> Name:
        """Read the name of a table, or where `path` says so a path as a string."""
        if path and self.token().kind == "string":
            return "delta", self.string()
        if _keyword(self.token()) in _RESERVED:
            self.fail("the name of a table was expected")
        return self.name()

    def names(self, brackets: bool) -> tuple[Name, ...]:
        """Read names with commas between them, in brackets; these may be left out unless `brackets`."""
        opened = self.take("(")
        if brackets and not opened:
            self.fail("( was expected")
        found = [self.name()]
        while self.take(","):
            found.append(self.name())
        if opened:
            self.need(")")
        return tuple(found)

    def string(self) -> str:
        """Read a string, which may be written as several beside each other."""
        if self.token().kind != "string":
            self.fail("a string was expected")
        parts = []
        while (token := self.token()).kind == "string":
            try:
                parts.append(token.text[2:-1] if token.text[0] in "rR" else string_value(token.text))
            except PredicateError as error:
                self.fail(error.text)
            self.at += 1
        return "".join(parts)

    def integer(self) -> int:
        """Read a number without sign and point."""
        token = self.token()
        if token.kind != "number" or not re.fullmatch("[0-9]{1,18}", token.text):
            self.fail("an integer was expected")
        self.at += 1
        return int(token.text)

    def number(self) -> float:
        """Read a number of any kind."""
        sign = -1.0 if self.take("-") else 1.0
        match = _NUMBER.fullmatch(self.token().text)
        if self.token().kind != "number" or match is None or float(match[1]) == float("inf"):
            self.fail("a number was expected")
        self.at += 1
        return sign * float(match[1])

    # --- text for Spark to parse

    def until(self, *stops: tuple[str, ...]) -> SqlText:
        """Read everything up to one of these runs of keywords outside brackets, a closing bracket, or the end.

        WHEN and THEN are no stops inside of CASE.
        """
        first, depth, cases = self.at, 0, 0
        while (token := self.token()) is not _END:
            if depth == 0 and token.text in (*_CLOSE, ";"):
                break
            if depth == cases == 0 and any(self.follows(*stop) for stop in stops):
                break
            if token.kind == "sign":
                depth += (token.text in _OPEN) - (token.text in _CLOSE)
            elif token.kind == "word" and depth == 0:
                cases = max(cases + self.follows("CASE") - self.follows("END"), 0)
            self.at += 1
        if first == self.at:
            self.fail("an expression was expected")
        return self.between(self._found[first].start, self._found[self.at - 1].end)

    def between(self, start: int, end: int) -> SqlText:
        """The text between two offsets as it was written, with the values of markers in their place."""
        pieces, done = [], start
        for marker, literal in self._bound:
            if start <= marker.start < end:
                before, after = self.text[done : marker.start], self.text[marker.end : marker.end + 1]
                # A value must not become one word with its neighbours, nor two signs a comment.
                apart = " " if re.search(r"[\w'\"-]\Z", before) else ""
                pieces += [before, apart, literal, " " if re.match(r"[\w'\"]", after) else ""]
                done = marker.end
        return SqlText("".join([*pieces, self.text[done:end]]), start)

    # --- scanning

    def _scan(self) -> bool:
        """Find the next token; False at the end of the text."""
        start = self._after_comments()
        match = _TOKEN.match(self.text, start)
        if match is None:
            return False
        kind = str(match.lastgroup)
        if self.text.startswith("/*", start):
            kind, self._scanned = "unclosed", len(self.text)
        else:
            self._scanned = match.end()
        token = Token(kind, self.text[start : self._scanned], start, self._scanned)
        literal = self._value(token.text) if kind == "marker" else None
        if literal is None:
            self._found.append(token)
        else:
            self._bound.append((token, literal))
            inner = Tokens(literal)
            while (one := inner.token()) is not _END:
                self._found.append(Token(one.kind, one.text, token.start, token.end))
                inner.at += 1
        return True

    def _value(self, marker: str) -> str | None:
        """The literal for a marker; None where it has none."""
        if isinstance(self._parameters, Mapping):
            return self._parameters.get(marker[1:]) if marker != "?" else None
        if marker != "?" or self._marks >= len(self._parameters):
            return None
        self._marks += 1
        return self._parameters[self._marks - 1]

    def _after_comments(self) -> int:
        """Where the first character is that is neither space nor comment; also the start of a comment without end."""
        at = self._scanned
        while True:
            at = _SPACES.match(self.text, at).end()  # type: ignore[union-attr]
            if comment := _LINE_COMMENT.match(self.text, at):
                at = comment.end()
            elif self.text.startswith("/*", at) and (end := _bracketed(self.text, at)):
                at = end
            else:
                return at


def _bracketed(text: str, start: int) -> int | None:
    """The end of a bracketed comment, which may hold others; None where it is not closed."""
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket[0] == "/*" else -1
        if depth == 0:
            return bracket.end()
    return None


def _keyword(token: Token) -> str:
    """A word in capitals, or a sign; nothing that is quoted, and no letters but those of keywords."""
    if token.kind == "sign" or (token.kind == "word" and token.text.isascii()):
        return token.text.upper()
    return ""
