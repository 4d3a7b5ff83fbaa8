"""Local storage by plain system calls."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO

from delta_ds.events.storage import FILE_NAME_NOT_UTF8
from delta_ds.exceptions import StorageError, UncertainWriteError
from delta_ds.kernel.storage import local_put_if_absent
from delta_ds.kernel.storage.filesystem import FileStatus, Storage
from delta_ds.kernel.storage.listing import Entry
from delta_ds.kernel.storage.store_options import ALLOW_UNSAFE, allows_unsafe_commits
from delta_ds.kernel.storage.uri import Address, unambiguous
from delta_ds.kernel.storage.write_errors import cannot_write

if TYPE_CHECKING:
    import pyarrow as pa


_NANOSECONDS_PER_MS = 1_000_000
_NOT_DELETED = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.EBUSY)


class LocalStorage(Storage):
    """A table in a folder of this machine (or of a mounted one)."""

    def resolve(self, log_path: str) -> str:
        found = super().resolve(log_path)
        if not found.startswith("/"):
            return found
        # The table's own folder may be called by another name, with or without links.
        folder, _, name = found.rpartition("/")
        real = Address("file", "", f"{self._without_links(folder)}/{name}")
        below = Address("file", "", self._without_links(self.address.path)).relative(real)
        return found if below is None else unambiguous(below)

    def _without_links(self, folder: str) -> str:
        if folder not in self._real_folders:
            self._real_folders[folder] = os.path.realpath(folder)
        return self._real_folders[folder]

    @cached_property
    def _real_folders(self) -> dict[str, str]:
        return {}

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

    def _entries_below(self, folder: str, enter: Callable[[str], bool]) -> Iterator[Entry]:
        pending = [folder]
        while pending:
            at = pending.pop()
            try:
                found = self._entries_in(at)
            except FileNotFoundError:  # as of a folder that vanishes between its listing and the look into it
                continue
            yield from found
            pending += [path for path, _, _, is_folder in found if is_folder and enter(path)]

    def _entries_in(self, folder: str) -> list[Entry]:
        prefix = f"{folder}/" if folder else ""
        found = []
        with self._errors(folder), os.scandir(self._locate(folder)) as entries:
            for entry in entries:
                status = _stat_or_none(entry)
                if status is None:
                    continue
                is_folder = stat.S_ISDIR(status.st_mode)
                if not (is_folder or stat.S_ISREG(status.st_mode)) or (is_folder and entry.is_symlink()):
                    continue
                if not _is_text(entry.name):
                    FILE_NAME_NOT_UTF8.log(table=self.url, path=prefix + entry.name)
                    continue
                modified_ms = status.st_mtime_ns // _NANOSECONDS_PER_MS
                found.append((prefix + entry.name, status.st_size, modified_ms, is_folder))
        return found

    def read(self, path: str) -> bytes:
        with self._errors(path), open(self._locate(path), "rb") as file:
            return file.read()

    def _read_range(self, path: str, offset: int, length: int) -> bytes:
        with self._errors(path), open(self._locate(path), "rb") as file:
            # As much memory as is asked for is set aside, and what is asked for comes from the log.
            there = max(0, os.fstat(file.fileno()).st_size - offset)
            file.seek(offset)
            return file.read(min(length, there))

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

    def create(self, path: str, data: bytes, *, durable: bool = True) -> None:
        folder, name = self._target(path)
        try:
            unsafe = allows_unsafe_commits(self.options)
            local_put_if_absent.put_if_absent(folder, name, data, unsafe=unsafe, durable=durable)
        except FileExistsError:
            raise FileExistsError(f"{self.describe(path)} exists already") from None
        except local_put_if_absent.FolderNotFlushedError as error:
            raise UncertainWriteError(
                f"{self.describe(path)} was created, but the device did not confirm it: {error.strerror}",
                parameters={"path": path},
            ) from error
        except local_put_if_absent.UnconfirmedError as error:
            raise UncertainWriteError(
                f"{self.describe(path)} may or may not have been created: {error.strerror}",
                parameters={"path": path},
            ) from error
        except local_put_if_absent.NoPutIfAbsentError as error:
            raise _no_put_if_absent(self.describe(path), error) from error
        except OSError as error:
            raise cannot_write(self.describe(path), error) from error

    @property
    def creates_exactly(self) -> bool:
        return True

    def check_create(self) -> None:
        """Nothing to check: what the filesystem cannot do shows before anything is written."""

    def write(self, path: str, data: bytes) -> None:
        with self.replace_file(path) as stream:
            stream.write(data)

    def open_output(self, path: str) -> BinaryIO:
        from delta_ds.kernel.storage.local_output import open_new

        return open_new(os.path.join(*self._target(path)), self.describe(path), durable=False)

    def fsync(self, paths: Sequence[str]) -> None:
        from delta_ds.kernel.storage.local_output import fsync_files

        fsync_files(self.address.path, [os.path.join(*self._target(path)) for path in paths], self.url)

    def replace_file(self, path: str) -> AbstractContextManager[BinaryIO]:
        from delta_ds.kernel.storage.local_output import replace_on_close

        return replace_on_close(*self._target(path), self.describe(path))

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            located = os.path.join(*self._target(path))
            try:
                with suppress(FileNotFoundError):
                    os.unlink(located)
            except OSError as error:
                raise StorageError(
                    f"cannot delete {self.describe(path)}: {error.strerror or error}",
                    parameters={"path": path},
                ) from error

    def delete_empty_folders(self, paths: Sequence[str]) -> list[str]:
        return [path for path in sorted(paths, key=len, reverse=True) if self._delete_empty_folder(path)]

    def _delete_empty_folder(self, path: str) -> bool:
        try:
            os.rmdir(os.path.join(*self._target(path)))
        except OSError as error:
            if error.errno in _NOT_DELETED:
                return False
            raise StorageError(
                f"cannot delete the folder {self.describe(path)}: {error.strerror or error}",
                parameters={"path": path},
            ) from error
        return True

    def _target(self, path: str) -> tuple[str, str]:
        """Folder and name of a file that is written to."""
        return os.path.split(os.path.join(self.address.path, self._inside(path)))

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


def _no_put_if_absent(address: str, error: OSError) -> StorageError:
    return StorageError(
        f"cannot write {address}: {error.strerror}, so two writers could take the same version; nothing was "
        f"written; put the table on another filesystem, or, if there is only ever one writer, set the storage "
        f"option {ALLOW_UNSAFE}=true",
        parameters={"path": address},
    )


def _stat_or_none(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat()
    except FileNotFoundError:
        return None


def _is_text(name: str) -> bool:
    """Whether a name is text; Python has surrogates for the bytes of one that is not."""
    return name.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in name)


def _file_status(path: str, found: os.stat_result) -> FileStatus:
    etag = f"{found.st_ino:x}-{found.st_ctime_ns:x}"
    return FileStatus(path, found.st_size, found.st_mtime_ns // _NANOSECONDS_PER_MS, etag)
