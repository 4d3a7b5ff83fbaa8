"""Calendars and time zones: files in the hybrid Julian/Gregorian calendar, and local times as Java reads them.

Spark 2.4 and the `LEGACY` write mode store dates and timestamps before 1582-10-15 in the old hybrid
calendar; the file's footer says so. Source: Spark, `DataSourceUtils.getRebaseSpec` and `RebaseDateTime`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.data import INVALID_TIMEZONE
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.moments import DAY_US, civil_from_days, days_from_civil
from delta_ds.kernel.format.expressions.zones import instants_of, offset_at, zone_of
from delta_ds.records import dataclass

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
