"""Date and timestamp functions on Arrow values, by Spark's names.

Arguments are dates or wall clock times: `bind` has already cast timestamps in the session time zone. Only
`date_trunc` and `add_interval`, which give back an instant, look at the zone themselves.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.expressions.arrays import map_rows, map_unique, micros, scalar_of
from delta_ds.kernel.expressions.casts import Value, needs_zone
from delta_ds.kernel.expressions.temporal import to_local, to_utc, zone_of
from delta_ds.kernel.expressions.tree import Call
from delta_ds.kernel.schema.types import DATE, INTEGER, LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType

_DAY = datetime.timedelta(days=1)


def _part(kernel: Callable[[Any], Any], plus: int = 0) -> Callable[[Call, list[Any]], Value]:
    return lambda node, args: pc.add(kernel(args[0]).cast(pa.int32()), scalar_of(plus, INTEGER))


def _day_of_week(node: Call, args: list[Any]) -> Value:
    """1 for Sunday to 7 for Saturday."""
    return pc.day_of_week(args[0], count_from_zero=False, week_start=7).cast(pa.int32())


def add_months(day: datetime.date, months: int) -> datetime.date:
    """The same day so many months on, or the last day of that month if it is shorter."""
    import calendar

    total = day.year * 12 + day.month - 1 + months
    year, month = divmod(total, 12)
    return day.replace(year=year, month=month + 1, day=min(day.day, calendar.monthrange(year, month + 1)[1]))


def _add_months(day: datetime.date, months: int) -> datetime.date:
    try:
        return add_months(day, months)
    except ValueError as error:
        raise OverflowError(str(error)) from error


def _last_day(day: datetime.date) -> datetime.date:
    import calendar

    return day.replace(day=calendar.monthrange(day.year, day.month)[1])


def _make_date(year: int, month: int, day: int) -> datetime.date:
    try:
        return datetime.date(year, month, day)
    except ValueError as error:
        raise PredicateError(f"{year}-{month}-{day} is not a date") from error


_DATE_UNITS = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mon": "month",
    "mm": "month", "week": "week",
}  # fmt: skip
_TIME_UNITS = {
    **_DATE_UNITS, "day": "day", "dd": "day", "hour": "hour", "minute": "minute", "second": "second",
    "millisecond": "millisecond", "microsecond": "microsecond",
}  # fmt: skip


def truncate_time(local: datetime.datetime, unit: str) -> datetime.datetime:
    """The start of the unit (a value of `_TIME_UNITS`) that a wall clock time lies in."""
    if unit == "microsecond":
        return local
    if unit == "millisecond":
        return local.replace(microsecond=local.microsecond // 1000 * 1000)
    fields = ["second", "minute", "hour"]
    zeros = fields[: fields.index(unit)] if unit in fields else fields
    local = local.replace(microsecond=0, **dict.fromkeys(zeros, 0))  # type: ignore[arg-type]
    if unit == "week":
        return local - local.weekday() * _DAY
    if unit in ("month", "quarter", "year"):
        months = {"month": 1, "quarter": 3, "year": 12}[unit]
        return local.replace(day=1, month=(local.month - 1) // months * months + 1)
    return local


def _trunc(day: datetime.date, unit: str) -> datetime.date | None:
    known = _DATE_UNITS.get(unit.lower())
    if known is None:
        return None
    return truncate_time(datetime.datetime.combine(day, datetime.time()), known).date()


def _date_trunc(node: Call, args: list[Any]) -> Value:
    zone = zone_of(needs_zone(node.timezone))

    def run(unit: str, instant: datetime.datetime) -> datetime.datetime | None:
        known = _TIME_UNITS.get(unit.lower())
        if known is None:
            return None
        local = to_local(instant, zone)
        start = truncate_time(local, known)
        if known in ("year", "quarter", "month", "week", "day"):
            return to_utc(start, zone)
        return instant - (local - start)  # stays on its side of a clock change

    return map_rows(run, args, [STRING, TIMESTAMP], TIMESTAMP)


def _add_interval(node: Call, args: list[Any]) -> Value:
    data_type = node.type
    assert data_type is not None
    zone = zone_of(needs_zone(node.timezone)) if data_type == TIMESTAMP else None

    def run(value: Any, months: int, days: int, microseconds: int) -> Any:
        if data_type == DATE:
            return _add_months(value, months) + days * _DAY
        local = to_local(value, zone) if zone else value
        moved = _add_months(local, months) + days * _DAY
        rest = datetime.timedelta(microseconds=microseconds)
        if zone is None:
            return moved + rest
        return (value if moved == local else to_utc(moved, zone)) + rest  # type: ignore[arg-type]

    return map_rows(run, args, [data_type, INTEGER, INTEGER, LONG], data_type)


# --- date_format

_LETTERS: dict[str, Callable[[datetime.datetime], str]] = {
    "yyyy": lambda t: f"{t.year:04d}", "y": lambda t: str(t.year), "yy": lambda t: f"{t.year % 100:02d}",
    "MM": lambda t: f"{t.month:02d}", "M": lambda t: str(t.month), "dd": lambda t: f"{t.day:02d}",
    "d": lambda t: str(t.day), "HH": lambda t: f"{t.hour:02d}", "H": lambda t: str(t.hour),
    "mm": lambda t: f"{t.minute:02d}", "m": lambda t: str(t.minute), "ss": lambda t: f"{t.second:02d}",
    "s": lambda t: str(t.second), "DDD": lambda t: f"{t.timetuple().tm_yday:03d}",
    "SSS": lambda t: f"{t.microsecond // 1000:03d}", "SSSSSS": lambda t: f"{t.microsecond:06d}",
}  # fmt: skip


def format_time(timestamp: datetime.datetime, pattern: str) -> str:
    """Spark's `date_format` for the numeric letters of its patterns.

    Raises
    ------
    PredicateError
        The pattern holds a letter that is not known here.
    """
    parts: list[str] = []
    for quoted, letters, other in re.findall(r"'((?:[^']|'')*)'|([A-Za-z]+)|([^A-Za-z'])", pattern):
        if letters:
            for run in re.findall(r"((.)\2*)", letters):
                if run[0] not in _LETTERS:
                    raise PredicateError(f"date_format cannot write {run[0]!r} of the pattern {pattern!r}")
                parts.append(_LETTERS[run[0]](timestamp))
        else:
            parts.append(other or quoted.replace("''", "'") or "'")
    return "".join(parts)


_FINEST = {"s": "second", "m": "minute", "H": "hour", "d": "day", "D": "day", "M": "month", "y": "year"}


def _date_format(node: Call, args: list[Any]) -> Value:
    timestamps, pattern = args
    if isinstance(timestamps, pa.Array) and isinstance(pattern, pa.Scalar) and "S" not in str(pattern):
        # Moments that are written alike become one, which is written once.
        unit = next((unit for letter, unit in _FINEST.items() if letter in str(pattern)), "year")
        timestamps = pc.floor_temporal(timestamps, unit=unit)
    return map_rows(format_time, (timestamps, pattern), (TIMESTAMP_NTZ, STRING), STRING)


def _rows(function: Callable[..., Any]) -> Callable[[Call, list[Any]], Value]:
    def run(node: Call, args: list[Any]) -> Value:
        types: list[DataType] = [a.type for a in node.args if a.type is not None]
        assert node.type is not None
        return map_rows(function, args, types, node.type)

    return run


def _epoch(divisor: int) -> Callable[[Call, list[Any]], Value]:
    return lambda node, args: map_unique(lambda t: micros(t) // divisor, args[0], TIMESTAMP, LONG)


def _plus_days(sign: int) -> Callable[[Call, list[Any]], Value]:
    def run(node: Call, args: list[Any]) -> Value:
        step = pc.subtract_checked if sign < 0 else pc.add_checked
        return step(args[0].cast(pa.int32()), args[1]).cast(pa.date32())

    return run


def _instant(factor: int) -> Callable[[Call, list[Any]], Value]:
    scale = scalar_of(factor, LONG)
    return lambda node, args: pc.multiply_checked(args[0], scale).cast(pa.timestamp("us", "UTC"))


RUN: dict[str, Callable[[Call, list[Any]], Value]] = {
    "year": _part(pc.year),
    "month": _part(pc.month),
    "dayofmonth": _part(pc.day),
    "dayofyear": _part(pc.day_of_year),
    "quarter": _part(pc.quarter),
    "weekofyear": _part(pc.iso_week),
    "weekday": _part(lambda days: pc.day_of_week(days)),
    "dayofweek": _day_of_week,
    "hour": _part(pc.hour),
    "minute": _part(pc.minute),
    "second": _part(pc.second),
    "date_add": _plus_days(1),
    "date_sub": _plus_days(-1),
    "datediff": lambda node, args: pc.subtract_checked(args[0].cast(pa.int32()), args[1].cast(pa.int32())),
    "add_months": _rows(_add_months),
    "last_day": _rows(_last_day),
    "make_date": _rows(_make_date),
    "trunc": _rows(_trunc),
    "date_trunc": _date_trunc,
    "add_interval": _add_interval,
    "date_format": _date_format,
    "unix_timestamp": _epoch(1_000_000),
    "to_unix_timestamp": _epoch(1_000_000),
    "unix_seconds": _epoch(1_000_000),
    "unix_millis": _epoch(1_000),
    "unix_micros": _epoch(1),
    "timestamp_seconds": _instant(1_000_000),
    "timestamp_millis": _instant(1_000),
    "timestamp_micros": _instant(1),
    "unix_date": lambda node, args: args[0].cast(pa.int32()),
    "date_from_unix_date": lambda node, args: args[0].cast(pa.date32()),
}
