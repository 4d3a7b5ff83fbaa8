"""Errors of the grammar as Spark's parser shows its own: with line, position and a caret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.conditions.expressions import (
    DUPLICATE_CLAUSES,
    DUPLICATE_KEY,
    OPERATION_NOT_ALLOWED_IN_TEXT,
    UNBOUND_SQL_PARAMETER,
)
from delta_ds.conditions.schema import STATEMENT_UNREADABLE

if TYPE_CHECKING:
    from delta_ds.exceptions import PredicateError
    from delta_ds.spark.base.sql_grammar.tokens import SqlSyntaxError

_RECORDS = {
    record.name: record
    for record in (
        DUPLICATE_CLAUSES,
        DUPLICATE_KEY,
        OPERATION_NOT_ALLOWED_IN_TEXT,
        STATEMENT_UNREADABLE,
        UNBOUND_SQL_PARAMETER,
    )
}


def syntax_error(error: SqlSyntaxError, text: str) -> PredicateError:
    """The error for a statement that the grammar refuses.

    Parameters
    ----------
    error
        What the grammar says.
    text
        The statement.

    >>> from delta_ds.spark.base.sql_grammar.tokens import SqlSyntaxError
    >>> print(syntax_error(SqlSyntaxError("PARSE_SYNTAX_ERROR", 9, "a name was expected"), "OPTIMIZE 5").text)
    a name was expected (line 1, pos 9)
    <BLANKLINE>
    == SQL ==
    OPTIMIZE 5
    ---------^^^
    """
    lines = text[: error.offset].splitlines() or [""]
    line, position = (
        (len(lines), len(lines[-1])) if text[: error.offset][-1:] != "\n" else (len(lines) + 1, 0)
    )
    shown = text.splitlines() or [""]
    shown.insert(line, "-" * position + "^^^")
    return _RECORDS[error.condition](
        error.parameters, what=str(error), line=line, position=position, marked="\n".join(shown)
    )
