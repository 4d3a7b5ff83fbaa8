"""HDFS by the package `hdfs-native`, which speaks the namenode's own protocol and needs neither Java nor libhdfs.

Its layer for fsspec takes paths for URLs, in which `?` and `#` end a name, and moves without replacing; here paths are
paths, and a move replaces, as everywhere in fsspec.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hdfs_native.fsspec import HdfsFileSystem  # type: ignore[import-not-found,unused-ignore]

from delta_ds.kernel.storage.conditional_put import NothingPublishedError
from delta_ds.kernel.storage.settings.hdfs import LOGIN

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from delta_ds.kernel.storage.remote_files import Stream

# The default is meant for nameservices, where another namenode may take over; at one alone it would be three minutes.
_ATTEMPTS, _ATTEMPTS_AT_ONE_NAMENODE = "dfs.client.failover.max.attempts", "4"

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*")
# What the namenode answers: the class of its exception and the text, with the frames of its stack behind.
_ANSWER = re.compile(r'RPCError\("([\w.$]+)", "(.*)"\)', re.DOTALL)
_REFUSALS: dict[str, type[OSError]] = {
    "AccessControlException": PermissionError,
    "ParentNotDirectoryException": NotADirectoryError,
}


class NamenodeError(NothingPublishedError):
    """The namenode, or the client on its own, has refused: what was asked for has not happened."""


class Hdfs(HdfsFileSystem):  # type: ignore[misc,unused-ignore]
    """The filesystem of one namenode or nameservice.

    Parameters
    ----------
    address
        `hdfs://host:port` or `hdfs://nameservice`; `hdfs://` for the default of the configuration.
    settings
        Settings of Hadoop, and `LOGIN`. Others are those of `core-site.xml` and `hdfs-site.xml` in `HADOOP_CONF_DIR`.
    """

    # Built by this package, which keeps clients itself.
    cachable = False

    def __init__(self, address: str, settings: Mapping[str, str]) -> None:
        from fsspec import AbstractFileSystem  # type: ignore[import-untyped,unused-ignore]
        from hdfs_native import Client  # type: ignore[import-not-found,unused-ignore]

        AbstractFileSystem.__init__(self, use_listings_cache=False)
        authority = address.partition("://")[2]
        self.host, self.port = authority or None, None
        login = {name: settings[name] for name in LOGIN if name in settings}
        of_hadoop = {name: str(value) for name, value in settings.items() if name not in LOGIN}
        if ":" in authority:
            of_hadoop.setdefault(_ATTEMPTS, _ATTEMPTS_AT_ONE_NAMENODE)
        with _one_line():
            self.client = Client(address if authority else None, of_hadoop, **login)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return _ADDRESS.sub("", path, count=1).rstrip("/") or "/"

    def _convert_file_status(self, file_status: Any) -> dict[str, Any]:
        found: dict[str, Any] = super()._convert_file_status(file_status)
        return {**found, "mtime": file_status.modification_time / 1000}

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        with _one_line():
            found: dict[str, Any] = super().info(path, **kwargs)
        return found

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> Any:
        with _one_line():
            return super().ls(path, detail, **kwargs)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        with _one_line():
            super().makedirs(path, exist_ok)

    def mv(self, path1: str, path2: str, **kwargs: Any) -> None:
        """Rename a file, over another one; in one step of the namenode."""
        with _one_line():
            super().mv(path1, path2, overwrite=True)

    def rename_if_absent(self, path1: str, path2: str) -> None:
        """Rename a file where there is none of the other name; in one step of the namenode.

        Raises
        ------
        FileExistsError
            There is a file; nothing has changed.
        """
        with _one_line():
            self.client.rename(self._strip_protocol(path1), self._strip_protocol(path2), False)

    def rm_file(self, path: str) -> None:
        with _one_line():
            self.client.delete(self._strip_protocol(path), False)

    def delete_empty_folder(self, path: str) -> bool:
        """Delete a folder that holds nothing, in one step of the namenode; whether it did."""
        try:
            with _one_line():
                return bool(self.client.delete(self._strip_protocol(path), False))
        except NamenodeError as error:
            if "is non empty" in str(error):
                return False
            raise

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:  # type: ignore[override,unused-ignore]
        with _one_line():
            stream = super()._open(path, mode, **kwargs)
        return _Writer(stream) if mode == "wb" else stream

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        with _one_line(), self.open(path, "rb") as stream:
            whole = len(stream)
            first, last = start or 0, whole if end is None else min(end, whole)
            return bytes(stream.read_range(first, last - first)) if last > first else b""


class _Writer:
    """A stream whose errors are told in one line; what is not closed does not become visible in full."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._written = 0
        self.closed = False

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def tell(self) -> int:
        return self._written

    def write(self, data: ReadableBuffer) -> int:
        with _one_line():
            self._stream.write(data)
        size = memoryview(data).nbytes
        self._written += size
        return size

    def flush(self) -> None:
        """Nothing: `close` sends what is left."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            with _one_line():
                self._stream.close()


@contextmanager
def _one_line() -> Iterator[None]:
    """Errors of the client without the stack of the namenode, and by a type that says what they are."""
    try:
        yield
    except (FileNotFoundError, FileExistsError, PermissionError) as error:
        raise type(error)(_first_line(str(error))) from None
    except (OSError, RuntimeError) as error:
        raise _told(error) from None


def _told(error: Exception) -> Exception:
    text = str(error)
    answer = _ANSWER.match(text)
    if answer is None:
        return error if isinstance(error, OSError) else OSError(_first_line(text))
    kind, message = answer[1].rpartition(".")[2], _first_line(answer[2])
    refusal: Callable[[str], OSError] = _REFUSALS.get(kind, NamenodeError)
    return refusal(f"{kind}: {message}")


def _first_line(text: str) -> str:
    return re.split(r"\\n|\n", text, maxsplit=1)[0]
