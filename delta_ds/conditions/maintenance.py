"""Conditions of OPTIMIZE and VACUUM."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import InvalidOptionError, SchemaError, UnsupportedOperationError

CANNOT_VACUUM_LITE = ErrorCondition(
    "DELTA_CANNOT_VACUUM_LITE",
    UnsupportedOperationError,
    "55000",
    "VACUUM LITE of {table} is not possible: the log begins with version {earliest}, and {since}, so it "
    "does not say all that was removed up to version {last}. Nothing was deleted. Run a full VACUUM once",
    parameters=("earliest", "lastVacuum"),
    family="state",
)
CLUSTERING_WITH_PARTITION_PREDICATE = ErrorCondition(
    "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
    UnsupportedOperationError,
    "0A000",
    "OPTIMIZE of the clustered table {table} does not support partition predicates: clustered tables "
    "have no partitions. Remove the predicates {where:list}. Nothing was written",
    parameters=("predicates",),
    family="operation",
)
CLUSTERING_WITH_ZORDER_BY = ErrorCondition(
    "DELTA_CLUSTERING_WITH_ZORDER_BY",
    UnsupportedOperationError,
    "42613",
    "OPTIMIZE of the clustered table {table} does not support Z-order: it is arranged by its clustering "
    "columns. Remove {zOrderBy}, or change the columns with clusterBy. Nothing was written",
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
INVALID_AUTO_COMPACT_TYPE = ErrorCondition(
    "DELTA_INVALID_AUTO_COMPACT_TYPE",
    InvalidOptionError,
    "22023",
    "Invalid auto-compact type: {value}. spark.databricks.delta.autoCompact.enabled is true or false",
    parameters=("value",),
    family="argument",
)
INVALID_INVENTORY_SCHEMA = ErrorCondition(
    "DELTA_INVALID_INVENTORY_SCHEMA",
    InvalidOptionError,
    "42000",
    "the inventory for the VACUUM of {table} does not have the columns {expectedSchema}: {what}. Nothing "
    "was deleted",
    parameters=("expectedSchema",),
)
INVALID_INVENTORY_ROW = INVALID_INVENTORY_SCHEMA.also(
    "a row of the inventory for the VACUUM of {table} does not have {columns:list} ({reason}). Nothing "
    "was deleted",
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
    "the retention of VACUUM cannot be negative, and {retentionHours:g} hours is; nothing of {table} was "
    "deleted",
    parameters=("retentionHours",),
    family="argument",
)
VACUUM_RETENTION_PERIOD_TOO_SHORT = ErrorCondition(
    "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
    InvalidOptionError,
    "22003",
    "a retention of {retentionHours:g} hours is too short for table {table}: "
    "delta.deletedFileRetentionDuration keeps deleted files for {configuredRetentionHours} hours, and "
    "readers of older versions and writers that have not committed yet would lose files. Nothing was "
    "deleted. Use {configuredRetentionHours} hours or more; or, if nothing else reads or writes the "
    "table, set spark.databricks.delta.retentionDurationCheck.enabled to false",
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
    "Z-Ordering {table} on {cols:list} will be ineffective, because statistics are not collected for "
    "them. Name them in delta.dataSkippingStatsColumns, or raise delta.dataSkippingNumIndexedCols; or "
    "set spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled to false. Nothing was "
    "written",
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
