"""Conditions of overwrites."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    InvalidOptionError,
    InvariantViolationError,
    PredicateError,
    TableExistsError,
    UnsupportedOperationError,
)

CLUSTERING_COLUMNS_MISMATCH = ErrorCondition("DELTA_CLUSTERING_COLUMNS_MISMATCH", InvalidOptionError, "42P10")
DATA_CHANGE_FALSE = ErrorCondition("DELTA_DATA_CHANGE_FALSE", UnsupportedOperationError, "0AKDE")
NON_PARTITION_COLUMN_REFERENCE = ErrorCondition(
    "DELTA_NON_PARTITION_COLUMN_REFERENCE",
    PredicateError,
    "42P10",
    "Predicate references non-partition column {columnName!r}. Only the partition columns of {table} may "
    "be referenced: [{columnList:list}]. Nothing was written",
    parameters=("columnName", "columnList"),
)
OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE = ErrorCondition(
    "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
    InvalidOptionError,
    "42613",
    family="argument",
)
PATH_EXISTS = ErrorCondition("DELTA_PATH_EXISTS", TableExistsError, "42K04")
REPLACE_WHERE_MISMATCH = ErrorCondition("DELTA_REPLACE_WHERE_MISMATCH", InvariantViolationError, "44000")
REPLACE_WHERE_WITH_FILTER_DATA_CHANGE_UNSET = ErrorCondition(
    "DELTA_REPLACE_WHERE_WITH_FILTER_DATA_CHANGE_UNSET",
    InvalidOptionError,
    "42613",
)
