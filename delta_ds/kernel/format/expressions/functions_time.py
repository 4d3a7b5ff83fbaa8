"""Date and timestamp functions on Arrow values, by Spark's names.

Arguments of `year`, `hour` and their kin are dates or wall clock times: `bind` has already cast timestamps in the
session time zone. Functions of instants look at the zone themselves. Functions of rows take days and microseconds
since 1970.

Source: Spark's `DateTimeUtils`.
"""

from __future__ import annotations

import datetime
import functools
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions import moments as civil
from delta_ds.kernel.format.expressions.arrays import map_numbers, map_rows, scalar_of
from delta_ds.kernel.format.expressions.casts import Value, needs_zone
from delta_ds.kernel.format.expressions.moments import DAY_US
from delta_ds.kernel.format.expressions.temporal import finest_us, formatter, local_of
from delta_ds.kernel.format.expressions.tree import Call
from delta_ds.kernel.format.expressions.zones import instant_micros, local_micros, offset_at, zone_of
from delta_ds.kernel.format.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
)

_Function = Callable[[Call, "list[Any]"], Value]


def _numbers(function: Callable[[Any], Any], target: pa.DataType) -> _Function:
    """A function of one date or time, on NumPy arrays of days or microseconds."""
    return lambda node, args: map_numbers(function, args[0], target)


def _field(number: int) -> _Function:
    return _numbers(lambda days: civil.civil_from_days(days)[number], pa.int32())


def _clock(unit_us: int, units: int) -> _Function:
    return _numbers(lambda micros: micros // unit_us % units, pa.int32())


def _make_date(year: int, month: int, day: int) -> int:
    days = civil.date_of_fields(year, month, day)
    if days is None:
        raise PredicateError(f"{year}-{month}-{day} is not a date")
    return days


DATE_UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    "quarter": "quarter",
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    "week": "week",
}
CLOCK_UNITS = {
    "day": DAY_US, "dd": DAY_US, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000,
    "millisecond": 1_000, "microsecond": 1,
}  # fmt: skip


def _trunc(days: int, unit: str) -> int | None:
    known = DATE_UNITS.get(unit.lower())
    return None if known is None else civil.first_day(days, known)


def truncate_time(instant: int, unit: str, zone: datetime.tzinfo) -> int | None:
    """The instant at which the unit begins that an instant lies in; None for an unknown unit."""
    unit = unit.lower()
    if unit in DATE_UNITS:
        first = civil.first_day(local_micros(instant, zone) // DAY_US, DATE_UNITS[unit])
        return instant_micros(first * DAY_US, zone)
    size = CLOCK_UNITS.get(unit)
    if size is None:
        return None
    if size <= 1_000_000:
        return instant // size * size
    offset = offset_at(instant, zone)
    # Where the clock shows that time twice, that of the two which has the offset of the instant.
    return instant_micros((instant + offset) // size * size, zone, offset)


def _date_trunc(node: Call, args: list[Any]) -> Value:
    zone = zone_of(needs_zone(node.timezone))

    def run(unit: str, instant: int) -> int | None:
        return truncate_time(instant, unit, zone)

    return map_rows(run, args, [STRING, TIMESTAMP], TIMESTAMP)


def _add_interval(node: Call, args: list[Any]) -> Value:
    data_type = node.type
    assert data_type is not None
    plus: Callable[..., int]
    if data_type == DATE:
        plus = _days_later
    elif data_type == TIMESTAMP_NTZ:
        plus = _wall_clock_later
    else:
        plus = functools.partial(_instant_later, zone=zone_of(needs_zone(node.timezone)))
    return map_rows(plus, args, [data_type, INTEGER, INTEGER, LONG], data_type)


def _days_later(day: int, months: int, days: int, micros: int) -> int:
    moved: int = civil.plus_months(day, months) + days
    return moved


def _wall_clock_later(local: int, months: int, days: int, micros: int) -> int:
    day, rest = divmod(local, DAY_US)
    return _days_later(day, months, days, 0) * DAY_US + rest + micros


def _instant_later(instant: int, months: int, days: int, micros: int, zone: datetime.tzinfo) -> int:
    # As java.time does it: first the months, then the days, each time at the offset that the clock had, if it can be.
    for step in ((months, 0), (0, days)):
        if any(step):
            offset = offset_at(instant, zone)
            instant = instant_micros(_wall_clock_later(instant + offset, *step, 0), zone, offset)
    return instant + micros


def _date_format(node: Call, args: list[Any]) -> Value:
    return _written(local_of(args[0], needs_zone(node.timezone)), args[1])


def _written(timestamps: Value, pattern: Value) -> Value:
    """Wall clock times as texts of a pattern."""
    if isinstance(timestamps, pa.Array) and isinstance(pattern, pa.Scalar) and pattern.is_valid:
        # Moments that are written alike become one, which is written once.
        finest = finest_us(pattern.as_py())
        timestamps = map_numbers(lambda micros: micros // finest * finest, timestamps, timestamps.type)
    return map_rows(
        lambda micros, text: formatter(text)(micros), (timestamps, pattern), (TIMESTAMP_NTZ, STRING), STRING
    )


def _from_unixtime(node: Call, args: list[Any]) -> Value:
    pattern = args[1] if len(args) > 1 else scalar_of("yyyy-MM-dd HH:mm:ss", STRING)
    instants = pc.multiply(args[0], scalar_of(1_000_000, LONG)).cast(pa.timestamp("us", "UTC"))
    return _written(local_of(instants, needs_zone(node.timezone)), pattern)


def _from_utc(instant: int, zone: str) -> int:
    return local_micros(instant, zone_of(zone))


def _to_utc(instant: int, zone: str) -> int:
    return instant_micros(instant, zone_of(zone))


def _months_between(node: Call, args: list[Any]) -> Value:
    zone = zone_of(needs_zone(node.timezone))
    kinds: list[DataType] = [TIMESTAMP, TIMESTAMP, BOOLEAN]

    def run(end: int, start: int, rounded: bool = True) -> float:
        (months, day, is_last, seconds), *_ = sides = [_in_months(instant, zone) for instant in (end, start)]
        other_months, other_day, other_is_last, other_seconds = sides[1]
        if day == other_day or (is_last and other_is_last):
            return float(months - other_months)
        apart = (day - other_day) * 86_400 + seconds - other_seconds
        found = months - other_months + apart / (31 * 86_400.0)
        return math.floor(found * 1e8 + 0.5) / 1e8 if rounded else found

    return map_rows(run, args, kinds[: len(args)], DOUBLE)


def _in_months(instant: int, zone: datetime.tzinfo) -> tuple[int, int, bool, int]:
    """Months since the year 0, the day, whether it is the last of its month, and the seconds since it began."""
    days = local_micros(instant, zone) // DAY_US
    year, month, day = civil.civil_from_days(days)
    seconds = (instant - instant_micros(days * DAY_US, zone)) // 1_000_000
    return year * 12 + month, day, days == civil.last_of_month(year, month), seconds


_WEEKDAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _next_day(day: int, name: str) -> int:
    name = name.upper().strip(" ")
    wanted = next((n for n, full in enumerate(_WEEKDAYS) if name in (full, full[:3], full[:2])), None)
    if wanted is None:
        raise PredicateError(f"{name!r} is not the name of a day of the week")
    return day + 1 + (wanted - day - 4) % 7


def _rows(function: Callable[..., Any]) -> _Function:
    def run(node: Call, args: list[Any]) -> Value:
        types: list[DataType] = [a.type for a in node.args if a.type is not None]
        assert node.type is not None
        return map_rows(function, args, types, node.type)

    return run


def _epoch(divisor: int) -> _Function:
    return _numbers(lambda micros: micros // divisor, pa.int64())


def _whole_seconds(node: Call, args: list[Any]) -> Value:
    """Seconds since 1970, without the fraction on both sides of it."""
    return pc.divide(args[0].cast(pa.int64()), scalar_of(1_000_000, LONG))


def _plus_days(sign: int) -> _Function:
    """Days beyond what 32 bits hold come round at the other end, as in Spark."""
    step = pc.add if sign > 0 else pc.subtract
    return lambda node, args: step(args[0].cast(pa.int32()), args[1]).cast(pa.date32())


def _instant(factor: int) -> _Function:
    scale = scalar_of(factor, LONG)
    return lambda node, args: pc.multiply_checked(args[0], scale).cast(pa.timestamp("us", "UTC"))


RUN: dict[str, _Function] = {
    "year": _field(0),
    "month": _field(1),
    "dayofmonth": _field(2),
    "dayofyear": _numbers(civil.day_of_year, pa.int32()),
    "quarter": _numbers(lambda days: (civil.civil_from_days(days)[1] + 2) // 3, pa.int32()),
    "weekofyear": _numbers(lambda days: civil.iso_year_and_week(days)[1], pa.int32()),
    "yearofweek": _numbers(lambda days: civil.iso_year_and_week(days)[0], pa.int32()),
    "weekday": _numbers(lambda days: (days + 3) % 7, pa.int32()),
    "dayofweek": _numbers(lambda days: (days + 4) % 7 + 1, pa.int32()),
    "hour": _clock(3_600_000_000, 24),
    "minute": _clock(60_000_000, 60),
    "second": _clock(1_000_000, 60),
    "date_add": _plus_days(1),
    "date_sub": _plus_days(-1),
    "datediff": lambda node, args: pc.subtract(args[0].cast(pa.int32()), args[1].cast(pa.int32())),
    "add_months": _rows(civil.plus_months),
    "last_day": _numbers(lambda days: civil.last_of_month(*civil.civil_from_days(days)[:2]), pa.date32()),
    "make_date": _rows(_make_date),
    "trunc": _rows(_trunc),
    "date_trunc": _date_trunc,
    "add_interval": _add_interval,
    "date_format": _date_format,
    "from_unixtime": _from_unixtime,
    "from_utc_timestamp": _rows(_from_utc),
    "to_utc_timestamp": _rows(_to_utc),
    "months_between": _months_between,
    "next_day": _rows(_next_day),
    "dayname": _rows(lambda day: _WEEKDAYS[(day + 3) % 7][:3].title()),
    "monthname": _rows(lambda day: _MONTHS[civil.civil_from_days(day)[1] - 1]),
    "unix_timestamp": _whole_seconds,
    "to_unix_timestamp": _whole_seconds,
    "unix_seconds": _epoch(1_000_000),
    "unix_millis": _epoch(1_000),
    "unix_micros": _epoch(1),
    "timestamp_seconds": _instant(1_000_000),
    "timestamp_millis": _instant(1_000),
    "timestamp_micros": _instant(1),
    "unix_date": lambda node, args: args[0].cast(pa.int32()),
    "date_from_unix_date": lambda node, args: args[0].cast(pa.date32()),
}
