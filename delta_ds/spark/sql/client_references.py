"""The tables by path in a query's text: found, and read by the data source.

What is a reference stands where the grammar has a table, has a path in its name, and may say a version. Where that is,
brackets and the words of clauses decide: the same text is a column where an expression stands.

Source: Spark's `SqlBaseParser.g4`, `relation` and `queryPrimary`.

Queries of a client whose server does not know Delta's names: tables by path travel with the query.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from delta_ds.records import dataclass, field
from delta_ds.spark.base.sql_grammar.tokens import SqlSyntaxError, Tokens
from delta_ds.spark.base.table_names import FORMATS, path_of_parts
from delta_ds.spark.engines.monkeypatch import call_original
from delta_ds.spark.session.reading import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.spark.base.sql_grammar.statements import SqlText


_MOMENT = "moment"
_CHANGES = ("TABLE_CHANGES", "TABLE_CHANGES_BY_PATH")

# What of a query has come: nothing yet, FROM and what belongs to it, a step behind `|>`, another clause.
_START, _RELATIONS, _PIPE, _OTHER = "start", "relations", "pipe", "other"
# Clauses behind FROM in which neither a comma nor JOIN brings a table; VIEW is that of LATERAL VIEW.
_CLAUSES = frozenset(
    [
        "WHERE",
        "GROUP",
        "HAVING",
        "ORDER",
        "SORT",
        "CLUSTER",
        "DISTRIBUTE",
        "WINDOW",
        "LIMIT",
        "OFFSET",
        "VIEW",
    ]
)
_SET_OPERATIONS = frozenset(["UNION", "INTERSECT", "EXCEPT", "MINUS"])
# Behind these TABLE is a word of a statement; elsewhere it is a query of all rows.
_OF_STATEMENTS = frozenset(
    ["CREATE", "REPLACE", "ALTER", "DROP", "TRUNCATE", "ANALYZE", "REFRESH", "CACHE", "LAZY", "UNCACHE", "REPAIR"]
    + ["INTO", "OVERWRITE", "ON", "EXTERNAL", "TEMPORARY", "STREAMING", "LOCK", "UNLOCK"]
)  # fmt: skip
_QUERY = ("SELECT", "WITH", "VALUES", "TABLE", "FROM", "MAP", "REDUCE")
# Signs before an argument of a function.
_BEFORE_ARGUMENT = ("(", ",", ">")


@dataclass(frozen=True, slots=True)
class Reference:
    """A table in a text, from one offset to another, and the read options that stand for it.

    Attributes
    ----------
    moment
        The expression of a timestamp that is no literal, and so not among the options.
    """

    start: int
    end: int
    options: dict[str, str]
    moment: str | None = field(default=None, repr=False)


def find_references(text: str) -> list[Reference]:
    """The tables by path in a statement, in order.

    >>> find_references("SELECT * FROM delta.`/p` VERSION AS OF 3 AS t")
    [Reference(start=14, end=40, options={'path': '/p', 'versionAsOf': '3'})]
    >>> find_references("SELECT delta.`/p` FROM t AS delta")
    []
    """
    if not any(name in text.lower() for name in (*FORMATS, "table_changes")):
        return []
    return list(_Finder(Tokens(text)).references())


@dataclass(slots=True)
class _Scope:
    """The statement, or what stands between two brackets.

    Attributes
    ----------
    query
        Whether it holds clauses, and not expressions alone.
    clause
        See above.
    expects
        Whether a relation comes next.
    merges
        Whether the source of a MERGE is to come, behind USING.
    """

    query: bool
    clause: str = _START
    expects: bool = False
    merges: bool = False


class _Finder:
    """Goes through the tokens of a text, with a scope for each bracket that is open."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._scopes: list[_Scope] = []

    def references(self) -> Iterator[Reference]:
        tokens = self._tokens
        self._begin_statement()
        while tokens.token().kind != "end":
            if self._scopes[-1].expects:
                yield from self._relation()
            else:
                self._step()

    def _begin_statement(self) -> None:
        tokens, scope = self._tokens, _Scope(query=True)
        self._scopes = [scope]
        if tokens.take("DESCRIBE") or tokens.take("DESC"):
            tokens.take("TABLE")
            _ = tokens.take("EXTENDED") or tokens.take("FORMATTED")
            scope.expects = not self._follows_query()
        scope.merges = tokens.follows("MERGE")

    def _follows_query(self, ahead: int = 0) -> bool:
        token = self._tokens.token(ahead)
        is_name = self._tokens.token(ahead + 1).text == "."
        return token.kind == "word" and token.text.upper() in _QUERY and not is_name

    # --- where a relation may begin

    def _relation(self) -> Iterator[Reference]:
        """A table, a function, or a query or more relations in brackets."""
        tokens, scope = self._tokens, self._scopes[-1]
        if tokens.take("LATERAL"):
            return
        scope.expects = False
        if tokens.take("("):
            self._scopes.append(_Scope(True, _RELATIONS, expects=True))
        elif self._follows_query():
            self._step()
        elif (reference := self._reference()) is not None:
            yield reference
        elif tokens.token().kind in ("word", "quoted"):
            self._skip_name()

    def _reference(self) -> Reference | None:
        """Read a table by path; of anything else nothing is read."""
        tokens = self._tokens
        before, start = tokens.at, tokens.token().start
        try:
            options = _changes(tokens) if _is_changes(tokens) else _table(tokens)
        except SqlSyntaxError:
            options = None
        if options is None:
            tokens.at = before
            return None
        return Reference(start, tokens.token(-1).end, options, options.pop(_MOMENT, None))

    def _skip_name(self) -> None:
        """Pass over a name, whose parts are no keywords."""
        try:
            self._tokens.name()
        except SqlSyntaxError:
            self._tokens.at += 1

    # --- everything else

    def _step(self) -> None:
        """Read one token, and what it says of those that follow."""
        tokens, scope = self._tokens, self._scopes[-1]
        token, before = tokens.token(), tokens.token(-1).text.upper() if tokens.at else ""
        tokens.at += 1
        if token.kind == "sign":
            self._sign(token.text, scope)
        elif token.kind != "word" or before == ".":
            return
        elif token.text.upper() == "TABLE":
            of_query = scope.query and scope.clause == _START and before not in _OF_STATEMENTS
            scope.expects = of_query or before in _BEFORE_ARGUMENT
        elif scope.query:
            _word(token.text.upper(), before, scope)

    def _sign(self, sign: str, scope: _Scope) -> None:
        if sign == "(":
            self._scopes.append(_Scope(query=self._brackets_hold_query()))
        elif sign == ")" and len(self._scopes) > 1:
            self._scopes.pop()
        elif sign == "," and scope.query and scope.clause == _RELATIONS:
            scope.expects = True
        elif sign == "|" and self._tokens.take(">"):
            scope.clause = _PIPE
        elif sign == ";" and len(self._scopes) == 1:
            self._begin_statement()

    def _brackets_hold_query(self) -> bool:
        """Whether a query comes behind the bracket that was read, perhaps in further brackets."""
        ahead = 0
        while self._tokens.token(ahead).text == "(":
            ahead += 1
        return self._follows_query(ahead)


def _word(word: str, before: str, scope: _Scope) -> None:
    """What a word says of the query that it stands in."""
    if word == "FROM":
        # Not that of DELETE, which is no source, nor of IS DISTINCT FROM.
        if before not in ("DELETE", "DISTINCT"):
            scope.clause, scope.expects = _RELATIONS, True
    elif word == "JOIN":
        scope.expects = scope.clause in (_RELATIONS, _PIPE)
    elif word == "USING" and scope.merges:
        scope.merges, scope.expects = False, True
    elif word in _SET_OPERATIONS:
        scope.clause = _START
    elif word == "SELECT" or (word in _CLAUSES and scope.clause == _RELATIONS):
        scope.clause = _OTHER


# --- a table


def _table(tokens: Tokens) -> dict[str, str] | None:
    path = path_of_parts(tokens.name())
    return None if path is None else {"path": path, **_time_travel(tokens)}


def _time_travel(tokens: Tokens) -> dict[str, str]:
    before = tokens.at
    tokens.take("FOR")
    if (tokens.take("VERSION") or tokens.take("SYSTEM_VERSION")) and tokens.take("AS", "OF"):
        return {"versionAsOf": _constant(tokens)}
    if (tokens.take("TIMESTAMP") or tokens.take("SYSTEM_TIME")) and tokens.take("AS", "OF"):
        if not tokens.follows("TIMESTAMP") and tokens.token().kind == "word":
            return {_MOMENT: _moment(tokens)}
        tokens.take("TIMESTAMP")
        return {"timestampAsOf": tokens.string()}
    tokens.at = before
    return {}


def _moment(tokens: Tokens) -> str:
    """Read the call of a function, and intervals that are added or subtracted."""
    start = tokens.token().start
    tokens.name()
    tokens.need("(")
    if not tokens.follows(")"):
        tokens.until()
    tokens.need(")")
    while tokens.take("+") or tokens.take("-"):
        tokens.need("INTERVAL")
        _ = tokens.string() if tokens.token().kind == "string" else tokens.number()
        tokens.name()
    return str(tokens.between(start, tokens.token(-1).end))


def _is_changes(tokens: Tokens) -> bool:
    return any(tokens.follows(name, "(") for name in _CHANGES)


def _changes(tokens: Tokens) -> dict[str, str] | None:
    by_path = tokens.follows("TABLE_CHANGES_BY_PATH")
    tokens.at += 2
    named = tokens.string()
    path = named if by_path else path_of_parts(Tokens(named).name())
    if path is None:
        return None
    options: dict[str, Any] = {"path": path, "readChangeFeed": "true"}
    for word in ("starting", "ending"):
        if tokens.take(",") and not tokens.take("NULL"):
            kind = "Timestamp" if tokens.token().kind == "string" else "Version"
            options[word + kind] = _constant(tokens)
    for word in ("net", "keys"):
        if tokens.take(","):
            options[word] = tokens.string()
    tokens.need(")")
    return options


def _constant(tokens: Tokens) -> str:
    return tokens.string() if tokens.token().kind == "string" else str(tokens.integer())


@dataclass(frozen=True)
class Call:
    """A call of `spark.sql`.

    Attributes
    ----------
    spark
        A session of Spark Connect.
    args
        Values of markers, as the call was given them.
    frames
        DataFrames, by the words that stand for them in the text.
    """

    spark: SparkSession
    args: Any = None
    frames: Mapping[str, DataFrame] = field(default_factory=dict)

    def query(self, text: str) -> DataFrame:
        """What Spark answers to a text, with each table by path in it read by the data source.

        Spark Connect carries the DataFrames of a query along with it; to the server they are temporary views for as
        long as it reads the text.
        """
        frames = {name: frame for name, frame in self.frames.items() if name in text}
        references = find_references(text)
        if not frames and not references:
            return self._sql(text, {})
        pieces, done = [], 0
        for reference in references:
            name = f"_pydelta_{uuid.uuid4().hex}"
            frames[name] = read(self.spark, self._options(reference))
            pieces += [text[done : reference.start], name]
            done = reference.end
        plain = "".join([*pieces, text[done:]]).replace("{", "{{").replace("}", "}}")
        for name in frames:
            plain = plain.replace(name, f"{{{name}}}")
        return self._sql(plain, frames)

    def _options(self, reference: Reference) -> dict[str, str]:
        if reference.moment is None:
            return reference.options
        # Values in order are those of the whole text.
        args = self.args if isinstance(self.args, Mapping) else None
        asked = f"SELECT CAST({reference.moment} AS STRING)"
        (row,) = call_original(self.spark, "sql", asked, args).collect()
        return {**reference.options, "timestampAsOf": str(row[0])}

    def _sql(self, text: str, frames: Mapping[str, DataFrame]) -> DataFrame:
        found: DataFrame = call_original(self.spark, "sql", text, self.args, **frames)
        return found


def with_ctes(ctes: SqlText | None, query: str) -> str:
    """A query with the named queries that stand in front of its statement."""
    return query if ctes is None else f"{ctes} {query}"
