"""The settings of delta-spark that a session may have, as one record each; `docs/settings.md` is made of them.

Source: delta-spark 4.4, `DeltaSQLConf`.
"""

from __future__ import annotations

from collections.abc import Mapping

from delta_ds.records import dataclass

SETTING_PREFIX = "spark.databricks.delta."


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Attributes
    ----------
    name
        Without `spark.databricks.delta.`.
    default
        What holds without it, as text; None: nothing.
    meaning
        What it does; of one without effect, what is done whatever it says.
    honoured
        Whether it has an effect.
    """

    name: str
    default: str | None
    meaning: str
    honoured: bool = True

    @property
    def full_name(self) -> str:
        return SETTING_PREFIX + self.name

    def text(self, configuration: Mapping[str, str]) -> str | None:
        """What a session has set, or the default."""
        return configuration.get(self.full_name, self.default)


def _ignored(name: str, default: str | None, meaning: str) -> Setting:
    return Setting(name, default, meaning, honoured=False)


# What is written
AUTO_MERGE = Setting(
    "schema.autoMerge.enabled", "false",
    "the option `mergeSchema` of writes and streams that do not give it; schema evolution in MERGE",
)  # fmt: skip
PROPERTY_DEFAULTS = Setting(
    "properties.defaults.<name>", None,
    "the property `delta.<name>` of tables that are created, unless the call gives it; not of clones",
)  # fmt: skip
OPTIMIZE_WRITE = Setting(
    "optimizeWrite.enabled", None,
    "the option `optimizeWrite` of writes and streams that do not give it; goes before the table's property",
)  # fmt: skip
USER_METADATA = Setting(
    "commitInfo.userMetadata", None, "free text for the history of writes, streams and commands"
)
TXN_APP_ID = Setting(
    "write.txnAppId", None,
    "with `write.txnVersion`: a write or command counts once, however often it is tried",
)  # fmt: skip
TXN_VERSION = Setting("write.txnVersion", None, "see `write.txnAppId`")
CONSTRAINT_CHECK = Setting(
    "replaceWhere.constraintCheck.enabled", "true", "rows that do not match `replaceWhere` are refused"
)
DATA_COLUMNS = Setting(
    "replaceWhere.dataColumns.enabled", "true", "`replaceWhere` may name columns other than partition columns"
)

# What follows a write
AUTO_COMPACT = Setting(
    "autoCompact.enabled", None,
    "compact small files after writes; goes before the table's property",
)  # fmt: skip
AUTO_COMPACT_MIN_NUM_FILES = Setting(
    "autoCompact.minNumFiles", "50", "small files of a partition that start a compaction"
)
AUTO_COMPACT_MAX_FILE_SIZE = Setting("autoCompact.maxFileSize", "128m", "what they are joined up to")
AUTO_COMPACT_MIN_FILE_SIZE = Setting(
    "autoCompact.minFileSize", None,
    "smaller files are small; by default half of `autoCompact.maxFileSize`",
)  # fmt: skip

# Commands
OPTIMIZE_MIN_FILE_SIZE = Setting("optimize.minFileSize", "1g", "OPTIMIZE joins smaller files")
OPTIMIZE_MAX_FILE_SIZE = Setting("optimize.maxFileSize", "1g", "what they are joined up to")
OPTIMIZE_MAX_DELETED_ROWS_RATIO = Setting(
    "optimize.maxDeletedRowsRatio", "0.05",
    "OPTIMIZE rewrites files with a larger share of deleted rows",
)  # fmt: skip
CLUSTERING_MIN_CUBE_SIZE = Setting(
    "optimize.clustering.mergeStrategy.minCubeSize.threshold", "100g",
    "files clustered together are left alone from this size on",
)  # fmt: skip
CLUSTERING_TARGET_CUBE_SIZE = Setting(
    "optimize.clustering.mergeStrategy.targetCubeSize.threshold", "150g",
    "up to this size files are clustered together",
)  # fmt: skip
ZORDER_CHECK_STATISTICS = Setting(
    "optimize.zorder.checkStatsCollection.enabled", "true",
    "Z-order only by columns with statistics",
)  # fmt: skip
RETENTION_CHECK = Setting(
    "retentionDurationCheck.enabled", "true", "VACUUM refuses a retention shorter than the table's"
)
RETENTION_IGNORED = Setting(
    "vacuum.retentionWindowIgnore.enabled", "true",
    "VACUUM in SQL keeps to the table's retention where RETAIN says a shorter one, but for 0 hours",
)  # fmt: skip
VACUUM_LOGGING = Setting("vacuum.logging.enabled", "true", "VACUUM leaves two entries in the history")
RESTORE_PROTOCOL_DOWNGRADE = Setting(
    "restore.protocolDowngradeAllowed", "false", "RESTORE takes the protocol back too"
)
ARBITRARY_PROPERTIES = Setting(
    "allowArbitraryProperties.enabled", "false",
    "tables may be given properties `delta.*` that do not exist, and that nothing acts on",
)  # fmt: skip
COLLECT_STATISTICS = Setting("stats.collect", "true", "convertToDelta collects statistics; writes always do")
DROP_IF_EXISTS = Setting(
    "constraints.assumesDropIfExists.enabled", "false",
    "`dropConstraint` of a constraint that is not there only makes a commit that says so",
)  # fmt: skip

HONOURED = tuple(known for known in tuple(globals().values()) if isinstance(known, Setting))

# What is so whatever they say
WITHOUT_EFFECT: tuple[Setting, ...] = (
    _ignored("dynamicPartitionOverwrite.enabled", "true", "`partitionOverwriteMode` counts"),
    _ignored(
        "write.txnVersion.autoReset.enabled", "false",
        "`write.txnVersion` stays as it is set: set it anew for each write",
    ),
    _ignored(
        "optimizeWrite.binSize", "512MiB",
        "small files are joined up to the table's `delta.targetFileSize`",
    ),
    _ignored("optimize.repartition.enabled", "false", "OPTIMIZE needs no shuffle to join files"),
    _ignored("stalenessLimit", "0ms", "reads see the newest version"),
    _ignored("checkLatestSchemaOnRead", "true", "reads check the schema"),
    _ignored(
        "timeTravel.resolveOnIdentifier.enabled", "true",
        "`path@v1` is time travel where there is no such folder",
    ),
    _ignored("timeTravel.parsing.strict", "true", "a timestamp that cannot be read is refused"),
    _ignored("changeDataFeed.timestampOutOfRange.enabled", "false", "timestamps beyond the last commit are refused"),
    _ignored(
        "changeDataFeed.defaultSchemaModeForColumnMappingTable", "endVersion",
        "change feeds have the schema of their end",
    ),
    _ignored(
        "changeDataFeed.unsafeBatchReadOnIncompatibleSchemaChanges.enabled", "false",
        "change feeds across such changes are refused",
    ),
    _ignored(
        "streaming.unsafeReadOnIncompatibleColumnMappingSchemaChanges.enabled", "false",
        "streams stop at such changes; use `schemaTrackingLocation`",
    ),
    _ignored(
        "streaming.unsafeReadOnIncompatibleSchemaChangesDuringStreamStart.enabled", "false",
        "streams stop at such changes; use `schemaTrackingLocation`",
    ),
    _ignored(
        "streaming.unsafeReadOnNullabilityChange.enabled", "false",
        "streams stop at such changes; use `schemaTrackingLocation`",
    ),
    _ignored(
        "streaming.unsafeReadOnPartitionColumnChanges.enabled", "false",
        "streams stop at such changes; use `schemaTrackingLocation`",
    ),
    _ignored(
        "typeWidening.allowAutomaticWidening", "ALWAYS",
        "schema evolution widens types where the table allows it",
    ),
    _ignored("stats.skipping", "true", "files are always skipped by statistics"),
    _ignored("delete.deletionVectors.persistent", "true", "the table's `delta.enableDeletionVectors` decides"),
    _ignored("update.deletionVectors.persistent", "true", "the table's `delta.enableDeletionVectors` decides"),
    _ignored("merge.deletionVectors.persistent", "true", "the table's `delta.enableDeletionVectors` decides"),
    _ignored("merge.repartitionBeforeWrite.enabled", "true", "rows of a MERGE are always arranged by partitions"),
    _ignored("merge.optimizeInsertOnlyMerge.enabled", "true", "a MERGE that only inserts is always one join"),
    _ignored("merge.optimizeMatchedOnlyMerge.enabled", "true", "MERGE chooses its join by its clauses"),
    _ignored("merge.materializeSource", "auto", "sources that are not constants are evaluated once"),
    _ignored("vacuum.parallelDelete.enabled", "false", "VACUUM always deletes in parallel"),
    _ignored("vacuum.parallelDelete.parallelism", None, "VACUUM chooses how many files it deletes at once"),
    _ignored("vacuum.lite.enabled", "false", "`vacuum(mode=\"LITE\")` asks for it"),
    _ignored(
        "vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration", "true",
        "versions are read as long as their files are there",
    ),
    _ignored(
        "vacuum.enforceDeletedFileAndLogRetentionDurationCompatibility", "true",
        "the two retentions are the table's own affair",
    ),
    _ignored("writeChecksumFile.enabled", "true", "checksum files are always written"),
    _ignored("checkpoint.partSize", None, "classic checkpoints are one file"),
    _ignored("maxCommitAttempts", "10000000", "a commit is tried until it conflicts"),
    _ignored("snapshotPartitions", None, "a table's log is read without Spark"),
    _ignored("convert.metadataCheck.enabled", "true", "folders are converted, not entries of a catalog"),
    _ignored(
        "convert.partitionValues.ignoreCastFailure", "false",
        "a partition value that does not fit its type is refused",
    ),
    _ignored("alterLocation.bypassSchemaCheck", "false", "tables are known by their paths"),
)  # fmt: skip

SETTINGS = (*HONOURED, *WITHOUT_EFFECT)
