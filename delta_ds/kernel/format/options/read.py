"""The options of a read, parsed to a `ReadOptions`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any

from delta_ds.conditions.options import (
    INVALID_TIMESTAMP_FORMAT,
    KEYS_OPTION_WITHOUT_NET,
    MULTIPLE_CDC_BOUNDARY,
    NET_OPTION_WITHOUT_KEYS,
    NO_START_OPTION_FOR_CDC_READ,
    ONEOF_IN_TIMETRAVEL,
    TIME_TRAVEL_INVALID_BEGIN_VALUE,
    TIMESTAMP_INVALID,
    UNSUPPORTED_TIME_TRAVEL_BY_PATH,
    UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS,
    UNSUPPORTED_TIME_TRAVEL_OF_CHANGES,
    VERSION_INVALID,
)
from delta_ds.conditions.record import PATH_MISSING
from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.format.options.parsing import (
    Option,
    OptionSet,
    boolean,
    names,
    size_in_bytes,
    text_as_it_is,
    time_zone_name,
    timestamp,
    travelled_version,
    version,
    zone_by_name,
)
from delta_ds.kernel.format.options.settings import SessionFacts
from delta_ds.kernel.storage.store_options import SecretOptions
from delta_ds.records import dataclass, field, replace

METADATA_COLUMNS = ("file_path", "file_name", "file_size", "row_index", "row_id", "row_commit_version")
DEFAULT_MAX_PARTITION_BYTES = 128 * 1024 * 1024

_VERSION_SUFFIX = re.compile(r"(.+)@[vV]([0-9]{1,19})", re.DOTALL)
_TIMESTAMP_SUFFIX = re.compile(r"(.+)@([0-9]{17})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The checked options of a read; what was not given is None or the default.

    Attributes
    ----------
    path
        The table's path or URL, as given; not in `repr`, as a URL may hold a password.
    version, timestamp
        Time travel: a version, or an aware timestamp in UTC; at most one of them.
    change_feed
        Read changes instead of rows.
    starting_version, ending_version, starting_timestamp, ending_timestamp
        The range of changes, both ends inclusive.
    net, keys
        What becomes of the changes of one key, and its columns; see `DeltaLog.changes`. None: each change counts.
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
    facts
        What the session says.
    """

    path: str = field(repr=False)
    version: int | None = None
    timestamp: datetime | None = None
    change_feed: bool = False
    starting_version: int | None = None
    ending_version: int | None = None
    starting_timestamp: datetime | None = None
    ending_timestamp: datetime | None = None
    net: str | None = None
    keys: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    metadata_columns: tuple[str, ...] = ()
    storage_options: dict[str, Any] = field(default_factory=SecretOptions, repr=False)
    max_partition_bytes: int = DEFAULT_MAX_PARTITION_BYTES
    time_zone: str | None = None
    facts: SessionFacts = field(default_factory=SessionFacts)

    @property
    def known_zone(self) -> str | None:
        """The zone of local times: that of the option, else the session's; None where nobody has said."""
        return self.time_zone or self.facts.time_zone


def _parse_metadata_columns(text: str, zone: tzinfo) -> tuple[str, ...]:
    chosen = tuple(name.lower() for name in names(text, zone))
    unknown = [name for name in chosen if name not in METADATA_COLUMNS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is none of {', '.join(METADATA_COLUMNS)}")
    return chosen


def _net(text: str, zone: tzinfo) -> str:
    if text.strip().lower() not in ("net", "latest"):
        raise ValueError("it is net (the effect of all changes of a key) or latest (the last of them)")
    return text.strip().lower()


READ_OPTIONS: tuple[Option, ...] = (
    Option(
        "path", "text", None, "the table's folder or URL; `@v5` or `@yyyyMMddHHmmssSSS` may follow it",
        "path", text_as_it_is,
    ),
    Option(
        "versionAsOf", "version", None, "read the table as it was at this version",
        "version", travelled_version, condition=TIME_TRAVEL_INVALID_BEGIN_VALUE.name,
    ),
    Option(
        "timestampAsOf", "timestamp", None, "read the newest version committed at or before this moment",
        "timestamp", timestamp, condition=TIMESTAMP_INVALID.name,
    ),
    Option(
        "readChangeFeed", "boolean", "false", "read the changes of a range of versions",
        "change_feed", boolean, aliases=("readChangeData",),
    ),
    Option(
        "startingVersion", "version", None, "the first version of the changes",
        "starting_version", version, condition=VERSION_INVALID.name,
    ),
    Option(
        "startingTimestamp", "timestamp", None, "changes from the first version at or after this moment",
        "starting_timestamp", timestamp, condition=TIMESTAMP_INVALID.name,
    ),
    Option(
        "endingVersion", "version", "the latest", "the last version of the changes",
        "ending_version", version, condition=VERSION_INVALID.name,
    ),
    Option(
        "endingTimestamp", "timestamp", "now", "changes up to the last version at or before this moment",
        "ending_timestamp", timestamp, condition=TIMESTAMP_INVALID.name,
    ),
    Option(
        "net", "text", None, "net: what the changes of a key come to, latest: the last of them; goes with `keys`",
        "net", _net,
    ),
    Option(
        "keys", "names", None, "the columns that tell rows apart: a, `b, with comma`", "keys", names,
    ),
    Option(
        "columns", "names", "all", "read these columns only, in this order: a, `b, with comma`",
        "columns", names,
    ),
    Option(
        "metadataColumns", "names", None, f"add a column _metadata with these fields, of {', '.join(METADATA_COLUMNS)}",
        "metadata_columns", _parse_metadata_columns,
    ),
    Option(
        "maxPartitionBytes", "size", "128m", "about how much data one task reads; row groups stay whole",
        "max_partition_bytes", size_in_bytes,
    ),
    Option(
        "timeZone", "time zone", "the session's", "the zone of local times in options and partition values",
        "time_zone", time_zone_name,
    ),
)  # fmt: skip

READ = OptionSet("read", READ_OPTIONS)
_CHANGE_FEED_ONLY = (
    "startingVersion",
    "startingTimestamp",
    "endingVersion",
    "endingTimestamp",
    "net",
    "keys",
)


def parse_read_options(options: Mapping[str, Any], session_time_zone: str = "UTC") -> ReadOptions:
    """Parse and check the options of a read.

    Parameters
    ----------
    options
        Names in any case to text (or plain Python values). `storage.<name>` and Hadoop's `fs.*` settings go
        to the filesystem.
    session_time_zone
        The zone of timestamps without one, unless the option `timeZone` or the facts of the session say one.

    Raises
    ------
    InvalidOptionError
        An unknown name (with the nearest known one), a wrong value, or options that exclude each other.
    """
    given = READ.parse(options, session_time_zone)
    if not given.values.get("path", "").strip():
        raise PATH_MISSING()
    _check_combination(given.texts, bool(given.values.get("change_feed")))
    return ReadOptions(storage_options=given.storage_options, facts=given.facts, **given.values)


def _check_combination(texts: Mapping[str, str], change_feed: bool) -> None:
    travels = "versionAsOf" in texts or "timestampAsOf" in texts
    if "versionAsOf" in texts and "timestampAsOf" in texts:
        raise ONEOF_IN_TIMETRAVEL()
    if not change_feed:
        alone = [name for name in _CHANGE_FEED_ONLY if name in texts]
        if alone:
            raise InvalidOptionError(f"option {alone[0]!r} needs readChangeFeed=true")
        return
    if travels:
        raise UNSUPPORTED_TIME_TRAVEL_OF_CHANGES()
    check_net(texts)
    for end in ("starting", "ending"):
        if f"{end}Version" in texts and f"{end}Timestamp" in texts:
            raise MULTIPLE_CDC_BOUNDARY(end=end)
    if "startingVersion" not in texts and "startingTimestamp" not in texts:
        raise NO_START_OPTION_FOR_CDC_READ()


def check_net(texts: Mapping[str, str]) -> None:
    """Refuse one of the options `net` and `keys` without the other.

    Parameters
    ----------
    texts
        What was given, by canonical name.
    """
    if "net" in texts and "keys" not in texts:
        raise NET_OPTION_WITHOUT_KEYS(net=texts["net"])
    if "keys" in texts and "net" not in texts:
        raise KEYS_OPTION_WITHOUT_NET()


def split_path_suffix(path: str, time_zone: str = "UTC") -> tuple[str, int | None, datetime | None]:
    """Split `path@v123` or `path@yyyyMMddHHmmssSSS` into path, version and timestamp (aware, in UTC).

    Only meant for paths that are no table as they stand: a folder may really be named so.

    Raises
    ------
    InvalidOptionError
        Seventeen digits that are no timestamp.
    """
    match = _TIMESTAMP_SUFFIX.fullmatch(path)
    if match:
        try:
            whole = datetime.strptime(match[2][:14], "%Y%m%d%H%M%S").replace(tzinfo=zone_by_name(time_zone))
            return match[1], None, whole.astimezone(timezone.utc) + timedelta(milliseconds=int(match[2][14:]))
        except (ValueError, OverflowError) as error:
            raise INVALID_TIMESTAMP_FORMAT(moment=match[2]) from error
    match = _VERSION_SUFFIX.fullmatch(path)
    return (match[1], int(match[2]), None) if match else (path, None, None)


def with_path_suffix(options: ReadOptions, session_time_zone: str = "UTC") -> ReadOptions:
    """The options with time travel taken from the path's suffix; unchanged if it has none.

    Raises
    ------
    InvalidOptionError
        The path has a suffix while an option asks for a version, a timestamp or changes.
    """
    path, version, timestamp = split_path_suffix(options.path, options.known_zone or session_time_zone)
    if version is None and timestamp is None:
        return options
    if options.version is not None or options.timestamp is not None:
        raise UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS()
    if options.change_feed:
        raise UNSUPPORTED_TIME_TRAVEL_BY_PATH()
    return replace(options, path=path, version=version, timestamp=timestamp)
