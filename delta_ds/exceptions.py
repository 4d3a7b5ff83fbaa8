"""Every error this package raises, as one tree under `DeltaError`.

Each carries `condition`, the name Delta users know from delta-spark's error conditions
(`DELTA_TABLE_NOT_FOUND`, ...), and `parameters`, the values in the message. A message says what was
wrong, on which table and version, and what to do. Where Python has a built-in for the situation
(`ValueError`, `FileNotFoundError`) the class inherits from it too. In a Spark session errors are also
of the class of `pyspark.errors` that delta-spark raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _without_records(condition: str) -> str | None:
    raise NotImplementedError(f"delta_ds/__init__.py hands in what finds the SQLSTATE of {condition}")


# The SQLSTATE of a condition by its name. Handed in, as the records that know it are made of the classes below.
sql_state_of: Callable[[str], str | None] = _without_records


class DeltaError(Exception):
    """Base of all errors of this package.

    Parameters
    ----------
    message
        What happened, on which table and version, and what to do about it. Logins and signatures of addresses in it,
        and in the parameters, are taken out.
    condition
        The error condition's name as delta-spark spells it; the class' own default if left out.
    parameters
        The values that the message names, for programs that want to act on them.

    Examples
    --------
    >>> from delta_ds import DeltaError, DeltaLog
    >>> try:
    ...     DeltaLog("/data/orders").snapshot(version=9)
    ... except DeltaError as error:
    ...     print(type(error).__name__, error.condition, error.sql_state)
    VersionNotFoundError DELTA_VERSION_NOT_FOUND 22003
    """

    default_condition = "DELTA_ERROR"

    def __init__(
        self, message: str, *, condition: str | None = None, parameters: dict[str, Any] | None = None
    ) -> None:
        from delta_ds.redaction import safe_addresses, safe_parameters

        self.condition = condition or self.default_condition
        self.parameters = safe_parameters(parameters or {})
        self.text = safe_addresses(message)
        super().__init__(f"[{self.condition}] {self.text}")

    @property
    def sql_state(self) -> str | None:
        """The SQLSTATE of the condition: five characters; None where it has none."""
        return sql_state_of(self.condition)

    def __str__(self) -> str:  # the built-in classes that some inherit from have forms of their own
        return f"[{self.condition}] {self.text}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors travel from executors to the driver by pickle; keyword-only arguments need this.
        return _rebuild, (type(self), self.text, self.condition, self.parameters)


def _rebuild(cls: type[DeltaError], message: str, condition: str, parameters: dict[str, Any]) -> DeltaError:
    return cls(message, condition=condition, parameters=parameters)


class NotADeltaTableError(DeltaError, FileNotFoundError):
    """The path does not exist, or holds no `_delta_log` with a commit or checkpoint."""

    default_condition = "DELTA_TABLE_NOT_FOUND"


class LogError(DeltaError):
    """The transaction log is damaged or incomplete."""

    default_condition = "DELTA_STATE_RECOVER_ERROR"


class CorruptLogFileError(LogError):
    """A file of `_delta_log` cannot be parsed or breaks the protocol."""

    default_condition = "DELTA_CORRUPT_LOG_FILE"


class VersionsNotContiguousError(LogError):
    """A commit between the chosen checkpoint (or version 0) and the wanted version is missing."""

    default_condition = "DELTA_VERSIONS_NOT_CONTIGUOUS"


class TruncatedLogError(LogError):
    """The first commits are gone and no complete checkpoint replaces them."""

    default_condition = "DELTA_TRUNCATED_TRANSACTION_LOG"


class VersionNotFoundError(DeltaError, ValueError):
    """Time travel to a version that is cleaned up or not yet there."""

    default_condition = "DELTA_VERSION_NOT_FOUND"


class TimestampOutOfRangeError(DeltaError, ValueError):
    """Time travel to a moment before the first or after the last commit that can be reached."""

    default_condition = "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"


class UnsupportedFeatureError(DeltaError):
    """The table needs a protocol version, feature or type that this package does not have."""

    default_condition = "DELTA_UNSUPPORTED_FEATURES_FOR_READ"


class SchemaError(DeltaError, ValueError):
    """A schema, column or type is invalid, unknown, or does not fit."""

    default_condition = "DELTA_INVALID_SCHEMA"


class PredicateError(DeltaError, ValueError):
    """A predicate cannot be parsed, names an unknown column, or is outside what can be evaluated."""

    default_condition = "DELTA_INVALID_PREDICATE"


class InvalidOptionError(DeltaError, ValueError):
    """An unknown option, or a value that an option does not take."""

    default_condition = "DELTA_ILLEGAL_OPTION"


class InvalidArgumentError(InvalidOptionError, TypeError):
    """An argument of a method is of another type than the method takes; nothing was done.

    Both a `TypeError` and a `ValueError`, as delta-spark raises now the one, now the other.
    """

    default_condition = "NOT_EXPECTED_TYPE"


class DataFileError(DeltaError):
    """A data, change or deletion vector file is missing, unreadable or not what the log says."""

    default_condition = "FAILED_READ_FILE"


class ChangeDataError(DeltaError, ValueError):
    """A range of the change data feed cannot be read."""

    default_condition = "DELTA_MISSING_CHANGE_DATA"


class StorageError(DeltaError):
    """The storage refuses or cannot do what is asked, or a path leaves what it may open."""

    default_condition = "DELTA_STORAGE_ERROR"


class JobFailedError(DeltaError):
    """Spark gave up a job of a write or command: a full disk, a lost store, a lost executor. Nothing was committed.

    In classic sessions it is a `Py4JJavaError` too: `java_exception` is what Spark reported, with all of its Java.
    """

    default_condition = "DELTA_JOB_FAILED"


class UncertainWriteError(StorageError):
    """A write was sent and its outcome is not known: it may or may not have happened."""

    default_condition = "DELTA_UNCERTAIN_WRITE"


class UnsupportedOperationError(DeltaError):
    """What was asked for is not possible on this table, or not in this way; nothing was written."""

    default_condition = "DELTA_OPERATION_NOT_ALLOWED"


class TableExistsError(DeltaError, FileExistsError):
    """There is a table already where a new one shall be made."""

    default_condition = "DELTA_TABLE_ALREADY_EXISTS"


class InvariantViolationError(DeltaError, ValueError):
    """Rows that shall be written break a constraint, NOT NULL, or a generated column's expression."""

    default_condition = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"


class AppendOnlyError(UnsupportedOperationError):
    """Rows of an append-only table would be removed or changed."""

    default_condition = "DELTA_CANNOT_MODIFY_APPEND_ONLY"


class CommitFailedError(DeltaError):
    """A commit was given up: too many others won, or its actions contradict each other."""

    default_condition = "DELTA_MAX_COMMIT_RETRIES_EXCEEDED"


class DeltaConcurrentModificationException(DeltaError):
    """Another commit came first and contradicts this transaction; nothing was written.

    The names of this class and its children are those of delta-spark.
    """

    default_condition = "DELTA_CONCURRENT_MODIFICATION"

    @property
    def winning_version(self) -> int | None:
        """The version of the other commit."""
        return self.parameters.get("version")

    @property
    def winning_operation(self) -> str | None:
        """What the other commit did, as its `commitInfo` says; None where it does not say."""
        return self.parameters.get("operation")


class ConcurrentWriteException(DeltaConcurrentModificationException):
    """Another commit took the version, and this command cannot be repeated on top of it."""

    default_condition = "DELTA_CONCURRENT_WRITE"


class ConcurrentAppendException(DeltaConcurrentModificationException):
    """Another commit added files that this transaction should have read."""

    default_condition = "DELTA_CONCURRENT_APPEND"


class ConcurrentDeleteReadException(DeltaConcurrentModificationException):
    """Another commit removed a file that this transaction read."""

    default_condition = "DELTA_CONCURRENT_DELETE_READ"


class ConcurrentDeleteDeleteException(DeltaConcurrentModificationException):
    """Another commit removed a file that this transaction removes too."""

    default_condition = "DELTA_CONCURRENT_DELETE_DELETE"


class MetadataChangedException(DeltaConcurrentModificationException):
    """Another commit changed the schema or the properties of the table."""

    default_condition = "DELTA_METADATA_CHANGED"


class ProtocolChangedException(DeltaConcurrentModificationException):
    """Another commit changed the protocol of the table, or created the table."""

    default_condition = "DELTA_PROTOCOL_CHANGED"


class ConcurrentTransactionException(DeltaConcurrentModificationException):
    """Another commit wrote the same application transaction or metadata domain."""

    default_condition = "DELTA_CONCURRENT_TRANSACTION"
