"""The word DEFAULT in the rows of an INSERT: where it stands for a column.

Source: Spark, `ResolveColumnDefaultInCommandInputQuery`: a value of its own in VALUES, or in the list of a SELECT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from delta_ds.spark.base.sql_grammar.tokens import SqlSyntaxError, Tokens

_ENDS_OF_LIST = tuple(
    (word,)
    for word in ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "WINDOW", "LIMIT")
    + ("OFFSET", "LATERAL", "UNION", "INTERSECT", "EXCEPT", "MINUS", "|")
)  # fmt: skip
# Words that make more of a value than it is alone; any other behind it is an alias, or begins what follows the list.
_OPERATORS = ("AND", "OR", "IS", "IN", "NOT", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "DIV", "COLLATE")


def with_defaults(query: str, value: Callable[[int], str | None]) -> str:
    """A query with a value in each place where the word stands for that of a column.

    Parameters
    ----------
    query
        The query of an INSERT.
    value
        The SQL for the column of a place, from 0 on; None: there is no such column.

    >>> with_defaults("VALUES (1, DEFAULT), (2, 'b')", lambda place: "'a'")
    "VALUES (1, 'a'), (2, 'b')"
    >>> with_defaults("SELECT 1, upper(DEFAULT)", lambda place: "'a'")
    'SELECT 1, upper(DEFAULT)'
    """
    tokens = Tokens(query)
    pieces, done = [], 0
    try:
        for place, start, end in _places(tokens):
            text = value(place)
            if text is not None:
                pieces += [query[done:start], text]
                done = end
    except SqlSyntaxError:
        return query  # Spark says what is wrong
    return "".join([*pieces, query[done:]])


def _places(tokens: Tokens) -> Iterator[tuple[int, int, int]]:
    """The number of the column, and where the word begins and ends."""
    while tokens.take("("):
        pass
    if tokens.take("VALUES") or tokens.take("SELECT", "*", "FROM", "VALUES"):
        yield from _in_rows(tokens)
    elif tokens.take("SELECT"):
        _ = tokens.take("ALL") or tokens.take("DISTINCT")
        yield from _in_list(tokens)


def _in_rows(tokens: Tokens) -> Iterator[tuple[int, int, int]]:
    while True:
        if tokens.take("("):
            yield from _in_list(tokens)
            tokens.need(")")
        else:
            yield from _in_item(tokens, 0)
        if not tokens.take(","):
            return


def _in_list(tokens: Tokens) -> Iterator[tuple[int, int, int]]:
    place = 0
    while True:
        yield from _in_item(tokens, place)
        place += 1
        if not tokens.take(","):
            return


def _in_item(tokens: Tokens, place: int) -> Iterator[tuple[int, int, int]]:
    """Read one value; the place of the word where it is all of it."""
    first, after = tokens.token(), tokens.token(1)
    joined = after.kind == "sign" and after.text not in (",", ")", ";", "|")
    joined = joined or (after.kind == "word" and after.text.upper() in _OPERATORS)
    if tokens.follows("DEFAULT") and not joined:
        yield place, first.start, first.end
    tokens.until((",",), *_ENDS_OF_LIST)
    while tokens.follows("FROM") and tokens.token(-1).text.upper() == "DISTINCT":
        tokens.at += 1  # IS DISTINCT FROM
        tokens.until((",",), *_ENDS_OF_LIST)
