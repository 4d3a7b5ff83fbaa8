"""Conditions of data files, and of rows on their way into them."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    DataFileError,
    DeltaError,
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
    "the values of identity column {column} leave the range of a long (next {first}, step {step}); "
    "rewrite the table with another start or step",
    parameters=("column",),
    family="arithmetic",
)
CANNOT_RECONSTRUCT_PATH_FROM_URI = ErrorCondition(
    "DELTA_CANNOT_RECONSTRUCT_PATH_FROM_URI",
    DataFileError,
    "22KD1",
    "unknown deletion vector storage type {storage_type!r}; known are u, p and i",
    family="state",
)
CANNOT_UP_CAST_DATATYPE = ErrorCondition(
    "CANNOT_UP_CAST_DATATYPE",
    SchemaError,
    "42846",
    "cannot up cast {expression} from {sourceType} to {targetType}, and spark.sql.storeAssignmentPolicy is STRICT: "
    "cast the column yourself, or set the policy to ANSI. Nothing was written",
    parameters=("expression", "sourceType", "targetType"),
)
CAST_OVERFLOW = ErrorCondition("CAST_OVERFLOW", InvariantViolationError, "22003", family="arithmetic")
CAST_OVERFLOW_IN_TABLE_INSERT = ErrorCondition(
    "CAST_OVERFLOW_IN_TABLE_INSERT",
    InvariantViolationError,
    "22003",
    "Failed to write a value of {sourceType} type into the {targetType} type column {columnName} due to "
    "an overflow. Cast the input with try_cast to get null instead.",
    parameters=("sourceType", "targetType", "columnName"),
    family="arithmetic",
)
CAST_OVERFLOW_IN_TABLE_WRITE = ErrorCondition(
    "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
    InvariantViolationError,
    "22003",
    CAST_OVERFLOW_IN_TABLE_INSERT.text,
    parameters=("sourceType", "targetType", "columnName"),
    family="arithmetic",
)
ARROW_VALUE_NOT_STORABLE = CAST_OVERFLOW_IN_TABLE_WRITE.also(
    "column {columnName} has a value of the Arrow type {sourceType} that cannot be stored exactly as {targetType}: "
    "{reason}. Cast the column before writing. Nothing was written",
    parameters=("sourceType", "targetType", "columnName"),
)
COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN = ErrorCondition(
    "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN",
    InvalidOptionError,
    "0AKDC",
    "Data skipping is not supported for partition column '{column}': table property "
    "delta.dataSkippingStatsColumns cannot hold {columnName!r} on {table}: {column} is a partition column, which "
    "has no statistics. Nothing was written",
    parameters=("columnName",),
    family="argument",
)
COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE = ErrorCondition(
    "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE",
    InvalidOptionError,
    "0AKDC",
    "Data skipping is not supported for column '{columnName}' of type {type}: table property "
    "delta.dataSkippingStatsColumns cannot hold {columnName!r} on {table}: {columnName} is {type}, a type "
    "without statistics to skip files by. Nothing was written",
    parameters=("columnName",),
    family="argument",
)
DATASET_METHOD_NOT_SUPPORTED = ErrorCondition(
    "DELTA_DATASET_METHOD_NOT_SUPPORTED",
    UnsupportedOperationError,
    "0A000",
    "{name} is not to be had of a dataset of {table} at version {version}: it is about files, and Delta's rows are not "
    "those of the files alone. Use scanner, to_table or to_batches, or Snapshot.files for the files",
    parameters=("name", "table", "version"),
)
DELETION_VECTOR_CHECKSUM_MISMATCH = ErrorCondition(
    "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH",
    DataFileError,
    "XXKDS",
    "Could not verify deletion vector integrity, CRC checksum verification failed: {where} (offset {offset}) is "
    "damaged: {text}. Restore the file from a backup, or rewrite the data files that use it",
    parameters=("path", "table"),
    family="state",
)
DUPLICATE_DATA_SKIPPING_COLUMNS = ErrorCondition(
    "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS",
    InvalidOptionError,
    "42701",
    "Duplicated data skipping columns found: {columnName}. Table property delta.dataSkippingStatsColumns cannot hold "
    "{columnName!r} twice on {table}. Nothing was written",
    parameters=("columnName",),
    family="argument",
)
EXCEED_CHAR_VARCHAR_LIMIT = ErrorCondition(
    "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
    InvariantViolationError,
    "22001",
    'Value "{value}" exceeds char/varchar type length limitation. Failed check: {failed}.',
    parameters=("value", "column", "declared"),
    family="state",
)
FAILED_READ_FILE_FILE_NOT_EXIST = ErrorCondition(
    "FAILED_READ_FILE.FILE_NOT_EXIST",
    DataFileError,
    "KD001",
    "{place} does not exist, though the log names it. A concurrent VACUUM may have removed it: read a "
    "newer version, or restore the file",
    family="state",
)
DELETION_VECTOR_NOT_EXIST = FAILED_READ_FILE_FILE_NOT_EXIST.also(
    "{where} does not exist; the log still names it. A concurrent VACUUM may have removed it: read the "
    "newest version, or restore the file",
    parameters=("path", "table"),
)
FAILED_READ_FILE_NO_HINT = ErrorCondition(
    "FAILED_READ_FILE.NO_HINT",
    DataFileError,
    "KD001",
    "{place} cannot be read: {reason}. If it is damaged, restore it from a backup",
    family="state",
)
FAILED_READ_BACK = FAILED_READ_FILE_NO_HINT.also(
    "{place} cannot be read back: {reason}; nothing was committed",
)
FAILED_READ_FILE_PARQUET_COLUMN_DATA_TYPE_MISMATCH = ErrorCondition(
    "FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH",
    DataFileError,
    "KD001",
    "column {column} is {actualType} in the file, which cannot be read as the table's {expectedType}",
    parameters=("column", "expectedType", "actualType"),
    family="state",
)
FAILED_READ_FILE_NO_VARIANT = FAILED_READ_FILE_PARQUET_COLUMN_DATA_TYPE_MISMATCH.also(
    "column {column} is {actualType} in the file, which is no variant",
    parameters=("column", "expectedType", "actualType"),
)
IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED = ErrorCondition(
    "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
    UnsupportedOperationError,
    "42808",
    "Providing values for GENERATED ALWAYS AS IDENTITY column {colName} is not supported. Leave the "
    "column out: {table} generates its values. Nothing was written.",
    parameters=("colName",),
)
IDENTITY_COLUMNS_INSERT_NOT_SUPPORTED = IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED.also(
    "Providing values for GENERATED ALWAYS AS IDENTITY column {column} is not supported: {column} is an identity "
    "column of {table}; its values are made by the table and cannot be given. Leave it out. Nothing was written",
    parameters=("column",),
)
IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED = ErrorCondition(
    "DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED",
    UnsupportedOperationError,
    "42601",
    "PARTITIONED BY IDENTITY column {colName} is not supported: it is a partition column of {table}. Nothing was "
    "written.",
    parameters=("colName",),
)
IDENTITY_COLUMNS_AS_PARTITION = IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED.also(
    "PARTITIONED BY IDENTITY column {colName} is not supported: identity column {colName!r} of {table} is a partition "
    "column. Nothing was written",
    parameters=("colName",),
    error=SchemaError,
)
IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE = ErrorCondition(
    "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
    SchemaError,
    "428H2",
    "column {column} of {table} is no valid identity column: type {type}, start {start!r}, step {step!r}, high water "
    "mark {mark!r}",
    family="operation",
)
IDENTITY_COLUMNS_NOT_BIGINT = IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE.also(
    "DataType {type} is not supported for IDENTITY columns: identity column {colName!r} of {table} is of type "
    "{type}, not bigint, which is not possible. Nothing was written",
    parameters=("colName",),
)
INVALID_DEFAULT_VALUE = ErrorCondition(
    "DELTA_INVALID_DEFAULT_VALUE",
    SchemaError,
    "42623",
    "the default {text!r} of column {column} for files written before the column was added is not a "
    "constant of type {type}",
)
INVALID_GENERATED_COLUMN_REFERENCES = ErrorCondition(
    "DELTA_INVALID_GENERATED_COLUMN_REFERENCES",
    SchemaError,
    "42621",
    "A generated column cannot use a non-existent column or another generated column: {clause} uses "
    "{unknown:list}. Nothing was written",
    parameters=("columnName", "unknown"),
)
GENERATED_COLUMNS_OF_EACH_OTHER = INVALID_GENERATED_COLUMN_REFERENCES.also(
    "A generated column cannot use a non-existent column or another generated column: the generated columns "
    "{generated:list} are computed from each other; give values for one of them. Nothing was written.",
    error=UnsupportedFeatureError,
)
INVALID_TIMEZONE = ErrorCondition(
    "INVALID_TIMEZONE",
    InvalidOptionError,
    "22009",
    "unknown time zone {name!r}",
)
MALFORMED_VARIANT = ErrorCondition(
    "MALFORMED_VARIANT",
    DataFileError,
    "22023",
    "malformed variant: {reason}",
    family="runtime",
)
MALFORMED_SHREDDED_VARIANT = MALFORMED_VARIANT.also(
    "a variant is shredded as an object, but its residual value is none",
)
MISSING_NOT_NULL_COLUMN_VALUE = ErrorCondition(
    "DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
    InvariantViolationError,
    "23502",
    "Column {columnName}, which has a NOT NULL constraint, is missing from the data being written into "
    "the table {table}. Nothing was written.",
    parameters=("columnName",),
    family="state",
)
MISSING_PARTITION_COLUMN = ErrorCondition(
    "DELTA_MISSING_PARTITION_COLUMN",
    SchemaError,
    "42KD6",
    "Partition column `{column}` not found in schema: table {table} is partitioned by {column}, which its schema "
    "does not have",
    parameters=("table", "column"),
)
NOT_NULL_CONSTRAINT_VIOLATED = ErrorCondition(
    "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
    InvariantViolationError,
    "23502",
    "NOT NULL constraint violated for column: {columnName}.",
    parameters=("columnName",),
    family="state",
)
NOT_NULL_CONSTRAINT_VIOLATED_BY_FILE = NOT_NULL_CONSTRAINT_VIOLATED.also(
    "NOT NULL constraint violated for column: {column}; column {column!r} of version {version} of {table} is NOT "
    "NULL, but data file {path} holds nulls in it: it was written against the table's schema. Drop the NOT NULL "
    "or rewrite the file",
    parameters=("column", "path", "table"),
    error=DataFileError,
)
NOT_NULL_CONSTRAINT_VIOLATED_BY_SOME_FILE = NOT_NULL_CONSTRAINT_VIOLATED.also(
    "NOT NULL constraint violated for column: {column}; column {column!r} of {table} is NOT NULL, but a data file "
    "holds {count} nulls in it: it was written against the table's schema. Drop the NOT NULL or rewrite the file",
    error=DataFileError,
)
QUERY_FAILED = ErrorCondition(
    "DELTA_QUERY_FAILED",
    DeltaError,
    "XXKDS",
    "DuckDB could not answer the query: {reason}",
)
READ_TABLE_WITHOUT_COLUMNS = ErrorCondition(
    "DELTA_READ_TABLE_WITHOUT_COLUMNS",
    SchemaError,
    "428GU",
    "You are trying to read a Delta table {table} that does not have any columns at version {version}. Write "
    "data with the option mergeSchema first",
)
UNRECOGNIZED_INVARIANT = ErrorCondition(
    "DELTA_UNRECOGNIZED_INVARIANT",
    SchemaError,
    "56038",
    "Unrecognized invariant: the {owner} cannot be read: {rule!r}. Nothing was written.",
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
    "Invariants on nested fields other than StructTypes are not supported: {clause} names {columnName}, and "
    "there is no struct any more to have that field. Nothing was written; drop the constraint with dropConstraint",
    parameters=("columnName",),
    family="operation",
)
