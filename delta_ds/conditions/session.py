"""Conditions of what users call in a Spark session."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    InvalidOptionError,
    InvariantViolationError,
    PredicateError,
    SchemaError,
    TableExistsError,
    UnsupportedOperationError,
)

CANNOT_RESOLVE_COLUMN = ErrorCondition("DELTA_CANNOT_RESOLVE_COLUMN", SchemaError, "42703")
CAST_OVERFLOW_IN_TABLE_WRITE = ErrorCondition(
    "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
    InvariantViolationError,
    "22003",
    family="arithmetic",
)
CONVERT_NON_PARQUET_TABLE = ErrorCondition(
    "DELTA_CONVERT_NON_PARQUET_TABLE",
    UnsupportedOperationError,
    "0AKDC",
)
CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION = ErrorCondition(
    "DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION",
    InvalidOptionError,
    "42601",
)
DATA_SOURCE_NOT_FOUND = ErrorCondition("DATA_SOURCE_NOT_FOUND", UnsupportedOperationError, "42K02")
FAILED_RECOGNIZE_PREDICATE = ErrorCondition("DELTA_FAILED_RECOGNIZE_PREDICATE", PredicateError, "42601")
INSERT_COLUMN_ARITY_MISMATCH = ErrorCondition("DELTA_INSERT_COLUMN_ARITY_MISMATCH", SchemaError, "42802")
INVALID_IDEMPOTENT_WRITES_OPTIONS = ErrorCondition(
    "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
    InvalidOptionError,
    "42616",
    family="argument",
)
INVALID_SAVE_MODE = ErrorCondition("INVALID_SAVE_MODE", InvalidOptionError, "42000")
LEGACY_ERROR_TEMP_1189 = ErrorCondition(
    "_LEGACY_ERROR_TEMP_1189", InvalidOptionError, None, family="argument"
)
MISSING_DELTA_TABLE = ErrorCondition("DELTA_MISSING_DELTA_TABLE", UnsupportedOperationError, "42P01")
NEW_CHECK_CONSTRAINT_VIOLATION = ErrorCondition(
    "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
    InvariantViolationError,
    "23512",
)
OPERATION_NOT_ALLOWED_DETAIL = ErrorCondition(
    "DELTA_OPERATION_NOT_ALLOWED_DETAIL",
    UnsupportedOperationError,
    "0AKDC",
)
PARSE_SYNTAX_ERROR = ErrorCondition("PARSE_SYNTAX_ERROR", SchemaError, "42601", family="parse")
PARTITION_BY_NOT_ALLOWED_WITH_INSERT_INTO = ErrorCondition(
    "PARTITION_BY_NOT_ALLOWED_WITH_INSERT_INTO",
    UnsupportedOperationError,
    "42601",
)
PYTHON_WORKERS_WITHOUT_PACKAGE = ErrorCondition(
    "DELTA_PYTHON_WORKERS_WITHOUT_PACKAGE",
    UnsupportedOperationError,
    "38000",
    family="state",
)
SCHEMA_CHANGE_SINCE_ANALYSIS = ErrorCondition("DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS", SchemaError, "KD007")
SORT_BY_WITHOUT_BUCKETING = ErrorCondition("SORT_BY_WITHOUT_BUCKETING", InvalidOptionError, "42601")
TABLE_OR_VIEW_ALREADY_EXISTS = ErrorCondition("TABLE_OR_VIEW_ALREADY_EXISTS", TableExistsError, "42P07")
UNSUPPORTED_DEEP_CLONE = ErrorCondition(
    "DELTA_UNSUPPORTED_DEEP_CLONE",
    UnsupportedOperationError,
    "0A000",
    family="argument",
)
