"""Conditions of SQL statements and of tables in a catalog."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    InvalidOptionError,
    NotADeltaTableError,
    SchemaError,
    UnsupportedOperationError,
)

CANNOT_WRITE_INTO_VIEW = ErrorCondition(
    "DELTA_CANNOT_WRITE_INTO_VIEW",
    UnsupportedOperationError,
    "0A000",
    "{table} is a view. Writes to a view are not supported, and a table cannot replace a view. Nothing was written",
    parameters=("table",),
)
HISTORICAL_VERSION_IS_NO_TARGET = ErrorCondition(
    "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION",
    UnsupportedOperationError,
    "KD002",
    "Expect a full scan of the latest version of the Delta source, but found a historical scan: rows of {table} "
    "can be changed in its newest version only, and the view shows an older one. Nothing was changed",
    parameters=("table",),
)
CREATE_TABLE_SET_LOCATION = ErrorCondition(
    "DELTA_TABLE_LOCATION_MISMATCH",
    UnsupportedOperationError,
    "0A000",
    "The location of the existing table {table} is {location}. It doesn't match the specified location {given}: the "
    "table cannot be replaced by one there. Drop it first, or leave LOCATION out. Nothing was written",
)
LOGIN_IN_NAME = ErrorCondition(
    "DELTA_LOGIN_IN_NAME",
    InvalidOptionError,
    "42602",
    "the address {address} holds a login, and names of tables and their locations are shown to everybody, by plans and "
    "by the metastore: nothing was done. Leave the login out, and set it in the session (fs.* settings) or give it as "
    "options of a read or write",
    parameters=("address",),
    family="argument",
)
TABLE_ONLY_OPERATION_AT_PATH = ErrorCondition(
    "DELTA_TABLE_ONLY_OPERATION",
    NotADeltaTableError,
    "0AKDD",
    "{tableName} is not a Delta table. {operation} is only supported for Delta tables: {reason}",
    parameters=("tableName", "operation"),
)
TABLE_CHANGES_OF_OTHERS = TABLE_ONLY_OPERATION_AT_PATH.also(
    "{table} is not a Delta table: {function} reads the changes of Delta tables only, and {table} is a view, or "
    "a table of another source",
    error=UnsupportedOperationError,
)
SET_LOCATION_OF_PATH = ErrorCondition(
    "DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER",
    UnsupportedOperationError,
    "42613",
    "Cannot change the location of a path based table: {table} is named by its path, which cannot be set to "
    "another one. Nothing was changed",
)
AMBIGUOUS_PATHS_IN_CREATE_TABLE = ErrorCondition(
    "DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE",
    UnsupportedOperationError,
    "42613",
    "CREATE TABLE contains two different locations: {identifier} and {location}. Leave LOCATION out, or name the table "
    "by another name than its path. Nothing was written",
    parameters=("identifier", "location"),
)
SET_LOCATION_SCHEMA_MISMATCH = ErrorCondition(
    "DELTA_SET_LOCATION_SCHEMA_MISMATCH",
    UnsupportedOperationError,
    "42KD7",
    "The schema of the new Delta location is different than the current table schema: the table at {location} "
    "has other columns or partition columns than {table}; a table can be set to a location of the same ones "
    "only. Nothing was changed",
)
# Where there is no table, what was asked decides. Rows, whoever wants them: `PATH_NOT_FOUND` if nothing is at the path,
# `DELTA_TABLE_NOT_FOUND` if something is. A command on the table: `DELTA_MISSING_DELTA_TABLE`, or the one of its own.
# A stream: `DELTA_SCHEMA_NOT_SET`. A name that nobody knows: Spark's `TABLE_OR_VIEW_NOT_FOUND`. An entry of the catalog
# whose table is gone: `DELTA_TABLE_NOT_FOUND` to who wants rows, `DELTA_PATH_DOES_NOT_EXIST` to a command.
PATH_NOT_FOUND = ErrorCondition(
    "PATH_NOT_FOUND",
    NotADeltaTableError,
    "42K03",
    "Path does not exist: {path}. Delta table {path} doesn't exist, as there is nothing at the path. {advice}",
    parameters=("path",),
)
NO_TABLE_AT_PATH = ErrorCondition(
    "DELTA_PATH_DOES_NOT_EXIST",
    NotADeltaTableError,
    "42K03",
    "{path} doesn't exist, or is not a Delta table",
    parameters=("path",),
)
ENTRY_OF_NOTHING = NO_TABLE_AT_PATH.also(
    "{path} doesn't exist, or is not a Delta table: {reason}", parameters=("path",)
)
NO_PARTITION_AT_PATH = NO_TABLE_AT_PATH.also(
    "{path} doesn't exist, or is not a Delta table: the Delta table at {table} has no rows in the partition "
    "{partition} at {version}, which {path} names. Read the table and filter it",
)
NON_PARTITION_COLUMN_IN_PATH = ErrorCondition(
    "DELTA_NON_PARTITION_COLUMN_SPECIFIED",
    SchemaError,
    "42P10",
    "Non-partitioning column(s) {columnList} are specified where only partitioning columns are expected: {path} "
    "names rows of the Delta table at {table} by columns that are none of its partition columns: {columnList}; "
    "it is partitioned by {partitionColumns}. Read the table and filter it",
    parameters=("columnList", "path"),
)
UNSUPPORTED_STATEMENT = ErrorCondition(
    "DELTA_UNSUPPORTED_OPERATION",
    UnsupportedOperationError,
    "0A000",
    "{statement} of {table} is not supported. Nothing was changed",
)
TABLE_CHANGES_ARGUMENTS = ErrorCondition(
    "DELTA_INVALID_TABLE_VALUE_FUNCTION",
    InvalidOptionError,
    "22000",
    "Function {function} is an unsupported table valued function for CDC reads with these arguments: {function} "
    "was given {given} arguments: it takes a table, the first version or timestamp, optionally the last one, and "
    "for net changes 'net' or 'latest' and the keys, as in 'a, b'. All of them are constants and not NULL, "
    "except that with keys NULL as the last version means the latest",
    parameters=("function",),
)
TABLE_CHANGES_NULL_BOUNDARY = ErrorCondition(
    "DELTA_CDC_READ_NULL_RANGE_BOUNDARY",
    InvalidOptionError,
    "22004",
    "CDC read start/end parameters cannot be null: {function} was given NULL as the first or last version or "
    "timestamp. Leave the last one out, or write NULL for it before 'net' or 'latest', to read up to the latest "
    "version",
    family="argument",
)
TABLE_CHANGES_BOUNDARY_TYPE = ErrorCondition(
    "DELTA_UNSUPPORTED_EXPRESSION",
    InvalidOptionError,
    "0A000",
    "Unsupported expression type({expType}) for {causedBy}: {causedBy} of {function} is of type {expType}: write "
    "a version as a whole number, and a timestamp as a string or as a value of {supportedTypes:list}",
    parameters=("expType", "causedBy", "supportedTypes"),
)
SHOW_PARTITION_IN_NON_PARTITIONED_TABLE = ErrorCondition(
    "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE",
    UnsupportedOperationError,
    "42809",
    "SHOW PARTITIONS is not allowed on a table that is not partitioned: {table}",
    parameters=("table",),
)
TRUNCATE_TABLE_PARTITION = ErrorCondition(
    "DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED",
    UnsupportedOperationError,
    "0AKDC",
    "Operation not allowed: TRUNCATE TABLE on Delta tables does not support partition predicates: TRUNCATE TABLE "
    "{table} PARTITION (...) is not offered. Use DELETE FROM ... WHERE, which removes whole files of partitions "
    "without reading them. Nothing was deleted",
    parameters=("table",),
)
SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN = ErrorCondition(
    "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN",
    UnsupportedOperationError,
    "42P10",
    "Non-partitioning column(s) [{columns:list}] are specified for SHOW PARTITIONS: {table} is not partitioned "
    "by {columns:list}",
    parameters=("columns",),
)
ONLY_OPERATION = ErrorCondition(
    "DELTA_ONLY_OPERATION",
    NotADeltaTableError,
    "0AKDD",
    "{operation} is only supported for Delta tables, and {table} is {what}",
    parameters=("operation",),
)
ONLY_OPERATION_AT_PATH = ONLY_OPERATION.also(
    "{operation} is only supported for Delta tables: {reason}",
    parameters=("operation",),
)
NOT_A_DELTA_TABLE_TO_REORGANIZE = ErrorCondition(
    "DELTA_NOT_A_DELTA_TABLE",
    NotADeltaTableError,
    "0AKDD",
    "{tableName} is not a Delta table, but {what}: {operation} is only supported for Delta tables",
    parameters=("tableName",),
)
NOT_A_DELTA_TABLE_TO_REPLACE = NOT_A_DELTA_TABLE_TO_REORGANIZE.also(
    "{tableName} is not a Delta table. Please drop this table first if you would like to recreate it with Delta Lake: "
    "it is a table of {provider}. Nothing was written",
    parameters=("tableName",),
)
NO_TABLE_TO_RESTORE = ErrorCondition(
    "TABLE_OR_VIEW_NOT_FOUND",
    NotADeltaTableError,
    "42P01",
    "{relationName} is {what}, and {operation} is only supported for Delta tables",
    parameters=("relationName",),
)
NO_TABLE_TO_CONVERT = NO_TABLE_TO_RESTORE.also(
    "there is no table {relationName} to convert; a folder of Parquet files is named parquet.`/path`. Nothing was "
    "written",
    parameters=("relationName",),
)
EXPECT_TABLE_NOT_VIEW = ErrorCondition(
    "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
    NotADeltaTableError,
    "42809",
    "'{operation}' expects a table, but {viewName} is a view. Name the table below the view",
    parameters=("operation", "viewName"),
)
CLONE_UNSUPPORTED_SOURCE = ErrorCondition(
    "DELTA_CLONE_UNSUPPORTED_SOURCE",
    UnsupportedOperationError,
    "0AKDC",
    "Unsupported clone source '{name}', whose format is {format}: {name} is a {format}, which cannot be cloned: "
    "only a Delta table, or one of Parquet files. Nothing was written",
    parameters=("name", "format"),
)
CONVERT_MANAGED_NOT_ALLOWED = ErrorCondition(
    "DELTA_CONVERSION_UNSUPPORTED_MANAGED_TABLE",
    UnsupportedOperationError,
    "0AKDC",
    "the files of {table} were converted, but the metastore would delete them together with the entry that has to be "
    "replaced. Use them by their path, {location}",
    parameters=("table",),
)
VIEW_NOT_A_TABLE = ErrorCondition(
    "DELTA_UNSUPPORTED_VIEW_TARGET",
    UnsupportedOperationError,
    "0A000",
    "{name} is a view that shows some rows or columns of a table, or several: change the table itself. Only a view of "
    "all columns and rows stands for its table. Nothing was changed",
    parameters=("name",),
)
UNKNOWN_CATALOG_SETTING = ErrorCondition(
    "DELTA_UNKNOWN_CATALOG_SETTING",
    InvalidOptionError,
    "42616",
    "there is no setting {setting} of a catalog: known are {known:list}{hint}",
    parameters=("setting",),
    family="argument",
)
CATALOG_SETTING_MISSING = ErrorCondition(
    "DELTA_CATALOG_SETTING_MISSING",
    InvalidOptionError,
    "42616",
    "the catalog {catalog} is named by settings, but {setting} is missing or empty",
    parameters=("setting", "catalog"),
    family="argument",
)
INVALID_CATALOG_SETTING = ErrorCondition(
    "DELTA_INVALID_CATALOG_SETTING",
    InvalidOptionError,
    "42616",
    "invalid value {value!r} for {setting}: it is one of {known:list}, or package.module:Class of your own coordinator",
    parameters=("setting", "value"),
    family="argument",
)
CATALOG_NAMESPACE = ErrorCondition(
    "DELTA_CATALOG_NAMESPACE",
    InvalidOptionError,
    "42601",
    "{table} is not the name of a table: in the catalog {catalog} a name is {catalog}.schema.table",
    parameters=("table", "catalog"),
    family="argument",
)
CATALOG_NAME = ErrorCondition(
    "DELTA_CATALOG_NAME",
    InvalidOptionError,
    "42602",
    "{name!r} cannot be the name of a table or namespace in the catalog {catalog}, where it would be a folder in "
    "{folder}: choose one that is not empty, does not begin with '_' or '.', and has no '/', '\\' or ':'. Nothing was "
    "changed",
    parameters=("name", "catalog"),
    family="argument",
)
CATALOG_SCHEMA_NOT_FOUND = ErrorCondition(
    "SCHEMA_NOT_FOUND",
    NotADeltaTableError,
    "42704",
    "there is no schema {schemaName}: make it with CREATE SCHEMA. Nothing was written",
    parameters=("schemaName",),
)
CATALOG_FORMAT = ErrorCondition(
    "DELTA_CATALOG_FORMAT",
    UnsupportedOperationError,
    "0A000",
    "{table} cannot be made as a table of {format}: tables of the catalog {catalog} are Delta tables. Write USING "
    "delta, or .format('delta'). Nothing was written",
    parameters=("table", "catalog", "format"),
)
CATALOG_CANNOT = ErrorCondition(
    "DELTA_CATALOG_CANNOT",
    UnsupportedOperationError,
    "0A000",
    "{what} is not supported in the catalog {catalog}, which is {coordinator}; use its own tools. Nothing was changed",
    parameters=("what", "catalog"),
)
