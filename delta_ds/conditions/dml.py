"""Conditions of DELETE, UPDATE and MERGE: clauses, assignments, expressions."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    InvalidOptionError,
    InvariantViolationError,
    PredicateError,
    SchemaError,
    UnsupportedOperationError,
)

AGGREGATION_NOT_SUPPORTED = ErrorCondition(
    "DELTA_AGGREGATION_NOT_SUPPORTED",
    UnsupportedOperationError,
    "42903",
    "Aggregate functions are not supported in the {clause} of {what} operation (condition = {expression}): on {table} "
    "it holds an aggregate, a window function, a generator or a field of _metadata, which is not computed from the "
    "columns of a row. Nothing was written",
    parameters=("expression",),
)
AMBIGUOUS_REFERENCE = ErrorCondition(
    "AMBIGUOUS_REFERENCE",
    SchemaError,
    "42704",
    "{clause} of the MERGE into {table}: the source has {count} columns {column}; names are the same in "
    "any case. Nothing was written",
    parameters=("column",),
)
AMBIGUOUS_REFERENCE_TO_SIDES = AMBIGUOUS_REFERENCE.also(
    "column {name} is of the table and of the source, which was made of the table; name the two sides by "
    "aliases",
    parameters=("name",),
)
AMBIGUOUS_REFERENCE_OF_BOTH = AMBIGUOUS_REFERENCE.also(
    "column {name} in {clause} of the MERGE into {table} is of the table and of the source: write {target} or "
    "{source}. Nothing was written",
    parameters=("name",),
)
APPLY_CHANGES_AMBIGUOUS = ErrorCondition(
    "DELTA_APPLY_CHANGES_AMBIGUOUS",
    InvariantViolationError,
    "21506",
    "two different rows for one key and place in the sequence cannot be applied to {table}: nothing decides which of "
    "them counts. Nothing was written; order events by more, as in sequenceBy('struct(ts, id)'). The key and its "
    'place: "{value}"',
    parameters=("value",),
)
APPLY_CHANGES_COLUMN = ErrorCondition(
    "DELTA_APPLY_CHANGES_COLUMN_NOT_FOUND",
    SchemaError,
    "42703",
    "the changes to be applied to {table} need the column {column!r}, which {where} does not have; {hint}. Nothing was "
    "written",
    parameters=("column",),
)
APPLY_CHANGES_COLUMN_TYPE = ErrorCondition(
    "DELTA_APPLY_CHANGES_COLUMN_TYPE",
    SchemaError,
    "42K09",
    "column {column!r} of {table} is of type {type}; to have changes applied it would be of {wanted}. Nothing was "
    "written",
    parameters=("column", "type"),
)
APPLY_CHANGES_SOURCE_TYPE = APPLY_CHANGES_COLUMN_TYPE.also(
    "column {column!r} of the changes to be applied to {table} is of type {type}, that of the table of {wanted}: cast "
    "it in the source. Nothing was written",
    parameters=("column", "type"),
)
APPLY_CHANGES_EXCLUSIVE = ErrorCondition(
    "DELTA_APPLY_CHANGES_EXCLUSIVE",
    InvalidOptionError,
    "42613",
    "lateEvents and trackHistory exclude each other for {table}: values that are not tracked are kept once a version, "
    "and an older event could not tell what they were. Nothing was written",
    family="argument",
)
APPLY_CHANGES_FEED_SEQUENCE = ErrorCondition(
    "DELTA_APPLY_CHANGES_FEED_SEQUENCE",
    InvalidOptionError,
    "42613",
    "the source of the changes for {table} is a change feed, which {sequence!r} does not put in order: a delete has "
    "the values of the row that is gone, and would count for older than that row. Nothing was written; leave "
    "sequenceBy out, or name _commit_version or _commit_timestamp. Where only rows are added, drop the columns "
    "_change_type, _commit_version and _commit_timestamp from the source first",
    parameters=("sequence",),
    family="argument",
)
APPLY_CHANGES_INCOMPLETE = ErrorCondition(
    "DELTA_APPLY_CHANGES_INCOMPLETE",
    InvalidOptionError,
    "42601",
    "to apply changes to {table}, say {what}: {how}. Nothing was written",
    family="argument",
)
APPLY_CHANGES_KEPT_COLUMN = ErrorCondition(
    "DELTA_APPLY_CHANGES_KEPT_COLUMN_MISSING",
    SchemaError,
    "42703",
    "{table} has no column {column!r}, which is kept of the changes that are applied to it. Nothing was written; add "
    "it: table.addColumns(StructType().add({quoted}, {type!r}))",
    parameters=("column", "type"),
)
APPLY_CHANGES_NULL = ErrorCondition(
    "DELTA_APPLY_CHANGES_NULL",
    InvariantViolationError,
    "23502",
    "a row with null in its key ({keys:list}) or its place in the sequence cannot be applied to {table}. Nothing was "
    'written; filter such rows. The key is "{value}"',
    parameters=("value",),
)
APPLY_CHANGES_OF_STREAM = ErrorCondition(
    "DELTA_APPLY_CHANGES_OF_STREAM",
    UnsupportedOperationError,
    "0A000",
    "the source of the changes for {table} is a stream: use writeStream() instead of execute(). Nothing was written",
    family="operation",
)
APPLY_CHANGES_OF_BATCH = APPLY_CHANGES_OF_STREAM.also(
    "the source of the changes for {table} is no stream: use execute() instead of writeStream(). Nothing was written",
)
CANNOT_RESOLVE_EXPRESSION = ErrorCondition("DELTA_CANNOT_RESOLVE_EXPRESSION", PredicateError, "42703")
CONFLICT_SET_COLUMN = ErrorCondition(
    "DELTA_CONFLICT_SET_COLUMN",
    SchemaError,
    "42701",
    "There is a conflict from these SET columns: [{columns:list}]. The {operation} of {table} assigns to "
    "{column} more than once: {columns:list}; names are the same in any case. Nothing was written",
    parameters=("columns",),
)
ASSIGNED_TWICE = CONFLICT_SET_COLUMN.also(
    "There is a conflict from these SET columns: [{column}, {column}]. The statement on {table} sets {column} "
    "more than once. Nothing was written",
    parameters=("column",),
)
DATATYPE_MISMATCH_CAST_WITHOUT_SUGGESTION = ErrorCondition(
    "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION",
    SchemaError,
    "42K09",
    "column {column} of {table} is of type {targetType}; a value of type {sourceType} cannot be cast to "
    "it. Nothing was written",
    parameters=("column", "sourceType", "targetType"),
)
DATATYPE_MISMATCH_FILTER_NOT_BOOLEAN = ErrorCondition(
    "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
    PredicateError,
    "42K09",
    "the {clause} of {what} on {table} is of type {type}, not boolean: {sqlExpr}. Nothing was written",
    parameters=("sqlExpr", "filter", "type"),
)
DUPLICATE_COLUMNS_ON_INSERT = ErrorCondition(
    "DELTA_DUPLICATE_COLUMNS_ON_INSERT",
    SchemaError,
    "42701",
    "Duplicate column names in INSERT clause: the {operation} of {table} gives two values for {column}; names "
    "are the same in any case. Nothing was written",
    parameters=("column",),
)
INSERTED_TWICE = DUPLICATE_COLUMNS_ON_INSERT.also(
    "Duplicate column names in INSERT clause: the statement on {table} inserts {column} more than once. Nothing "
    "was written",
    parameters=("column",),
)
IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED = ErrorCondition(
    "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
    UnsupportedOperationError,
    "42808",
    "UPDATE on IDENTITY column {column} is not supported: {column} is an identity column of {table}; its values "
    "are made by the table and cannot be changed. Leave it out. Nothing was written",
    parameters=("column",),
)
INVALID_EXTRACT_BASE_FIELD_TYPE = ErrorCondition(
    "INVALID_EXTRACT_BASE_FIELD_TYPE",
    SchemaError,
    "42000",
    "the {operation} of {table} assigns to {column}, but {struct} is of type {type}, not a struct. "
    "Nothing was written",
    parameters=("column",),
)
INVALID_NON_DETERMINISTIC_EXPRESSIONS = ErrorCondition(
    "INVALID_NON_DETERMINISTIC_EXPRESSIONS",
    UnsupportedOperationError,
    "42K0E",
    "the {clause} of {what} on {table} holds an expression that is not deterministic; compute it in the source, or "
    "before the command: {expression}. Nothing was written",
    parameters=("expression",),
)
MERGE_INTO_EMPTY_SCHEMA_TARGET = ErrorCondition(
    "DELTA_MERGE_INTO_EMPTY_SCHEMA_TARGET",
    SchemaError,
    "428GU",
    "Cannot MERGE INTO a table with no columns. The target table must have columns, or schema evolution must be "
    "enabled: {table} has none at version {version}. Nothing was written",
)
INVALID_WHERE_CONDITION = ErrorCondition("INVALID_WHERE_CONDITION", PredicateError, "42903")
JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE = ErrorCondition(
    "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE",
    PredicateError,
    "42K0E",
    DATATYPE_MISMATCH_FILTER_NOT_BOOLEAN.text,
    parameters=("sqlExpr", "filter", "type"),
)
MERGE_MISSING_WHEN = ErrorCondition(
    "DELTA_MERGE_MISSING_WHEN",
    UnsupportedOperationError,
    "42601",
    "There must be at least one WHEN clause in a MERGE statement: the MERGE into {table} has no WHEN clause; say "
    "what happens to rows that match, or that do not. Nothing was written",
)
MERGE_UNRESOLVED_EXPRESSION = ErrorCondition(
    "DELTA_MERGE_UNRESOLVED_EXPRESSION",
    SchemaError,
    "42601",
    "Cannot resolve {column} in {action} clause given columns of the source: for {clause} of the MERGE into {table} "
    "the source has no column {column!r}; {hint}. Name the columns that change, or merge with schema evolution. "
    "Nothing was written",
    parameters=("column", "clause"),
)
MERGE_UNRESOLVED_NAME = MERGE_UNRESOLVED_EXPRESSION.also(
    "Cannot resolve {column} in {clause} given columns: in the MERGE into {table} {where} has no column "
    "{column}; {hint}. Nothing was written",
    parameters=("column", "clause"),
)
MERGE_NEEDS_SPARK = ErrorCondition(
    "DELTA_MERGE_NEEDS_SPARK",
    PredicateError,
    "0A000",
    "{what} of the MERGE into {table} holds {expression}, which cannot be evaluated without Spark: use "
    "DeltaTable.merge, or compute it in the source. Nothing was written",
    parameters=("expression",),
)
MISSING_AGGREGATION = ErrorCondition("MISSING_AGGREGATION", UnsupportedOperationError, "42803")
MISSING_ATTRIBUTES = ErrorCondition("MISSING_ATTRIBUTES", SchemaError, "XX000")
MISSING_GROUP_BY = ErrorCondition("MISSING_GROUP_BY", UnsupportedOperationError, "42803")
COMMAND_NEEDS_SPARK = ErrorCondition(
    "DELTA_COMMAND_NEEDS_SPARK",
    UnsupportedOperationError,
    "0A000",
    "the {operation} of {table} is for jobs of Spark: {reason}. Nothing was written",
    parameters=("operation", "reason"),
)
MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE = ErrorCondition(
    "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
    UnsupportedOperationError,
    "21506",
    "Cannot perform Merge as multiple source rows matched and attempted to modify the same target row in the "
    "Delta table {table} in possibly conflicting ways, so that it is not known which one counts. Make the rows "
    "of the source unique by the columns of the condition. Nothing was changed",
    parameters=("usageReference",),
    family="operation",
)
NESTED_AGGREGATE_FUNCTION = ErrorCondition("NESTED_AGGREGATE_FUNCTION", UnsupportedOperationError, "42607")
NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED = ErrorCondition(
    "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
    UnsupportedOperationError,
    "0AKDC",
    "Non-deterministic functions are not supported in the {clause} of {what} operation (condition = "
    "{expression}): on {table} it holds an expression that is not deterministic; compute it in the source, or "
    "before the command. Nothing was written",
    parameters=("expression",),
)
NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION = ErrorCondition(
    "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    UnsupportedOperationError,
    "42601",
    "When there are more than one MATCHED clauses in a MERGE statement, only the last MATCHED clause can omit "
    "the condition: the MERGE into {table} has a WHEN MATCHED clause without condition before another one, which "
    "would never be reached; put it last. Nothing was written",
)
NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION = ErrorCondition(
    "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
    UnsupportedOperationError,
    "42601",
    "When there are more than one NOT MATCHED BY SOURCE clauses in a MERGE statement, only the last NOT MATCHED "
    "BY SOURCE clause can omit the condition: the MERGE into {table} has a WHEN NOT MATCHED BY SOURCE clause "
    "without condition before another one, which would never be reached; put it last. Nothing was written",
)
NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION = ErrorCondition(
    "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
    UnsupportedOperationError,
    "42601",
    "When there are more than one NOT MATCHED clauses in a MERGE statement, only the last NOT MATCHED clause can "
    "omit the condition: the MERGE into {table} has a WHEN NOT MATCHED clause without condition before another "
    "one, which would never be reached; put it last. Nothing was written",
)
UNSUPPORTED_EXPR_FOR_OPERATOR = ErrorCondition(
    "UNSUPPORTED_EXPR_FOR_OPERATOR",
    UnsupportedOperationError,
    "42K0E",
    "the {clause} of {what} on {table} holds an aggregate, a window function, a generator or a field of _metadata, "
    "which is not computed from the columns of a row: {expression}. Nothing was written",
    parameters=("expression",),
)
UNSUPPORTED_GENERATOR = ErrorCondition("UNSUPPORTED_GENERATOR", UnsupportedOperationError, "42K0E")
UNSUPPORTED_NESTED_FIELD_IN_OPERATION = ErrorCondition(
    "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
    SchemaError,
    "0AKDC",
    "Nested field is not supported in the {operation} (field = {column}): the {operation} of {table} gives a "
    "value for {column}: give one for the whole struct. Nothing was written",
    parameters=("column",),
)
UNSUPPORTED_NESTED_FIELD_IN_UPDATE = ErrorCondition(
    "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE",
    SchemaError,
    "0A000",
    "Updating nested fields is only supported for StructType: the {operation} of {table} assigns to {column}, "
    "but {struct} is of type {type}: assign a whole new value to it. Nothing was written",
    parameters=("column",),
)
UNSUPPORTED_SUBQUERY = ErrorCondition(
    "DELTA_UNSUPPORTED_SUBQUERY",
    UnsupportedOperationError,
    "0AKDC",
    "Subqueries are not supported in the {clause} of {what} operation (condition = {expression}): on {table} it "
    "holds a subquery; join what it selects to the source of a merge. Nothing was written",
    parameters=("expression",),
)
UPDATE_SCHEMA_MISMATCH_EXPRESSION = ErrorCondition(
    "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
    SchemaError,
    "42846",
    "Cannot cast {sourceType} to {targetType}. All nested columns must match: a value of type {sourceType} "
    "cannot be assigned to {column} of {table}, which is of type {targetType}: {wrong}. Give all fields by their "
    "names, assign to single fields, or merge with schema evolution. Nothing was written",
    parameters=("column", "sourceType", "targetType"),
)
