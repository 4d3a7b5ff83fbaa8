"""Jobs that Spark gave up, as one short `JobFailedError`.

Py4j's own error of such a failure says it in two hundred lines of Java, without the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from delta_ds.exceptions import JobFailedError
from delta_ds.spark.errors.java_errors import chain, first_line, shorten
from delta_ds.spark.errors.translation import as_delta_error


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
        causes = list(chain(getattr(error, "java_exception", None)))
        if not causes or as_delta_error(error) is not None:
            raise
        reason = first_line(causes[-1])
        shorten(error)
        raise JobFailedError(
            f"{what} failed in Spark: {reason}. Nothing was committed, and what was written has been deleted as far as "
            "that was possible; VACUUM removes the rest",
            parameters={"reason": reason},
        ) from error
