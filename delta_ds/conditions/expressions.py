"""Conditions of expressions that fail when they are evaluated."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import InvariantViolationError, PredicateError, SchemaError

CAST_INVALID_INPUT = ErrorCondition("CAST_INVALID_INPUT", InvariantViolationError, "22018", family="number")
DIVIDE_BY_ZERO = ErrorCondition("DIVIDE_BY_ZERO", PredicateError, "22012", family="arithmetic")
GENERATED_COLUMNS_EXPR_TYPE_MISMATCH = ErrorCondition(
    "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH",
    SchemaError,
    "42K09",
)
INVALID_ARRAY_INDEX = ErrorCondition("INVALID_ARRAY_INDEX", PredicateError, "22003", family="index")
INVALID_INDEX_OF_ZERO = ErrorCondition("INVALID_INDEX_OF_ZERO", PredicateError, "22003", family="runtime")
