"""Conditions of writes, of options of reads and writes, and of session settings."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import (
    ChangeDataError,
    InvalidOptionError,
    InvariantViolationError,
    PredicateError,
    SchemaError,
    TableExistsError,
    UnsupportedOperationError,
)

CLUSTER_BY_WITH_PARTITIONED_BY = ErrorCondition(
    "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
    UnsupportedOperationError,
    "42613",
    "Clustering and partitioning cannot both be specified: {table} would have both partitions "
    "({partition_columns:list}) and clustering ({columns:list}); choose one. Nothing was written",
)
CLUSTER_BY_WITH_PARTITION_BY_OPTION = CLUSTER_BY_WITH_PARTITIONED_BY.also(
    "Clustering and partitioning cannot both be specified: 'partitionBy' and 'clusterBy' exclude each other: a "
    "clustered table has no partitions",
    error=InvalidOptionError,
)
CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE = ErrorCondition(
    "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE",
    UnsupportedOperationError,
    "42000",
    "Replacing a clustered Delta table with a partitioned table is not allowed: the clustered table {table} "
    "cannot be replaced by one with partitions ({partition_columns:list}): its protocol keeps clustering, which "
    "excludes partitions. Drop the table first, or replace it by one that is clustered. Nothing was written",
)
INCOMPATIBLE_DATAFRAME_OPTIONS = ErrorCondition(
    "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS",
    InvalidOptionError,
    "42613",
    "The `{firstDeltaOption}` option cannot be used with the `{secondDeltaOption}` option for Delta tables; "
    "leave out one of them. Nothing was written",
    parameters=("firstDeltaOption", "secondDeltaOption"),
    family="argument",
)
INVALID_CONF_VALUE_TYPE_MISMATCH = ErrorCondition(
    "INVALID_CONF_VALUE.TYPE_MISMATCH",
    InvalidOptionError,
    "22022",
    "{setting} is {value!r}; it is true or false. Nothing was written",
    parameters=("setting",),
    family="argument",
)
INVALID_CONF_VALUE = INVALID_CONF_VALUE_TYPE_MISMATCH.also(
    "{setting} is {value!r}: {reason}",
)
INVALID_AUTO_COMPACT_TYPE = ErrorCondition(
    "DELTA_INVALID_AUTO_COMPACT_TYPE",
    InvalidOptionError,
    "22023",
    "Invalid auto-compact type: {value}. spark.databricks.delta.autoCompact.enabled is true or false",
    parameters=("value",),
    family="argument",
)
INVALID_IDEMPOTENT_WRITES_OPTIONS = ErrorCondition(
    "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
    InvalidOptionError,
    "42616",
    "Invalid options for idempotent Dataframe writes: an idempotent write needs both 'txnAppId' and 'txnVersion'",
    parameters=("reason",),
    family="argument",
)
INVALID_IDEMPOTENT_WRITES_SETTINGS = INVALID_IDEMPOTENT_WRITES_OPTIONS.also(
    "Invalid options for idempotent Dataframe writes: spark.databricks.delta.write.txnAppId and "
    "spark.databricks.delta.write.txnVersion go together, and the version is a whole number that is not "
    "negative; they are {app_id!r} and {version!r}. Nothing was written",
)
INVALID_TIMESTAMP_FORMAT = ErrorCondition(
    "DELTA_INVALID_TIMESTAMP_FORMAT",
    InvalidOptionError,
    "22007",
    "The provided timestamp {moment} does not match the expected syntax yyyyMMddHHmmssSSS: the path ends in @{moment}",
)
MULTIPLE_CDC_BOUNDARY = ErrorCondition(
    "DELTA_MULTIPLE_CDC_BOUNDARY",
    InvalidOptionError,
    "42614",
    "Multiple {end} arguments provided for CDC read: give either '{end}Version' or '{end}Timestamp' for a change "
    "feed, not both",
)
NET_CHANGES_KIND = ErrorCondition(
    "DELTA_NET_CHANGES_KIND",
    InvalidOptionError,
    "42616",
    "invalid value {net!r} for 'net': it is 'net' (the effect of all changes of a key) or 'latest' (the last of them)",
    parameters=("net",),
    family="argument",
)
NET_OPTION_WITHOUT_KEYS = ErrorCondition(
    "DELTA_NET_CHANGES_WITHOUT_KEYS",
    InvalidOptionError,
    "42601",
    "net={net} needs 'keys', the columns that identify rows: change files hold no row ids that could replace them",
    parameters=("net",),
    family="argument",
)
KEYS_OPTION_WITHOUT_NET = NET_OPTION_WITHOUT_KEYS.also(
    "'keys' goes with 'net', which says how the changes of a key are reduced: net or latest",
)
NO_START_FOR_CDC_READ = ErrorCondition(
    "DELTA_NO_START_FOR_CDC_READ",
    ChangeDataError,
    "42601",
    "No startingVersion or startingTimestamp provided for CDC read: reading the changes of {table} needs "
    "startingVersion or startingTimestamp",
)
NO_START_OPTION_FOR_CDC_READ = NO_START_FOR_CDC_READ.also(
    "No startingVersion or startingTimestamp provided for CDC read: a change feed needs 'startingVersion' or "
    "'startingTimestamp'",
    error=InvalidOptionError,
)
ONEOF_IN_TIMETRAVEL = ErrorCondition(
    "DELTA_ONEOF_IN_TIMETRAVEL",
    InvalidOptionError,
    "42601",
    "Please either provide 'timestampAsOf' or 'versionAsOf' for time travel: give either 'versionAsOf' or "
    "'timestampAsOf', not both",
    family="argument",
)
ONEOF_IN_RESTORE = ONEOF_IN_TIMETRAVEL.also(
    "Please either provide 'timestampAsOf' or 'versionAsOf' for time travel: give either a version or a "
    "timestamp to restore {table} to. Nothing was written",
)
REGEX_OPT_SYNTAX_ERROR = ErrorCondition(
    "DELTA_REGEX_OPT_SYNTAX_ERROR",
    InvalidOptionError,
    "2201B",
    family="argument",
)
REPLACE_WHERE_IN_OVERWRITE = ErrorCondition(
    "DELTA_REPLACE_WHERE_IN_OVERWRITE",
    InvalidOptionError,
    "42613",
    "You can't use replaceWhere in conjunction with an overwrite by filter: the option replaceWhere cannot be "
    "combined with overwrite(condition), which names what is replaced; leave one of them out. Nothing was written",
    family="argument",
)
REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE = ErrorCondition(
    "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
    InvalidOptionError,
    "42613",
    "A 'replaceWhere' expression and 'partitionOverwriteMode'='dynamic' cannot both be set in the "
    "DataFrameWriter options: 'replaceWhere' and partitionOverwriteMode=dynamic exclude each other: both name "
    "what to replace. Give one of them",
    family="argument",
)
STARTING_VERSION_AND_TIMESTAMP_BOTH_SET = ErrorCondition(
    "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
    InvalidOptionError,
    "42613",
    "Please either provide 'startingVersion' or 'startingTimestamp': give either 'startingVersion' or "
    "'startingTimestamp', not both",
    family="argument",
)
TIMESTAMP_INVALID = ErrorCondition(
    "DELTA_TIMESTAMP_INVALID",
    InvalidOptionError,
    "42816",
    "The provided timestamp ({timestamp!r}) cannot be converted to a valid timestamp of table {table}: {reason}. "
    "Nothing was written",
    parameters=("timestamp",),
)
TIME_TRAVEL_INVALID_BEGIN_VALUE = ErrorCondition(
    "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
    InvalidOptionError,
    "42604",
    family="argument",
)
VERSION_INVALID = ErrorCondition("DELTA_VERSION_INVALID", InvalidOptionError, "42815")
UNSUPPORTED_OUTPUT_MODE = ErrorCondition(
    "DELTA_UNSUPPORTED_OUTPUT_MODE",
    UnsupportedOperationError,
    "0AKDC",
    "Data source pydelta does not support {mode} output mode: a table does not support output mode {mode!r}: "
    "rows that change cannot be told from new ones. Use foreachBatch with DeltaTable.merge, or the modes append "
    "and complete",
    parameters=("mode",),
)
UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS = ErrorCondition(
    "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS",
    InvalidOptionError,
    "42613",
    "Cannot specify time travel in multiple formats: the path ends in a version or moment, and an option names "
    "one as well; give one of them",
)
UNSUPPORTED_TIME_TRAVEL_VIEWS = ErrorCondition(
    "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
    InvalidOptionError,
    "0AKDC",
)
UNSUPPORTED_TIME_TRAVEL_OF_CHANGES = UNSUPPORTED_TIME_TRAVEL_VIEWS.also(
    "Cannot time travel views, subqueries, streams or change data feed queries: a change feed cannot travel in "
    "time: use startingVersion and endingVersion (or the timestamps) instead of versionAsOf and timestampAsOf",
)
UNSUPPORTED_TIME_TRAVEL_BY_PATH = UNSUPPORTED_TIME_TRAVEL_VIEWS.also(
    "Cannot time travel views, subqueries, streams or change data feed queries: the path ends in a version or "
    "moment, but a change feed cannot travel in time",
)
UNSUPPORTED_TIME_TRAVEL_OF_STREAM = UNSUPPORTED_TIME_TRAVEL_VIEWS.also(
    "Cannot time travel views, subqueries, streams or change data feed queries: a stream cannot travel in time, "
    "so it does not accept {travels!r}: use startingVersion or startingTimestamp",
)


CLUSTERING_COLUMNS_MISMATCH = ErrorCondition(
    "DELTA_CLUSTERING_COLUMNS_MISMATCH",
    InvalidOptionError,
    "42P10",
    "The provided clustering columns do not match the existing table's: {table} is clustered by {now}, not by "
    "{cluster_by}. Use DeltaTable.forPath(...).clusterBy(...)",
)
DATA_CHANGE_FALSE = ErrorCondition(
    "DELTA_DATA_CHANGE_FALSE",
    UnsupportedOperationError,
    "0AKDE",
    "Cannot change table metadata because the 'dataChange' option is set to false: dataChange=false only "
    "rearranges the rows of {table}; it cannot change its schema or partitioning",
)
DATA_CHANGE_FALSE_OF_NEW_TABLE = DATA_CHANGE_FALSE.also(
    "Cannot change table metadata because the 'dataChange' option is set to false: the write creates a new table "
    "at {table}, so dataChange=false makes no sense: there are no rows to rearrange. Leave the option out",
)
NON_PARTITION_COLUMN_REFERENCE = ErrorCondition(
    "DELTA_NON_PARTITION_COLUMN_REFERENCE",
    PredicateError,
    "42P10",
    "Predicate references non-partition column '{columnName}'. Only the partition columns may be referenced: "
    "[{columnList:list}]. Nothing was written to {table}",
    parameters=("columnName", "columnList"),
)
NON_PARTITION_COLUMN_IN_REPLACE_WHERE = NON_PARTITION_COLUMN_REFERENCE.also(
    "Predicate references non-partition column '{columnName}'. Only the partition columns may be referenced: "
    "[{columnList:list}] of {table}, as spark.databricks.delta.replaceWhere.dataColumns.enabled is false. "
    "Nothing was written",
    parameters=("columnName", "columnList"),
)
DYNAMIC_PARTITION_OVERWRITE_DISABLED = ErrorCondition(
    "DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED",
    InvalidOptionError,
    "0A000",
    "Dynamic partition overwrite mode is specified by session config or write options, but it is disabled: "
    "partitionOverwriteMode=dynamic is said by the session, the options or the call of the write to {table}, and "
    "disabled by {setting}=false: set that to true, or partitionOverwriteMode to static, by which an overwrite "
    "replaces the whole table. Nothing was written",
    family="argument",
)
OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE = ErrorCondition(
    "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
    InvalidOptionError,
    "42613",
    "'overwriteSchema' cannot be used in dynamic partition overwrite mode: 'overwriteSchema' replaces all of "
    "{table} and cannot be combined with partitionOverwriteMode=dynamic; leave out one of them",
    family="argument",
)
PATH_EXISTS = ErrorCondition(
    "DELTA_PATH_EXISTS",
    TableExistsError,
    "42K04",
    "Cannot write to already existent path {path} without setting OVERWRITE = 'true': there is a table already "
    "(version {version}), and the save mode is errorifexists. Use mode('append'), mode('overwrite') or mode('ignore'). "
    "Nothing was written",
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
    "'replaceWhere' cannot be used with data filters when 'dataChange' is set to false. Filters: {text}. "
    "dataChange=false can only be combined with a replaceWhere on partition columns, not with {text!r} on {table}",
)

# --- rows of a write that say which rows of the table they take the place of: `replaceUsing` and `replaceOn`

DYNAMIC_PARTITION_OVERWRITE_WITH_REPLACE_ON_OR_USING = ErrorCondition(
    "DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING",
    InvalidOptionError,
    "42613",
    "Dynamic partition overwrite is incompatible with the `replaceOn`/`replaceUsing` option: "
    "'partitionOverwriteMode' cannot be combined with 'replaceOn' or 'replaceUsing', nor can "
    "overwritePartitions(): each says what is replaced. Leave out one of them. Nothing was written",
    family="argument",
)
OVERWRITE_BY_FILTER_WITH_REPLACE_ON_OR_USING = ErrorCondition(
    "DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING",
    InvalidOptionError,
    "42613",
    "Overwrite by filter is incompatible with the `replaceOn`/`replaceUsing` option: 'replaceWhere', or the "
    "condition of overwrite(...), cannot be combined with 'replaceOn' or 'replaceUsing': each says what is "
    "replaced. Leave out one of them. Nothing was written",
    family="argument",
)
REPLACE_ON_AMBIGUOUS = ErrorCondition(
    "DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION",
    SchemaError,
    "42702",
    "Column(s) {columnNames} are ambiguous in the condition of INSERT REPLACE ON: in the condition of replaceOn, "
    "{text!r}, {columnNames} may be a column of {table} or of the rows. Give the table a name by the option "
    "'targetAlias' and the rows one by df.alias(...), and write it before the column. Nothing was written",
    parameters=("columnNames",),
)
REPLACE_ON_OR_USING_MISMATCH = ErrorCondition(
    "DELTA_REPLACE_ON_OR_USING_TABLE_CONSTRAINT_VIOLATION",
    InvariantViolationError,
    "44000",
    "Written data violates a table constraint during REPLACE ON/USING '{replaceExpression}'. "
    "{invariantViolationMessage}",
    parameters=("replaceExpression", "invariantViolationMessage"),
)
REPLACE_ON_OR_USING_NEEDS_SESSION = ErrorCondition(
    "DELTA_REPLACE_ON_OR_USING_NEEDS_SESSION",
    UnsupportedOperationError,
    "0AKDC",
    "'replaceOn' and 'replaceUsing' replace rows of {table} that match written ones, which a Spark session with "
    "delta_ds.register(spark) finds by a join. Register the session and write a DataFrame in it, or use "
    "'replaceWhere'. Nothing was written",
)
REPLACE_ON_OR_USING_OF_NEW_TABLE = ErrorCondition(
    "DELTA_DFV2_CREATE_REPLACE_INCOMPATIBLE_REPLACE_ON_OR_USING",
    InvalidOptionError,
    "42000",
    "DataFrame Writer V2 create()/replace()/createOrReplace() cannot be used with the `replaceOn` or "
    "`replaceUsing` option for Delta tables: 'replaceOn' and 'replaceUsing' replace rows of a table that stays; "
    "create(), replace() and createOrReplace() make one. Leave out the option. Nothing was written",
    family="argument",
)
REPLACE_ON_UNRESOLVED = ErrorCondition(
    "DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION",
    SchemaError,
    "42703",
    "Column(s) {columnNames} cannot be resolved in the condition of INSERT REPLACE ON: the condition of "
    "replaceOn, {text!r}, cannot be resolved: neither {table} nor the rows have {columnNames}. The table has "
    "{table_columns:list}; the rows have {row_columns:list}. Nothing was written",
    parameters=("columnNames",),
)
REPLACE_USING_MISALIGNED = ErrorCondition(
    "INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS",
    SchemaError,
    "42802",
    "INSERT REPLACE USING has misaligned columns: {misalignedReplaceUsingCols:list}. The position decides here, and "
    "they have another position in {table}. Move them to the same position, or write by name. Nothing was written",
    parameters=("misalignedReplaceUsingCols",),
)
REPLACE_USING_UNRESOLVED = ErrorCondition(
    "UNRESOLVED_INSERT_REPLACE_USING_COLUMN",
    SchemaError,
    "42703",
    "Column {colName} cannot be resolved in {relationType}. Did you mean one of the following? "
    "[{suggestion:list}]: it is a column of replaceUsing on {table}. Nothing was written",
    parameters=("colName", "relationType", "suggestion"),
)
