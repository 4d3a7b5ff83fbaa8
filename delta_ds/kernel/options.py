"""The options of a read, each as one record: parsed, checked, and refused where unknown.

`parse_read_options` turns what Spark hands over (text, names in any case) into a `ReadOptions`.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any

from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.storage.hadoop_options import is_hadoop_setting, to_storage_options
from delta_ds.kernel.storage.secret_options import SecretOptions

METADATA_COLUMNS = ("file_path", "file_name", "file_size", "row_index", "row_id", "row_commit_version")
DEFAULT_MAX_PARTITION_BYTES = 128 * 1024 * 1024
STORAGE_PREFIX = "storage."

_LARGEST_VERSION = 2**63 - 1
_BYTE_UNITS = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_BYTES = re.compile(r"([0-9]+)\s*(|b|[kmgtp]b?)", re.IGNORECASE)
_IDENTIFIER = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^,`]*[^,`\s]))\s*(,|$)")
_VERSION_SUFFIX = re.compile(r"(.+)@[vV]([0-9]{1,19})", re.DOTALL)
_TIMESTAMP_SUFFIX = re.compile(r"(.+)@([0-9]{17})", re.DOTALL)
# The forms of Spark's cast from string to timestamp; digits beyond microseconds are cut off.
_TIMESTAMP = re.compile(
    r"(?P<year>[0-9]{4,6})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})(?:[ T](?:"
    r"(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]*))?)?)?"
    r"\s*(?P<zone>Z|[+-][0-9:]+|[A-Za-z][A-Za-z0-9_/+:-]*)?"
    r")?)?)?)?"
)
_TIMESTAMP_FORMS = "2024-01-31, 2024-01-31 13:05:00[.123456] or 2024-01-31T13:05:00Z (or +01:00)"


@dataclass(frozen=True, slots=True)
class ReadOption:
    """One option of a read.

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
        The field of `ReadOptions` that it fills.
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
    condition: str = "DELTA_ILLEGAL_OPTION"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The checked options of a read; what was not given is None or the default.

    Attributes
    ----------
    path
        The table's path or URL, as given; not in `repr`, as a URL may hold a password.
    version, timestamp
        Time travel: a version, or an aware moment in UTC; at most one of them.
    change_feed
        Read changes instead of rows.
    starting_version, ending_version, starting_timestamp, ending_timestamp
        The range of changes, both ends inclusive.
    columns
        The names of the columns to read, in this order; None: all.
    metadata_columns
        Names out of `METADATA_COLUMNS`.
    storage_options
        For the filesystem; never shown.
    max_partition_bytes
        How much a task reads at most, about.
    time_zone
        The zone of local times; None: the session's.
    """

    path: str = field(repr=False)
    version: int | None = None
    timestamp: datetime | None = None
    change_feed: bool = False
    starting_version: int | None = None
    ending_version: int | None = None
    starting_timestamp: datetime | None = None
    ending_timestamp: datetime | None = None
    columns: tuple[str, ...] | None = None
    metadata_columns: tuple[str, ...] = ()
    storage_options: dict[str, Any] = field(default_factory=SecretOptions, repr=False)
    max_partition_bytes: int = DEFAULT_MAX_PARTITION_BYTES
    time_zone: str | None = None


def _parse_version(text: str, zone: tzinfo) -> int:
    if not re.fullmatch("[0-9]+", text.strip()) or int(text) > _LARGEST_VERSION:
        raise ValueError("a version is a number from 0 on")
    return int(text)


def _parse_timestamp(text: str, zone: tzinfo) -> datetime:
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"a timestamp has the form {_TIMESTAMP_FORMS}")
    parts = match.groupdict()
    try:
        local = datetime(
            int(parts["year"]), int(parts["month"] or 1), int(parts["day"] or 1),
            int(parts["hour"] or 0), int(parts["minute"] or 0), int(parts["second"] or 0),
            int((parts["fraction"] or "0").ljust(6, "0")[:6]),
        )  # fmt: skip
        where = _zone(parts["zone"]) if parts["zone"] else zone
        return local.replace(tzinfo=where).astimezone(timezone.utc)
    except OverflowError as error:
        raise ValueError("a timestamp lies in the years 1 to 9999") from error


def _zone(name: str) -> tzinfo:
    if name.strip() in ("UTC", "Z"):
        return timezone.utc
    # Brings in pyarrow, and is needed for other zones only.
    from delta_ds.kernel.data.calendar import zone

    return zone(name)


def _parse_boolean(text: str, zone: tzinfo) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError("it is true or false")
    return word == "true"


def _parse_bytes(text: str, zone: tzinfo) -> int:
    match = _BYTES.fullmatch(text.strip())
    size = int(match[1]) * 1024 ** _BYTE_UNITS[match[2][:1].lower()] if match else 0
    if size <= 0:
        raise ValueError("it is a size in bytes, or with a unit as in 128m")
    return size


def _parse_columns(text: str, zone: tzinfo) -> tuple[str, ...]:
    names: list[str] = []
    at, more = 0, True
    while more:
        match = _IDENTIFIER.match(text, at)
        if match is None:
            raise ValueError("it is a list of column names, separated by commas, odd ones in `backticks`")
        names.append(match[1].replace("``", "`") if match[1] else match[2])
        at, more = match.end(), match[3] == ","
    twice = next((n for n in names if sum(n.lower() == other.lower() for other in names) > 1), None)
    if twice is not None:
        raise ValueError(f"it names {twice!r} twice")
    return tuple(names)


def _parse_metadata_columns(text: str, zone: tzinfo) -> tuple[str, ...]:
    names = tuple(name.lower() for name in _parse_columns(text, zone))
    unknown = [name for name in names if name not in METADATA_COLUMNS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is none of {', '.join(METADATA_COLUMNS)}")
    return names


def _parse_time_zone(text: str, zone: tzinfo) -> str:
    _zone(text)
    return text.strip()


def _parse_text(text: str, zone: tzinfo) -> str:
    return text


_TIMESTAMP_ERROR = "DELTA_TIMESTAMP_INVALID"

READ_OPTIONS: tuple[ReadOption, ...] = (
    ReadOption(
        "path", "text", None, "the table's folder or URL; `@v5` or `@yyyyMMddHHmmssSSS` may follow it",
        "path", _parse_text,
    ),
    ReadOption(
        "versionAsOf", "version", None, "read the table as it was at this version",
        "version", _parse_version, condition="DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
    ),
    ReadOption(
        "timestampAsOf", "timestamp", None, "read the newest version committed at or before this moment",
        "timestamp", _parse_timestamp, condition=_TIMESTAMP_ERROR,
    ),
    ReadOption(
        "readChangeFeed", "boolean", "false", "read the changes of a range of versions",
        "change_feed", _parse_boolean, aliases=("readChangeData",),
    ),
    ReadOption(
        "startingVersion", "version", None, "the first version of the changes",
        "starting_version", _parse_version,
    ),
    ReadOption(
        "startingTimestamp", "timestamp", None, "changes from the first version at or after this moment",
        "starting_timestamp", _parse_timestamp, condition=_TIMESTAMP_ERROR,
    ),
    ReadOption(
        "endingVersion", "version", "the latest", "the last version of the changes",
        "ending_version", _parse_version,
    ),
    ReadOption(
        "endingTimestamp", "timestamp", "now", "changes up to the last version at or before this moment",
        "ending_timestamp", _parse_timestamp, condition=_TIMESTAMP_ERROR,
    ),
    ReadOption(
        "columns", "names", "all", "read these columns only, in this order: a, `b, with comma`",
        "columns", _parse_columns,
    ),
    ReadOption(
        "metadataColumns", "names", None, f"add a column _metadata with {', '.join(METADATA_COLUMNS)}",
        "metadata_columns", _parse_metadata_columns,
    ),
    ReadOption(
        "maxPartitionBytes", "size", "128m", "about how much data one task reads; row groups stay whole",
        "max_partition_bytes", _parse_bytes,
    ),
    ReadOption(
        "timeZone", "time zone", "the session's", "the zone of local times in options and partition values",
        "time_zone", _parse_time_zone,
    ),
)  # fmt: skip

_BY_NAME = {name.lower(): option for option in READ_OPTIONS for name in (option.name, *option.aliases)}
_CHANGE_FEED_ONLY = ("startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp")


def parse_read_options(options: Mapping[str, Any], session_time_zone: str = "UTC") -> ReadOptions:
    """Parse and check the options of a read.

    Parameters
    ----------
    options
        Names in any case to text (or plain Python values). `storage.<name>` and Hadoop's `fs.*` settings go
        to the filesystem.
    session_time_zone
        The zone of timestamps without one, unless the option `timeZone` is given.

    Raises
    ------
    InvalidOptionError
        An unknown name (with the nearest known one), a wrong value, or options that exclude each other.
    """
    texts, storage_options = _sort_out(options)
    time_zone = texts.get("timeZone")
    zone = _zone(session_time_zone if time_zone is None else time_zone)
    values: dict[str, Any] = {}
    for name, text in texts.items():
        option = _BY_NAME[name.lower()]
        try:
            values[option.target] = option.parse(text, zone)
        except InvalidOptionError:
            raise
        except ValueError as error:
            raise InvalidOptionError(
                f"invalid value {text!r} for option {name!r}: {error}",
                condition=option.condition,
                parameters={"option": name, "value": text},
            ) from error
    if not values.get("path", "").strip():
        raise InvalidOptionError("the option 'path' is missing: use .load('/path/of/the/table')")
    _check_combination(texts, bool(values.get("change_feed")))
    return ReadOptions(storage_options=SecretOptions(storage_options), **values)


def _sort_out(options: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Canonical option name -> text, and the storage options."""
    texts: dict[str, str] = {}
    storage: dict[str, Any] = {}
    hadoop: dict[str, str] = {}
    for given, value in options.items():
        name = given.lower()
        if value is None:
            continue
        if name.startswith(STORAGE_PREFIX):
            storage[given[len(STORAGE_PREFIX) :]] = _storage_value(given, value)
        elif is_hadoop_setting(name):
            hadoop[name] = str(value)
        else:
            option, text = _known_option(given, value)
            if texts.setdefault(option.name, text) != text:
                raise InvalidOptionError(f"option {option.name!r} is given twice with different values")
    return texts, {**to_storage_options(hadoop), **storage}


def _known_option(given: str, value: Any) -> tuple[ReadOption, str]:
    if given.lower() == "paths":
        return _BY_NAME["path"], _only_path(str(value))
    option = _BY_NAME.get(given.lower())
    if option is not None:
        return option, value.isoformat() if isinstance(value, datetime) else str(value)
    near = difflib.get_close_matches(given.lower(), _BY_NAME, 1)
    hint = f"did you mean {_BY_NAME[near[0]].name!r}?" if near else f"known are {', '.join(_names())}"
    raise InvalidOptionError(
        f"unknown read option {given!r}; {hint} (options of the filesystem begin with {STORAGE_PREFIX!r})",
        parameters={"option": given},
    )


def _names() -> list[str]:
    return [option.name for option in READ_OPTIONS]


def _only_path(text: str) -> str:
    """The path of Spark's option `paths`: the JSON list of what `load([...])` was given."""
    try:
        paths = json.loads(text)
    except ValueError:
        paths = None
    if isinstance(paths, list) and len(paths) == 1:
        return str(paths[0])
    raise InvalidOptionError(
        "several paths were given, but a read takes one table: load each by itself and union the results"
    )


def _storage_value(name: str, value: Any) -> Any:
    """Spark knows text only, filesystems also take flags and dicts (as JSON)."""
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not value.startswith("{"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        # Not chained: the JSON error holds the text, which may be a key.
        raise InvalidOptionError(f"option {name!r} begins with a brace but is not JSON") from None


def _check_combination(texts: Mapping[str, str], change_feed: bool) -> None:
    travels = "versionAsOf" in texts or "timestampAsOf" in texts
    if "versionAsOf" in texts and "timestampAsOf" in texts:
        raise InvalidOptionError(
            "give either 'versionAsOf' or 'timestampAsOf', not both", condition="DELTA_ONEOF_IN_TIMETRAVEL"
        )
    if not change_feed:
        alone = [name for name in _CHANGE_FEED_ONLY if name in texts]
        if alone:
            raise InvalidOptionError(f"option {alone[0]!r} needs readChangeFeed=true")
        return
    if travels:
        raise InvalidOptionError(
            "a change feed cannot travel in time: use startingVersion and endingVersion (or the timestamps) "
            "in place of versionAsOf and timestampAsOf",
            condition="DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
        )
    for end in ("starting", "ending"):
        if f"{end}Version" in texts and f"{end}Timestamp" in texts:
            raise InvalidOptionError(
                f"give either '{end}Version' or '{end}Timestamp' for a change feed, not both",
                condition="DELTA_MULTIPLE_CDC_BOUNDARY",
            )
    if "startingVersion" not in texts and "startingTimestamp" not in texts:
        raise InvalidOptionError(
            "a change feed needs 'startingVersion' or 'startingTimestamp'",
            condition="DELTA_NO_START_FOR_CDC_READ",
        )


def split_path_suffix(path: str, time_zone: str = "UTC") -> tuple[str, int | None, datetime | None]:
    """Split `path@v123` or `path@yyyyMMddHHmmssSSS` into path, version and moment (aware, in UTC).

    Only meant for paths that are no table as they stand: a folder may really be named so.

    Raises
    ------
    InvalidOptionError
        Seventeen digits that are no moment.
    """
    match = _TIMESTAMP_SUFFIX.fullmatch(path)
    if match:
        try:
            whole = datetime.strptime(match[2][:14], "%Y%m%d%H%M%S").replace(tzinfo=_zone(time_zone))
            return match[1], None, whole.astimezone(timezone.utc) + timedelta(milliseconds=int(match[2][14:]))
        except (ValueError, OverflowError) as error:
            raise InvalidOptionError(
                f"the path ends in @{match[2]}, which is not a moment of the form yyyyMMddHHmmssSSS",
                condition="DELTA_INVALID_TIMESTAMP_FORMAT",
            ) from error
    match = _VERSION_SUFFIX.fullmatch(path)
    return (match[1], int(match[2]), None) if match else (path, None, None)


def with_path_suffix(options: ReadOptions, session_time_zone: str = "UTC") -> ReadOptions:
    """The options with time travel taken from the path's suffix; unchanged if it has none.

    Raises
    ------
    InvalidOptionError
        The path has a suffix while an option asks for a version, a moment or changes.
    """
    path, version, timestamp = split_path_suffix(options.path, options.time_zone or session_time_zone)
    if version is None and timestamp is None:
        return options
    if options.version is not None or options.timestamp is not None:
        raise InvalidOptionError(
            "the path ends in a version or moment, and an option names one as well; give one of them",
            condition="DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS",
        )
    if options.change_feed:
        raise InvalidOptionError(
            "the path ends in a version or moment, but a change feed cannot travel in time",
            condition="DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
        )
    return replace(options, path=path, version=version, timestamp=timestamp)
