"""Streams of remote files, and listings of remote folders, through fsspec without its caches.

New files appear whole or not at all.
"""

from __future__ import annotations

import io
import json
import os
import posixpath
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, TypeAlias

from delta_ds.kernel.base.environment import scratch_folder

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer


# `name`, `type` (`file` or `directory`) and `size`; how times and tags are called is the filesystem's.
FileInfo: TypeAlias = Mapping[str, Any]


class Stream(Protocol):
    """An open file."""

    def read(self, size: int = -1, /) -> bytes: ...
    def write(self, data: ReadableBuffer, /) -> int: ...
    def seek(self, offset: int, whence: int = 0, /) -> int: ...
    def tell(self) -> int: ...
    def close(self) -> None: ...


class Filesystem(Protocol):
    """A filesystem of fsspec, whose paths have no scheme."""

    def _strip_protocol(self, path: str) -> str: ...
    def ls(self, path: str, detail: bool = ...) -> list[FileInfo]: ...
    def find(self, path: str, *, detail: bool) -> dict[str, FileInfo]: ...
    def walk(
        self, path: str, *, detail: bool, on_error: Callable[[Exception], None]
    ) -> Iterator[tuple[str, dict[str, FileInfo], dict[str, FileInfo]]]: ...
    def info(self, path: str) -> FileInfo: ...
    def exists(self, path: str) -> bool: ...
    def open(self, path: str, mode: str = ...) -> Stream: ...
    def cat_file(self, path: str, start: int | None = None, end: int | None = None) -> bytes: ...
    def pipe_file(self, path: str, value: bytes, **of_store: Any) -> object: ...
    def put_file(self, lpath: str, rpath: str) -> object: ...
    def makedirs(self, path: str, exist_ok: bool = False) -> None: ...
    def mv(self, path1: str, path2: str) -> object: ...
    def rm_file(self, path: str) -> object: ...

    def __getattr__(self, name: str) -> Any:
        """What the filesystems of one kind of store have."""


def list_folder(fs: Filesystem, directory: str) -> dict[str, FileInfo]:
    """Name -> info of the files directly in a folder."""
    found = {}
    for info in fs.ls(directory, detail=True):
        parent, _, name = info["name"].rpartition("/")
        if info["type"] == "file" and name and parent.strip("/") == directory.strip("/"):
            found[name] = info
    return found


def list_s3(fs: Filesystem, directory: str, start: str) -> dict[str, FileInfo]:
    """As `list_folder`, but S3 itself leaves out what sorts before `start`: a long log costs one request."""
    bucket, _, key = directory.partition("/")
    prefix = f"{key}/" if key else ""
    request = {"Bucket": bucket, "Prefix": prefix, "Delimiter": "/", **fs.req_kw}
    if start:
        request["StartAfter"] = prefix + _before(start)
    found: dict[str, FileInfo] = {}
    anything = False
    while True:
        page = fs.call_s3("list_objects_v2", **request)
        anything = anything or bool(page.get("Contents") or page.get("CommonPrefixes"))
        for entry in page.get("Contents", ()):
            if name := entry["Key"][len(prefix) :]:
                found[name] = {**entry, "name": f"{bucket}/{entry['Key']}", "size": entry["Size"]}
        if not page.get("IsTruncated"):
            break
        request["ContinuationToken"] = page["NextContinuationToken"]
    if not anything and not _is_there(fs, bucket, prefix):
        raise FileNotFoundError(directory)
    return found


def pages_s3(fs: Filesystem, directory: str) -> Iterator[list[FileInfo]]:
    """What lies below a folder of S3, a page of its listing at a time; folders are names that end in `/`."""
    bucket, _, key = directory.partition("/")
    request = {"Bucket": bucket, "Prefix": f"{key}/" if key else "", **fs.req_kw}
    while True:
        page = fs.call_s3("list_objects_v2", **request)
        yield [
            {**entry, "name": f"{bucket}/{entry['Key']}", "size": entry["Size"]}
            for entry in page.get("Contents", ())
        ]
        if not page.get("IsTruncated"):
            return
        request["ContinuationToken"] = page["NextContinuationToken"]


def one_page(fs: Filesystem, directory: str) -> Iterator[list[FileInfo]]:
    """What lies below a folder of another flat store; fsspec follows the pages, and gives no folders."""
    yield list(fs.find(directory, detail=True).values())


def pages_by_folder(fs: Filesystem, directory: str, enter: Callable[[str], bool]) -> Iterator[list[FileInfo]]:
    """What lies below a folder of a filesystem, a folder at a time."""

    def passing_over_missing(error: Exception) -> None:
        if not isinstance(error, FileNotFoundError):  # which it is for a folder that has just vanished
            raise error

    for _, folders, files in fs.walk(directory, detail=True, on_error=passing_over_missing):
        yield [
            *({**info, "size": info.get("size") or 0} for name, info in folders.items() if name),
            *(info for info in files.values() if info["type"] == "file"),
        ]
        for name in [name for name, info in folders.items() if not enter(info["name"])]:
            del folders[name]


def _is_there(fs: Filesystem, bucket: str, prefix: str) -> bool:
    page = fs.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix, MaxKeys=1, **fs.req_kw)
    return bool(page.get("Contents"))


def _before(name: str) -> str:
    """A key that sorts before `name`, as `StartAfter` leaves out the key it is given."""
    last = name[-1]
    return name[:-1] + chr(ord(last) - 1) if "!" < last <= "~" else name[:-1]


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


# An object appears when it is complete, and there are no folders to make.
FLAT = frozenset({"memory", "s3", "gs", "abfs"})


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
        handle, local = tempfile.mkstemp(prefix="delta-ds-", dir=scratch_folder())
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
