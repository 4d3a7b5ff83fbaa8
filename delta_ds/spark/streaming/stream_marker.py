"""The option that marks a data source as a stream's, and tells the parallelism of the session.

Without it the options of `readStream` look like those of `read`, and a reader does not learn how many tasks run
at once: Spark does not tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STREAM_MARK = "pydelta.isstream"
# How many tasks a batch is cut into at least, if it is large enough, where nobody says how many run at once.
_TASKS = 8


def mark(parallelism: int | None) -> str:
    """The value of the option for a session that runs so many tasks at once; None where that is not known."""
    return "true" if parallelism is None else str(max(1, parallelism))


def is_marked(options: Mapping[str, Any]) -> bool:
    """Whether the session integration has said that the options are those of a stream."""
    return _mark(options) is not None


def without_mark(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the user gave them."""
    return {name: value for name, value in options.items() if name.lower() != STREAM_MARK}


def tasks_of(options: Mapping[str, Any]) -> int:
    """How many tasks a batch of a stream with these options is cut into at least, if it is large enough."""
    text = _mark(options)
    return int(text) if text is not None and text.isdigit() else _TASKS


def _mark(options: Mapping[str, Any]) -> str | None:
    return next((str(value) for name, value in options.items() if name.lower() == STREAM_MARK), None)
