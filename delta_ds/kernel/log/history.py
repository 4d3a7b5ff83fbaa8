"""Commit history: who did what when, and the version at a timestamp.

Source: PROTOCOL.md, "Commit Provenance Information" and "In-Commit Timestamps"; protocol-checklist COM-R-12, ICT-*.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import Any, TypeGuard

from delta_ds.conditions.protocol import (
    MISSING_COMMIT_INFO,
    MISSING_COMMIT_TIMESTAMP,
    TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION,
)
from delta_ds.conditions.record import TIMESTAMP_GREATER_THAN_COMMIT
from delta_ds.exceptions import CorruptLogFileError, InvalidOptionError, TimestampOutOfRangeError
from delta_ds.kernel.base.card import Card, Shown, plain, table_of
from delta_ds.kernel.format.actions import CommitInfo, HistoryEntry
from delta_ds.kernel.format.features import IN_COMMIT_TIMESTAMP
from delta_ds.kernel.format.properties import (
    ICT_ENABLEMENT_TIMESTAMP,
    ICT_ENABLEMENT_VERSION,
)
from delta_ds.kernel.format.table_state import TableState
from delta_ds.kernel.log.commit import Commit, read_commits
from delta_ds.kernel.log.filenames import LogFile
from delta_ds.kernel.log.segment import LogListing, earliest_version
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass

_FIRST, _LAST = (timestamp.replace(tzinfo=timezone.utc) for timestamp in (datetime.min, datetime.max))
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)

# The fields of what commits say of where they were made: the first two as delta-spark reads them.
JOB_FIELDS = ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")
NOTEBOOK_FIELDS = ("notebookId",)
APPLICATION_FIELDS = ("id", "name", "url")


@dataclass(frozen=True, slots=True)
class InCommitTimestamps:
    """The version from which on commits have in-commit timestamps.

    `version` is the first that does, `timestamp` its time in ms; both 0 where it holds from creation.
    """

    version: int
    timestamp: int


def in_commit_timestamps(state: TableState) -> InCommitTimestamps | None:
    """Whether and since when commits have in-commit timestamps; None for file times only."""
    if not state.enabled(IN_COMMIT_TIMESTAMP):
        return None
    try:
        return InCommitTimestamps(
            int(state.properties.get(ICT_ENABLEMENT_VERSION.name, 0)),
            int(state.properties.get(ICT_ENABLEMENT_TIMESTAMP.name, 0)),
        )
    except ValueError as error:
        raise CorruptLogFileError(
            f"the table's delta.inCommitTimestampEnablement properties are not numbers: {error}"
        ) from error


def file_times(listing: LogListing, versions: Sequence[int]) -> dict[int, int]:
    """The times of commits in ms by file modification time, made strictly increasing.

    A commit that is not newer than its predecessor counts as one millisecond after it.
    """
    times: dict[int, int] = {}
    last: int | None = None
    for version in versions:
        time = listing.commits[version].status.modified_ms
        last = time if last is None or time > last else last + 1
        times[version] = last
    return times


def read_commit_info(storage: Storage, file: LogFile) -> CommitInfo:
    """The `commitInfo` of a commit; empty where it has none."""
    return read_commits(storage, [file])[0].info


def in_commit_time(storage: Storage, file: LogFile) -> int:
    """The in-commit timestamp of a commit, ms.

    Raises
    ------
    CorruptLogFileError
        The commit has none although the table demands it (ICT-R-04).
    """
    info = read_commit_info(storage, file)
    time = info.get("inCommitTimestamp")
    if not _is_number(time):
        missing = MISSING_COMMIT_TIMESTAMP if info else MISSING_COMMIT_INFO
        raise missing(version=file.version, table=storage.url)
    return time


def reachable_versions(listing: LogListing) -> list[int]:
    """The versions with a commit file that can still be rebuilt, ascending."""
    first = earliest_version(listing)
    return sorted(v for v in listing.commits if v >= first)


def version_at(storage: Storage, listing: LogListing, state: TableState, timestamp: int) -> int:
    """The newest version that was committed at or before a timestamp.

    Parameters
    ----------
    listing
        Of the whole log.
    state
        The latest version: says whether in-commit timestamps count.
    timestamp
        Milliseconds since 1970 in UTC.

    Raises
    ------
    TimestampOutOfRangeError
        Before the first or after the last commit, with the condition delta-spark uses.
    """
    versions = reachable_versions(listing)
    inside = in_commit_timestamps(state)
    if inside is not None and timestamp >= inside.timestamp:
        return _search_in_commit(storage, listing, versions, inside, timestamp)
    times = file_times(listing, [v for v in versions if inside is None or v < inside.version])
    if not times:
        first = in_commit_time(storage, listing.commits[versions[0]])
        raise _too_early(storage, timestamp, first)
    return _newest_at(storage, times, timestamp, open_end=inside is not None)


def _search_in_commit(
    storage: Storage, listing: LogListing, versions: list[int], inside: InCommitTimestamps, timestamp: int
) -> int:
    candidates = [v for v in versions if v >= inside.version]
    if not candidates:
        raise CorruptLogFileError(
            f"{storage.url} has in-commit timestamps since version {inside.version}, as its properties say, but its "
            f"log ends with version {versions[-1]}: the properties delta.inCommitTimestampEnablement* are wrong"
        )
    last = in_commit_time(storage, listing.commits[candidates[-1]])
    if timestamp > last:
        raise too_late(storage, timestamp, last)
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if in_commit_time(storage, listing.commits[candidates[middle]]) <= timestamp:
            low = middle
        else:
            high = middle - 1
    found = in_commit_time(storage, listing.commits[candidates[low]])
    if found > timestamp:
        raise _too_early(storage, timestamp, found)
    return candidates[low]


def _newest_at(storage: Storage, times: Mapping[int, int], timestamp: int, *, open_end: bool) -> int:
    at_or_before = [v for v, time in times.items() if time <= timestamp]
    if not at_or_before:
        raise _too_early(storage, timestamp, next(iter(times.values())))
    newest = at_or_before[-1]
    last = max(times)
    if newest == last and timestamp > times[last] and not open_end:
        raise too_late(storage, timestamp, times[last])
    return newest


def milliseconds(timestamp: datetime | int) -> int:
    """The time of the log, ms since 1970, that an aware datetime falls into; seconds as floats would round it.

    Raises
    ------
    InvalidOptionError
        The datetime has no time zone.
    """
    if not isinstance(timestamp, datetime):
        return timestamp
    if timestamp.tzinfo is None:
        raise InvalidOptionError(
            f"the timestamp {timestamp} has no time zone; use an aware datetime, e.g. with tzinfo=timezone.utc"
        )
    return (timestamp - _EPOCH) // _MILLISECOND


def datetime_of(timestamp: int) -> datetime:
    """A time of the log, ms since 1970, as an aware datetime; the nearest one that there is.

    Logs hold any number, and calendars end: a commit of a year that has no date must not hide the others.
    """
    first, last = milliseconds(_FIRST), milliseconds(_LAST)
    return _EPOCH + min(max(timestamp, first), last) * _MILLISECOND


def as_text(timestamp: int) -> str:
    """A timestamp in ms as people read it, UTC."""
    return datetime_of(timestamp).isoformat(" ", "milliseconds").removesuffix("+00:00") + " UTC"


def _too_early(storage: Storage, timestamp: int, first: int) -> TimestampOutOfRangeError:
    return TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION(
        userTimestamp=as_text(timestamp),
        table=storage.url,
        commitTs=as_text(first),
        timestampString=as_text(first),
    )


def too_late(storage: Storage, timestamp: int, last: int) -> TimestampOutOfRangeError:
    """The error for a moment after the last commit."""
    return TIMESTAMP_GREATER_THAN_COMMIT(
        providedTimestamp=as_text(timestamp),
        table=storage.url,
        lastCommitTimestamp=as_text(last),
        maximumTimestamp=as_text(last),
    )


def commit_times(
    storage: Storage, listing: LogListing, state: TableState, versions: Sequence[int]
) -> dict[int, int]:
    """The commit time in ms of each of some versions: in-commit where that is enabled, else by file."""
    inside = in_commit_timestamps(state)
    times = file_times(listing, reachable_versions(listing))
    for version in versions:
        if inside is not None and version >= inside.version:
            times[version] = in_commit_time(storage, listing.commits[version])
        elif version not in times:
            times[version] = listing.commits[version].status.modified_ms
    return {version: times[version] for version in versions}


class History(list[HistoryEntry], Shown):
    """The commits of a table, newest first: a list of dictionaries with the keys of `DESCRIBE HISTORY`.

    Examples
    --------
    >>> from delta_ds import DeltaLog
    >>> commits = DeltaLog("/data/orders").history()
    >>> len(commits), commits[0]["version"], commits[0]["operation"]
    (2, 1, 'WRITE')
    """

    def __str__(self) -> str:
        return self._card().text()

    def _card(self) -> Card:
        columns = (
            "version", "timestamp (UTC)", "operation", "parameters", "metrics", "user metadata", "made by",
        )  # fmt: skip
        return Card(f"History, {len(self):,} commits", (), (table_of(columns, self, _history_row),))


def _history_row(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    moment = entry.get("timestamp")
    all_metrics = entry.get("operationMetrics") or {}
    metrics = {k: v for k, v in all_metrics.items() if v != "0" and not k.endswith("TimeMs")}
    return (
        str(entry.get("version")),
        f"{moment:%Y-%m-%d %H:%M:%S}" if isinstance(moment, datetime) else moment,
        entry.get("operation"),
        _pairs(entry.get("operationParameters") or {}),
        _pairs(metrics),
        entry.get("userMetadata"),
        made_by(entry),
    )


# What metrics count, by what changed: rows of each kind, then files. The first name that a commit has counts.
_EFFECTS = (
    ("+{} row", ("numTargetRowsInserted", "numOutputRows")),
    ("{} changed", ("numTargetRowsUpdated", "numUpdatedRows")),
    ("-{} row", ("numTargetRowsDeleted", "numDeletedRows")),
    (
        "+{} file",
        ("numTargetFilesAdded", "numAddedFiles", "numFiles", "numRestoredFiles", "numConvertedFiles"),
    ),
    ("-{} file", ("numTargetFilesRemoved", "numRemovedFiles", "numDeletedFiles")),
)


def effect_of(entry: Mapping[str, Any]) -> str:
    """What a commit did to rows and files, by its metrics, in few words; empty where they do not tell.

    Parameters
    ----------
    entry
        Of a history.

    >>> effect_of({"operationMetrics": {"numFiles": "2", "numOutputRows": "60"}})
    '+60 rows, +2 files'
    """
    metrics = entry.get("operationMetrics") or {}
    told = []
    for text, names in _EFFECTS:
        count = next((metrics[name] for name in names if name in metrics), "0")
        if str(count).isdecimal() and int(count):
            several = "" if int(count) == 1 or text.endswith("changed") else "s"
            told.append(f"{text.format(count)}{several}")
    return ", ".join(told)


def made_by(entry: Mapping[str, Any]) -> str:
    """Who and what made a commit, as far as it says so: user, job, notebook, Spark application and its address.

    Parameters
    ----------
    entry
        Of a history.
    """
    job, application = (entry.get(name) or {} for name in ("job", "application"))
    names = [job.get("jobId"), job.get("jobName"), job.get("jobRunId")]
    known = {
        "": entry.get("userName"),
        # Without an id it is the application, which is told below.
        "job ": " ".join(filter(None, names)) if any(names[::2]) or not application else None,
        "notebook ": (entry.get("notebook") or {}).get("notebookId"),
        "application ": " ".join(filter(None, map(application.get, APPLICATION_FIELDS))),
    }
    return ", ".join(f"{what}{text}" for what, text in known.items() if text)


def _pairs(values: Mapping[str, Any]) -> str:
    shown = list(islice(values.items(), 6))
    more = [f"and {len(values) - 6} more"] if len(values) > 6 else []
    return ", ".join(
        [*(f"{plain(k, 40)}: {plain(v, 40)}" for k, v in shown if v not in (None, "", "[]")), *more]
    )


def describe(storage: Storage, listing: LogListing, state: TableState, limit: int | None) -> History:
    """The history, newest first, one dictionary a commit with the keys of `DESCRIBE HISTORY`."""
    versions = sorted(listing.commits, reverse=True)
    if limit is not None:
        versions = versions[:limit]
    inside = in_commit_timestamps(state)
    times = file_times(listing, sorted(listing.commits))
    commits = read_commits(storage, [listing.commits[v] for v in versions])
    return History(entry(commit.version, time_of(commit, times, inside), commit.info) for commit in commits)


def time_of(commit: Commit, times: Mapping[int, int], inside: InCommitTimestamps | None) -> int:
    """When a commit was made, ms: in-commit where that is enabled and there, else by its file."""
    time = times[commit.version]
    if inside is not None and commit.version >= inside.version:
        within = commit.info.get("inCommitTimestamp")
        time = within if _is_number(within) else time
    return time


def entry(version: int, time: int, info: CommitInfo) -> HistoryEntry:
    """What a commit says of itself, under the keys of `DESCRIBE HISTORY`; then `txnId` and `application`.

    Parameters
    ----------
    time
        When it was made, ms since 1970.
    """
    blind = info.get("isBlindAppend")
    return {
        "version": version,
        "timestamp": datetime_of(time),
        "userId": _text(info.get("userId")),
        "userName": _text(info.get("userName")),
        "operation": _text(info.get("operation")),
        "operationParameters": _text_map(info.get("operationParameters")),
        "job": _text_map(info.get("job")),
        "notebook": _text_map(info.get("notebook")),
        "clusterId": _text(info.get("clusterId")),
        "readVersion": info.get("readVersion") if isinstance(info.get("readVersion"), int) else None,
        "isolationLevel": _text(info.get("isolationLevel")),
        "isBlindAppend": blind if isinstance(blind, bool) else None,
        "operationMetrics": _text_map(info.get("operationMetrics")),
        "userMetadata": _text(info.get("userMetadata")),
        "engineInfo": _text(info.get("engineInfo")),
        "txnId": _text(info.get("txnId")),
        "application": _text_map(info.get("application")),
    }


def _is_number(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _text_map(value: Any) -> dict[str, str | None] | None:
    return {str(k): _text(v) for k, v in value.items()} if isinstance(value, Mapping) else None
