"""`Setting` and `Refused`: one thing that a store can be told, by all of its names, and what their texts mean."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from delta_ds.kernel.storage.store_options import ALLOW_HTTP
from delta_ds.records import dataclass

_TRUE = frozenset({"true", "1", "yes", "on", "y", "t"})
_FALSE = frozenset({"false", "0", "no", "off", "n", "f"})
_DURATION = re.compile(
    r"([0-9]+(?:\.[0-9]+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)?"
)
# By the first letter of a unit that is not milliseconds.
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Attributes
    ----------
    target
        Where its value goes in the options of fsspec's filesystem, key by key. A first key that begins with `_` is
        a note for the `complete` of the store's module, which makes options of it.
    meaning
        What it does, for the documentation.
    hadoop
        Its names in Hadoop, in lower case.
    names
        Its names in delta-rs and the clouds' own tools, in lower case. They are found in any case.
    bare
        Short names of delta-rs, which are known among storage options only.
    parse
        Text to value; raises `ValueError` saying what would be right.
    credential
        Whether it says who asks. Credentials are taken together from one place: options, session or environment.
    secret
        Whether Hadoop also looks for it in key stores (`hadoop.security.credential.provider.path`).
    environment
        Variables of the environment that say the same, where the store's client does not look for them itself.
    settled_by
        First keys of options that, where they are given, leave the environment out.
    """

    target: tuple[str, ...]
    meaning: str
    hadoop: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    parse: Callable[[str], Any] = str
    credential: bool = False
    secret: bool = False
    environment: tuple[str, ...] = ()
    settled_by: tuple[str, ...] = ()

    @property
    def python(self) -> str:
        """Its name in fsspec; empty where it has none."""
        return "" if self.target[0].startswith("_") or self.target[0] == ALLOW_HTTP else ".".join(self.target)


@dataclass(frozen=True, slots=True)
class Refused:
    """A setting that has no counterpart, and must not be passed over.

    Attributes
    ----------
    name
        Regular expression of its names, in lower case.
    why
        What to do instead.
    in_session
        Whether a table is also not opened where a session sets it, as Spark would ask the store for another user or
        write other bytes.
    """

    name: str
    why: str
    in_session: bool = True


def flag(text: str) -> bool:
    """A boolean, in the words that Hadoop and delta-rs take."""
    folded = text.strip().lower()
    if folded not in _TRUE | _FALSE:
        raise ValueError("it is true or false")
    return folded in _TRUE


def number(text: str) -> int:
    """A whole number that is not negative."""
    if not text.strip().isdecimal():
        raise ValueError("it is a whole number")
    return int(text)


def seconds(text: str) -> float:
    """A duration as delta-rs has it, `30s`; a plain number counts seconds."""
    return _duration(text, 1.0)


def milliseconds(text: str) -> float:
    """A duration as Hadoop has it, `30s`; a plain number counts milliseconds. In seconds."""
    return _duration(text, 0.001)


def _duration(text: str, plain: float) -> float:
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError("it is a duration such as 30s")
    unit = match[2] or ""
    is_milli = unit.startswith(("ms", "milli"))
    return float(match[1]) * (0.001 if is_milli else _SECONDS.get(unit[:1], plain))


def only(*known: str) -> Callable[[str], str]:
    """A parser of one of these words, in any case."""

    def parse(text: str) -> str:
        if text.strip().lower() not in known:
            raise ValueError(f"it is one of {', '.join(known)}")
        return text.strip().lower()

    return parse


def put(options: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Set a value below the keys of a path."""
    for key in path[:-1]:
        options = options.setdefault(key, {})
    options[path[-1]] = value


def find(options: Any, path: tuple[str, ...]) -> Any:
    """The value below the keys of a path; None where there is none."""
    for key in path:
        if not isinstance(options, dict) or key not in options:
            return None
        options = options[key]
    return options
