"""The types of values of properties, settings and environment variables, each with its name and parser.

A parser raises `ValueError` saying what would be right; who asks adds the name of what was set.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Generic, TypeVar

from delta_ds.records import dataclass

T_co = TypeVar("T_co", covariant=True)

_INTERVAL_UNITS = {
    unit: timedelta(**{f"{unit}s": 1})
    for unit in ("week", "day", "hour", "minute", "second", "millisecond", "microsecond")
}
# All numbers of a log have 64 bits.
_LARGEST = (1 << 63) - 1
_SIZE_UNITS = ("", "k", "m", "g", "t", "p")
_SIZE = re.compile(r"([0-9]+)\s*(|b|[kmgtp]b?)", re.IGNORECASE)
_INTERVAL_PART = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]{1,9})?)\s+([a-z]+)\s*")


@dataclass(frozen=True, slots=True)
class ValueType(Generic[T_co]):
    """One type of value.

    Attributes
    ----------
    name
        What the text is, for the documentation.
    parse
        Text to value; raises `ValueError` saying what would be right.
    """

    name: str
    parse: Callable[[str], T_co]


def parse_boolean(text: str) -> bool:
    """`true` or `false` in any case; raises `ValueError` otherwise."""
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError("it is true or false")
    return word == "true"


class NotAnIntervalError(ValueError):
    """A text that is no interval, of whatever length."""


def parse_interval(text: str) -> timedelta:
    """A duration such as `interval 1 week` or `2 days 12 hours`.

    Raises
    ------
    NotAnIntervalError
        The text is none.
    ValueError
        Months and years (they have no fixed length), and negative durations.
    """
    rest = re.sub(r"^\s*interval\s+", "", text.lower())
    total, at = timedelta(), 0
    while at < len(rest):
        match = _INTERVAL_PART.match(rest, at)
        unit = _INTERVAL_UNITS.get(match[2].removesuffix("s")) if match else None
        if match is None or unit is None:
            known = match is not None and match[2].removesuffix("s") in ("month", "year")
            wrong = ValueError if known else NotAnIntervalError
            raise wrong("it is an interval such as '30 days' or '2 weeks', without months or years")
        try:
            total += float(match[1]) * unit if "." in match[1] else int(match[1]) * unit
        except OverflowError:
            raise ValueError("it is an interval of less than a billion days") from None
        at = match.end()
    if not rest.strip() or total < timedelta():
        wrong = ValueError if rest.strip() else NotAnIntervalError
        raise wrong("it is an interval of zero or more, such as '30 days'")
    return total


def parse_size(text: str) -> int:
    """A size in bytes, or with a unit as in `128m` or `1gb`; raises `ValueError` otherwise."""
    match = _SIZE.fullmatch(text.strip())
    size = int(match[1]) * 1024 ** _SIZE_UNITS.index(match[2].lower().rstrip("b")) if match else 0
    if not 0 < size <= _LARGEST:
        raise ValueError("it is a size in bytes, or with a unit as in 128m")
    return size


BOOLEAN = ValueType("boolean", parse_boolean)
INTERVAL = ValueType("interval", parse_interval)
SIZE = ValueType("size", parse_size)
TEXT = ValueType("text", str)


def integer(low: int, high: int | None = None) -> ValueType[int]:
    """Whole numbers within bounds, both inclusive; `high` None: as far as 64 bits reach."""
    bounds = f"from {low}" + ("" if high is None else f" to {high}")

    def parse(text: str) -> int:
        wanted = f"it is a whole number {bounds}"
        try:
            number = int(text)
        except ValueError:
            raise ValueError(wanted) from None
        if not low <= number <= (_LARGEST if high is None else high):
            raise ValueError(wanted)
        return number

    return ValueType(f"whole number {bounds}", parse)


def one_of(*words: str) -> ValueType[str]:
    """One of these words, in any case; the value is the word as it is spelled here."""

    def parse(text: str) -> str:
        found = next((word for word in words if word.lower() == text.strip().lower()), None)
        if found is None:
            raise ValueError(f"it is one of {', '.join(words)}")
        return found

    return ValueType(", ".join(f"`{word}`" for word in words), parse)


def matching(pattern: str, name: str) -> ValueType[str]:
    """Texts that match a regular expression in any case; `name` says what they are."""

    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text.strip(), re.IGNORECASE):
            raise ValueError(f"it is {name}")
        return text.strip()

    return ValueType(name, parse)


def words(*known: str) -> ValueType[tuple[str, ...]]:
    """Some of these words, separated by commas, each at most once; in lower case."""

    def parse(text: str) -> tuple[str, ...]:
        found = tuple(word.strip().lower() for word in text.split(",") if word.strip())
        if len(set(found)) < len(found) or not set(found) <= set(known):
            raise ValueError(f"it is a list of some of {', '.join(known)}, separated by commas")
        return found

    return ValueType(f"some of {', '.join(f'`{word}`' for word in known)}, with commas", parse)
