"""Streams to new files of the local filesystem, on the device when they are closed."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from delta_ds.exceptions import StorageError
from delta_ds.kernel.storage import exclusive_create
from delta_ds.kernel.storage.write_errors import NOT_REFERENCED, NOTHING_WRITTEN, cannot_write

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
    """

    def __init__(self, path: str, address: str, outcome: str = NOT_REFERENCED) -> None:
        self._address = address
        self._outcome = outcome
        self._problem: StorageError | None = None
        super().__init__(io.FileIO(path, "wb"), _BUFFER)

    def write(self, data: Any) -> int:
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
def replacing(folder: str, name: str, address: str) -> Iterator[LocalOutput]:
    """A stream whose content becomes `folder/name` when the block ends well; else nothing changes.

    Missing folders are made. Errors of the block itself pass through as they are.
    """
    temporary = exclusive_create.temporary_name(folder, name)
    stream = open_new(temporary, address, NOTHING_WRITTEN)
    try:
        yield stream
        stream.close()
        with _as_storage_error(address, NOTHING_WRITTEN):
            os.replace(temporary, os.path.join(folder, name))
    except BaseException:
        stream.discard()
        with suppress(OSError):
            os.unlink(temporary)
        raise
    with _as_storage_error(address, "it may be gone after a power failure"):
        exclusive_create.flush_folder(folder)


def open_new(path: str, address: str, outcome: str = NOT_REFERENCED) -> LocalOutput:
    """A stream to a file whose folders are made if they are missing; parameters as of `LocalOutput`."""
    with _as_storage_error(address, outcome):
        try:
            return LocalOutput(path, address, outcome)
        except FileNotFoundError:
            exclusive_create.make_folders(os.path.dirname(path))
            return LocalOutput(path, address, outcome)


@contextmanager
def _as_storage_error(address: str, outcome: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot_write(address, error, outcome) from error
