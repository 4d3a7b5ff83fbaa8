"""The options of a streaming read, parsed to a `StreamReadOptions`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any

from delta_ds.conditions.options import (
    REGEX_OPT_SYNTAX_ERROR,
    STARTING_VERSION_AND_TIMESTAMP_BOTH_SET,
    TIMESTAMP_INVALID,
    UNSUPPORTED_TIME_TRAVEL_OF_STREAM,
)
from delta_ds.conditions.record import PATH_MISSING
from delta_ds.events.commands import DEPRECATED_OPTION
from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.format.options.parsing import (
    Option,
    OptionSet,
    boolean,
    size_in_bytes,
    text_as_it_is,
    version,
)
from delta_ds.kernel.format.options.read import DEFAULT_MAX_PARTITION_BYTES, READ_OPTIONS, check_net
from delta_ds.kernel.format.options.settings import SessionFacts
from delta_ds.kernel.storage.store_options import SecretOptions
from delta_ds.records import dataclass, field

LATEST = "latest"
ALWAYS = "always"
# delta-spark, DeltaOptions.MAX_FILES_PER_TRIGGER_OPTION_DEFAULT.
DEFAULT_MAX_FILES = 1000


@dataclass(frozen=True, slots=True)
class StreamReadOptions:
    """The checked options of a streaming read; what was not given is None or the default.

    Attributes
    ----------
    path
        The table's path or URL, as given; not in `repr`, as a URL may hold a password.
    starting_version, starting_timestamp
        Where the stream begins in place of a whole snapshot: a version (or `latest`: what comes after now), or an
        aware timestamp in UTC; at most one of them. They count for the first start of a query only.
    max_files, max_bytes
        What one batch reads at most; the bytes are a soft limit. None: not said.
    ignore_deletes
        Commits that only take rows away are passed over.
    ignore_changes
        Files that a commit rewrote are read whole, so rows come again; what it took away is passed over.
    ignore_file_deletion
        The older name of both.
    skip_change_commits
        Commits that change or take away rows are passed over as a whole.
    exclude_regex
        Files whose path, as in the log, matches this anywhere are not read.
    fail_on_data_loss
        A commit that is missing from the log ends the stream; False: it is passed over.
    change_feed
        Read changes instead of rows.
    net, keys
        What becomes of the changes of one key within a batch, and its columns; see `DeltaLog.changes`.
    schema_tracking_location, source_tracking_id
        A folder for the schema log, and what tells two sources apart that read one table with one location.
    allow_column_rename, allow_column_drop, allow_type_change
        `always`, or the version of the schema change that the reader has agreed to.
    columns, metadata_columns, storage_options, max_partition_bytes, time_zone, facts
        As for `ReadOptions`.
    """

    path: str = field(repr=False)
    starting_version: int | str | None = None
    starting_timestamp: datetime | None = None
    max_files: int | None = None
    max_bytes: int | None = None
    ignore_deletes: bool = False
    ignore_changes: bool = False
    ignore_file_deletion: bool = False
    skip_change_commits: bool = False
    exclude_regex: str | None = None
    fail_on_data_loss: bool = True
    change_feed: bool = False
    net: str | None = None
    keys: tuple[str, ...] | None = None
    schema_tracking_location: str | None = field(default=None, repr=False)
    source_tracking_id: str | None = None
    allow_column_rename: str | None = None
    allow_column_drop: str | None = None
    allow_type_change: str | None = None
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

    @property
    def allows_changes(self) -> bool:
        """Whether a commit may rewrite files with rows that a stream may have read."""
        return self.ignore_changes or self.ignore_file_deletion or self.skip_change_commits

    @property
    def allows_deletes(self) -> bool:
        """Whether a commit may take files with rows away."""
        return self.allows_changes or self.ignore_deletes

    @property
    def has_start(self) -> bool:
        """Whether the stream begins somewhere else than with a whole snapshot."""
        return self.starting_version is not None or self.starting_timestamp is not None


def _starting_version(text: str, zone: tzinfo) -> int | str:
    if text.strip().lower() == LATEST:
        return LATEST
    try:
        return version(text, zone)
    except ValueError:
        raise ValueError(f"it is a version from 0 on, or {LATEST}") from None


def _files(text: str, zone: tzinfo) -> int:
    if not re.fullmatch("[0-9]{1,18}", text.strip()) or int(text) < 1:
        raise ValueError("it is a number of files from 1 on")
    return int(text)


def _bytes(text: str, zone: tzinfo) -> int:
    size = size_in_bytes(text, zone)
    if size < 1:
        raise ValueError("it is a size above zero, such as 10g")
    return size


def _regex(text: str, zone: tzinfo) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"it is no regular expression: {error}") from error
    return text


def _agreement(text: str, zone: tzinfo) -> str:
    word = text.strip().lower()
    if word != ALWAYS and not re.fullmatch("[0-9]+", word):
        raise ValueError(f"it is {ALWAYS}, or the version of the schema change that may be read")
    return word


def _event_time_order(text: str, zone: tzinfo) -> bool:
    if boolean(text, zone):
        raise ValueError(
            "the first snapshot cannot be read in order of event time: a Python data source does not learn which "
            "column carries the watermark. Leave the option out, and give withWatermark a delay that covers the "
            "ages of the files"
        )
    return False


_SHARED = {option.name: option for option in READ_OPTIONS}

STREAM_READ_OPTIONS: tuple[Option, ...] = (
    Option("path", "text", None, "the table's folder or URL", "path", text_as_it_is),
    Option(
        "startingVersion", "version", None, f"begin with this version and read no snapshot; {LATEST}: what comes",
        "starting_version", _starting_version,
    ),
    Option(
        "startingTimestamp", "timestamp", None, "begin with the first version at or after this moment",
        "starting_timestamp", _SHARED["startingTimestamp"].parse, condition=TIMESTAMP_INVALID.name,
    ),
    Option(
        "maxFilesPerTrigger", "number", str(DEFAULT_MAX_FILES), "new files a batch reads at most",
        "max_files", _files,
    ),
    Option(
        "maxBytesPerTrigger", "size", None, "about how much a batch reads; one file at least",
        "max_bytes", _bytes,
    ),
    Option("ignoreDeletes", "boolean", "false", "pass over commits that only delete", "ignore_deletes", boolean),
    Option(
        "ignoreChanges", "boolean", "false", "read rewritten files again, so rows may come twice",
        "ignore_changes", boolean,
    ),
    Option(
        "ignoreFileDeletion", "boolean", "false", "older name of ignoreDeletes and ignoreChanges together",
        "ignore_file_deletion", boolean,
    ),
    Option(
        "skipChangeCommits", "boolean", "false", "pass over commits that delete or change rows",
        "skip_change_commits", boolean,
    ),
    Option(
        "excludeRegex", "regular expression", None, "do not read files whose path matches",
        "exclude_regex", _regex, condition=REGEX_OPT_SYNTAX_ERROR.name,
    ),
    Option(
        "failOnDataLoss", "boolean", "true", "false: pass over commits that are missing from the log",
        "fail_on_data_loss", boolean,
    ),
    Option(
        "readChangeFeed", "boolean", "false", "read changes, the first snapshot as inserts",
        "change_feed", boolean, aliases=("readChangeData",),
    ),
    _SHARED["net"],
    _SHARED["keys"],
    Option(
        "schemaTrackingLocation", "text", None, "a folder below the checkpoint: follow renamed and dropped columns",
        "schema_tracking_location", text_as_it_is, aliases=("schemaLocation",),
    ),
    Option(
        "streamingSourceTrackingId", "text", None, "tells apart two sources that read one table",
        "source_tracking_id", text_as_it_is,
    ),
    Option(
        "allowSourceColumnRename", "text", None, f"{ALWAYS}, or the version with the rename",
        "allow_column_rename", _agreement,
    ),
    Option(
        "allowSourceColumnDrop", "text", None, f"{ALWAYS}, or the version with the drop",
        "allow_column_drop", _agreement,
    ),
    Option(
        "allowSourceColumnTypeChange", "text", None, f"{ALWAYS}, or the version with the wider type",
        "allow_type_change", _agreement,
    ),
    Option(
        "withEventTimeOrder", "boolean", "false", "only false: not offered",
        "event_time_order", _event_time_order,
    ),
    _SHARED["columns"],
    _SHARED["metadataColumns"],
    _SHARED["maxPartitionBytes"],
    _SHARED["timeZone"],
)  # fmt: skip

_ELSEWHERE = {
    name: f"a stream has no end: {name} goes with a batch read of changes"
    for name in ("endingVersion", "endingTimestamp")
}
STREAM_READ = OptionSet(
    "stream", STREAM_READ_OPTIONS, refused={name.lower(): hint for name, hint in _ELSEWHERE.items()}
)


def parse_stream_read_options(
    options: Mapping[str, Any], session_time_zone: str = "UTC"
) -> StreamReadOptions:
    """Parse and check the options of a streaming read.

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
    travels = [name for name in options if name.lower() in ("versionasof", "timestampasof")]
    if travels:
        raise UNSUPPORTED_TIME_TRAVEL_OF_STREAM(travels=travels[0])
    given = STREAM_READ.parse(options, session_time_zone)
    if not given.values.get("path", "").strip():
        raise PATH_MISSING()
    given.values.pop("event_time_order", None)
    check_net(given.texts)
    parsed = StreamReadOptions(storage_options=given.storage_options, facts=given.facts, **given.values)
    _check_combination(parsed)
    return parsed


def _check_combination(options: StreamReadOptions) -> None:
    if options.starting_version is not None and options.starting_timestamp is not None:
        raise STARTING_VERSION_AND_TIMESTAMP_BOTH_SET()
    if options.schema_tracking_location is not None and not options.fail_on_data_loss:
        raise InvalidOptionError(
            "'schemaTrackingLocation' needs every commit, so it cannot go with failOnDataLoss=false"
        )
    if options.net is not None and not options.change_feed:
        raise InvalidOptionError("option 'net' needs readChangeFeed=true")
    if options.change_feed and options.metadata_columns:
        raise InvalidOptionError("'metadataColumns' cannot go with readChangeFeed=true")
    if options.ignore_file_deletion:
        DEPRECATED_OPTION.log(name="ignoreFileDeletion", use="ignoreDeletes, skipChangeCommits")
