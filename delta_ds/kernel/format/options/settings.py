"""The settings of delta-spark that are honoured, as one record each; `docs/settings.md` is made of them.

Those that are not: `ignored_settings.py`. Source: delta-spark 4.4, `DeltaSQLConf`.
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


# What is written
AUTO_MERGE = Setting(
    "schema.autoMerge.enabled",
    "false",
    "the option `mergeSchema` of writes and streams that do not give it; schema evolution in MERGE",
)
PROPERTY_DEFAULTS = Setting(
    "properties.defaults.<name>",
    None,
    "the property `delta.<name>` of tables that are created, unless the call gives it; not of clones",
)
OPTIMIZE_WRITE = Setting(
    "optimizeWrite.enabled",
    None,
    "the option `optimizeWrite` of writes and streams that do not give it; goes before the table's property",
)
USER_METADATA = Setting(
    "commitInfo.userMetadata", None, "free text for the history of writes, streams and commands"
)
TXN_APP_ID = Setting(
    "write.txnAppId",
    None,
    "with `write.txnVersion`: a write or command counts once, however often it is tried",
)
TXN_VERSION = Setting("write.txnVersion", None, "see `write.txnAppId`")
CONSTRAINT_CHECK = Setting(
    "replaceWhere.constraintCheck.enabled", "true", "rows that do not match `replaceWhere` are refused"
)
DATA_COLUMNS = Setting(
    "replaceWhere.dataColumns.enabled", "true", "`replaceWhere` may name columns other than partition columns"
)

# What follows a write
AUTO_COMPACT = Setting(
    "autoCompact.enabled", None, "compact small files after writes; goes before the table's property"
)
AUTO_COMPACT_MIN_NUM_FILES = Setting(
    "autoCompact.minNumFiles", "50", "small files of a partition that start a compaction"
)
AUTO_COMPACT_MAX_FILE_SIZE = Setting("autoCompact.maxFileSize", "128m", "what they are joined up to")
AUTO_COMPACT_MIN_FILE_SIZE = Setting(
    "autoCompact.minFileSize", None, "smaller files are small; by default half of `autoCompact.maxFileSize`"
)

# Commands
OPTIMIZE_MIN_FILE_SIZE = Setting("optimize.minFileSize", "1g", "OPTIMIZE joins smaller files")
OPTIMIZE_MAX_FILE_SIZE = Setting("optimize.maxFileSize", "1g", "what they are joined up to")
OPTIMIZE_MAX_DELETED_ROWS_RATIO = Setting(
    "optimize.maxDeletedRowsRatio", "0.05", "OPTIMIZE rewrites files with a larger share of deleted rows"
)
CLUSTERING_MIN_CUBE_SIZE = Setting(
    "optimize.clustering.mergeStrategy.minCubeSize.threshold",
    "100g",
    "files clustered together are left alone from this size on",
)
CLUSTERING_TARGET_CUBE_SIZE = Setting(
    "optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize",
    "150g",
    "up to this size files are clustered together",
)
ZORDER_CHECK_STATISTICS = Setting(
    "optimize.zorder.checkStatsCollection.enabled", "true", "Z-order only by columns with statistics"
)
RETENTION_CHECK = Setting(
    "retentionDurationCheck.enabled", "true", "VACUUM refuses a retention shorter than the table's"
)
RETENTION_IGNORED = Setting(
    "vacuum.retentionWindowIgnore.enabled",
    "true",
    "VACUUM in SQL keeps to the table's retention where RETAIN says a shorter one, but for 0 hours",
)
VACUUM_LOGGING = Setting("vacuum.logging.enabled", "true", "VACUUM leaves two entries in the history")
RESTORE_PROTOCOL_DOWNGRADE = Setting(
    "restore.protocolDowngradeAllowed", "false", "RESTORE takes the protocol back too"
)
ARBITRARY_PROPERTIES = Setting(
    "allowArbitraryProperties.enabled",
    "false",
    "tables may be given properties `delta.*` that do not exist, and that nothing acts on",
)
COLLECT_STATISTICS = Setting("stats.collect", "true", "convertToDelta collects statistics; writes always do")
DROP_IF_EXISTS = Setting(
    "constraints.assumesDropIfExists.enabled",
    "false",
    "`dropConstraint` of a constraint that is not there only makes a commit that says so",
)
CATALOG_UPDATE = Setting(
    "catalog.update.enabled",
    "false",
    "entries of tables in the session catalog hold the columns and properties of the log too, renewed by each commit "
    "on a table that the session has named",
)
CATALOG_UPDATE_LONGEST = Setting(
    "catalog.update.longFieldTruncationThreshold",
    "4000",
    "the entry of a table with a column whose type is a longer text holds no columns",
)

HONOURED = tuple(known for known in tuple(globals().values()) if isinstance(known, Setting))
