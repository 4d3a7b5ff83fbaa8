"""Conditions of generated columns, identity columns, defaults and constraints."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    InvalidOptionError,
    InvariantViolationError,
    PredicateError,
    SchemaError,
    UnsupportedOperationError,
)

AGGREGATE_IN_CHECK_CONSTRAINT = ErrorCondition(
    "DELTA_AGGREGATE_IN_CHECK_CONSTRAINT",
    PredicateError,
    "42621",
    "{clause} uses {function}(), an aggregate function. Nothing was written",
    parameters=("expression", "function"),
)
AGGREGATE_IN_GENERATED_COLUMN = ErrorCondition(
    "DELTA_AGGREGATE_IN_GENERATED_COLUMN",
    PredicateError,
    "42621",
    AGGREGATE_IN_CHECK_CONSTRAINT.text,
    parameters=("expression", "function"),
)
CONSTRAINT_ALREADY_EXISTS = ErrorCondition(
    "DELTA_CONSTRAINT_ALREADY_EXISTS",
    SchemaError,
    "42710",
    "{table} has a constraint {constraintName!r} already: {oldConstraint}. Drop it first. Nothing was "
    "written",
    parameters=("constraintName", "oldConstraint"),
)
CONSTRAINT_DOES_NOT_EXIST = ErrorCondition(
    "DELTA_CONSTRAINT_DOES_NOT_EXIST",
    InvalidOptionError,
    "42704",
    "{table} has no constraint {constraintName!r}; it has {there}. Nothing was written",
    parameters=("constraintName",),
)
GENERATED_COLUMN_WITH_DEFAULT = ErrorCondition(
    "DELTA_GENERATED_COLUMN_WITH_DEFAULT",
    SchemaError,
    "0AKDC",
    "{owner} also has a default, which is not possible. Nothing was written",
    parameters=("columnName",),
)
GENERATED_COLUMN_CANNOT_HAVE_DEFAULT = GENERATED_COLUMN_WITH_DEFAULT.also(
    "{column} of {table} cannot have a default, it is generated. Nothing was changed",
    parameters=("column",),
    error=UnsupportedOperationError,
)
IDENTITY_COLUMNS_ILLEGAL_STEP = ErrorCondition(
    "DELTA_IDENTITY_COLUMNS_ILLEGAL_STEP",
    SchemaError,
    "42611",
    "identity column {colName!r} of {table} has a step of 0, which is not possible. Nothing was written",
    parameters=("colName",),
)
IDENTITY_COLUMNS_WITH_DEFAULT = ErrorCondition(
    "DELTA_IDENTITY_COLUMNS_WITH_DEFAULT",
    SchemaError,
    "0AKDC",
    "identity column {colName!r} of {table} also has a default, which is not possible. Nothing was written",
    parameters=("colName",),
)
IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION = ErrorCondition(
    "DELTA_IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION",
    SchemaError,
    "42613",
    "identity column {colName!r} of {table} is also generated, which is not possible. Nothing was written",
    parameters=("colName",),
)
INVALID_CONSTRAINT_NAME = ErrorCondition(
    "DELTA_INVALID_CONSTRAINT_NAME",
    SchemaError,
    "42939",
    "a constraint needs a name",
)
INVALID_DEFAULT_VALUE_DATA_TYPE = ErrorCondition(
    "INVALID_DEFAULT_VALUE.DATA_TYPE",
    SchemaError,
    "42623",
    "{reason}",
    parameters=("column",),
)
INVALID_DEFAULT_VALUE_NOT_CONSTANT = ErrorCondition(
    "INVALID_DEFAULT_VALUE.NOT_CONSTANT",
    SchemaError,
    "42623",
    "{clause} uses the column {used}, but a default is a constant. Nothing was written",
    parameters=("column", "expression"),
)
NEW_CHECK_CONSTRAINT_VIOLATION = ErrorCondition(
    "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
    InvariantViolationError,
    "23512",
    "rows of {table} break the new CHECK constraint {constraint} ({expression}); correct or delete them "
    "first. Nothing was written",
    parameters=("constraint", "expression"),
)
NON_BOOLEAN_CHECK_CONSTRAINT = ErrorCondition(
    "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
    PredicateError,
    "42621",
    "{owner} ({expr}) should be a boolean expression, but is of type {type}. Nothing was written",
    parameters=("name", "expr"),
)
NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT = ErrorCondition(
    "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT",
    PredicateError,
    "42621",
    "{clause} uses {function}(), a function that does not give the same value each time. Nothing was written",
    parameters=("expression", "function"),
)
NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN = ErrorCondition(
    "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN",
    PredicateError,
    "42621",
    NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT.text,
    parameters=("expression", "function"),
)
UNSUPPORTED_GENERATED_NESTED_COLUMN = ErrorCondition(
    "DELTA_UNSUPPORTED_GENERATED_NESTED_COLUMN",
    SchemaError,
    "0AKDC",
    "field {column!r} of {table} lies inside another column, where nothing can be generated and no "
    "default applies. Nothing was written",
    parameters=("column",),
)
WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED = ErrorCondition(
    "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
    InvalidOptionError,
    "0AKDE",
    "column {column!r} of {table} has a default, but the table does not support the feature "
    "allowColumnDefaults: set delta.feature.allowColumnDefaults to 'supported' first. Nothing was written",
    parameters=("column",),
)
