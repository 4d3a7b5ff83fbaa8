"""Values in SQL: Python values as literals, for the `args` of `spark.sql`; the word DEFAULT in rows of an INSERT.

DEFAULT stands for a column as a value of its own in VALUES, or in the list of a SELECT.
Source: Spark, `ResolveColumnDefaultInCommandInputQuery`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from delta_ds.exceptions import InvalidArgumentError
from delta_ds.spark.base.sql_grammar.tokens import Parameters, SqlSyntaxError, Tokens

_DAY, _SECOND = 86_400_000_000, 1_000_000


def sql_parameters(args: Mapping[str, Any] | list[Any] | None) -> Parameters | None:
    """The literals for the `args` of `spark.sql`, by name or in order.

    Raises
    ------
    InvalidArgumentError
        A value has no literal.

    >>> sql_parameters({"name": "it's", "since": date(2024, 1, 31)})
    {'name': "'it\\\\'s'", 'since': "DATE'2024-01-31'"}
    """
    if args is None:
        return None
    if isinstance(args, Mapping):
        return {name: sql_literal(value) for name, value in args.items()}
    return [sql_literal(value) for value in args]


def sql_literal(value: Any) -> str:
    """A Python value as Spark SQL writes it, of the type that `lit` would give it.

    Raises
    ------
    InvalidArgumentError
        It has no literal.

    Differs: a `datetime` without zone is taken in the session's zone, as in SQL text, and not in the machine's.
    """
    # The classes below are classes of others: bool is an int, datetime a date.
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(value) if -(1 << 31) <= value < 1 << 31 else f"{value}L"
    if isinstance(value, float):
        return f"{value!r}D" if abs(value) < float("inf") else f"DOUBLE('{value}')"
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}BD"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, (bytes, bytearray)):
        return f"X'{bytes(value).hex()}'"
    if isinstance(value, datetime):
        return _timestamp(value)
    if isinstance(value, date):
        return f"DATE'{value.isoformat()}'"
    if isinstance(value, timedelta):
        return _interval(value)
    if isinstance(value, (list, tuple)):
        return f"ARRAY({', '.join(map(sql_literal, value))})"
    if isinstance(value, Mapping):
        pairs = (sql_literal(part) for pair in value.items() for part in pair)
        return f"MAP({', '.join(pairs)})"
    raise InvalidArgumentError(
        f"an argument of this statement is {value!r}, which has no literal in SQL: give a number, text, date, "
        "timestamp, list or dictionary, or write it into the statement"
    )


def _timestamp(value: datetime) -> str:
    if value.tzinfo is not None:
        return f"TIMESTAMP'{value.astimezone(timezone.utc).replace(tzinfo=None).isoformat(' ')}Z'"
    return f"TIMESTAMP'{value.isoformat(' ')}'"


def _interval(value: timedelta) -> str:
    micros = (value.days * 86_400 + value.seconds) * _SECOND + value.microseconds
    sign, micros = ("-" if micros < 0 else ""), abs(micros)
    days, rest = divmod(micros, _DAY)
    hours, rest = divmod(rest, 3600 * _SECOND)
    minutes, rest = divmod(rest, 60 * _SECOND)
    seconds, micros = divmod(rest, _SECOND)
    return f"INTERVAL '{sign}{days} {hours:02}:{minutes:02}:{seconds:02}.{micros:06}' DAY TO SECOND"


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
