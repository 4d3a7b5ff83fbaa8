"""`JsonFormatter`: log lines as JSON, one object a line, for whatever collects logs; and lines that nobody collects."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone

from delta_ds.events.record import redacted


class JsonFormatter(logging.Formatter):
    """Formats any record as one line of JSON; events of this package with their fields.

    Keys: `timestamp` (ISO, UTC), `level`, `logger`, `event` and `fields` of an event or else `message`, `process`, and
    `exception` with the traceback where there is one.

    >>> import logging
    >>> from delta_ds.events import JsonFormatter
    >>> handler = logging.StreamHandler()
    >>> handler.setFormatter(JsonFormatter())
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        moment = datetime.fromtimestamp(record.created, timezone.utc)
        body: dict[str, object] = {
            "timestamp": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
        }
        event = getattr(record, "event", None)
        if event is None:
            body["message"] = record.getMessage()
        else:
            body |= {"event": event, "fields": getattr(record, "fields", {})}
        body["process"] = record.process
        if record.exc_text:
            body["exception"] = record.exc_text
        elif record.exc_info and record.exc_info[0] is not None:
            body["exception"] = redacted(self.formatException(record.exc_info))
        return json.dumps(body, default=str)


@contextmanager
def undirected_lines(shown: Callable[[str], str]) -> Iterator[None]:
    """In a block, say how lines look that `logging` prints by itself, as nobody has said where they go.

    Parameters
    ----------
    shown
        Makes one line as it is printed of one as it was logged.
    """
    fallback = logging.lastResort
    before = None if fallback is None else fallback.formatter
    if fallback is not None:
        fallback.setFormatter(_LineFormatter(shown))
    try:
        yield
    finally:
        if fallback is not None:
            fallback.setFormatter(before)


class _LineFormatter(logging.Formatter):
    def __init__(self, shown: Callable[[str], str]) -> None:
        super().__init__()
        self._shown = shown

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(self._shown, super().format(record).split("\n")))
