"""Conditions of OPTIMIZE, VACUUM, RESTORE, CLONE, CONVERT, GENERATE and DROP FEATURE."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    DataFileError,
    InvalidOptionError,
    LogError,
    SchemaError,
    TableExistsError,
    TimestampOutOfRangeError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    VersionNotFoundError,
)

_GIVE_COLUMNS = (
    "{table} cannot be converted. Nothing was written; give the partition columns and their types, in the order of "
    "the folders"
)

CANNOT_DROP_CHECK_CONSTRAINT_FEATURE = ErrorCondition(
    "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
    UnsupportedOperationError,
    "0AKDE",
    "Cannot drop the CHECK constraints table feature: table feature {feature!r} of {table} cannot be dropped at "
    "version {version}: {trace}{way_out}",
    parameters=("feature", "trace"),
)
CANNOT_RESTORE_TABLE_VERSION = ErrorCondition(
    "DELTA_CANNOT_RESTORE_TABLE_VERSION",
    VersionNotFoundError,
    "22003",
    "Cannot restore table to version {version}. Available versions: [{startVersion}, {endVersion}] of {table}. "
    "Nothing was written",
    parameters=("startVersion", "endVersion"),
)
CANNOT_RESTORE_TIMESTAMP_EARLIER = ErrorCondition(
    "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER",
    TimestampOutOfRangeError,
    "22003",
    "Cannot restore table to timestamp ({requestedTimestamp}) as it is before the earliest version available. "
    "Please use a timestamp after ({earliestTimestamp}), when the first version of {table} that can be reached "
    "was committed. Nothing was written",
    parameters=("requestedTimestamp", "earliestTimestamp"),
)
CANNOT_RESTORE_TIMESTAMP_GREATER = ErrorCondition(
    "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER",
    TimestampOutOfRangeError,
    "22003",
    "Cannot restore table to timestamp ({requestedTimestamp}) as it is after the latest version available. "
    "Please use a timestamp before ({latestTimestamp}), when {table} was last committed to. Nothing was written",
    parameters=("requestedTimestamp", "latestTimestamp"),
)
CONVERSION_UNSUPPORTED_COLUMN_MAPPING = ErrorCondition(
    "DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING",
    UnsupportedOperationError,
    "0AKDC",
    "The configuration '{config}' cannot be set to `{mode}` when using CONVERT TO DELTA: set it afterwards; {table} "
    "was not converted. Nothing was written",
    parameters=("config", "mode"),
    family="operation",
)
CLONE_PARQUET_WITHOUT_VERSIONS = ErrorCondition(
    "DELTA_UNSUPPORTED_PARQUET_TIME_TRAVEL",
    UnsupportedOperationError,
    "0AKDC",
    "{source} is a folder of Parquet files, which has no versions: clone it as it is. Nothing was written",
)
CREATE_TABLE_WITH_NON_EMPTY_LOCATION = ErrorCondition(
    "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
    TableExistsError,
    "42601",
    "Cannot create table ('{tableId}') as a clone: there is {what} already. Nothing was written; choose another "
    "location, or set replace to replace a table without rows",
    parameters=("tableId", "tableLocation"),
)
CREATE_TABLE_OVER_FILES = CREATE_TABLE_WITH_NON_EMPTY_LOCATION.also(
    "Cannot create table ('{tableId}'). The associated location ('{tableLocation}') is not empty and also not a "
    "Delta table: it holds {file}. Nothing was written; choose an empty place, or convert what is there with "
    "CONVERT TO DELTA",
    parameters=("tableId", "tableLocation"),
)
CREATE_TABLE_OVER_TABLE = CREATE_TABLE_WITH_NON_EMPTY_LOCATION.also(
    "Cannot create table ('{tableId}') with its rows at {tableLocation}: there is a Delta table already (version "
    "{version}). Nothing was written; create the table without rows to take over the one that is there, or append "
    "to it",
    parameters=("tableId", "tableLocation"),
)
CREATE_EXTERNAL_TABLE_WITHOUT_TXN_LOG = ErrorCondition(
    "DELTA_CREATE_EXTERNAL_TABLE_WITHOUT_TXN_LOG",
    TableExistsError,
    "42K03",
    "You are trying to create an external table {tableId} from `{tableLocation}` using Delta, but there is no "
    "transaction log present at `{tableLocation}/_delta_log` to take columns from, and the place is not empty "
    "(it holds {file}). Nothing was written; check the path, which is that of the table itself, or convert what "
    "is there with CONVERT TO DELTA",
    parameters=("tableId", "tableLocation"),
)
EMPTY_DIRECTORY = ErrorCondition(
    "DELTA_EMPTY_DIRECTORY",
    DataFileError,
    "42K03",
    "No file found in the directory: {directory}. There is nothing to convert. Nothing was written",
    parameters=("directory",),
    family="state",
)
FAILED_CAST_PARTITION_VALUE = ErrorCondition(
    "DELTA_FAILED_CAST_PARTITION_VALUE",
    SchemaError,
    "22018",
    "Failed to cast partition value `{value}` to {dataType}, the type of column {column!r}, from parsing the "
    f"file name {{path}}. {_GIVE_COLUMNS}",
    parameters=("path", "value", "dataType"),
    family="state",
)
FAILED_MERGE_SCHEMA_FILE = ErrorCondition(
    "DELTA_FAILED_MERGE_SCHEMA_FILE",
    SchemaError,
    "42KDA",
    "Failed to merge schema of file {file}: {schema} does not fit that of the files before it, {merged}: "
    "{reason}. {table} cannot be converted",
    parameters=("file", "schema"),
    family="state",
)
FAILED_READ_FILE_FOOTER = ErrorCondition(
    "DELTA_FAILED_READ_FILE_FOOTER",
    DataFileError,
    "KD001",
    "Could not read footer for file: {currentFile} of {path}: {reason}. Nothing was written",
    parameters=("currentFile", "path"),
    family="state",
)
FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION = ErrorCondition(
    "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
    UnsupportedFeatureError,
    "55000",
    "Could not drop the Checkpoint Protection feature. This feature can only be dropped by truncating history: "
    "versions of {table} need {feature}; set truncateHistory to remove them. Nothing was written",
    parameters=("feature",),
    family="state",
)
FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD = ErrorCondition(
    "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD",
    UnsupportedOperationError,
    "22KD0",
    "The operation did not succeed because there are still traces of dropped features in the table history: "
    "table feature {feature!r} of {table} cannot be dropped at version {version}: {trace}{way_out}",
    parameters=("feature", "trace"),
    family="state",
)
FEATURE_DROP_DEPENDENT_FEATURE = ErrorCondition(
    "DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
    UnsupportedFeatureError,
    "55000",
    "Cannot drop table feature `{feature}` because some other features ({dependents:list}) in this table depends on "
    "`{feature}`: {dependents:list} of {table} need it; drop them first. Nothing was written",
    parameters=("feature",),
    family="state",
)
FEATURE_DROP_FEATURE_NOT_PRESENT = ErrorCondition(
    "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT",
    UnsupportedFeatureError,
    "55000",
    "Cannot drop {feature} from this table because it is not currently present in the table's protocol: {table} does "
    "not have it; it has {supported}. Nothing was written",
    parameters=("feature",),
    family="state",
)
FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED = ErrorCondition(
    "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED",
    UnsupportedFeatureError,
    "42000",
    "The particular feature does not require history truncation: table feature {feature!r} cannot be dropped: a "
    "feature of writers does not need a shorter history: leave truncateHistory out. Nothing was written",
    parameters=("feature",),
    family="state",
)
FEATURE_DROP_NONREMOVABLE_FEATURE = ErrorCondition(
    "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE",
    UnsupportedFeatureError,
    "0AKDC",
    "Cannot drop {feature} because dropping this feature is not supported: it is not one that can be removed; write "
    "the rows to a new table. Nothing was written",
    parameters=("feature",),
    family="state",
)
FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE = ErrorCondition(
    "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
    UnsupportedFeatureError,
    "0AKDC",
    "Cannot drop {feature} because it is not supported by this Delta version: no feature of that name is known; "
    "{table} has {supported}. Nothing was written",
    parameters=("feature",),
    family="state",
)
FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD = ErrorCondition(
    "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
    UnsupportedOperationError,
    "22KD0",
    "Dropping {feature} was partially successful: it cannot be dropped from {table} yet, version {version} still uses "
    "it and is kept for {retention} (delta.dropFeatureTruncateHistory.retentionDuration). The table does not use it "
    "any more: call dropFeatureSupport again then, or without truncateHistory now",
    parameters=("feature", "version"),
    family="state",
)
FILE_NOT_FOUND = ErrorCondition(
    "DELTA_FILE_NOT_FOUND",
    DataFileError,
    "42K03",
    "File path {path} does not exist, so it cannot be converted. Nothing was written",
    parameters=("path",),
    family="state",
)
MISSING_FILES_UNEXPECTED_VERSION = ErrorCondition(
    "DELTA_MISSING_FILES_UNEXPECTED_VERSION",
    DataFileError,
    "42K03",
    "Not all files of version {version} of table {table} are available any more, a VACUUM may have deleted them: "
    "{files:list}{more}. Nothing was written. Restore a more recent version, or set "
    "spark.sql.files.ignoreMissingFiles to true to restore the files that still exist",
    parameters=("version", "files", "count"),
    family="state",
)
MISSING_COMMITS_UNEXPECTED_VERSION = MISSING_FILES_UNEXPECTED_VERSION.also(
    "Delta stream cannot resume from version {version}; transaction log starts at {earliest}. Log files of "
    "{table} may have been deleted by log retention. Begin with a new checkpoint, and consider a longer "
    "delta.logRetentionDuration; or set failOnDataLoss=false to leave out what is lost",
    parameters=("version", "earliest", "table"),
    error=LogError,
)
MODE_NOT_SUPPORTED = ErrorCondition(
    "DELTA_MODE_NOT_SUPPORTED",
    InvalidOptionError,
    "0AKDC",
    "Specified mode '{mode}' is not supported. Supported modes are: {supportedModes:list}; there is no "
    "other for {table}. Nothing was written",
    parameters=("mode", "supportedModes"),
    family="argument",
)
UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME = ErrorCondition(
    "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
    SchemaError,
    "KD009",
    "Expecting {expected} partition column(s): {expectedCols}, but found {found} partition column(s): "
    f"{{parsedCols}} from parsing the file name: {{path}}. {_GIVE_COLUMNS}",
    parameters=("path", "expectedCols", "parsedCols"),
)
UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME = ErrorCondition(
    "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME",
    SchemaError,
    "KD009",
    "Expecting partition column {expectedCol}, but found partition column {parsedCol} from parsing the file "
    f"name: {{path}}. {_GIVE_COLUMNS}",
    parameters=("path", "expectedCol", "parsedCol"),
)
CLONE_INTO_ITSELF = ErrorCondition(
    "DELTA_CLONE_INTO_ITSELF",
    InvalidOptionError,
    "22023",
    "a table cannot be cloned to {table}: that is its own folder, or a folder inside or above it: VACUUM of the "
    "outer table would delete the files of the inner one. Nothing was written; choose a folder beside it",
    parameters=("table",),
    family="argument",
)
FILES_FROM_OF_SHALLOW_CLONE = ErrorCondition(
    "DELTA_CLONE_FILES_FROM_OF_SHALLOW_CLONE",
    InvalidOptionError,
    "22023",
    "a shallow clone copies no files, so there are none that filesFrom could allow. Nothing was written to {table}; "
    "leave it out, or make a deep clone",
    parameters=("table",),
    family="argument",
)
CLONE_FILE_ELSEWHERE = ErrorCondition(
    "DELTA_CLONE_FILE_ELSEWHERE",
    UnsupportedOperationError,
    "0A000",
    "{table} has at version {version} {files} file(s) that a deep clone does not copy, {path} among them: it is at "
    "{place}, which is neither in the table's folder nor in that of a table that the log names as the source of this "
    "clone. The author of the log may have no right to read it. Nothing was written. To copy the files, allow their "
    "folders: clone(..., filesFrom=[...])",
    parameters=("table", "version", "path"),
    family="operation",
)
CLONE_FILE_NOT_PARQUET = ErrorCondition(
    "DELTA_CLONE_FILE_NOT_PARQUET",
    DataFileError,
    "KD001",
    "{path} of version {version} of {table} is not a Parquet file, so it was not copied ({reason}). Nothing was "
    "cloned; see what `pydelta fsck` says of the table",
    parameters=("path", "table", "version"),
    family="runtime",
)
UNSUPPORTED_NON_EMPTY_CLONE = ErrorCondition(
    "DELTA_UNSUPPORTED_NON_EMPTY_CLONE",
    UnsupportedOperationError,
    "0AKDC",
    "The clone destination table is non-empty: cannot clone to {table}. Nothing was written; delete its rows first",
    parameters=("table",),
    family="state",
)


CANNOT_VACUUM_LITE = ErrorCondition(
    "DELTA_CANNOT_VACUUM_LITE",
    UnsupportedOperationError,
    "55000",
    "VACUUM LITE cannot delete all eligible files as some files are not referenced by the Delta log: that of {table} "
    "begins with version {earliest}, and {since}, so it does not say all that was removed up to version {last}. "
    "Nothing was deleted. Run a full VACUUM once",
    parameters=("earliest", "lastVacuum"),
    family="state",
)
CLUSTERING_WITH_PARTITION_PREDICATE = ErrorCondition(
    "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
    UnsupportedOperationError,
    "0A000",
    "OPTIMIZE command for Delta table with clustering doesn't support partition predicates. Please remove the "
    "predicates: {where:list}. {table} is clustered, and clustered tables have no partitions. Nothing was written",
    parameters=("predicates",),
    family="operation",
)
CLUSTERING_WITH_ZORDER_BY = ErrorCondition(
    "DELTA_CLUSTERING_WITH_ZORDER_BY",
    UnsupportedOperationError,
    "42613",
    "OPTIMIZE command for Delta table with clustering cannot specify ZORDER BY. Please remove ZORDER BY "
    "({zOrderBy}): {table} is arranged by its clustering columns, which clusterBy changes. Nothing was written",
    parameters=("zOrderBy",),
)
DATATYPE_MISMATCH_INVALID_ORDERING_TYPE = ErrorCondition(
    "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
    UnsupportedOperationError,
    "42K09",
    "{table} cannot be Z-ordered by {columnName}: values of type {dataType} have no order. Nothing was "
    "written",
    parameters=("columnName", "dataType"),
)
INVALID_ORDERING_TYPE_OF_EXTREME = DATATYPE_MISMATCH_INVALID_ORDERING_TYPE.also(
    "there is no {function} of {columnName} of {table}: values of type {dataType} have no order here",
    parameters=("columnName", "dataType"),
)
INVALID_INVENTORY_SCHEMA = ErrorCondition(
    "DELTA_INVALID_INVENTORY_SCHEMA",
    InvalidOptionError,
    "42000",
    "The schema for the specified INVENTORY does not contain all of the required fields. Required fields are: "
    "{expectedSchema}. The inventory for the VACUUM of {table} has others: {what}. Nothing was deleted",
    parameters=("expectedSchema",),
)
INVALID_INVENTORY_ROW = INVALID_INVENTORY_SCHEMA.also(
    "The schema for the specified INVENTORY does not contain all of the required fields: a row of the inventory "
    "for the VACUUM of {table} does not have {columns:list} ({reason}). Nothing was deleted",
)
OPTIMIZE_FULL_NOT_SUPPORTED = ErrorCondition(
    "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
    UnsupportedOperationError,
    "42601",
    "OPTIMIZE FULL is only supported for clustered tables with non-empty clustering columns, which "
    "{table} is not. Nothing was written; cluster it with DeltaTable.forPath(...).clusterBy(...)",
    parameters=("table",),
    family="operation",
)
VACUUM_RETENTION_PERIOD_NEGATIVE = ErrorCondition(
    "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE",
    InvalidOptionError,
    "22003",
    "Retention period for Vacuum can't be less than 0 hours, and {retentionHours:g} hours is; nothing of {table} was "
    "deleted",
    parameters=("retentionHours",),
    family="argument",
)
VACUUM_RETENTION_PERIOD_TOO_SHORT = ErrorCondition(
    "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
    InvalidOptionError,
    "22003",
    "The specified VACUUM retention period is too low and may corrupt this Delta table if any writes are in progress: "
    "a retention of {retentionHours:g} hours is too short for table {table}: delta.deletedFileRetentionDuration keeps "
    "deleted files for {configuredRetentionHours} hours, and readers of older versions and writers that have not "
    "committed yet would lose files. Nothing was deleted. Use {configuredRetentionHours} hours or more; or, if "
    "nothing else reads or writes the table, set spark.databricks.delta.retentionDurationCheck.enabled to false",
    parameters=("retentionHours", "configuredRetentionHours"),
    family="argument",
)
ZORDERING_COLUMN_DOES_NOT_EXIST = ErrorCondition(
    "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
    SchemaError,
    "42703",
    "Z-Ordering column {columnName} does not exist in data schema of {table}; {hint}. Nothing was written",
    parameters=("columnName", "suggestion"),
    family="argument",
)
ZORDERING_ON_COLUMN_WITHOUT_STATS = ErrorCondition(
    "DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS",
    UnsupportedOperationError,
    "KD00D",
    "Z-Ordering on [{cols:list}] will be ineffective, because we currently do not collect stats for these "
    "columns of {table}. Name them in delta.dataSkippingStatsColumns, or raise delta.dataSkippingNumIndexedCols; "
    "or set spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled to false. Nothing was written",
    parameters=("cols",),
)
ZORDERING_ON_PARTITION_COLUMN = ErrorCondition(
    "DELTA_ZORDERING_ON_PARTITION_COLUMN",
    SchemaError,
    "42P10",
    "{colName} is a partition column. Z-Ordering can only be performed on data columns of {table}; each "
    "partition has files of its own anyway. Nothing was written",
    parameters=("colName",),
    family="argument",
)
