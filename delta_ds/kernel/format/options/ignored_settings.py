"""The settings of delta-spark without effect: what is so whatever they say, and those of its own machinery.

Source: delta-spark 4.4, `DeltaSQLConf`; `spark_tests/engines/interop/test_settings.py` compares.

The settings by which delta-spark's own machinery is set, which is not here.

They are known so that a user is told that they do nothing, and no name is taken for a mistyped one. Source:
delta-spark 4.4, `DeltaSQLConf`; `spark_tests/engines/interop/test_settings.py` compares.
"""

from __future__ import annotations

from collections.abc import Iterator

from delta_ds.kernel.format.options.settings import HONOURED, Setting


def _ignored(name: str, default: str | None, meaning: str) -> Setting:
    return Setting(name, default, meaning, honoured=False)


WITHOUT_EFFECT: tuple[Setting, ...] = (
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
    _ignored(
        "insertReplaceOnOrUsing.materializeSource", "auto", "rows that are not constants are evaluated once"
    ),
    _ignored("replaceOn.dataframe.writer.enabled", "true", "writes always take `replaceOn`"),
    _ignored("replaceUsing.dataframe.writer.enabled", "true", "writes always take `replaceUsing`"),
    _ignored("vacuum.parallelDelete.enabled", "false", "VACUUM always deletes in parallel"),
    _ignored("vacuum.parallelDelete.parallelism", None, "VACUUM chooses how many files it deletes at once"),
    _ignored("vacuum.lite.enabled", "false", "`vacuum(mode=\"LITE\")` asks for it"),
    _ignored(
        "vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration", "true",
        "versions are read as long as their files are there",
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
        "alterTable.dropColumn.enabled", "true",
        "columns can be dropped where the table has column mapping",
    ),
    _ignored("columnMapping.allowRemoval", "true", "column mapping can be taken away"),
)  # fmt: skip

# Every setting that a user may want to know of.
SETTINGS = (*HONOURED, *WITHOUT_EFFECT)


# Subject: names and defaults; a name without a default has none that is a constant.
_SUBJECTS = {
    "the metadata of Iceberg is written by rules of its own, Hudi is not": """
clone.iceberg.allowPartialStats true
collectStats.convertIceberg true
collectStats.convertIceberg.date true
collectStats.convertIceberg.decimal true
collectStats.convertIceberg.timestamp true
convert.iceberg.bucketPartition.enabled true
convert.iceberg.castTimeType false
convert.iceberg.enabled true
convert.iceberg.partitionEvolution.enabled false
convert.iceberg.useNativePartitionValues true
hudi.maxPendingCommits 100
iceberg.maxPendingActions 100000
iceberg.maxPendingCommits 100
typeWidening.allowUnsupportedIcebergTypeChanges false
uniform.hudi.sync.convert.enabled false
uniform.iceberg.geospatial.enabled false
uniform.iceberg.include.base.converted.version true
uniform.iceberg.maxActionsToConvertForCommitLarge 1000000
uniform.iceberg.retry.times 3
uniform.iceberg.sync.convert.enabled false
uniform.iceberg.v3.enabled true
""",
    "Delta Sharing is not offered": """
spark.sql.delta.sharing.cdfEnableHistoricalProtocol false
spark.sql.delta.sharing.cdfStreamingAutoResolveResponseFormat false
spark.sql.delta.sharing.enableAutoResolveForCdf false
spark.sql.delta.sharing.enableDeltaFormatBatch true
spark.sql.delta.sharing.forceDeltaFormat false
spark.sql.delta.sharing.streamingAutoResolveResponseFormat false
spark.sql.delta.sharing.streamingConvertStartingTimestampToVersion false
spark.sql.delta.sharing.streamingEnableHistoricalProtocol false
""",
    "catalogs and their commits go by settings of their own, `spark.pydelta.catalog.*`": """
changelogV2.enabled false
commitMetrics.enabled true
commitMetrics.threadPoolSize 20
coordinatedCommits.commitCoordinator.dynamodb.awsCredentialsProviderName com.amazonaws.auth.DefaultAWSCredentialsProviderChain
coordinatedCommits.commitCoordinator.dynamodb.readCapacityUnits 5
coordinatedCommits.commitCoordinator.dynamodb.skipPathCheckEnabled false
coordinatedCommits.commitCoordinator.dynamodb.writeCapacityUnits 5
coordinatedCommits.commitFilesIterator.backfillGapFix.enabled true
coordinatedCommits.getCommits.threadPoolSize 5
coordinatedCommits.ignoreMissingCoordinatorImplementation true
enableTableRedirectFeature false
skipRedirectFeature false
v2.enableMode AUTO
""",  # noqa: E501
    "it is of delta-spark's own machinery, which is not here": """
adaptiveMetadataTree.preview.enabled true
allFilesInCrc.enabled true
allFilesInCrc.thresholdIndexedCols
allFilesInCrc.thresholdNumFiles 50
allFilesInCrc.verificationMode.enabled false
allFilesInCrc.verificationMode.forceOnNonUTC.enabled true
alter.replaceColumns.safe.enabled true
alterTable.bypassCharVarcharToStringFix false
alterTable.changeColumn.checkExpressions true
alwaysCollectStats.enabled false
amt.entriesPerLeaf 50000
amt.fullRewriteCheckpointIntervalMultiplier 5
amt.largeCommitActionsCountThresholdForInlineManifestCommit 9223372036854775807
autoCompact.earlySkipPartitionTable.enabled true
autoCompact.maxTablePartitionStats 16384
autoCompact.partitionStatsSize 65536
autoCompact.recordPartitionStats.enabled true
autoCompact.reservePartitions.enabled true
backfill.maxNumFiles
backfill.maxNumFilesFactor 3.0
catalog.enableServerSidePlanning false
catalog.update.threadPoolSize 20
changeColumn.checkDependentExpressionsUseV2 true
changeColumn.renameColumnEscapeName true
changeDataFeed.allowTimeTravelOptionsForSchema false
checkConstraints.validation.enabled LOG_ONLY
checkpoint.dropBackReference.enabled true
checkpointSchema.useFromCheckpointMetadata true
checkpointSchema.writeThresholdLength 20000
checkpointV2.exposeTableFeatureForTesting false
checkpointV2.threadpool.size 32
checkpointV2.topLevelFileFormat
checksum.mismatch.fatal true
checksumDVMetrics.enabled true
checksumDeletedRecordCountsHistogramMetrics.enabled true
clone.replaceEnabled true
clusteredTable.numClusteringColumnsLimit 4
collectStats.fallbackToInterpretedProjection true
collectStats.numFilesPerPartition 100
collectStats.skipFloatingPointFromFooter true
collectStats.useMultiThreadedStatsCollection true
columnMapping.checkMaxColumnId true
columnMapping.disallowEnablingWhenColumnMappingMetadataAlreadyExists true
columnMapping.reuseColumnMetadataDuringOverwrite true
columnMapping.reuseColumnMetadataDuringReplace true
columnMapping.stripMetadata true
command.fileMaterializationLimit.enabled true
command.fileMaterializationLimit.softMax 10000000
commandInvariantChecksThrow false
commandInvariantChecksUseUnreliable true
commit.idempotencyCheck.enabled false
commit.inconsistentList.maxRetries 3
commitStats.force false
commitValidation.consistentDataChange.mode log
commitValidation.enabled true
conflictChecker.enforceConcurrentFeatureEnablement.enabled false
conflictDetection.allowReplaceTableToRemoveNewDomainMetadata true
conflictDetection.partitionLevelConcurrency.widenNonDeterministicPredicates on
constraints.allowUnenforcedNotNull.enabled false
convert.useCatalogPartitions true
convert.useCatalogSchema true
convert.useMetadataLog true
convertEmptyToNullForStringPartitionCol true
createDataFrame.dropNullColumns false
createEmptySchemaTable.enabled true
deletionVectors.disableTightBoundOnFileCreationForDevOnly false
deletionVectors.packing.targetSize 2097152b
deletionVectors.propagateCloseFailure true
deletionVectors.skipCommitCheck true
deletionVectors.useMetadataRowIndex true
deltaLog.getChangeLogFiles.failOnGapsInTests true
deltaLog.getChangeLogFiles.logGaps true
deltaLog.minorCompaction.useForReads true
deltaTableBuilder.forceTablePropertyLowerCase.enabled false
dmlMetricsFromMetadata.enabled true
domainMetadatasInCrc.maxAllowed 10
dummyFileManager.numOfFiles 3
dummyFileManager.prefix .s3-optimization-
duplicateActionCheck.enabled true
dynamicPartitionOverwrite.parsePartitionValues true
emptyFileCheck.throwEnabled false
failOnPartitionValueParsingError false
featureEnablement.conflictResolution.enabled true
fileSizeHistogramMetrics.enabled true
generatedColumn.allowNullableIngest.enabled true
generatedColumn.validateOnWrite.enabled LOG_ONLY
geo.preview.enabled false
history.maxKeysPerList 1000
history.threadPoolSize 10
hms.schema.forceAlterTableDataSchema false
identityColumn.allowSyncIdentityToLowerHighWaterMark.enabled false
identityColumn.enabled true
import.batchSize.schemaInference 1000000
import.batchSize.statsCollection 50000
inCommitTimestamp.retainEnablementInfoFix.enabled true
includeTableIdInFileIndexComparison true
incremental.commit.enabled true
incremental.commit.forceVerifyInTests true
incremental.commit.verify false
insert.byName.schemaEvolution.enabled true
insert.preserveNullSourceStructs true
insertOverwrite.removeMetrics.enabled true
internalUdfOptimization.enabled true
isDeltaTable.strictCheck true
isDeltaTable.throwOnError true
lastCheckpoint.checksum.enabled true
lastCheckpoint.nonFileActions.threshold 30
lastCheckpoint.sidecars.threshold 30
lastCheckpoint.suppressOptionalFields false
legacy.allowAmbiguousPathsInCreateTable false
legacy.storeOptionsAsProperties false
liquid.alterColumnAfter.statsSchemaCheck true
maxNonConflictCommitAttempts 10
maxSnapshotLineageLength 50
merge.analysis.batchActionResolution.enabled true
merge.emptySchemaTargetCheck.enabled true
merge.failIfSourceChanged false
merge.failSourceCachedAfterMaterialization true
merge.forceSourceMaterializationWithUnreadableFilesConfig true
merge.insert.fixCaseSensitiveDuplicateColumns true
merge.materializeCachedSource true
merge.materializeSource.rddStorageLevelFirstRetry DISK_ONLY_2
merge.materializeSource.rddStorageLevelRetry DISK_ONLY_3
merge.preserveNullSourceStructs true
merge.preserveNullSourceStructs.updateStar
merge.skipOssResolutionWithStar true
metrics.alwaysReportSomeZeroMetrics true
normalizePartitionValuesOnRead true
nullPartitionCheck.throwEnabled false
numRecordsValidation.enabled true
optimize.conditionalIncrementMetric.enabled true
optimize.zorder.fastInterleaveBits.enabled false
partitionColumnChangeCheck log-only
partitionColumnValidity.enabled true
readProtocolAndMetadataFromChecksum.enabled true
replace.protocolDowngradeAllowed false
replaceWhere.dataColumns.metrics.enabled true
replaceWhere.dataColumnsWithCDF.enabled true
requiredSparkConfsCheck.enabled true
resolveMergeUpdateStructsByName.enabled true
rowTracking.backfill.enabled true
rowTracking.backfill.maxNumFiles 22000
rowTracking.ignoreSuspension false
schema.removeExistsDefault true
schema.removeSparkInternalMetadata true
schema.typeCheck.enabled true
schemaEvolution.merge.fixNestedStructAlignment true
setTransactionsInCrc.maxAllowed 100
setTransactionsInCrc.writeOnCommit true
skipRecordingEmptyCommits true
skipping.enhancedIsNullPushdownExprs.enabled true
skipping.enhancedIsNullPushdownExprs.maxDepth 8
skipping.partitionLikeDataSkipping.additionalSupportedExpressions
skipping.partitionLikeDataSkipping.limitToClusteringColumns true
skipping.partitionLikeDataSkippingFilesThreshold 100
skipping.partitionLikeFilters.enabled false
snapshot.logging.maxFilesThreshold 500000
snapshotLoading.maxRetries 2
stats.collect.using.tableSchema true
stats.limitPerVariant 0
stats.limitPushdown.skipNonDeterministicFilters.enabled true
statsAsStructInCheckpoint.forcedDisabled
streaming.createDataFrame.dropNullColumns false
streaming.distributedInitialSnapshot false
streaming.ignoreInternalMetadataForSchemaChange.enabled true
streaming.initialSnapshotMaxFiles 100000
streaming.logSizeInMemoryThreshold 134217728
streaming.offsetValidation.enabled true
streaming.schemaTracking.mergeConsecutiveSchemaChanges.enabled true
streaming.schemaTracking.metadataPathCheck.enabled true
streaming.schemaValidationOnRestart.enabled true
streaming.sink.implicitCastEscapeColumnNames true
streaming.sink.implicitCastForTypeMismatchOnly true
streaming.trailingCommitValidation.enabled true
table.parquetV2.timestampOutputType TIMESTAMP_MICROS
tableFeatures.allowMetadataCleanupWhenAllProtocolsSupported true
tableFeatures.dev.allowMetadataCleanupCheckpointExistenceCheck.disabled false
tableFeatures.dev.fastDropFeature.DVDiscoveryInVacuum.disabled false
tableFeatures.dev.unsupportedTableFeatures.enabled false
tableFeatures.fastDropFeature.alwaysValidateProtocolInStreaming.enabled true
tableFeatures.fastDropFeature.dvTombstoneCountThreshold 10000
tableFeatures.fastDropFeature.enabled true
tableFeatures.fastDropFeature.generateDVTombstones.enabled true
tableFeatures.testFeatures.enabled true
tablePropertyConstraintsCheck.enabled true
testOnly.dataFileNamePrefix
testOnly.dvFileNamePrefix
typeWidening.allowIntegralDecimalCoercion true
typeWidening.allowTypeChangeStreamingDeltaSource true
typeWidening.bypassStreamingTypeChangeCheck false
typeWidening.bypassUnsupportedTypeChangeCheck false
typeWidening.enableStreamingSchemaTracking false
typeWidening.removeSchemaMetadata true
vacuum.relativize.ignoreError false
variant.disableVariantTableFeatureForSpark40 false
variant.forceUsePreviewTableFeature false
variantShredding.collectVariantDataSkippingStats true
variantShredding.forceUsePreviewTableFeature true
variantShredding.guardVariantInStatsSchema.enabled true
variantShredding.parseFooterForStats false
versionChecksum.forcedValidationInterval 400
versionChecksum.forcedValidationMinTimeIntevalMinutes 720
workAroundColonsInHadoopPaths.enabled true
writeChecksumFile.histogramFollowsProtocol true
""",
}


def _settings() -> Iterator[Setting]:
    for subject, text in _SUBJECTS.items():
        for line in text.split("\n"):
            name, _, default = line.partition(" ")
            if name:
                yield Setting(name, default or None, subject, honoured=False)


MACHINERY = tuple(_settings())
