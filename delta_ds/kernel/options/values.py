"""Parse option values: versions, timestamps, sizes, names.

Each parser takes the text and the session time zone, and raises `ValueError` saying what would be right.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timezone, tzinfo

from delta_ds.kernel.value_types import parse_boolean, parse_size

_LARGEST_VERSION = 2**63 - 1
_IDENTIFIER = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^,`]*[^,`\s]))\s*(,|$)")
# The forms of Spark's cast from string to timestamp; digits beyond microseconds are cut off.
_TIMESTAMP = re.compile(
    r"(?P<year>[0-9]{4,6})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})(?:[ T](?:"
    r"(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]*))?)?)?"
    r"\s*(?P<zone>Z|[+-][0-9:]+|[A-Za-z][A-Za-z0-9_/+:-]*)?"
    r")?)?)?)?"
)
_TIMESTAMP_FORMS = "2024-01-31, 2024-01-31 13:05:00[.123456] or 2024-01-31T13:05:00Z (or +01:00)"


def version(text: str, zone: tzinfo) -> int:
    if not re.fullmatch("[0-9]+", text.strip()) or int(text) > _LARGEST_VERSION:
        raise ValueError("a version is a number from 0 on")
    return int(text)


def timestamp(text: str, zone: tzinfo) -> datetime:
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"a timestamp has the form {_TIMESTAMP_FORMS}")
    parts = match.groupdict()
    try:
        day = date(int(parts["year"]), int(parts["month"] or 1), int(parts["day"] or 1))
        hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
        micros = int((parts["fraction"] or "0").ljust(6, "0")[:6])
        local = datetime.combine(day, time(hour, minute, second, micros))
        where = zone_by_name(parts["zone"]) if parts["zone"] else zone
        return local.replace(tzinfo=where).astimezone(timezone.utc)
    except OverflowError as error:
        raise ValueError("a timestamp lies in the years 1 to 9999") from error


def zone_by_name(name: str) -> tzinfo:
    if name.strip() in ("UTC", "Z"):
        return timezone.utc
    # Brings in pyarrow, and is needed for other zones only.
    from delta_ds.kernel.data.values.calendars import zone

    return zone(name)


def boolean(text: str, zone: tzinfo) -> bool:
    return parse_boolean(text)


def size_in_bytes(text: str, zone: tzinfo) -> int:
    return parse_size(text)


def names(text: str, zone: tzinfo) -> tuple[str, ...]:
    names: list[str] = []
    at, more = 0, True
    while more:
        match = _IDENTIFIER.match(text, at)
        if match is None:
            raise ValueError("it is a list of column names, separated by commas, odd ones in `backticks`")
        names.append(match[1].replace("``", "`") if match[1] else match[2])
        at, more = match.end(), match[3] == ","
    twice = next((n for n in names if sum(n.lower() == other.lower() for other in names) > 1), None)
    if twice is not None:
        raise ValueError(f"it names {twice!r} twice")
    return tuple(names)


def time_zone_name(text: str, zone: tzinfo) -> str:
    zone_by_name(text)
    return text.strip()


def text_as_it_is(text: str, zone: tzinfo) -> str:
    return text
