"""Time zones and calendars: names of zones, wall clock times of instants and back, and files in the hybrid calendar.

All times are microseconds since 1970: instants since its beginning in UTC, wall clock times as if they were of UTC.
Rules of zones repeat every 400 years, as the calendar does. Arrow and Python know the rules of a zone to the years 2037
and 9999; what lies beyond is looked up in a year that they know. Spark 2.4 and the `LEGACY` write mode store dates and
timestamps before 1582-10-15 in the hybrid Julian/Gregorian calendar; the file's footer says so.

Source: Spark's `SparkDateTimeUtils.getZoneId`, `DataSourceUtils.getRebaseSpec` and `RebaseDateTime`; java.time,
`ZonedDateTime.ofLocal`.
"""

from __future__ import annotations

import bisect
import datetime
import functools
import re
import zoneinfo
from collections.abc import Callable, Mapping
from datetime import tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.data import INVALID_TIMEZONE
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.moments import CYCLE_DAYS, DAY_US, civil_from_days, days_from_civil
from delta_ds.records import dataclass

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, np.dtype[np.int64]]

# What java.util.TimeZone still knows by three letters.
SHORT_IDS = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
    "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
}  # fmt: skip
_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?([+-])(?:(\d\d?)(?::(\d\d?)(?::(\d\d))?)?|(\d\d)(\d\d)(\d\d)?)", re.ASCII
)
_REGION = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+")

_CYCLE_US = CYCLE_DAYS * DAY_US
# Before it no zone changes its clock, after it all do so by rules without an end.
_FIRST_YEAR, _ARROW_YEAR, _RULES_YEAR = 1800, 2037, 2101
# No clock goes so far off UTC, and no two changes of one are as near to each other.
_FAR_US = DAY_US
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


@functools.lru_cache(maxsize=64)
def zone_of(name: str) -> datetime.tzinfo:
    """The time zone of a Spark zone id: a region, `UTC`, `Z`, `+05:30`, `GMT+8`, ...

    Raises
    ------
    PredicateError
        There is no such zone.
    """
    name = SHORT_IDS.get(name, name)
    if name in ("UTC", "Z", "GMT", "UT", "UCT", "Etc/UTC"):
        return datetime.timezone.utc
    match = _OFFSET.fullmatch(name)
    if match:
        hours, minutes, seconds = (int(match[a] or match[b] or 0) for a, b in ((2, 5), (3, 6), (4, 7)))
        delta = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if minutes < 60 and seconds < 60 and delta <= datetime.timedelta(hours=18):
            return datetime.timezone(-delta if match[1] == "-" else delta)
    elif _REGION.fullmatch(name) and ".." not in name:
        try:
            return zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, OSError, ValueError):
            raise PredicateError(
                f"unknown time zone {name!r}; give a region such as 'Europe/Paris'"
            ) from None
    raise PredicateError(f"unknown time zone {name!r}; give a region or an offset such as '+02:00'")


# --- one time


def local_micros(instant: int, zone: datetime.tzinfo) -> int:
    """The wall clock time of an instant."""
    return instant + offset_at(instant, zone)


def instant_micros(local: int, zone: datetime.tzinfo, preferred: int | None = None) -> int:
    """The instant of a wall clock time: of two the earlier; a time that the clock skips is shifted on.

    Parameters
    ----------
    preferred
        The offset from UTC of the instant of two that is wanted, where one of them has it.
    """
    if preferred is not None and offset_at(local - preferred, zone) == preferred:
        return local - preferred
    before, after = offset_at(local - _FAR_US, zone), offset_at(local + _FAR_US, zone)
    if before == after or offset_at(local - before, zone) == before:
        return local - before
    return local - (after if offset_at(local - after, zone) == after else before)


def offset_at(instant: int, zone: datetime.tzinfo) -> int:
    """By how many microseconds the clock is ahead of UTC at an instant."""
    offset = (_EPOCH + datetime.timedelta(microseconds=_known(instant))).astimezone(zone).utcoffset()
    return 0 if offset is None else offset // _MICROSECOND


def offsets_around(instant: int, zone: datetime.tzinfo) -> tuple[int, int]:
    """The least and the greatest offset from UTC within three days of an instant, or of a wall clock time."""
    offsets = [offset_at(instant + hours * DAY_US // 24, zone) for hours in range(-72, 73, 6)]
    return min(offsets), max(offsets)


def _known(instant: int) -> int:
    """An instant of the years that Python knows at which the clock shows the same as at the given one."""
    if instant >= _RULES:
        return _RULES + (instant - _RULES) % _CYCLE_US
    return max(instant, _FIRST)


# --- many times


def local_times(instants: Numbers, zone: datetime.tzinfo) -> Numbers:
    """The wall clock times of instants.

    Raises
    ------
    OverflowError
        One is beyond what 64 bits hold.
    """
    return _plus(instants, offsets_at(instants, zone))


def instants_of(local: Numbers, zone: datetime.tzinfo) -> Numbers:
    """The instants of wall clock times, by the rule of `instant_micros`.

    Raises
    ------
    OverflowError
        One is beyond what 64 bits hold.
    """
    import numpy as np

    if not isinstance(zone, zoneinfo.ZoneInfo):
        return _plus(local, -offsets_at(local, zone))
    safe = np.clip(local, _LEAST + 2 * _FAR_US, _MOST - 2 * _FAR_US)
    before, after = offsets_at(safe - _FAR_US, zone), offsets_at(safe + _FAR_US, zone)
    changed = np.flatnonzero(before != after)
    if len(changed):
        near, old, new = safe[changed], before[changed], after[changed]
        skipped_or_over = offsets_at(near - old, zone) != old
        before[changed] = np.where(skipped_or_over & (offsets_at(near - new, zone) == new), new, old)
    return _plus(local, -before)


def offsets_at(instants: Numbers, zone: datetime.tzinfo) -> Numbers:
    """By how many microseconds the clock is ahead of UTC at each instant."""
    import numpy as np

    if not isinstance(zone, zoneinfo.ZoneInfo):
        return np.full(len(instants), offset_at(0, zone), np.int64)
    offsets = np.full(len(instants), offset_at(_FIRST, zone), np.int64)
    by_arrow = (instants >= _FIRST) & (instants < _ARROW)
    late = instants >= _ARROW
    offsets[by_arrow] = _by_arrow(instants[by_arrow], zone.key)
    offsets[late] = _by_rules(instants[late], zone)
    return offsets


def _by_arrow(instants: Numbers, key: str) -> Numbers:
    import pyarrow as pa
    import pyarrow.compute as pc

    from delta_ds.kernel.base.arrow_buffers import integers, numbers

    if not len(instants):
        return instants
    local = pc.local_timestamp(integers(instants).cast(pa.timestamp("us", key)))
    return numbers(local.cast(pa.int64())) - instants


def _by_rules(instants: Numbers, zone: zoneinfo.ZoneInfo) -> Numbers:
    import numpy as np

    if not len(instants):
        return instants
    covered = np.where(instants >= _RULES, _RULES + (instants - _RULES) % _CYCLE_US, instants)
    starts, offsets = _changes(zone.key, bool((covered >= _RULES).any()))
    return np.asarray(offsets)[np.searchsorted(starts, covered, side="right") - 1]


@functools.lru_cache(maxsize=16)
def _changes(key: str, whole: bool) -> tuple[Numbers, Numbers]:
    """When the clock of a zone changes from the year 2037 on, and how far it is ahead of UTC from each time on.

    Parameters
    ----------
    whole
        To the end of a cycle of 400 years, and not only to the year from which there are rules.
    """
    import numpy as np

    zone = zoneinfo.ZoneInfo(key)
    # Up to then some zones change their clocks for as little as a week.
    times = [*range(_ARROW, _RULES, 6 * DAY_US), *range(_RULES, _RULES + _CYCLE_US * whole + 1, 30 * DAY_US)]
    starts, offsets = [_ARROW], [offset_at(_ARROW, zone)]
    for low, high in zip(times, times[1:], strict=False):
        there = offset_at(high, zone)
        if there != offsets[-1]:
            seconds = range(low // _SECOND, high // _SECOND + 1)
            at = bisect.bisect_left(seconds, True, key=lambda s: offset_at(s * _SECOND, zone) == there)
            starts.append(seconds[at] * _SECOND)
            offsets.append(there)
    return np.array(starts, np.int64), np.array(offsets, np.int64)


def _plus(times: Numbers, shift: Numbers) -> Numbers:
    import numpy as np

    room = 2 * _FAR_US
    if not len(times) or (times.min() > _LEAST + room and times.max() < _MOST - room):
        return times + shift
    wide = [int(a) + int(b) for a, b in zip(times, shift, strict=True)]
    return np.array(wide, np.int64)  # an OverflowError where it does not hold one


_SECOND = 1_000_000
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MICROSECOND = datetime.timedelta(microseconds=1)
_FIRST: int = days_from_civil(_FIRST_YEAR, 1, 1) * DAY_US
_ARROW: int = days_from_civil(_ARROW_YEAR, 1, 1) * DAY_US
_RULES: int = days_from_civil(_RULES_YEAR, 1, 1) * DAY_US


__all__ = [
    "DAY_US", "Rebase", "civil_from_days", "days_from_civil", "julian_to_gregorian_days",
    "rebase_dates", "rebase_of", "rebase_timestamps", "zone",
]  # fmt: skip

_CUTOVER_DAY = -141_427  # 1582-10-15, the first day on which both calendars agree
_YEAR_1900_US = -2_208_988_800_000_000  # java.util.TimeZone knows no transition before it

_VERSION_KEY = b"org.apache.spark.version"
_DATETIME_KEY = b"org.apache.spark.legacyDateTime"
_INT96_KEY = b"org.apache.spark.legacyINT96"
_TIMEZONE_KEY = b"org.apache.spark.timeZone"
# In the footer of a file whose days are counted in today's calendar: without it Spark goes by what its session says of
# files of others (`spark.sql.parquet.datetimeRebaseModeInRead`), and may shift or refuse what lies before 1582.
TODAYS_CALENDAR = {_VERSION_KEY.decode(): "3.1.0"}  # the first that has it in all types


@lru_cache(maxsize=64)
def zone(name: str) -> tzinfo:
    """The time zone of a Spark zone name: a region, a short id such as `PST`, or an offset.

    Raises
    ------
    InvalidOptionError
        There is no such zone.
    """
    try:
        return zone_of(name.strip())
    except PredicateError as error:
        raise INVALID_TIMEZONE(name=name) from error


@dataclass(frozen=True, slots=True)
class Rebase:
    """What a file's footer says about its calendar: which values need a rebase, and their time zone."""

    datetimes: bool = False
    int96: bool = False
    timezone: str = "UTC"

    def __bool__(self) -> bool:
        return self.datetimes or self.int96


def rebase_of(footer: Mapping[bytes, bytes] | None, timezone_name: str) -> Rebase:
    """Read the calendar hints of a Parquet footer.

    Parameters
    ----------
    footer
        The key-value metadata of the file.
    timezone_name
        The zone to take where a legacy file does not name the writer's.
    """
    if not footer or _VERSION_KEY not in footer:
        return Rebase()
    version = footer[_VERSION_KEY].decode("utf-8", "replace")
    writer_zone = footer.get(_TIMEZONE_KEY, b"").decode("utf-8", "replace")
    return Rebase(
        datetimes=version < "3.0.0" or _DATETIME_KEY in footer,
        int96=version < "3.1.0" or _INT96_KEY in footer,
        timezone=writer_zone or timezone_name,
    )


def julian_to_gregorian_days(days: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Rebase day numbers of the hybrid calendar: the same year, month and day in the Gregorian one.

    A date that only the Julian calendar has (1000-02-29) becomes the day after, as in Spark.
    """
    old = days < _CUTOVER_DAY
    if not old.any():
        return days
    shifted = days[old].astype(np.int64) + 2_440_588 + 32_082
    year_quad = (4 * shifted + 3) // 1461
    rest = shifted - 1461 * year_quad // 4
    month_index = (5 * rest + 2) // 153
    day = rest - (153 * month_index + 2) // 5 + 1
    month = month_index + 3 - 12 * (month_index // 10)
    year = year_quad - 4800 + month_index // 10
    out = days.copy()
    out[old] = days_from_civil(year, month, np.int64(1)) + day - 1
    return out


def rebase_dates(array: pa.Array) -> pa.Array:
    """Rebase a date32 array of the hybrid calendar."""
    lowest = pc.min(array).cast(pa.int32()).as_py()
    if lowest is None or lowest >= _CUTOVER_DAY:
        return array
    return _map_numbers(array, np.dtype(np.int32), julian_to_gregorian_days)


def rebase_timestamps(array: pa.Array, timezone_name: str) -> pa.Array:
    """Rebase a timestamp[us] array of the hybrid calendar, written in the given zone."""
    where = zone(timezone_name)
    limit = _YEAR_1900_US if isinstance(where, ZoneInfo) else (_CUTOVER_DAY + 1) * DAY_US
    lowest = pc.min(array).cast(pa.int64()).as_py()
    if lowest is None or lowest >= limit:
        return array

    def rebase(micros: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        out, old = micros.copy(), micros < limit
        out[old] = _rebase_micros(micros[old], where)
        return out

    return _map_numbers(array, np.dtype(np.int64), rebase)


def _rebase_micros(micros: np.ndarray[Any, Any], where: tzinfo) -> np.ndarray[Any, Any]:
    # Before 1900 java.util.TimeZone uses a zone's present standard offset, java.time its local mean time.
    standard = _standard_offset_us(where)
    days, rest = np.divmod(micros + standard, DAY_US)
    local = julian_to_gregorian_days(days) * DAY_US + rest
    if not isinstance(where, ZoneInfo):
        return local - standard
    return instants_of(local, where)


def _standard_offset_us(where: tzinfo) -> int:
    seasons = (days_from_civil(2030, 1, 1), days_from_civil(2030, 7, 1))
    return min(offset_at(days * DAY_US, where) for days in seasons)


def _map_numbers(
    array: pa.Array, dtype: np.dtype[Any], function: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
) -> pa.Array:
    """An array of the same type and nulls with other numbers in its data buffer."""
    validity, data = array.buffers()
    changed = np.ascontiguousarray(function(np.frombuffer(data, dtype, len(array) + array.offset)), dtype)
    buffers = [validity, pa.py_buffer(changed)]
    return pa.Array.from_buffers(array.type, len(array), buffers, array.null_count, array.offset)
