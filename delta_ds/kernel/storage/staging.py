"""Ownership of files written before the version that names them, and when they may be deleted.

A file can be deleted again as long as no version can name it. That ends with the first request to publish: from then on
only an error that says that nothing was written gives the files back. After anything else (no answer, an interrupt, an
error that nobody foresaw) the version may be there, so its files stay; those that no version names are left to VACUUM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from delta_ds.events.log import ORPHAN_FILES_LEFT, STAGED_FILES_KEPT
from delta_ds.exceptions import DeltaError, UncertainWriteError
from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.deleter import STAGED_FILES, Owned

if TYPE_CHECKING:
    from delta_ds.kernel.storage.filesystem import Storage


_Self = TypeVar("_Self", bound="Staging")


class Outcome(Enum):
    """What became of a version, as far as it is known."""

    NOT_PUBLISHED = "not published"
    PUBLISHED = "published"
    UNKNOWN = "unknown"


class Staging:
    """The owner of what is written for a version. As a context: what was not published is deleted at its end.

    Parameters
    ----------
    table
        Its address, for messages.

    Attributes
    ----------
    outcome
        Of the version. Only what is certainly not published is ever deleted.
    """

    def __init__(self, table: str) -> None:
        self.table = table
        self.outcome = Outcome.NOT_PUBLISHED
        self._deletions: list[Callable[[], None]] = []

    def deleted_by(self, deletion: Callable[[], None]) -> None:
        """Own something that a call deletes, where it is not known file by file."""
        self._deletions.append(deletion)

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """The block publishes the version: its outcome is unknown until the block ends.

        Well: it is published. With an error of this package, or that another one has the version: it is not, unless
        it was before; but for an `UncertainWriteError`, which leaves it open as every other exception does, interrupts
        among them.
        """
        before, self.outcome = self.outcome, Outcome.UNKNOWN
        try:
            yield
        except UncertainWriteError:
            raise
        except (DeltaError, FileExistsError):
            self.outcome = before if before is Outcome.PUBLISHED else Outcome.NOT_PUBLISHED
            raise
        self.outcome = Outcome.PUBLISHED

    def is_named_in(self, data: bytes) -> bool:
        """Whether a commit, as its file is, names what is owned: an earlier attempt at publishing has worked."""
        return False

    def release(self) -> None:
        """Own nothing any more: somebody else does."""
        self._deletions = []

    def discard(self) -> None:
        """Delete what is owned; what cannot be deleted is logged, and left to VACUUM."""
        deletions = list(self._deletions)
        self.release()
        for deletion in deletions:
            quietly(deletion, self.table)

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.outcome is Outcome.NOT_PUBLISHED:
            self.discard()
        elif error is not None:
            STAGED_FILES_KEPT.log(table=self.table, outcome=self.outcome.value, error=kind and kind.__name__)


class StagedFiles(Staging):
    """A `Staging` of single files.

    Parameters
    ----------
    storage
        The table's.
    paths
        See `add`.
    owned
        What kind of files they are.
    """

    def __init__(self, storage: Storage, paths: Iterable[str] = (), owned: Owned = STAGED_FILES) -> None:
        super().__init__(storage.url)
        self._storage = storage
        self._owned = owned
        self._paths: list[str] = []
        self.add(paths)

    def add(self, paths: Iterable[str]) -> None:
        """Own files, by their paths as in actions, URI-encoded."""
        self._paths += paths

    def is_named_in(self, data: bytes) -> bool:
        # A commit names all of them, or none.
        return any(path.encode() in data for path in self._paths[:1])

    def release(self) -> None:
        super().release()
        self._paths = []

    def discard(self) -> None:
        paths = self._paths
        super().discard()
        discard(self._storage, paths, self._owned)


def discard(storage: Storage, paths: Sequence[str], owned: Owned = STAGED_FILES) -> None:
    """Delete files that no version names; what cannot be deleted is logged, and left to VACUUM.

    Parameters
    ----------
    paths
        As in actions, URI-encoded.
    owned
        What kind of files they are.
    """

    def delete() -> None:
        deleter.delete(storage, owned, [storage.resolve(path) for path in dict.fromkeys(paths)])

    if paths:
        quietly(delete, storage.url)


def quietly(deletion: Callable[[], None], table: str) -> None:
    """Delete something that no version names; where that fails it is logged."""
    try:
        deletion()
    except Exception as error:  # noqa: BLE001 - whatever it is must not hide why there is something to delete
        reason = error.text if isinstance(error, DeltaError) else repr(error)
        ORPHAN_FILES_LEFT.log(table=table, reason=reason)
