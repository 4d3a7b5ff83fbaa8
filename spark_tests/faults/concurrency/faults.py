"""Make the operating system fail, or the process die, at a chosen call of a write to a local table.

Every call that changes something below the table's folder is counted and named: `create` and `write` of a file,
`flush` (fsync), `link`, `replace`, `unlink`, `mkdir`; together with what the file is for: `data`, `vector` (deletion
vectors), `commit`, `checksum`, `checkpoint`, `sidecar`, `hint` (`_last_checkpoint`), or `folder`.
"""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from delta_ds.kernel.storage import local_put_if_absent
from delta_ds.kernel.storage.local import LocalStorage

BEFORE, MIDWAY, AFTER = "before", "midway", "after"
LINKED = ("link", "commit")

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_TAKE_SPACE = frozenset(["create", "write", "mkdir", "link", "flush"])
_KINDS = {".json": "commit", ".crc": "checksum", "_last_checkpoint": "hint"}

What = tuple[str, str]


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and when.

    Attributes
    ----------
    index
        Which call it happens to, counted from 0.
    when
        Before, midway (a write is done by half, everything else not at all) or after the call.
    error
        The number of the error that the call fails with; None: the process is killed.
    lasting
        Whether every later call that takes space fails as well.
    """

    index: int
    when: str = BEFORE
    error: int | None = None
    lasting: bool = False


class Calls:
    """The calls so far, and the fault that waits among them.

    Attributes
    ----------
    seen
        Call and kind of file of each.
    done
        Those that took effect.
    broken
        Whether the fault has happened.
    """

    def __init__(self, folder: str | os.PathLike[str], fault: Fault | None = None) -> None:
        self._folder = os.path.abspath(folder)
        self._fault = fault
        self.seen: list[What] = []
        self.done: list[What] = []
        self.broken = False

    def run(
        self, call: str, path: Any, action: Callable[[], Any], half: Callable[[], Any] | None = None
    ) -> Any:
        """Do a call, unless the fault comes first."""
        path = os.path.abspath(os.fspath(path))
        if path != self._folder and not path.startswith(self._folder + os.sep):
            return action()
        what = (call, kind_of(path, self._folder))
        fault, index = self._fault, len(self.seen)
        self.seen.append(what)
        if fault is not None and index == fault.index:
            self.broken = True
            if fault.when == MIDWAY and half is not None:
                half()
            if fault.when == AFTER:
                action()
                self.done.append(what)
            _break(fault, path)
        if fault is not None and fault.lasting and self.broken and call in _TAKE_SPACE:
            _break(fault, path)
        result = action()
        self.done.append(what)
        return result


def _break(fault: Fault, path: str) -> None:
    if fault.error is not None:
        raise OSError(fault.error, os.strerror(fault.error), path)
    os.kill(os.getpid(), signal.SIGKILL)


def kind_of(path: str, folder: str) -> str:
    """What a file is for, by its name, which may be a hidden temporary one."""
    relative = os.path.relpath(path, folder)
    name = os.path.basename(path)
    if name.startswith(".") and name.endswith(".tmp"):
        name = name[1:].rsplit(".", 2)[0]
    if not relative.startswith("_delta_log"):
        if name.endswith(".bin"):
            return "vector"
        return "data" if name.endswith(".parquet") else "folder"
    if "_sidecars/" in relative:
        return "sidecar"
    if ".checkpoint." in name:
        return "checkpoint"
    return next((kind for ending, kind in _KINDS.items() if name.endswith(ending)), "folder")


@contextmanager
def injected(calls: Calls, *, hidden_names: bool = False) -> Iterator[Calls]:
    """Let what this process does go through `calls`.

    Parameters
    ----------
    hidden_names
        Whether files without a name are not to be had, as on systems other than Linux: files that are created
        exclusively then have hidden temporary names.
    """
    patches = _Hooks(calls).patches()
    if hidden_names:
        patches.append((local_put_if_absent, "_UNNAMED", None))
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in patches]
    try:
        for owner, name, value in patches:
            setattr(owner, name, value)
        yield calls
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


class _Hooks:
    """Stand-ins for the system calls; made before they are put in place."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._paths: dict[int, str] = {}
        self._creating = ""
        self._open, self._write, self._link = os.open, os.write, os.link
        self._create = LocalStorage.create

    def patches(self) -> list[tuple[Any, str, Any]]:
        def create(storage: LocalStorage, path: str, *given: Any, **named: Any) -> None:
            self._creating = os.path.join(storage.address.path, path)
            self._create(storage, path, *given, **named)

        return [
            (LocalStorage, "create", create), (io, "FileIO", self._file_class()),
            (os, "open", self.open), (os, "write", self.write), (os, "link", self.link),
            (os, "replace", self._plain("replace", os.replace, 1)),
            (os, "unlink", self._plain("unlink", os.unlink)), (os, "mkdir", self._plain("mkdir", os.mkdir)),
            (os, "fsync", self._flush(os.fsync)),
            (local_put_if_absent, "_flush", self._flush(local_put_if_absent._flush)),
        ]  # fmt: skip

    def open(self, path: Any, flags: int, *more: Any, **named: Any) -> int:
        def action() -> int:
            return self._open(path, flags, *more, **named)

        if flags & _WRITES:
            # A file without a name is opened by its folder.
            target = self._creating if os.path.isdir(path) else os.fspath(path)
            file: int = self._calls.run("create", target, action)
        else:
            target, file = self._whole(path, named), action()
        self._paths[file] = target
        return file

    def _whole(self, path: Any, named: dict[str, Any]) -> str:
        """The path of a name that is looked up in an open folder."""
        folder = named.get("dir_fd")
        return os.fspath(path) if folder is None else os.path.join(self._paths.get(folder, os.sep), path)

    def write(self, file: int, data: Any) -> Any:
        half = memoryview(data)[: len(data) // 2]
        path = self._paths.get(file, os.sep)
        return self._calls.run(
            "write", path, lambda: self._write(file, data), lambda: self._write(file, half)
        )

    def link(self, source: Any, target: Any, **named: Any) -> None:
        final = self._creating if "dst_dir_fd" in named else target
        self._calls.run("link", final, lambda: self._link(source, target, **named))

    def _flush(self, function: Callable[[int], None]) -> Callable[[int], None]:
        return lambda file: self._calls.run("flush", self._paths.get(file, os.sep), lambda: function(file))

    def _plain(self, call: str, function: Callable[..., None], which: int = 0) -> Callable[..., None]:
        def run(*given: Any, **named: Any) -> None:
            self._calls.run(call, self._whole(given[which], named), lambda: function(*given, **named))

        return run

    def _file_class(self) -> type[io.FileIO]:
        hooks, real = self, io.FileIO

        class File(real):  # type: ignore[misc, valid-type]
            def __init__(self, path: Any, mode: str) -> None:
                hooks._calls.run("create", path, lambda: real.__init__(self, path, mode))
                hooks._paths[self.fileno()] = os.fspath(path)

            def write(self, data: Any) -> Any:
                half = memoryview(data)[: len(data) // 2]
                return hooks._calls.run(
                    "write", self.name, lambda: real.write(self, data), lambda: real.write(self, half)
                )

        return File
