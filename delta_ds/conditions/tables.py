"""Conditions of creating, replacing and describing tables."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    InvalidOptionError,
    NotADeltaTableError,
    SchemaError,
    TableExistsError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
)

ADD_CONSTRAINTS = ErrorCondition("DELTA_ADD_CONSTRAINTS", InvalidOptionError, "0A000")
ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED = ErrorCondition(
    "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
    UnsupportedOperationError,
    "42000",
)
ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED = ErrorCondition(
    "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
    InvalidOptionError,
    "42000",
)
CANNOT_REPLACE_MISSING_TABLE = ErrorCondition(
    "DELTA_CANNOT_REPLACE_MISSING_TABLE",
    NotADeltaTableError,
    "42P01",
)
CANNOT_REPLACE_MISSING_TABLE_AT_PATH = CANNOT_REPLACE_MISSING_TABLE.also(
    "there is no table at {table} to be replaced; use create or createOrReplace. Nothing was written",
)
CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED = ErrorCondition(
    "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
    UnsupportedOperationError,
    "0A000",
)
CLUSTERING_COLUMN_MISSING_STATS = ErrorCondition(
    "DELTA_CLUSTERING_COLUMN_MISSING_STATS",
    UnsupportedOperationError,
    "22000",
)
CLUSTER_BY_INVALID_NUM_COLUMNS = ErrorCondition(
    "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
    UnsupportedOperationError,
    "54000",
)
CREATE_TABLE_SCHEME_MISMATCH = ErrorCondition("DELTA_CREATE_TABLE_SCHEME_MISMATCH", TableExistsError, "42KD7")
CREATE_TABLE_WITH_DIFFERENT_PARTITIONING = ErrorCondition(
    "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING",
    TableExistsError,
    "42KD7",
)
FEATURES_REQUIRE_MANUAL_ENABLEMENT = ErrorCondition(
    "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
    UnsupportedFeatureError,
    "42000",
    family="state",
)
INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING = ErrorCondition(
    "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING",
    SchemaError,
    "42K05",
)
ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION = ErrorCondition(
    "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
    UnsupportedOperationError,
    "55000",
    family="state",
)
SCHEMA_NOT_PROVIDED = ErrorCondition("DELTA_SCHEMA_NOT_PROVIDED", SchemaError, "42908")
TABLE_ALREADY_CONTAINS_CDC_COLUMNS = ErrorCondition(
    "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS",
    SchemaError,
    "42711",
    family="state",
)
UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE = ErrorCondition(
    "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
    UnsupportedOperationError,
    "0AKDC",
    family="operation",
)
UNSUPPORTED_FEATURES_IN_CONFIG = ErrorCondition(
    "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
    UnsupportedFeatureError,
    "56038",
    family="state",
)
UNSUPPORTED_FEATURE_SET_TABLE_PROPERTY = ErrorCondition(
    "UNSUPPORTED_FEATURE.SET_TABLE_PROPERTY",
    InvalidOptionError,
    "0A000",
    family="parse",
)
UNSUPPORTED_FEATURE_STATUS = ErrorCondition(
    "DELTA_UNSUPPORTED_FEATURE_STATUS",
    InvalidOptionError,
    "0AKDE",
    family="state",
)
