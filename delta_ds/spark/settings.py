"""The settings of delta-spark as one record each, what a session has set, and a warning for those without effect.

`docs/settings.md` is made of `SETTINGS`.

Source: delta-spark 4.4, `DeltaSQLConf`.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from delta_ds.kernel.options.session_settings import DEFAULTS_PREFIX, SETTING_PREFIX, is_default
from delta_ds.kernel.properties import PREFIX, PROPERTIES
from delta_ds.spark.engine import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("delta_ds")


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


def _ignored(name: str, default: str | None, meaning: str) -> Setting:
    return Setting(name, default, meaning, honoured=False)


AUTO_MERGE = f"{SETTING_PREFIX}schema.autoMerge.enabled"
OPTIMIZE_WRITE = f"{SETTING_PREFIX}optimizeWrite.enabled"
USER_METADATA = f"{SETTING_PREFIX}commitInfo.userMetadata"
TXN_APP_ID = f"{SETTING_PREFIX}write.txnAppId"
TXN_VERSION = f"{SETTING_PREFIX}write.txnVersion"
DROP_IF_EXISTS = f"{SETTING_PREFIX}constraints.assumesDropIfExists.enabled"
_DEFAULTS = "properties.defaults.<name>"

SETTINGS: tuple[Setting, ...] = (
    # What is written
    Setting(
        "schema.autoMerge.enabled", "false",
        "the option `mergeSchema` of writes and streams that do not give it; schema evolution in MERGE",
    ),
    Setting(
        _DEFAULTS, None,
        "the property `delta.<name>` of tables that are created, unless the call gives it; not of clones",
    ),
    Setting(
        "optimizeWrite.enabled", None,
        "the option `optimizeWrite` of writes and streams that do not give it; goes before the table's property",
    ),
    Setting("commitInfo.userMetadata", None, "free text for the history of writes, streams and commands"),
    Setting(
        "write.txnAppId", None,
        "with `write.txnVersion`: a write or command counts once, however often it is tried",
    ),
    Setting("write.txnVersion", None, "see `write.txnAppId`"),
    Setting("replaceWhere.constraintCheck.enabled", "true", "rows that do not match `replaceWhere` are refused"),
    Setting("replaceWhere.dataColumns.enabled", "true", "`replaceWhere` may name columns other than partition columns"),
    # What follows a write
    Setting(
        "autoCompact.enabled", None,
        "compact small files after writes; goes before the table's property",
    ),
    Setting("autoCompact.minNumFiles", "50", "small files of a partition that start a compaction"),
    Setting("autoCompact.maxFileSize", "128m", "what they are joined up to"),
    Setting(
        "autoCompact.minFileSize", None,
        "smaller files are small; by default half of `autoCompact.maxFileSize`",
    ),
    # Commands
    Setting("optimize.minFileSize", "1g", "OPTIMIZE joins smaller files"),
    Setting("optimize.maxFileSize", "1g", "what they are joined up to"),
    Setting(
        "optimize.maxDeletedRowsRatio", "0.05",
        "OPTIMIZE rewrites files with a larger share of deleted rows",
    ),
    Setting(
        "optimize.clustering.mergeStrategy.minCubeSize.threshold", "100g",
        "files clustered together are left alone from this size on",
    ),
    Setting(
        "optimize.clustering.mergeStrategy.targetCubeSize.threshold", "150g",
        "up to this size files are clustered together",
    ),
    Setting(
        "optimize.zorder.checkStatsCollection.enabled", "true",
        "Z-order only by columns with statistics",
    ),
    Setting("retentionDurationCheck.enabled", "true", "VACUUM refuses a retention shorter than the table's"),
    Setting("vacuum.logging.enabled", "true", "VACUUM leaves two entries in the history"),
    Setting("restore.protocolDowngradeAllowed", "false", "RESTORE takes the protocol back too"),
    Setting("stats.collect", "true", "convertToDelta collects statistics; writes always do"),
    Setting(
        "constraints.assumesDropIfExists.enabled", "false",
        "`dropConstraint` of a constraint that is not there does nothing",
    ),
    # Without effect, and what is so instead
    _ignored("allowArbitraryProperties.enabled", "false", "properties `delta.*` that do not exist are refused"),
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

_BY_NAME = {setting.full_name: setting for setting in SETTINGS if setting.name != _DEFAULTS}
# What each session has been told, so that it is told once.
_warned: WeakKeyDictionary[object, set[str]] = WeakKeyDictionary()


def session_settings(spark: SparkSession | None) -> dict[str, str]:
    """All settings of delta-spark that a session has, by their names; those without effect are told of, once.

    One question to the JVM or the server; none without a session.
    """
    if spark is None:
        return {}
    found = {
        name: text
        for name, text in _all_settings(spark).items()
        if name.startswith(SETTING_PREFIX) and text is not None
    }
    warned = _warned.setdefault(spark, set())
    for name, why in without_effect(found).items():
        if name not in warned:
            warned.add(name)
            logger.warning("setting_without_effect name=%s reason=%s", name, why)
    return found


def without_effect(settings: Mapping[str, str]) -> dict[str, str]:
    """Why settings have no effect, by name; not those set to what holds anyway."""
    out: dict[str, str] = {}
    for name, text in sorted(settings.items()):
        known = _BY_NAME.get(name)
        if known is None:
            if not is_default(name):
                out[name] = f"it has no effect here{_nearest(name)}"
        elif not known.honoured and text.strip().lower() != str(known.default).lower():
            out[name] = known.meaning
    return out


def _nearest(name: str) -> str:
    if name.startswith(DEFAULTS_PREFIX):
        known = [DEFAULTS_PREFIX + key[len(PREFIX) :] for key in PROPERTIES]
    else:
        known = [key for key, setting in _BY_NAME.items() if setting.honoured]
    by_lower = {key.lower(): key for key in known}
    near = difflib.get_close_matches(name.lower(), by_lower, 1, cutoff=0.85)
    return f"; did you mean {by_lower[near[0]]}?" if near else ""


def _all_settings(spark: SparkSession) -> Mapping[str, str]:
    if is_connect(spark):
        return dict(spark.conf.getAll)
    # In one text: a map of Scala would be asked for its entries one by one.
    entry, value = "\0\1", " -> "
    text = str(spark.conf._jconf.getAll().mkString(entry))
    return {name: setting for name, _, setting in (pair.partition(value) for pair in text.split(entry))}
