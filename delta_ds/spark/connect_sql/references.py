"""The tables by path in a query's text: found, and read by the data source.

What is a reference stands where a table can stand, has a path in its name, and may say a version.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from delta_ds.records import dataclass
from delta_ds.spark.sql_grammar.tokens import SqlSyntaxError, Tokens
from delta_ds.spark.table_names import FORMATS, path_of_parts

_BEFORE = ("FROM", "JOIN", "TABLE", "USING", "DESCRIBE", "DESC", "EXTENDED", ",")
_CHANGES = ("TABLE_CHANGES", "TABLE_CHANGES_BY_PATH")


@dataclass(frozen=True, slots=True)
class Reference:
    """A table in a text, from one offset to another, and the read options that stand for it."""

    start: int
    end: int
    options: dict[str, str]


def find_references(text: str) -> list[Reference]:
    """The tables by path in a statement, in order.

    >>> find_references("SELECT * FROM delta.`/p` VERSION AS OF 3 AS t")
    [Reference(start=14, end=40, options={'path': '/p', 'versionAsOf': '3'})]
    """
    if not any(name in text.lower() for name in (*FORMATS, "table_changes")):
        return []
    return list(_references(Tokens(text)))


def _references(tokens: Tokens) -> Iterator[Reference]:
    while tokens.token().kind != "end":
        follows_table = any(tokens.follows(word) for word in _BEFORE)
        tokens.at += 1
        if not follows_table:
            continue
        before, start = tokens.at, tokens.token().start
        try:
            options = _changes(tokens) if _is_changes(tokens) else _table(tokens)
        except SqlSyntaxError:
            options = None
        if options is None:
            tokens.at = before
        else:
            yield Reference(start, tokens.token(-1).end, options)


def _table(tokens: Tokens) -> dict[str, str] | None:
    path = path_of_parts(tokens.name())
    return None if path is None else {"path": path, **_time_travel(tokens)}


def _time_travel(tokens: Tokens) -> dict[str, str]:
    before = tokens.at
    tokens.take("FOR")
    if (tokens.take("VERSION") or tokens.take("SYSTEM_VERSION")) and tokens.take("AS", "OF"):
        return {"versionAsOf": _constant(tokens)}
    if (tokens.take("TIMESTAMP") or tokens.take("SYSTEM_TIME")) and tokens.take("AS", "OF"):
        tokens.take("TIMESTAMP")
        return {"timestampAsOf": tokens.string()}
    tokens.at = before
    return {}


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
