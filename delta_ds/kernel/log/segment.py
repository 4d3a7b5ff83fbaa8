"""Log segments: the newest complete checkpoint and every commit after it, which make up a version.

Source: PROTOCOL.md, "Checkpoints", "Log Compaction Files", "Action Reconciliation".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TypeVar

from delta_ds.conditions.protocol import LOG_FILE_NOT_FOUND
from delta_ds.events.log import CHECKPOINT_PASSED_OVER, CHECKPOINT_READ_ANEW
from delta_ds.exceptions import (
    LogError,
    NotADeltaTableError,
    TruncatedLogError,
    VersionNotFoundError,
    VersionsNotContiguousError,
)
from delta_ds.kernel.log.checkpoint_files import CheckpointReplacedError, UnreadableCheckpointError
from delta_ds.kernel.log.filenames import (
    LOG_DIRECTORY,
    Kind,
    LogFile,
    parse_name,
    read_hint,
    version_prefix,
)
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.log_store import relative_commit_path
from delta_ds.records import dataclass, field

_T = TypeVar("_T")

# Commits looked for one by one where a listing has gaps; a log that lacks more than a few has lost them.
_LOOKED_FOR = 32
# A checkpoint that is written again all the time is listed as another one each time.
_MOST_REJECTED = 32


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint: its one file, or all parts in order."""

    version: int
    files: tuple[LogFile, ...]

    @property
    def rank(self) -> tuple[int, int, int, str]:
        """Newest first; at one version UUID-named over multi-part over classic (CKP-R-04)."""
        kind = 2 if self.files[0].unique else 1 if len(self.files) > 1 else 0
        return self.version, kind, len(self.files), self.files[0].unique


@dataclass(frozen=True, slots=True)
class LogListing:
    """The files of the log from some version on, as one listing saw them."""

    table: str
    commits: Mapping[int, LogFile]
    checkpoints: tuple[Checkpoint, ...]
    compactions: tuple[LogFile, ...]
    checksums: Mapping[int, LogFile]
    from_start: bool

    @property
    def latest(self) -> int:
        """The newest version there is a commit or complete checkpoint of; -1 for none."""
        newest = [*self.commits, *(c.version for c in self.checkpoints)]
        return max(newest, default=-1)


@dataclass(frozen=True, slots=True)
class LogSegment:
    """The files that make up one version.

    Attributes
    ----------
    commits
        What follows the checkpoint, oldest first, compactions in place of the commits they cover.
    last_commit
        The commit file of the version itself: its time is the version's.
    """

    version: int
    checkpoint: Checkpoint | None
    commits: tuple[LogFile, ...]
    last_commit: LogFile
    checksum: LogFile | None = None

    @property
    def files(self) -> tuple[LogFile, ...]:
        """Every file to read, checkpoint first."""
        return (*(self.checkpoint.files if self.checkpoint else ()), *self.commits)


@dataclass(slots=True)
class _Gathered:
    commits: dict[int, LogFile] = field(default_factory=dict)
    checksums: dict[int, LogFile] = field(default_factory=dict)
    compactions: list[LogFile] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    parts: dict[tuple[int, int], dict[int, LogFile]] = field(default_factory=dict)


def list_log(storage: Storage, start: int = 0) -> LogListing:
    """The log files from version `start` on.

    Raises
    ------
    NotADeltaTableError
        There is no `_delta_log` directory.
    """
    try:
        statuses = storage.list_from(LOG_DIRECTORY, version_prefix(start))
    except (FileNotFoundError, NotADirectoryError):
        raise not_a_table(storage) from None
    got = _Gathered()
    for status in statuses:
        file = parse_name(status)
        if file is not None:
            _gather(got, file)
    for (version, parts), found in got.parts.items():
        if len(found) == parts:
            got.checkpoints.append(Checkpoint(version, tuple(found[i] for i in range(1, parts + 1))))
    got.checkpoints.sort(key=lambda c: c.rank)
    _fill_gaps(storage, got, start)
    return LogListing(
        storage.url,
        got.commits,
        tuple(got.checkpoints),
        tuple(got.compactions),
        got.checksums,
        from_start=start == 0,
    )


def _fill_gaps(storage: Storage, got: _Gathered, start: int) -> None:
    """Look for commits that should be there and were not listed.

    A folder's listing is no snapshot of it: of two commits made meanwhile it may show the second one only.
    """
    first = start
    if not start and got.checkpoints:
        first = min(got.commits, default=0)
    newest = [*got.commits, *(checkpoint.version for checkpoint in got.checkpoints)]
    last = max(newest, default=start if start else -1)
    # Names come from whoever can write to the folder: nothing may grow with the number that one holds.
    missing = (version for version in range(first, last + 1) if version not in got.commits)
    for version in list(itertools.islice(missing, _LOOKED_FOR)):
        try:
            status = storage.status(relative_commit_path(version))
        except FileNotFoundError:
            continue
        found = parse_name(status)
        if found is not None:
            _gather(got, found)


def _gather(got: _Gathered, file: LogFile) -> None:
    if file.kind is Kind.COMMIT:
        got.commits[file.version] = file
    elif file.kind is Kind.CHECKSUM:
        if file.status.is_file:
            got.checksums[file.version] = file
    elif file.status.size == 0 or not file.status.is_file:
        # A torn checkpoint or compaction, or none at all: both only repeat what the commits say.
        return
    elif file.kind is Kind.COMPACTION:
        got.compactions.append(file)
    elif file.parts:
        if 1 <= file.part <= file.parts:
            got.parts.setdefault((file.version, file.parts), {})[file.part] = file
    else:
        got.checkpoints.append(Checkpoint(file.version, (file,)))


class LogFileGoneError(LogError):
    """A listed file of the log was deleted before it could be read, as log clean-up does."""

    default_condition = LOG_FILE_NOT_FOUND.name


def read_log_files(storage: Storage, files: Sequence[LogFile]) -> list[bytes]:
    """The contents of listed files of the log, in order.

    Raises
    ------
    LogFileGoneError
        One is not there any more.
    CorruptLogFileError
        A commit is shorter than it was listed.
    StorageError
        Of one comes less than there is. Where the rest is missing from the end of a line on, nothing else would tell.
    """
    try:
        contents = storage.read_many([file.path for file in files])
        return [_whole(storage, file, content) for file, content in zip(files, contents, strict=True)]
    except FileNotFoundError as error:
        raise LogFileGoneError(
            f"a file of the transaction log of {storage.url} was deleted while it was read: {error}. "
            "Log clean-up or somebody else removed it; read again, or a newer version"
        ) from error


def _whole(storage: Storage, file: LogFile, found: bytes) -> bytes:
    listed = file.status.size
    if len(found) >= listed:
        return found
    found = storage.read_whole(file.path)
    # A compaction, or a checkpoint, may be a shorter one by now.
    if len(found) >= listed or file.kind is not Kind.COMMIT:
        return found
    from delta_ds.conditions.record import LOG_FILE_CUT_SHORT

    raise LOG_FILE_CUT_SHORT(path=file.path, table=storage.url, found=len(found), listed=listed)


def not_a_table(storage: Storage) -> NotADeltaTableError:
    """The error for a path without a log."""
    advice = _partition_advice(storage) or (
        "Check the path; a folder of plain Parquet files is read with format('parquet')"
    )
    return NotADeltaTableError(
        f"Delta table {storage.url} doesn't exist. Path does not exist or is not a Delta table: there "
        f"is no _delta_log with a commit or checkpoint. {advice}",
        parameters={"tableName": f"`{storage.url}`"},
    )


def no_rows(storage: Storage, error: NotADeltaTableError | None = None) -> NotADeltaTableError:
    """The error where rows are wanted from a path without a table: of a folder without a log, or of nothing at all.

    Parameters
    ----------
    error
        What was said of the path; None for what `not_a_table` says.
    """
    if storage.exists(""):
        return error or not_a_table(storage)
    from delta_ds.conditions.catalog import PATH_NOT_FOUND

    return PATH_NOT_FOUND(path=storage.url, advice=_partition_advice(storage) or "Check the path")


def _partition_advice(storage: Storage) -> str:
    """What to do where a path looks like that of a partition; empty where it does not."""
    folder = storage.url.rstrip("/").rpartition("/")[2]
    column, equals, _ = folder.partition("=")
    said = f"{folder!r} looks like a partition: load the table itself, and filter by {column}"
    return said if equals else ""


def find_segment(
    storage: Storage, version: int | None = None, rejected: Iterable[Checkpoint] = ()
) -> LogSegment:
    """List the log and choose the files of a version.

    Parameters
    ----------
    version
        The wanted version; None for the latest.
    rejected
        Checkpoints that turned out unreadable and must not be chosen again.

    Raises
    ------
    NotADeltaTableError, VersionNotFoundError, VersionsNotContiguousError, TruncatedLogError, LogError
        As their names say; each names the table and version.
    """
    rejected = tuple(rejected)
    hint = None if rejected else read_hint(storage)
    if hint is not None and (version is None or hint <= version):
        listing = list_log(storage, hint)
        if any(c.version >= hint and (version is None or c.version <= version) for c in listing.checkpoints):
            return choose_segment(listing, version, storage=storage)
    return choose_segment(list_log(storage), version, rejected)


def with_fallback(
    storage: Storage, segment: LogSegment, action: Callable[[LogSegment], _T]
) -> tuple[LogSegment, _T]:
    """Do something with a segment, and with another one of its version if that fails for a file of the log.

    An unreadable checkpoint is passed over for an older one, as long as the log reaches back to one or to
    version 0; one that was written again meanwhile is listed as another one. A file that vanished between listing and
    reading is looked for once more: clean-up may have put a checkpoint in its place.

    Returns
    -------
    LogSegment, answer
        The segment that served, and what the action answered.

    Raises
    ------
    LogError
        No files of the log serve; also what the action raises.
    """
    rejected: list[Checkpoint] = []
    problem: LogError | None = None
    while True:
        try:
            return segment, action(segment)
        except UnreadableCheckpointError as error:
            if segment.checkpoint is None:
                raise
            if isinstance(error, CheckpointReplacedError):
                CHECKPOINT_READ_ANEW.log(table=storage.url, reason=error)
            else:
                CHECKPOINT_PASSED_OVER.log(
                    table=storage.url, version=segment.checkpoint.version, reason=error
                )
            problem = problem or error
            rejected.append(segment.checkpoint)
            if len(rejected) > _MOST_REJECTED:
                raise
        except LogFileGoneError as error:
            if isinstance(problem, LogFileGoneError):
                raise
            problem = error
        try:
            segment = find_segment(storage, segment.version, rejected)
        except (LogError, VersionNotFoundError):
            raise problem from None


def choose_segment(
    listing: LogListing,
    version: int | None = None,
    rejected: Sequence[Checkpoint] = (),
    storage: Storage | None = None,
) -> LogSegment:
    """The files of a version out of a listing; see `find_segment`.

    Parameters
    ----------
    storage
        Where to look for what a listing of the newest versions does not show; None: what it shows is all.
    """
    latest = listing.latest
    if latest < 0:
        raise NotADeltaTableError(
            f"Delta table {listing.table} doesn't exist. Path is not a Delta table: its _delta_log holds no "
            "commit and no checkpoint",
            parameters={"tableName": f"`{listing.table}`"},
        )
    wanted = latest if version is None else version
    if wanted > latest or wanted < 0:
        raise version_not_found(listing if storage is None else list_log(storage), wanted)
    usable = [c for c in listing.checkpoints if c.version <= wanted and c not in rejected]
    checkpoint = usable[-1] if usable else None
    first = checkpoint.version + 1 if checkpoint else 0
    if checkpoint is None and 0 not in listing.commits:
        raise _without_start(listing, wanted)
    _check_contiguous(listing, first, wanted)
    newest = [c for c in listing.checkpoints if c not in rejected]
    # A table whose newest version cannot be rebuilt is refused as a whole, as delta-spark does.
    _check_contiguous(listing, newest[-1].version + 1 if newest else 0, latest)
    last_commit = listing.commits.get(wanted)
    if last_commit is None:
        raise LOG_FILE_NOT_FOUND(
            wanted=wanted, table=listing.table, checkpoint=checkpoint.version if checkpoint else None
        )
    commits = _cover(listing, first, wanted)
    return LogSegment(wanted, checkpoint, commits, last_commit, listing.checksums.get(wanted))


def _check_contiguous(listing: LogListing, first: int, last: int) -> None:
    version = first_missing(listing.commits, first, last)
    if version is not None:
        after = min((v for v in listing.commits if v > version), default=last)
        raise VersionsNotContiguousError(
            f"Versions ({version - 1}, {after}) are not contiguous. A gap in the delta log between versions "
            f"{version - 1} and {after} was detected while trying to load version {last} of {listing.table}. Restore "
            "the missing commit files; a file that is none of the "
            f"table's and only looks like version {after} is in the way too, and can be moved elsewhere"
        )


def first_missing(commits: Container[int], first: int, last: int) -> int | None:
    """The first version of a range, both ends inclusive, without a commit file; None where all are there."""
    return next((version for version in range(first, last + 1) if version not in commits), None)


def _without_start(listing: LogListing, wanted: int) -> LogError | VersionNotFoundError:
    if listing.checkpoints and wanted < listing.checkpoints[0].version:
        return version_not_found(listing, wanted)
    return TruncatedLogError(
        f"Unable to reconstruct version {wanted} of {listing.table}: the transaction log was truncated "
        f"(its first commit is {min(listing.commits, default='missing')}) and no complete checkpoint up to that "
        "version is left"
    )


def version_not_found(listing: LogListing, wanted: int) -> VersionNotFoundError:
    """The error for a version that is cleaned up or not yet there, with the range that is."""
    return VersionNotFoundError(
        f"Cannot time travel Delta table to version {wanted}. "
        f"Available versions: [{earliest_version(listing)}, {listing.latest}] of {listing.table}.",
        parameters={
            "version": wanted,
            "userVersion": wanted,
            "earliest": earliest_version(listing),
            "latest": listing.latest,
        },
    )


def earliest_version(listing: LogListing) -> int:
    """The oldest version that can be rebuilt: 0, or that of the oldest complete checkpoint."""
    if 0 in listing.commits or not listing.checkpoints:
        return min(listing.commits, default=0)
    return listing.checkpoints[0].version


def _cover(listing: LogListing, first: int, last: int) -> tuple[LogFile, ...]:
    """The commits first..last, with the longest compactions from the left that fit in between."""
    longest: dict[int, LogFile] = {}
    for file in listing.compactions:
        if file.version >= first and file.version < file.end <= last:
            known = longest.get(file.version)
            if known is None or file.end > known.end:
                longest[file.version] = file
    out = []
    at = first
    while at <= last:
        file = longest.get(at) or listing.commits[at]
        out.append(file)
        at = file.end + 1
    return tuple(out)
