"""A storage that fails at a chosen call: before it does anything, after it did, or with an interrupt."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from delta_ds.exceptions import StorageError, UncertainWriteError
from delta_ds.kernel.storage.filesystem import FileStatus, Storage
from delta_ds.kernel.storage.listing import Entry
from delta_ds.kernel.storage.local import LocalStorage

REFUSED = "refused"  # not done, and the store says so
LOST = "lost"  # done, and the answer is lost
REPEATED = (
    "repeated"  # done; the client repeats it, and that is refused; the object cannot be read for a while
)
DOWN = "down"  # not done, and nothing is from then on
DOWN_AFTER = "down after"  # done without an answer, and nothing is from then on
INTERRUPTED = "interrupted"  # Ctrl+C before it
INTERRUPTED_AFTER = "interrupted after"  # and after it
KINDS = (REFUSED, LOST, REPEATED, DOWN, DOWN_AFTER, INTERRUPTED, INTERRUPTED_AFTER)

# Calls whose answer says whether the object is there: without one it is not known.
_PUTS = frozenset({"create", "replace"})


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and at which call, counted from 0."""

    index: int
    kind: str


class FaultyStorage(Storage):
    """A local table as it were on a store across a network: a create that finds its object may have made it itself.

    Attributes
    ----------
    calls
        Those so far: what, and on which path.
    broken
        Whether the fault has happened.
    """

    creates_exactly = False

    def __init__(self, inner: LocalStorage, fault: Fault | None = None) -> None:
        super().__init__(inner.address, inner.options)
        self._inner = inner
        self._fault = fault
        self._lock = threading.Lock()
        self._unreadable = ""
        self.calls: list[tuple[str, str]] = []
        self.broken = False

    def call(self, name: str, path: str, action: Callable[[], Any]) -> Any:
        """Do a call, or what the fault makes of it."""
        with self._lock:
            index = len(self.calls)
            self.calls.append((name, path))
        fault = self._fault
        if fault is None or index < fault.index:
            return action()
        if index > fault.index:
            if fault.kind in (DOWN, DOWN_AFTER):
                raise StorageError(f"cannot {name} {path}: the store is down")
            if name == "read" and path == self._unreadable:
                raise StorageError(f"cannot read {path}: 503 SlowDown")
            return action()
        self.broken = True
        if fault.kind in (REFUSED, DOWN):
            raise StorageError(f"cannot {name} {path}: 503 SlowDown")
        if fault.kind == INTERRUPTED:
            raise KeyboardInterrupt
        action()
        if fault.kind == INTERRUPTED_AFTER:
            raise KeyboardInterrupt
        if fault.kind == REPEATED:
            self._unreadable = path
        if fault.kind != REPEATED and name in _PUTS:
            raise UncertainWriteError(f"no answer to {name} {path}")
        raise StorageError(f"cannot {name} {path}: 503 SlowDown")

    def list_from(self, directory: str, start: str = "") -> list[FileStatus]:
        return self.call("list", directory, lambda: self._inner.list_from(directory, start))

    def _entries_below(self, folder: str, enter: Callable[[str], bool]) -> Iterator[Entry]:
        yield from self.call("list", folder, lambda: list(self._inner._entries_below(folder, enter)))

    def read(self, path: str) -> bytes:
        return self.call("read", path, lambda: self._inner.read(path))

    def _read_range(self, path: str, offset: int, length: int) -> bytes:
        return self.call("read", path, lambda: self._inner._read_range(path, offset, length))

    def open(self, path: str) -> Any:
        return self.call("open", path, lambda: self._inner.open(path))

    def status(self, path: str) -> FileStatus:
        return self.call("status", path, lambda: self._inner.status(path))

    def exists(self, path: str) -> bool:
        return self.call("exists", path, lambda: self._inner.exists(path))

    def create(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self.call("create", path, lambda: self._inner.create(path, data, durable=durable))

    def check_create(self) -> None:
        self._inner.check_create()

    def write(self, path: str, data: bytes) -> None:
        self.call("write", path, lambda: self._inner.write(path, data))

    def open_output(self, path: str) -> BinaryIO:
        stream = self.call("begin", path, lambda: self._inner.open_output(path))
        return _Output(self, path, stream)  # type: ignore[return-value]

    def fsync(self, paths: Sequence[str]) -> None:
        self.call("fsync", "", lambda: self._inner.fsync(paths))

    @contextmanager
    def replace_file(self, path: str) -> Iterator[BinaryIO]:
        content = io.BytesIO()
        yield content

        def put() -> None:
            with self._inner.replace_file(path) as stream:
                stream.write(content.getvalue())

        self.call("replace", path, put)

    def delete(self, paths: Sequence[str]) -> None:
        self.call("delete", paths[0] if paths else "", lambda: self._inner.delete(paths))

    def delete_empty_folders(self, paths: Sequence[str]) -> list[str]:
        return self.call("delete folders", "", lambda: self._inner.delete_empty_folders(paths))


class _Output(io.RawIOBase):
    """A stream to a new file, whose end is a call of its own."""

    def __init__(self, storage: FaultyStorage, path: str, stream: BinaryIO) -> None:
        self._storage, self._path, self._stream = storage, path, stream

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._stream.tell()

    def write(self, data: Any) -> int:
        return self._stream.write(data)

    def close(self) -> None:
        if self.closed:
            return
        try:
            self._storage.call("end", self._path, self._stream.close)
        finally:
            self._stream.close()
            super().close()

    def discard(self) -> None:
        self._stream.close()
        super().close()
