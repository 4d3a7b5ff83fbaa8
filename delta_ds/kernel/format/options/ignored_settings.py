"""The settings of delta-spark without effect: what is so whatever they say, and those of its own machinery.

Source: delta-spark 4.4, `DeltaSQLConf`; `spark_tests/engines/interop/test_settings.py` compares.
"""

from __future__ import annotations

from delta_ds.kernel.format.options.settings import HONOURED, Setting


def _ignored(name: str, default: str | None, meaning: str) -> Setting:
    return Setting(name, default, meaning, honoured=False)


WITHOUT_EFFECT: tuple[Setting, ...] = (
    _ignored("dynamicPartitionOverwrite.enabled", "true", "`partitionOverwriteMode` counts"),
    _ignored(
        "write.txnVersion.autoReset.enabled", "false",
        "`write.txnVersion` stays as it is set: set it anew for each write",
    ),
    _ignored(
        "optimizeWrite.binSize", "512m",
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
    _ignored(
        "lastCommitVersionInSession", None,
        "it is not set after a commit: `history(1)` has the version",
    ),
    _ignored(
        "optimizeMetadataQuery.enabled", "true",
        "`count(*)`, `min` and `max` come from the log wherever it knows them exactly",
    ),
    _ignored("stats.limitPushdown.enabled", "true", "LIMIT reads as many files as Spark needs for it"),
    _ignored(
        "generatedColumn.partitionFilterOptimization.enabled", "true",
        "filters on the source of a generated partition column always choose partitions",
    ),
    _ignored("loadFileSystemConfigsFromDataFrameOptions", "true", "options `fs.*` always reach the store"),
    _ignored(
        "snapshotCache.storageLevel", "MEMORY_AND_DISK_SER",
        "snapshots are Arrow tables in the memory of the driver, and files in the folder `DELTA_DS_CACHE`",
    ),
    _ignored(
        "delta.log.cacheSize", "10000",
        "the environment variable `DELTA_DS_CACHE_SIZE` bounds what is kept",
    ),
    _ignored("delta.log.cacheRetentionMinutes", "3600000ms", "what was not used for longest goes first"),
    _ignored("catalog.update.enabled", "false", "entries of the catalog hold no columns: the log has them"),
    _ignored(
        "dml.insert.dfByName.allowImplicitCasts", "true",
        "rows given by name are cast as Spark casts for storage",
    ),
    _ignored(
        "optimizeWrite.maxShufflePartitions", "2000",
        "optimized writes shuffle nothing: they join small files of one partition",
    ),
    _ignored(
        "optimizeWrite.numShuffleBlocks", "50000000",
        "optimized writes shuffle nothing: they join small files of one partition",
    ),
    _ignored(
        "autoCompact.maxNumModifiedPartitions", "128",
        "every partition that was written to is looked at",
    ),
    _ignored(
        "autoCompact.modifiedPartitionsOnly.enabled", "true",
        "only partitions that were written to are compacted",
    ),
    _ignored("autoCompact.nonBlindAppend.enabled", "false", "auto compaction follows every write"),
    _ignored(
        "optimize.batchSize", None,
        "an OPTIMIZE is one commit: give it one partition after the other by `where`",
    ),
    _ignored("optimize.maxThreads", "15", "Spark's scheduler decides how many tasks run at once"),
    _ignored("delete.allowExistsSubquery", "false", "subqueries in conditions are refused: use a MERGE"),
    _ignored(
        "merge.materializeSource.maxAttempts", "4",
        "a MERGE whose source was lost begins anew up to four times",
    ),
    _ignored(
        "merge.materializeSource.rddStorageLevel", "DISK_ONLY",
        "the source is kept by `localCheckpoint`",
    ),
    _ignored(
        "updateAndMergeCastingFollowsAnsiEnabledFlag", "false",
        "UPDATE and MERGE cast by `spark.sql.storeAssignmentPolicy`",
    ),
    _ignored("commitLock.enabled", None, "the store decides which commit wins, and needs no lock"),
    _ignored(
        "postCommitHook.throwOnError", "false",
        "what follows a commit never fails it, and says so in the log",
    ),
    _ignored(
        "checkpoint.exceptionThrowing.enabled", "false",
        "what follows a commit never fails it, and says so in the log",
    ),
    _ignored("history.metricsEnabled", "true", "the history always has metrics"),
    _ignored(
        "write.dataFilesToSubdir", "false",
        "data files lie in the folder of the table or of their partition",
    ),
    _ignored(
        "write.utcTimestampPartitionValues", "true",
        "timestamps of partitions are always written in UTC",
    ),
    _ignored("streaming.schemaTracking.enabled", "true", "`schemaTrackingLocation` asks for it"),
    _ignored(
        "streaming.allowSchemaLocationOutsideCheckpointLocation", "false",
        "`schemaTrackingLocation` lies below the checkpoint",
    ),
    _ignored(
        "alterTable.dropColumn.enabled", "true",
        "columns can be dropped where the table has column mapping",
    ),
    _ignored("columnMapping.allowRemoval", "true", "column mapping can be taken away"),
)  # fmt: skip

# Every setting that a user may want to know of.
SETTINGS = (*HONOURED, *WITHOUT_EFFECT)
