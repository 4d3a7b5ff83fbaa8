"""Dates and timestamps as constants: Python's own, and values of our own before the year 1 and after 9999.

Both kinds compare with each other, and a year that Python knows is always of Python's kind.
"""

from __future__ import annotations

import datetime
from typing import Any, TypeAlias

from delta_ds.kernel.format.expressions.civil import date_text, local_text
from delta_ds.records import dataclass

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
