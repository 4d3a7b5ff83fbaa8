"""What Python processes of Spark know of the one that sent them: its version of this package, its session's time zone.

What travels to them is taken only by the same version. Executors may have another one installed. Its classes have the
same names, and need not mean the same. Builds of one version hold the same code (`hatch_build.py`). Checkouts are not
told apart before they are built: a commit in the middle of a session must not part the driver from its workers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

from delta_ds._version import __version__
from delta_ds.conditions.session import PYTHON_WORKERS_OF_OTHER_VERSION
from delta_ds.events.spark import MACHINE_TIME_ZONE_UNNAMED
from delta_ds.kernel.base.environment import TIME_ZONE

_C = TypeVar("_C", bound=type)


class OfThisVersion:
    """A function that only the same version of the package unpickles."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (__version__, OfThisVersion, (self._function,))


def same_version(owner: _C) -> _C:
    """A class whose instances only the same version of the package unpickles."""

    def reduce(self: Any, protocol: Any) -> tuple[Any, ...]:
        made: Any = object.__reduce_ex__(self, max(2, protocol))
        return (_make, (__version__, *made[:2]), *made[2:])

    owner.__reduce_ex__ = reduce  # type: ignore[method-assign, assignment]
    return owner


def _make(version: str, make: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """
    Raises
    ------
    UnsupportedOperationError
        The other process has another version.
    """
    if version != __version__:
        raise PYTHON_WORKERS_OF_OTHER_VERSION(version=version, found=__version__)
    return make(*arguments)


_SESSION_TIME_ZONE = "spark.sql.session.timeZone"


def task_time_zone(known: str | None = None) -> str:
    """The session time zone inside a task: what the session has set by now, else what it had, else the machine's.

    Parameters
    ----------
    known
        The session's zone when the call came in. Where it has set none, that is the zone of its JVM, which need not be
        the machine's. None: nobody has said.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    # Spark hands the session's settings to tasks, but only those that were set.
    zone = context.getLocalProperty(_SESSION_TIME_ZONE) if context else None
    return zone or known or machine_time_zone()


def machine_time_zone() -> str:
    """The time zone of this machine by its IANA name, found where the JVM looks for it.

    While a read is planned this stands for the session's, which Spark does not tell Python there.
    """
    name = TIME_ZONE.text().lstrip(":")
    name = name or _zone_of_link("/etc/localtime") or _first_line("/etc/timezone") or ""
    if name:
        return name
    seconds = -time.timezone
    offset = f"{'-' if seconds < 0 else '+'}{abs(seconds) // 3600:02d}:{abs(seconds) // 60 % 60:02d}"
    MACHINE_TIME_ZONE_UNNAMED.log(using=offset)
    return offset


def _zone_of_link(path: str) -> str | None:
    _, found, name = os.path.realpath(path).partition("/zoneinfo/")
    return name if found else None


def _first_line(path: str) -> str | None:
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.readline().strip() or None
