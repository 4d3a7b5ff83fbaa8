"""Dates, timestamps and intervals as Spark reads them, and wall clock times of Arrow values.

Source: Spark's `SparkDateTimeUtils` (`stringToDate`, `parseTimestampString`).

Patterns of dates and times, as `date_format` and its kin take them: the letters that write numbers.

Source: Spark's `DateTimeFormatterHelper`, where `y` is the year of the calendar and not of an era.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.moments import (
    DAY_US,
    civil_from_days,
    date_of_fields,
    day_of_year,
    micros_of,
    year_text,
)
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


_HOUR, _MINUTE, _SECOND = 3_600_000_000, 60_000_000, 1_000_000

_Part = Callable[[int], str]


def _number(value: Callable[[int], Any], letter: str, widths: tuple[int, ...]) -> dict[str, _Part]:
    def part(width: int) -> _Part:
        return lambda micros: f"{value(micros):0{width}d}"

    return {letter * width: part(width) for width in widths}


def _year(micros: int) -> int:
    year: int = civil_from_days(micros // DAY_US)[0]
    return year


def _month(micros: int) -> int:
    month: int = civil_from_days(micros // DAY_US)[1]
    return month


def _half(micros: int) -> int:
    return micros // _HOUR % 12


def _fraction(width: int) -> _Part:
    return lambda micros: f"{micros % _SECOND:06d}".ljust(9, "0")[:width]


_LETTERS: dict[str, _Part] = {
    "y": lambda micros: str(_year(micros)),
    "yy": lambda micros: f"{abs(_year(micros)) % 100:02d}",
    "yyyy": lambda micros: year_text(_year(micros)),
    **_number(_month, "M", (1, 2)),
    **_number(_month, "L", (1, 2)),
    **_number(lambda micros: (_month(micros) + 2) // 3, "Q", (1, 2)),
    **_number(lambda micros: civil_from_days(micros // DAY_US)[2], "d", (1, 2)),
    **_number(lambda micros: day_of_year(micros // DAY_US), "D", (1, 2, 3)),
    **_number(lambda micros: micros // _HOUR % 24, "H", (1, 2)),
    **_number(lambda micros: (micros // _HOUR - 1) % 24 + 1, "k", (1, 2)),
    **_number(_half, "K", (1, 2)),
    **_number(lambda micros: (_half(micros) - 1) % 12 + 1, "h", (1, 2)),
    **_number(lambda micros: micros // _MINUTE % 60, "m", (1, 2)),
    **_number(lambda micros: micros // _SECOND % 60, "s", (1, 2)),
    **{"S" * width: _fraction(width) for width in range(1, 10)},
}
# What a letter does not look at below: moments that differ in that only are written alike.
_FINEST = {
    **dict.fromkeys("S", 1),
    **dict.fromkeys("s", _SECOND),
    **dict.fromkeys("m", _MINUTE),
    **dict.fromkeys("HkKh", _HOUR),
}


@functools.lru_cache(maxsize=64)
def formatter(pattern: str) -> Callable[[int], str]:
    """The function that writes a wall clock time by a pattern.

    Raises
    ------
    PredicateError
        The pattern holds a letter that is not known here.
    """
    parts: list[_Part] = []
    for kind, text in _tokens(pattern):
        if kind == "letters":
            if text not in _LETTERS:
                raise PredicateError(f"{text!r} of the date and time pattern {pattern!r} is not known here")
            parts.append(_LETTERS[text])
        else:
            parts.append(lambda micros, text=text: text)  # type: ignore[misc]
    return lambda micros: "".join(part(micros) for part in parts)


def finest_us(pattern: str) -> int:
    """How long the moments last, in microseconds, that a pattern writes alike."""
    letters = "".join(text for kind, text in _tokens(pattern) if kind == "letters")
    return min((_FINEST.get(letter, DAY_US) for letter in letters), default=DAY_US)


def _tokens(pattern: str) -> list[tuple[str, str]]:
    """Runs of one letter, and texts that stand for themselves."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(pattern):
        match = _TOKEN.match(pattern, at)
        if match is None or match["reserved"]:
            raise PredicateError(
                f"{pattern[at]!r} of the date and time pattern {pattern!r} is not known here"
            )
        at = match.end()
        if match["letters"]:
            found.append(("letters", match["letters"]))
        else:
            quoted = match["quoted"]
            text = match["other"] if quoted is None else "'" if quoted == "" else quoted.replace("''", "'")
            found.append(("text", text))
    return found


_TOKEN = re.compile(
    r"(?P<letters>([A-Za-z])\2*)|'(?P<quoted>(?:[^']|'')*)'|(?P<reserved>['\[\]{}#])|(?P<other>.)", re.DOTALL
)
