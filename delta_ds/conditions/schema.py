"""Conditions of names, types and layout of columns."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    InvalidOptionError,
    PredicateError,
    SchemaError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
)

CANNOT_USE_ALL_COLUMNS_FOR_PARTITION = ErrorCondition(
    "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION",
    SchemaError,
    "428FT",
    "Cannot use all columns for partition columns: {table} cannot be partitioned by {partition_columns:list}, it has "
    "no other column. Nothing was written",
)
COLUMN_NOT_FOUND_IN_SCHEMA = ErrorCondition(
    "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
    SchemaError,
    "42703",
    "Couldn't find column {column} in: column {column!r} does not exist in version {version} of {table}; "
    "{hint}Its columns are {columns:list}",
)
CLUSTERING_COLUMN_NOT_FOUND = COLUMN_NOT_FOUND_IN_SCHEMA.also(
    "Couldn't find column {columnName} in: {table} has no column {columnName!r} to be clustered by; it has "
    "{columns:list}. Nothing was written",
    parameters=("columnName", "tableSchema"),
)
CLUSTERING_COLUMN_NOT_IN_NEW_TABLE = ErrorCondition(
    "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED",
    SchemaError,
    "0A000",
    "the new table {table} has no column {column} to be clustered by; it has {columns:list}. Nothing was written",
    parameters=("column",),
    family="parse",
)
ALL_PARTITION_COLUMNS = ErrorCondition(
    "ALL_PARTITION_COLUMNS_NOT_ALLOWED",
    SchemaError,
    "KD005",
    "{table} cannot be partitioned by all of its columns: {columns:list}. Nothing was written",
)
COLUMN_DROPPED_TWICE = COLUMN_NOT_FOUND_IN_SCHEMA.also(
    "Couldn't find column {column} in: column {column} of {table} would be dropped twice. Nothing was changed",
    parameters=("column",),
)
COLUMN_NOT_FOUND_IN_STREAM = COLUMN_NOT_FOUND_IN_SCHEMA.also(
    "Couldn't find column {column} in: column {column!r} is not in the stream from {table}; its columns are "
    "{columns:list}",
)
STATISTICS_COLUMN_NOT_FOUND = COLUMN_NOT_FOUND_IN_SCHEMA.also(
    "Couldn't find column {columnName} in: table property delta.dataSkippingStatsColumns cannot hold "
    "{columnName!r} on {table}: there is no column {columnName}. Nothing was written",
    parameters=("columnName",),
    error=InvalidOptionError,
)
COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE = ErrorCondition(
    "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE",
    SchemaError,
    "22005",
    "Found nested NullType in column {column} which is of {type}. Delta doesn't support writing NullType in complex "
    "types: data files of table {table} cannot hold its columns: {reason}; nothing was written",
    parameters=("table",),
)
COMPLEX_TYPE_COLUMN_CONTAINS_VOID = COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE.also(
    "Found nested NullType in column {column} which is of {type}. Delta doesn't support writing NullType in "
    "complex types: column {column} of the data for {table} has void {where} ({type}), which no file can hold; "
    "cast it to the type that it should have. Nothing was written",
    parameters=("column",),
)
NULL_SCHEMA_IN_STREAMING_WRITE = ErrorCondition(
    "DELTA_NULL_SCHEMA_IN_STREAMING_WRITE",
    SchemaError,
    "42P18",
    "Delta doesn't accept NullTypes in the schema for streaming writes: a stream into {table} cannot write void "
    "values, and the type of {columns:list} has void in it: no batch of the query says which type is meant. Cast "
    "them to the type that they should have. Nothing was written",
    parameters=("table", "columns"),
)
DUPLICATE_COLUMNS_FOUND = ErrorCondition("DELTA_DUPLICATE_COLUMNS_FOUND", SchemaError, "42711")
DUPLICATE_COLUMNS_IN_ROWS = DUPLICATE_COLUMNS_FOUND.also(
    "Found duplicate column(s): {path}{name}. The rows have the column {path}{name} twice; names are the same in "
    "any case",
    parameters=("column",),
)
DUPLICATE_COLUMNS_CHOSEN = DUPLICATE_COLUMNS_FOUND.also(
    "Found duplicate column(s): {column}; option 'columns' names {column!r} twice for {table}",
)
DUPLICATE_COLUMNS_ASKED = DUPLICATE_COLUMNS_FOUND.also(
    "Found duplicate column(s): {column}; columns has {column!r} twice (case does not count), but lazy rows of "
    "table {table} (version {version}) have each column once, by its name: name it once, or use to_arrow",
    parameters=("column",),
)
DUPLICATE_CLUSTERING_COLUMNS = DUPLICATE_COLUMNS_FOUND.also(
    "Found duplicate column(s): {duplicateCols}. {table} would be clustered by {duplicateCols!r} twice. Nothing "
    "was written",
    parameters=("duplicateCols",),
)
DUPLICATE_COLUMNS_FOUND_DATA = ErrorCondition(
    "DELTA_DUPLICATE_COLUMNS_FOUND.DATA",
    SchemaError,
    "42711",
    "Found duplicate column(s): {duplicateCols:list}. The duplicate was found in the data being saved: {what} "
    "has columns whose names are the same (case does not count); rename them. Nothing was written",
    parameters=("duplicateCols",),
)
DUPLICATE_COLUMNS_FOUND_METADATA_UPDATE = ErrorCondition(
    "DELTA_DUPLICATE_COLUMNS_FOUND.METADATA_UPDATE",
    SchemaError,
    "42711",
    "Found duplicate column(s): {duplicateCols:list}. The duplicate was found in the metadata update: {what} has "
    "columns whose names are the same (case does not count); rename them. Nothing was written",
    parameters=("duplicateCols",),
)
DUPLICATE_COLUMNS_FOUND_PARTITION_COLUMNS = ErrorCondition(
    "DELTA_DUPLICATE_COLUMNS_FOUND.PARTITION_COLUMNS",
    SchemaError,
    "42711",
    "Found duplicate column(s): {columns:list}. The duplicate was found in the partition columns: {table} would "
    "be partitioned by the same column twice. Nothing was written",
    parameters=("columns",),
)
ALL_COLUMNS_VOID = ErrorCondition(
    "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_ALL_VOID_COLUMNS",
    SchemaError,
    "428GU",
    "The Delta table is not writable because parts of the schema are not supported. Reason: All columns in the table "
    "schema have VOID type. They are {columns:list} of {table}, and no file can hold such rows; cast one to the type "
    "that it should have. Nothing was written",
)
TABLE_NO_COLUMNS = ErrorCondition(
    "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_NO_COLUMNS",
    SchemaError,
    "428GU",
    "The Delta table is not writable because parts of the schema are not supported. Reason: The table schema has no "
    "columns defined. Neither {table} nor the data that is written has one; write rows with columns and the option "
    "mergeSchema. Nothing was written",
)
EMPTY_DATA = ErrorCondition(
    "DELTA_EMPTY_DATA",
    SchemaError,
    "428GU",
    "Data used in creating the Delta table doesn't have any columns: the data has no column that a new table at "
    "{table} could have. Nothing was written",
)
DUPLICATE_CLUSTER_BY = ErrorCondition(
    "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY",
    SchemaError,
    "42711",
    "Found duplicate column(s): {duplicateCols}. The duplicate was found in CLUSTER BY: {table} would be "
    "clustered by {duplicateCols!r} twice. Nothing was written",
    parameters=("duplicateCols",),
)
FAILED_TO_MERGE_FIELDS = ErrorCondition(
    "DELTA_FAILED_TO_MERGE_FIELDS",
    SchemaError,
    "22005",
    "Failed to merge fields '{currentField}' and '{updateField}': the column of the table is of type {tableType}, the "
    "incoming values are of type {dataType}, which is not stored there; cast them before writing. Nothing was written.",
    parameters=("currentField", "updateField", "tableType", "dataType"),
)
FAILED_TO_MERGE_FIELDS_BY_NAME = FAILED_TO_MERGE_FIELDS.also(
    parameters=("currentField", "updateField"),
)
FAILED_TO_MERGE_TYPES = FAILED_TO_MERGE_FIELDS.also(
    "Failed to merge fields '{currentField}' and '{updateField}': {reason}, {tableType} in the table and {dataType} in "
    "the data; {hint}. Nothing was written",
    parameters=("currentField", "updateField", "tableType", "dataType"),
)
FAILED_TO_MERGE_GIVEN_SCHEMA = FAILED_TO_MERGE_FIELDS.also(
    "Failed to merge fields '{column}' and '{column}': column {column!r} has type {type} in {table}, but {given} "
    "in the given schema. A given schema chooses columns; convert types with cast() after reading",
)
INVALID_CHARACTERS_IN_COLUMN_NAMES = ErrorCondition(
    "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
    SchemaError,
    "42K05",
    "Found invalid character(s) among ' ,;{{}}()\\n\\t=' in the column names of {table}, which need column mapping: "
    "{invalidColumnNames:list}; rename them, or set the table property "
    "delta.columnMapping.mode=name. Nothing was written",
    parameters=("invalidColumnNames",),
)
INVALID_FIELD_NAME = ErrorCondition(
    "INVALID_FIELD_NAME",
    SchemaError,
    "42000",
    "{column!r} is not a column of {table}: {parent} is of type {found}, not a struct{inside}. Nothing "
    "was changed",
    parameters=("column", "parent"),
)
INVALID_PARTITION_COLUMN_TYPE = ErrorCondition(
    "DELTA_INVALID_PARTITION_COLUMN_TYPE",
    SchemaError,
    "42996",
    "a column of type {data_type} cannot be a partition column",
)
PARTITION_VALUE_NOT_TEXT = INVALID_PARTITION_COLUMN_TYPE.also(
    "the partition value X'{value}' is not UTF-8: the log of a Delta table holds only partition values "
    "that are text. Partition by another column, such as hex() of this one",
    parameters=("value",),
)
INVALID_PARTITION_COLUMN = INVALID_PARTITION_COLUMN_TYPE.also(
    "Using column {column} of type {type} as a partition column is not supported: {table} cannot be partitioned "
    "by {column!r}: {type} is not a type for partition columns. Nothing was written",
    parameters=("column", "type"),
)
METADATA_MISMATCH = ErrorCondition(
    "DELTA_METADATA_MISMATCH",
    SchemaError,
    "42KDG",
    "A metadata mismatch was detected when writing to the Delta table {lines}",
    parameters=("differences",),
)
METADATA_MISMATCH_UNKNOWN_COLUMNS = METADATA_MISMATCH.also(
    "A metadata mismatch was detected when writing to the Delta table: the rows have columns that the table does "
    "not have: {columns}; nothing was written",
    parameters=("columns",),
)
METADATA_MISMATCH_OF_BATCH = METADATA_MISMATCH.also(
    "A metadata mismatch was detected when writing to the Delta table: rows for table {table} have the columns "
    "{found}, not {wanted}; nothing was committed",
    parameters=("table",),
)
MISSING_COLUMN_ID = ErrorCondition(
    "DELTA_MISSING_COLUMN_ID",
    SchemaError,
    "XXKDS",
    "column {column!r} has the delta.columnMapping.id {number!r}, which is not a number",
)
MISSING_PHYSICAL_NAME = ErrorCondition(
    "DELTA_MISSING_PHYSICAL_NAME",
    SchemaError,
    "XXKDS",
    "column {column!r} of a table with column mapping {mode!r} has no delta.columnMapping.physicalName",
)
NESTED_NOT_NULL_CONSTRAINT = ErrorCondition(
    "DELTA_NESTED_NOT_NULL_CONSTRAINT",
    UnsupportedOperationError,
    "0AKDC",
    "The {nestType} type of the field {column} contains a NOT NULL constraint. Delta does not support NOT NULL "
    "constraints nested within arrays or maps: column {column} of {table} has NOT NULL inside its {nestType} "
    "({inside}), which is not enforced in arrays and maps and therefore refused; leave it out. Nothing was written",
    parameters=("column", "nestType"),
)
NON_PARTITION_COLUMN_ABSENT = ErrorCondition(
    "DELTA_NON_PARTITION_COLUMN_ABSENT",
    SchemaError,
    "KD005",
    "Data written into Delta needs to contain at least one non-partitioned column: table {table} has no column "
    "that data files could hold: all are partition columns or void; add a column. Nothing was written",
    parameters=("table",),
)
NON_PARTITION_COLUMN_ABSENT_IN_DATA = NON_PARTITION_COLUMN_ABSENT.also(
    "Data written into Delta needs to contain at least one non-partitioned column: the data for {table} has only "
    "its partition columns {partition_columns:list}; write at least one more column. Nothing was written",
)
PARSE_SYNTAX_ERROR = ErrorCondition("PARSE_SYNTAX_ERROR", SchemaError, "42601", family="parse")
NOT_A_COLUMN_NAME = PARSE_SYNTAX_ERROR.also(
    "{name!r} is not the name of a column: write names as in Spark SQL, nested fields as s.a, names with "
    "dots or backticks between backticks",
    parameters=("name",),
)
NOT_A_DATA_TYPE = PARSE_SYNTAX_ERROR.also(
    "{data_type!r} is not a data type: {problem}",
)
UNSUPPORTED_DATATYPE = ErrorCondition(
    "UNSUPPORTED_DATATYPE", SchemaError, "0A000", NOT_A_DATA_TYPE.text, family="parse"
)
NOT_ONE_DATA_TYPE = PARSE_SYNTAX_ERROR.also(
    "{data_type!r} is not one data type",
)
UNEXPECTED_PARTITION_SCHEMA_FROM_USER = ErrorCondition(
    "DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER",
    SchemaError,
    "KD009",
    "CONVERT TO DELTA was called with a partition schema different from the partition schema inferred from the "
    "catalog: {table} is partitioned by {catalogPartitionSchema} in the catalog, not by {userPartitionSchema}. "
    "Leave the partition columns out: the catalog has them. Nothing was written",
    parameters=("catalogPartitionSchema", "userPartitionSchema"),
)
NOT_A_PARTITION_SCHEMA = PARSE_SYNTAX_ERROR.also(
    "the partition schema {schema!r} is no list of columns",
)
PARTITION_SCHEMA_UNREADABLE = PARSE_SYNTAX_ERROR.also(
    "the partition schema {schema!r} is not a list of columns: {problem}",
)
NOT_ONE_COLUMN = PARSE_SYNTAX_ERROR.also(
    "{after!r} must be one column of {struct}; give the struct it is in as parent. Nothing was changed",
)
STATEMENT_UNREADABLE = PARSE_SYNTAX_ERROR.also(
    "{what} (line {line}, pos {position})\n\n== SQL ==\n{marked}", error=PredicateError
)
EXPRESSION_UNREADABLE = PARSE_SYNTAX_ERROR.also(
    "{reason}",
    error=PredicateError,
)
PARTITION_COLUMN_NOT_FOUND = ErrorCondition(
    "DELTA_PARTITION_COLUMN_NOT_FOUND",
    SchemaError,
    "42703",
    "Partition column {columnName} not found in schema [{schemaMap:list}]: {table} is partitioned by {name!r}, "
    "which is not in the data; its columns are {names}. Nothing was written",
    parameters=("columnName", "schemaMap"),
)
RESERVED_CDC_COLUMNS_ON_WRITE = ErrorCondition(
    "RESERVED_CDC_COLUMNS_ON_WRITE",
    SchemaError,
    "42939",
    "The write contains reserved columns [{columns:list}] that are used internally as metadata for Change Data "
    "Feed: {table} records a change data feed, which has columns of these names itself: {columns:list}; rename "
    "them or set delta.enableChangeDataFeed=false. Nothing was written",
    parameters=("columns",),
    family="state",
)
UNKNOWN_COLUMN_MAPPING_MODE = ErrorCondition(
    "DELTA_UNKNOWN_COLUMN_MAPPING_MODE",
    UnsupportedFeatureError,
    "XXKDS",
    "the table's delta.columnMapping.mode is {mode!r}; known are none, name and id",
)
UNRESOLVED_COLUMN_WITH_SUGGESTION = ErrorCondition(
    "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    SchemaError,
    "42703",
    "{table} has no column {column!r}; {hint}. Nothing was changed",
    parameters=("objectName", "proposal"),
)
UNRESOLVED_COLUMN_WITHOUT_SUGGESTION = ErrorCondition(
    "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION",
    SchemaError,
    "42703",
    "{table} has no column {column!r}, as it has no columns. Nothing was changed",
    parameters=("objectName",),
)
UNRESOLVED_COLUMN_OF_GENERATED = UNRESOLVED_COLUMN_WITH_SUGGESTION.also(
    "{clause} needs the column {column}, which the rows do not have; add it, or the values of "
    "{generatedColumn}. Nothing was written.",
    parameters=("column", "generatedColumn"),
    error=PredicateError,
)
UNRESOLVED_COLUMN_OF_INSERT = UNRESOLVED_COLUMN_WITH_SUGGESTION.also(
    "the INSERT into {table} names the column {objectName}, which is none of the table's: {proposal:list}. Nothing "
    "was written",
    parameters=("objectName", "proposal"),
)
UNRESOLVED_COLUMN_IN_PREDICATE = UNRESOLVED_COLUMN_WITH_SUGGESTION.also(
    "no column {column!r} in the table; {hint}",
    parameters=("objectName", "proposal"),
    error=PredicateError,
)
UNSUPPORTED_DATA_TYPES = ErrorCondition(
    "DELTA_UNSUPPORTED_DATA_TYPES",
    UnsupportedFeatureError,
    "0AKDC",
    "Found columns using unsupported data types: [{column}: {type}]; column {column} has the type {type!r}, "
    "which is not supported; a newer version of this package may read it",
)
UNSUPPORTED_ARROW_TYPE = UNSUPPORTED_DATA_TYPES.also(
    "Found columns using unsupported data types: [{column}: {type}]; column {column} has the Arrow type {type}, "
    "for which Delta has no type; cast it before writing",
    parameters=("column", "type"),
    error=SchemaError,
)
UNKNOWN_DATA_TYPE = UNSUPPORTED_DATA_TYPES.also(
    "Found columns using unsupported data types: [{column}: {type}]; column {column} has the unknown type "
    "{type!r}; a newer version of this package may read it",
)
USER_DEFINED_TYPE = UNSUPPORTED_DATA_TYPES.also(
    "Found columns using unsupported data types: [{column}: {type}]; column {column} has the user-defined type "
    "{type}, which has no class in Python; write what it consists of, or use delta-spark",
)
USER_DEFINED_TYPE_WITHOUT_ITS_CLASS = UNSUPPORTED_DATA_TYPES.also(
    "Found columns using unsupported data types: [{column}: {type}]; column {column} has the user-defined type "
    "{type}, whose class is not there: install what it comes from, in the driver and its Python workers",
)
USER_DEFINED_TYPE_STORED_OTHERWISE = UNSUPPORTED_DATA_TYPES.also(
    "Found columns using unsupported data types: [{column}: {type}]; column {column} has the user-defined type "
    "{type}, whose values the table stores as {stored} and the class as {wanted}: use the version of the class that "
    "wrote the table",
)
UNSUPPORTED_COLLATION = UNSUPPORTED_DATA_TYPES.also(
    "Found columns using unsupported data types: [{column}]; column {column!r} has a collation, which needs the table "
    "feature collations that this version of delta_ds does not write; use a plain string. Nothing was written",
    parameters=("column",),
)
UNSUPPORTED_PARQUET_TYPE = UNSUPPORTED_DATA_TYPES.also(
    "Found columns using unsupported data types: [{column}: {type}]; column {column} has the type {type} "
    "({physical}), which Spark does not read from Parquet files",
    parameters=("column", "type"),
    error=SchemaError,
)
