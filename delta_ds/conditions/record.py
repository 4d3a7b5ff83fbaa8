"""`ErrorCondition`: the record of an error condition, which makes its errors; and the default of each class."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar, overload

from delta_ds.exceptions import (
    AppendOnlyError,
    ChangeDataError,
    CommitFailedError,
    CorruptLogFileError,
    DataFileError,
    DeltaError,
    InvalidArgumentError,
    InvalidOptionError,
    InvariantViolationError,
    JobFailedError,
    LogError,
    NotADeltaTableError,
    PredicateError,
    SchemaError,
    StorageError,
    TableExistsError,
    TimestampOutOfRangeError,
    TruncatedLogError,
    UncertainWriteError,
    UnsupportedFeatureError,
    UnsupportedOperationError,
    VersionNotFoundError,
    VersionsNotContiguousError,
)

E = TypeVar("E", bound=DeltaError)
E2 = TypeVar("E2", bound=DeltaError)

# The kinds of exception that Spark tells apart. `state`: what is there, on the storage, in the log or by other
# commits, does not allow it.
Family = Literal[
    "analysis", "argument", "arithmetic", "index", "number", "operation", "parse", "runtime", "state", "type"
]


class ErrorCondition(Generic[E]):
    """One text of an error condition. Most conditions have one; others are made of the first with `also`.

    A plain class: every process that Spark starts for a read makes some of them.

    Attributes
    ----------
    name
        As in the error: `DELTA_TABLE_NOT_FOUND`; a part after a dot narrows it down.
    error
        The class that is raised.
    sql_state
        Five characters; None where Spark has none.
    text
        What happened, where, and what to do: a format string. `{names:list}` joins a sequence by commas. Empty where
        each raise site has a text of its own, with the condition of its class.
    parameters
        Which of the values become parameters of the error; the others are only in the text.
    family
        Which class of `pyspark.errors` the error is of as well, in a Spark session.
    first
        The record that this one is another text of.

    >>> from delta_ds.exceptions import SchemaError
    >>> missing = ErrorCondition(
    ...     "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
    ...     SchemaError,
    ...     "42703",
    ...     "{table} has no column {column!r}; it has {known:list}",
    ...     parameters=("column",),
    ... )
    >>> error = missing(table="/data/t", column="b", known=["a", "c"])
    >>> error
    SchemaError("[DELTA_COLUMN_NOT_FOUND_IN_SCHEMA] /data/t has no column 'b'; it has a, c")
    >>> error.parameters
    {'column': 'b'}
    """

    __slots__ = ("error", "family", "first", "name", "parameters", "sql_state", "text")

    def __init__(
        self,
        name: str,
        error: type[E],
        sql_state: str | None,
        text: str = "",
        *,
        parameters: tuple[str, ...] = (),
        family: Family = "analysis",
        first: ErrorCondition[Any] | None = None,
    ) -> None:
        self.name = name
        self.error = error
        self.sql_state = sql_state
        self.text = text
        self.parameters = parameters
        self.family: Family = family
        self.first = first

    @overload
    def also(self, text: str | None = None, *, parameters: tuple[str, ...] = ()) -> ErrorCondition[E]: ...

    @overload
    def also(
        self, text: str | None = None, *, parameters: tuple[str, ...] = (), error: type[E2]
    ) -> ErrorCondition[E2]: ...

    def also(
        self,
        text: str | None = None,
        *,
        parameters: tuple[str, ...] = (),
        error: type[DeltaError] | None = None,
    ) -> ErrorCondition[Any]:
        """The same condition with another text, other parameters or another class."""
        return ErrorCondition(
            self.name,
            error or self.error,
            self.sql_state,
            self.text if text is None else text,
            parameters=parameters,
            family=self.family,
            first=self.first or self,
        )

    def narrowed(self, part: str) -> ErrorCondition[E]:
        """The same text under the name of the condition and a part after a dot."""
        return ErrorCondition(
            f"{self.name}.{part}",
            self.error,
            self.sql_state,
            self.text,
            parameters=self.parameters,
            family=self.family,
        )

    def __call__(self, inherited: Mapping[str, Any] | None = None, /, **values: Any) -> E:
        """The error, to be raised.

        Parameters
        ----------
        inherited
            Parameters that are handed on as they are, for instance those of the cause.
        values
            Whatever the text and `parameters` name.
        """
        parameters = {**(inherited or {}), **{name: values[name] for name in self.parameters}}
        return self.error(
            _FORMATTER.vformat(self.text, (), values), condition=self.name, parameters=parameters
        )


class _Formatter(string.Formatter):
    """Format strings, with `{values:list}` for a sequence that is written with commas."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec == "list":
            return ", ".join(map(str, value))
        return str(super().format_field(value, format_spec))


_FORMATTER = _Formatter()


CANNOT_MODIFY_APPEND_ONLY = ErrorCondition(
    "DELTA_CANNOT_MODIFY_APPEND_ONLY",
    AppendOnlyError,
    "42809",
    family="operation",
)
CORRUPT_LOG_FILE = ErrorCondition("DELTA_CORRUPT_LOG_FILE", CorruptLogFileError, "XXKDS")
LOG_FILE_CUT_SHORT = CORRUPT_LOG_FILE.also(
    "{path} of {table} came with {found} of the {listed} bytes that it is listed with: it was cut off on the way, or "
    "replaced in between. Read it again; if that does not help, restore the file from a backup",
)
ERROR = ErrorCondition("DELTA_ERROR", DeltaError, "XXKDS")
FAILED_READ_FILE = ErrorCondition("FAILED_READ_FILE", DataFileError, "KD001", family="state")
ILLEGAL_OPTION = ErrorCondition("DELTA_ILLEGAL_OPTION", InvalidOptionError, "42616", family="argument")
ADD_COLUMNS_OPTIONS = ILLEGAL_OPTION.also(
    "give at least one column, and first or after but not both. Nothing was changed",
)
PATH_MISSING = ILLEGAL_OPTION.also("the option 'path' is missing: use .load('/path/of/the/table')")
OPTION_OF_THE_LOG = ILLEGAL_OPTION.also(
    "option {option!r} sets the location of a table, or the access to its store: pass it to DeltaLog(path, "
    "storage_options), and not to its write. Nothing was written",
    parameters=("option",),
)
OPTIONS_OF_NAMED_TABLE = ILLEGAL_OPTION.also(
    "options {options} of the new table {table} cannot go to a server of Spark Connect along with its name, as they "
    "would be part of a statement: set them in the server's session, or give a path with .location(...) and no name. "
    "Nothing was made",
)
# delta-spark has no condition for these two, but their text.
LOG_RETENTION_TOO_SHORT = ILLEGAL_OPTION.also(
    "The table property {log}({log_kept}) needs to be greater than or equal to {files}({files_kept}). Versions would "
    "leave the log before their files: give both properties in one command. Nothing was written",
)
DELETED_FILE_RETENTION_TOO_LONG = ILLEGAL_OPTION.also(
    "The table property {files}({files_kept}) needs to be less than or equal to {log}({log_kept}). Versions would "
    "leave the log before their files: give both properties in one command. Nothing was written",
)
WRITTEN_BY_OTHER_FORMAT = ILLEGAL_OPTION.also(
    "{table} is a table of pydelta, it cannot be written with format({format!r})"
)
WRONG_PARAMETER_OF_PAGE = ILLEGAL_OPTION.also(
    "{name} of the page has a wrong parameter {parameter!r}: {reason}"
)
INVALID_PREDICATE = ErrorCondition("DELTA_INVALID_PREDICATE", PredicateError, "42000")
INVALID_SCHEMA = ErrorCondition("DELTA_INVALID_SCHEMA", SchemaError, "42000")
JOB_FAILED = ErrorCondition("DELTA_JOB_FAILED", JobFailedError, "58030", family="state")
MAX_COMMIT_RETRIES_EXCEEDED = ErrorCondition(
    "DELTA_MAX_COMMIT_RETRIES_EXCEEDED",
    CommitFailedError,
    "40000",
    family="state",
)
PREDICATE_NOT_BOOLEAN = INVALID_PREDICATE.also(
    "a predicate must be boolean, but {predicate} is of type {type}"
)
MISSING_CHANGE_DATA = ErrorCondition("DELTA_MISSING_CHANGE_DATA", ChangeDataError, "KD002")
NOT_EXPECTED_TYPE = ErrorCondition("NOT_EXPECTED_TYPE", InvalidArgumentError, "42K09", family="type")
OPERATION_NOT_ALLOWED = ErrorCondition("DELTA_OPERATION_NOT_ALLOWED", UnsupportedOperationError, "0AKDC")
CREATE_BY_NAME_NOT_ALLOWED = OPERATION_NOT_ALLOWED.also(
    "Operation not allowed: a table cannot be created by the name {identifier!r}: the catalog would have to know "
    "the format. Give its path with .location(...), and a name of a session with createOrReplaceTempView",
)
PARTITION_BY_EXPRESSION_NOT_ALLOWED = OPERATION_NOT_ALLOWED.also(
    "Operation not allowed: a table cannot be partitioned by the expression {column}, only by columns: add a "
    "generated column for it and name that. Nothing was written",
)
CREATE_IN_CATALOG_NOT_ALLOWED = OPERATION_NOT_ALLOWED.also(
    "Operation not allowed: {what} cannot be made in a catalog: Spark does not hand its location to pydelta. Use "
    "the name pydelta.`/path/of/the/table` or df.write.format('pydelta').save(path), and for a short name "
    "spark.read.format('pydelta').load(path).createOrReplaceTempView(name). Nothing was written",
)
CONVERT_STREAM_OUTPUT_NOT_ALLOWED = OPERATION_NOT_ALLOWED.also(
    "Operation not allowed: {path} was written by a streaming file sink, whose log in _spark_metadata says which "
    "files count. Nothing was written; read the folder with Spark and write it to a new table",
    parameters=("path",),
)
NESTED_DEFAULT_NOT_ALLOWED = OPERATION_NOT_ALLOWED.also(
    "Operation not allowed: {column} of {table} cannot have a default, only top-level columns can. Nothing was changed",
    parameters=("column",),
)
OUTPUT_MODE_NOT_ALLOWED = OPERATION_NOT_ALLOWED.also(
    "Operation not allowed: a table does not support output mode {mode!r}: rows that change cannot be told from "
    "new ones. Use foreachBatch with DeltaTable.merge, or the modes append and complete",
    parameters=("mode",),
)
STATE_RECOVER_ERROR = ErrorCondition("DELTA_STATE_RECOVER_ERROR", LogError, "XXKDS", family="state")
STORAGE_ERROR = ErrorCondition("DELTA_STORAGE_ERROR", StorageError, "58030")
CAME_SHORT = STORAGE_ERROR.also(
    "{path} came with {found} bytes, and the store says that it has {size}: something between here and the store, "
    "such as a proxy or a cache, cuts off the data. Try again; if that does not help, check the proxy",
    parameters=("path",),
)
TABLE_ALREADY_EXISTS = ErrorCondition("DELTA_TABLE_ALREADY_EXISTS", TableExistsError, "42P07")
CLONE_OVER_TABLE = TABLE_ALREADY_EXISTS.also(
    "Table {tableName} already exists: cannot clone to it. Nothing was written",
    parameters=("tableName",),
)
TABLE_NOT_FOUND = ErrorCondition("DELTA_TABLE_NOT_FOUND", NotADeltaTableError, "42P01")
ENTRY_WITHOUT_TABLE = TABLE_NOT_FOUND.also(
    "Delta table {tableName} doesn't exist: the catalog has its entry, and there is no table at {location}. Bring its "
    "files back, or drop the entry with DROP TABLE",
    parameters=("tableName",),
)
TIMESTAMP_GREATER_THAN_COMMIT = ErrorCondition(
    "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
    TimestampOutOfRangeError,
    "42816",
    "Timestamp {providedTimestamp} is after the table's latest version ({lastCommitTimestamp}). Use a timestamp "
    "at or before {maximumTimestamp}, when {table} was last committed to",
    parameters=("providedTimestamp", "lastCommitTimestamp", "maximumTimestamp"),
)
TRUNCATED_TRANSACTION_LOG = ErrorCondition(
    "DELTA_TRUNCATED_TRANSACTION_LOG",
    TruncatedLogError,
    "42K03",
    family="state",
)
UNCERTAIN_WRITE = ErrorCondition("DELTA_UNCERTAIN_WRITE", UncertainWriteError, "58030")
UNSUPPORTED_FEATURES_FOR_READ = ErrorCondition(
    "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
    UnsupportedFeatureError,
    "56038",
    family="state",
)
VERSIONS_NOT_CONTIGUOUS = ErrorCondition(
    "DELTA_VERSIONS_NOT_CONTIGUOUS",
    VersionsNotContiguousError,
    "KD00C",
    family="state",
)
VERSION_NOT_FOUND = ErrorCondition("DELTA_VERSION_NOT_FOUND", VersionNotFoundError, "22003")
VIOLATE_CONSTRAINT_WITH_VALUES = ErrorCondition(
    "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
    InvariantViolationError,
    "23001",
    family="state",
)
