"""Local storage by plain system calls."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO

from delta_ds.exceptions import StorageError, UncertainWriteError
from delta_ds.kernel.storage.filesystem import FileStatus, NotAFileError, OpenedFile, Storage
from delta_ds.kernel.storage.store_errors import cannot_write
from delta_ds.kernel.storage.store_options import ALLOW_UNSAFE, allows_unsafe_commits
from delta_ds.kernel.storage.uri import Address, unambiguous

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.storage.listing import Entry
    from delta_ds.kernel.storage.local_output import Folders


_NANOSECONDS_PER_MS = 1_000_000
# Links may lead nowhere, or in a circle.
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
# What is left as it is: a folder that holds something, that is not there, that is a link or lies behind one.
_NOT_DELETED = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.EBUSY, errno.ELOOP)


class LocalStorage(Storage):
    """A table in a folder of this machine (or of a mounted one)."""

    def resolve(self, log_path: str) -> str:
        resolved = super().resolve(log_path)
        if not resolved.startswith("/"):
            return resolved
        # The table's own folder may be called by another name, with or without links.
        folder, _, name = resolved.rpartition("/")
        real = Address("file", "", f"{self._without_links(folder)}/{name}")
        below = Address("file", "", self._without_links(self.address.path)).relative(real)
        return resolved if below is None else unambiguous(below)

    def _without_links(self, folder: str) -> str:
        if folder not in self._real_folders:
            self._real_folders[folder] = os.path.realpath(folder)
        return self._real_folders[folder]

    @cached_property
    def _real_folders(self) -> dict[str, str]:
        return {}

    def list_from(self, directory: str, start: str = "") -> list[FileStatus]:
        listed = []
        with self._errors(directory), os.scandir(self._locate(directory)) as entries:
            for entry in entries:
                # A file that vanishes between the listing and the look at it was not there.
                status = _stat_or_none(entry) if entry.name >= start else None
                if status is not None and ("." in entry.name or not stat.S_ISDIR(status.st_mode)):
                    listed.append((entry.name, status))
        prefix = f"{directory}/" if directory else ""
        listed.sort(key=lambda item: item[0])
        return [_file_status(prefix + name, status) for name, status in listed]

    def link_on_the_way(self, folder: str) -> str | None:
        from delta_ds.kernel.storage.local_output import link_on_the_way

        return link_on_the_way(self.address.path, self._relative(folder))

    def place_of(self, log_path: str) -> Address:
        return Address("file", "", os.path.realpath(super().place_of(log_path).path))

    def _entries_below(self, folder: str, enter: Callable[[str], bool]) -> Iterator[Entry]:
        link = self.link_on_the_way(folder)
        if link is not None:
            self._leave_link(link)
        pending = [folder] if link is None else []
        while pending:
            at = pending.pop()
            try:
                inside = self._entries_in(at, enter)
            except FileNotFoundError:  # as of a folder that vanishes between its listing and the look into it
                continue
            yield from inside
            pending += [path for path, _, _, is_folder in inside if is_folder and enter(path)]

    def _entries_in(self, folder: str, enter: Callable[[str], bool]) -> list[Entry]:
        from delta_ds.kernel.storage.local_output import is_junction

        prefix = f"{folder}/" if folder else ""
        listed = []
        with self._errors(folder), os.scandir(self._locate(folder)) as entries:
            for entry in entries:
                status = _stat_or_none(entry)
                if status is None:
                    continue
                is_folder = stat.S_ISDIR(status.st_mode)
                if not (is_folder or stat.S_ISREG(status.st_mode)):
                    continue
                if not _is_text(entry.name):
                    from delta_ds.events.storage import FILE_NAME_NOT_UTF8

                    FILE_NAME_NOT_UTF8.log(table=self.url, path=prefix + entry.name)
                    continue
                if is_folder and (entry.is_symlink() or is_junction(entry.path)):
                    if enter(prefix + entry.name):
                        self._leave_link(prefix + entry.name)
                    continue
                modified_ms = status.st_mtime_ns // _NANOSECONDS_PER_MS
                listed.append((prefix + entry.name, status.st_size, modified_ms, is_folder))
        return listed

    def _leave_link(self, path: str) -> None:
        from delta_ds.events.storage import LINK_NOT_FOLLOWED

        LINK_NOT_FOLLOWED.log(table=self.url, path=path)

    def read(self, path: str) -> bytes:
        with self._errors(path), open(self._locate(path), "rb", opener=self._opener(path)) as file:
            return file.read()

    def _read_range(self, path: str, offset: int, length: int) -> bytes:
        with self._errors(path), open(self._locate(path), "rb", opener=self._opener(path)) as file:
            # As much memory as is asked for is set aside, and what is asked for comes from the log.
            there = max(0, os.fstat(file.fileno()).st_size - offset)
            file.seek(offset)
            return file.read(min(length, there))

    def open(self, path: str) -> pa.NativeFile:
        # Not memory-mapped: a file that shrinks under a mapping kills the process (SIGBUS).
        from pyarrow import OSFile

        located = self._locate(path)
        with self._errors(path):
            self._check_is_file(path, os.stat(located))
            return OSFile(located)

    def open_known(self, path: str) -> OpenedFile:
        stream = self.open(path)
        descriptor = stream.fileno()
        opened = os.fstat(descriptor)

        def is_same() -> bool:
            # Its name may be another file's by now, of which nothing is read here. The time of its status would tell
            # that, too, and is left out.
            now = os.fstat(descriptor)
            return (now.st_size, now.st_mtime_ns) == (opened.st_size, opened.st_mtime_ns)

        return OpenedFile(stream, _file_status(path, opened), is_same)

    def _opener(self, path: str) -> Callable[[str, int], int]:
        """What opens files and nothing else: opening a pipe waits for its other end, opening a device may do things."""

        def opened(located: str, flags: int) -> int:
            self._check_is_file(path, os.stat(located))
            # Should it be another thing by now, it is not waited for.
            number = os.open(located, flags | getattr(os, "O_NONBLOCK", 0))
            try:
                self._check_is_file(path, os.fstat(number))
            except StorageError:
                os.close(number)
                raise
            return number

        return opened

    def _check_is_file(self, path: str, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            from delta_ds.conditions.storage import NOT_A_FILE

            refused = NOT_A_FILE.also(error=NotAFileError)
            raise refused(path=self.describe(path), what=_kind(status.st_mode))

    def status(self, path: str) -> FileStatus:
        with self._errors(path):
            status = os.stat(self._locate(path))
        if not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError(f"{self.describe(path)} is {_kind(status.st_mode)}, not a file")
        return _file_status(path, status)

    def exists(self, path: str) -> bool:
        try:
            with self._errors(path):
                os.stat(self._locate(path))
        except FileNotFoundError:
            return False
        return True

    def create(self, path: str, data: bytes, *, durable: bool = True) -> None:
        from delta_ds.kernel.storage import local_put_if_absent

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
        from delta_ds.kernel.storage.local_output import Folders

        with Folders(self.address.path) as folders:
            for path in paths:
                self._delete(folders, path)

    def _delete(self, folders: Folders, path: str) -> None:
        from delta_ds.kernel.storage.local_output import LinkOnTheWayError

        try:
            with suppress(FileNotFoundError):
                folders.unlink(self._inside(path))
        except LinkOnTheWayError as error:
            raise self._behind_link(path, error) from error
        except OSError as error:
            raise StorageError(
                f"cannot delete {self.describe(path)}: {error.strerror or error}", parameters={"path": path}
            ) from error

    def _behind_link(self, path: str, error: OSError) -> StorageError:
        from delta_ds.conditions.storage import NOT_IN_TABLE
        from delta_ds.kernel.storage.deleter import behind

        return NOT_IN_TABLE(
            path=self.describe(path),
            kind="files of the table",
            reason=behind(error.filename),
            outcome="it was not deleted",
        )

    def delete_empty_folders(self, paths: Sequence[str]) -> list[str]:
        from delta_ds.kernel.storage.local_output import Folders

        inner_first = sorted(paths, key=len, reverse=True)
        with Folders(self.address.path) as folders:
            return [path for path in inner_first if self._delete_empty_folder(folders, path)]

    def _delete_empty_folder(self, folders: Folders, path: str) -> bool:
        try:
            folders.rmdir(self._inside(path))
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

    def local_path(self, path: str) -> str | None:
        return self._locate(path)

    def _locate(self, path: str) -> str:
        return path if path.startswith("/") else os.path.join(self.address.path, self._relative(path))

    @contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in _NOT_THERE:
                raise FileNotFoundError(f"{self.describe(path)} does not exist") from error
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
    except OSError as error:
        if error.errno in _NOT_THERE:
            return None
        raise


def _is_text(name: str) -> bool:
    """Whether a name is text; Python has surrogates for the bytes of one that is not."""
    return name.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in name)


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _kind(mode: int) -> str:
    """What something is that is no file."""
    return next((name for is_such, name in _KINDS if is_such(mode)), "something else")


def _file_status(path: str, status: os.stat_result) -> FileStatus:
    etag = f"{status.st_ino:x}-{status.st_ctime_ns:x}"
    is_file = stat.S_ISREG(status.st_mode)
    return FileStatus(path, status.st_size, status.st_mtime_ns // _NANOSECONDS_PER_MS, etag, is_file)
