"""Events of listeners: they never stop what they listen to, so this is all that is heard of their failures."""

from __future__ import annotations

import logging

from delta_ds.events.record import Event

LISTENER_BEHIND = Event(
    "listener_behind", logging.WARNING, ("waiting",),
    "listeners are slower than what they are told of: so many reports wait, and further ones are dropped",
    "make the listener hand its reports on, and return",
)  # fmt: skip
LISTENER_FAILED = Event(
    "listener_failed", logging.WARNING, ("listener", "report"),
    "a listener raised an error; it is told of what follows, and its later errors are not",
    "see the traceback",
)  # fmt: skip
REPORT_FAILED = Event(
    "report_failed", logging.WARNING, ("table", "reason"),
    "a report of a commit could not be made; the commit itself is as it is without listeners",
    "report it, with the traceback",
)  # fmt: skip
