"""Conditions of the transaction log, and of time travel in it."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    ChangeDataError,
    CorruptLogFileError,
    LogError,
    SchemaError,
    TimestampOutOfRangeError,
    UnsupportedFeatureError,
)

CHECKSUM_MISMATCH = ErrorCondition("DELTA_CHECKSUM_MISMATCH", LogError, "XXKDS")
LOG_FILE_NOT_FOUND = ErrorCondition("DELTA_LOG_FILE_NOT_FOUND", ChangeDataError, "42K03", family="state")
MISSING_COMMIT_INFO = ErrorCondition(
    "DELTA_MISSING_COMMIT_INFO",
    CorruptLogFileError,
    "KD004",
    family="state",
)
MISSING_COMMIT_TIMESTAMP = ErrorCondition(
    "DELTA_MISSING_COMMIT_TIMESTAMP",
    CorruptLogFileError,
    "KD004",
    family="state",
)
MISSING_PART_COLUMN = ErrorCondition("DELTA_MISSING_PART_COLUMN", SchemaError, "XXKDS")
TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION = ErrorCondition(
    "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
    TimestampOutOfRangeError,
    "42816",
)
UNSUPPORTED_FORMAT = ErrorCondition("DELTA_UNSUPPORTED_FORMAT", UnsupportedFeatureError, "0AKDC")
