"""Conditions of creating, replacing and altering tables."""

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

ADD_CONSTRAINTS = ErrorCondition(
    "DELTA_ADD_CONSTRAINTS",
    InvalidOptionError,
    "0A000",
    "Please use ALTER TABLE ADD CONSTRAINT to add CHECK constraints: {property} is a CHECK constraint: use "
    "addConstraint, which checks the existing rows. Nothing was written",
    parameters=("property",),
)
ADD_CONSTRAINTS_TO_CLONE = ADD_CONSTRAINTS.also(
    "Please use ALTER TABLE ADD CONSTRAINT to add CHECK constraints: {property} is a CHECK constraint: add it to "
    "the clone with addConstraint, which checks the existing rows. Nothing was written",
    parameters=("property",),
)
CONVERSION_UNSUPPORTED_CONSTRAINT = ADD_CONSTRAINTS.also(
    "Please use ALTER TABLE ADD CONSTRAINT to add CHECK constraints: {table} cannot be converted with "
    "{property}, a CHECK constraint: its rows were never checked for it. Unset the property, convert the table, "
    "then add the constraint, which checks the existing rows. Nothing was written",
    parameters=("property",),
)
ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED = ErrorCondition(
    "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
    UnsupportedOperationError,
    "42000",
    "ALTER TABLE CLUSTER BY cannot be applied to a partitioned table: {table} is partitioned by "
    "{partition_columns:list}: a table has partitions or clustering, not both. Nothing was written",
    parameters=("table",),
)
ALTER_TABLE_SET_CLUSTERING = ErrorCondition(
    "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
    InvalidOptionError,
    "42000",
    "Cannot enable {tableFeature} table feature using ALTER TABLE SET TBLPROPERTIES: {key} cannot be set: a "
    "table supports it when it is clustered. Use clusterBy. Nothing was written",
    parameters=("tableFeature",),
)
CREATE_TABLE_SET_CLUSTERING = ErrorCondition(
    "DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
    InvalidOptionError,
    "42000",
    "Cannot enable {tableFeature} table feature using TBLPROPERTIES: {key} cannot be given: a table supports it "
    "when it is clustered. Use clusterBy. Nothing was written",
    parameters=("tableFeature",),
)
CANNOT_REPLACE_MISSING_TABLE = ErrorCondition(
    "DELTA_CANNOT_REPLACE_MISSING_TABLE",
    NotADeltaTableError,
    "42P01",
    "Table {tableName} cannot be replaced as it does not exist; use create or createOrReplace. Nothing was written",
    parameters=("tableName",),
)
CANNOT_REPLACE_MISSING_TABLE_AT_PATH = CANNOT_REPLACE_MISSING_TABLE.also(
    "Table {table} cannot be replaced as it does not exist; use create or createOrReplace. Nothing was written",
)
CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED = ErrorCondition(
    "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
    UnsupportedOperationError,
    "0A000",
    "CLUSTER BY is not supported because the following column(s): {columnsWithDataTypes} don't support data "
    "skipping: {table} cannot be clustered by {column!r}: {data_type} is not a type that files can be skipped "
    "by. Nothing was written",
    parameters=("columnsWithDataTypes",),
)
CLUSTERING_COLUMN_MISSING_STATS = ErrorCondition(
    "DELTA_CLUSTERING_COLUMN_MISSING_STATS",
    UnsupportedOperationError,
    "22000",
    "Clustering requires clustering columns to have stats. Couldn't find clustering column(s) '{columns:list}' "
    "in stats schema: {table} cannot be clustered by {columns:list}: no statistics are collected for them. Name "
    "them in delta.dataSkippingStatsColumns, or raise delta.dataSkippingNumIndexedCols. Nothing was written",
    parameters=("columns",),
)
CLUSTER_BY_INVALID_NUM_COLUMNS = ErrorCondition(
    "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
    UnsupportedOperationError,
    "54000",
    "CLUSTER BY supports up to {numColumns} clustering columns, but the table has {actualNumColumns} clustering "
    "columns: {table} cannot be clustered by so many. Nothing was written",
    parameters=("numColumns", "actualNumColumns"),
)
CREATE_TABLE_SCHEME_MISMATCH = ErrorCondition(
    "DELTA_CREATE_TABLE_SCHEME_MISMATCH",
    TableExistsError,
    "42KD7",
    "The specified schema does not match the existing schema at {path}: the table there (version {version}) has other "
    "columns: {schema}, partitioned by ({partition_columns:list}). Use replace to put another one in its place. "
    "Nothing was written",
    parameters=("path",),
)
CREATE_TABLE_WITH_DIFFERENT_CLUSTERING = ErrorCondition(
    "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING",
    TableExistsError,
    "42KD7",
    "The specified clustering columns do not match the existing clustering columns at {path}: the table there "
    "(version {version}) is clustered by ({clustering_columns:list}). Use replace to put another one in its place. "
    "Nothing was written",
    parameters=("path",),
)
CREATE_TABLE_WITH_DIFFERENT_PARTITIONING = ErrorCondition(
    "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING",
    TableExistsError,
    "42KD7",
    "The specified partitioning does not match the existing partitioning at {path}: the table there (version "
    "{version}) has other partitioning: {schema}, partitioned by ({partition_columns:list}). Use replace to put "
    "another one in its place. Nothing was written",
    parameters=("path",),
)
CREATE_TABLE_WITH_DIFFERENT_PROPERTY = ErrorCondition(
    "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY",
    TableExistsError,
    "42KD7",
    "The specified properties do not match the existing properties at {path}: the table there (version {version}) has "
    "other properties: {found}, where {given} were asked for. Leave them out to take the table as it is. Nothing was "
    "written",
    parameters=("path",),
)
DROP_CONSTRAINTS = ErrorCondition(
    "DELTA_DROP_CONSTRAINTS",
    InvalidOptionError,
    "0A000",
    "table property {property} cannot be unset: it is a CHECK constraint: use dropConstraint. Nothing "
    "was written",
    parameters=("property",),
)
FEATURES_REQUIRE_MANUAL_ENABLEMENT = ErrorCondition(
    "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
    UnsupportedFeatureError,
    "42000",
    "Your table schema requires manually enablement of the following table feature(s): "
    "{unsupportedFeatures:list}. This change needs the table feature(s) {unsupportedFeatures:list}, which an "
    "existing table gets only when asked for: call addFeatureSupport({first!r}) first. Nothing was written",
    parameters=("unsupportedFeatures",),
    family="state",
)
INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING = ErrorCondition(
    "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING",
    SchemaError,
    "42K05",
    "Found invalid character(s) among ' ,;{{}}()\\n\\t=' in the column names: column mapping of {table} cannot be "
    "removed: without it, columns cannot be named {odd}. Rename them first. Nothing was written",
    parameters=("invalidColumnNames",),
)
ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION = ErrorCondition(
    "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
    InvalidOptionError,
    "55000",
    "Illegal table state was detected. Table properties `{property1}` and `{property2}` are both set to true: "
    "delta.enableRowTracking and delta.rowTrackingSuspended of {table} cannot both be true. Nothing was written",
    parameters=("property1", "property2"),
    family="state",
)
ROW_TRACKING_RESTORED_WHILE_SUSPENDED = ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION.also(
    "Illegal table state was detected. Table properties `{property1}` and `{property2}` are both set to true: "
    "table {table} cannot be restored to version {version}, which has row tracking, while "
    "delta.rowTrackingSuspended is true. Nothing was written; unset the property first",
    parameters=("property1", "property2"),
    error=UnsupportedOperationError,
)
ROW_TRACKING_ENABLED_AND_SUSPENDED = ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION.also(
    "Illegal table state was detected. Table properties `delta.enableRowTracking` and "
    "`delta.rowTrackingSuspended` are both set to true: table {table} has delta.enableRowTracking and "
    "delta.rowTrackingSuspended both true; nothing was written. Unset one of them",
    error=UnsupportedOperationError,
)
ROW_TRACKING_NOT_ENABLED = ErrorCondition(
    "DELTA_ROW_TRACKING_NOT_ENABLED",
    UnsupportedOperationError,
    "55000",
    "{table} does not track rows in version {version}, so it is not known which commit wrote them. Set the table "
    "property delta.enableRowTracking to true: from then on it is known; rows of before count as written by the commit "
    "ROW TRACKING BACKFILL, which gives them their ids",
    parameters=("version",),
    family="state",
)
BLAME_COLUMNS_TAKEN = ErrorCondition(
    "DELTA_BLAME_COLUMNS_TAKEN",
    SchemaError,
    "42711",
    "{table} has the column(s) {columns:list}, whose names blame uses for its own columns: leave them out with "
    "`columns`, and out of the condition",
    parameters=("columns",),
    family="state",
)
SCHEMA_NOT_PROVIDED = ErrorCondition(
    "DELTA_SCHEMA_NOT_PROVIDED",
    SchemaError,
    "42908",
    "Table schema is not provided: {table} would have no columns: add at least one. Nothing was written",
)
TABLE_ALREADY_CONTAINS_CDC_COLUMNS = ErrorCondition(
    "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS",
    SchemaError,
    "42711",
    "Unable to enable Change Data Capture on the table. The table already contains reserved columns "
    "[{columnList:list}]: {table} has the column(s) {columnList:list}, which the change data feed reserves: "
    "rename them or leave delta.enableChangeDataFeed off. Nothing was written",
    parameters=("columnList",),
    family="state",
)
UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE = ErrorCondition(
    "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
    UnsupportedOperationError,
    "0AKDC",
    "Changing column mapping mode from '{oldMode}' to '{newMode}' is not supported: delta.columnMapping.mode of "
    "{table} cannot be changed from {oldMode!r} to {newMode!r}: {advice}. Nothing was written",
    parameters=("oldMode", "newMode"),
    family="operation",
)
UNSUPPORTED_FEATURES_IN_CONFIG = ErrorCondition(
    "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
    UnsupportedFeatureError,
    "56038",
    "Table features configured in the following Spark configs or Delta table properties are not recognized by "
    "this version of Delta Lake: {configs}. Table feature {feature!r} {why} by this version of delta_ds; it "
    "knows {known:list}. Nothing was written",
    parameters=("configs",),
    family="state",
)
FEATURE_OF_CATALOG = UNSUPPORTED_FEATURES_IN_CONFIG.also(
    "table feature {feature!r} cannot be asked for: a table has it from its creation, by the catalog that manages it, "
    "or never. Nothing was written; create a table through a commit coordinator, and copy the rows",
    parameters=("configs",),
)
UNSUPPORTED_FEATURE_SET_TABLE_PROPERTY = ErrorCondition(
    "UNSUPPORTED_FEATURE.SET_TABLE_PROPERTY",
    InvalidOptionError,
    "0A000",
    "table property {property!r} is reserved: it says what and where a table is. Nothing was written",
    parameters=("property",),
    family="parse",
)
UNSUPPORTED_FEATURE_STATUS = ErrorCondition(
    "DELTA_UNSUPPORTED_FEATURE_STATUS",
    InvalidOptionError,
    "0AKDE",
    'Expecting the status for table feature {feature} to be "supported", but got "{status}": {property} is '
    "{status!r}, but a feature can only be set to 'supported'. Nothing was written",
    parameters=("property", "status"),
    family="state",
)
