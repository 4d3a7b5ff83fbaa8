"""Probe whether an S3-compatible server honours `If-None-Match`.

Some servers ignore the header and overwrite: two writers would both believe to have a version. Amazon's own
endpoints are not asked.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from delta_ds.events.storage import PROBE_LEFT_BEHIND
from delta_ds.exceptions import StorageError, UncertainWriteError
from delta_ds.kernel.storage import deleter
from delta_ds.kernel.storage.deleter import PROBES
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.store_errors import pause

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
