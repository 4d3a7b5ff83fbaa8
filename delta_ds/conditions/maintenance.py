"""Conditions of OPTIMIZE and VACUUM."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import InvalidOptionError, SchemaError, UnsupportedOperationError

CANNOT_VACUUM_LITE = ErrorCondition(
    "DELTA_CANNOT_VACUUM_LITE",
    UnsupportedOperationError,
    "55000",
    family="state",
)
CLUSTERING_WITH_PARTITION_PREDICATE = ErrorCondition(
    "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
    UnsupportedOperationError,
    "0A000",
    family="operation",
)
CLUSTERING_WITH_ZORDER_BY = ErrorCondition(
    "DELTA_CLUSTERING_WITH_ZORDER_BY",
    UnsupportedOperationError,
    "42613",
)
DATATYPE_MISMATCH_INVALID_ORDERING_TYPE = ErrorCondition(
    "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
    UnsupportedOperationError,
    "42K09",
)
INVALID_AUTO_COMPACT_TYPE = ErrorCondition(
    "DELTA_INVALID_AUTO_COMPACT_TYPE",
    InvalidOptionError,
    "22023",
    family="argument",
)
INVALID_INVENTORY_SCHEMA = ErrorCondition("DELTA_INVALID_INVENTORY_SCHEMA", InvalidOptionError, "42000")
OPTIMIZE_FULL_NOT_SUPPORTED = ErrorCondition(
    "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
    UnsupportedOperationError,
    "42601",
    family="operation",
)
VACUUM_RETENTION_PERIOD_NEGATIVE = ErrorCondition(
    "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE",
    InvalidOptionError,
    "22003",
    family="argument",
)
VACUUM_RETENTION_PERIOD_TOO_SHORT = ErrorCondition(
    "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
    InvalidOptionError,
    "22003",
    family="argument",
)
ZORDERING_COLUMN_DOES_NOT_EXIST = ErrorCondition(
    "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
    SchemaError,
    "42703",
    family="argument",
)
ZORDERING_ON_COLUMN_WITHOUT_STATS = ErrorCondition(
    "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS",
    UnsupportedOperationError,
    "KD00D",
)
ZORDERING_ON_PARTITION_COLUMN = ErrorCondition(
    "DELTA_ZORDERING_ON_PARTITION_COLUMN",
    SchemaError,
    "42P10",
    family="argument",
)
