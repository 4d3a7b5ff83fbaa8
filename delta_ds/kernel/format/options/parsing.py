"""`Option` and `OptionSet`: records of options, and their parsing with a hint at the nearest known name.

Names come in any case. `storage.<name>`, Hadoop's `fs.*` settings and names such as `AWS_ACCESS_KEY_ID` go to the
filesystem.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, datetime, time, timezone, tzinfo
from typing import Any

from delta_ds.conditions.options import (
    REGEX_OPT_SYNTAX_ERROR,
    TIME_TRAVEL_INVALID_BEGIN_VALUE,
    TIMESTAMP_INVALID,
    VERSION_INVALID,
)
from delta_ds.conditions.record import ILLEGAL_OPTION
from delta_ds.events.commands import OPTION_PASSED_OVER
from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.base.json_text import parse_json
from delta_ds.kernel.base.value_types import parse_boolean, parse_size
from delta_ds.kernel.format.options.settings import (
    IGNORE_UNKNOWN,
    REFUSE,
    SETTINGS_OPTION,
    SessionFacts,
    parse_facts,
)
from delta_ds.kernel.storage.store_options import SecretOptions, is_cloud_name, is_hadoop_setting
from delta_ds.records import dataclass, field, replace

# --- parse option values: versions, timestamps, sizes, names
# Each parser takes the text and the session time zone, and raises `ValueError` saying what would be right.

_LARGEST_VERSION = 2**63 - 1
_IDENTIFIER = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^,`]*[^,`\s]))\s*(,|$)")
# The forms of Spark's cast from string to timestamp; digits beyond microseconds are cut off.
_TIMESTAMP = re.compile(
    r"(?P<year>[0-9]{4,6})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})(?:[ T](?:"
    r"(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]*))?)?)?"
    r"\s*(?P<zone>Z|[+-][0-9:]+|[A-Za-z][A-Za-z0-9_/+:-]*)?"
    r")?)?)?)?"
)
_TIMESTAMP_FORMS = "2024-01-31, 2024-01-31 13:05:00[.123456] or 2024-01-31T13:05:00Z (or +01:00)"


def version(text: str, zone: tzinfo) -> int:
    if not re.fullmatch("[0-9]+", text.strip()) or int(text) > _LARGEST_VERSION:
        raise ValueError("a version is a number from 0 on")
    return int(text)


def travelled_version(text: str, zone: tzinfo) -> int:
    """A version that a table may not have: of one below 0 its log says so."""
    shown = text.strip()
    return -version(shown[1:], zone) if shown.startswith("-") else version(shown, zone)


def timestamp(text: str, zone: tzinfo) -> datetime:
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"a timestamp has the form {_TIMESTAMP_FORMS}")
    parts = match.groupdict()
    try:
        day = date(int(parts["year"]), int(parts["month"] or 1), int(parts["day"] or 1))
        hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
        micros = int((parts["fraction"] or "0").ljust(6, "0")[:6])
        local = datetime.combine(day, time(hour, minute, second, micros))
        where = zone_by_name(parts["zone"]) if parts["zone"] else zone
        return local.replace(tzinfo=where).astimezone(timezone.utc)
    except OverflowError as error:
        raise ValueError("a timestamp lies in the years 1 to 9999") from error


def zone_by_name(name: str) -> tzinfo:
    if name.strip() in ("UTC", "Z"):
        return timezone.utc
    # Brings in pyarrow, and is needed for other zones only.
    from delta_ds.kernel.format.expressions.zones import zone

    return zone(name)


def boolean(text: str, zone: tzinfo) -> bool:
    return parse_boolean(text)


def size_in_bytes(text: str, zone: tzinfo) -> int:
    return parse_size(text)


def names(text: str, zone: tzinfo) -> tuple[str, ...]:
    listed = listed_names(text)
    twice = next((n for n in listed if sum(n.lower() == other.lower() for other in listed) > 1), None)
    if twice is not None:
        raise ValueError(f"it names {twice!r} twice")
    return listed


def listed_names(text: str) -> tuple[str, ...]:
    """As `names`, where one may stand there several times."""
    names: list[str] = []
    at, more = 0, True
    while more:
        match = _IDENTIFIER.match(text, at)
        if match is None:
            raise ValueError("it is a list of column names, separated by commas, odd ones in `backticks`")
        names.append(match[1].replace("``", "`") if match[1] else match[2])
        at, more = match.end(), match[3] == ","
    return tuple(names)


def time_zone_name(text: str, zone: tzinfo) -> str:
    zone_by_name(text)
    return text.strip()


def text_as_it_is(text: str, zone: tzinfo) -> str:
    return text


# --- `Option` and `OptionSet`: records of options, and their parsing with a hint at the nearest known name

STORAGE_PREFIX = "storage."
# Before a name under which Spark would show the value in plans: of names with `secret` it shows none.
HIDDEN_PREFIX = f"{STORAGE_PREFIX}secret."

# From this likeness on a name is taken for a slip of the pen: `mergeShema`, and not the `inferSchema` of other sources.
_NEAR = 0.85
_SHORTEST_NEAR = 5

# Names that were passed over, each told once in a process.
_told: set[tuple[str, str]] = set()
_MOST_TOLD = 1000


def is_of_store(name: str) -> bool:
    """Whether an option goes to the filesystem, and may be a secret."""
    return name.lower().startswith(STORAGE_PREFIX) or is_hadoop_setting(name) or is_cloud_name(name)


def store_name(name: str) -> str:
    """The name of such an option as storage options have it.

    >>> store_name("storage.key"), store_name("storage.secret.fs.azure.account.key"), store_name("AWS_REGION")
    ('key', 'fs.azure.account.key', 'AWS_REGION')
    """
    for prefix in (HIDDEN_PREFIX, STORAGE_PREFIX):
        if name.lower().startswith(prefix) and len(name) > len(prefix):
            return name[len(prefix) :]
    return name


def hidden_name(name: str) -> str:
    """A name of the same option whose value Spark hides; that of an option of no store as it is.

    >>> hidden_name("fs.azure.account.key"), hidden_name("storage.key"), hidden_name("mergeSchema")
    ('storage.secret.fs.azure.account.key', 'storage.secret.key', 'mergeSchema')
    """
    return f"{HIDDEN_PREFIX}{store_name(name)}" if is_of_store(name) else name


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    Attributes
    ----------
    name
        As documented; looked up ignoring case.
    type
        What its text is, for the documentation.
    default
        What holds without it, as text; None: nothing.
    meaning
        What it does.
    target
        The field of the parsed options that it fills.
    parse
        Text and time zone to value; raises `ValueError` saying what would be right.
    aliases
        Older names.
    condition
        The error condition of a wrong value.
    setting
        The setting of a session that stands for it where a call does not give it.
    batch_only
        Why a stream does not take it; None: it does.
    """

    name: str
    type: str
    default: str | None
    meaning: str
    target: str
    parse: Callable[[str, tzinfo], Any]
    aliases: tuple[str, ...] = ()
    condition: str = ILLEGAL_OPTION.name
    setting: str | None = None
    batch_only: str | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """What was given: texts by canonical name, values by target, what the session says, the rest by whom it is for."""

    texts: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    facts: SessionFacts = field(default_factory=SessionFacts)
    storage_options: SecretOptions = field(default_factory=SecretOptions, repr=False)
    properties: dict[str, str] = field(default_factory=dict)


class OptionSet:
    """The options of one kind of operation.

    Parameters
    ----------
    kind
        `read` or `write`, for messages.
    options
        All that there are.
    property_prefix
        Names with this prefix are table properties and are kept as they are.
    elsewhere
        What to say of names that belong to another kind of operation and are passed over here, by lower-case name.
    refused
        What to say of names that would ask for other rows than there are here, by lower-case name.
    """

    def __init__(
        self,
        kind: str,
        options: Sequence[Option],
        property_prefix: str | None = None,
        elsewhere: Mapping[str, str] | None = None,
        refused: Mapping[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self.options = tuple(options)
        self.property_prefix = property_prefix
        self.elsewhere = elsewhere or {}
        self.refused = refused or {}
        self._by_name = {n.lower(): option for option in options for n in (option.name, *option.aliases)}

    def parse(
        self, options: Mapping[str, Any], session_time_zone: str, *, unknown: str | None = None
    ) -> Given:
        """Sort options out and parse each.

        Parameters
        ----------
        options
            Names in any case to text (or plain Python values).
        session_time_zone
            Zone of local times where neither the option `timeZone` nor the facts of the session say one.
        unknown
            What is done with options of no known name: `near` refuses those that are spelled nearly like a known one
            and passes over the others, `refuse` refuses all, `ignore` passes over all. None: as the session says.

        Raises
        ------
        InvalidOptionError
            An unknown name (with the nearest known one), a wrong value, or no path.
        """
        facts = _facts_in(options)
        sorted_out = self._sort_out(options, lambda: unknown or facts.unknown_options)
        zone = zone_by_name(sorted_out.texts.get("timeZone") or facts.time_zone or session_time_zone)
        for name, text in sorted_out.texts.items():
            option = self._by_name[name.lower()]
            try:
                sorted_out.values[option.target] = option.parse(text, zone)
            except InvalidOptionError:
                raise
            except ValueError as error:
                raise InvalidOptionError(
                    f"{_beginning(option, name, text)} for option '{name}', {error}",
                    condition=option.condition,
                    parameters=_wrong_value(option, name, text, error),
                ) from error
        return replace(sorted_out, facts=facts)

    def _sort_out(self, options: Mapping[str, Any], unknown: Callable[[], str]) -> Given:
        texts: dict[str, str] = {}
        properties: dict[str, str] = {}
        storage: dict[str, Any] = {}
        for name, value in options.items():
            folded = name.lower()
            if value is None or folded == SETTINGS_OPTION.lower():
                continue
            if is_of_store(name):
                plain, setting = store_name(name), storage_value(name, value)
                if storage.setdefault(plain, setting) != setting:
                    raise InvalidOptionError(
                        f"option {plain!r} is given twice with different values", parameters={"option": plain}
                    )
            elif self.property_prefix is not None and folded.startswith(self.property_prefix):
                properties[name] = _text(name, "text", value)
            elif (recognized := self._known(name, value)) is not None:
                option, text = recognized
                if texts.setdefault(option.name, text) != text:
                    raise InvalidOptionError(f"option {option.name!r} is given twice with different values")
            else:
                self._pass_over(name, unknown())
        return Given(texts, {}, SessionFacts(), SecretOptions(storage), properties)

    def _known(self, name: str, value: Any) -> tuple[Option, str] | None:
        folded = name.lower()
        if folded == "paths":
            return self._by_name["path"], _only_path(_text(name, "text", value))
        option = self._by_name.get(folded)
        return None if option is None else (option, _text(name, option.type, value))

    def _pass_over(self, name: str, unknown: str) -> None:
        """Refuse an option of no known name, or warn of it, once a process."""
        folded = name.lower()
        near = self._nearly(folded)
        if unknown == REFUSE or folded in self.refused or (near is not None and unknown != IGNORE_UNKNOWN):
            raise self._unknown(name, near)
        if unknown == IGNORE_UNKNOWN or (self.kind, folded) in _told or len(_told) >= _MOST_TOLD:
            return
        _told.add((self.kind, folded))
        OPTION_PASSED_OVER.log(option=name, kind=self.kind, hint=self.elsewhere.get(folded))

    def _nearly(self, folded: str) -> str | None:
        """The known name that one which is not known is spelled nearly like."""
        if folded in self.elsewhere or folded in self.refused:
            return None
        names = [option for option in self._by_name if len(option) >= _SHORTEST_NEAR]
        matches = difflib.get_close_matches(folded, names, 1, cutoff=_NEAR)
        return matches[0] if matches else None

    def _unknown(self, name: str, near: str | None) -> InvalidOptionError:
        folded = name.lower()
        nearest = [near] if near is not None else difflib.get_close_matches(folded, self._by_name, 1)
        if folded in self.refused or folded in self.elsewhere:
            hint = {**self.elsewhere, **self.refused}[folded]
        elif nearest:
            hint = f"did you mean {self._by_name[nearest[0]].name!r}?"
        else:
            hint = f"known are {', '.join(option.name for option in self.options)}"
        return InvalidOptionError(
            f"unknown {self.kind} option {name!r}; {hint} (options of the filesystem begin with "
            f"{STORAGE_PREFIX!r})",
            parameters={"option": name},
        )


def _facts_in(options: Mapping[str, Any]) -> SessionFacts:
    """What the session says, which travels among the options of a call."""
    text = next(
        (str(text) for name, text in options.items() if name.lower() == SETTINGS_OPTION.lower()), None
    )
    if text is None:
        return SessionFacts()
    try:
        return parse_facts(text, timezone.utc)
    except ValueError as error:
        raise InvalidOptionError(
            f"Invalid value '{text}' for option '{SETTINGS_OPTION}', {error}",
            parameters={"name": SETTINGS_OPTION, "input": text, "explain": str(error)},
        ) from error


def _text(name: str, kind: str, value: Any) -> str:
    """The value of an option as text; of a list of names, with commas between them.

    Raises
    ------
    InvalidOptionError
        It is a collection of another kind, or of what has none.
    """
    if isinstance(value, datetime):
        return value.isoformat()
    if not isinstance(value, (bytes, bytearray, Mapping, Set, list, tuple)):
        return str(value)
    if kind == "names" and isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value):
        return ", ".join("`" + column.replace("`", "``") + "`" for column in value)
    form = "a text such as 'a, b', or a list of names" if kind == "names" else "a text, number or boolean"
    raise InvalidOptionError(
        f"invalid value for option {name!r}: it takes {form}, not a {type(value).__name__}",
        parameters={"name": name, "input": type(value).__name__, "explain": f"it takes {form}"},
    )


def _beginning(option: Option, name: str, text: str) -> str:
    """The words that the condition has for a wrong value."""
    words = {
        REGEX_OPT_SYNTAX_ERROR.name: f"Please recheck your syntax for '{name}': ",
        TIME_TRAVEL_INVALID_BEGIN_VALUE.name: f"{name} needs to be a valid begin value: ",
        TIMESTAMP_INVALID.name: f"The provided timestamp ('{text}') cannot be converted to a valid timestamp: ",
        VERSION_INVALID.name: f"The provided version ({text}) is not a valid version: ",
    }.get(option.condition or "", "")
    return f"{words}{'i' if words else 'I'}nvalid value '{text}'"


def _wrong_value(option: Option, name: str, text: str, error: ValueError) -> dict[str, str]:
    """The parameters of the error, under the names that the condition has for them."""
    reported = {"name": name, "input": text, "explain": str(error)}
    if option.condition == TIME_TRAVEL_INVALID_BEGIN_VALUE.name:
        return {**reported, "timeTravelKey": name}
    return {**reported, "expr": f"'{text}'"} if option.condition == TIMESTAMP_INVALID.name else reported


def _only_path(text: str) -> str:
    """The path of Spark's option `paths`: the JSON list of what `load([...])` was given."""
    try:
        paths = parse_json(text)
    except ValueError:
        paths = None
    if isinstance(paths, list) and len(paths) == 1:
        return str(paths[0])
    raise InvalidOptionError(
        "several paths were given, but a read takes one table: load each by itself and union the results"
    )


def storage_value(name: str, value: Any) -> Any:
    """Spark knows text only, filesystems also take flags and dicts (as JSON)."""
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not value.startswith("{"):
        return value
    try:
        return parse_json(value)
    except ValueError:
        refusal = InvalidOptionError(f"option {name!r} begins with a brace but is not JSON")
    # Not where the error of JSON is handled, which holds the text: it may be a key.
    raise refusal
