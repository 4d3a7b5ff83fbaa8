"""Events of commit coordinators."""

from __future__ import annotations

from delta_ds.events.record import Event

TOKEN_SENT_IN_CLEAR = Event.warning(
    "token_sent_in_clear url",
    "the token of a catalog is sent to another machine over a connection that is not encrypted",
    "use the server's https address",
)
