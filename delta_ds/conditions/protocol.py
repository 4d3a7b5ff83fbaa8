"""Conditions of protocol versions, table features and table properties."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import InvalidOptionError, UnsupportedFeatureError

CANNOT_MODIFY_TABLE_PROPERTY = ErrorCondition(
    "DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
    InvalidOptionError,
    "42939",
    family="operation",
)
FEATURES_PROTOCOL_METADATA_MISMATCH = ErrorCondition(
    "DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH",
    UnsupportedFeatureError,
    "KD004",
    family="state",
)
GEOSPATIAL_NOT_SUPPORTED = ErrorCondition(
    "DELTA_GEOSPATIAL_NOT_SUPPORTED",
    UnsupportedFeatureError,
    "0AKDC",
    family="operation",
)
INVALID_PROTOCOL_VERSION = ErrorCondition(
    "DELTA_INVALID_PROTOCOL_VERSION",
    UnsupportedFeatureError,
    "KD004",
    family="state",
)
PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED = ErrorCondition(
    "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED",
    UnsupportedFeatureError,
    "KD00G",
    family="state",
)
READ_FEATURE_PROTOCOL_REQUIRES_WRITE = ErrorCondition(
    "DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE",
    UnsupportedFeatureError,
    "KD004",
    family="state",
)
UNKNOWN_CONFIGURATION = ErrorCondition("DELTA_UNKNOWN_CONFIGURATION", InvalidOptionError, "F0000")
UNSUPPORTED_FEATURES_FOR_WRITE = ErrorCondition(
    "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
    UnsupportedFeatureError,
    "56038",
    family="state",
)
VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED = ErrorCondition(
    "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED",
    InvalidOptionError,
    "0A000",
    family="state",
)
