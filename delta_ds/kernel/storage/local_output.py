"""Local files: folders reached step by step and never through a link, and streams to new files, made durable.

A name is looked up in the folder that was opened before it, so nobody can put a link in its place between a look and
the act. Where the operating system cannot do that, links are looked for first. Files are made durable one by one, or
many at once.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from delta_ds.exceptions import StorageError, UncertainWriteError
from delta_ds.kernel.storage import local_put_if_absent
from delta_ds.kernel.storage.store_errors import NOT_REFERENCED, NOTHING_WRITTEN, cannot_write

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


# More files than this are flushed together: each flush waits for the device.
_FEW = 4
_BUFFER = 1 << 20  # bytes; Parquet writes many small pieces


class LocalOutput(io.BufferedWriter):
    """A file open for writing; errors name its address.

    Parameters
    ----------
    path
        An absolute path; the folder exists.
    address
        For messages.
    outcome
        For messages: what is there if writing fails.
    durable
        Whether the content is on the device once it is closed.
    """

    def __init__(
        self, path: str, address: str, outcome: str = NOT_REFERENCED, *, durable: bool = True
    ) -> None:
        self._durable = durable
        self._address = address
        self._outcome = outcome
        self._problem: StorageError | None = None
        super().__init__(io.FileIO(path, "wb"), _BUFFER)

    def write(self, data: ReadableBuffer) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self._problem = cannot_write(self._address, error, self._outcome)
            raise self._problem from error

    def close(self) -> None:
        if self.closed:
            return
        if self._problem is not None:
            self.discard()
            raise self._problem
        try:
            try:
                self.flush()
                if self._durable:
                    os.fsync(self.fileno())
            except OSError:
                self.discard()
                raise
            super().close()
        except OSError as error:
            raise cannot_write(self._address, error, self._outcome) from error

    def discard(self) -> None:
        """Close without caring for what was written."""
        with suppress(OSError):
            self.raw.close()


@contextmanager
def replace_on_close(folder: str, name: str, address: str) -> Iterator[LocalOutput]:
    """A stream whose content becomes `folder/name` when the block ends well; else nothing changes.

    Missing folders are made. Errors of the block itself pass through as they are; after an `UncertainWriteError` the
    file is there, but perhaps not for good.
    """
    temporary = local_put_if_absent.temporary_name(folder, name)
    stream: LocalOutput | None = None
    try:
        stream = open_new(temporary, address, NOTHING_WRITTEN)
        yield stream
        stream.close()
        with _as_storage_error(address, NOTHING_WRITTEN):
            os.replace(temporary, os.path.join(folder, name))
    except BaseException:
        if stream is not None:
            stream.discard()
        with suppress(OSError):
            os.unlink(temporary)
        raise
    try:
        local_put_if_absent.flush_folder(folder)
    except OSError as error:
        raise UncertainWriteError(
            f"{address} was written, but the device did not confirm it, so it may be gone after a power failure: "
            f"{error.strerror or error}",
            parameters={"path": address, "errno": error.errno},
        ) from error


def open_new(path: str, address: str, outcome: str = NOT_REFERENCED, *, durable: bool = True) -> LocalOutput:
    """A stream to a file whose folders are made if they are missing; parameters as of `LocalOutput`."""
    with _as_storage_error(address, outcome):
        try:
            return LocalOutput(path, address, outcome, durable=durable)
        except FileNotFoundError:
            local_put_if_absent.make_folders(os.path.dirname(path), durable=durable)
            return LocalOutput(path, address, outcome, durable=durable)


def fsync_files(root: str, files: Sequence[str], address: str) -> None:
    """Make closed files and their names survive a power failure.

    Parameters
    ----------
    root
        The table's folder, which all of them lie below.
    files
        Absolute paths.
    address
        The table's, for messages.

    Raises
    ------
    StorageError
        The device did not confirm; the files must not be referred to.
    """
    if not files:
        return
    with _as_storage_error(address, NOT_REFERENCED):
        if len(files) > _FEW and _flush_filesystem(root):
            return
        for file in files:
            _flush_file(file)
        folders = {os.path.dirname(file) for file in files}
        for folder in {above for f in folders for above in _up_to(root, f)}:
            local_put_if_absent.flush_folder(folder)


def _flush_file(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _up_to(root: str, folder: str) -> Iterator[str]:
    """A folder and those above it, up to the root."""
    while True:
        yield folder
        if folder == root or not folder.startswith(root):
            return
        folder = os.path.dirname(folder)


def _flush_filesystem(root: str) -> bool:
    """Flush all that the filesystem of a folder has not written yet, in one go; False where that is not offered."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    if not hasattr(library, "syncfs"):
        return False
    handle = os.open(root, os.O_RDONLY)
    try:
        failed = library.syncfs(handle)  # type: ignore[union-attr]
    finally:
        os.close(handle)
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), root)
    return True


@contextmanager
def _as_storage_error(address: str, outcome: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot_write(address, error, outcome) from error


_Self = TypeVar("_Self", bound="Folders")

_BY_HANDLE = {os.open, os.unlink, os.rmdir, os.stat} <= os.supports_dir_fd
_FLAGS = (
    getattr(os, "O_PATH", os.O_RDONLY)
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
# What `open` says of a link, or of a file, that stands where a folder should be.
_NO_FOLDER = frozenset({errno.ENOTDIR, errno.ELOOP, errno.EMLINK})
# Links of Windows, which are no symbolic ones.
is_junction: Callable[[str], bool] = getattr(os.path, "isjunction", lambda path: False)


class LinkOnTheWayError(OSError):
    """A folder on the way is a link; `filename` says which, relative to the root."""


def link_on_the_way(root: str, folder: str) -> str | None:
    """The first link among the folders from a root to a folder below it, relative to the root; None: there is none.

    Parameters
    ----------
    root
        An absolute path, which may itself be or hold a link.
    folder
        Relative to it, "" for the root itself.
    """
    at = ""
    for part in _parts(folder):
        at = f"{at}/{part}" if at else part
        path = os.path.join(root, at)
        if os.path.islink(path) or is_junction(path):
            return at
    return None


class Folders:
    """The folders below a root, for names to be deleted in them. As a context: what was opened is closed at its end.

    Parameters
    ----------
    root
        An absolute path, which may itself be or hold a link: a table may be reached by one.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._opened: list[tuple[str, int]] = []

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(0)

    def unlink(self, path: str) -> None:
        """Delete a file, or a link as such.

        Raises
        ------
        FileNotFoundError
            There is none.
        LinkOnTheWayError
            A folder above it is a link.
        OSError
            As the operating system said it.
        """
        folder, _, name = path.rpartition("/")
        if _BY_HANDLE:
            os.unlink(name, dir_fd=self._handle(folder))
        else:
            os.unlink(os.path.join(self._checked(folder), name))

    def rmdir(self, path: str) -> None:
        """Delete a folder that is empty; raises as `unlink`."""
        folder, _, name = path.rpartition("/")
        if _BY_HANDLE:
            os.rmdir(name, dir_fd=self._handle(folder))
        else:
            os.rmdir(os.path.join(self._checked(folder), name))

    def _checked(self, folder: str) -> str:
        """The path of a folder that no link leads to, as far as a look can tell."""
        link = link_on_the_way(self._root, folder)
        if link is not None:
            raise LinkOnTheWayError(errno.ELOOP, "it lies behind a link", link)
        found = os.path.join(self._root, folder)
        if not os.path.isdir(found):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), found)
        return found

    def _handle(self, folder: str) -> int:
        if not self._opened:
            self._opened.append(("", os.open(self._root, _FLAGS & ~getattr(os, "O_NOFOLLOW", 0))))
        parts = _parts(folder)
        known = 1
        while (
            known <= len(parts) and known < len(self._opened) and self._opened[known][0] == parts[known - 1]
        ):
            known += 1
        self._close(known)
        for number in range(known - 1, len(parts)):
            self._opened.append((parts[number], self._step(parts, number)))
        return self._opened[-1][1]

    def _step(self, parts: list[str], number: int) -> int:
        above = self._opened[-1][1]
        try:
            return os.open(parts[number], _FLAGS, dir_fd=above)
        except OSError as error:
            if error.errno not in _NO_FOLDER:
                raise
            found = os.stat(parts[number], dir_fd=above, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                way = "/".join(parts[: number + 1])
                raise LinkOnTheWayError(errno.ELOOP, "it lies behind a link", way) from None
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), parts[number]) from None

    def _close(self, kept: int) -> None:
        """Close what was opened, but for the first ones."""
        while len(self._opened) > kept:
            with suppress(OSError):
                os.close(self._opened.pop()[1])


def _parts(folder: str) -> list[str]:
    return [part for part in folder.split("/") if part not in ("", ".")]
