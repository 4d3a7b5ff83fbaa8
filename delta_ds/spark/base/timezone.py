"""The session time zone, as far as Python can know it."""

from __future__ import annotations

import os
import time

from delta_ds.events.spark import MACHINE_TIME_ZONE_UNNAMED
from delta_ds.kernel.base.environment import TIME_ZONE

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
