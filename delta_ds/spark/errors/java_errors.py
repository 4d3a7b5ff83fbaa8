"""Exceptions of Java in few words: py4j tells one in a hundred lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from delta_ds.conditions.data import FAILED_READ_FILE_FILE_NOT_EXIST, FAILED_READ_FILE_NO_HINT
from delta_ds.exceptions import DataFileError
from delta_ds.records import dataclass
from delta_ds.redaction import redacted

# --- data files that Spark's own reader could not read, as errors that name the table

_FAILED = re.compile(
    r"\[FAILED_READ_FILE\.(?P<kind>\w+)\] Encountered error while reading file (?P<file>.+?)\.(?=\s|$)"
)
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+: )?(?P<text>.+)$", re.MULTILINE)
_LONGEST_NAME = 300


@dataclass(frozen=True)
class TableFile:
    """A data file of a version that Spark reads: its path, the table and the version."""

    path: str
    table: str
    version: int


# Who knows which files Spark reads for this package: by the address in Spark's words, the file.
Finder = Callable[[str], "TableFile | None"]
_finders: list[Finder] = []


def finds_files(finder: Finder) -> Finder:
    """Ask a function for the files that Spark names."""
    _finders.append(finder)
    return finder


def find_read_failure(error: BaseException) -> DataFileError | None:
    """The error for a file of a table of this package; None if the error is of something else.

    Parameters
    ----------
    error
        What pyspark or py4j raised.
    """
    if not _finders:
        return None  # nothing is read by Spark's own reader
    text = str(error)
    failed = _FAILED.search(text)
    if failed is None:
        return None
    for finder in _finders:
        file = finder(failed["file"])
        if file is not None:
            return _error_of(file, failed["kind"], f"{text}\n{getattr(error, '_stackTrace', None) or ''}")
    return None


def _error_of(file: TableFile, kind: str, text: str) -> DataFileError:
    place = f"data file {file.path} of table {file.table} at version {file.version}"
    parameters = {"path": file.path, "table": file.table, "version": file.version}
    if kind == "FILE_NOT_EXIST":
        return FAILED_READ_FILE_FILE_NOT_EXIST(parameters, place=place)
    causes = [found["text"].strip() for found in _CAUSE.finditer(text)]
    reason = redacted(causes[-1])[:_LONGEST_NAME] if causes else "Spark does not say why"
    return FAILED_READ_FILE_NO_HINT(parameters, place=place, reason=reason)


# --- exceptions of Java in few words: py4j tells one in a hundred lines

_DEEPEST = 20
_LONGEST = 500


# Where pyspark logs each error of analysis, with all of its Java, before it raises it.
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


@contextmanager
def without_logged_java() -> Iterator[None]:
    """Let pyspark not log the errors of analysis of the block: they are raised, and say it in a line."""
    _filter_loggers()
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def _filter_loggers() -> None:
    from pyspark.logger import PySparkLogger

    for name in _LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_is_to_be_logged)  # a filter that is there is not added again


def _is_to_be_logged(record: object) -> bool:
    return not _quiet.get()


def shorten(error: BaseException) -> None:
    """Let an error of Spark tell no Java, where it goes on as the cause of another.

    The rest stays in `java_exception` of an error of py4j, and in `getStackTrace()` of one of Spark Connect.
    """
    if getattr(error, "_display_stacktrace", False):
        vars(error)["_display_stacktrace"] = False
    if type(error).__name__ == "Py4JJavaError" and not hasattr(error, "_is_short"):
        error.__class__ = _short(type(error))


def _short(py4j: Any) -> Any:
    def text(error: Any) -> str:
        return f"{error.errmsg}: {first_line(error.java_exception)}"

    members = {"__str__": text, "__module__": py4j.__module__, "_is_short": True}
    return type(py4j.__name__, (py4j,), members)


def chain(java: Any) -> Iterator[Any]:
    """An exception of Java, then its causes; as far as the JVM still answers."""
    for _ in range(_DEEPEST):
        if java is None:
            return
        yield java
        try:
            java = java.getCause()
        except _py4j_error():
            return


def first_line(java: Any) -> str:
    """The class of an exception, and the first line of its message, without what looks like a secret."""
    try:
        text = redacted(str(java.toString()).strip().splitlines()[0])
    except (_py4j_error(), IndexError):
        return "the JVM does not answer any more"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _py4j_error() -> type[Exception]:
    # Not every client of Spark Connect has it.
    from py4j.protocol import Py4JError

    found: type[Exception] = Py4JError
    return found
