"""Conditions of commits and conflicts."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    CommitFailedError,
    InvalidOptionError,
    SchemaError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
)

ACTION_NOT_JSON = ErrorCondition("DELTA_ACTION_NOT_JSON", CommitFailedError, "XXKDS")
ADD_FILE_PARTITIONING_MISMATCH = ErrorCondition("DELTA_ADD_FILE_PARTITIONING_MISMATCH", SchemaError, "XXKDS")
BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION = ErrorCondition(
    "DELTA_BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION",
    UnsupportedOperationError,
    "42KD4",
    family="operation",
)
DOMAIN_METADATA_NOT_SUPPORTED = ErrorCondition(
    "DELTA_DOMAIN_METADATA_NOT_SUPPORTED",
    UnsupportedFeatureError,
    "0A000",
    family="argument",
)
DUPLICATE_ACTIONS_FOUND = ErrorCondition(
    "DELTA_DUPLICATE_ACTIONS_FOUND",
    CommitFailedError,
    "2D521",
    family="state",
)
DUPLICATE_DOMAIN_METADATA_INTERNAL_ERROR = ErrorCondition(
    "DELTA_DUPLICATE_DOMAIN_METADATA_INTERNAL_ERROR",
    CommitFailedError,
    "42601",
    family="argument",
)
FEATURE_DROP_CONFLICT_REVALIDATION_FAIL = ErrorCondition(
    "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
    UnsupportedOperationError,
    "40000",
    family="state",
)
INVALID_ISOLATION_LEVEL = ErrorCondition(
    "DELTA_INVALID_ISOLATION_LEVEL",
    InvalidOptionError,
    "25000",
    family="argument",
)
INVALID_PROTOCOL_DOWNGRADE = ErrorCondition(
    "DELTA_INVALID_PROTOCOL_DOWNGRADE",
    UnsupportedOperationError,
    "KD004",
    family="state",
)
METADATA_ABSENT = ErrorCondition("DELTA_METADATA_ABSENT", CommitFailedError, "XXKDS", family="state")
ROW_ID_ASSIGNMENT_WITHOUT_STATS = ErrorCondition(
    "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
    CommitFailedError,
    "22000",
    family="state",
)
ROW_ID_HIGH_WATER_MARK_SET = ErrorCondition("DELTA_ROW_ID_HIGH_WATER_MARK_SET", CommitFailedError, "XXKDS")
ROW_TRACKING_BACKFILL_RUNNING_CONCURRENTLY_WITH_UNBACKFILL = ErrorCondition(
    "DELTA_ROW_TRACKING_BACKFILL_RUNNING_CONCURRENTLY_WITH_UNBACKFILL",
    CommitFailedError,
    "22KD0",
    family="state",
)
SET_TRANSACTION_VERSION_CONFLICT = ErrorCondition(
    "DELTA_SET_TRANSACTION_VERSION_CONFLICT",
    CommitFailedError,
    "40000",
)
TRANSACTION_FINISHED = ErrorCondition("DELTA_TRANSACTION_FINISHED", CommitFailedError, "XXKDS")
UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS = ErrorCondition(
    "DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS",
    UnsupportedOperationError,
    "0A000",
    family="operation",
)
UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING = ErrorCondition(
    "DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING",
    UnsupportedOperationError,
    "0AKDC",
    family="operation",
)
