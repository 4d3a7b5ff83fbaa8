"""Dates and timestamps as constants: Python's own, and values of our own before the year 1 and after 9999.

Both kinds compare with each other, and a year that Python knows is always of Python's kind.
"""

from __future__ import annotations

import datetime
from typing import Any, TypeAlias

from delta_ds.records import dataclass

# --- the Gregorian calendar as arithmetic on days since 1970, for any year: of ints, and of NumPy arrays alike

DAY_US = 86_400_000_000
# The calendar repeats every 400 years, with its weekdays.
CYCLE_DAYS = 146_097


def days_from_civil(year: Any, month: Any, day: Any) -> Any:
    """Days since 1970-01-01 of a proleptic Gregorian date."""
    y = year - (month <= 2)
    era = y // 400
    year_of_era = y - era * 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return (
        era * CYCLE_DAYS + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468
    )


def civil_from_days(days: Any) -> tuple[Any, Any, Any]:
    """Year, month and day of a day number since 1970-01-01 in the proleptic Gregorian calendar."""
    era = (days + 719_468) // CYCLE_DAYS
    day_of_era = days + 719_468 - era * CYCLE_DAYS
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_index = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_index + 2) // 5 + 1
    month = (month_index + 2) % 12 + 1
    return year_of_era + era * 400 + (month <= 2), month, day


def last_of_month(year: Any, month: Any) -> Any:
    """The day number of the last day of a month."""
    return days_from_civil(year + month // 12, month % 12 + 1, 1) - 1


def date_of_fields(year: int, month: int, day: int) -> int | None:
    """The day number of a date; None if the calendar has no such date, or an int32 no such number."""
    if not 1 <= month <= 12 or day < 1:
        return None
    days: int = days_from_civil(year, month, day)
    return days if days <= last_of_month(year, month) and -(1 << 31) <= days < 1 << 31 else None


def plus_months(days: Any, months: Any) -> Any:
    """The same day so many months on, or the last day of that month if it is shorter."""
    year, month, day = civil_from_days(days)
    total = year * 12 + month - 1 + months
    first = days_from_civil(total // 12, total % 12 + 1, 1)
    beyond = first + day - 1 - last_of_month(total // 12, total % 12 + 1)
    return first + day - 1 - beyond * (beyond > 0)


def first_day(days: Any, unit: str) -> Any:
    """The first day of the `week` (it begins on Monday), `month`, `quarter` or `year` that a day lies in."""
    if unit == "week":
        return days - (days + 3) % 7
    year, month, _ = civil_from_days(days)
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    return days_from_civil(year, (month - 1) // months * months + 1, 1)


def day_of_year(days: Any) -> Any:
    """1 on the first of January."""
    return days - first_day(days, "year") + 1


def iso_year_and_week(days: Any) -> tuple[Any, Any]:
    """Year and week by ISO 8601: a week belongs to the year that its Thursday lies in."""
    thursday = first_day(days, "week") + 3
    return civil_from_days(thursday)[0], (day_of_year(thursday) - 1) // 7 + 1


# --- as text


def date_text(days: int) -> str:
    """`yyyy-MM-dd`, with a sign before years beyond 0 to 9999, as Spark's cast to string writes it."""
    year, month, day = civil_from_days(days)
    return f"{year_text(year)}-{month:02d}-{day:02d}"


def year_text(year: int) -> str:
    """Four digits at least, with a sign before years beyond 0 to 9999."""
    return f"{'-' if year < 0 else '+' if year > 9999 else ''}{abs(year):04d}"


def clock_text(rest_us: int) -> str:
    """`HH:mm:ss` of the microseconds since midnight."""
    seconds = rest_us // 1_000_000
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def local_text(micros: int) -> str:
    """`yyyy-MM-dd HH:mm:ss[.ffffff]` without trailing zeros, as Spark's cast to string writes a wall clock time."""
    days, rest = divmod(micros, DAY_US)
    fraction = f".{rest % 1_000_000:06d}".rstrip("0").rstrip(".")
    return f"{date_text(days)} {clock_text(rest)}{fraction}"


# --- dates and timestamps as constants: Python's own, and values of our own before the year 1 and after 9999

_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_LAST_DAY = datetime.date.max.toordinal() - _EPOCH_DAY
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_FIRST_US, _LAST_US = ((t - _EPOCH) // _MICROSECOND for t in (datetime.datetime.min, datetime.datetime.max))


class _Ordered:
    """Comparisons by one number, with values of Python's kind too."""

    __slots__ = ()

    def _numbers(self, other: Any) -> tuple[int, int] | None:
        raise NotImplementedError

    def _compare(self, other: Any, answers: tuple[bool, bool, bool]) -> Any:
        numbers = self._numbers(other)
        if numbers is None:
            return NotImplemented
        return answers[(numbers[0] > numbers[1]) - (numbers[0] < numbers[1]) + 1]

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, (True, False, False))

    def __le__(self, other: Any) -> Any:
        return self._compare(other, (True, True, False))

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, (False, False, True))

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, (False, True, True))


@dataclass(frozen=True, slots=True)
class FarDate(_Ordered):
    """A date before the year 1 or after the year 9999, by its days since 1970."""

    days: int

    def isoformat(self) -> str:
        """As Spark writes it: `+12345-01-31`, `-0044-03-15`."""
        return date_text(self.days)

    __str__ = isoformat

    def _numbers(self, other: Any) -> tuple[int, int] | None:
        if isinstance(other, FarDate) or type(other) is datetime.date:
            return self.days, days_of(other)
        return None


@dataclass(frozen=True, slots=True)
class FarTimestamp(_Ordered):
    """A moment before the year 1 or after the year 9999, by its microseconds since 1970.

    Attributes
    ----------
    aware
        Whether it is an instant, and not a wall clock time.
    """

    micros: int
    aware: bool

    def isoformat(self, sep: str = "T") -> str:
        """As Spark reads it."""
        return local_text(self.micros).replace(" ", sep) + "+00:00" * self.aware

    __str__ = isoformat

    def _numbers(self, other: Any) -> tuple[int, int] | None:
        if isinstance(other, (FarTimestamp, datetime.datetime)) and is_aware(other) == self.aware:
            return self.micros, micros_of(other)
        return None


Date: TypeAlias = "datetime.date | FarDate"
Timestamp: TypeAlias = "datetime.datetime | FarTimestamp"


def is_aware(value: Timestamp) -> bool:
    """Whether it is an instant, and not a wall clock time."""
    return value.aware if isinstance(value, FarTimestamp) else value.tzinfo is not None


def days_of(value: Date) -> int:
    """Days since 1970."""
    return value.days if isinstance(value, FarDate) else value.toordinal() - _EPOCH_DAY


def date_of(days: int) -> Date:
    """The inverse of `days_of`."""
    if -_EPOCH_DAY < days <= _LAST_DAY:
        return datetime.date.fromordinal(days + _EPOCH_DAY)
    return FarDate(days)


def micros_of(value: Timestamp) -> int:
    """Microseconds since 1970 of an instant, or of a wall clock time as if it were of UTC."""
    if isinstance(value, FarTimestamp):
        return value.micros
    offset = value.utcoffset() or datetime.timedelta()
    return (value.replace(tzinfo=None) - _EPOCH - offset) // _MICROSECOND


def timestamp_of(micros: int, aware: bool) -> Timestamp:
    """The inverse of `micros_of`: an instant in UTC if it is to be `aware`, else a wall clock time."""
    if not _FIRST_US <= micros <= _LAST_US:
        return FarTimestamp(micros, aware)
    timestamp = _EPOCH + datetime.timedelta(microseconds=micros)
    return timestamp.replace(tzinfo=datetime.timezone.utc) if aware else timestamp
