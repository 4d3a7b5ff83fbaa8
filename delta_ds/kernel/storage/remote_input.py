"""Streams from remote storage whose errors are the storage's, not the client's."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from delta_ds.kernel.storage.fsspec_types import Stream

Errors = Callable[[], AbstractContextManager[None]]


class RemoteInput(io.RawIOBase):
    """A stream of an fsspec filesystem whose errors are mapped by `errors`: a store that fails is no damaged file."""

    def __init__(self, stream: Stream, errors: Errors) -> None:
        self._stream = stream
        self._errors = errors

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        with self._errors():
            return self._stream.read(-1 if size is None else size)

    def readinto(self, buffer: WriteableBuffer) -> int:
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
