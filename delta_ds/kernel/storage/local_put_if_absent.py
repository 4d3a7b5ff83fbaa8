"""Put if absent on local filesystems: whole, durable, and only if there is no such file.

The content is written and flushed to the device under no name, or a hidden temporary one, and then gets its
name by a hard link, which fails if the name is taken. Whatever moment a process or machine dies at, the name
is either free or belongs to a complete file.

Source: PROTOCOL.md, "Writers" of "Delta Log Entries": commits must be created atomically and never overwritten.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from delta_ds.events.storage import FOLDER_NOT_FLUSHED, UNSAFE_COMMIT

_FLAGS = os.O_WRONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_UNNAMED = getattr(os, "O_TMPFILE", None)
_MODE = 0o666  # less what the process's umask takes away, as for any new file

# fsync also writes the times of the file, which nobody needs after a crash.
_flush: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)

# What `link` says on filesystems that have no hard links (FAT, some network and FUSE mounts).
_NO_LINKS = frozenset(
    {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS, errno.EINVAL}
)
_NO_FOLDER_FLUSH = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF})

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1  # renameat2(2), Linux
_RENAME_EXCL = 4  # renamex_np(2), macOS


class NoPutIfAbsentError(OSError):
    """The filesystem has neither hard links nor a rename that spares an existing file."""


class UnconfirmedError(OSError):
    """The file may have its name, and nothing confirms that it has, or that it keeps it."""


class FolderNotFlushedError(UnconfirmedError):
    """The file has its name, but the device did not confirm it: it may be gone after a power failure."""


def put_if_absent(folder: str, name: str, data: bytes, *, unsafe: bool = False, durable: bool = True) -> None:
    """Create `folder/name` with these bytes; missing folders are made.

    Parameters
    ----------
    folder, name
        Where; the folder as an absolute path.
    data
        The content.
    unsafe
        On a filesystem that cannot do it atomically: look first, then rename.
    durable
        Whether it must be there after a power failure too.

    Raises
    ------
    FileExistsError
        The name is taken; nothing was written.
    NoPutIfAbsentError
        It cannot be done here, and `unsafe` is not set; nothing was written.
    UnconfirmedError
        The file may be there, or is, but perhaps not for good.
    OSError
        As the operating system said it; nothing was written.
    """
    # Whoever comes late need not write and flush a file first to learn it.
    if os.path.lexists(os.path.join(folder, name)):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.path.join(folder, name))
    with _folder(folder) as handle:
        if not _create_unnamed(folder, name, data, handle, durable):
            _create_named(folder, name, data, unsafe, durable)
        if durable:
            _flush_folder(folder, handle)


@contextmanager
def _folder(folder: str) -> Iterator[int | None]:
    """A handle on the folder, which is made if it is missing; None where folders cannot be opened."""
    if os.name == "nt":
        make_folders(folder)
        yield None
        return
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    try:
        handle = os.open(folder, flags)
    except FileNotFoundError:
        make_folders(folder)
        handle = os.open(folder, flags)
    try:
        yield handle
    finally:
        # What the folder is opened for is done, or has failed; this says nothing of either.
        with suppress(OSError):
            os.close(handle)


def _create_unnamed(folder: str, name: str, data: bytes, handle: int | None, durable: bool) -> bool:
    """The Linux way: a file without a name leaves nothing behind, even if the process is killed.

    False: not possible here (no such files, no `/proc`), and nothing was done.
    """
    if _UNNAMED is None or handle is None:
        return False
    try:
        file = os.open(folder, _UNNAMED | _FLAGS, _MODE)
    except OSError:
        return False  # the other way works in more places, and reports what is wrong if it does not
    try:
        _write_all(file, data, durable)
        os.link(f"/proc/self/fd/{file}", name, dst_dir_fd=handle, follow_symlinks=True)
    except OSError as error:
        # The answer of a link can get lost on its way from a server: a name more says that it was made.
        if _has_name(file, error):
            return True
        if isinstance(error, FileExistsError) or error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
        return False
    finally:
        # Flushed before it was linked; an error now must not undo a commit.
        with suppress(OSError):
            os.close(file)
    return True


def _has_name(file: int, problem: OSError) -> bool:
    try:
        return os.fstat(file).st_nlink > 0
    except OSError as error:
        raise UnconfirmedError(error.errno, f"{problem.strerror}, and then {error.strerror}") from error


def _create_named(folder: str, name: str, data: bytes, unsafe: bool, durable: bool) -> None:
    temporary = temporary_name(folder, name)
    final = os.path.join(folder, name)
    try:
        file = os.open(temporary, _FLAGS | os.O_CREAT | os.O_EXCL, _MODE)
        try:
            _write_all(file, data, durable)
        finally:
            os.close(file)
        _link(temporary, final, unsafe)
    finally:
        # A leftover is hidden, matches no pattern of the log, and must not turn a commit into an error.
        with suppress(OSError):
            os.unlink(temporary)


def _link(temporary: str, final: str, unsafe: bool) -> None:
    own = os.stat(temporary)
    try:
        os.link(temporary, final)
    except OSError as error:
        # A network filesystem repeats a request whose answer got lost, and then finds its own file.
        if _is_at(final, own, error):
            return
        if isinstance(error, FileExistsError) or error.errno not in _NO_LINKS:
            raise
        _rename_exclusively(temporary, final, unsafe)


def _is_at(final: str, own: os.stat_result, problem: OSError) -> bool:
    """Whether a file is there under a name, after a request to give it that name failed."""
    try:
        return os.path.samestat(os.lstat(final), own)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise UnconfirmedError(
            error.errno, f"{problem.strerror}, and then {error.strerror}", final
        ) from error


def _rename_exclusively(temporary: str, final: str, unsafe: bool) -> None:
    own = os.stat(temporary)
    number = _rename_without_replacing(temporary, final)
    if number == 0 or _is_at(final, own, OSError(number, os.strerror(number))):
        return
    if number == errno.EEXIST:
        raise FileExistsError(number, os.strerror(number), final)
    if number not in _NO_LINKS:
        raise OSError(number, os.strerror(number), final)
    if not unsafe:
        raise NoPutIfAbsentError(number, "the filesystem has no hard links and no exclusive rename", final)
    UNSAFE_COMMIT.log(path=final, reason="no_hard_links")
    if os.path.lexists(final):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), final)
    os.rename(temporary, final)


def _rename_without_replacing(source: str, target: str) -> int:
    """Rename, unless the target exists: 0, or the error number (ENOSYS where there is no such call)."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    before, after = os.fsencode(source), os.fsencode(target)
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = library.renamex_np(before, after, _RENAME_EXCL)
    elif library is not None and hasattr(library, "renameat2"):
        failed = library.renameat2(_AT_FDCWD, before, _AT_FDCWD, after, _RENAME_NOREPLACE)
    else:
        return errno.ENOSYS
    return ctypes.get_errno() if failed else 0


def _write_all(file: int, data: bytes, durable: bool = True) -> None:
    written = os.write(file, data)
    while written < len(data):
        written += os.write(file, memoryview(data)[written:])
    if durable:
        _flush(file)


def _flush_folder(folder: str, handle: int | None) -> None:
    if handle is None:
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_FOLDER_FLUSH:
            raise FolderNotFlushedError(error.errno, error.strerror, folder) from error
        FOLDER_NOT_FLUSHED.log(path=folder, reason=error.strerror)


def flush_folder(folder: str) -> None:
    """Make the names in a folder durable, where the operating system can.

    Raises
    ------
    FolderNotFlushedError
        The device did not confirm.
    """
    with _folder(folder) as handle:
        _flush_folder(folder, handle)


def make_folders(folder: str, *, durable: bool = True) -> None:
    """Make a folder and the missing ones above it."""
    missing = []
    path = folder
    while not os.path.isdir(path):
        missing.append(path)
        parent = os.path.dirname(path)
        if parent == path:
            break
        path = parent
    try:
        os.makedirs(folder, exist_ok=True)
    except FileExistsError as error:  # it would read as if the file to be created were there
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder) from error
    for made in missing if durable else ():
        flush_folder(os.path.dirname(made))


def temporary_name(folder: str, name: str) -> str:
    """A hidden name that no other process uses and no reader of the log looks at."""
    return os.path.join(folder, f".{name}.{os.urandom(8).hex()}.tmp")
