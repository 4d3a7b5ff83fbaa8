"""Conditions of streams and the change data feed."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    ChangeDataError,
    LogError,
    SchemaError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
)

CDC_START_VERSION_AFTER_LATEST = ErrorCondition(
    "DELTA_CDC_START_VERSION_AFTER_LATEST",
    ChangeDataError,
    "22003",
    family="argument",
)
CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA = ErrorCondition(
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA",
    ChangeDataError,
    "0AKDC",
    family="state",
)
DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE = ErrorCondition(
    "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
    UnsupportedOperationError,
    "55019",
    family="state",
)
INVALID_CDC_RANGE = ErrorCondition("DELTA_INVALID_CDC_RANGE", ChangeDataError, "22003", family="argument")
INVALID_FORMAT_FROM_SOURCE_VERSION = ErrorCondition(
    "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION",
    UnsupportedFeatureError,
    "XXKDS",
    family="state",
)
INVALID_SOURCE_OFFSET_FORMAT = ErrorCondition(
    "DELTA_INVALID_SOURCE_OFFSET_FORMAT",
    LogError,
    "XXKDS",
    family="state",
)
LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE = ErrorCondition(
    "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE",
    LogError,
    "42K03",
    family="state",
)
SCHEMA_CHANGED_WITH_STARTING_OPTIONS = ErrorCondition(
    "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS",
    SchemaError,
    "KD007",
)
SCHEMA_CHANGED_WITH_VERSION = ErrorCondition(
    "DELTA_SCHEMA_CHANGED_WITH_VERSION",
    SchemaError,
    "KD007",
    family="state",
)
SCHEMA_NOT_SET = ErrorCondition("DELTA_SCHEMA_NOT_SET", SchemaError, "KD008")
SOURCE_IGNORE_DELETE = ErrorCondition(
    "DELTA_SOURCE_IGNORE_DELETE",
    UnsupportedOperationError,
    "0A000",
    family="operation",
)
SOURCE_TABLE_IGNORE_CHANGES = ErrorCondition(
    "DELTA_SOURCE_TABLE_IGNORE_CHANGES",
    UnsupportedOperationError,
    "0A000",
    family="operation",
)
STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION = ErrorCondition(
    "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION",
    SchemaError,
    "KD002",
    family="state",
)
STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT = ErrorCondition(
    "DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT",
    LogError,
    "KD002",
)
STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG = ErrorCondition(
    "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG",
    SchemaError,
    "42KD4",
    family="state",
)
STREAMING_METADATA_EVOLUTION = ErrorCondition(
    "DELTA_STREAMING_METADATA_EVOLUTION",
    SchemaError,
    "22000",
    family="state",
)
STREAMING_SCHEMA_LOCATION_CONFLICT = ErrorCondition(
    "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
    SchemaError,
    "22000",
)
STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED = ErrorCondition(
    "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED",
    LogError,
    "22000",
    family="state",
)
STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID = ErrorCondition(
    "DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID",
    SchemaError,
    "22000",
)
STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA = ErrorCondition(
    "DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA",
    SchemaError,
    "22000",
    family="state",
)
STREAMING_TRAILING_COMMIT_MISSING = ErrorCondition(
    "DELTA_STREAMING_TRAILING_COMMIT_MISSING",
    LogError,
    "42K03",
    family="state",
)
