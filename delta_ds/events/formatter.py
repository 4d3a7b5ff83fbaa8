"""`JsonFormatter`: log lines as JSON, one object a line, for whatever collects logs."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone


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
        if record.exc_info and record.exc_info[0] is not None:
            body["exception"] = self.formatException(record.exc_info)
        elif record.exc_text:
            body["exception"] = record.exc_text
        return json.dumps(body, default=str)
