"""Conditions of streams and the change data feed."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    ChangeDataError,
    InvariantViolationError,
    LogError,
    NotADeltaTableError,
    SchemaError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
)

CDC_START_VERSION_AFTER_LATEST = ErrorCondition(
    "DELTA_CDC_START_VERSION_AFTER_LATEST",
    ChangeDataError,
    "22003",
    "Start version {start} for change data feed exceeds the latest table version {latest} of {table}",
    parameters=("start", "latest"),
    family="argument",
)
CHANGES_COLUMN_MISSING = ErrorCondition(
    "DELTA_CHANGES_COLUMN_MISSING",
    SchemaError,
    "42703",
    "these are not rows of a change feed: {missing:list} is missing among {columns:list}. Read them with "
    "readChangeFeed",
    parameters=("missing",),
)
CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA = ErrorCondition(
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA",
    ChangeDataError,
    "0AKDC",
    "Retrieving table changes between version {start} and {end} failed because of an incompatible data schema: "
    "{table} has it at version {version}: {problem}. Read from version {start} to {before}, and from version "
    "{change} to {end}, separately",
    family="state",
)
CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE = ErrorCondition(
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
    ChangeDataError,
    "0AKDC",
    "Retrieving table changes between version {start} and {end} failed because of an incompatible schema change: "
    "{table} has it at version {version}: {problem}. Read from version {start} to {before}, and from version "
    "{change} to {end}, separately",
    family="state",
)
CHANGES_OF_OTHER_COLUMN_MAPPING = CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE.also(
    "Retrieving table changes between version {version} and {version} failed because of an incompatible schema "
    "change: the changes of version {version} of {table} cannot be read: it removes files in which "
    "{columns:list} have other names, as it switches column mapping on or off. Read from the version after it "
    "on, and compare versions {before} and {version} for what it changed",
)
DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE = ErrorCondition(
    "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
    UnsupportedOperationError,
    "55019",
    "The streaming query was reading from an unexpected Delta table (id = '{newTableId}'). It used to read from "
    "another Delta table (id = '{oldTableId}') according to checkpoint. The path of {table} was changed, or the "
    "table deleted and created again. Read the former table, or begin with a new checkpoint",
    parameters=("newTableId", "oldTableId"),
    family="state",
)
INVALID_CDC_RANGE = ErrorCondition(
    "DELTA_INVALID_CDC_RANGE",
    ChangeDataError,
    "22003",
    "CDC range from start {start} to end {end} of {table} was invalid: the end is before the start",
    parameters=("start", "end"),
    family="argument",
)
INVALID_FORMAT_FROM_SOURCE_VERSION = ErrorCondition(
    "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION",
    UnsupportedFeatureError,
    "XXKDS",
    "Unsupported format. Expected version should be smaller than or equal to {known} but was {found}: the "
    "checkpoint of a stream from {table} has offsets of format {found}; this version of the package knows format "
    "{known}. Use a newer version, or begin with a new checkpoint",
    parameters=("found", "known"),
    family="state",
)
INVALID_SOURCE_OFFSET_FORMAT = ErrorCondition(
    "DELTA_INVALID_SOURCE_OFFSET_FORMAT",
    LogError,
    "XXKDS",
    "The stored source offset format is invalid: the checkpoint of a stream from {table} holds "
    "{given!r:.200}. {more}; begin with a new one",
    family="state",
)
LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE = ErrorCondition(
    "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE",
    LogError,
    "42K03",
    "If you never deleted it, it's likely your query is lagging behind: the stream from {table} needs version "
    "{version}, which the log does not hold any more ({reason}). Begin with a new checkpoint, and consider a "
    "longer delta.logRetentionDuration",
    parameters=("version", "table"),
    family="state",
)
NET_CHANGES_DUPLICATE_KEY = ErrorCondition(
    "DELTA_NET_CHANGES_DUPLICATE_KEY",
    InvariantViolationError,
    "23505",
    "The changes of {table} cannot be netted by {keys:list}, which do not identify rows: two rows are inserted, or "
    'two are deleted, one after the other or in one version. Name more columns. The key and the version: "{value}"',
    parameters=("keys", "value"),
)
NET_CHANGES_KEY_NOT_FOUND = ErrorCondition(
    "DELTA_NET_CHANGES_KEY_NOT_FOUND",
    SchemaError,
    "42703",
    "The changes of {table} cannot be netted by {column!r}, which is no column; {hint}",
    parameters=("column",),
)
NET_CHANGES_KEY_TYPE = ErrorCondition(
    "DELTA_NET_CHANGES_KEY_TYPE",
    SchemaError,
    "42K09",
    "The changes of {table} cannot be netted by {column!r}: values of type {type} are not compared. Name columns of "
    "other types",
    parameters=("column", "type"),
)
SCHEMA_CHANGED_WITH_STARTING_OPTIONS = ErrorCondition(
    "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS",
    SchemaError,
    "KD007",
    "Detected schema change in version {version} of {table}: {problem}. {advice}. If that repeats "
    "without progress, the change is incompatible and the query needs a new checkpoint. Streaming source "
    "schema: {read_schema}; data file schema: {data_schema}",
    parameters=("version", "table"),
)
SCHEMA_CHANGED_WITH_VERSION = ErrorCondition(
    "DELTA_SCHEMA_CHANGED_WITH_VERSION",
    SchemaError,
    "KD007",
    "Detected schema change in version {version} of {table}: {problem}. It cannot be read across; begin "
    "with a new checkpoint and schemaTrackingLocation",
    family="state",
)
SCHEMA_CHANGED_IN_STREAM = SCHEMA_CHANGED_WITH_VERSION.also(
    SCHEMA_CHANGED_WITH_STARTING_OPTIONS.text,
    parameters=("version", "table"),
)
SCHEMA_NOT_SET = ErrorCondition(
    "DELTA_SCHEMA_NOT_SET",
    SchemaError,
    "KD008",
    "Table schema is not set: Delta table {table} has no columns at version {version}, so there is nothing to "
    "stream from it yet. Write data with the option mergeSchema first",
)
NO_TABLE_TO_STREAM = SCHEMA_NOT_SET.also(
    "Table schema is not set, as there is no table to stream from. {reason}",
    error=NotADeltaTableError,
)
SOURCE_IGNORE_DELETE = ErrorCondition(
    "DELTA_SOURCE_IGNORE_DELETE",
    UnsupportedOperationError,
    "0A000",
    "Detected deleted data (for example {path}) from streaming source at version {version} of {table}. A stream "
    "reads only rows that are added. To ignore deletes, set the option 'ignoreDeletes' to 'true'; "
    "'readChangeFeed' reads them as changes",
    parameters=("version", "path", "table"),
    family="operation",
)
SOURCE_TABLE_IGNORE_CHANGES = ErrorCondition(
    "DELTA_SOURCE_TABLE_IGNORE_CHANGES",
    UnsupportedOperationError,
    "0A000",
    "Detected a data update (for example {operation}) in the source table at version {version} of {table}. A "
    "stream reads only rows that are added. If this happens regularly and you can ignore the changes, set the "
    "option 'skipChangeCommits' to 'true'; 'readChangeFeed' reads them as changes. To have the update in the "
    "result, begin with a new checkpoint",
    parameters=("version", "path", "table"),
    family="operation",
)
STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION = ErrorCondition(
    "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION",
    SchemaError,
    "KD002",
    "We've detected one or more non-additive schema change(s) ({opType}) between Delta version {previous} and "
    "{current} in the Delta streaming source {table}: {changes}. Check whether the target of the stream has to "
    "change too; then continue with {ways}, or with the value 'always' for all such changes",
    parameters=("opType", "previous", "current", "options"),
    family="state",
)
STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT = ErrorCondition(
    "DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT",
    LogError,
    "KD002",
    "Failed to obtain Delta log snapshot for the start version when checking column mapping schema changes: "
    "Failed to obtain the schema of version {version} of {table}, where the stream begins, so renamed and "
    "dropped columns cannot be ruled out: {reason}. Begin with a later version",
)
STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG = ErrorCondition(
    "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG",
    SchemaError,
    "42KD4",
    "Streaming read is not supported on tables with read-incompatible schema changes: between version "
    "{version} and the schema of this stream (version {stream_version}) of {table}, {what}. Give the "
    "option 'schemaTrackingLocation' (a folder below the checkpoint) from the first start on, or begin "
    "with a new checkpoint. Read schema: {read_schema}. Incompatible data schema: {data_schema}",
    parameters=("version", "table"),
    family="state",
)
STREAMING_METADATA_EVOLUTION = ErrorCondition(
    "DELTA_STREAMING_METADATA_EVOLUTION",
    SchemaError,
    "22000",
    "The schema, table configuration or protocol of your Delta table {table} has changed during streaming, in "
    "version {version}. The schema log has been updated. Start the stream again with a new readStream...load() "
    "to go on with it. Updated schema: {schema}",
    parameters=("version", "table"),
    family="state",
)
STREAMING_SCHEMA_LOCATION_CONFLICT = ErrorCondition(
    "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
    SchemaError,
    "22000",
    "Detected conflicting schema location '{location}' while streaming from table or table located at '{table}': "
    "another stream uses it. Give each stream a 'schemaTrackingLocation' or 'streamingSourceTrackingId' of its own",
)
SCHEMA_LOCATION_OF_TWO_SOURCES = STREAMING_SCHEMA_LOCATION_CONFLICT.also(
    "Detected conflicting schema location '{location}' while streaming from table or table located at '{table}': two "
    "sources of the query would write their schema logs there. Give each of them a 'schemaTrackingLocation' or "
    "'streamingSourceTrackingId' of its own; a DataFrame that a query reads twice, as in a self-join, counts as two",
)
STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT = ErrorCondition(
    "DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT",
    SchemaError,
    "22000",
    "Schema location '{location}' must be placed under checkpoint location '{checkpoint}': the schema log of the "
    "stream from {table} is begun and deleted together with the checkpoint. Give a 'schemaTrackingLocation' in "
    "there; spark.databricks.delta.streaming.allowSchemaLocationOutsideCheckpointLocation allows any place",
    parameters=("location", "checkpoint", "table"),
)
STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED = ErrorCondition(
    "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED",
    LogError,
    "22000",
    "Incomplete log file in the Delta streaming source schema log at '{location}': the damaged entry {number} of "
    "the stream from {table}: {reason}. Give another 'schemaTrackingLocation'",
    family="state",
)
STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID = ErrorCondition(
    "DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID",
    SchemaError,
    "22000",
    "Detected incompatible Delta table id when trying to read Delta stream: {where} belongs to another table: "
    "its id is {found_id!r}, that of the table {table_id!r}. Give another 'schemaTrackingLocation'",
)
STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA = ErrorCondition(
    "DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA",
    SchemaError,
    "22000",
    "We could not initialize the Delta streaming source schema log because we detected an incompatible schema or "
    "protocol change while serving a streaming batch from table version {start} to {end}: the stream is from "
    "{table}, and the checkpoint holds the batch. Begin with a new checkpoint",
    parameters=("start", "end"),
    family="state",
)
STREAMING_TRAILING_COMMIT_MISSING = ErrorCondition(
    "DELTA_STREAMING_TRAILING_COMMIT_MISSING",
    LogError,
    "42K03",
    "Delta stream detected commits up to version {expected} but files after version {seen} are missing from the "
    "transaction log: the end of the log of {table} was lost, or the table was restored from a backup. Begin "
    "with a new checkpoint",
    parameters=("expected", "seen"),
    family="state",
)
