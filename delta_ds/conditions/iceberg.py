"""Conditions of Iceberg compatibility, and of the metadata of Iceberg beside the log."""

from __future__ import annotations

from delta_ds.conditions.record import ErrorCondition
from delta_ds.exceptions import UnsupportedOperationError

_COMPAT = "DELTA_ICEBERG_COMPAT_VIOLATION"
_FAILED = "The validation of IcebergCompatV{version} has failed. "
_REORG = "REORG TABLE ... APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = {version}))"

COMPAT_DELETION_VECTORS_NOT_PURGED = ErrorCondition(
    f"{_COMPAT}.DELETION_VECTORS_NOT_PURGED",
    UnsupportedOperationError,
    "KD00E",
    f"{_FAILED}IcebergCompatV{{version}} requires Deletion Vectors to be completely purged from the table: {{table}} "
    "cannot have IcebergCompatV{version}: {files} of its files have deletion vectors, which readers of Iceberg would "
    f"not see. Nothing was written; run {_REORG}, or REORG TABLE ... APPLY (PURGE) first",
    parameters=("version", "files"),
    family="operation",
)
COMPAT_DELETION_VECTORS_SHOULD_BE_DISABLED = ErrorCondition(
    f"{_COMPAT}.DELETION_VECTORS_SHOULD_BE_DISABLED",
    UnsupportedOperationError,
    "KD00E",
    f"{_FAILED}IcebergCompatV{{version}} requires Deletion Vectors to be disabled on the table first: {{table}} "
    "cannot have IcebergCompatV{version} together with delta.enableDeletionVectors = true. Nothing was written; set "
    f"delta.enableDeletionVectors to false first, or run {_REORG}, which does all that is needed",
    parameters=("version",),
    family="operation",
)
COMPAT_FILES_NOT_ICEBERG_COMPAT = ErrorCondition(
    f"{_COMPAT}.FILES_NOT_ICEBERG_COMPAT",
    UnsupportedOperationError,
    "KD00E",
    f"{_FAILED}Enabling Uniform Iceberg with IcebergCompatV{{version}} requires all files to be iceberg compatible: "
    "{table} cannot have {wanted}: {addFilesWithoutTag} of the {addFilesCount} files of version {tableVersion} do not "
    f"comply with IcebergCompatV{{version}}, such as {{path}}: {{reason}}. Nothing was written; run {_REORG}, which "
    "rewrites them",
    parameters=("version", "tableVersion", "addFilesCount", "addFilesWithoutTag"),
    family="operation",
)
COMPAT_MISSING_NUM_RECORDS = ErrorCondition(
    f"{_COMPAT}.MISSING_NUM_RECORDS",
    UnsupportedOperationError,
    "KD00E",
    "file {path} cannot be added to {table}: with IcebergCompatV{version} the statistics of each file say how many "
    "rows it has (numRecords). Nothing was written",
    parameters=("version", "path"),
    family="operation",
)
COMPAT_ADDED_DELETION_VECTOR = ErrorCondition(
    f"{_COMPAT}.ADDED_DELETION_VECTOR",
    UnsupportedOperationError,
    "KD00E",
    "file {path} cannot be added to {table} with a deletion vector, which readers of Iceberg would not see: the table "
    "has IcebergCompatV{version}. Nothing was written",
    parameters=("version", "path"),
    family="operation",
)
COMPAT_REPLACE_TABLE_CHANGE_PARTITION_NAMES = ErrorCondition(
    f"{_COMPAT}.REPLACE_TABLE_CHANGE_PARTITION_NAMES",
    UnsupportedOperationError,
    "KD00E",
    f"{_FAILED}IcebergCompatV{{version}} doesn't support replacing partitioned tables with a differently-named "
    "partition spec: {table} is partitioned by ({prevPartitionSpec:list}) and cannot become partitioned by "
    "({newPartitionSpec:list}): with IcebergCompatV{version} the partition columns of a partitioned table keep "
    "their names. Nothing was written; make a new table, or one without IcebergCompat",
    parameters=("version", "prevPartitionSpec", "newPartitionSpec"),
    family="operation",
)
COMPAT_UNSUPPORTED_DATA_TYPE = ErrorCondition(
    f"{_COMPAT}.UNSUPPORTED_DATA_TYPE",
    UnsupportedOperationError,
    "KD00E",
    f"{_FAILED}IcebergCompatV{{version}} does not support the data type {{dataType}} in your schema: {{table}} "
    "cannot have column {column} of type {dataType}: IcebergCompatV{version} does not support it. Nothing was written",
    parameters=("version", "dataType", "schema"),
    family="operation",
)
COMPAT_UNSUPPORTED_PARTITION_DATA_TYPE = ErrorCondition(
    f"{_COMPAT}.UNSUPPORTED_PARTITION_DATA_TYPE",
    UnsupportedOperationError,
    "KD00E",
    f"{_FAILED}IcebergCompatV{{version}} does not support the data type {{dataType}} for partition columns in your "
    "schema: {table} cannot be partitioned by {column} of type {dataType}: IcebergCompatV{version} does not support "
    "it. Nothing was written",
    parameters=("version", "dataType", "schema"),
    family="operation",
)
COMPAT_UNSUPPORTED_TYPE_WIDENING = ErrorCondition(
    f"{_COMPAT}.UNSUPPORTED_TYPE_WIDENING",
    UnsupportedOperationError,
    "KD00E",
    f"{_FAILED}IcebergCompatV{{version}} is incompatible with a type change applied to this table: {{table}}: field "
    "{fieldPath} was changed from {prevType} to {newType}, a change that Iceberg does not support; it is "
    "incompatible with IcebergCompatV{version}. Nothing was written",
    parameters=("version", "fieldPath", "prevType", "newType"),
    family="operation",
)
COMPAT_VERSION_MUTUAL_EXCLUSIVE = ErrorCondition(
    f"{_COMPAT}.VERSION_MUTUAL_EXCLUSIVE",
    UnsupportedOperationError,
    "KD00E",
    f"{_FAILED}Only one IcebergCompat version can be enabled, please explicitly disable all other IcebergCompat "
    "versions that are not needed: {table} cannot have both IcebergCompatV1 and IcebergCompatV2: set the property of "
    "the other one to false in the same command. Nothing was written",
    parameters=("version",),
    family="operation",
)
COMPAT_WRONG_REQUIRED_TABLE_PROPERTY = ErrorCondition(
    f"{_COMPAT}.WRONG_REQUIRED_TABLE_PROPERTY",
    UnsupportedOperationError,
    "KD00E",
    f"{_FAILED}IcebergCompatV{{version}} requires table property '{{key}}' to be set to '{{requiredValue}}'. Current "
    "value: '{actualValue}'. {table} cannot have IcebergCompatV{version} with '{key}' = '{actualValue}'. Nothing was "
    f"written; set it to '{{requiredValue}}', which on a table with rows is done first, or run {_REORG}",
    parameters=("version", "key", "requiredValue", "actualValue"),
    family="operation",
)
MISSING_ICEBERG_CLASS = ErrorCondition(
    "DELTA_MISSING_ICEBERG_CLASS",
    UnsupportedOperationError,
    "56038",
    "Iceberg class was not found: the metadata of Iceberg for {table} is written by the package pyiceberg, which "
    "cannot be imported ({reason}). Nothing was written; pip install 'delta-ds[iceberg]'",
    parameters=("table",),
    family="operation",
)
UNIVERSAL_FORMAT_COMPAT_REQUIRED = ErrorCondition(
    "DELTA_UNIVERSAL_FORMAT_VIOLATION.ICEBERG_COMPAT_REQUIRED",
    UnsupportedOperationError,
    "KD00E",
    "{table} cannot have delta.universalFormat.enabledFormats = iceberg without delta.enableIcebergCompatV2 or "
    "delta.enableIcebergCompatV1 = true. Nothing was written",
    parameters=("format",),
    family="operation",
)
GENERATE_WITHOUT_UNIVERSAL_FORMAT = UNIVERSAL_FORMAT_COMPAT_REQUIRED.also(
    "the metadata of Iceberg is not generated for {table}: it does not have delta.universalFormat.enabledFormats = "
    "iceberg, without which VACUUM would delete it. Set the property first, together with "
    "delta.enableIcebergCompatV2 = true",
    parameters=("format",),
)
UNIVERSAL_FORMAT_CONVERSION_FAILED = ErrorCondition(
    "DELTA_UNIVERSAL_FORMAT_CONVERSION_FAILED",
    UnsupportedOperationError,
    "KD00E",
    "Failed to convert the table version {version} to the universal format {format}: version {version} of "
    "{table} cannot be described in the metadata of {format}: {message}",
    parameters=("version", "format", "message"),
    family="operation",
)
COMPAT_VERSION_NOT_SUPPORTED = ErrorCondition(
    f"{_COMPAT}.COMPAT_VERSION_NOT_SUPPORTED",
    UnsupportedOperationError,
    "KD00E",
    f"{_FAILED}IcebergCompatVersion = {{version}} is not supported: {{table}} cannot be upgraded to "
    "ICEBERG_COMPAT_VERSION = {version}: 1 and 2 are supported. Nothing was written",
    parameters=("version", "maxVersion"),
    family="operation",
)
