"""Events of listeners: they never stop what they listen to, so this is all that is heard of their failures."""

from __future__ import annotations

from delta_ds.events.record import Event

LISTENER_BEHIND = Event.warning(
    "listener_behind waiting",
    "listeners are slower than what they are told of: so many reports wait, and further ones are dropped",
    "make the listener hand its reports on, and return",
)
LISTENER_FAILED = Event.warning(
    "listener_failed listener report",
    "a listener raised an error; it is told of what follows, and its later errors are not",
    "see the traceback",
)
REPORT_FAILED = Event.warning(
    "report_failed table reason",
    "a report of a commit could not be made; the commit itself is as it is without listeners",
    "report it, with the traceback",
)
