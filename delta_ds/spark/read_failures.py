"""Data files that Spark's own reader could not read, as errors that name the table."""

from __future__ import annotations

import re
from collections.abc import Callable

from delta_ds.conditions.data import FAILED_READ_FILE_FILE_NOT_EXIST, FAILED_READ_FILE_NO_HINT
from delta_ds.exceptions import DataFileError
from delta_ds.records import dataclass
from delta_ds.redaction import redacted

_FAILED = re.compile(
    r"\[FAILED_READ_FILE\.(?P<kind>\w+)\] Encountered error while reading file (?P<file>.+?)\.(?=\s|$)"
)
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+: )?(?P<text>.+)$", re.MULTILINE)
_LONGEST = 300


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
    reason = redacted(causes[-1])[:_LONGEST] if causes else "Spark does not say why"
    return FAILED_READ_FILE_NO_HINT(parameters, place=place, reason=reason)
