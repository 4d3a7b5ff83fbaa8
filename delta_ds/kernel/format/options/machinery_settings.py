"""The settings by which delta-spark's own machinery is set, which is not here.

They are known so that a user is told that they do nothing, and no name is taken for a mistyped one. Source:
delta-spark 4.4, `DeltaSQLConf`; `spark_tests/engines/interop/test_settings.py` compares.
"""

from __future__ import annotations

from collections.abc import Iterator

from delta_ds.kernel.format.options.settings import Setting

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
catalog.update.longFieldTruncationThreshold 4000
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
insertReplaceOnOrUsing.materializeSource auto
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
replaceOn.dataframe.writer.enabled true
replaceUsing.dataframe.writer.enabled true
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
