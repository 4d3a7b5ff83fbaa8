"""Log stores: publish each version exactly once, with a known outcome.

A create whose answer is lost leaves the question who has the version. The commit is read back and compared:
every commit holds a unique `txnId`, so the same bytes are the same commit. A missing one may still arrive, so
it is created again, which is safe, as only one of the requests can win.

Source: PROTOCOL.md, "Writers" of "Delta Log Entries".
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from delta_ds.exceptions import DeltaError, StorageError, UncertainWriteError
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.store_errors import NOTHING_WRITTEN

_ATTEMPTS = 8
_LONGEST = (
    300.0  # seconds after which no further attempt begins: a store that never answers holds nobody for ever
)


def relative_commit_path(version: int) -> str:
    """The path of a commit, relative to the table."""
    return f"_delta_log/{version:020}.json"


class LogStore(ABC):
    """Where the commits of one table are published."""

    @abstractmethod
    def publish(self, version: int, data: bytes) -> None:
        """Create the commit of a version.

        Parameters
        ----------
        version
            0 or more.
        data
            The commit's lines of JSON. They hold something unique, such as `txnId`.

        Raises
        ------
        FileExistsError
            Another commit has the version; nothing was written.
        UncertainWriteError
            It cannot be found out whether the commit happened.
        StorageError
            Refused or failed; nothing was written.
        """


class ConditionalLogStore(LogStore):
    """Publishes by the storage's own create-if-absent."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def publish(self, version: int, data: bytes) -> None:
        path = relative_commit_path(version)
        sent, ends = False, time.monotonic() + _LONGEST
        for attempt in range(_ATTEMPTS):
            if attempt:
                if time.monotonic() > ends:
                    break
                from delta_ds.kernel.storage.store_errors import pause

                pause(attempt)
            problem: Exception
            refused: StorageError | None = None
            try:
                self._create(path, data)
                return
            except FileExistsError as error:
                if self.storage.creates_exactly:
                    raise
                problem = error
            except UncertainWriteError as error:
                if self.storage.creates_exactly:
                    # It has looked already, and what a device has not confirmed can be read until the power fails.
                    raise uncertain_error(self.storage.url, version, error) from error
                problem, sent = error, True
            except StorageError as error:
                if self.storage.creates_exactly:
                    raise
                problem = refused = error
            there = self._is_ours(path, data)
            if there:
                return
            # Some filesystems repeat requests on their own, so even a refusal may hide an earlier success: only that
            # the commit is not there, after nothing was left open, makes it certain.
            if refused is not None and there is False and not sent:
                raise refused
            from delta_ds.events.log import COMMIT_UNCONFIRMED

            COMMIT_UNCONFIRMED.log(table=self.storage.url, version=version, attempt=attempt + 1)
        raise uncertain_error(self.storage.url, version, problem) from problem

    def _create(self, path: str, data: bytes) -> None:
        """The request itself; as of `Storage.create`."""
        self.storage.create(path, data)

    def _is_ours(self, path: str, data: bytes) -> bool | None:
        """Whether the commit is there with these bytes; None if it cannot be read now.

        Raises
        ------
        FileExistsError
            It is there with other bytes.
        """
        try:
            found = self.storage.read_whole(path)
        except FileNotFoundError:
            return False
        except StorageError:
            return None
        if found != data:
            raise FileExistsError(f"{self.storage.describe(path)} exists already")
        return True


def uncertain_error(table: str, version: int, problem: Exception) -> UncertainWriteError:
    """The error for a commit that may or may not have happened."""
    reason = problem.text if isinstance(problem, DeltaError) else str(problem)
    reason = reason.removesuffix(f"; {NOTHING_WRITTEN}")  # not by that attempt, but perhaps by an earlier one
    return UncertainWriteError(
        f"table {table}: it is not known whether version {version} was committed: {reason}. The version may or may not "
        "be there, so its files are kept. Look at the table's history before you run this again, or it may happen "
        "twice; if it has not happened, VACUUM deletes the files",
        parameters={"table": table, "version": version},
    )


# --- the log store of tables on S3: conditional puts, and a look for writers who decide commits in another way
# Those who ask DynamoDB leave temporary commits in the log. Old versions of this package and delta-spark then put
# commits in their places unconditionally, over what is there: they cannot be kept from it here, but they can be named.

_TEMPORARY = "_delta_log/.tmp"

_looked_at: set[str] = set()


class S3LogStore(ConditionalLogStore):
    """Publishes by conditional puts; at the first commit to a table in a process it looks for other writers."""

    def publish(self, version: int, data: bytes) -> None:
        if self.storage.url not in _looked_at:
            _looked_at.add(self.storage.url)
            _look_for_dynamodb(self.storage, version)
        super().publish(version, data)


def _look_for_dynamodb(storage: Storage, version: int) -> None:
    """Tell of commits that others are making by DynamoDB, or have made last. Older ones may be of times gone by."""
    try:
        found = storage.list_from(_TEMPORARY, f"{max(version - 1, 0):020}.json.")
    except FileNotFoundError:
        return
    except StorageError as error:
        from delta_ds.events.storage import DYNAMODB_NOT_LOOKED_FOR

        # The commit does not depend on it: who may not list here commits all the same.
        DYNAMODB_NOT_LOOKED_FOR.log(table=storage.url, reason=error)
        return
    if found:
        from delta_ds.events.storage import DYNAMODB_WRITERS_FOUND

        DYNAMODB_WRITERS_FOUND.log(table=storage.url, path=found[-1].path)
