"""Every `delta.*` table property as one record: its type, its default, what acts on it and what it is for.

`APPEND_ONLY.of(metadata.configuration)` is the value that holds for a table. A table may carry any property; setting
one is checked (`check_property`), and those of one command together (`check_together`).

Source: PROTOCOL.md, "Table Properties"; delta-spark, `DeltaConfig.scala`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Generic, Literal, TypeVar, cast

from delta_ds.conditions.protocol import (
    CANNOT_MODIFY_TABLE_PROPERTY,
    INVALID_INTERVAL,
    UNKNOWN_CONFIGURATION,
    VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED,
)
from delta_ds.conditions.record import DELETED_FILE_RETENTION_TOO_LONG, LOG_RETENTION_TOO_SHORT
from delta_ds.kernel.base.value_types import (
    BOOLEAN,
    INTERVAL,
    SIZE,
    TEXT,
    NotAnIntervalError,
    ValueType,
    integer,
    matching,
    one_of,
    words,
)
from delta_ds.records import dataclass, field, replace

PREFIX = "delta."
FEATURE_PREFIX = "delta.feature."
CONSTRAINT_PREFIX = "delta.constraints."

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class TableProperty(Generic[T_co]):
    """One table property.

    Attributes
    ----------
    name
        In full, beginning with `delta.`; looked up ignoring case, stored in this spelling.
    default
        What holds without it, as text; None: nothing.
    type
        What its text may be.
    acts_on
        `read`, `write` or `both`; `nothing`: kept without effect; `refused`: cannot be set.
    meaning
        What it does, for the documentation.
    settable
        False for what only the engine itself may write.
    """

    name: str
    default: str | None
    type: ValueType[T_co]
    acts_on: Literal["read", "write", "both", "nothing", "refused"]
    meaning: str = ""
    settable: bool = True
    _default_value: T_co = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # A property without a default is declared with None among its values.
        value = cast("T_co", None) if self.default is None else self.type.parse(self.default)
        object.__setattr__(self, "_default_value", value)

    def __str__(self) -> str:
        return self.name

    def means(self, meaning: str, *, settable: bool = True) -> TableProperty[T_co]:
        """The property with what it does, and whether users may set it."""
        return replace(self, meaning=meaning, settable=settable)

    def of(self, configuration: Mapping[str, str]) -> T_co:
        """The value in a table's configuration, or the default.

        Raises
        ------
        InvalidOptionError
            The table holds a text that the property does not take.
        """
        text = configuration.get(self.name)
        return self._default_value if text is None else self.parse(text)

    def parse(self, text: str) -> T_co:
        """The value of a text; raises `InvalidOptionError` for one that the property does not take."""
        try:
            return self.type.parse(text)
        except ValueError as error:
            is_none = isinstance(error, NotAnIntervalError)
            wrong = INVALID_INTERVAL if is_none else VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED
            raise wrong(value=text, property=self.name, reason=error) from error


# The protocol
MIN_READER_VERSION: TableProperty[int | None] = TableProperty(
    "delta.minReaderVersion", None, integer(1, 3), "write"
).means("raises the reader version of the table's protocol to at least this; it is not stored")
MIN_WRITER_VERSION: TableProperty[int | None] = TableProperty(
    "delta.minWriterVersion", None, integer(1, 7), "write"
).means("raises the writer version of the table's protocol to at least this; it is not stored")
IGNORE_PROTOCOL_DEFAULTS = TableProperty("delta.ignoreProtocolDefaults", "false", BOOLEAN, "write").means(
    "a new table takes no protocol versions and features from the defaults of the session; it is not stored"
)

# What writers enforce and record
APPEND_ONLY = TableProperty("delta.appendOnly", "false", BOOLEAN, "write").means(
    "rows are only added: commits that change or remove rows are refused"
)
ISOLATION_LEVEL = TableProperty(
    "delta.isolationLevel", "Serializable", one_of("Serializable", "WriteSerializable"), "write"
).means(
    "how strictly a commit is checked against those that came in between: `WriteSerializable` lets blind appends pass"
)
ENABLE_CHANGE_DATA_FEED = TableProperty("delta.enableChangeDataFeed", "false", BOOLEAN, "both").means(
    "commits record which rows they change, for `readChangeFeed`"
)
ENABLE_DELETION_VECTORS = TableProperty("delta.enableDeletionVectors", "false", BOOLEAN, "write").means(
    "DELETE, UPDATE and MERGE mark rows as deleted in place of rewriting their files"
)
COLUMN_MAPPING_MODE = TableProperty(
    "delta.columnMapping.mode", "none", one_of("none", "name", "id"), "both"
).means("columns are found in files by a name or an id of their own, so that they can be renamed and dropped")
COLUMN_MAPPING_MAX_ID = TableProperty("delta.columnMapping.maxColumnId", "0", integer(0), "write").means(
    "the highest id that a column ever had", settable=False
)
ENABLE_ROW_TRACKING = TableProperty("delta.enableRowTracking", "false", BOOLEAN, "both").means(
    "every row has an id and the version of its last change, which survive rewrites"
)
ROW_TRACKING_SUSPENDED = TableProperty("delta.rowTrackingSuspended", "false", BOOLEAN, "write").means(
    "new files get no row ids, as is needed to drop the feature `rowTracking`"
)
ROW_ID_COLUMN: TableProperty[str | None] = TableProperty(
    "delta.rowTracking.materializedRowIdColumnName", None, TEXT, "both"
).means("the column of rewritten files that holds row ids", settable=False)
ROW_COMMIT_VERSION_COLUMN: TableProperty[str | None] = TableProperty(
    "delta.rowTracking.materializedRowCommitVersionColumnName", None, TEXT, "both"
).means("the column of rewritten files that holds the version of a row's last change", settable=False)
ENABLE_TYPE_WIDENING = TableProperty("delta.enableTypeWidening", "false", BOOLEAN, "write").means(
    "types of columns may become wider without rewriting files, as INT to BIGINT"
)
ENABLE_VARIANT_SHREDDING = TableProperty("delta.enableVariantShredding", "false", BOOLEAN, "write").means(
    "fields of variants may lie in Parquet columns of their own"
)
ENABLE_IN_COMMIT_TIMESTAMPS = TableProperty("delta.enableInCommitTimestamps", "false", BOOLEAN, "both").means(
    "the time of a commit is in the commit, not the time of its file"
)
# ICT: in-commit timestamps.
ICT_ENABLEMENT_VERSION: TableProperty[int | None] = TableProperty(
    "delta.inCommitTimestampEnablementVersion", None, integer(0), "both"
).means("the first version with a time in its commit, where earlier ones have none", settable=False)
ICT_ENABLEMENT_TIMESTAMP: TableProperty[int | None] = TableProperty(
    "delta.inCommitTimestampEnablementTimestamp", None, integer(0), "both"
).means("the time of that version, in milliseconds since 1970", settable=False)

# Data files
PARQUET_COMPRESSION_CODEC = TableProperty(
    "delta.parquet.compression.codec",
    "zstd",
    one_of("zstd", "snappy", "gzip", "lz4", "lz4_raw", "brotli", "none", "uncompressed"),
    "write",
).means("the compression of data files")
PARQUET_FORMAT_VERSION = TableProperty(
    "delta.parquet.format.version", "1.0.0", matching(r"1\.0\.0|2\.[0-9]+\.[0-9]+", "1.0.0 or 2.x.y"), "write"
).means("the version of the Parquet format: from 2 on, data pages have the newer form")
DATA_SKIPPING_NUM_INDEXED_COLS = TableProperty(
    "delta.dataSkippingNumIndexedCols", "32", integer(-1), "write"
).means("how many columns, counted from the first, have statistics; -1: all")
DATA_SKIPPING_STATS_COLUMNS: TableProperty[str | None] = TableProperty(
    "delta.dataSkippingStatsColumns", None, TEXT, "write"
).means(
    "the columns that have statistics, separated by commas; goes before `delta.dataSkippingNumIndexedCols`"
)
DATA_SKIPPING_STRING_PREFIX_LENGTH = TableProperty(
    "delta.dataSkippingStringPrefixLength", "32", integer(1), "write"
).means("how many characters of a text its bounds in statistics keep")
RANDOMIZE_FILE_PREFIXES = TableProperty("delta.randomizeFilePrefixes", "false", BOOLEAN, "write").means(
    "data files lie in folders of random names in place of folders of partitions"
)
RANDOM_PREFIX_LENGTH = TableProperty("delta.randomPrefixLength", "2", integer(1, 255), "write").means(
    "how many characters the names of random folders have; no file system has longer names than 255"
)
TARGET_FILE_SIZE: TableProperty[int | None] = TableProperty(
    "delta.targetFileSize", None, SIZE, "write"
).means(
    "about how many bytes a data file has that is written or optimized; without it, files are as large as they come"
)
TUNE_FILE_SIZES_FOR_REWRITES: TableProperty[bool | None] = TableProperty(
    "delta.tuneFileSizesForRewrites", None, BOOLEAN, "nothing"
).means("smaller files for tables that are often rewritten")
WRITE_PARTITION_COLUMNS_TO_PARQUET = TableProperty(
    "delta.writePartitionColumnsToParquet", "true", BOOLEAN, "write"
).means(
    "data files hold the partition columns as well, so that they can be read whatever becomes of the partitioning"
)
ENABLE_MATERIALIZE_PARTITION_COLUMNS = TableProperty(
    "delta.enableMaterializePartitionColumnsFeature", "false", BOOLEAN, "write"
).means("data files hold the partition columns as well, and the protocol obliges every writer to that")
AUTO_OPTIMIZE: TableProperty[bool | None] = TableProperty("delta.autoOptimize", None, BOOLEAN, "write").means(
    "older name of `delta.autoOptimize.autoCompact`"
)
OPTIMIZE_WRITE: TableProperty[bool | None] = TableProperty(
    "delta.autoOptimize.optimizeWrite", None, BOOLEAN, "write"
).means("small files of one partition are joined before a write commits; without it, they stay")
AUTO_COMPACT: TableProperty[bool | None] = TableProperty(
    "delta.autoOptimize.autoCompact", None, BOOLEAN, "write"
).means("small files of a partition are joined by a commit of its own after a write; without it, they stay")

# The log and its upkeep
CHECKPOINT_INTERVAL = TableProperty("delta.checkpointInterval", "10", integer(1), "write").means(
    "a checkpoint is written every so many commits"
)
CHECKPOINT_POLICY = TableProperty(
    "delta.checkpointPolicy", "classic", one_of("classic", "v2"), "write"
).means("`v2`: checkpoints have a manifest and sidecar files")
CHECKPOINT_WRITE_STATS_AS_JSON = TableProperty(
    "delta.checkpoint.writeStatsAsJson", "true", BOOLEAN, "write"
).means("checkpoints hold statistics as JSON text")
CHECKPOINT_WRITE_STATS_AS_STRUCT = TableProperty(
    "delta.checkpoint.writeStatsAsStruct", "true", BOOLEAN, "write"
).means("checkpoints hold statistics as typed columns, which are read faster")
CHECKPOINT_RETENTION = TableProperty(
    "delta.checkpointRetentionDuration", "interval 2 days", INTERVAL, "nothing"
).means("how long delta-spark keeps checkpoints that a newer one replaces")
LOG_RETENTION = TableProperty("delta.logRetentionDuration", "interval 30 days", INTERVAL, "write").means(
    "how long the history is kept: time travel goes back so far at least, as long as data files are there; not shorter "
    "than `delta.deletedFileRetentionDuration`, and a command that names only one counts the other's default"
)
DELETED_FILE_RETENTION = TableProperty(
    "delta.deletedFileRetentionDuration", "interval 1 week", INTERVAL, "write"
).means("how long data files stay that the table no longer needs, before VACUUM deletes them")
ENABLE_EXPIRED_LOG_CLEANUP = TableProperty("delta.enableExpiredLogCleanup", "true", BOOLEAN, "write").means(
    "commits older than `delta.logRetentionDuration` are deleted after a checkpoint"
)
SET_TRANSACTION_RETENTION: TableProperty[timedelta | None] = TableProperty(
    "delta.setTransactionRetentionDuration", None, INTERVAL, "both"
).means("how long the last version of an application (`txnAppId`) is remembered; without it, for ever")
CHECKPOINT_PROTECTION_BEFORE_VERSION = TableProperty(
    "delta.requireCheckpointProtectionBeforeVersion", "0", integer(0), "write"
).means(
    "clean-up takes away all versions before this one at once or none, as a dropped feature is still in them",
    settable=False,
)
TRUNCATE_HISTORY_RETENTION = TableProperty(
    "delta.dropFeatureTruncateHistory.retentionDuration", "interval 24 hours", INTERVAL, "write"
).means(
    "how old the traces of a feature must be before `dropFeatureSupport(..., truncateHistory=True)` cuts them off"
)
SYMLINK_MANIFEST_ENABLED = TableProperty(
    "delta.compatibility.symlinkFormatManifest.enabled", "false", BOOLEAN, "write"
).means("every commit updates the manifests for engines that do not know Delta")
SAMPLE_RETENTION = TableProperty(
    "delta.sampleRetentionDuration", "interval 7 days", INTERVAL, "nothing"
).means("how long samples of data are kept, of which there are none")
ENABLE_FULL_RETENTION_ROLLBACK = TableProperty(
    "delta.enableFullRetentionRollback", "true", BOOLEAN, "nothing"
).means("every version within the retention can be restored")

# Those by which every writer keeps up the log and what lies beside it, after its commit.
OF_UPKEEP: tuple[TableProperty[Any], ...] = (
    CHECKPOINT_INTERVAL,
    CHECKPOINT_WRITE_STATS_AS_JSON,
    CHECKPOINT_WRITE_STATS_AS_STRUCT,
    LOG_RETENTION,
    DELETED_FILE_RETENTION,
    ENABLE_EXPIRED_LOG_CLEANUP,
    SET_TRANSACTION_RETENTION,
    SYMLINK_MANIFEST_ENABLED,
)

# For readers of Iceberg
ENABLE_ICEBERG_COMPAT_V1 = TableProperty("delta.enableIcebergCompatV1", "false", BOOLEAN, "write").means(
    "data files can be read as those of an Iceberg table, by version 1 of the rules: no arrays and no maps"
)
ENABLE_ICEBERG_COMPAT_V2 = TableProperty("delta.enableIcebergCompatV2", "false", BOOLEAN, "write").means(
    "data files can be read as those of an Iceberg table, by version 2 of the rules"
)
UNIVERSAL_FORMAT_ENABLED_FORMATS: TableProperty[tuple[str, ...]] = TableProperty(
    "delta.universalFormat.enabledFormats", "", words("iceberg", "hudi"), "write"
).means("formats whose metadata is written beside the log: `iceberg`. Needs Iceberg compatibility")
ICEBERG_ATOMIC_CONVERSION_SUPPORTED = TableProperty(
    "delta.universalFormat.iceberg.atomicConversion.supported", "false", BOOLEAN, "nothing"
).means(
    "a catalog may write the metadata of Iceberg together with a commit; set on new tables, as by delta-spark"
)

# Not offered
ENABLE_CHANGE_DATA_CAPTURE: TableProperty[str | None] = TableProperty(
    "delta.enableChangeDataCapture", None, TEXT, "refused"
).means("older name of `delta.enableChangeDataFeed`")
ENABLE_ICEBERG_COMPAT_V3 = TableProperty("delta.enableIcebergCompatV3", "false", BOOLEAN, "refused").means(
    "data files can be read as an Iceberg table, by version 3 of the rules"
)
ENABLE_ICEBERG_WRITER_COMPAT_V1 = TableProperty(
    "delta.enableIcebergWriterCompatV1", "false", BOOLEAN, "refused"
).means("the table can be written as an Iceberg table too")
CAST_ICEBERG_TIME_TYPE = TableProperty("delta.castIcebergTimeType", "false", BOOLEAN, "refused").means(
    "times of day in a converted Iceberg table become numbers"
)
IGNORE_ICEBERG_BUCKET_PARTITION = TableProperty(
    "delta.ignoreIcebergBucketPartition", "false", BOOLEAN, "refused"
).means("buckets of a converted Iceberg table are not partitions")
COLUMN_MAPPING_HAS_DROPPED_OR_RENAMED: TableProperty[bool | None] = TableProperty(
    "delta.columnMapping.hasDroppedOrRenamed", None, BOOLEAN, "refused"
).means("a column was dropped or renamed since column mapping is on")
COMMIT_COORDINATOR: TableProperty[str | None] = TableProperty(
    "delta.coordinatedCommits.commitCoordinator-preview", None, TEXT, "refused"
).means("a service that decides on commits")
COMMIT_COORDINATOR_CONF: TableProperty[str | None] = TableProperty(
    "delta.coordinatedCommits.commitCoordinatorConf-preview", None, TEXT, "refused"
).means("how that service is reached")
COORDINATED_TABLE_CONF: TableProperty[str | None] = TableProperty(
    "delta.coordinatedCommits.tableConf-preview", None, TEXT, "refused"
).means("what that service keeps of the table")
REDIRECT_READER_WRITER: TableProperty[str | None] = TableProperty(
    "delta.redirectReaderWriter-preview", None, TEXT, "refused"
).means("reads and writes go to another table")
REDIRECT_WRITER_ONLY: TableProperty[str | None] = TableProperty(
    "delta.redirectWriterOnly-preview", None, TEXT, "refused"
).means("writes go to another table")

PROPERTIES: dict[str, TableProperty[Any]] = {
    known.name: known for known in tuple(globals().values()) if isinstance(known, TableProperty)
}

_BY_LOWER_NAME = {name.lower(): known for name, known in PROPERTIES.items()}


def canonical_name(name: str) -> str:
    """The spelling under which a property is stored; names that are no known property are as given."""
    declared = _BY_LOWER_NAME.get(name.lower())
    return name if declared is None else declared.name


@dataclass(frozen=True, slots=True)
class PropertyRules:
    """What a session says of the properties that users may set.

    Attributes
    ----------
    unknown
        Whether `delta.` names may be some that there are not.
    retentions
        Whether the log has to be kept as long as deleted files are.
    """

    unknown: bool = False
    retentions: bool = True


STRICT = PropertyRules()


def check_together(properties: Mapping[str, str], rules: PropertyRules = STRICT) -> None:
    """Check the properties of one command against each other.

    The log has to be kept as long as deleted files are: a version that it has lost has files which nobody can read
    any more. What counts is what the command names, and the default of what it does not name. Neither the table's own
    properties nor the defaults of a session count, as in delta-spark.

    Parameters
    ----------
    properties
        Names in any case to texts, each of which `check_property` takes.
    rules
        What the session says.

    Raises
    ------
    InvalidOptionError
        Two of them contradict each other.

    Source: delta-spark, `DeltaConfigs.validateTombstoneAndLogRetentionDurationCompatibility`.
    """
    given = {canonical_name(name): str(text) for name, text in properties.items()}
    if not rules.retentions or not {LOG_RETENTION.name, DELETED_FILE_RETENTION.name} & given.keys():
        return
    millisecond = timedelta(milliseconds=1)
    if LOG_RETENTION.of(given) // millisecond >= DELETED_FILE_RETENTION.of(given) // millisecond:
        return
    wrong = LOG_RETENTION_TOO_SHORT if LOG_RETENTION.name in given else DELETED_FILE_RETENTION_TOO_LONG
    raise wrong(
        log=LOG_RETENTION.name,
        log_kept=given.get(LOG_RETENTION.name, LOG_RETENTION.default),
        files=DELETED_FILE_RETENTION.name,
        files_kept=given.get(DELETED_FILE_RETENTION.name, DELETED_FILE_RETENTION.default),
    )


def check_property(name: str, value: str, rules: PropertyRules = STRICT) -> str:
    """Check a property that a user wants to set, and return the name to store it under.

    Names without `delta.` are the user's own; `delta.feature.*` and `delta.constraints.*` are checked where
    they are acted upon.

    Parameters
    ----------
    rules
        What the session says.

    Raises
    ------
    InvalidOptionError
        An unknown `delta.` name (with the nearest known one), a wrong value, or what cannot be set.
    """
    folded = name.lower()
    if not folded.startswith(PREFIX) or folded.startswith((FEATURE_PREFIX, CONSTRAINT_PREFIX)):
        return name
    declared = _BY_LOWER_NAME.get(folded)
    if declared is None and rules.unknown:
        return name
    if declared is None:
        import difflib  # opening a table asks for no such name

        near = difflib.get_close_matches(folded, _BY_LOWER_NAME, 1)
        hint = f"; did you mean {_BY_LOWER_NAME[near[0]].name}?" if near else ""
        raise UNKNOWN_CONFIGURATION(property=name, hint=hint)
    if declared.acts_on == "refused" or not declared.settable:
        why = (
            "is set by the engine only" if not declared.settable else "asks for what delta_ds does not offer"
        )
        raise CANNOT_MODIFY_TABLE_PROPERTY(property=declared.name, reason=why)
    declared.parse(value)
    return declared.name
