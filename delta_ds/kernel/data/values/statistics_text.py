"""Minimum and maximum of a column as the JSON text of statistics.

Source: PROTOCOL.md, "Per-file Statistics"; delta-spark, `StatisticsCollection.truncateMaxStringAgg`
(protocol-checklist ST-W-05, ST-W-06, ST-W-09, ST-W-10).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from delta_ds.kernel.data.values.calendars import DAY_US, civil_from_days
from delta_ds.kernel.data.values.float_text import double_text, float_text
from delta_ds.kernel.schema.types import DOUBLE, FLOAT, STRING, DataType, DecimalType

_ASCII_MAX = "\x7f"
_UNICODE_MAX = "\U0010ffff"


def truncated_min(text: str, length: int) -> str:
    """The first `length` code points; delta-spark cuts minima by these, maxima by UTF-16 units."""
    return text[:length]


def truncated_max(text: str, length: int) -> str | None:
    """A text of about `length` UTF-16 units that is not below `text`; None if there is none so short.

    The prefix is closed by U+007F where the first dropped character is below it, else by U+10FFFF; dropped
    U+10FFFF extend the prefix up to twice the length.
    """
    kept = _prefix(text, length)
    while _units(kept) <= 2 * length:
        rest = text[len(kept) :]
        if not rest:
            return text
        if rest[0] != _UNICODE_MAX:
            return kept + (_ASCII_MAX if rest[0] < _ASCII_MAX else _UNICODE_MAX)
        kept += rest[0]
    return None


def _prefix(text: str, length: int) -> str:
    """The first `length` UTF-16 units; one more where the cut would split a surrogate pair."""
    units = text[:length].encode("utf-16-le")
    end = 2 * length
    if len(units) > end and units[end - 1] & 0xFC == 0xD8:  # a high surrogate, whose other half follows
        end += 2
    return units[:end].decode("utf-16-le")


def _units(text: str) -> int:
    return len(text) + sum(1 for character in text if character > "\uffff")


def value_text(data_type: DataType) -> Callable[[Any], str | None]:
    """The function that writes a bound of the type as JSON; None for what cannot be written.

    It takes an int, a Decimal or a float; days since 1970 of a date and microseconds of a timestamp. Dates
    and timestamps outside the years 1 to 9999 have no text that every reader understands.
    """
    if isinstance(data_type, DecimalType):
        return lambda value: format(value, "f")
    if data_type in (FLOAT, DOUBLE):
        text = float_text if data_type == FLOAT else double_text
        return lambda value: text(value) if math.isfinite(value) else f'"{text(value)}"'
    return _BY_NAME.get(str(data_type), str)


def _date(days: int) -> str | None:
    year, month, day = civil_from_days(days)
    return f'"{year:04d}-{month:02d}-{day:02d}"' if 1 <= year <= 9999 else None


def _timestamp(micros: int, zone: str) -> str | None:
    days, rest = divmod(micros, DAY_US)
    year, month, day = civil_from_days(days)
    if not 1 <= year <= 9999:
        return None
    seconds, fraction = divmod(rest // 1000, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    date = f"{year:04d}-{month:02d}-{day:02d}"
    return f'"{date}T{hour:02d}:{minute:02d}:{second:02d}.{fraction:03d}{zone}"'


_BY_NAME: dict[str, Callable[[Any], str | None]] = {
    "date": _date,
    "timestamp": lambda micros: _timestamp(micros, "Z"),
    "timestamp_ntz": lambda micros: _timestamp(micros, ""),
}


def bound_texts(
    data_type: DataType, low: Any, high: Any, prefix_length: int
) -> tuple[str | None, str | None]:
    """The JSON of a minimum and a maximum; None for a bound that is left out.

    Strings come as their UTF-8 bytes, the others as `value_text` takes them.
    """
    if data_type != STRING:
        text = value_text(data_type)
        return text(low), text(high)
    shortest = truncated_min(low.decode(), prefix_length) if _is_text(low) else None
    longest = truncated_max(high.decode(), prefix_length) if _is_text(high) else None
    return _json(shortest), _json(longest)


def json_members(text: str) -> dict[str, str]:
    """The members of a JSON object, their values as they are written; none if the text is no object."""
    decoder = json.JSONDecoder()
    found: dict[str, str] = {}
    try:
        if not isinstance(json.loads(text), dict):
            return {}
        at = _next(text, text.index("{") + 1)
        while text[at] != "}":
            name, end = decoder.raw_decode(text, at)
            start = _next(text, _next(text, end) + 1)  # behind the colon
            _, end = decoder.raw_decode(text, start)
            found[name] = text[start:end]
            at = _next(text, end)
            at = _next(text, at + 1) if text[at] == "," else at
    except (ValueError, RecursionError):
        return {}
    return found


def _next(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def with_wide_bounds(text: str | None, num_records: int) -> str:
    """Statistics of a file that may speak of rows that are deleted: what they hold stays to the letter.

    Parameters
    ----------
    text
        The statistics before; None or unreadable text: nothing was known of the file.
    num_records
        The physical rows of the file, which an `add` with a deletion vector must have.

    Source: PROTOCOL.md, "Per-file Statistics"; protocol-checklist DV-W-03.
    """
    parts = {"numRecords": "", **json_members(text or "")}
    parts |= {"numRecords": str(num_records), "tightBounds": "false"}
    return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{v}" for k, v in parts.items()) + "}"


def _is_text(data: bytes) -> bool:
    """Whether bytes are UTF-8; a string column of Spark may hold others, whose order JSON cannot carry."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _json(text: str | None) -> str | None:
    return None if text is None else json.dumps(text, ensure_ascii=False)
