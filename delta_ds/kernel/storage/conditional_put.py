"""Put if absent on each kind of remote store, and the meaning of its errors.

| store | how |
| --- | --- |
| S3 | `PutObject` with `If-None-Match: *` |
| Google Cloud Storage | `ifGenerationMatch=0` |
| Azure | Put Blob with `overwrite=False`, which is `If-None-Match: *` |
| memory | one lock for the process |
| HDFS, WebHDFS | a temporary file, then a rename that fails if the target exists |

`hdfs://` needs hdfs-native for it: pyarrow's `Move` deletes an existing target and renames again (Arrow,
`cpp/src/arrow/filesystem/hdfs.cc`, `HadoopFileSystem::Impl::Move`).

Probe whether an S3-compatible server honours `If-None-Match`.

Some servers ignore the header and overwrite: two writers would both believe to have a version. Amazon's own
endpoints are not asked.
"""

from __future__ import annotations

import inspect
import json
import os
import posixpath
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from delta_ds.events.storage import PROBE_LEFT_BEHIND
from delta_ds.exceptions import StorageError, UncertainWriteError
from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.deleter import PROBES
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.store_errors import pause
from delta_ds.kernel.storage.store_options import ALLOW_UNSAFE

if TYPE_CHECKING:
    from delta_ds.kernel.storage.remote_files import Filesystem


# --- conditional puts as one request each: clients of stores repeat requests on their own, and then know too little
# A refusal of the third request says nothing of the first, which may have been done and its answer lost, or may still
# be on its way. So nobody repeats a request here but who judges every answer: `RemoteStorage.create` and the log store.

_once: ContextVar[bool] = ContextVar("delta_ds_once", default=False)
_HOOK = "delta-ds-once"


def put_s3(fs: Filesystem, path: str, data: bytes) -> None:
    """`PutObject` with `If-None-Match: *` through s3fs."""
    from fsspec.asyn import sync  # type: ignore[import-untyped,unused-ignore]

    # Not `pipe_file`: older s3fs do not know its `mode` and would overwrite.
    bucket, key, _ = fs.split_path(path)
    sync(fs.loop, _put_s3, fs, {"Bucket": bucket, "Key": key, "Body": data, "IfNoneMatch": "*"})
    fs.invalidate_cache(path)


async def _put_s3(fs: Filesystem, request: dict[str, Any]) -> None:
    await fs.set_session()
    client = await fs.get_s3(request["Bucket"])
    client.meta.events.register_first("needs-retry.s3.PutObject", _end_at_once, unique_id=_HOOK)
    token = _once.set(True)
    try:
        await client.put_object(**fs._get_s3_method_kwargs(client.put_object, **request))
    finally:
        _once.reset(token)


def _end_at_once(
    response: Any = None, caught_exception: Exception | None = None, operation: Any = None, **_: Any
) -> None:
    """Botocore asks whether to repeat: raise instead, but where S3 says that the bucket lives elsewhere."""
    if not _once.get():
        return
    if caught_exception is not None:
        raise caught_exception
    answer, parsed = response
    if answer.status_code >= 500 or answer.status_code in (408, 429):
        from botocore.exceptions import ClientError  # type: ignore[import-untyped,unused-ignore]

        raise ClientError(parsed, operation.name)


def put_gs(fs: Filesystem, path: str, data: bytes) -> None:
    """An upload with `ifGenerationMatch=0` through gcsfs."""
    request = getattr(fs._request, "__wrapped__", None)
    if request is None:  # a gcsfs that repeats in another way
        fs.pipe_file(path, data, mode="create")
        return
    from fsspec.asyn import sync  # type: ignore[import-untyped,unused-ignore]

    # The same filesystem but for its requests, which are not repeated.
    once = object.__new__(type(fs))
    once.__dict__.update(fs.__dict__, _request=request.__get__(once))
    sync(fs.loop, once._pipe_file, path, data, mode="create")


def put_azure(fs: Filesystem, path: str, data: bytes) -> None:
    """Put Blob with `If-None-Match: *` through adlfs."""
    fs.pipe_file(path, data, overwrite=False, retry_total=0)


# --- put if absent on each kind of remote store, and the meaning of its errors

Meaning = Literal["exists", "conflict", "busy", "refused", "unknown"]

_CONFLICTS = frozenset({"ConditionalRequestConflict", "OperationAborted"})
_EXISTS = frozenset({"PreconditionFailed", "412"})

# Raised before anything is sent, or an answer of the store that it did not do it.
_REFUSED_TYPES = (PermissionError, FileNotFoundError, ImportError, TypeError, ValueError, NotImplementedError)
_REFUSED_NAMES = frozenset({"NoCredentialsError", "PartialCredentialsError", "ParamValidationError"})
_BUSY = frozenset({"SlowDown", "TooManyRequests", "RequestLimitExceeded"})

_memory_lock = threading.Lock()


class NothingPublishedError(OSError):
    """A step before the one that decides has failed."""


class NotOfferedError(StorageError):
    """The server does not know conditional puts; nothing was written."""


def put_if_absent(scheme: str, fs: Filesystem, path: str, data: bytes) -> None:
    """Put the object, in one step of the store.

    Parameters
    ----------
    scheme
        Canonical name of the store, see `Address`.
    fs
        The fsspec filesystem.
    path
        As the filesystem names it.
    data
        The content.

    Raises
    ------
    Exception
        Whatever the filesystem raises; `meaning_of_error` tells what it is.
    """
    _PUTS[scheme](fs, path, data)


def check_supported(scheme: str, fs: Callable[[], Filesystem], address: str) -> None:
    """Raise `StorageError` if the store, or the installed client of it, cannot put if absent."""
    if scheme not in _PUTS:
        raise StorageError(
            f"cannot write to {address}: {scheme}:// cannot create a file exactly once, so two writers could take "
            f"the same version; nothing was written; if there is only ever one writer, set the storage "
            f"option {ALLOW_UNSAFE}=true",
            parameters={"table": address, "scheme": scheme},
        )
    old = None
    if scheme == "s3" and not _s3_knows_condition(fs()):
        old = "botocore>=1.35.20"
    elif scheme == "hdfs" and not hasattr(fs(), "rename_if_absent"):
        old = "hdfs-native>=0.11"
    elif scheme == "gs" and "mode" not in inspect.signature(fs()._pipe_file).parameters:
        old = "gcsfs>=2025.2"
    if old:
        raise StorageError(
            f"cannot write to {address}: what is installed cannot put an object only if there is none; nothing was "
            f"written; pip install '{old}'",
            parameters={"table": address},
        )


def meaning_of_error(error: BaseException) -> Meaning:
    """What an error of `put_if_absent` says.

    Returns
    -------
    str
        `exists`: there is an object. `conflict`: another request is under way, ask again. `busy`: nothing was
        written, ask again. `refused`: nothing was written. `unknown`: it may have been written.
    """
    for part in _chain(error):
        code, status = _answer(part)
        if isinstance(part, FileExistsError) or code in _EXISTS or status == 412:
            return "exists"
        if code in _CONFLICTS or status == 409:
            return "conflict"
        if code in _BUSY or status == 429:
            return "busy"
        if code == "NotImplemented" or status == 501:
            return "refused"
        if status is not None and 400 <= status < 500 and status != 408:
            return "refused"
        if status is not None:
            return "unknown"
    # An answer that cannot be understood is a `ValueError` too, and none that says no.
    garbled = isinstance(error, (json.JSONDecodeError, UnicodeError))
    refused = not garbled and (
        isinstance(error, (*_REFUSED_TYPES, NothingPublishedError)) or type(error).__name__ in _REFUSED_NAMES
    )
    forbidden = isinstance(error, OSError) and str(error).startswith("Forbidden")  # as gcsfs has it
    return "refused" if refused or forbidden else "unknown"


def is_not_offered(error: BaseException) -> bool:
    """Whether a store has answered that it does not know the condition of a put."""
    return any(code == "NotImplemented" or status == 501 for code, status in map(_answer, _chain(error)))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what caused it: filesystems wrap the store's own words, not always in a telling type."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _answer(error: BaseException) -> tuple[str | None, int | None]:
    """Code and HTTP status of a store's answer, if the error holds one."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # botocore
        code = str(response.get("Error", {}).get("Code", "")) or None
        return code, response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    answered = getattr(response, "status_code", None)
    if isinstance(answered, int):  # requests
        return None, answered
    for name in ("status_code", "code", "status"):  # azure-core, gcsfs, aiohttp
        status = getattr(error, name, None)
        if isinstance(status, int) and 100 <= status < 600:
            return None, status
    return None, None


def _s3_knows_condition(fs: Filesystem) -> bool:
    """Older botocore leave out what they do not know, and the object would be overwritten."""
    client = fs.s3
    return "IfNoneMatch" in client.meta.service_model.operation_model("PutObject").input_shape.members


def _put_memory(fs: Filesystem, path: str, data: bytes) -> None:
    with _memory_lock:
        fs.pipe_file(path, data, mode="create")


def _put_webhdfs(fs: Filesystem, path: str, data: bytes) -> None:
    folder, name = posixpath.split(path)
    temporary = f"{folder}/.{name}.{os.urandom(8).hex()}.tmp"
    fs.makedirs(folder, exist_ok=True)
    fs.pipe_file(temporary, data)
    renamed = False
    try:
        answer = fs._call("RENAME", method="put", path=temporary, destination=path, renameoptions="NONE")
        # A namenode raises if the target exists; a gateway (HttpFS) only says false.
        renamed = not answer.content or json.loads(answer.content).get("boolean") is True
    except RuntimeError as error:
        if "already exists" not in str(error):
            raise
    finally:
        # Gone if the rename has happened after all; what is left is hidden, and no error of the put.
        if not renamed:
            with suppress(Exception):
                fs.rm_file(temporary)
    if not renamed:
        if not fs.exists(path):
            raise OSError("the rename failed, although there is no such file")
        raise FileExistsError(path)


def _put_hdfs(fs: Filesystem, path: str, data: bytes) -> None:
    folder, name = posixpath.split(path)
    temporary = f"{folder}/.{name}.{os.urandom(8).hex()}.tmp"
    renamed = False
    try:
        try:
            fs.makedirs(folder, exist_ok=True)
            fs.pipe_file(temporary, data)
        except Exception as error:
            raise NothingPublishedError(f"{type(error).__name__}: {error}") from None
        try:
            fs.rename_if_absent(temporary, path)
        except FileNotFoundError as error:
            # The temporary file is gone: this client has asked before, and the answer got lost.
            raise OSError(str(error)) from None
        renamed = True
    finally:
        # What is left is hidden, and no error of the put.
        if not renamed:
            with suppress(Exception):
                fs.rm_file(temporary)


_PUTS: dict[str, Callable[[Filesystem, str, bytes], None]] = {
    "s3": put_s3,
    "gs": put_gs,
    "abfs": put_azure,
    "memory": _put_memory,
    "hdfs": _put_hdfs,
    "webhdfs": _put_webhdfs,
}

# Stores that can put an object only if there is none.
STORES = frozenset(_PUTS)


_AMAZON = (".amazonaws.com", ".amazonaws.com.cn")

# After so many requests a server is too unsteady.
_ATTEMPTS = 8

_trusted: set[tuple[str, str]] = set()


def check_endpoint(storage: Storage) -> None:
    """Create an object twice, once per server and bucket in a process; the second time must fail.

    The server is the one that the client says: options, environment and configuration files all have a say in it. One
    that is not known to be Amazon's is asked.

    Raises
    ------
    StorageError
        The server overwrote the first object, or cannot be written to; no commit was written.
    """
    endpoint: str = getattr(storage, "endpoint", "")
    key = (endpoint, storage.address.authority)
    if storage.address.scheme != "s3" or key in _trusted or _is_amazon(endpoint):
        return
    probe = f"_delta_log/.create_once_probe.{os.urandom(8).hex()}"
    try:
        _create_twice(storage, probe)
    except FileExistsError:
        _trusted.add(key)
        return
    finally:
        _forget(storage, probe)
    raise StorageError(
        f"cannot write to {storage.url}: its server overwrites an object that must only be created if there is "
        "none, so two writers could take the same version; nothing was written; update the server, or use the "
        "storage option logStore=dynamodb",
        parameters={"table": storage.url},
    )


def _create_twice(storage: Storage, probe: str) -> None:
    """Create an object until that was answered well twice; a lost answer proves nothing, and it is asked again.

    Raises
    ------
    FileExistsError
        The server does not overwrite.
    StorageError
        It refuses, or hardly ever answers.
    """
    done = 0
    for attempt in range(_ATTEMPTS):
        lost = _create(storage, probe, attempt)
        done += lost is None
        if done == 2:
            return
        if lost is not None:
            pause(attempt)
    assert lost is not None
    raise StorageError(f"{lost.text}; no commit was written", parameters=lost.parameters) from lost


def _create(storage: Storage, probe: str, attempt: int) -> UncertainWriteError | None:
    """Create the object; the error of an answer that was lost."""
    try:
        storage.create(probe, f"{attempt}".encode())
    except UncertainWriteError as error:
        return error
    return None


def _is_amazon(endpoint: str) -> bool:
    return (urlsplit(endpoint).hostname or "").endswith(_AMAZON)


def _forget(storage: Storage, probe: str) -> None:
    """Delete the object; who may not delete may commit all the same."""
    try:
        deleter.delete(storage, PROBES, [probe])
    except StorageError as error:
        PROBE_LEFT_BEHIND.log(path=storage.describe(probe), reason=error)
