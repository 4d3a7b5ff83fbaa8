"""Events of listeners: they never stop what they listen to, so this is all that is heard of their failures."""

from __future__ import annotations

from delta_ds.events.record import Event

LISTENER_BEHIND = Event.warning(
    "listener_behind waiting",
    "listeners are too slow: this many reports wait, and further ones are dropped",
    "make the listener queue its reports and return",
)
LISTENER_FAILED = Event.warning(
    "listener_failed listener report",
    "a listener raised an error; it still gets later reports, but its later errors are not logged",
    "see the traceback",
)
REPORT_FAILED = Event.warning(
    "report_failed table reason",
    "a report of a commit could not be created; the commit itself is not affected",
    "report it, with the traceback",
)
