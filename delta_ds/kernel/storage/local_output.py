"""Streams to new local files, made durable one by one or many at once."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

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
