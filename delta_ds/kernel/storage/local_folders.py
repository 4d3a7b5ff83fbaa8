"""Folders below a local root, reached step by step and never through a link.

A name is looked up in the folder that was opened before it, so nobody can put a link in its place between a look and
the act. Where the operating system cannot do that, links are looked for first.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TypeVar

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
