"""Streams to new remote files, which appear whole or not at all."""

from __future__ import annotations

import io
import json
import os
import posixpath
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from delta_ds.kernel.storage.fsspec_types import Filesystem, Stream

# An object appears when it is complete, and there are no folders to make.
FLAT = frozenset({"memory", "s3", "gs", "abfs"})

Errors = Callable[[], AbstractContextManager[None]]


# A file of Google Cloud Storage goes there in pieces that only follow on each other; gcsfs sends smaller ones at once.
_PIECE = 1 << 20


class RemoteOutput(io.RawIOBase):
    """A stream of an fsspec filesystem whose errors are mapped by `errors`.

    Parameters
    ----------
    written
        Is called with the number of bytes when the stream is closed; raises if not all of them are there.
    """

    def __init__(self, stream: Stream, errors: Errors, written: Callable[[int], None] | None = None) -> None:
        self._stream = stream
        self._errors = errors
        self._written = written
        self._size = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return int(self._stream.tell())

    def write(self, data: ReadableBuffer) -> int:
        with self._errors():
            self._stream.write(data)
        size = memoryview(data).nbytes
        self._size += size
        return size

    def close(self) -> None:
        if self.closed:
            return
        try:
            with self._errors():
                self._stream.close()
                if self._written is not None:
                    self._written(self._size)
        finally:
            super().close()


def check_size(fs: Filesystem, scheme: str, path: str, size: int) -> None:
    """Look whether a file of many pieces is there whole: a piece that was sent twice may be in it twice.

    Raises
    ------
    OSError
        It has another size.
    """
    if scheme == "gs" and size > _PIECE:
        found = int(fs.info(path)["size"])
        if found != size:
            raise OSError(f"the store holds {found} bytes of the {size} that were sent")


def put(fs: Filesystem, scheme: str, path: str, data: bytes) -> None:
    """Write a whole file over one that is there, through a temporary one where half of it could be seen."""
    _through_temporary(fs, scheme, path, lambda target: fs.pipe_file(target, data))


@contextmanager
def replace_on_close(
    fs: Callable[[], Filesystem], scheme: str, path: str, errors: Errors, sending: Errors
) -> Iterator[BinaryIO]:
    """A stream that is kept on this machine and sent when the block ends well; else nothing happens.

    Errors of the sending are mapped by `sending`: clients repeat requests, so even a refusal may hide a success.

    A stream into the store would be completed by whoever closes it, with half the content after an error.
    """
    with errors():
        handle, local = tempfile.mkstemp(prefix="delta-ds-")
    try:
        with RemoteOutput(os.fdopen(handle, "wb"), errors) as stream:
            yield stream  # type: ignore[misc]  # a RawIOBase is what every writer wants of a BinaryIO
        with errors():
            opened = fs()
        with sending():
            _through_temporary(opened, scheme, path, lambda target: opened.put_file(local, target))
            check_size(opened, scheme, path, os.path.getsize(local))
    finally:
        os.unlink(local)


def _through_temporary(fs: Filesystem, scheme: str, path: str, write: Callable[[str], object]) -> None:
    if scheme in FLAT:
        write(path)
        return
    folder, name = posixpath.split(path)
    fs.makedirs(folder, exist_ok=True)
    temporary = f"{folder}/.{name}.{os.urandom(8).hex()}.tmp"
    write(temporary)
    try:
        _move(fs, scheme, temporary, path)
    except Exception:
        fs.rm_file(temporary)
        raise


def _move(fs: Filesystem, scheme: str, temporary: str, path: str) -> None:
    """Rename a file, over one that is there."""
    if scheme != "webhdfs":
        fs.mv(temporary, path)
        return
    # Without the option a namenode renames nothing where there is a file, and says so in its answer only.
    answer = fs._call("RENAME", method="put", path=temporary, destination=path, renameoptions="OVERWRITE")
    if answer.content and json.loads(answer.content).get("boolean") is not True:
        raise OSError(f"{path} could not be replaced")
