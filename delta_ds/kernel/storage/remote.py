"""Remote storage through fsspec: object stores, HDFS, memory."""

from __future__ import annotations

import io
import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

from delta_ds.events.storage import UNSAFE_COMMITS
from delta_ds.exceptions import DeltaError, InvalidOptionError, StorageError, UncertainWriteError
from delta_ds.kernel.storage import clients, conditional_put, remote_files, store_errors
from delta_ds.kernel.storage.filesystem import FileStatus, OpenedFile, Storage
from delta_ds.kernel.storage.listing import Entry
from delta_ds.kernel.storage.remote_files import RemoteInput, RemoteOutput
from delta_ds.kernel.storage.store_errors import NOT_REFERENCED, NOTHING_WRITTEN, pause
from delta_ds.kernel.storage.store_options import allows_unsafe_commits, hidden
from delta_ds.kernel.storage.uri import Address, has_scheme

if TYPE_CHECKING:
    from delta_ds.kernel.storage.remote_files import FileInfo, Filesystem, Stream

_T = TypeVar("_T")

_PARALLEL = 16
_PATIENCE = 10  # how often a store may answer that it is busy, or with another request on the same object
_DELETES_A_REQUEST = 1000  # limit of S3's DeleteObjects
_MISNAMED = re.compile(r"unexpected keyword argument '(\w+)'")

# Under which key the filesystems of fsspec tell the time and the tag of an object.
_TIME_KEYS = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")
_TAG_KEYS = ("ETag", "etag", "generation")


class RemoteStorage(Storage):
    """A table on an fsspec filesystem, which is built when first needed, once per process."""

    def __init__(self, address: Address, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(address, options)
        self._opened: tuple[int, Filesystem] | None = None

    @property
    def _fs(self) -> Filesystem:
        # Clients do not survive a fork, and Spark forks its Python workers.
        if self._opened is None or self._opened[0] != os.getpid():
            with self._errors(""):
                self._opened = (os.getpid(), clients.client(self.address, self.options))
        return self._opened[1]

    def list_from(self, directory: str, start: str = "") -> list[FileStatus]:
        with self._errors(directory):
            located = self._locate(directory)
            if self.address.scheme == "s3":
                found = remote_files.list_s3(self._fs, located, start)
            else:
                found = self._list_folder(located)
            prefix = f"{directory}/" if directory else ""
            names = sorted(name for name in found if name >= start)
            return [self._file_status(prefix + name, found[name]) for name in names]

    def _list_folder(self, located: str) -> dict[str, FileInfo]:
        try:
            return remote_files.list_folder(self._fs, located)
        except FileNotFoundError:
            store_errors.require_bucket(self.address.scheme, self._fs, located)
            raise

    def _entries_below(self, folder: str, enter: Callable[[str], bool]) -> Iterator[Entry]:
        with self._errors(folder):
            located, fs = self._locate(folder), self._fs
        below = f"{located.strip('/')}/" if located.strip("/") else ""
        prefix = f"{folder}/" if folder else ""
        if self.address.scheme == "s3":
            pages = remote_files.pages_s3(fs, located)
        elif self.address.scheme in remote_files.FLAT:
            pages = remote_files.one_page(fs, located)
        else:
            pages = remote_files.pages_by_folder(
                fs, located, lambda name: enter(prefix + name.strip("/").removeprefix(below))
            )
        while True:
            try:
                with self._errors(folder):
                    page = next(pages, None)
            except FileNotFoundError:
                return
            if page is None:
                return
            for info in page:
                name = info["name"].lstrip("/")
                path = prefix + name.removeprefix(below).rstrip("/")
                if name.startswith(below) and path != prefix:
                    status = self._file_status(path, info)
                    is_folder = name.endswith("/") or info.get("type") == "directory"
                    yield path, status.size, status.modified_ms, is_folder

    def read(self, path: str) -> bytes:
        with self._errors(path):
            return self._fs.cat_file(self._locate(path))

    def _read_range(self, path: str, offset: int, length: int) -> bytes:
        with self._errors(path):
            return self._fs.cat_file(self._locate(path), start=offset, end=offset + length)

    def read_many(self, paths: Sequence[str]) -> list[bytes]:
        return _in_parallel(self.read, paths)

    def open(self, path: str) -> BinaryIO:
        return self._input(path, self._open(path))

    def open_known(self, path: str) -> OpenedFile:
        stream = self._open(path)
        details = getattr(stream, "details", None)
        if not isinstance(details, Mapping):
            stream.close()
            return super().open_known(path)
        known = self._file_status(path, details)
        # Requests of the client of S3 ask for the object that was opened; those of others do not.
        asks_for_it = any("IfMatch" in getattr(stream, name, ()) for name in ("read_kw", "req_kw"))
        return OpenedFile(self._input(path, stream), known, lambda: asks_for_it or self.is_still(known))

    def _open(self, path: str) -> Stream:
        with self._errors(path):
            stream = self._fs.open(self._locate(path), "rb")
            if self.address.scheme == "memory":  # where all readers of a file share its position
                return io.BytesIO(cast("io.BytesIO", stream).getvalue())
            return stream

    def _input(self, path: str, stream: Stream) -> BinaryIO:
        return cast(BinaryIO, RemoteInput(stream, lambda: self._errors(path)))

    def status(self, path: str) -> FileStatus:
        with self._errors(path):
            info = self._fs.info(self._locate(path))
            if info["type"] != "file":
                raise FileNotFoundError(path)
            return self._file_status(path, info)

    def exists(self, path: str) -> bool:
        # Not fsspec's own `exists`, which answers False to every error, a refused login included.
        try:
            with self._errors(path):
                self._fs.info(self._locate(path))
        except FileNotFoundError:
            return False
        return True

    def create(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self.check_create()
        located = self._locate(self._inside(path))
        if self.address.scheme not in conditional_put.STORES:
            self._create_unsafely(path, data)
            return
        for attempt in range(_PATIENCE):
            try:
                with self._errors(path, "write", NOTHING_WRITTEN):
                    fs = self._fs
                conditional_put.put_if_absent(self.address.scheme, fs, located, data)
                return
            except StorageError:
                raise
            except Exception as error:
                self._judge(path, error, last=attempt == _PATIENCE - 1)
            pause(attempt)

    def _judge(self, path: str, error: Exception, *, last: bool) -> None:
        """Raise what an error of a conditional put comes to; return if it is to be asked again."""
        meaning = conditional_put.meaning_of_error(error)
        if meaning == "exists":
            store_errors.raise_alone(FileExistsError(f"{self.describe(path)} exists already"))
        refused = meaning == "refused" or (meaning == "busy" and last)
        explained = self._explained(path, "write", error, NOTHING_WRITTEN) if refused else None
        if meaning in ("unknown", "refused"):
            self._forget_client()
        if explained is not None and conditional_put.is_not_offered(error):
            raise conditional_put.NotOfferedError(explained.text, parameters=explained.parameters) from None
        if explained is not None:
            store_errors.raise_alone(explained)
        if meaning == "conflict" and last:
            # Perhaps with a request of this very client, which it took for lost.
            store_errors.raise_alone(
                UncertainWriteError(
                    f"cannot write {self.describe(path)}: the store answered {_PATIENCE} times that another request on "
                    "it is under way; it may or may not be there",
                    parameters={"path": path},
                )
            )
        if meaning == "unknown":
            store_errors.raise_alone(self._no_answer(path, error))

    def _create_unsafely(self, path: str, data: bytes) -> None:
        if self.exists(path):
            raise FileExistsError(f"{self.describe(path)} exists already")
        self.write(path, data)

    @property
    def creates_exactly(self) -> bool:
        return self.address.scheme == "memory"

    def check_create(self) -> None:
        if self.address.scheme in conditional_put.STORES or not allows_unsafe_commits(self.options):
            conditional_put.check_supported(self.address.scheme, self._filesystem, self.url)
        else:
            UNSAFE_COMMITS.log(table=self.url, reason="store_cannot_create_exclusively")

    @property
    def endpoint(self) -> str:
        """The address of the server that the client of S3 talks to."""
        with self._errors(""):
            return str(self._fs.s3.meta.endpoint_url)

    def _filesystem(self) -> Filesystem:
        with self._errors(""):
            return self._fs

    def write(self, path: str, data: bytes) -> None:
        located = self._locate(self._inside(path))
        with self._errors(path, "write", "it may hold the old or the new content"):
            remote_files.put(self._fs, self.address.scheme, located, data)

    def open_output(self, path: str) -> BinaryIO:
        located = self._locate(self._inside(path))
        with self._errors(path, "write", NOT_REFERENCED):
            if self.address.scheme not in remote_files.FLAT:
                self._fs.makedirs(posixpath.dirname(located), exist_ok=True)
            stream = self._fs.open(located, "wb")

        def written(size: int) -> None:
            remote_files.check_size(self._fs, self.address.scheme, located, size)

        errors = partial(self._errors, path, "write", NOT_REFERENCED)
        return cast(BinaryIO, RemoteOutput(stream, errors, written))

    def fsync(self, paths: Sequence[str]) -> None:
        """Nothing to do: a file is safe in the store once it is closed."""

    def replace_file(self, path: str) -> AbstractContextManager[BinaryIO]:
        located = self._locate(self._inside(path))
        return remote_files.replace_on_close(
            lambda: self._fs,
            self.address.scheme,
            located,
            lambda: self._errors(path, "write", NOTHING_WRITTEN),
            lambda: self._unanswered(path),
        )

    @contextmanager
    def _unanswered(self, path: str) -> Iterator[None]:
        """Errors of a write that may have happened all the same."""
        try:
            yield
        except Exception as error:
            store_errors.raise_alone(self._no_answer(path, error))

    def _no_answer(self, path: str, error: Exception) -> UncertainWriteError:
        return UncertainWriteError(
            f"no answer to the write of {self.describe(path)}: {self._redacted(error)}; it may or may not be there",
            parameters={"path": path},
        )

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._inside(path)
        if self.address.scheme == "s3":
            for start in range(0, len(paths), _DELETES_A_REQUEST):
                self._delete_s3(paths[start : start + _DELETES_A_REQUEST])
        else:
            _in_parallel(self._delete_one, paths)

    def delete_empty_folders(self, paths: Sequence[str]) -> list[str]:
        with self._errors("", "delete"):
            delete = getattr(self._fs, "delete_empty_folder", None)
        if delete is None:
            return []
        deleted = []
        for path in sorted(paths, key=len, reverse=True):  # inner ones first
            with self._errors(path, "delete"):
                if delete(self._locate(self._inside(path))):
                    deleted.append(path)
        return deleted

    def _delete_one(self, path: str) -> None:
        try:
            with self._errors(path, "delete"):
                self._fs.rm_file(self._locate(self._inside(path)))
        except FileNotFoundError:
            return

    def _delete_s3(self, paths: Sequence[str]) -> None:
        # Not fsspec's own: it looks every path up, takes `[` and `*` for patterns, and swallows errors.
        bucket = self.address.authority
        with self._errors(paths[0], "delete"):
            keys = [self._fs.split_path(self._locate(self._inside(path)))[1] for path in paths]
            answer = self._fs.call_s3(
                "delete_objects",
                Bucket=bucket,
                Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True},
            )
        failed = [e for e in answer.get("Errors", ()) if e.get("Code") not in ("NoSuchKey", "NoSuchVersion")]
        if failed:
            raise StorageError(
                f"cannot delete {len(failed)} of {len(keys)} files of {self.url}, "
                f"s3://{bucket}/{failed[0].get('Key')} among them: {failed[0].get('Code')}",
                parameters={"path": failed[0].get("Key")},
            )

    def _locate(self, path: str) -> str:
        root = self.address
        if has_scheme(path):
            return self._fs._strip_protocol(path)
        if path.startswith("/"):
            return self._fs._strip_protocol(str(Address(root.scheme, root.authority, path)))
        base = self._fs._strip_protocol(str(root))
        relative = self._relative(path)
        return f"{base.rstrip('/')}/{relative}" if relative else base

    def _file_status(self, path: str, info: FileInfo) -> FileStatus:
        timestamp = next((info[key] for key in _TIME_KEYS if info.get(key) is not None), None)
        tag = next((info[key] for key in _TAG_KEYS if info.get(key)), None)
        if self.address.scheme == "memory":  # its listing tells only when an object was created
            timestamp = self._fs.modified(info["name"])
            tag = timestamp.isoformat()  # two objects may be of one millisecond
        if self.address.scheme == "webhdfs":
            timestamp = info.get("modificationTime", 0) / 1000
        etag = None if tag is None else str(tag).strip('"')
        return FileStatus(path, int(info["size"]), _milliseconds(timestamp), etag)

    @contextmanager
    def _errors(self, path: str, verb: str = "read", outcome: str = "") -> Iterator[None]:
        """Map what the stores raise, each in its own way, and keep secrets out of the text.

        The original error is cut off: its text may hold what ours does not.
        """
        try:
            yield
        except DeltaError:
            raise
        except Exception as error:
            store_errors.raise_alone(self._mapped(path, verb, error, outcome))

    def _mapped(self, path: str, verb: str, error: Exception, outcome: str) -> Exception:
        misnamed = _MISNAMED.search(str(error)) if isinstance(error, TypeError) else None
        if misnamed:  # inside options such as `client_kwargs`, which go on to other packages
            return InvalidOptionError(
                f"the store of {self.url} takes no option {misnamed[1]!r}: {self._redacted(error)}",
                parameters={"option": misnamed[1]},
            )
        missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
        if missing and verb != "write" and store_errors.problem_of(error) is None:
            return FileNotFoundError(f"{self.describe(path)} does not exist")
        explained = self._explained(path, verb, error, outcome)
        if not isinstance(error, FileExistsError):
            self._forget_client()
        return explained

    def _explained(self, path: str, verb: str, error: Exception, outcome: str = "") -> StorageError:
        """The error of a store, with its cause and what to do where that is known."""
        problem = store_errors.problem_of(error)
        client = self._opened[1] if self._opened is not None else None
        if problem is None and client is not None and store_errors.is_bare_refusal(error):
            problem = store_errors.asked_again(self.address.scheme, client, self._locate(""))
        if problem is None:
            text = f"cannot {verb} {self.describe(path)}: {self._redacted(error)}"
            return StorageError(f"{text}; {outcome}" if outcome else text, parameters={"path": path})
        store = "" if client is None else clients.endpoint_of(self.address.scheme, client)
        if problem.plain and client is not None:
            problem = store_errors.asked_again(self.address.scheme, client, self._locate("")) or problem
        return problem.error(self.address, self.describe(path), verb, store, self._hidden, outcome)

    def _forget_client(self) -> None:
        """Begin anew with the next call: what a client was refused for may be given by then."""
        opened, self._opened = self._opened, None
        if opened is not None:
            clients.forget(opened[1])

    def _redacted(self, error: Exception) -> str:
        # In one line: some clients put the whole answer into their errors.
        return " ".join(self._hidden(f"{type(error).__name__}: {error}").split()).removesuffix(":")

    def _hidden(self, text: str) -> str:
        return hidden(text, self.address, self.options)


def _in_parallel(function: Callable[[str], _T], paths: Sequence[str]) -> list[_T]:
    if len(paths) < 2:
        return [function(path) for path in paths]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(_PARALLEL, len(paths))) as pool:
        return list(pool.map(function, paths))


def _milliseconds(timestamp: datetime | str | float | None) -> int:
    if timestamp is None:
        return 0
    if isinstance(timestamp, str):
        timestamp = datetime.fromisoformat(timestamp.replace("Z", "+00:00"))
    if isinstance(timestamp, datetime):
        aware = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=timezone.utc)
        return round(aware.timestamp() * 1000)
    return round(float(timestamp) * 1000)
