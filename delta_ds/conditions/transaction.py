"""Conditions of commits and conflicts."""

from __future__ import annotations

from delta_ds.conditions.record import E, ErrorCondition
from delta_ds.exceptions import (
    CommitFailedError,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    InvalidOptionError,
    MetadataChangedException,
    ProtocolChangedException,
    SchemaError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
)

_RUN_AGAIN = "Nothing was written by this {loser} ({read}). Run it again: it will then see that version"


def _conflict(what: str) -> str:
    """The text of a conflict: `what` the commit that came first has done."""
    return (
        "Transaction conflict detected: a concurrent {winner}, committed as version {version} of table {table}, "
        f"{what}. {_RUN_AGAIN}"
    )


def _added(what: str) -> str:
    """The text of a conflict with data that came first."""
    return (
        "Transaction conflict detected. a concurrent {winner} added data to table {table} committed at version "
        f"{{version}}: {what} ({{place}}). {_RUN_AGAIN}"
    )


def _deleted(what: str) -> str:
    """The text of a conflict with data that went first."""
    return (
        "Transaction conflict detected, a concurrent {winner} deleted data from table {table} (committed at version "
        f"{{version}}) that this transaction {what} ({{place}}). {_RUN_AGAIN}"
    )


def _also(first: ErrorCondition[E], text: str) -> ErrorCondition[E]:
    """Another conflict of a condition, of which programs learn the same."""
    return first.also(text, parameters=first.parameters)


# What programs learn of the commit that came first.
_OF_WINNER = ("version", "operation", "table", "commitInfo")
_OF_FILE = (*_OF_WINNER, "file")


ACTION_NOT_JSON = ErrorCondition(
    "DELTA_ACTION_NOT_JSON",
    CommitFailedError,
    "XXKDS",
    "the {action} of a commit to table {table} cannot be written: {reason}. Nothing was written",
    parameters=("table", "action"),
)
ADD_FILE_PARTITIONING_MISMATCH = ErrorCondition(
    "DELTA_ADD_FILE_PARTITIONING_MISMATCH",
    SchemaError,
    "XXKDS",
    "file {path!r} has partition values for {given}, but table {table} is partitioned by {wanted} "
    "(physical names); nothing was written",
    parameters=("path", "given", "wanted"),
)
BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION = ErrorCondition(
    "DELTA_BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION",
    UnsupportedOperationError,
    "42KD4",
    'Operation "{opName}" is not allowed when the table has enabled change data feed (CDF) and has undergone '
    "schema changes using DROP COLUMN or RENAME COLUMN: on table {table} it {what} and changes files, which "
    "tables with column mapping and a change data feed do not allow in one commit. Nothing was written; change "
    "the columns first, or turn delta.enableChangeDataFeed off for this time",
    parameters=("opName",),
    family="operation",
)
CONCURRENT_APPEND = ErrorCondition(
    "DELTA_CONCURRENT_APPEND",
    ConcurrentAppendException,
    "2D521",
    _added("it should have been read by this transaction"),
    parameters=_OF_FILE,
    family="state",
)
CONCURRENT_APPEND_OF_ROWS = _also(
    CONCURRENT_APPEND, _added("it added {rows} that this transaction should have read{sought}")
)
CONCURRENT_DELETE_DELETE = ErrorCondition(
    "DELTA_CONCURRENT_DELETE_DELETE",
    ConcurrentDeleteDeleteException,
    "2D521",
    _deleted("attempted to delete"),
    parameters=_OF_FILE,
    family="state",
)
CONCURRENT_DELETE_READ = ErrorCondition(
    "DELTA_CONCURRENT_DELETE_READ",
    ConcurrentDeleteReadException,
    "2D521",
    _deleted("read"),
    parameters=_OF_FILE,
    family="state",
)
DELETED_DATA_OF_TABLE = _also(
    CONCURRENT_DELETE_READ,
    _deleted("read: it deleted data of the table, all of which this transaction depends on"),
)
DELETED_CHANGED_FILE = _also(
    CONCURRENT_DELETE_READ,
    _deleted("read: it removed a file with {rows} rows that this transaction changes{sought}"),
)
CHANGED_SAME_ROWS = _also(
    CONCURRENT_DELETE_READ,
    _deleted("read: it deleted or changed {rows} that this transaction changes too{sought}"),
)
BROUGHT_ROWS_BACK = _also(
    CONCURRENT_DELETE_READ,
    _deleted("read: it brought {rows} back into a file that this transaction changes{sought}"),
)
CHANGED_READ_ROWS = _also(
    CONCURRENT_DELETE_READ,
    _deleted("read: it deleted or changed {rows} that this transaction has read{sought}"),
)
REMOVED_FILE_OF_UNKNOWN_PARTITION = _also(
    CONCURRENT_DELETE_READ,
    _deleted("read: it removed a file of which it does not tell the partition{sought}"),
)
MOVED_ROWS_NOT_FOUND = _also(
    CONCURRENT_DELETE_READ,
    _deleted(
        "read: it rewrote files, and not every row that this transaction changes is found again by its row id{sought}"
    ),
)
CONCURRENT_MODIFICATION = ErrorCondition(
    "DELTA_CONCURRENT_MODIFICATION",
    DeltaConcurrentModificationException,
    "2D521",
    "files that OPTIMIZE has rewritten are not in version {version} of {table} any more. Nothing was written; run it "
    "again",
    parameters=("version",),
)
NEW_VERSION_UNCHECKED = CONCURRENT_MODIFICATION.also(
    "while the rows of version {checked} of {table} were checked against the new CHECK constraint {constraint}, "
    "version {version} was committed. Add the constraint again. Nothing was written",
    parameters=("version",),
)
CONCURRENT_TRANSACTION = ErrorCondition(
    "DELTA_CONCURRENT_TRANSACTION",
    ConcurrentTransactionException,
    "2D521",
    "ConcurrentTransactionException: This error occurs when multiple streaming queries are using the same checkpoint "
    "to write into this table, or the same application id. "
    + _conflict(
        "recorded a transaction of application {appId!r}, whose latest one this transaction had looked up"
    ),
    parameters=(*_OF_WINNER, "appId"),
    family="state",
)
CONCURRENT_DOMAIN = CONCURRENT_TRANSACTION.also(
    _conflict("set the same metadata domain. A conflicting metadata domain {domain} is added."),
    parameters=(*_OF_WINNER, "domain"),
)
CONCURRENT_WRITE = ErrorCondition(
    "DELTA_CONCURRENT_WRITE",
    ConcurrentWriteException,
    "2D521",
    "ConcurrentWriteException: A concurrent transaction has written new data since the current transaction read the "
    "table. " + _conflict("committed first, and {loser} has to be the next commit after the version it read"),
    parameters=_OF_WINNER,
    family="state",
)
DOMAIN_METADATA_NOT_SUPPORTED = ErrorCondition(
    "DELTA_DOMAIN_METADATA_NOT_SUPPORTED",
    UnsupportedFeatureError,
    "0A000",
    "Detected DomainMetadata action(s) for domains [{names}], but DomainMetadataTableFeature is not enabled: "
    "table {table} does not support table feature domainMetadata. Nothing was written; add the feature first",
    parameters=("domainNames",),
    family="argument",
)
DUPLICATE_ACTIONS_FOUND = ErrorCondition(
    "DELTA_DUPLICATE_ACTIONS_FOUND",
    CommitFailedError,
    "2D521",
    "File operation '{actionType}' for path {path} of table {table} was specified several times. It is "
    "not valid for multiple file operations with the same path to exist in a single commit; nothing was "
    "written",
    parameters=("actionType", "path", "table"),
    family="state",
)
CHANGED_TWICE_IN_TRANSACTION = DUPLICATE_ACTIONS_FOUND.also(
    "Cannot change the {kind} more than once in a transaction on {table}; nothing was written",
)
DUPLICATE_DOMAIN_METADATA_INTERNAL_ERROR = ErrorCondition(
    "DELTA_DUPLICATE_DOMAIN_METADATA_INTERNAL_ERROR",
    CommitFailedError,
    "42601",
    "Internal error: two DomainMetadata actions within the same transaction have the same domain {domainName}: "
    "two DomainMetadata actions for domain {domainName!r} in one commit to {table}; nothing was written",
    parameters=("domainName",),
    family="argument",
)
FEATURE_DROP_CONFLICT_REVALIDATION_FAIL = ErrorCondition(
    "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
    UnsupportedOperationError,
    "40000",
    family="state",
)
FEATURE_DROP_LEFT_TRACES = FEATURE_DROP_CONFLICT_REVALIDATION_FAIL.also(
    "Cannot drop feature because a concurrent transaction modified the table. "
    + _conflict("left traces of table feature {feature}, which this transaction drops: {trace}"),
    parameters=_OF_WINNER,
    error=DeltaConcurrentModificationException,
)
FEATURE_DROP_OVERTAKEN = FEATURE_DROP_CONFLICT_REVALIDATION_FAIL.also(
    "Cannot drop feature because a concurrent transaction modified the table: table feature {feature!r} of {table} is "
    "not dropped: files that hold traces of it came after those that were rewritten. Call dropFeatureSupport again",
    parameters=("feature",),
)
FEATURE_DROP_TRACES = FEATURE_DROP_CONFLICT_REVALIDATION_FAIL.also(
    "table feature {feature!r} of {table} cannot be dropped at version {version}: {trace}{way_out}",
    parameters=("feature", "trace"),
)
INVALID_ISOLATION_LEVEL = ErrorCondition(
    "DELTA_INVALID_ISOLATION_LEVEL",
    InvalidOptionError,
    "25000",
    "invalid isolation level '{isolationLevel}': delta.isolationLevel of table {table} is none of {levels}; nothing "
    "was written. Set it to one of the first two",
    parameters=("isolationLevel",),
    family="argument",
)
INVALID_PROTOCOL_DOWNGRADE = ErrorCondition(
    "DELTA_INVALID_PROTOCOL_DOWNGRADE",
    UnsupportedOperationError,
    "KD004",
    "Protocol version cannot be downgraded from ({oldProtocol}) to ({newProtocol}): the new protocol of table "
    "{table} lacks {features:list}. Nothing was written; drop features with dropFeatureSupport",
    parameters=("table", "features"),
    family="state",
)
MANIFESTS_WITH_EXISTING_DELETION_VECTORS = ErrorCondition(
    "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED.EXISTING_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION",
    UnsupportedOperationError,
    "0A000",
    "The validation of the properties of table {table} has been violated: Symlink manifest generation is "
    "unsupported while deletion vectors are present in the table. "
    "delta.compatibility.symlinkFormatManifest.enabled and files with deletion vectors, which have to be purged "
    "first, exclude each other on table {table}: manifests name whole files. Nothing was written",
    parameters=("table",),
    family="state",
)
MANIFESTS_WITH_PERSISTENT_DELETION_VECTORS = ErrorCondition(
    "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED.PERSISTENT_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION",
    UnsupportedOperationError,
    "0A000",
    "The validation of the properties of table {table} has been violated: Persistent deletion vectors and incremental "
    "symlink manifest generation are mutually exclusive. delta.compatibility.symlinkFormatManifest.enabled and "
    "delta.enableDeletionVectors exclude each other on table {table}: manifests name whole files. Nothing was written",
    parameters=("table",),
    family="state",
)
METADATA_ABSENT = ErrorCondition(
    "DELTA_METADATA_ABSENT",
    CommitFailedError,
    "XXKDS",
    "Couldn't find Metadata while committing the first version of the Delta table {table}; nothing was written. "
    "Call set_metadata first",
    family="state",
)
_METADATA = (
    "MetadataChangedException: The metadata of the Delta table {table} has been changed by a concurrent "
    "update. "
)
METADATA_CHANGED = ErrorCondition(
    "DELTA_METADATA_CHANGED",
    MetadataChangedException,
    "2D521",
    _METADATA + _conflict("changed the metadata of the table: {difference}"),
    parameters=_OF_WINNER,
    family="state",
)
METADATA_CHANGED_BY_BOTH = _also(
    METADATA_CHANGED, _METADATA + _conflict("changed the metadata of the table, and so does this transaction")
)
TABLE_REPLACED_BEFORE_BATCH = METADATA_CHANGED.also(
    "MetadataChangedException: The metadata of the Delta table {table} has been changed by a concurrent update: "
    "it was replaced by another one while a batch for it was written: its id is {id!r}, not {planned_id!r}. "
    "Nothing was written. Start the query again to write to the new table",
    parameters=("version",),
)
_PROTOCOL = (
    "ProtocolChangedException: The protocol version of the Delta table has been changed by a concurrent "
    "update. "
)
PROTOCOL_CHANGED = ErrorCondition(
    "DELTA_PROTOCOL_CHANGED",
    ProtocolChangedException,
    "2D521",
    _PROTOCOL + _conflict("both change the protocol of the table"),
    parameters=_OF_WINNER,
    family="state",
)
TABLE_CREATED_BY_BOTH = _also(
    PROTOCOL_CHANGED,
    _PROTOCOL
    + _conflict(
        "created the table while this transaction was about to. Several writers may try to create a table in an empty "
        "folder at once; one of them wins"
    ),
)
FEATURE_DROPPED_MEANWHILE = _also(
    PROTOCOL_CHANGED, _PROTOCOL + _conflict("dropped table feature {features:list}")
)
ROW_ID_ASSIGNMENT_WITHOUT_STATS = ErrorCondition(
    "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
    CommitFailedError,
    "22000",
    "Cannot assign row IDs without row count statistics: file {path!r} for table {table} has no "
    "numRecords in its stats; nothing was written. Collect statistics when writing the file",
    parameters=("path", "table"),
    family="state",
)
ROW_ID_HIGH_WATER_MARK_SET = ErrorCondition(
    "DELTA_ROW_ID_HIGH_WATER_MARK_SET",
    CommitFailedError,
    "XXKDS",
    "Manually setting the Row ID high water mark is not allowed (metadata domain delta.rowTracking of "
    "table {table}); nothing was written",
)
ROW_TRACKING_BACKFILL_RUNNING_CONCURRENTLY_WITH_UNBACKFILL = ErrorCondition(
    "DELTA_ROW_TRACKING_BACKFILL_RUNNING_CONCURRENTLY_WITH_UNBACKFILL",
    CommitFailedError,
    "22KD0",
    "A Row Tracking enablement operation was detected running concurrently with a Row Tracking disablement: "
    "version {version} of {table} enables row tracking while this transaction disables it. Nothing was written; "
    "run the disablement again when the enablement is complete",
    parameters=("version", "operation", "table"),
    family="state",
)
SET_TRANSACTION_VERSION_CONFLICT = ErrorCondition(
    "DELTA_SET_TRANSACTION_VERSION_CONFLICT",
    CommitFailedError,
    "40000",
    "Two transactions of application {appId!r} in one commit to {table}: versions {first} and {second}; "
    "nothing was written",
    parameters=("appId", "versions"),
)
TRANSACTION_FINISHED = ErrorCondition(
    "DELTA_TRANSACTION_FINISHED",
    CommitFailedError,
    "XXKDS",
    "this transaction on {table} {finished}: start another one",
)
UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS = ErrorCondition(
    "DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS",
    UnsupportedOperationError,
    "0A000",
    "The 'GENERATE symlink_format_manifest' command is not supported on table versions with deletion vectors: no "
    "manifests can be generated for {table}: {files} of its files have deletion vectors, which readers of "
    "manifests do not see. Nothing was written; purge them first (REORG TABLE ... APPLY (PURGE))",
    parameters=("table", "files"),
    family="operation",
)
UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING = ErrorCondition(
    "DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING",
    UnsupportedOperationError,
    "0AKDC",
    "Manifest generation is not supported for tables that leverage column mapping, as external readers cannot "
    "read these Delta tables: no manifests can be generated for {table}: with column mapping, the columns of its "
    "files have other names than those of the table. Nothing was written",
    parameters=("table",),
    family="operation",
)
