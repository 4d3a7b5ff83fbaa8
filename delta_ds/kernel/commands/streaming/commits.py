"""The commits of a range of versions for a stream, read and parsed together.

Only files of the log from the first version on are listed and read. What was parsed is kept until the stream has
passed it, since a batch is first planned and then read.

The commit files of a growing table: each poll lists only behind the newest known one.

That newest one is looked at again by every poll. If it is another file now, or gone with all that came after it, the
table was deleted, created anew or put back, of which its next versions tell nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from delta_ds.conditions.commands import MISSING_COMMITS_UNEXPECTED_VERSION
from delta_ds.conditions.streaming import STREAMING_TRAILING_COMMIT_MISSING
from delta_ds.events.commands import STREAM_DATA_LOSS
from delta_ds.exceptions import CorruptLogFileError, LogError
from delta_ds.kernel.base.arrow_buffers import field_of
from delta_ds.kernel.commands.changes.commit import file_sizes
from delta_ds.kernel.commands.streaming.offsets import different_table
from delta_ds.kernel.format.actions import CommitInfo, Metadata, Protocol
from delta_ds.kernel.log import history
from delta_ds.kernel.log.commit import Commit, parse_each, read_commits
from delta_ds.kernel.log.file_actions import actions_schema, file_action_fields
from delta_ds.kernel.log.filenames import LogFile, parse_name
from delta_ds.kernel.log.segment import LogFileGoneError, list_log
from delta_ds.kernel.log.snapshot import open_snapshot
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.local import LocalStorage
from delta_ds.kernel.storage.log_store import relative_commit_path
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


# A commit file, and when it was made, ms since 1970: later than the one before.
DatedFile: TypeAlias = tuple[LogFile, int]

# New commits that are looked for one by one; with more a listing is quicker.
_PROBES = 8


class CommitFiles:
    """The commit files from some version on.

    Parameters
    ----------
    storage
        The table's.
    table_id
        `metaData.id` of the table.
    fail_on_loss
        Whether it is an error that the log has lost its end; else it is logged.
    """

    def __init__(self, storage: Storage, table_id: str, *, fail_on_loss: bool) -> None:
        self._storage = storage
        self._table_id = table_id
        self._fail_on_loss = fail_on_loss
        # A folder is listed whole, however late the start; a store begins at a name.
        self._lists_whole = isinstance(storage, LocalStorage)
        self._known: dict[int, DatedFile] = {}
        self._newest: LogFile | None = None

    def latest(self, start: int) -> int:
        """The newest version from `start` on, or `start - 1`."""
        self._look(start if self._newest is None else max(start, self._newest.version + 1))
        return start - 1 if self._newest is None else max(start - 1, self._newest.version)

    def files(self, start: int, end: int | None) -> Iterator[DatedFile]:
        """The commits from `start` on, in order, to before `end`; looks for more only beyond what is known."""
        version = start
        while (known := self._known.get(version)) is not None and (end is None or version < end):
            yield known
            version += 1
        if end is not None and version >= end:
            return
        for found in self._look(version):
            if end is not None and found >= end:
                return
            yield self._known[found]

    def forget_before(self, version: int) -> None:
        """Forget versions before one, which will not be asked for again."""
        # But for its predecessor, which it has to be later than.
        for old in [known for known in self._known if known < version - 1]:
            del self._known[old]

    def _look(self, start: int) -> Sequence[int]:
        """List from a version on; returns the versions found, in order."""
        if self._lists_whole and self._newest is not None and start == self._newest.version + 1:
            probed = self._probed(self._newest)
            if probed is not None:
                return probed
        return self._listed(start)

    def _probed(self, newest: LogFile) -> Sequence[int] | None:
        """The versions after the newest one; None where a listing has to tell."""
        if not _same(newest, self._file(newest.version)):
            return None
        present: list[int] = []
        while (file := self._file(newest.version + 1 + len(present))) is not None:
            if len(present) == _PROBES:
                return None
            before = self._known.get(file.version - 1)
            time = file.status.modified_ms
            self._add(file, time if before is None else max(time, before[1] + 1))
            present.append(file.version)
        return present

    def _file(self, version: int) -> LogFile | None:
        try:
            return parse_name(self._storage.status(relative_commit_path(version)))
        except FileNotFoundError:
            return None

    def _listed(self, start: int) -> Sequence[int]:
        before = max(0, start - 1)
        listing = list_log(self._storage, before)
        newest = self._newest
        if newest is not None and newest.version >= before:
            self._check_same(newest, listing.commits.get(newest.version), listing.latest)
        versions = sorted(version for version in listing.commits if version >= before)
        for version, time in history.file_times(listing, versions).items():
            self._add(listing.commits[version], time)
        return [version for version in versions if version >= start]

    def _add(self, file: LogFile, time: int) -> None:
        self._known[file.version] = (file, time)
        if self._newest is None or file.version >= self._newest.version:
            self._newest = file

    def _check_same(self, before: LogFile, now: LogFile | None, latest: int) -> None:
        """Refuse a log whose newest known commit is not what it was.

        Raises
        ------
        UnsupportedOperationError
            It is the log of another table.
        LogError
            It has lost its end.
        """
        if _same(before, now) or (now is None and latest > before.version):
            # The same; or cleaned up, as are commits that are old.
            return
        table_id = open_snapshot(self._storage).metadata.id
        if table_id != self._table_id:
            raise different_table(self._storage.url, table_id, self._table_id)
        if now is not None:
            # Copied back, for one.
            return
        if self._fail_on_loss:
            raise lost_end(self._storage.url, before.version, latest)
        STREAM_DATA_LOSS.log(table=self._storage.url, first_missing=latest + 1, last_missing=before.version)


def _same(before: LogFile, now: LogFile | None) -> bool:
    if now is None:
        return False
    if before.status.etag is not None and now.status.etag is not None:
        return before.status.etag == now.status.etag
    return (before.status.size, before.status.modified_ms) == (now.status.size, now.status.modified_ms)


def lost_end(table: str, expected: int, seen: int) -> LogError:
    """The error for a log that ends before commits which a stream has seen."""
    return STREAMING_TRAILING_COMMIT_MISSING(table=table, expected=expected, seen=seen)


# Commits of one parse: enough for the price of a parse not to count, few enough for memory.
_CHUNK_COMMITS = 500
_CHUNK_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class StreamedCommit:
    """What a stream needs of one commit.

    Attributes
    ----------
    file_time
        Milliseconds since 1970: of the file, and later than that of the commit before.
    actions
        Rows of `actions_schema(..., changes=True)`: the commit's lines in order, other actions as nulls.
    adds
        The files that it adds with new rows, in order, with the columns of live files.
    sizes
        Their bytes, int64.
    removes
        How many files it takes away with their rows.
    metadata, protocol
        What it changes them to; None for no change.
    info
        `commitInfo`; empty where there is none.
    """

    version: int
    file_time: int
    actions: pa.Table
    adds: pa.Table
    sizes: np.ndarray[Any, Any]
    removes: int
    metadata: Metadata | None
    protocol: Protocol | None
    info: CommitInfo


class CommitReader:
    """Reads the commits of a table from a version on.

    Parameters
    ----------
    storage
        The table's.
    partition_columns
        Physical names.
    table_id
        `metaData.id` of the table.
    fail_on_gap
        Whether a missing commit is an error; else it is passed over, with a line in the log.
    """

    def __init__(
        self, storage: Storage, partition_columns: Sequence[str], table_id: str, *, fail_on_gap: bool
    ) -> None:
        self._storage = storage
        self._columns = tuple(partition_columns)
        self._fail_on_gap = fail_on_gap
        self._files = CommitFiles(storage, table_id, fail_on_loss=fail_on_gap)
        # By version: what was parsed.
        self._kept: dict[int, StreamedCommit] = {}

    def commits(
        self, start: int, end: int | None = None, about: int | None = None
    ) -> Iterator[StreamedCommit]:
        """The commits from `start` on, in order; read while they are asked for.

        Parameters
        ----------
        start
            The first version; nothing before it will be asked for any more.
        end
            The version to stop before; None for all there are.
        about
            How many will be needed, as far as is known: bounds what is read ahead.

        Raises
        ------
        LogError
            A commit is missing, or damaged.
        UnsupportedOperationError
            There is another table now.
        """
        for passed in [known for known in self._kept if known < start]:
            del self._kept[passed]
        self._files.forget_before(start)
        version = start
        while (kept := self._kept.get(version)) is not None and (end is None or version < end):
            yield kept
            version += 1
        size = max(8, min(about or _CHUNK_COMMITS, _CHUNK_COMMITS))
        for chunk in _chunks(self._contiguous(version, end), size):
            for commit in self._parse(chunk):
                self._kept[commit.version] = commit
                yield commit

    def latest(self, start: int) -> int:
        """The newest version from `start` on, or `start - 1`; lists only behind the last known one."""
        return self._files.latest(start)

    def _contiguous(self, start: int, end: int | None) -> Iterator[DatedFile]:
        version = start
        for file, time in self._files.files(start, end):
            if file.version != version:
                self._report_gap(version, file.version)
            yield file, time
            version = file.version + 1

    def _report_gap(self, expected: int, found: int) -> None:
        table = self._storage.url
        if self._fail_on_gap:
            raise MISSING_COMMITS_UNEXPECTED_VERSION(version=expected, table=table, earliest=found)
        STREAM_DATA_LOSS.log(table=table, first_missing=expected, last_missing=found - 1)

    def _parse(self, chunk: Sequence[DatedFile]) -> Iterator[StreamedCommit]:
        try:
            commits = read_commits(self._storage, [file for file, _ in chunk])
        except LogFileGoneError:
            # Cleaned up since it was listed: one by one, up to what is gone or leaving it out.
            if len(chunk) > 1:
                for one in chunk:
                    yield from self._parse([one])
            else:
                self._report_gap(chunk[0][0].version, chunk[0][0].version + 1)
            return
        actions, counts = parse_each(commits, actions_schema(self._columns, changes=True))
        parts = _FileActions(actions, self._columns)
        first = 0
        for (_, time), commit, count in zip(chunk, commits, counts, strict=True):
            commit.check_whole()
            _check_single(commit)
            yield parts.of(commit, time, first, count)
            first += count


class _FileActions:
    """The file actions of many commits, parsed together."""

    def __init__(self, actions: pa.Table, columns: Sequence[str]) -> None:
        import numpy as np

        from delta_ds.kernel.base.arrow_buffers import flags

        self._actions = actions
        adds = data_changing(actions["add"], default=False)
        removes = data_changing(actions["remove"], default=True)
        self._adds = live_columns(actions["add"].filter(adds), columns)
        self._sizes = file_sizes(self._adds["size"])
        # How many of each come before a row.
        self._adds_before, self._removes_before = (
            np.concatenate([[0], np.cumsum(flags(mask))]) for mask in (adds, removes)
        )

    def of(self, commit: Commit, time: int, first: int, count: int) -> StreamedCommit:
        """A commit, which the `count` rows from `first` on are of."""
        end = first + count
        add, after = int(self._adds_before[first]), int(self._adds_before[end])
        return StreamedCommit(
            version=commit.version,
            file_time=time,
            actions=self._actions.slice(first, count),
            adds=self._adds.slice(add, after - add),
            sizes=self._sizes[add:after],
            removes=int(self._removes_before[end] - self._removes_before[first]),
            metadata=commit.metadata,
            protocol=commit.protocol,
            info=commit.info,
        )


def _chunks(files: Iterator[DatedFile], count: int) -> Iterator[list[DatedFile]]:
    """Files in groups of about a number and a size; each is asked for only when its group is."""
    part: list[DatedFile] = []
    size = 0
    for file in files:
        part.append(file)
        size += file[0].status.size
        if len(part) == count or size > _CHUNK_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _check_single(commit: Commit) -> None:
    for kind in ("metaData", "protocol"):
        if len(commit.bodies(kind)) > 1:
            raise CorruptLogFileError(f"{commit.where} holds two {kind} actions")


def live_columns(actions: pa.ChunkedArray, partition_columns: Sequence[str]) -> pa.Table:
    """Structs of file actions as the columns of live files."""
    import pyarrow as pa

    names = [field.name for field in file_action_fields(partition_columns, stats=False)]
    return pa.table({name: field_of(actions, name) for name in names})


def data_changing(actions: pa.ChunkedArray, *, default: bool) -> pa.ChunkedArray:
    """Which actions change data; `default` for those without `dataChange`."""
    import pyarrow.compute as pc

    from delta_ds.kernel.format.expressions.arrays import scalar_of
    from delta_ds.kernel.format.schema.types import BOOLEAN

    # A scalar of pyarrow's own making would import pandas here.
    marked = pc.fill_null(pc.struct_field(actions, "dataChange"), scalar_of(default, BOOLEAN))
    return pc.and_(pc.is_valid(actions), marked)


def in_commit_time(commit: StreamedCommit) -> int | None:
    """The time that the commit itself carries, ms; None for none."""
    time = commit.info.get("inCommitTimestamp")
    return time if isinstance(time, int) and not isinstance(time, bool) else None
