"""Conditions of names, types and layout of columns."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    PredicateError,
    SchemaError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
)

CANNOT_USE_ALL_COLUMNS_FOR_PARTITION = ErrorCondition(
    "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION",
    SchemaError,
    "428FT",
)
COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE = ErrorCondition(
    "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE",
    SchemaError,
    "22005",
)
DUPLICATE_COLUMNS_FOUND_PARTITION_COLUMNS = ErrorCondition(
    "DELTA_DUPLICATE_COLUMNS_FOUND.PARTITION_COLUMNS",
    SchemaError,
    "42711",
)
EMPTY_DATA = ErrorCondition("DELTA_EMPTY_DATA", SchemaError, "428GU")
INVALID_CHARACTERS_IN_COLUMN_NAMES = ErrorCondition(
    "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
    SchemaError,
    "42K05",
)
INVALID_FIELD_NAME = ErrorCondition("INVALID_FIELD_NAME", SchemaError, "42000")
MISSING_COLUMN_ID = ErrorCondition("DELTA_MISSING_COLUMN_ID", SchemaError, "XXKDS")
MISSING_PHYSICAL_NAME = ErrorCondition("DELTA_MISSING_PHYSICAL_NAME", SchemaError, "XXKDS")
NESTED_NOT_NULL_CONSTRAINT = ErrorCondition(
    "DELTA_NESTED_NOT_NULL_CONSTRAINT",
    UnsupportedOperationError,
    "0AKDC",
)
NON_PARTITION_COLUMN_ABSENT = ErrorCondition("DELTA_NON_PARTITION_COLUMN_ABSENT", SchemaError, "KD005")
PARTITION_COLUMN_NOT_FOUND = ErrorCondition("DELTA_PARTITION_COLUMN_NOT_FOUND", SchemaError, "42703")
RESERVED_CDC_COLUMNS_ON_WRITE = ErrorCondition(
    "RESERVED_CDC_COLUMNS_ON_WRITE",
    SchemaError,
    "42939",
    family="state",
)
UNKNOWN_COLUMN_MAPPING_MODE = ErrorCondition(
    "DELTA_UNKNOWN_COLUMN_MAPPING_MODE",
    UnsupportedFeatureError,
    "XXKDS",
)
UNRESOLVED_COLUMN_WITH_SUGGESTION = ErrorCondition(
    "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    PredicateError,
    "42703",
)
UNSUPPORTED_DATA_TYPES = ErrorCondition("DELTA_UNSUPPORTED_DATA_TYPES", UnsupportedFeatureError, "0AKDC")
