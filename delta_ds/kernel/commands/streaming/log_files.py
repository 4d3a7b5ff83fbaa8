"""The commit files of a growing table: each poll lists only behind the newest known one.

That newest one is looked at again by every poll. If it is another file now, or gone with all that came after it, the
table was deleted, created anew or put back, of which its next versions tell nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from delta_ds.conditions.streaming import STREAMING_TRAILING_COMMIT_MISSING
from delta_ds.events.streaming import STREAM_DATA_LOSS
from delta_ds.exceptions import LogError
from delta_ds.kernel.commands.streaming.offsets import different_table
from delta_ds.kernel.log import history
from delta_ds.kernel.log.filenames import LogFile, parse_name
from delta_ds.kernel.log.segment import list_log
from delta_ds.kernel.log.snapshot import open_snapshot
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.local import LocalStorage
from delta_ds.kernel.storage.log_store import relative_commit_path

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
            found = self._probed(self._newest)
            if found is not None:
                return found
        return self._listed(start)

    def _probed(self, newest: LogFile) -> Sequence[int] | None:
        """The versions after the newest one; None where a listing has to tell."""
        if not _same(newest, self._file(newest.version)):
            return None
        found: list[int] = []
        while (file := self._file(newest.version + 1 + len(found))) is not None:
            if len(found) == _PROBES:
                return None
            before = self._known.get(file.version - 1)
            time = file.status.modified_ms
            self._add(file, time if before is None else max(time, before[1] + 1))
            found.append(file.version)
        return found

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
