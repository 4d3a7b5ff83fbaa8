"""`Option` and `OptionSet`: records of options, and their parsing with a hint at the nearest known name.

Names come in any case. `storage.<name>`, Hadoop's `fs.*` settings and names such as `AWS_ACCESS_KEY_ID` go to the
filesystem.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any

from delta_ds.conditions.classes import ILLEGAL_OPTION
from delta_ds.conditions.options import TIME_TRAVEL_INVALID_BEGIN_VALUE, TIMESTAMP_INVALID
from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.json_text import parse_json
from delta_ds.kernel.options.values import zone_by_name
from delta_ds.kernel.storage.hadoop_options import is_cloud_name, is_hadoop_setting
from delta_ds.kernel.storage.store_options import SecretOptions
from delta_ds.records import dataclass, field

STORAGE_PREFIX = "storage."


def is_of_store(name: str) -> bool:
    """Whether an option goes to the filesystem, and may be a secret."""
    return name.lower().startswith(STORAGE_PREFIX) or is_hadoop_setting(name) or is_cloud_name(name)


def store_name(name: str) -> str:
    """The name of such an option as storage options have it."""
    return name[len(STORAGE_PREFIX) :] if name.lower().startswith(STORAGE_PREFIX) else name


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
    """

    name: str
    type: str
    default: str | None
    meaning: str
    target: str
    parse: Callable[[str, tzinfo], Any]
    aliases: tuple[str, ...] = ()
    condition: str = ILLEGAL_OPTION.name


@dataclass(frozen=True, slots=True)
class Given:
    """What was given: texts by canonical name, values by target, the rest by whom it is for."""

    texts: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
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
        What to say of names that belong to another kind of operation, by lower-case name.
    """

    def __init__(
        self,
        kind: str,
        options: Sequence[Option],
        property_prefix: str | None = None,
        elsewhere: Mapping[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self.options = tuple(options)
        self.property_prefix = property_prefix
        self.elsewhere = elsewhere or {}
        self._by_name = {n.lower(): option for option in options for n in (option.name, *option.aliases)}

    def parse(self, options: Mapping[str, Any], session_time_zone: str) -> Given:
        """Sort options out and parse each.

        Raises
        ------
        InvalidOptionError
            An unknown name (with the nearest known one), a wrong value, or no path.
        """
        given = self._sort_out(options)
        zone = zone_by_name(given.texts.get("timeZone") or session_time_zone)
        for name, text in given.texts.items():
            option = self._by_name[name.lower()]
            try:
                given.values[option.target] = option.parse(text, zone)
            except InvalidOptionError:
                raise
            except ValueError as error:
                raise InvalidOptionError(
                    f"invalid value {text!r} for option {name!r}: {error}",
                    condition=option.condition,
                    parameters=_wrong_value(option, name, text, error),
                ) from error
        return given

    def _sort_out(self, options: Mapping[str, Any]) -> Given:
        texts: dict[str, str] = {}
        properties: dict[str, str] = {}
        storage: dict[str, Any] = {}
        for name, value in options.items():
            folded = name.lower()
            if value is None:
                continue
            if is_of_store(name):
                plain, given = store_name(name), storage_value(name, value)
                if storage.setdefault(plain, given) != given:
                    raise InvalidOptionError(
                        f"option {plain!r} is given twice with different values", parameters={"option": plain}
                    )
            elif self.property_prefix is not None and folded.startswith(self.property_prefix):
                properties[name] = str(value)
            else:
                option, text = self._known(name, value)
                if texts.setdefault(option.name, text) != text:
                    raise InvalidOptionError(f"option {option.name!r} is given twice with different values")
        return Given(texts, {}, SecretOptions(storage), properties)

    def _known(self, name: str, value: Any) -> tuple[Option, str]:
        folded = name.lower()
        if folded == "paths":
            return self._by_name["path"], _only_path(str(value))
        option = self._by_name.get(folded)
        if option is not None:
            return option, value.isoformat() if isinstance(value, datetime) else str(value)
        near = difflib.get_close_matches(folded, self._by_name, 1)
        if folded in self.elsewhere:
            hint = self.elsewhere[folded]
        elif near:
            hint = f"did you mean {self._by_name[near[0]].name!r}?"
        else:
            hint = f"known are {', '.join(option.name for option in self.options)}"
        raise InvalidOptionError(
            f"unknown {self.kind} option {name!r}; {hint} (options of the filesystem begin with "
            f"{STORAGE_PREFIX!r})",
            parameters={"option": name},
        )


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
        # Not chained: the JSON error holds the text, which may be a key.
        raise InvalidOptionError(f"option {name!r} begins with a brace but is not JSON") from None
