"""A log store for S3 that publishes commits through DynamoDB, side by side with delta-spark.

To commit version N: see that N-1 is in place; write the content to a temporary file; add an entry for N to
DynamoDB, which only one writer can (this decides among those that ask it); put the content in N's place if there is
nothing (this decides among all); mark the entry complete. Whoever finds an incomplete entry, by listing or before
writing N+1, finishes the last two steps.

Differs: delta-spark copies the content unconditionally, over the commit of a writer that does not ask DynamoDB.

Source: delta-io/delta, storage-s3-dynamodb, `BaseExternalLogStore`.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from delta_ds.events.storage import (
    COMMIT_LEFT_TO_RECOVERY,
    COMMIT_RECOVERED,
    OTHER_COMMIT_IN_PLACE,
    PUT_NOT_CONDITIONAL,
    TEMPORARY_COMMIT_LEFT,
)
from delta_ds.exceptions import InvalidOptionError, StorageError, UncertainWriteError
from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.conditional_put import NotOfferedError
from delta_ds.kernel.storage.deleter import TEMPORARY_COMMITS
from delta_ds.kernel.storage.dynamodb import SCHEMES, CommitEntries, CommitEntry
from delta_ds.kernel.storage.filesystem import FileStatus
from delta_ds.kernel.storage.log_store import (
    ConditionalLogStore,
    LogStore,
    relative_commit_path,
    uncertain_error,
)
from delta_ds.kernel.storage.remote import RemoteStorage
from delta_ds.kernel.storage.store_errors import pause
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
        """As of `Storage`; a commit goes through DynamoDB."""
        if _COMMIT.fullmatch(path):
            self.log_store().publish(int(path[-25:-5]), data)
        else:
            self.put_if_absent(path, data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Put an object by a conditional request; where the server knows none, look first. Raises as `create`."""
        try:
            super().create(path, data)
        except NotOfferedError:
            PUT_NOT_CONDITIONAL.log(path=self.describe(path))
            self._create_unsafely(path, data)

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
        self.storage.check_create()
        if self.storage.exists(path):
            raise FileExistsError(f"{self.storage.describe(path)} exists already")
        with _about_another_commit():
            self._check_before(version, name)
        entry = CommitEntry(name, f".tmp/{name}.{uuid.uuid4()}", complete=False)
        self.storage.write(f"{_LOG}/{entry.temp_path}", data)
        self._decide(version, entry)
        self._put(version, entry, data)
        try:
            self._complete(entry)
        except StorageError as error:
            # It is in its place; whoever lists next notes it.
            COMMIT_LEFT_TO_RECOVERY.log(table=self.storage.url, version=version, reason=error)

    def _put(self, version: int, entry: CommitEntry, data: bytes) -> None:
        """Put a commit that DynamoDB has decided in its place.

        Raises
        ------
        FileExistsError
            A writer that does not ask DynamoDB was faster.
        UncertainWriteError
            It is not there yet: whoever lists next may put it there, or another writer take its place.
        """
        for attempt in range(_ATTEMPTS):
            if attempt:
                pause(attempt)
            try:
                _InPlace(self.storage).publish(version, data)
                return
            except FileExistsError:
                OTHER_COMMIT_IN_PLACE.log(table=self.storage.url, version=version)
                self._settle(version, entry)
                raise
            except UncertainWriteError:
                raise
            except StorageError as error:
                problem = error
        raise uncertain_error(self.storage.url, version, problem) from problem

    def _settle(self, version: int, entry: CommitEntry) -> None:
        """Have nobody copy the content of an entry whose place is taken."""
        self._give_up(entry)
        try:
            self._complete(entry)
        except StorageError as error:
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
        try:
            if not self.storage.exists(path):
                self.storage.put_if_absent(path, self._content(entry, path))
        except FileExistsError:
            pass  # by now: by another one that finishes it, or that does not ask DynamoDB
        if self._is_another(entry, path):
            OTHER_COMMIT_IN_PLACE.log(table=self.storage.url, version=int(entry.file_name[:20]))
        self._complete(entry)

    def _is_another(self, entry: CommitEntry, path: str) -> bool:
        """Whether what is in the place of an entry's commit is another one, as far as their sizes tell."""
        try:
            own = self.storage.status(f"{_LOG}/{entry.temp_path}")
        except FileNotFoundError:
            return False
        return own.size != self.storage.status(path).size

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
            deleter.delete(self.storage, TEMPORARY_COMMITS, [f"{_LOG}/{entry.temp_path}"])
        except StorageError as error:
            TEMPORARY_COMMIT_LEFT.log(path=entry.temp_path, reason=error)


class _InPlace(ConditionalLogStore):
    """Puts a commit that DynamoDB has decided in its place, and finds out whether it is there."""

    def __init__(self, storage: DynamoDBStorage) -> None:
        super().__init__(storage)
        self._brokered = storage

    def _create(self, path: str, data: bytes) -> None:
        self._brokered.put_if_absent(path, data)


@contextmanager
def _about_another_commit() -> Iterator[None]:
    """Requests without an answer that leave nothing open of the commit that is to be published."""
    try:
        yield
    except UncertainWriteError as error:
        raise StorageError(f"{error.text}; nothing was written", parameters=error.parameters) from error
