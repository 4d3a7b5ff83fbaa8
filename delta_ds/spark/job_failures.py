"""Jobs that Spark gave up, as one short `JobFailedError`.

Py4j's own error of such a failure says it in two hundred lines of Java, without the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from delta_ds.exceptions import JobFailedError
from delta_ds.spark.errors import as_delta_error

_DEEPEST = 20
_LONGEST = 500


@contextmanager
def failed_jobs(what: str) -> Iterator[None]:
    """Raise a job failure of Spark as `JobFailedError`.

    What pyspark itself makes an exception of, such as a division by zero in the query, stays as it is.

    Parameters
    ----------
    what
        The write or command, and its table.

    Raises
    ------
    JobFailedError
        With py4j's error as its cause, which then says less of itself; `java_exception` has it all.
    """
    try:
        yield
    except Exception as error:
        chain = list(_chain(getattr(error, "java_exception", None)))
        if not chain or as_delta_error(error) is not None:
            raise
        reason = _first_line(chain[-1])
        error.__class__ = _with_short_text(type(error))
        raise JobFailedError(
            f"{what} failed in Spark: {reason}. Nothing was committed, and what was written has been deleted as far as "
            "that was possible; VACUUM removes the rest",
            parameters={"reason": reason},
        ) from error


def _with_short_text(py4j: type[Exception]) -> type[Exception]:
    """The class of the same error, in one line."""

    def short_text(error: Any) -> str:
        return f"{error.errmsg}: {_first_line(error.java_exception)}"

    return type(py4j.__name__, (py4j,), {"__str__": short_text, "__module__": py4j.__module__})


def _chain(java: Any) -> Iterator[Any]:
    """An exception of Java, then its causes; as far as the JVM still answers."""
    for _ in range(_DEEPEST):
        if java is None:
            return
        yield java
        try:
            java = java.getCause()
        except _py4j_error():
            return


def _first_line(java: Any) -> str:
    try:
        text = str(java.toString()).strip().splitlines()[0]
    except (_py4j_error(), IndexError):
        return "the JVM does not answer any more"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _py4j_error() -> type[Exception]:
    # Not every client of Spark Connect has it.
    from py4j.protocol import Py4JError

    found: type[Exception] = Py4JError
    return found
