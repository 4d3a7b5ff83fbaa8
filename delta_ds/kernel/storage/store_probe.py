"""Find out whether an S3-compatible server honours `If-None-Match`, before a commit relies on it.

Some servers ignore the header and overwrite: two writers would both believe to have a version. Amazon's own
endpoints are not asked.
"""

from __future__ import annotations

import os

from delta_ds.exceptions import StorageError
from delta_ds.kernel.storage.filesystem import Storage

_trusted: set[tuple[str, str]] = set()


def check_endpoint(storage: Storage) -> None:
    """Create an object twice, once per server and bucket in a process; the second time must fail.

    Raises
    ------
    StorageError
        The server overwrote the first object, or cannot be written to; no commit was written.
    """
    client = storage.options.get("client_kwargs")
    nested = client.get("endpoint_url") if isinstance(client, dict) else None
    endpoint = str(storage.options.get("endpoint_url") or nested or os.environ.get("AWS_ENDPOINT_URL_S3", ""))
    key = (endpoint, storage.address.authority)
    if storage.address.scheme != "s3" or not endpoint or ".amazonaws.com" in endpoint or key in _trusted:
        return
    probe = f"_delta_log/.create_once_probe.{os.urandom(8).hex()}"
    try:
        storage.create(probe, b"1")
        storage.create(probe, b"2")
    except FileExistsError:
        _trusted.add(key)
        return
    finally:
        storage.delete([probe])
    raise StorageError(
        f"cannot write to {storage.url}: its server overwrites an object that must only be created if there is "
        "none, so two writers could take the same version; nothing was written; update the server, or use the "
        "storage option logStore=dynamodb",
        parameters={"table": storage.url},
    )
