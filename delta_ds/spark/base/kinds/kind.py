"""The kind of a session: classic, with the JVM at hand, or of Spark Connect. Elsewhere an engine is asked (`seam`)."""

from __future__ import annotations

from typing import TypeVar

_T = TypeVar("_T")


def is_connect(owner: object) -> bool:
    """Whether a session, or a reader or writer of one, is of Spark Connect."""
    return type(owner).__module__.startswith("pyspark.sql.connect")


def of_kind(owner: object, *, classic: _T, connect: _T) -> _T:
    """The one of two ways, or words, that is for the kind of a session, or of a frame, reader or writer of one."""
    return connect if is_connect(owner) else classic


def jvm_problem(owner: object) -> str | None:
    """Why the JVM of a session is out of reach for this process; None: it is at hand."""
    return of_kind(owner, classic=None, connect="a Spark Connect session has no access to the server's JVM")
