"""Calendars and time zones: files in the hybrid Julian/Gregorian calendar, and local times as Java reads them.

Spark 2.4 and the `LEGACY` write mode store dates and timestamps before 1582-10-15 in the old hybrid
calendar; the file's footer says so. Source: Spark, `DataSourceUtils.getRebaseSpec` and `RebaseDateTime`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.data import INVALID_TIMEZONE
from delta_ds.records import dataclass

DAY_US = 86_400_000_000
_CUTOVER_DAY = -141_427  # 1582-10-15, the first day on which both calendars agree
_YEAR_1900_US = -2_208_988_800_000_000  # java.util.TimeZone knows no transition before it

_VERSION_KEY = b"org.apache.spark.version"
_DATETIME_KEY = b"org.apache.spark.legacyDateTime"
_INT96_KEY = b"org.apache.spark.legacyINT96"
_TIMEZONE_KEY = b"org.apache.spark.timeZone"

# java.time.ZoneId.SHORT_IDS: names that Java resolves and the time zone database spells differently.
_SHORT_IDS = {
    "EST": "-05:00", "HST": "-10:00", "MST": "-07:00", "ACT": "Australia/Darwin", "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo", "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka", "CAT": "Africa/Harare", "CNT": "America/St_Johns",
    "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")


@lru_cache(maxsize=64)
def zone(name: str) -> tzinfo:
    """The time zone of a Spark zone name: a region, a short id such as `PST`, or an offset.

    Raises
    ------
    InvalidOptionError
        There is no such zone.
    """
    text = _SHORT_IDS.get(name.strip(), name.strip())
    if text in ("Z", "UTC", "GMT", "UT", "Etc/UTC"):
        return timezone.utc
    match = _OFFSET.fullmatch(text)
    try:
        if match is None:
            return ZoneInfo(text)
        hours, minutes, seconds = (int(part or 0) for part in match.group(2, 3, 4))
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(-offset if match[1] == "-" else offset)
    except (ValueError, OSError, KeyError) as error:
        raise INVALID_TIMEZONE(name=name) from error


def days_from_civil(year: Any, month: Any, day: Any) -> Any:
    """Days since 1970-01-01 of a proleptic Gregorian date; ints or NumPy arrays, any year."""
    y = year - (month <= 2)
    era = y // 400
    year_of_era = y - era * 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day number since 1970-01-01 in the proleptic Gregorian calendar."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_index = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_index + 2) // 5 + 1
    month = month_index + 3 if month_index < 10 else month_index - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def local_to_utc(local_us: int, where: tzinfo) -> int:
    """The instant (microseconds since 1970 UTC) of a local time given as microseconds since local 1970.

    As java.time has it: a time in a gap moves forward by the gap's length, of two it is the earlier.
    """
    days, rest = divmod(local_us, DAY_US)
    return local_us - _offset_us(days, rest, where)


def _offset_us(days: int, rest_us: int, where: tzinfo) -> int:
    # datetime holds years 1 to 9999; zone rules repeat every 400 years, that is every 146,097 days.
    if days > 2_932_532:
        days -= ((days - 2_932_532) // 146_097 + 1) * 146_097
    days = max(days, -719_160)
    local = datetime(1970, 1, 1) + timedelta(days=days, microseconds=rest_us)
    offset = where.utcoffset(local)
    return 0 if offset is None else round(offset.total_seconds() * 1_000_000)


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
    distinct, inverse = np.unique(local, return_inverse=True)
    return np.array([local_to_utc(int(value), where) for value in distinct], np.int64)[inverse]


def _standard_offset_us(where: tzinfo) -> int:
    seasons = (days_from_civil(2030, 1, 1), days_from_civil(2030, 7, 1))
    return min(_offset_us(days, 0, where) for days in seasons)


def _map_numbers(
    array: pa.Array, dtype: np.dtype[Any], function: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
) -> pa.Array:
    """An array of the same type and nulls with other numbers in its data buffer."""
    validity, data = array.buffers()
    changed = np.ascontiguousarray(function(np.frombuffer(data, dtype, len(array) + array.offset)), dtype)
    buffers = [validity, pa.py_buffer(changed)]
    return pa.Array.from_buffers(array.type, len(array), buffers, array.null_count, array.offset)
