"""Conditions of the text of SQL statements, as Spark's parser has them."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import PredicateError

# What is wrong, where, and the statement with a caret.
_TEXT = "{what} (line {line}, pos {position})\n\n== SQL ==\n{marked}"


DUPLICATE_CLAUSES = ErrorCondition("DUPLICATE_CLAUSES", PredicateError, "42614", _TEXT, family="parse")
DUPLICATE_KEY = ErrorCondition("DUPLICATE_KEY", PredicateError, "23505", _TEXT, family="parse")
OPERATION_NOT_ALLOWED_IN_TEXT = ErrorCondition(
    "_LEGACY_ERROR_TEMP_0035", PredicateError, "0A000", _TEXT, family="parse"
)
UNBOUND_SQL_PARAMETER = ErrorCondition("UNBOUND_SQL_PARAMETER", PredicateError, "42P02", _TEXT)
