"""Patterns of dates and times, as `date_format` and its kin take them: the letters that write numbers.

Source: Spark's `DateTimeFormatterHelper`, where `y` is the year of the calendar and not of an era.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.moments import DAY_US, civil_from_days, day_of_year, year_text

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
