"""The storage contract: list from a key, read objects and ranges, open streams.

`open_storage` picks the implementation by the address; nothing heavy is imported before it is needed, and
fsspec never for a local table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, BinaryIO

from delta_ds.conditions.record import CAME_SHORT
from delta_ds.exceptions import StorageError
from delta_ds.kernel.storage.store_options import SecretOptions
from delta_ds.kernel.storage.uri import Address, has_scheme, parse_address, resolve
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.storage.listing import Entry
    from delta_ds.kernel.storage.maintenance import Maintenance


class NotAFileError(StorageError):
    """What lies in the place of a file is a folder, a named pipe, a socket or a device."""

    default_condition = "DELTA_STORAGE_ERROR.NOT_A_FILE"


@dataclass(frozen=True, slots=True)
class FileStatus:
    """An object as a listing shows it.

    Attributes
    ----------
    path
        As it was asked for; from a listing: relative to the table root.
    size
        In bytes.
    modified_ms
        Modification time in milliseconds since the epoch; 0 where the store does not tell.
    etag
        Changes whenever the object is written anew, where the store has such a thing.
    is_file
        False for what only has the name of a file: to read it is a `NotAFileError`.
    """

    path: str
    size: int
    modified_ms: int
    etag: str | None = None
    is_file: bool = True


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """An open file, and which object it is: somebody may put another one in its place.

    Attributes
    ----------
    stream
        As of `Storage.open`.
    status
        Of the object, as it was opened.
    is_same
        Tells whether all that was read so far is of that object, and that unchanged.
    """

    stream: BinaryIO | pa.NativeFile
    status: FileStatus
    is_same: Callable[[], bool]


class Storage(ABC):
    """The folder of a table and the filesystem under it.

    Can be pickled; a copy opens its own connections in the process that uses it. Paths are relative to the
    table root, or what `resolve` returned. `repr` and errors never show option values or a URL's password.

    Attributes
    ----------
    url
        The table's canonical address, for messages: a plain path for a local table.
    options
        The storage options as given; hidden from `repr`.
    """

    def __init__(self, address: Address, options: Mapping[str, Any] | None = None) -> None:
        self.address = address
        self.options = SecretOptions(options or {})
        self.url = str(address)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.address, self.options)

    @property
    def managed(self) -> bool:
        """Whether a commit coordinator ratifies the commits of the table; see `coordination`."""
        return False

    def check_allowed(self, operation: Maintenance, name: str) -> None:  # noqa: B027 - most storages allow all
        """Refuse an operation that a catalog does not permit on its table; `name` is what users call it.

        Raises
        ------
        UnsupportedOperationError
            `MAINTENANCE_NOT_ALLOWED`.
        """

    def allows(self, operation: Maintenance) -> bool:
        """Whether `check_allowed` lets an operation pass."""
        return True

    def new_table_properties(self) -> Mapping[str, str]:
        """What version 0 must have where a catalog wants more than it has: properties, and features by properties."""
        return {}

    def kept_properties(self, configuration: Mapping[str, str]) -> Mapping[str, str]:
        """The properties, of those of a table, that its catalog wants to stay as they are."""
        return {}

    def publish_up_to(self, version: int, *, noted: bool = False) -> None:  # noqa: B027 - most publish at once
        """See to it that the commits up to a version are in the log, as what sums them up needs.

        Parameters
        ----------
        noted
            And that the catalog names them no more, as where their files are to be deleted.

        Raises
        ------
        StorageError
            One cannot be put there.
        """

    @abstractmethod
    def list_from(self, directory: str, start: str = "") -> list[FileStatus]:
        """The files directly in a folder whose names are `start` or sort after it, in order of name.

        Names are compared by code point. Always asks the store, never a cached listing. A disk also shows what
        is in the place of a file and not `is_file`: pipes, devices, folders whose names have a dot.

        Raises
        ------
        FileNotFoundError
            There is no such folder.
        """

    def list_below(
        self, folder: str = "", enter: Callable[[str], bool] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """All files below a folder at any depth, in no order, while they are found: memory is bounded.

        One flat pass on object stores. Links to folders are not followed, names that are not UTF-8 left out.

        Parameters
        ----------
        folder
            Relative to the table, "" for all of it; one that is not there holds nothing.
        enter
            Whether what lies in a folder (its path) is of interest. Flat stores give it all the same.

        Yields
        ------
        pyarrow.RecordBatch
            `path` string (relative to the table), `size` int64 (bytes), `modified_ms` int64 (ms since 1970, 0
            where the store does not tell), `is_folder` bool. Rows of folders only where the store has such.

        Raises
        ------
        StorageError
            The store refused.
        """
        from delta_ds.kernel.storage.listing import in_batches

        return in_batches(self._entries_below(folder.strip("/"), enter or _everything))

    @abstractmethod
    def _entries_below(self, folder: str, enter: Callable[[str], bool]) -> Iterator[Entry]: ...

    @abstractmethod
    def read(self, path: str) -> bytes:
        """The whole object. Raises `FileNotFoundError` if it is missing, `NotAFileError` if it is none."""

    def read_whole(self, path: str) -> bytes:
        """As `read`, for what looks whole also where its end is missing: the store is asked how long it is.

        Raises
        ------
        StorageError
            Less came than there is.
        """
        size = self.status(path).size
        data = self.read(path)
        if len(data) < size:
            raise CAME_SHORT(path=self.describe(path), found=len(data), size=size)
        return data

    @abstractmethod
    def _read_range(self, path: str, offset: int, length: int) -> bytes: ...

    @abstractmethod
    def open(self, path: str) -> BinaryIO | pa.NativeFile:
        """A seekable input that pyarrow can read from. Raises as `read`."""

    def open_known(self, path: str) -> OpenedFile:
        """As `open`, for a file that may be replaced while it is read, or until it is opened again."""
        before = self.status(path)
        return OpenedFile(self.open(path), before, lambda: self.is_still(before))

    def is_still(self, known: FileStatus) -> bool:
        """Whether a file is there and, as far as the store tells, the same object that had a status."""
        try:
            return self.status(known.path) == known
        except FileNotFoundError:
            return False

    @abstractmethod
    def status(self, path: str) -> FileStatus:
        """Size and time of one file. Raises `FileNotFoundError` if it is missing or no file."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether there is a file or folder of that name."""

    @abstractmethod
    def create(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Put a whole object where there is none: atomic against every other writer, and durable.

        To publish commits use `open.log_store_for`, which also settles what is left open here.

        Parameters
        ----------
        durable
            Whether it must survive a power failure; False for what can be done without.

        Raises
        ------
        FileExistsError
            There is one already and nothing was written. On a store across a network it may be this very
            object, if the client repeated a request whose answer got lost: see `creates_exactly`.
        UncertainWriteError
            Sent, and no answer: the object may be there, or still arrive.
        StorageError
            Refused or failed; nothing was written.
        """

    @property
    @abstractmethod
    def creates_exactly(self) -> bool:
        """Whether a `FileExistsError` of `create` always means somebody else's object."""

    @abstractmethod
    def check_create(self) -> None:
        """Raise `StorageError` if `create` cannot be atomic here, or not with what is installed."""

    @abstractmethod
    def write(self, path: str, data: bytes) -> None:
        """Put a whole object, over one that is there. Readers see the old or the new one, never half of it.

        Raises
        ------
        StorageError
            Refused or failed.
        """

    @abstractmethod
    def open_output(self, path: str) -> BinaryIO:
        """A stream to a new file, whose folders are made. It can be read at the latest when it is closed.

        Raises
        ------
        StorageError
            Refused or failed; also from the stream's `write` and `close`.
        """

    @abstractmethod
    def fsync(self, paths: Sequence[str]) -> None:
        """Make closed files of `open_output` survive a power failure, before anything refers to them.

        Stores across a network have done so when a file was closed.

        Raises
        ------
        StorageError
            The device did not confirm.
        """

    @abstractmethod
    def replace_file(self, path: str) -> AbstractContextManager[BinaryIO]:
        """As `open_output`, but whole or not at all: on an exception in the block nothing changes.

        Raises
        ------
        UncertainWriteError
            When the block has ended: the file may be there.
        StorageError
            Refused or failed; nothing has changed.
        """

    @abstractmethod
    def delete(self, paths: Sequence[str]) -> None:
        """Delete files; missing ones are fine. Commands do it by `deleter`, which asks whose files they are.

        Raises
        ------
        StorageError
            One cannot be deleted, or lies outside of the table or behind a link; others may be gone.
        """

    def delete_empty_folders(self, paths: Sequence[str]) -> list[str]:
        """Delete folders that hold nothing, inner ones first; others and missing ones stay as they are.

        Returns
        -------
        list of str
            Those that were deleted: none where the store has no folders of its own, or could only delete one
            together with what somebody just put into it.
        """
        return []

    def link_on_the_way(self, folder: str) -> str | None:
        """The first link among the folders from the table's own to one below it; None where there is none.

        What lies behind one need not lie in the table. That the table's own folder is reached by links does not count.

        Parameters
        ----------
        folder
            Relative to the table, "" for its own.
        """
        return None

    def place_of(self, log_path: str) -> Address:
        """Where the file of an action really lies: links are followed, on the way and at its end.

        Parameters
        ----------
        log_path
            URI-encoded, as for `resolve`, which may refuse it.
        """
        resolved = self.resolve(log_path)
        if has_scheme(resolved):
            return parse_address(resolved)
        path = (
            resolved
            if resolved.startswith("/")
            else f"{self.address.path.rstrip('/')}/{self._relative(resolved)}"
        )
        return Address(self.address.scheme, self.address.authority, path)

    def local_path(self, path: str) -> str | None:
        """Where other programs of this machine find a file; None where only this storage reads it.

        Parameters
        ----------
        path
            Relative to the table, or what `resolve` returned.
        """
        return None

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """`length` bytes from `offset`; fewer where the object ends before.

        Raises
        ------
        FileNotFoundError
            The object is missing.
        StorageError
            A negative offset or length, which only a damaged log asks for.
        """
        if offset < 0 or length < 0:
            raise StorageError(f"{self.describe(path)}: cannot read {length} bytes at offset {offset}")
        return self._read_range(path, offset, length) if length else b""

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        """The whole objects, in the order of `paths`. Raises `FileNotFoundError` if one is missing."""
        return [self.read(path) for path in paths]

    def resolve(self, log_path: str) -> str:
        """What a URI-encoded `path` of an action names, for `read`, `open` and the others.

        Returns
        -------
        str
            Decoded: relative to the table where it lies below it, else an absolute path or URL.

        Raises
        ------
        StorageError
            It leaves the table by `..`, or is on another filesystem than the table.

        Source: PROTOCOL.md, "Add File and Remove File"; protocol-checklist PTH-RW-01.
        """
        return resolve(self.address, log_path)

    def describe(self, path: str) -> str:
        """The address of a path, for messages."""
        return path if path.startswith("/") or has_scheme(path) else f"{self.url.rstrip('/')}/{path}"

    def _relative(self, path: str) -> str:
        """A relative path without its `./` mark; the last guard against one that leaves the table."""
        if ".." in path.split("/"):
            raise StorageError(f"table {self.url}: {path!r} holds a `..` and is not followed")
        return path.removeprefix("./")

    def _inside(self, path: str) -> str:
        """A path that may be written to or deleted: below the table's folder, never elsewhere."""
        relative = self._relative(path)
        if not relative or path.startswith("/") or relative.startswith("/") or has_scheme(path):
            raise StorageError(
                f"table {self.url}: {path!r} is not a file below the table's folder and is not written to",
                parameters={"path": path},
            )
        return relative


def _everything(folder: str) -> bool:
    return True
