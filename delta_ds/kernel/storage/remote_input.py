"""Streams from remote storage whose errors are the storage's, not the client's."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

Errors = Callable[[], AbstractContextManager[None]]


class RemoteInput(io.RawIOBase):
    """A stream of an fsspec filesystem whose errors are mapped by `errors`: a store that fails is no damaged file."""

    def __init__(self, stream: Any, errors: Errors) -> None:
        self._stream = stream
        self._errors = errors

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        with self._errors():
            found: bytes = self._stream.read(-1 if size is None else size)
        return found

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        found = self.read(len(view))
        view[: len(found)] = found
        return len(found)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._stream.seek(offset, whence)
        return self.tell()  # not all streams say it

    def tell(self) -> int:
        return int(self._stream.tell())

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            super().close()
