"""Dates, timestamps, intervals and time zones as Spark reads and writes them.

Source: Spark's `SparkDateTimeUtils` (`stringToDate`, `parseTimestampString`, `getZoneId`).
"""

from __future__ import annotations

import datetime
import functools
import re
import zoneinfo
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.expressions.tree import Call, Literal

if TYPE_CHECKING:
    import pyarrow as pa

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{1,2})(?::?(\d{2}))?)?")
# What java.util.TimeZone still knows by three letters.
_SHORT_IDS = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
    "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
}  # fmt: skip


@functools.lru_cache(maxsize=64)
def zone_of(name: str) -> datetime.tzinfo:
    """The time zone of a Spark zone id: a region, `UTC`, `Z`, `+05:30`, `GMT+8`, ...

    Raises
    ------
    PredicateError
        There is no such zone.
    """
    name = _SHORT_IDS.get(name, name)
    if name in ("UTC", "Z", "GMT", "UT", "UCT", "Etc/UTC"):
        return datetime.timezone.utc
    match = _OFFSET.fullmatch(name)
    if match:
        hours, minutes, seconds = int(match[2]), int(match[3] or 0), int(match[4] or 0)
        if hours <= 18 and minutes < 60 and seconds < 60:
            delta = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
            return datetime.timezone(-delta if match[1] == "-" else delta)
    elif re.fullmatch(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*", name):
        try:
            return zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, OSError):
            raise PredicateError(
                f"unknown time zone {name!r}; give a region such as 'Europe/Paris'"
            ) from None
    raise PredicateError(f"unknown time zone {name!r}; give a region or an offset such as '+02:00'")


_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIMESTAMP = re.compile(
    r"(?:([+-]?\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T]|$))?)?)?T?"
    r"(?:(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?)?\s*(.*)"
)


def parse_date(text: str) -> datetime.date | None:
    """Spark's cast of a string to a date: `yyyy[-M[-d]]`, with anything after a blank or `T`; else None."""
    match = _DATE.fullmatch(text.strip())
    if not match:
        return None
    try:
        return datetime.date(*(int(g or 1) for g in match.groups()))
    except ValueError:
        return None


def parse_timestamp(text: str, zone: datetime.tzinfo | None) -> datetime.datetime | None:
    """Spark's cast of a string to a timestamp in UTC, or to a `timestamp_ntz` if `zone` is None.

    Digits after the sixth of a fraction are dropped. A zone in the text wins over `zone`, and is dropped for
    `timestamp_ntz`. None if the text is no timestamp, or is one without a date (which would mean today).
    """
    match = _TIMESTAMP.fullmatch(text.strip())
    if not match or match[1] is None or (match[8] and match[6] is None) or (match[4] and match[3] is None):
        return None
    year, month, day, hour, minute, second = (int(g) if g else 0 for g in match.groups()[:6])
    fraction = int((match[7] or "")[:6].ljust(6, "0"))
    try:
        local = datetime.datetime(
            year, month if match[2] else 1, day if match[3] else 1, hour, minute, second, fraction
        )
        own = zone_of(match[8]) if match[8] else zone
    except (ValueError, PredicateError):
        return None
    return local if zone is None else to_utc(local, own)


def to_utc(local: datetime.datetime, zone: datetime.tzinfo | None) -> datetime.datetime:
    """The instant of a wall clock time: the earlier of two, and shifted on where the clock skipped it."""
    aware = local.replace(tzinfo=zone, fold=0)
    offset = aware.utcoffset() or datetime.timedelta()
    return (local - offset).replace(tzinfo=datetime.timezone.utc)


def to_local(instant: datetime.datetime, zone: datetime.tzinfo) -> datetime.datetime:
    """The wall clock time of an instant, without a zone."""
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def format_timestamp(local: datetime.datetime) -> str:
    """`yyyy-MM-dd HH:mm:ss[.ffffff]` without trailing zeros, as Spark's cast to string writes it."""
    text = local.replace(tzinfo=None, microsecond=0).isoformat(sep=" ")
    return text + (f".{local.microsecond:06d}".rstrip("0") if local.microsecond else "")


# --- the same on Arrow arrays


def local_times(instants: pa.Array | pa.Scalar, timezone: str) -> pa.Array | pa.Scalar:
    """Wall clock times (`timestamp[us]`) of instants (`timestamp[us, UTC]`)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    name = _arrow_zone(timezone)
    if name == "UTC":
        return instants.cast(pa.timestamp("us"))
    return pc.local_timestamp(instants.cast(pa.timestamp("us", name)))


def instants(local: pa.Array | pa.Scalar, timezone: str) -> pa.Array | pa.Scalar:
    """Instants (`timestamp[us, UTC]`) of wall clock times (`timestamp[us]`), by the rule of `to_utc`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(local, pa.Scalar):
        return instants(pa.repeat(local, 1), timezone)[0]
    utc, name = pa.timestamp("us", "UTC"), _arrow_zone(timezone)
    if name == "UTC":
        return local.cast(utc)
    early, late = (
        pc.assume_timezone(local, name, ambiguous="earliest", nonexistent=side).cast(pa.int64())
        for side in ("earliest", "latest")
    )
    skipped = pc.not_equal(early, late)
    if pc.any(skipped).as_py():
        from delta_ds.kernel.expressions.arrays import map_unique
        from delta_ds.kernel.schema.types import TIMESTAMP, TIMESTAMP_NTZ

        zone = zone_of(timezone)
        shifted = map_unique(lambda t: to_utc(t, zone), local.filter(skipped), TIMESTAMP_NTZ, TIMESTAMP)
        return pc.replace_with_mask(early.cast(utc), skipped, shifted)
    return early.cast(utc)


@functools.lru_cache(maxsize=64)
def _arrow_zone(timezone: str) -> str:
    """The zone under the name that Arrow knows: a region of the tz database or `+HH:MM`."""
    zone = zone_of(timezone)
    if isinstance(zone, zoneinfo.ZoneInfo):
        return zone.key
    offset = zone.utcoffset(None) or datetime.timedelta()
    if not offset:
        return "UTC"
    minutes, seconds = divmod(int(abs(offset).total_seconds()), 60)
    if seconds:
        raise PredicateError(
            f"the time zone {timezone!r} has seconds, which is not supported; give full minutes"
        )
    return f"{'-' if offset < datetime.timedelta() else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


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
