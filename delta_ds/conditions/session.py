"""Conditions of what users call in a Spark session."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    InvalidOptionError,
    NotADeltaTableError,
    SchemaError,
    TableExistsError,
    UnsupportedOperationError,
)

CANNOT_RESOLVE_COLUMN = ErrorCondition(
    "DELTA_CANNOT_RESOLVE_COLUMN",
    SchemaError,
    "42703",
    "Can't resolve column {column} in {table}: column {column!r} of the given schema does not exist in {table}{hint}",
)
CANNOT_RESOLVE_CHOSEN_COLUMN = CANNOT_RESOLVE_COLUMN.also(
    "Can't resolve column {column} in {table}: column {column!r} of option 'columns' does not exist in {table}{hint}",
)
CONVERT_NON_PARQUET_TABLE = ErrorCondition(
    "DELTA_CONVERT_NON_PARQUET_TABLE",
    UnsupportedOperationError,
    "0AKDC",
    "CONVERT TO DELTA only supports parquet tables, but you are trying to convert {identifier!r}: only a folder of "
    "Parquet files can be converted, named as parquet.`/path/of/the/folder`. Nothing was written",
    parameters=("identifier",),
)
CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION = ErrorCondition(
    "DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION",
    InvalidOptionError,
    "42601",
    "Table name or location has to be specified: the table has no location yet: call .location(path) before execute()",
)
DATA_SOURCE_NOT_FOUND = ErrorCondition(
    "DATA_SOURCE_NOT_FOUND",
    UnsupportedOperationError,
    "42K02",
    "there is no data source 'delta' in this session, which has no jar of delta-spark; Delta tables are "
    "read and written by format('pydelta'), as in spark.read.format('pydelta').load(path)",
    parameters=("provider",),
)
INSERT_COLUMN_MISMATCH = ErrorCondition(
    "DELTA_INSERT_COLUMN_MISMATCH",
    SchemaError,
    "42802",
    "Column {columnName} is not specified in INSERT: the rows for {table} have no column {columnName}, which "
    "must have values. Nothing was written",
    parameters=("columnName",),
)
INSERT_COLUMN_ARITY_MISMATCH = ErrorCondition(
    "DELTA_INSERT_COLUMN_ARITY_MISMATCH",
    SchemaError,
    "42802",
    "Cannot write to '{table}', not enough data columns; target table has {columns} column(s) but the inserted "
    "data has {given} column(s): insertInto matches columns by position: {where} has {columns} {what}, but the "
    "rows have {given}. Nothing was written",
    parameters=("table", "columns", "given"),
)
INSERT_LIST_ARITY_MISMATCH = INSERT_COLUMN_ARITY_MISMATCH.also(
    "the INSERT into {table} names {columns} columns ({names:list}), but the rows have {given}. Nothing was "
    "written",
)
INSERT_INTO_NO_PARTITION_COLUMN = ErrorCondition(
    "NON_PARTITION_COLUMN",
    SchemaError,
    "42000",
    "the PARTITION clause of the INSERT into {table} names {columnName}, which is none of its partition columns "
    "{partition_columns:list}. Nothing was written",
    parameters=("columnName",),
)
INSERT_PARTITION_COLUMN_IN_LIST = ErrorCondition(
    "STATIC_PARTITION_COLUMN_IN_INSERT_COLUMN_LIST",
    SchemaError,
    "42713",
    "the INSERT into {table} has a value for the partition column {staticName} in PARTITION, and again in its rows. "
    "Nothing was written",
    parameters=("staticName",),
)
INSERT_IF_PARTITION_NOT_EXISTS = ErrorCondition(
    "UNSUPPORTED_FEATURE.INSERT_PARTITION_SPEC_IF_NOT_EXISTS",
    UnsupportedOperationError,
    "0A000",
    "INSERT ... PARTITION (...) IF NOT EXISTS is not supported for {table}. Nothing was written",
    family="parse",
)
INVALID_SAVE_MODE = ErrorCondition(
    "INVALID_SAVE_MODE",
    InvalidOptionError,
    "42000",
    "unknown save mode {mode!r}; it is append, overwrite, ignore, error or errorifexists",
    parameters=("mode",),
)
LEGACY_ERROR_TEMP_1189 = ErrorCondition(
    "_LEGACY_ERROR_TEMP_1189",
    InvalidOptionError,
    None,
    "a schema cannot be given for {method}: use spark.read.format('pydelta').schema(...).load(path)",
    family="argument",
)
MISSING_DELTA_TABLE = ErrorCondition("DELTA_MISSING_DELTA_TABLE", UnsupportedOperationError, "42P01")
MISSING_DELTA_TABLE_NAME = MISSING_DELTA_TABLE.also(
    "{tableName} is not a Delta table: there is no Delta table of the name {tableName!r}; on Spark Connect "
    "catalogs do not know Delta tables. Check the name, or use DeltaTable.forPath(spark, path)",
    parameters=("tableName",),
)
MISSING_DELTA_TABLE_OF_OTHERS = MISSING_DELTA_TABLE.also(
    "{tableName} is not a Delta table, but a view, or a table of another source",
    parameters=("tableName",),
)
MISSING_DELTA_TABLE_AT_PATH = MISSING_DELTA_TABLE.also(
    "`{table}` is not a Delta table: {reason}",
    error=NotADeltaTableError,
)
OPERATION_NOT_ALLOWED_DETAIL = ErrorCondition(
    "DELTA_OPERATION_NOT_ALLOWED_DETAIL",
    UnsupportedOperationError,
    "0AKDC",
    "Operation not allowed: `Bucketing` is not supported for Delta tables: leave out bucketBy({bucket_by:list}); "
    "use partitionBy or clusterBy. Nothing was written",
)
BUCKETS_NOT_ALLOWED = OPERATION_NOT_ALLOWED_DETAIL.also(
    "Operation not allowed: `Bucketing` is not supported for Delta tables: Delta tables have no buckets "
    "({buckets}); use CLUSTER BY instead. Nothing was written",
)
VIEW_CANNOT_BE_CONVERTED = OPERATION_NOT_ALLOWED_DETAIL.also(
    "Operation not allowed: `CONVERT TO DELTA` of a view is not supported for Delta tables: {table} is a view, "
    "which cannot be converted to a Delta table. Nothing was written",
)
PACKAGE_CANNOT_BE_SHIPPED = ErrorCondition(
    "DELTA_PACKAGE_CANNOT_BE_SHIPPED",
    UnsupportedOperationError,
    "0A000",
    "the package at {path} is neither a folder nor in an archive of Python modules: install delta-ds on every machine",
    parameters=("path",),
    family="state",
)
PARTITION_BY_NOT_ALLOWED_WITH_INSERT_INTO = ErrorCondition(
    "PARTITION_BY_NOT_ALLOWED_WITH_INSERT_INTO",
    UnsupportedOperationError,
    "42601",
    "insertInto cannot be combined with partitionBy or clusterBy: {table} has its layout already. Nothing was written",
)
PYTHON_WORKERS_WITHOUT_PACKAGE = ErrorCondition(
    "DELTA_PYTHON_WORKERS_WITHOUT_PACKAGE",
    UnsupportedOperationError,
    "38000",
    "Spark's Python workers cannot import {module!r}. On a cluster {shipping}; on one machine {way_out}",
    parameters=("module",),
    family="state",
)
EXECUTORS_WITHOUT_PACKAGE = PYTHON_WORKERS_WITHOUT_PACKAGE.also(
    "{operation} of {table} has to run in tasks, and {reason}. Nothing was written",
    parameters=("table",),
)
PYTHON_WORKERS_OF_OTHER_VERSION = PYTHON_WORKERS_WITHOUT_PACKAGE.also(
    "this program has delta-ds {version}, and a Python worker of Spark {found}: call delta_ds.ship(spark), which gives "
    "workers this program's, or install the same on every machine (docs/clusters.md)",
    parameters=("version", "found"),
)
SCHEMA_CHANGE_SINCE_ANALYSIS = ErrorCondition(
    "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
    SchemaError,
    "KD007",
    "The schema of your Delta table has changed in an incompatible way since your DataFrame or DeltaTable object was "
    "created: {table} has changed since then, {change}. Create the DataFrame or view again",
)
TABLE_GONE_SINCE_ANALYSIS = SCHEMA_CHANGE_SINCE_ANALYSIS.also(
    "the table at {table} no longer exists; the DataFrame was created before it was removed",
    error=NotADeltaTableError,
)
SECRET_NOT_KNOWN = ErrorCondition(
    "DELTA_SECRET_NOT_KNOWN",
    InvalidOptionError,
    "42616",
    "the value of {option!r} has not reached this process: on Spark Connect it travels separately from the plan, "
    "with the data source of the session that gave it. Call delta_ds.register(spark) in this session, and create the "
    "DataFrame again",
    parameters=("option",),
    family="argument",
)
SORT_BY_WITHOUT_BUCKETING = ErrorCondition(
    "SORT_BY_WITHOUT_BUCKETING",
    InvalidOptionError,
    "42601",
    "sortBy({sort_by:list}) must be used together with bucketBy, which Delta tables do not have; sort "
    "the DataFrame, or use clusterBy. Nothing was written",
)
TABLE_OR_VIEW_ALREADY_EXISTS = ErrorCondition(
    "TABLE_OR_VIEW_ALREADY_EXISTS",
    TableExistsError,
    "42P07",
    "cannot create the table {relationName}: {reason}",
    parameters=("relationName",),
)
TABLE_NAME_ALREADY_EXISTS = TABLE_OR_VIEW_ALREADY_EXISTS.also(
    "cannot create the table {relationName}: a table or view of that name already exists",
    parameters=("relationName",),
)
UNREADABLE_MESSAGE = ErrorCondition(
    "DELTA_UNREADABLE_MESSAGE",
    UnsupportedOperationError,
    "38000",
    "a message between client and server of Spark Connect cannot be read ({reason}): install the same version of "
    "delta-ds on both. Nothing was done",
    parameters=("reason",),
    family="state",
)
UNSUPPORTED_DEEP_CLONE = ErrorCondition(
    "DELTA_UNSUPPORTED_DEEP_CLONE",
    UnsupportedOperationError,
    "0A000",
    "Deep clone is not supported by this Delta version for this source: {table} is not a Delta table, and only "
    "Delta tables can be deep-cloned: nothing was written at {target}. Make a SHALLOW CLONE of it, or write its "
    "rows to a new table",
    family="argument",
)
VIEW_OVER_PATH_NOT_ALLOWED = ErrorCondition(
    "INVALID_TEMP_OBJ_REFERENCE",
    UnsupportedOperationError,
    "42K0F",
    "a permanent view cannot be made over a table by its path in a session of Spark Connect whose server has no "
    "catalog for Delta tables: the server could not read it. Make a temporary view, or start the server by "
    "python -m delta_ds connect-server. Nothing was made",
)
