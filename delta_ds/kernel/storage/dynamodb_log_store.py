"""A log store for S3 that publishes commits through DynamoDB, side by side with delta-spark.

To commit version N: see that N-1 is in place; write the content to a temporary file; add an entry for N to
DynamoDB, which only one writer can (this decides); copy the content to N's place; mark the entry complete.
Whoever finds an incomplete entry, by listing or before writing N+1, finishes the last two steps.

Source: delta-io/delta, storage-s3-dynamodb, `BaseExternalLogStore`.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from delta_ds.events.storage import COMMIT_LEFT_TO_RECOVERY, COMMIT_RECOVERED, TEMPORARY_COMMIT_LEFT
from delta_ds.exceptions import InvalidOptionError, StorageError, UncertainWriteError
from delta_ds.kernel.storage.backoff import pause
from delta_ds.kernel.storage.dynamodb import SCHEMES, CommitEntries, CommitEntry
from delta_ds.kernel.storage.filesystem import FileStatus
from delta_ds.kernel.storage.log_store import LogStore, relative_commit_path, uncertain_error
from delta_ds.kernel.storage.remote import RemoteStorage
from delta_ds.kernel.storage.uri import Address

_LOG = "_delta_log"
_ATTEMPTS = 4
_COMMIT = re.compile(r"_delta_log/\d{20}\.json")


class DynamoDBStorage(RemoteStorage):
    """A table on S3 whose newest commit may still have to be put in its place."""

    def __init__(self, address: Address, options: Mapping[str, Any] | None = None) -> None:
        if address.scheme != "s3":
            raise InvalidOptionError(f"logStore=dynamodb is for tables on S3, and {address} is not")
        super().__init__(address, options)
        self.entries = CommitEntries(address, self.options)

    def list_from(self, directory: str, start: str = "") -> list[FileStatus]:
        if directory == _LOG:
            latest = self.entries.latest()
            if latest is not None:
                self.log_store().finish(latest)
        return super().list_from(directory, start)

    def create(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """As of `Storage`; a commit goes through DynamoDB, a file beside it is only looked for before."""
        if _COMMIT.fullmatch(path):
            self.log_store().publish(int(path[-25:-5]), data)
        else:
            self._create_unsafely(path, data)

    def check_create(self) -> None:
        """Nothing to check: DynamoDB decides."""

    def log_store(self) -> DynamoDBLogStore:
        """Where its commits are published."""
        return DynamoDBLogStore(self)


class DynamoDBLogStore(LogStore):
    """Publishes by an entry in DynamoDB."""

    def __init__(self, storage: DynamoDBStorage) -> None:
        self.storage = storage
        self.entries = storage.entries

    def publish(self, version: int, data: bytes) -> None:
        path = relative_commit_path(version)
        name = path.rpartition("/")[2]
        if self.storage.exists(path):
            raise FileExistsError(f"{self.storage.describe(path)} exists already")
        with _about_another_commit():
            self._check_before(version, name)
        entry = CommitEntry(name, f".tmp/{name}.{uuid.uuid4()}", complete=False)
        self.storage.write(f"{_LOG}/{entry.temp_path}", data)
        self._decide(version, entry)
        try:
            self.storage.write(path, data)
            self._complete(entry)
        except StorageError as error:
            # The entry has decided; whoever lists next puts the commit in its place.
            COMMIT_LEFT_TO_RECOVERY.log(table=self.storage.url, version=version, reason=error)

    def finish(self, entry: CommitEntry) -> None:
        """Put the commit of an incomplete entry in its place and mark it complete; else do nothing.

        Raises
        ------
        StorageError
            Its content is gone, or the store or DynamoDB cannot be written to.
        """
        if entry.complete:
            return
        path = f"{_LOG}/{entry.file_name}"
        COMMIT_RECOVERED.log(path=self.storage.describe(path))
        if not self.storage.exists(path):
            self.storage.write(path, self._content(entry, path))
        self._complete(entry)

    def _content(self, entry: CommitEntry, path: str) -> bytes:
        temporary = f"{_LOG}/{entry.temp_path}"
        try:
            return self.storage.read(temporary)
        except FileNotFoundError:
            raise StorageError(
                f"table {self.storage.url}: DynamoDB says that {path} is to be made from {temporary}, which does not "
                "exist; restore it, or delete the entry if the commit may be lost",
                parameters={"path": path},
            ) from None

    def _complete(self, entry: CommitEntry) -> None:
        self.entries.put(entry.completed(time.time(), self.entries.settings.ttl))

    def _check_before(self, version: int, name: str) -> None:
        """See to it that the version before is in place, and that DynamoDB's entries belong to this table."""
        before = relative_commit_path(version - 1)
        entry = self.entries.get(before.rpartition("/")[2] if version else name)
        if entry is None:
            self._check_spelling()
        if version and entry is not None and not entry.complete:
            self.finish(entry)
        elif version and not self.storage.exists(before):
            raise StorageError(
                f"table {self.storage.url}: version {version} cannot be committed, as version {version - 1} is not "
                "there; nothing was written",
                parameters={"table": self.storage.url, "version": version},
            )
        elif not version and entry is not None and entry.complete:
            if self.storage.exists(relative_commit_path(0)):  # by now: another writer was quicker
                raise FileExistsError(f"{self.storage.describe(relative_commit_path(0))} exists already")
            raise StorageError(
                f"table {self.storage.url}: DynamoDB still has entries of an earlier table at this path; nothing was "
                f"written; delete the items with tablePath {self.entries.table_path()!r} from the DynamoDB table "
                f"{self.entries.settings.table!r} first",
                parameters={"table": self.storage.url},
            )

    def _check_spelling(self) -> None:
        """Writers that spell the table's path in different ways do not see each other's entries."""
        own = self.entries.settings.scheme
        for scheme in SCHEMES:
            if scheme != own and self.entries.latest(scheme) is not None:
                raise StorageError(
                    f"table {self.storage.url}: other writers know it as {self.entries.table_path(scheme)} in "
                    f"DynamoDB; nothing was written; set the storage option ddbScheme={scheme}",
                    parameters={"table": self.storage.url, "scheme": scheme},
                )

    def _decide(self, version: int, entry: CommitEntry) -> None:
        """Add the entry, or raise `FileExistsError` if another writer's is there."""
        sent = False
        for attempt in range(_ATTEMPTS):
            if attempt:
                pause(attempt)
            problem: Exception
            refused: StorageError | None = None
            try:
                self.entries.add(entry)
                return
            except FileExistsError as error:
                problem = error
            except UncertainWriteError as error:
                problem, sent = error, True
            except StorageError as error:
                problem = refused = error
            try:
                found = self.entries.get(entry.file_name)
            except StorageError:
                continue  # what cannot be read may be there
            if found is not None and found.temp_path != entry.temp_path:
                self._give_up(entry)
                with _about_another_commit():
                    self.finish(found)
                raise FileExistsError(f"{self.storage.describe(_LOG)}/{entry.file_name} exists already")
            if found is not None:
                return
            # The client repeats requests, so a refusal alone does not say that there is no entry.
            if refused is not None and not sent:
                self._give_up(entry)
                raise refused
        raise uncertain_error(self.storage.url, version, problem) from problem

    def _give_up(self, entry: CommitEntry) -> None:
        """Delete the temporary file of a commit that lost."""
        try:
            self.storage.delete([f"{_LOG}/{entry.temp_path}"])
        except StorageError as error:
            TEMPORARY_COMMIT_LEFT.log(path=entry.temp_path, reason=error)


@contextmanager
def _about_another_commit() -> Iterator[None]:
    """Requests without an answer that leave nothing open of the commit that is to be published."""
    try:
        yield
    except UncertainWriteError as error:
        raise StorageError(f"{error.text}; nothing was written", parameters=error.parameters) from error
