"""Conditions of expressions that fail when they are evaluated, and of the text of SQL statements."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import InvariantViolationError, PredicateError, SchemaError

CAST_INVALID_INPUT = ErrorCondition(
    "CAST_INVALID_INPUT",
    InvariantViolationError,
    "22018",
    "a text written to column {columnName} cannot be read as {targetType}. Correct it, or cast the input "
    "with try_cast to get null instead.",
    parameters=("sourceType", "targetType", "columnName"),
    family="number",
)
CAST_INVALID_INPUT_LITERAL = CAST_INVALID_INPUT.also(
    "{child} is not a valid {target}",
    error=PredicateError,
)
CAST_INVALID_INPUT_VALUE = CAST_INVALID_INPUT.also(
    "the value {item!r} of type {source} cannot be cast to {target}; use TRY_CAST to get null instead",
    error=PredicateError,
)
CAST_INVALID_INPUT_EMPTY = CAST_INVALID_INPUT.also(
    'The value "" of the type {sourceType} cannot be cast to {targetType}, the type of column '
    "{columnName}, because it is malformed. Correct it, or use try_cast to get null instead. Nothing was "
    "written.",
    parameters=("sourceType", "targetType", "columnName"),
)
DIVIDE_BY_ZERO = ErrorCondition(
    "DIVIDE_BY_ZERO",
    PredicateError,
    "22012",
    "division by zero; guard it, e.g. with nullif(x, 0)",
    family="arithmetic",
)
FAILED_RECOGNIZE_PREDICATE = ErrorCondition(
    "DELTA_FAILED_RECOGNIZE_PREDICATE",
    PredicateError,
    "42601",
    "Cannot recognize the predicate '{predicate}': {reason}",
    parameters=("predicate",),
)
CONDITION_WITHOUT_SQL = FAILED_RECOGNIZE_PREDICATE.also(
    "Cannot recognize the predicate '{what}': it cannot be written as SQL by a client of Spark Connect; give the "
    "condition's text in the option replaceWhere. Nothing was written",
)
FAILED_RECOGNIZE_REPLACE_WHERE = FAILED_RECOGNIZE_PREDICATE.also(
    "Cannot recognize the predicate '{text}' of replaceWhere on {table}: {reason}",
)
GENERATED_COLUMNS_EXPR_TYPE_MISMATCH = ErrorCondition(
    "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
    SchemaError,
    "42K09",
    "The expression type of the generated column {columnName} is {expressionType}, but the column type is "
    "{columnType}: cast the expression to it, {clause}. Nothing was written",
    parameters=("columnName", "expressionType", "columnType"),
)
GENERATED_COLUMN_KEEPS_TYPE = GENERATED_COLUMNS_EXPR_TYPE_MISMATCH.also(
    "The expression type of the generated column {column} is {expressionType}, but the column type is {columnType} "
    "then: generated column {column} of {table} ({expression}) is of type {type}, as its expression; it cannot become "
    "{new}. Nothing was changed",
    parameters=("column", "expression"),
)
INVALID_ARRAY_INDEX = ErrorCondition(
    "INVALID_ARRAY_INDEX",
    PredicateError,
    "22003",
    "index {item} is outside an array of {size} elements; use get() or try_element_at() to get null",
    family="index",
)
INVALID_INDEX_OF_ZERO = ErrorCondition(
    "INVALID_INDEX_OF_ZERO",
    PredicateError,
    "22003",
    "{function} counts from 1, not from 0",
    family="runtime",
)


# What is wrong, where, and the statement with a caret.
_TEXT = "{what} (line {line}, pos {position})\n\n== SQL ==\n{marked}"


DUPLICATE_CLAUSES = ErrorCondition("DUPLICATE_CLAUSES", PredicateError, "42614", _TEXT, family="parse")
DUPLICATE_KEY = ErrorCondition("DUPLICATE_KEY", PredicateError, "23505", _TEXT, family="parse")
OPERATION_NOT_ALLOWED_IN_TEXT = ErrorCondition(
    "_LEGACY_ERROR_TEMP_0035", PredicateError, "0A000", _TEXT, family="parse"
)
UNBOUND_SQL_PARAMETER = ErrorCondition("UNBOUND_SQL_PARAMETER", PredicateError, "42P02", _TEXT)
