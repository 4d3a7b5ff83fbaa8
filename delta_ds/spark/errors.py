"""Errors of this package that come back from Spark as text.

The data source runs in Python processes of Spark. What it raises there reaches the user inside an exception of Spark
whose message holds the traceback; the class, and with it `except NotADeltaTableError`, is lost. This module gives it
back. Classic sessions and Spark Connect write the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from delta_ds import exceptions
from delta_ds.exceptions import DeltaError

# The last line, or lines, of a Python traceback: `delta_ds.exceptions.SchemaError: [CONDITION] message`.
_RAISED = re.compile(r"(?:^|\s)delta_ds\.exceptions\.(?P<kind>\w+): \[(?P<condition>[A-Z][A-Z0-9_.]*)\] ")
# What comes after the message: more of Python's report, or of Spark's.
_CHAINED = r"\n\n(?:The above exception was the direct cause|During handling of the above exception)"
_END = re.compile(
    rf"(?P<chained>{_CHAINED})|\s+SQLSTATE: \w{{5}}\b|\s*\n(?:(?:JVM|Driver) stacktrace:|\tat |Caused by: )|\s*\Z"
)


def as_delta_error(exception: BaseException) -> DeltaError | None:
    """The error of this package that an exception of Spark reports.

    Parameters
    ----------
    exception
        What Spark raised, in a classic session or one of Spark Connect; or an error of this package.

    Returns
    -------
    DeltaError or None
        Of the class that was raised, with its condition and text; its `parameters` did not travel. A class that
        only the other side knows becomes a plain `DeltaError`. None: Spark reports something else.

    >>> text = "Traceback ...\\ndelta_ds.exceptions.SchemaError: [DELTA_INVALID_SCHEMA] no columns\\n SQLSTATE: 38000"
    >>> as_delta_error(RuntimeError(text))
    SchemaError('[DELTA_INVALID_SCHEMA] no columns')
    """
    if isinstance(exception, DeltaError):
        return exception
    text = str(exception)
    found: DeltaError | None = None
    for raised in _RAISED.finditer(text):
        end = _END.search(text, raised.end())
        # An error that caused another one is not what happened to the user.
        if end is None or end["chained"]:
            continue
        kind = getattr(exceptions, raised["kind"], DeltaError)
        known = isinstance(kind, type) and issubclass(kind, DeltaError)
        message = text[raised.end() : end.start()]
        found = (kind if known else DeltaError)(message, condition=raised["condition"])
    return found


@contextmanager
def delta_errors() -> Iterator[None]:
    """Raise what Spark reports as errors of this package; whatever else it raises stays as it is.

    Raises
    ------
    DeltaError
        With Spark's exception as its cause.
    """
    try:
        yield
    except Exception as error:
        ours = as_delta_error(error)
        if ours is None or ours is error:
            raise
        raise ours from error
