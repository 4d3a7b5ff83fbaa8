"""Tables on the local filesystem: plain system calls, no fsspec."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from delta_ds.exceptions import StorageError
from delta_ds.kernel.storage.filesystem import FileStatus, Storage

if TYPE_CHECKING:
    import pyarrow as pa

_NANOSECONDS_PER_MS = 1_000_000


class LocalStorage(Storage):
    """A table in a folder of this machine (or of a mounted one)."""

    def list_from(self, directory: str, start: str = "") -> list[FileStatus]:
        found = []
        with self._errors(directory), os.scandir(self._locate(directory)) as entries:
            for entry in entries:
                # A file that vanishes between the listing and the look at it was not there.
                if entry.name >= start and entry.is_file():
                    status = _stat_or_none(entry)
                    if status is not None:
                        found.append((entry.name, status))
        prefix = f"{directory}/" if directory else ""
        found.sort(key=lambda item: item[0])
        return [_file_status(prefix + name, status) for name, status in found]

    def read(self, path: str) -> bytes:
        with self._errors(path), open(self._locate(path), "rb") as file:
            return file.read()

    def _read_range(self, path: str, offset: int, length: int) -> bytes:
        with self._errors(path), open(self._locate(path), "rb") as file:
            file.seek(offset)
            return file.read(length)

    def open(self, path: str) -> pa.NativeFile:
        # Not memory-mapped: a file that shrinks under a mapping kills the process (SIGBUS).
        from pyarrow import OSFile

        located = self._locate(path)
        with self._errors(path):
            if stat.S_ISDIR(os.stat(located).st_mode):
                raise IsADirectoryError(located)
            return OSFile(located)

    def status(self, path: str) -> FileStatus:
        with self._errors(path):
            found = os.stat(self._locate(path))
        if stat.S_ISDIR(found.st_mode):
            raise FileNotFoundError(f"{self.describe(path)} is a folder, not a file")
        return _file_status(path, found)

    def exists(self, path: str) -> bool:
        try:
            with self._errors(path):
                os.stat(self._locate(path))
        except FileNotFoundError:
            return False
        return True

    def _locate(self, path: str) -> str:
        return path if path.startswith("/") else os.path.join(self.address.path, self._relative(path))

    @contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FileNotFoundError(f"{self.describe(path)} does not exist") from error
        except OSError as error:
            raise StorageError(
                f"cannot read {self.describe(path)}: {error.strerror or error}", parameters={"path": path}
            ) from error


def _stat_or_none(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat()
    except FileNotFoundError:
        return None


def _file_status(path: str, found: os.stat_result) -> FileStatus:
    etag = f"{found.st_ino:x}-{found.st_ctime_ns:x}"
    return FileStatus(path, found.st_size, found.st_mtime_ns // _NANOSECONDS_PER_MS, etag)
