"""Conditions of the log, of time travel in it, of protocol versions, table features and properties."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    ChangeDataError,
    CommitFailedError,
    CorruptLogFileError,
    InvalidOptionError,
    LogError,
    SchemaError,
    TimestampOutOfRangeError,
    UnsupportedFeatureError,
)

CANNOT_MODIFY_TABLE_PROPERTY = ErrorCondition(
    "DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
    InvalidOptionError,
    "42939",
    "The Delta table configuration {property} cannot be specified by the user: table property {property} cannot "
    "be set: it {reason}",
    parameters=("property",),
    family="operation",
)
VARIANT_SHREDDING_NOT_WRITTEN = CANNOT_MODIFY_TABLE_PROPERTY.also(
    "The Delta table configuration delta.enableVariantShredding cannot be specified by the user: "
    "delta.enableVariantShredding cannot be turned on for {table}: this version of delta_ds stores variants "
    "whole. Tables that have it are read and written. Nothing was written",
    parameters=("property",),
)
FEATURE_PROPERTY_NOT_UNSET = CANNOT_MODIFY_TABLE_PROPERTY.also(
    "The Delta table configuration {property} cannot be specified by the user: table property {property} cannot "
    "be unset: it is a table feature: use dropFeatureSupport. Nothing was written",
    parameters=("property",),
)
ENGINE_PROPERTY_NOT_UNSET = CANNOT_MODIFY_TABLE_PROPERTY.also(
    "The Delta table configuration {property} cannot be specified by the user: table property {property} cannot "
    "be unset: it is kept by the engine. Nothing was written",
    parameters=("property",),
)
FEATURES_PROTOCOL_METADATA_MISMATCH = ErrorCondition(
    "DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH",
    UnsupportedFeatureError,
    "KD004",
    "Unable to operate on this table because the following table features are enabled in metadata but not listed "
    "in protocol: {missing:list}. Table {table}: its metadata or protocol needs the table feature(s) "
    "{missing:list}, which the protocol does not list; the writer of the table must repair the protocol action",
    parameters=("table", "missing"),
    family="state",
)
GEOSPATIAL_NOT_SUPPORTED = ErrorCondition(
    "DELTA_GEOSPATIAL_NOT_SUPPORTED",
    UnsupportedFeatureError,
    "0AKDC",
    "Geospatial types are not supported in this version of Delta Lake: table {table} has geospatial columns "
    "(table feature geospatial), which delta_ds cannot read",
    parameters=("table",),
    family="operation",
)
GEOSPATIAL_COLUMN = GEOSPATIAL_NOT_SUPPORTED.also(
    "Geospatial types are not supported in this version of Delta Lake: column {column} has the type {type!r}: "
    "geometry and geography are not supported by delta_ds",
)
INVALID_PROTOCOL_VERSION = ErrorCondition(
    "DELTA_INVALID_PROTOCOL_VERSION",
    UnsupportedFeatureError,
    "KD004",
    "Unsupported Delta protocol version: there is no protocol with reader version {reader} and writer version "
    "{writer}: readers have 1 to 3, writers 1 to 7",
    parameters=("reader", "writer"),
    family="state",
)
INVALID_PROTOCOL_OF_TABLE = INVALID_PROTOCOL_VERSION.also(
    "Unsupported Delta protocol version: {message}",
    parameters=("table", "reader", "writer"),
)
PROTOCOL_ABSENT = INVALID_PROTOCOL_VERSION.also(
    "Couldn't find protocol while committing the first version of the Delta table {table}; nothing was "
    "written. Call set_protocol first",
    error=CommitFailedError,
)
PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED = ErrorCondition(
    "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED",
    UnsupportedFeatureError,
    "KD00G",
    "Path-based access is not allowed for Catalog-Managed table: {path}. Table {path} is managed by a catalog (table "
    "feature catalogManaged): only the catalog knows its commits, so it cannot be read by path. Name the catalog by "
    "the storage option commitCoordinator, or read the table by name with an engine that asks the catalog",
    parameters=("path",),
    family="state",
)
READ_FEATURE_PROTOCOL_REQUIRES_WRITE = ErrorCondition(
    "DELTA_READ_FEATURE_PROTOCOL_REQUIRES_WRITE",
    UnsupportedFeatureError,
    "KD004",
    "Unable to upgrade only the reader protocol version to use table features. Writer protocol version must be "
    "at least 7 to proceed: reader version {reader} requires writer version 7, not {writer}",
    parameters=("reader", "writer"),
    family="state",
)
READ_FEATURE_PROTOCOL_OF_TABLE_REQUIRES_WRITE = READ_FEATURE_PROTOCOL_REQUIRES_WRITE.also(
    "table {table} has {versions}: reader version 3 requires writer version 7; its protocol action is "
    "invalid",
    parameters=("table",),
)
UNKNOWN_CONFIGURATION = ErrorCondition(
    "DELTA_UNKNOWN_CONFIGURATION",
    InvalidOptionError,
    "F0000",
    "Unknown configuration was specified: {property} is not a table property{hint}",
    parameters=("property",),
)
UNSUPPORTED_FEATURES_FOR_WRITE = ErrorCondition(
    "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
    UnsupportedFeatureError,
    "56038",
    'Unsupported Delta write feature: table "{tableNameOrPath}" requires writer table feature(s) that are '
    'unsupported by delta_ds "{deltaVersion}": {unsupported:list}. It can be read; nothing was written. Upgrade '
    "delta_ds, or write with an engine that supports them",
    parameters=("tableNameOrPath", "unsupported", "deltaVersion"),
    family="state",
)
VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED = ErrorCondition(
    "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED",
    InvalidOptionError,
    "0A000",
    "invalid value {value!r} for table property {property}: {reason}",
    parameters=("property", "value"),
    family="state",
)
UPKEEP_PROPERTY_UNREADABLE = VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED.also(
    "The validation of the properties of table {table} has been violated: version {version} of {table} has the "
    "table property {property} with the value {value!r}: {reason}. Writers do not know how to keep up its log. "
    "Unset the property (ALTER TABLE ... UNSET TBLPROPERTIES, unset_properties), or set another value, before "
    "anything else is written. Nothing was written",
    parameters=("property", "value"),
)
INVALID_INTERVAL = ErrorCondition(
    "DELTA_INVALID_INTERVAL",
    InvalidOptionError,
    "22006",
    "{value} is not a valid INTERVAL: invalid value {value!r} for table property {property}: {reason}",
    parameters=("property", "value"),
    family="argument",
)
STATISTICS_COLUMNS_UNREADABLE = VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED.also(
    "table property {property} is {value!r}, which is not a list of column names",
    parameters=("property", "value"),
)


CHECKSUM_MISMATCH = ErrorCondition(
    "DELTA_CHECKSUM_MISMATCH",
    LogError,
    "XXKDS",
    "the checksum file of version {version} of {table} contradicts the log: its protocol or metadata is "
    "not what the commits say. Delete the .crc file",
)
LOG_FILE_NOT_FOUND = ErrorCondition(
    "DELTA_LOG_FILE_NOT_FOUND",
    LogError,
    "42K03",
    "Unable to retrieve the delta log files to construct table version {wanted} starting from checkpoint version "
    "{checkpoint}: could not find any commit file for version {wanted} of {table}: its checkpoint is there, but the "
    "commit itself was deleted; read a newer version",
    family="state",
)
CHECKPOINT_NOT_FOUND_AGAIN = LOG_FILE_NOT_FOUND.also(
    "the checkpoint that was read of {table} is gone or was written again, and the log does not hold that version any "
    "more, so that the statistics of its files cannot be read: {reason}. Read the table again, or a newer version",
)
LOG_FILE_OF_CHANGES_NOT_FOUND = LOG_FILE_NOT_FOUND.also(
    "Unable to retrieve the delta log files to construct table version {version}: the log file of version {version} "
    "of {table} is gone, so changes from version {start} cannot be read; the first version left is {earliest}",
    error=ChangeDataError,
)
MISSING_COMMIT_INFO = ErrorCondition(
    "DELTA_MISSING_COMMIT_INFO",
    CorruptLogFileError,
    "KD004",
    "This table has the feature inCommitTimestamp enabled which requires the presence of the CommitInfo action "
    "in every commit. However, the CommitInfo action is missing from commit version {version}: version {version} "
    "of {table} has no inCommitTimestamp in its commitInfo, although in-commit timestamps are enabled",
    family="state",
)
MISSING_COMMIT_TIMESTAMP = ErrorCondition(
    "DELTA_MISSING_COMMIT_TIMESTAMP",
    CorruptLogFileError,
    "KD004",
    "This table has the feature inCommitTimestamp enabled which requires the presence of commitTimestamp in the "
    "CommitInfo action. However, this field has not been set in commit version {version}: version {version} of "
    "{table} has no inCommitTimestamp in its commitInfo, although in-commit timestamps are enabled",
    family="state",
)
MISSING_PART_COLUMN = ErrorCondition(
    "DELTA_MISSING_PART_COLUMN",
    SchemaError,
    "XXKDS",
    "version {version} of {table} is partitioned by {column!r}, which is not in its schema: {columns:list}",
)
TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION = ErrorCondition(
    "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
    TimestampOutOfRangeError,
    "42816",
    "The provided timestamp ({userTimestamp}) is before the earliest version available to this table "
    "({commitTs}). Please use a timestamp after {timestampString}: earlier versions of {table} cannot be reached",
    parameters=("userTimestamp", "commitTs", "timestampString"),
)
UNSUPPORTED_FORMAT = ErrorCondition(
    "DELTA_UNSUPPORTED_FORMAT",
    UnsupportedFeatureError,
    "0AKDC",
    "version {version} of {table} stores its data as {provider!r}; only parquet is defined",
)
