"""Dates, timestamps and intervals as Spark reads them, and wall clock times of Arrow values.

Source: Spark's `SparkDateTimeUtils` (`stringToDate`, `parseTimestampString`).
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.moments import DAY_US, date_of_fields, micros_of
from delta_ds.kernel.format.expressions.tree import Call, Literal
from delta_ds.kernel.format.expressions.zones import (
    instant_micros,
    instants_of,
    local_micros,
    local_times,
    zone_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

# What Spark takes away at both ends of a text: blanks and control characters.
BLANKS = "".join(map(chr, range(33))) + "\x7f"

_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d\d?)(?:-(\d\d?)(?:[ T].*)?)?)?", re.DOTALL | re.ASCII)
_CLOCK = r"(\d\d?)(?::(\d\d?)(?::(\d\d?)(?:\.(\d*))?([^\d].*)?)?)?"
_TIMESTAMP = re.compile(rf"([+-]?\d{{4,6}})(?:-(\d\d?)(?:-(\d\d?)(?:[ T]{_CLOCK})?)?)?", re.DOTALL | re.ASCII)
_TIME = re.compile(rf"(?:T|(?=\d\d?:)){_CLOCK}", re.DOTALL | re.ASCII)
_ONE_DIGIT_HOUR, _ONE_DIGIT_MINUTE = re.compile(r"([+-])(\d):"), re.compile(r"([+-]\d\d):(\d)$")
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def parse_date(text: str) -> int | None:
    """The days since 1970 that Spark's cast of a string to a date gives; None if the text is no date.

    Dates are `yyyy[-M[-d]]`, with anything after a blank or `T` behind the day.
    """
    match = _DATE.fullmatch(text.strip(BLANKS))
    return None if match is None else date_of_fields(*(int(g or 1) for g in match.groups()))


def parse_timestamp(text: str, zone: datetime.tzinfo | None) -> int | None:
    """The microseconds since 1970 that Spark's cast of a string to a timestamp gives; None if it is none.

    Digits after the sixth of a fraction are dropped. A zone in the text wins over `zone`.

    Parameters
    ----------
    zone
        Of texts without one; None for `timestamp_ntz`, which drops the zone of a text and takes none without a date.
    """
    text = text.strip(BLANKS)
    match = _TIMESTAMP.fullmatch(text)
    clock = match.groups()[3:] if match else None
    if match is None:
        timed = _TIME.fullmatch(text) if zone is not None else None
        if timed is None:
            return None
        clock = timed.groups()
    assert clock is not None
    rest = _time_of_day(*clock[:4])
    try:
        own = zone_of(_zone_name(clock[4])) if clock[4] else zone
    except PredicateError:
        return None
    days = _today(own) if match is None else date_of_fields(*(int(g or 1) for g in match.groups()[:3]))
    if rest is None or days is None:
        return None
    local = days * DAY_US + rest
    found = local if zone is None or own is None else instant_micros(local, own)
    return found if _LEAST <= found <= _MOST else None


def _time_of_day(
    hour: str | None, minute: str | None, second: str | None, fraction: str | None
) -> int | None:
    hours, minutes, seconds = (int(part or 0) for part in (hour, minute, second))
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + int((fraction or "")[:6].ljust(6, "0"))


def _zone_name(text: str) -> str:
    """The name of a zone behind a time, where hours and minutes may have one digit."""
    name = _ONE_DIGIT_HOUR.sub(r"\g<1>0\2:", text.strip(BLANKS), count=1)
    return _ONE_DIGIT_MINUTE.sub(r"\1:0\2", name)


def _today(zone: datetime.tzinfo | None) -> int:
    now = micros_of(datetime.datetime.now(datetime.timezone.utc))
    return local_micros(now, zone or datetime.timezone.utc) // DAY_US


# --- on Arrow arrays


def local_of(instants: pa.Array | pa.Scalar, timezone: str) -> pa.Array | pa.Scalar:
    """Wall clock times (`timestamp[us]`) of instants (`timestamp[us, UTC]`)."""
    import pyarrow as pa

    from delta_ds.kernel.format.expressions.arrays import map_numbers

    zone = zone_of(timezone)
    if zone == datetime.timezone.utc:
        return instants.cast(pa.timestamp("us"))
    return map_numbers(lambda times: local_times(times, zone), instants, pa.timestamp("us"))


def instants_at(local: pa.Array | pa.Scalar, timezone: str) -> pa.Array | pa.Scalar:
    """Instants (`timestamp[us, UTC]`) of wall clock times (`timestamp[us]`), by the rule of `instant_micros`."""
    import pyarrow as pa

    from delta_ds.kernel.format.expressions.arrays import map_numbers

    zone = zone_of(timezone)
    if zone == datetime.timezone.utc:
        return local.cast(pa.timestamp("us", "UTC"))
    return map_numbers(lambda times: instants_of(times, zone), local, pa.timestamp("us", "UTC"))


_UNITS = {
    "YEAR": (12, 0, 0),
    "MONTH": (1, 0, 0),
    "WEEK": (0, 7, 0),
    "DAY": (0, 1, 0),
    "HOUR": (0, 0, 3_600_000_000),
    "MINUTE": (0, 0, 60_000_000),
    "SECOND": (0, 0, 1_000_000),
    "MILLISECOND": (0, 0, 1_000),
    "MICROSECOND": (0, 0, 1),
}


def interval_parts(interval: Call) -> tuple[int, int, int]:
    """Months, days and microseconds of `interval(number as text, unit)`.

    Raises
    ------
    PredicateError
        The unit is unknown or the number is not whole (seconds may have a fraction).
    """
    number, unit = (a.value if isinstance(a, Literal) else None for a in interval.args)
    name = str(unit).upper()
    factors = _UNITS.get(name) or _UNITS.get(name.removesuffix("S"))
    try:
        amount = Decimal(str(number).strip())
    except InvalidOperation:
        amount = Decimal("NaN")
    if factors is None or not amount.is_finite():
        raise PredicateError(f"{interval} is not an interval of a number and a unit such as DAY")
    months, days, microseconds = (amount * f for f in factors)
    if any(part != int(part) for part in (months, days, microseconds)):
        raise PredicateError(f"{interval} must be a whole number of {unit}")
    return int(months), int(days), int(microseconds)
