"""Conditions of ALTER TABLE on columns, and of generated and identity columns, defaults and constraints."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    InvalidOptionError,
    InvariantViolationError,
    PredicateError,
    SchemaError,
    UnsupportedOperationError,
)

CANNOT_UPDATE_FIELD_ARRAY_TYPE = ErrorCondition(
    "CANNOT_UPDATE_FIELD.ARRAY_TYPE",
    UnsupportedOperationError,
    "0A000",
    "the type of {column} of {table} cannot be changed as a whole; change its fields, or its element, "
    "key or value ({element}, ...). Nothing was changed",
    parameters=("column",),
)
CANNOT_UPDATE_FIELD_MAP_TYPE = ErrorCondition(
    "CANNOT_UPDATE_FIELD.MAP_TYPE",
    UnsupportedOperationError,
    "0A000",
    CANNOT_UPDATE_FIELD_ARRAY_TYPE.text,
    parameters=("column",),
)
CANNOT_UPDATE_FIELD_STRUCT_TYPE = ErrorCondition(
    "CANNOT_UPDATE_FIELD.STRUCT_TYPE",
    UnsupportedOperationError,
    "0A000",
    CANNOT_UPDATE_FIELD_ARRAY_TYPE.text,
    parameters=("column",),
)
COLUMN_ALREADY_EXISTS = ErrorCondition(
    "COLUMN_ALREADY_EXISTS",
    SchemaError,
    "42711",
    "columns of the same name would be added to {table} (case does not count): {columns:list}. Nothing "
    "was changed",
    parameters=("columns",),
)
COLUMN_TWICE_IN_NEW_TABLE = COLUMN_ALREADY_EXISTS.also(
    "{what} has columns whose names are the same (case does not count): {duplicateCols:list}. Nothing was written",
    parameters=("duplicateCols",),
)
COLUMN_TWICE_IN_INSERT = COLUMN_ALREADY_EXISTS.also(
    "the INSERT into {table} names the column {columnName} twice. Nothing was written",
    parameters=("columnName",),
)
CONSTRAINT_DATA_TYPE_MISMATCH = ErrorCondition(
    "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH",
    SchemaError,
    "42K09",
    "Column {column} has data type {columnType} and cannot be altered to data type {dataType} because this "
    "column is referenced by the following check constraint(s): column {column} of {table} cannot be {change}, a "
    "CHECK constraint uses it ({listed}); drop the constraint first. Nothing was changed",
    parameters=("column", "dependents"),
)
CONSTRAINT_DEPENDENT_COLUMN_CHANGE = ErrorCondition(
    "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
    SchemaError,
    "42K09",
    "Cannot alter column {column} because this column is referenced by the following check constraint(s): column "
    "{column} of {table} cannot be {change}, a CHECK constraint uses it ({listed}); drop the constraint first. "
    "Nothing was changed",
    parameters=("column", "dependents"),
)
DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA = ErrorCondition(
    "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
    UnsupportedOperationError,
    "0AKDC",
    "Cannot drop column from a schema with a single column: {column} cannot be dropped, {struct} has no other "
    "column. Nothing was changed",
    parameters=("column",),
)
FIELD_ALREADY_EXISTS = ErrorCondition(
    "FIELD_ALREADY_EXISTS",
    SchemaError,
    "42710",
    "cannot {verb} the column, {column!r} is in {struct} already (case does not count); there are: "
    "{names:list}. Nothing was changed",
    parameters=("column",),
)
FIELD_NOT_FOUND = ErrorCondition(
    "FIELD_NOT_FOUND",
    SchemaError,
    "42704",
    "column {added!r} cannot be placed after {column!r}, which is not in {struct}; there are: {names:list}. Nothing "
    "was changed",
    parameters=("column",),
)
GENERATED_COLUMNS_DATA_TYPE_MISMATCH = ErrorCondition(
    "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH",
    SchemaError,
    "42K09",
    "Column {column} has data type {columnType} and cannot be altered to data type {dataType} because this "
    "column is referenced by the following generated column(s): column {column} of {table} cannot be {change}, a "
    "generated column uses it ({listed}); drop the generated column first. Nothing was changed",
    parameters=("column", "dependents"),
)
GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE = ErrorCondition(
    "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
    SchemaError,
    "42K09",
    "Cannot alter column {column} because this column is referenced by the following generated column(s): column "
    "{column} of {table} cannot be {change}, a generated column uses it ({listed}); drop the generated column "
    "first. Nothing was changed",
    parameters=("column", "dependents"),
)
IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN = ErrorCondition(
    "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN",
    UnsupportedOperationError,
    "429BQ",
    "ALTER TABLE ALTER COLUMN SYNC IDENTITY cannot be called on non IDENTITY columns: column {column} of {table} "
    "is not an identity column, so there is nothing to sync. Nothing was changed",
)
IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED = ErrorCondition(
    "DELTA_IDENTITY_COLUMNS_ALTER_COLUMN_NOT_SUPPORTED",
    UnsupportedOperationError,
    "429BQ",
    "ALTER TABLE ALTER COLUMN is not supported for IDENTITY columns: {column} of {table} is an identity column, "
    "of which you can only change the comment, the name and the position. Nothing was changed",
    parameters=("column",),
)
IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED = ErrorCondition(
    "DELTA_IDENTITY_COLUMNS_REPLACE_COLUMN_NOT_SUPPORTED",
    UnsupportedOperationError,
    "429BQ",
    "ALTER TABLE REPLACE COLUMNS is not supported for table with IDENTITY columns: the columns of {table} cannot "
    "be replaced, it has identity columns; add, rename, drop and change columns one by one. Nothing was changed",
)
UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP = ErrorCondition(
    "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
    UnsupportedOperationError,
    "0AKDC",
    "Unsupported ALTER TABLE REPLACE COLUMNS operation. Reason: the columns of {table} cannot be replaced: "
    "{details}. It has {oldSchema}, and {newSchema} was asked for. Nothing was changed",
    parameters=("details",),
)
NOT_SUPPORTED_CHANGE_COLUMN = ErrorCondition(
    "NOT_SUPPORTED_CHANGE_COLUMN",
    UnsupportedOperationError,
    "0A000",
    "column {column} of {table} cannot be changed from {old} to {new}: that is not a widening; write its "
    "rows to a new column or table. Nothing was changed",
    parameters=("column",),
)
UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP = ErrorCondition(
    "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
    UnsupportedOperationError,
    "0AKDC",
    "ALTER TABLE CHANGE COLUMN is not supported for changing column {column}: {column} of {table} cannot be made "
    "{what}. Nothing was changed",
    parameters=("column",),
)
UNSUPPORTED_ALTER_TABLE = UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP.also(
    "ALTER TABLE {table}: {change} is not supported. Nothing was changed",
)
UNSUPPORTED_TYPE_CHANGE = UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP.also(
    "ALTER TABLE CHANGE COLUMN is not supported for changing column {column} from {oldType} to {newType}: column "
    "{column} of {table} cannot be changed from {old} to {new}: that is not a widening; write its rows to a new "
    "column or table. Nothing was changed",
    parameters=("column",),
)
TYPE_WIDENING_NOT_ENABLED = UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP.also(
    "ALTER TABLE CHANGE COLUMN is not supported for changing column {column} from {oldType} to {newType}: column "
    "{column} of {table} cannot be changed from {old} to {new}: set delta.enableTypeWidening=true first. Nothing "
    "was changed",
    parameters=("column",),
)
UNSUPPORTED_COMMENT_MAP_ARRAY = ErrorCondition(
    "DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY",
    UnsupportedOperationError,
    "0AKDC",
    "Can't add a comment to {column}. Adding a comment to a map key/value or array element is not supported: "
    "{column} of {table} cannot have a comment, only columns and fields of structs can. Nothing was changed",
    parameters=("column",),
)
UNSUPPORTED_DROP_CLUSTERING_COLUMN = ErrorCondition(
    "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN",
    UnsupportedOperationError,
    "0AKDC",
    "Dropping clustering columns ({columns:list}) is not allowed: clustering columns cannot be dropped: {table} "
    "is clustered by {columns:list}; change the clustering first. Nothing was changed",
    parameters=("columns",),
)
UNSUPPORTED_DROP_COLUMN = ErrorCondition(
    "DELTA_UNSUPPORTED_DROP_COLUMN",
    UnsupportedOperationError,
    "0AKDC",
    "DROP COLUMN is not supported for your Delta table {table}: that needs column mapping. Set the table property "
    "delta.columnMapping.mode=name first (readers and writers must know column mapping then). Nothing was changed",
)
UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE = ErrorCondition(
    "DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE",
    UnsupportedOperationError,
    "0AKDC",
    "Can only drop nested columns from StructType. Found {structType}: {column} of {table} cannot be dropped, it "
    "is a part of {struct}; only columns and fields of structs can be dropped. Nothing was changed",
    parameters=("column",),
)
UNSUPPORTED_DROP_PARTITION_COLUMN = ErrorCondition(
    "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN",
    UnsupportedOperationError,
    "0AKDC",
    "Dropping partition columns ({columns:list}) is not allowed: partition columns cannot be dropped: {table} is "
    "partitioned by {columns:list}. Nothing was changed",
    parameters=("columns",),
)
UNSUPPORTED_RENAME_COLUMN = ErrorCondition(
    "DELTA_UNSUPPORTED_RENAME_COLUMN",
    UnsupportedOperationError,
    "0AKDC",
    "Column rename is not supported for your Delta table {table}: that needs column mapping. Set the table property "
    "delta.columnMapping.mode=name first (readers and writers must know column mapping then). Nothing was changed",
)
WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED = ErrorCondition(
    "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
    UnsupportedOperationError,
    "0AKDC",
    "Failed to execute the command because DEFAULT values are not supported when adding new columns to previously "
    "existing Delta tables: column {column!r} cannot be added to {table} with a default: files written before have no "
    "value for it. Add it without, then set the default with alterColumn. Nothing was changed",
    parameters=("column",),
)


AGGREGATE_IN_CHECK_CONSTRAINT = ErrorCondition(
    "DELTA_AGGREGATE_IN_CHECK_CONSTRAINT",
    PredicateError,
    "42621",
    "Found {expression} in a CHECK constraint. Aggregate expressions are not allowed in CHECK constraints: "
    "{clause} uses {function}(), an aggregate function. Nothing was written",
    parameters=("expression", "function"),
)
AGGREGATE_IN_GENERATED_COLUMN = ErrorCondition(
    "DELTA_AGGREGATE_IN_GENERATED_COLUMN",
    PredicateError,
    "42621",
    "Found {expression}. A generated column cannot use an aggregate expression: {clause} uses {function}(), an "
    "aggregate function. Nothing was written",
    parameters=("expression", "function"),
)
CONSTRAINT_ALREADY_EXISTS = ErrorCondition(
    "DELTA_CONSTRAINT_ALREADY_EXISTS",
    SchemaError,
    "42710",
    "Constraint '{constraintName}' already exists. Please delete the old constraint first. {table} has it already: "
    "{oldConstraint}. Nothing was written",
    parameters=("constraintName", "oldConstraint"),
)
CONSTRAINT_DOES_NOT_EXIST = ErrorCondition(
    "DELTA_CONSTRAINT_DOES_NOT_EXIST",
    InvalidOptionError,
    "42704",
    "Cannot drop nonexistent constraint {constraintName} from table {table}: {table} has no constraint "
    "{constraintName!r}; it has {there}. Nothing was written",
    parameters=("constraintName",),
)
GENERATED_COLUMN_WITH_DEFAULT = ErrorCondition(
    "DELTA_GENERATED_COLUMN_WITH_DEFAULT",
    SchemaError,
    "0AKDC",
    "{owner} also has a default, which is not possible. Nothing was written",
    parameters=("columnName",),
)
GENERATED_COLUMN_CANNOT_HAVE_DEFAULT = GENERATED_COLUMN_WITH_DEFAULT.also(
    "{column} of {table} cannot have a default, it is generated. Nothing was changed",
    parameters=("column",),
    error=UnsupportedOperationError,
)
IDENTITY_COLUMNS_ILLEGAL_STEP = ErrorCondition(
    "DELTA_IDENTITY_COLUMNS_ILLEGAL_STEP",
    SchemaError,
    "42611",
    "IDENTITY column step cannot be 0: identity column {colName!r} of {table} has a step of 0, which is not "
    "possible. Nothing was written",
    parameters=("colName",),
)
IDENTITY_COLUMNS_WITH_DEFAULT = ErrorCondition(
    "DELTA_IDENTITY_COLUMNS_WITH_DEFAULT",
    SchemaError,
    "0AKDC",
    "identity column {colName!r} of {table} also has a default, which is not possible. Nothing was written",
    parameters=("colName",),
)
IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION = ErrorCondition(
    "DELTA_IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION",
    SchemaError,
    "42613",
    "IDENTITY column cannot be specified with a generated column expression: identity column {colName!r} of "
    "{table} is also generated, which is not possible. Nothing was written",
    parameters=("colName",),
)
INVALID_CONSTRAINT_NAME = ErrorCondition(
    "DELTA_INVALID_CONSTRAINT_NAME",
    SchemaError,
    "42939",
    "Cannot use '' as the name of a CHECK constraint: a constraint needs a name",
)
INVALID_DEFAULT_VALUE_DATA_TYPE = ErrorCondition(
    "INVALID_DEFAULT_VALUE.DATA_TYPE",
    SchemaError,
    "42623",
    "{reason}",
    parameters=("column",),
)
INVALID_DEFAULT_VALUE_NOT_CONSTANT = ErrorCondition(
    "INVALID_DEFAULT_VALUE.NOT_CONSTANT",
    SchemaError,
    "42623",
    "{clause} uses the column {used}, but a default is a constant. Nothing was written",
    parameters=("column", "expression"),
)
NEW_CHECK_CONSTRAINT_VIOLATION = ErrorCondition(
    "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
    InvariantViolationError,
    "23512",
    "rows in {table} violate the new CHECK constraint ({expression}) that would be {constraint}; correct or "
    "delete them first. Nothing was written",
    parameters=("constraint", "expression"),
)
NON_BOOLEAN_CHECK_CONSTRAINT = ErrorCondition(
    "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
    PredicateError,
    "42621",
    "CHECK constraint '{name}' ({expr}) should be a boolean expression, but is of type {type} on {table}. "
    "Nothing was written",
    parameters=("name", "expr"),
)
NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT = ErrorCondition(
    "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT",
    PredicateError,
    "42621",
    "Found {expression} in a CHECK constraint. A CHECK constraint cannot use a nondeterministic expression: "
    "{clause} uses {function}(), a function that does not give the same value each time. Nothing was written",
    parameters=("expression", "function"),
)
NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN = ErrorCondition(
    "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN",
    PredicateError,
    "42621",
    "Found {expression}. A generated column cannot use a non deterministic expression: {clause} uses "
    "{function}(), a function that does not give the same value each time. Nothing was written",
    parameters=("expression", "function"),
)
UNSUPPORTED_GENERATED_NESTED_COLUMN = ErrorCondition(
    "DELTA_UNSUPPORTED_GENERATED_NESTED_COLUMN",
    SchemaError,
    "0AKDC",
    "field {column!r} of {table} lies inside another column, where nothing can be generated and no "
    "default applies. Nothing was written",
    parameters=("column",),
)
WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED = ErrorCondition(
    "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
    InvalidOptionError,
    "0AKDE",
    "Failed to execute the command because it assigned a column DEFAULT value, but the corresponding table "
    "feature was not enabled: column {column!r} of {table} has a default, but the table does not support the "
    "feature allowColumnDefaults: set delta.feature.allowColumnDefaults to 'supported' first. Nothing was written",
    parameters=("column",),
)
