"""The storage of a catalog-managed table: its log as if all ratified commits were published, and no others.

Whoever lists the log asks the coordinator first, once: its commits stand in the listing under their published names,
and what lies above the latest ratified version is hidden. What is ratified never changes, so that it is remembered; a
copy in another process knows it, too, and reads what was listed without asking.

Source: PROTOCOL.md, "Reading Catalog-managed Tables"; protocol-checklist CAT-R-02.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, BinaryIO

from delta_ds.conditions.coordination import (
    COMMIT_PAST_COORDINATOR,
    COORDINATOR_LOCATION_MISMATCH,
    MAINTENANCE_NOT_ALLOWED,
    PUBLISHED_COMMIT_MISSING,
)
from delta_ds.kernel.storage.coordination.coordinator import (
    CommitCoordinator,
    ManagedTable,
    ProposedCommit,
    RatifiedCommits,
    coordinator_for,
)
from delta_ds.kernel.storage.coordination.log_store import CoordinatedLogStore
from delta_ds.kernel.storage.coordination.sql import canonical_location
from delta_ds.kernel.storage.filesystem import FileStatus, OpenedFile, Storage
from delta_ds.kernel.storage.listing import Entry
from delta_ds.kernel.storage.log_store import relative_commit_path
from delta_ds.kernel.storage.maintenance import Maintenance
from delta_ds.kernel.storage.store_options import CATALOG_TABLE, store_options, without_coordinator
from delta_ds.kernel.storage.uri import Address

if TYPE_CHECKING:
    import pyarrow as pa

_LOG = "_delta_log"
STAGED = f"{_LOG}/_staged_commits"
_COMMIT = re.compile(r"_delta_log/(\d{20})\.json")
_VERSIONS = re.compile(r"(\d{20})\.(?:(\d{20})\.compacted\.json$)?")
# Commits that are remembered besides those that are not published: a handle compares what it saw with what is listed.
_REMEMBERED = 1000
_BEFORE_EXPIRY_MS = 120_000
OpenStorage = Callable[[Address, Mapping[str, Any]], Storage]


class CoordinatedStorage(Storage):
    """A table whose commits a coordinator ratifies, if it says so.

    Parameters
    ----------
    address, options
        Of the table, with the options that name the coordinator.
    open_plain
        Opens the table's own storage.
    """

    def __init__(self, address: Address, options: Mapping[str, Any], open_plain: OpenStorage) -> None:
        super().__init__(address, options)
        self._open_plain = open_plain
        self._coordinator: CommitCoordinator | None = None
        self._table: ManagedTable | None = None
        self._plain: Storage | None = None
        self._commits: dict[int, ProposedCommit] = {}
        self._latest = -1
        self._published = -1
        self._at: RatifiedCommits | None = None
        self._lock = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (self.address, self.options, self._open_plain, self.known())

    def known(self) -> tuple[Any, ...]:
        """What it has learned of the table so far, for `restored`."""
        with self._lock:
            unpublished = {v: c for v, c in self._commits.items() if v > self._published}
            return self._table, unpublished, self._latest, self._published, self._at

    # --- the coordinator

    @property
    def coordinator(self) -> CommitCoordinator:
        """The coordinator that the options name."""
        if self._coordinator is None:
            self._coordinator = coordinator_for(self.options)
        return self._coordinator

    @property
    def table(self) -> ManagedTable:
        """The table as the coordinator knows it; asked once, and again when what it gave has expired.

        Raises
        ------
        StorageError
            The coordinator does not know it, or does not answer.
        InvalidOptionError
            It lies elsewhere.
        """
        with self._lock:
            known = self._table
            if known is None or (
                known.expires_ms is not None and known.expires_ms - _BEFORE_EXPIRY_MS < time.time() * 1000
            ):
                self._table, self._plain = self._resolve(), None
            assert self._table is not None
            return self._table

    def _resolve(self) -> ManagedTable:
        name = store_options(self.options).get(CATALOG_TABLE)
        if name is None:
            return self.coordinator.resolve_location(self.url)
        table = self.coordinator.resolve(name)
        if canonical_location(table.location) != canonical_location(self.url):
            raise COORDINATOR_LOCATION_MISMATCH(
                table=table.name,
                coordinator=self.coordinator.describe(),
                location=table.location,
                path=self.url,
            )
        return table

    @property
    def managed(self) -> bool:
        return self.table.managed

    @property
    def plain(self) -> Storage:
        """The table's own storage, on which commits are staged and published."""
        table = self.table
        with self._lock:
            if self._plain is None:
                options = {**table.storage_options, **without_coordinator(self.options)}
                self._plain = self._open_plain(self.address, options)
            return self._plain

    def check_allowed(self, operation: Maintenance, name: str) -> None:
        if self.managed and operation not in self.coordinator.allows(self.table):
            raise MAINTENANCE_NOT_ALLOWED(
                operation=name,
                table=self.url,
                coordinator=self.coordinator.describe(),
                permission=operation.value,
            )

    def allows(self, operation: Maintenance) -> bool:
        return not self.managed or operation in self.coordinator.allows(self.table)

    def new_table_properties(self) -> Mapping[str, str]:
        return self.table.properties if self.managed else {}

    def kept_properties(self, configuration: Mapping[str, str]) -> Mapping[str, str]:
        return self.coordinator.keeps(configuration) if self.managed else {}

    def log_store(self) -> CoordinatedLogStore:
        """Where its commits are published."""
        return CoordinatedLogStore(self)

    def at(self, moment: RatifiedCommits) -> CoordinatedStorage:
        """The same table as it was when the coordinator gave an answer, for reading; it is not asked again."""
        copy = CoordinatedStorage(self.address, self.options, self._open_plain)
        copy._coordinator, copy._table, copy._at = self._coordinator, self.table, moment
        copy.learn(moment)
        return copy

    # --- what is known of the log

    def ask(self, start: int | None = None) -> RatifiedCommits:
        """Ask the coordinator what is ratified, and remember it."""
        if self._at is not None:
            return self._at
        answer = self.coordinator.ratified(self.table, start)
        self.learn(answer, start)
        return answer

    def learn(self, answer: RatifiedCommits, start: int | None = None) -> None:
        """Remember an answer of the coordinator to a question for the commits from `start` on."""
        with self._lock:
            for commit in answer.commits:
                self._commits.setdefault(commit.version, commit)
            self._latest = max(self._latest, answer.latest)
            first = answer.commits[0].version if answer.commits else answer.latest + 1
            if start is None or (answer.commits and first > start):
                self._published = max(self._published, first - 1)
            for old in [v for v in self._commits if v <= min(self._published, self._latest - _REMEMBERED)]:
                del self._commits[old]

    def is_published(self, version: int) -> None:
        """Remember that all commits up to a version are in their places."""
        with self._lock:
            self._published = max(self._published, version)

    def unpublished(self, version: int) -> list[ProposedCommit]:
        """The ratified commits up to a version that may have to be published, in order."""
        with self._lock:
            if any(v not in self._commits for v in range(self._published + 1, version + 1)):
                self.ask()
            return [self._commits[v] for v in sorted(self._commits) if self._published < v <= version]

    def _commit(self, path: str) -> ProposedCommit | None:
        """The ratified commit that a path of the log stands for; None where the log itself has it, or another file.

        Raises
        ------
        FileNotFoundError
            It is the path of a commit that is not ratified.
        """
        named = _COMMIT.fullmatch(path)
        if named is None or not self.managed:
            return None
        version = int(named[1])
        if version <= self._published:
            return None
        if version not in self._commits and version > self.ask().latest:
            # It was neither known nor published, and is not ratified since.
            raise FileNotFoundError(f"{self.describe(path)} does not exist")
        return self._commits.get(version)

    def _as_before(self, status: FileStatus) -> FileStatus:
        """A published commit as it was shown before it was published: whoever compares takes it for the same."""
        named = _COMMIT.fullmatch(status.path)
        commit = self._commits.get(int(named[1])) if named else None
        return status if commit is None else _status(status.path, commit)

    # --- reading

    def list_from(self, directory: str, start: str = "") -> list[FileStatus]:
        if directory != _LOG or not self.managed:
            return self.plain.list_from(directory, start)
        # First the coordinator: what it does not name is published by then, and the listing shows it.
        answer = self.ask()
        try:
            listed = self.plain.list_from(directory, start)
        except FileNotFoundError:
            if answer.latest < 0:
                raise
            listed = []
        found = {s.path: self._as_before(s) for s in listed if _is_within(s.path, answer.latest)}
        for commit in answer.commits:
            path = relative_commit_path(commit.version)
            if path.rpartition("/")[2] >= start:
                found[path] = _status(path, commit)
        self._add_unlisted(found, answer, start)
        return [found[path] for path in sorted(found)]

    def _add_unlisted(self, found: dict[str, FileStatus], answer: RatifiedCommits, start: str) -> None:
        """Add the newest published commits, where a listing lags behind."""
        version = answer.commits[0].version - 1 if answer.commits else answer.latest
        while version >= 0:
            path = relative_commit_path(version)
            if path in found or path.rpartition("/")[2] < start:
                return
            try:
                found[path] = self._as_before(self.plain.status(path))
            except FileNotFoundError:
                raise PUBLISHED_COMMIT_MISSING(
                    table=self.url, coordinator=self.coordinator.describe(), version=version, path=path
                ) from None
            version -= 1

    def _entries_below(self, folder: str, enter: Callable[[str], bool]) -> Iterator[Entry]:
        return self.plain._entries_below(folder, enter)

    def list_below(
        self, folder: str = "", enter: Callable[[str], bool] | None = None
    ) -> Iterator[pa.RecordBatch]:
        return self.plain.list_below(folder, enter)

    def read(self, path: str) -> bytes:
        commit = self._commit(path)
        return self.plain.read(path) if commit is None else self.content(commit)

    def content(self, commit: ProposedCommit) -> bytes:
        """The bytes of a ratified commit: its own, or those of its published copy once the staged file is gone.

        Raises
        ------
        FileNotFoundError
            There is neither.
        """
        if commit.content is not None:
            return commit.content
        try:
            return self.plain.read(f"{STAGED}/{commit.file_name}")
        except FileNotFoundError:
            return self.plain.read(relative_commit_path(commit.version))

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        commits = [self._commit(path) for path in paths]
        plain = [path for path, commit in zip(paths, commits, strict=True) if commit is None]
        contents = iter(self.plain.read_many(plain))
        return [next(contents) if commit is None else self.content(commit) for commit in commits]

    def _read_range(self, path: str, offset: int, length: int) -> bytes:
        commit = self._commit(path)
        if commit is None:
            return self.plain._read_range(path, offset, length)
        return self.content(commit)[offset : offset + length]

    def open(self, path: str) -> BinaryIO | pa.NativeFile:
        commit = self._commit(path)
        if commit is None:
            return self.plain.open(path)
        import io

        return io.BytesIO(self.content(commit))

    def open_known(self, path: str) -> OpenedFile:
        if self._commit(path) is None:
            return self.plain.open_known(path)
        return super().open_known(path)

    def status(self, path: str) -> FileStatus:
        commit = self._commit(path)
        return self._as_before(self.plain.status(path)) if commit is None else _status(path, commit)

    def exists(self, path: str) -> bool:
        try:
            return self._commit(path) is not None or self.plain.exists(path)
        except FileNotFoundError:
            return False

    def resolve(self, log_path: str) -> str:
        return self.plain.resolve(log_path)

    def link_on_the_way(self, folder: str) -> str | None:
        return self.plain.link_on_the_way(folder)

    def place_of(self, log_path: str) -> Address:
        return self.plain.place_of(log_path)

    # --- writing

    def create(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """As of `Storage`; a commit is ratified by the coordinator."""
        named = _COMMIT.fullmatch(path) if self.managed else None
        if named is None:
            self.plain.create(path, data, durable=durable)
        else:
            self.log_store().publish(int(named[1]), data)

    @property
    def creates_exactly(self) -> bool:
        return self.plain.creates_exactly

    def check_create(self) -> None:
        self.plain.check_create()

    def publish_up_to(self, version: int, *, noted: bool = False) -> None:
        if not self.managed:
            return
        if noted:
            stored = self.ask().commits
            with self._lock:
                # What is in its place and still stored has not been noted: that is done again.
                self._published = min([self._published, *(commit.version - 1 for commit in stored[:1])])
        self.log_store().back_fill(version)

    def write(self, path: str, data: bytes) -> None:
        self._check_no_commit(path)
        self.plain.write(path, data)

    def open_output(self, path: str) -> BinaryIO:
        self._check_no_commit(path)
        return self.plain.open_output(path)

    def fsync(self, paths: Sequence[str]) -> None:
        self.plain.fsync(paths)

    def replace_file(self, path: str) -> AbstractContextManager[BinaryIO]:
        self._check_no_commit(path)
        return self.plain.replace_file(path)

    def _check_no_commit(self, path: str) -> None:
        if _COMMIT.fullmatch(path) and self.managed:
            raise COMMIT_PAST_COORDINATOR(table=self.url, path=path)

    def delete(self, paths: Sequence[str]) -> None:
        self.plain.delete(paths)

    def delete_empty_folders(self, paths: Sequence[str]) -> list[str]:
        return self.plain.delete_empty_folders(paths)


def restored(
    address: Address, options: Mapping[str, Any], open_plain: OpenStorage, known: tuple[Any, ...]
) -> CoordinatedStorage:
    """A storage that knows of its table what another one knew."""
    storage = CoordinatedStorage(address, options, open_plain)
    storage._table, storage._commits, storage._latest, storage._published, storage._at = known
    return storage


def _is_within(path: str, latest: int) -> bool:
    """Whether a file of the log belongs to versions up to the latest one."""
    versions = _VERSIONS.match(path.rpartition("/")[2])
    return versions is None or int(versions[2] or versions[1]) <= latest


def _status(path: str, commit: ProposedCommit) -> FileStatus:
    # The same before and after it is published, for whoever compares.
    return FileStatus(path, commit.size, commit.modified_ms, commit.file_name or f"inline-{commit.timestamp}")
