"""Conditions of data files, and of rows on their way into them."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    DataFileError,
    InvalidOptionError,
    InvariantViolationError,
    SchemaError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
)

ARITHMETIC_OVERFLOW = ErrorCondition(
    "ARITHMETIC_OVERFLOW",
    InvariantViolationError,
    "22003",
    family="arithmetic",
)
CANNOT_RECONSTRUCT_PATH_FROM_URI = ErrorCondition(
    "DELTA_CANNOT_RECONSTRUCT_PATH_FROM_URI",
    DataFileError,
    "22KD1",
    family="state",
)
CAST_OVERFLOW = ErrorCondition("CAST_OVERFLOW", InvariantViolationError, "22003", family="arithmetic")
CAST_OVERFLOW_IN_TABLE_INSERT = ErrorCondition(
    "CAST_OVERFLOW_IN_TABLE_INSERT",
    InvariantViolationError,
    "22003",
    family="arithmetic",
)
COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN = ErrorCondition(
    "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN",
    InvalidOptionError,
    "0AKDC",
    family="argument",
)
COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE = ErrorCondition(
    "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE",
    InvalidOptionError,
    "0AKDC",
    family="argument",
)
DELETION_VECTOR_CHECKSUM_MISMATCH = ErrorCondition(
    "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH",
    DataFileError,
    "XXKDS",
    family="state",
)
DUPLICATE_COLUMNS_FOUND = ErrorCondition("DELTA_DUPLICATE_COLUMNS_FOUND", SchemaError, "42711")
DUPLICATE_DATA_SKIPPING_COLUMNS = ErrorCondition(
    "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS",
    InvalidOptionError,
    "42701",
    family="argument",
)
EXCEED_CHAR_VARCHAR_LIMIT = ErrorCondition(
    "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
    InvariantViolationError,
    "22001",
    family="state",
)
FAILED_READ_FILE_FILE_NOT_EXIST = ErrorCondition(
    "FAILED_READ_FILE.FILE_NOT_EXIST",
    DataFileError,
    "KD001",
    family="state",
)
FAILED_READ_FILE_NO_HINT = ErrorCondition("FAILED_READ_FILE.NO_HINT", DataFileError, "KD001", family="state")
FAILED_READ_FILE_PARQUET_COLUMN_DATA_TYPE_MISMATCH = ErrorCondition(
    "FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH",
    DataFileError,
    "KD001",
    family="state",
)
FAILED_TO_MERGE_FIELDS = ErrorCondition("DELTA_FAILED_TO_MERGE_FIELDS", SchemaError, "22005")
IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED = ErrorCondition(
    "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
    UnsupportedOperationError,
    "42808",
)
IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED = ErrorCondition(
    "DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED",
    UnsupportedOperationError,
    "42601",
)
IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE = ErrorCondition(
    "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
    SchemaError,
    "428H2",
    family="operation",
)
INVALID_DEFAULT_VALUE = ErrorCondition("DELTA_INVALID_DEFAULT_VALUE", SchemaError, "42623")
INVALID_GENERATED_COLUMN_REFERENCES = ErrorCondition(
    "DELTA_INVALID_GENERATED_COLUMN_REFERENCES",
    SchemaError,
    "42621",
)
INVALID_PARTITION_COLUMN_TYPE = ErrorCondition("DELTA_INVALID_PARTITION_COLUMN_TYPE", SchemaError, "42996")
INVALID_TIMEZONE = ErrorCondition("INVALID_TIMEZONE", InvalidOptionError, "22009")
MALFORMED_VARIANT = ErrorCondition("MALFORMED_VARIANT", DataFileError, "22023", family="runtime")
METADATA_MISMATCH = ErrorCondition("DELTA_METADATA_MISMATCH", SchemaError, "42KDG")
MISSING_NOT_NULL_COLUMN_VALUE = ErrorCondition(
    "DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
    InvariantViolationError,
    "23502",
    family="state",
)
MISSING_PARTITION_COLUMN = ErrorCondition("DELTA_MISSING_PARTITION_COLUMN", SchemaError, "42KD6")
NOT_NULL_CONSTRAINT_VIOLATED = ErrorCondition(
    "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
    DataFileError,
    "23502",
    family="state",
)
READ_TABLE_WITHOUT_COLUMNS = ErrorCondition("DELTA_READ_TABLE_WITHOUT_COLUMNS", SchemaError, "428GU")
UNRECOGNIZED_INVARIANT = ErrorCondition(
    "DELTA_UNRECOGNIZED_INVARIANT",
    SchemaError,
    "56038",
    family="argument",
)
UNSUPPORTED_COLUMN_DEFAULT = ErrorCondition(
    "DELTA_UNSUPPORTED_COLUMN_DEFAULT",
    UnsupportedFeatureError,
    "0AKDC",
)
UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT = ErrorCondition(
    "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT",
    UnsupportedFeatureError,
    "42621",
)
UNSUPPORTED_EXPRESSION_GENERATED_COLUMN = ErrorCondition(
    "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN",
    UnsupportedFeatureError,
    "42621",
)
UNSUPPORTED_INVARIANT_NON_STRUCT = ErrorCondition(
    "DELTA_UNSUPPORTED_INVARIANT_NON_STRUCT",
    SchemaError,
    "0AKDC",
    family="operation",
)
