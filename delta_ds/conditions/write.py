"""Conditions of writes, and of what they overwrite."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    InvalidOptionError,
    InvariantViolationError,
    PredicateError,
    TableExistsError,
    UnsupportedOperationError,
)

CLUSTERING_COLUMNS_MISMATCH = ErrorCondition(
    "DELTA_CLUSTERING_COLUMNS_MISMATCH",
    InvalidOptionError,
    "42P10",
    "{table} is clustered by {now}, not by {cluster_by}. Use DeltaTable.forPath(...).clusterBy(...)",
)
DATA_CHANGE_FALSE = ErrorCondition(
    "DELTA_DATA_CHANGE_FALSE",
    UnsupportedOperationError,
    "0AKDE",
    "dataChange=false only rearranges the rows of {table}; it cannot change its schema or partitioning",
)
DATA_CHANGE_FALSE_OF_NEW_TABLE = DATA_CHANGE_FALSE.also(
    "the write creates a new table at {table}, so dataChange=false makes no sense: there are no rows to rearrange. "
    "Leave the option out",
)
NON_PARTITION_COLUMN_REFERENCE = ErrorCondition(
    "DELTA_NON_PARTITION_COLUMN_REFERENCE",
    PredicateError,
    "42P10",
    "Predicate references non-partition column {columnName!r}. Only the partition columns may be referenced: "
    "[{columnList:list}]. Nothing was written to {table}",
    parameters=("columnName", "columnList"),
)
NON_PARTITION_COLUMN_IN_REPLACE_WHERE = NON_PARTITION_COLUMN_REFERENCE.also(
    "Predicate references non-partition column {columnName!r}. Only those of {table} may be referenced: "
    "{partition_columns}, as spark.databricks.delta.replaceWhere.dataColumns.enabled is false. Nothing "
    "was written",
    parameters=("columnName", "columnList"),
)
OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE = ErrorCondition(
    "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
    InvalidOptionError,
    "42613",
    "'overwriteSchema' replaces all of {table} and cannot be combined with "
    "partitionOverwriteMode=dynamic; leave out one of them",
    family="argument",
)
PATH_EXISTS = ErrorCondition(
    "DELTA_PATH_EXISTS",
    TableExistsError,
    "42K04",
    "there is a table at {path} already (version {version}), and the save mode is errorifexists. Use "
    "mode('append'), mode('overwrite') or mode('ignore'). Nothing was written",
    parameters=("path", "version"),
)
REPLACE_WHERE_MISMATCH = ErrorCondition(
    "DELTA_REPLACE_WHERE_MISMATCH",
    InvariantViolationError,
    "44000",
    "Written data does not conform to partial table overwrite condition or constraint '{replaceWhere}' "
    "(replaceWhere). {message}",
    parameters=("replaceWhere", "message"),
)
REPLACE_WHERE_OF_OTHER_LAYOUT = ErrorCondition(
    "DELTA_REPLACE_WHERE_OF_OTHER_LAYOUT",
    InvalidOptionError,
    "42613",
    "version {version} of {table} cannot be replaced with replaceWhere: files with the remaining rows could no "
    "longer be read, because {reason}. Name the same columns, types, partitioning and column mapping as the table "
    "has, or replace all of it. Nothing was written",
    parameters=("table", "version", "reason"),
    family="argument",
)
REPLACE_WHERE_WITH_FILTER_DATA_CHANGE_UNSET = ErrorCondition(
    "DELTA_REPLACE_WHERE_WITH_FILTER_DATA_CHANGE_UNSET",
    InvalidOptionError,
    "42613",
    "dataChange=false can only be combined with a replaceWhere on partition columns, not with {text!r} on {table}",
)
