"""What a session says: the settings of delta-spark that are honoured, and what changes how values are read and written.

Each setting is one record; `docs/settings.md` is made of them. Those that are not honoured: `ignored_settings.py`.

`SessionFacts` are read once, where a call of the user comes in, and sent along as one option to every process that
parses or evaluates: Spark plans, writes and commits the rows of a data source in processes that have no session.

Source: delta-spark 4.4, `DeltaSQLConf`; Spark, `SQLConf`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import tzinfo

from delta_ds.conditions.options import (
    INVALID_CONF_VALUE,
    INVALID_CONF_VALUE_TYPE_MISMATCH,
    INVALID_IDEMPOTENT_WRITES_SETTINGS,
)
from delta_ds.kernel.format.properties import FEATURE_PREFIX, PREFIX, PROPERTIES, PropertyRules
from delta_ds.records import dataclass, field

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
TXN_AUTO_RESET = Setting(
    "write.txnVersion.autoReset.enabled",
    "false",
    "`write.txnVersion` is unset by the write or command that used it",
)
CONSTRAINT_CHECK = Setting(
    "replaceWhere.constraintCheck.enabled", "true", "rows that do not match `replaceWhere` are refused"
)
DYNAMIC_OVERWRITE = Setting(
    "dynamicPartitionOverwrite.enabled",
    "true",
    "false: overwrites that shall replace the partitions that they write to are refused",
)
DATA_COLUMNS = Setting(
    "replaceWhere.dataColumns.enabled", "true", "`replaceWhere` may name columns other than partition columns"
)

# What is streamed
SCHEMA_LOCATION_ANYWHERE = Setting(
    "streaming.allowSchemaLocationOutsideCheckpointLocation",
    "false",
    "the option `schemaTrackingLocation` of a stream may lie outside of the checkpoint",
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
RETENTION_COMPATIBILITY = Setting(
    "vacuum.enforceDeletedFileAndLogRetentionDurationCompatibility",
    "true",
    "a command that sets a property of retention must leave the log as long as deleted files, the defaults counted",
)
COLLECT_STATISTICS = Setting("stats.collect", "true", "convertToDelta collects statistics; writes always do")
CASTS_FOLLOW_ANSI = Setting(
    "updateAndMergeCastingFollowsAnsiEnabledFlag",
    "false",
    "UPDATE and MERGE cast by `spark.sql.ansi.enabled`, not by `spark.sql.storeAssignmentPolicy`",
)
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


# --- session settings for processes without a session, handed on as one write option in JSON
# Spark plans, writes and commits a data source's rows in processes of their own, and streams do so long after they
# were started.
# Source: delta-spark, `DeltaConfigs.mergeGlobalConfigs`.

SETTINGS_OPTION = "sessionSettings"
DEFAULTS_PREFIX = f"{SETTING_PREFIX}properties.defaults."
AUTO_COMPACT_PREFIX = f"{SETTING_PREFIX}autoCompact."

# What decides whether a command or write that changes rows contradicts a commit that came first.
CONFLICT_DETECTION = "spark.pydelta.conflictDetection"
BY_ROWS, BY_STATISTICS, BY_FILES = "rows", "statistics", "files"


def is_on(settings: Mapping[str, str], name: str) -> bool:
    """Whether a setting that is true by default is true.

    Raises
    ------
    InvalidOptionError
        It is neither `true` nor `false`.
    """
    text = settings.get(name, "true").strip().lower()
    if text not in ("true", "false"):
        raise INVALID_CONF_VALUE_TYPE_MISMATCH(setting=name, value=settings[name])
    return text == "true"


def conflict_detection(text: str | None) -> str:
    """`BY_ROWS`, `BY_STATISTICS` or `BY_FILES`, by the text of the setting; None: it is not set.

    Raises
    ------
    InvalidOptionError
        The text says something else.
    """
    word = BY_ROWS if text is None else text.strip().lower()
    if word not in (BY_ROWS, BY_STATISTICS, BY_FILES):
        raise INVALID_CONF_VALUE(
            setting=CONFLICT_DETECTION, value=text, reason=f"it is {BY_ROWS}, {BY_STATISTICS} or {BY_FILES}"
        )
    return word


def settings_for_tasks(settings: Mapping[str, str]) -> dict[str, str]:
    """Those of a session's settings that processes without a session need."""
    prefixes = (
        DEFAULTS_PREFIX,
        AUTO_COMPACT_PREFIX,
        CONSTRAINT_CHECK.full_name,
        DATA_COLUMNS.full_name,
        DYNAMIC_OVERWRITE.full_name,
        ARBITRARY_PROPERTIES.full_name,
        RETENTION_COMPATIBILITY.full_name,
        CONFLICT_DETECTION,
    )
    return {name: text for name, text in sorted(settings.items()) if name.startswith(prefixes)}


def parse_settings(text: str, zone: tzinfo) -> dict[str, str]:
    """The settings in the text of the option.

    Raises
    ------
    ValueError
        It is no JSON object of texts.
    """
    try:
        settings = json.loads(text)
    except ValueError:
        settings = None
    if not isinstance(settings, dict) or not all(isinstance(value, str) for value in settings.values()):
        raise ValueError("it is a JSON object from names of settings to texts")
    return settings


def is_default(name: str) -> bool:
    """Whether a setting gives new tables a property that there is, by its exact name, as delta-spark looks it up."""
    if not name.startswith(DEFAULTS_PREFIX):
        return False
    key = PREFIX + name[len(DEFAULTS_PREFIX) :]
    return key.startswith(FEATURE_PREFIX) or (key in PROPERTIES and PROPERTIES[key].settable)


def default_properties(settings: Mapping[str, str]) -> dict[str, str]:
    """The properties that settings of a session give to new tables: `properties.defaults.<name>` is `delta.<name>`."""
    return {
        PREFIX + name[len(DEFAULTS_PREFIX) :]: text for name, text in settings.items() if is_default(name)
    }


# --- what a session says that changes how texts are read, values evaluated and rows written: one record of it

TIME_ZONE = "spark.sql.session.timeZone"
ANSI = "spark.sql.ansi.enabled"
STORE_ASSIGNMENT = "spark.sql.storeAssignmentPolicy"
CASE_SENSITIVE = "spark.sql.caseSensitive"
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
CODEC = "spark.sql.parquet.compression.codec"
RECORDS_PER_FILE = "spark.sql.files.maxRecordsPerFile"

# What is done with an option of no known name.
UNKNOWN_OPTIONS = "spark.pydelta.unknownOptions"
NEAR, REFUSE, IGNORE_UNKNOWN = "near", "refuse", "ignore"

# Where a commit is made, as `Origin` has it.
ORIGIN = "spark.pydelta.origin"

ANSI_POLICY, STRICT, LEGACY = "ANSI", "STRICT", "LEGACY"

# Those of Spark and of this package that processes without a session need; delta-spark's: `settings_for_tasks`.
_TRAVELLING = (
    TIME_ZONE,
    ANSI,
    STORE_ASSIGNMENT,
    CASE_SENSITIVE,
    OVERWRITE_MODE,
    CODEC,
    UNKNOWN_OPTIONS,
    ORIGIN,
)


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """The settings of a session, as far as anybody here asks for them.

    Attributes
    ----------
    settings
        Texts by full name; a name that is missing is not set, and its default is unknown or does not matter.
    """

    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def time_zone(self) -> str | None:
        """The zone of local times; None where nobody has told it."""
        return self.settings.get(TIME_ZONE)

    @property
    def codec(self) -> str | None:
        """The codec of Parquet files; None where none is set. Not each is one that files are written with here."""
        return self.settings.get(CODEC)

    @property
    def ansi(self) -> bool:
        """Whether expressions are evaluated by the rules of ANSI SQL."""
        return self._flag(ANSI, True)

    @property
    def case_sensitive(self) -> bool:
        """Whether names of columns are told apart by their case."""
        return self._flag(CASE_SENSITIVE, False)

    @property
    def store_assignment(self) -> str:
        """By which rules values are cast to the types of columns: `ANSI`, `STRICT` or `LEGACY`.

        Raises
        ------
        InvalidOptionError
            The setting says something else.
        """
        return self._word(STORE_ASSIGNMENT, ANSI_POLICY, (ANSI_POLICY, STRICT, LEGACY), str.upper)

    @property
    def command_assignment(self) -> str:
        """The same for the values of UPDATE and MERGE; raises as `store_assignment`."""
        if self._flag(CASTS_FOLLOW_ANSI.full_name, False):
            return ANSI_POLICY if self.ansi else LEGACY
        return self.store_assignment

    @property
    def dynamic_overwrite(self) -> bool:
        """Whether an overwrite that does not say what it replaces goes by partitions."""
        return self._word(OVERWRITE_MODE, "static", ("static", "dynamic"), str.lower) == "dynamic"

    @property
    def allows_dynamic_overwrite(self) -> bool:
        """Whether overwrites may go by partitions at all."""
        return self._flag(DYNAMIC_OVERWRITE.full_name, True)

    @property
    def property_rules(self) -> PropertyRules:
        """What users may set of table properties.

        Raises
        ------
        InvalidOptionError
            A setting is neither `true` nor `false`.
        """
        return PropertyRules(
            unknown=self._flag(ARBITRARY_PROPERTIES.full_name, False),
            retentions=self._flag(RETENTION_COMPATIBILITY.full_name, True),
        )

    @property
    def unknown_options(self) -> str:
        """What is done with options of no known name: `near`, `refuse` or `ignore`.

        Raises
        ------
        InvalidOptionError
            The setting says something else.
        """
        return self._word(UNKNOWN_OPTIONS, NEAR, (NEAR, REFUSE, IGNORE_UNKNOWN), str.lower)

    @property
    def txn(self) -> tuple[str, int] | None:
        """The application and version that the session names for its writes; None: none.

        Raises
        ------
        InvalidOptionError
            One of the two is missing, or the version is no number.
        """
        app_id, version = (self.settings.get(name.full_name) for name in (TXN_APP_ID, TXN_VERSION))
        if app_id is None and version is None:
            return None
        if app_id is None or version is None or not str(version).strip().isdecimal():
            raise INVALID_IDEMPOTENT_WRITES_SETTINGS(app_id=app_id, version=version)
        return app_id, int(version)

    @property
    def txn_is_used_once(self) -> bool:
        """Whether the version of `txn` is unset once a write or command has counted as it."""
        return self.txn is not None and self._flag(TXN_AUTO_RESET.full_name, False)

    def with_setting(self, name: str, text: str) -> SessionFacts:
        """The same with one setting more."""
        return SessionFacts({**self.settings, name: text})

    def text(self) -> str:
        """What processes without a session need, in JSON: the value of the option `sessionSettings`."""
        kept = {name: self.settings[name] for name in _TRAVELLING if name in self.settings}
        return json.dumps(kept | settings_for_tasks(self.settings), ensure_ascii=False)

    def _flag(self, name: str, default: bool) -> bool:
        text = self.settings.get(name, str(default)).strip().lower()
        if text not in ("true", "false"):
            raise INVALID_CONF_VALUE_TYPE_MISMATCH(setting=name, value=self.settings[name])
        return text == "true"

    def _word(self, name: str, default: str, words: tuple[str, ...], fold: Callable[[str], str]) -> str:
        text = self.settings.get(name, default)
        word = fold(text.strip())
        if word not in words:
            *others, last = words
            raise INVALID_CONF_VALUE(setting=name, value=text, reason=f"it is {', '.join(others)} or {last}")
        return word


def parse_facts(text: str, zone: tzinfo) -> SessionFacts:
    """The facts in the text of the option; raises as `parse_settings`."""
    return SessionFacts(parse_settings(text, zone))
