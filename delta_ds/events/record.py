"""`Event`: the record of a log event, which tells it to the logger `delta_ds`."""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from typing import Any

from delta_ds.exceptions import DeltaError

LOGGER = logging.getLogger("delta_ds")
_FRAME_OF_CALLER = 3

_READS_AS_OTHER = re.compile(r"null|true|false|-?[0-9.].*")
_BARE = re.compile(r"[^\s\"'=\\]+")


def redacted(text: str) -> str:
    """A text without passwords, keys, tokens and signatures, as far as their names or places tell them."""
    from delta_ds.redaction import redacted as by_names

    return by_names(text)


class Event:
    """One kind of log line: what happened, and what to do about it.

    A plain class: every process that Spark starts for a read makes all of them.

    Attributes
    ----------
    name
        The stable name, for programs.
    level
        `logging.DEBUG`, `INFO`, `WARNING` or `ERROR`.
    fields
        The names of its values, in order. Some calls leave the last ones out.
    meaning, action
        What happened, and what to do, for the documentation.

    >>> cleaned = Event.info("log_cleaned table files", "old files were deleted", "nothing")
    >>> cleaned.name, cleaned.fields
    ('log_cleaned', ('table', 'files'))
    >>> str(Line("log_cleaned", {"table": "/data/my table", "files": 3}))
    'log_cleaned table="/data/my table" files=3'
    """

    __slots__ = ("action", "fields", "level", "meaning", "name")

    def __init__(self, level: int, line: str, meaning: str, action: str) -> None:
        self.level = level
        self.name, *fields = line.split()
        self.fields = tuple(fields)
        self.meaning = meaning
        self.action = action

    @classmethod
    def debug(cls, line: str, meaning: str, action: str) -> Event:
        """An event by its line, which is the name and those of the fields."""
        return cls(logging.DEBUG, line, meaning, action)

    @classmethod
    def info(cls, line: str, meaning: str, action: str) -> Event:
        """As `debug`."""
        return cls(logging.INFO, line, meaning, action)

    @classmethod
    def warning(cls, line: str, meaning: str, action: str) -> Event:
        """As `debug`."""
        return cls(logging.WARNING, line, meaning, action)

    @classmethod
    def error(cls, line: str, meaning: str, action: str) -> Event:
        """As `debug`."""
        return cls(logging.ERROR, line, meaning, action)

    def log(self, **values: Any) -> None:
        """Tell it to the logger `delta_ds`.

        The `LogRecord` has the name as `event` and the values as `fields`: text, numbers, booleans and None, without
        secrets. Its message is made when a handler asks for it.

        Parameters
        ----------
        values
            By field. Errors are written as their text.
        """
        if LOGGER.isEnabledFor(self.level):
            self._tell(values, False)

    def log_traceback(self, **values: Any) -> None:
        """As `log`, with the traceback of the error that is being handled."""
        if LOGGER.isEnabledFor(self.level):
            self._tell(values, True)

    def _tell(self, values: dict[str, Any], trace: bool) -> None:
        fields = {name: _plain(value) for name, value in values.items()}
        file, line, function, _ = LOGGER.findCaller(stacklevel=_FRAME_OF_CALLER)
        failure = sys.exc_info() if trace else None
        text, extra = Line(self.name, fields), {"event": self.name, "fields": fields}
        record = LOGGER.makeRecord(LOGGER.name, self.level, file, line, text, (), failure, function, extra)
        if failure is not None:
            # Handlers take this text in place of one that they would make of the error.
            record.exc_text = redacted("".join(traceback.format_exception(*failure)).rstrip("\n"))
        LOGGER.handle(record)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, DeltaError):
        return redacted(value.text)
    if isinstance(value, BaseException):
        return redacted(f"{type(value).__name__}: {value}")
    return redacted(str(value))


class Line:
    """The text of an event: its name, then `field=value`; a value that could be misread is quoted as in JSON."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        self.name = name
        self.fields = fields

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{name}={_quoted(value)}" for name, value in self.fields.items())])


def _quoted(value: Any) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    if value.isprintable():
        if _BARE.fullmatch(value) and not _READS_AS_OTHER.fullmatch(value):
            return value
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value)
