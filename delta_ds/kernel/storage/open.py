"""Open the storage and the log store of a table's address."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from delta_ds.exceptions import StorageError
from delta_ds.kernel.base.environment import absolute
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.log_store import ConditionalLogStore, LogStore
from delta_ds.kernel.storage.store_options import (
    COMMIT_COORDINATOR,
    COORDINATOR_OPTIONS,
    store_options,
    uses_coordinator,
    uses_dynamodb,
)
from delta_ds.kernel.storage.uri import Address, parse_address


def open_storage(
    path: str | os.PathLike[str] | Storage, storage_options: Mapping[str, Any] | None = None
) -> Storage:
    """The storage of a table.

    Parameters
    ----------
    path
        A local path (made absolute at once, so that it stays the same folder in other processes, and wherever this
        one goes later), `file:/...`, or a URL:
        `memory://`, `s3://` (also `s3a`, `s3n`), `gs://`, `abfss://` (also `wasbs`, `az`), `hdfs://`, or any
        other that fsspec knows. `~` is not expanded.
    storage_options
        What the fsspec filesystem takes, by its own names or by those of Hadoop, delta-rs and the clouds' tools;
        names that are not known are refused. Of no meaning to a local table, which refuses only what no store knows.
        Those of `store_options` are this package's own and choose how commits are published.

    Raises
    ------
    StorageError
        The path is empty or malformed. Whether the table exists is not looked at.
    InvalidOptionError
        A storage option cannot be honoured, or contradicts another.
    """
    if isinstance(path, Storage):
        return path
    text = os.fspath(path)
    if not isinstance(text, str):
        raise StorageError(f"the path of a table is text, not {type(text).__name__}")
    address = parse_address(text)
    if storage_options and uses_coordinator(storage_options):
        return _coordinated(address, storage_options)
    if storage_options:
        _check_no_coordinator(storage_options)
    return open_plain(address, storage_options)


def open_plain(address: Address, storage_options: Mapping[str, Any] | None) -> Storage:
    """The table's own storage, whoever ratifies its commits."""
    if address.scheme == "file":
        from delta_ds.kernel.storage.local import LocalStorage

        _check_local(storage_options)
        return LocalStorage(Address("file", "", absolute(address.path)), storage_options)
    from delta_ds.kernel.storage.settings.translate import to_filesystem_options

    options = to_filesystem_options(address, storage_options or {})
    if uses_dynamodb(options):
        from delta_ds.kernel.storage.dynamodb_log_store import DynamoDBStorage

        return DynamoDBStorage(address, options)
    from delta_ds.kernel.storage.remote import RemoteStorage

    return RemoteStorage(address, options)


def _coordinated(address: Address, storage_options: Mapping[str, Any]) -> Storage:
    from delta_ds.conditions.coordination import COORDINATOR_AND_DYNAMODB
    from delta_ds.kernel.storage.coordination.coordinator import coordinator_for
    from delta_ds.kernel.storage.coordination.storage import CoordinatedStorage

    if uses_dynamodb(storage_options):
        raise COORDINATOR_AND_DYNAMODB()
    coordinator_for(storage_options)  # what does not fit is refused at once
    if address.scheme == "file":
        address = Address("file", "", absolute(address.path))
        _check_local(storage_options)
    return CoordinatedStorage(address, storage_options, open_plain)


def _check_no_coordinator(storage_options: Mapping[str, Any]) -> None:
    """Refuse options of a coordinator that is not named: without it they would mean nothing."""
    names = sorted(store_options(storage_options).keys() & set(COORDINATOR_OPTIONS))
    if names:
        from delta_ds.conditions.coordination import COORDINATOR_OPTION_MISSING

        raise COORDINATOR_OPTION_MISSING(
            option=COMMIT_COORDINATOR, what=f"{names[0]!r} is for the coordinator that it names"
        )


def _check_local(storage_options: Mapping[str, Any] | None) -> None:
    if storage_options:
        from delta_ds.kernel.storage.clients import check_local

        check_local(storage_options)


def log_store_for(storage: Storage) -> LogStore:
    """The way to publish commits that fits a storage and its options.

    Raises
    ------
    StorageError
        The store cannot create a commit exactly once, and `allowUnsafeCommits` is not set.
    """
    if uses_coordinator(storage.options):
        from delta_ds.kernel.storage.coordination.storage import CoordinatedStorage

        if isinstance(storage, CoordinatedStorage):
            plain = log_store_for(storage.plain)
            return storage.log_store() if storage.managed else plain
    if storage.address.scheme == "s3" and uses_dynamodb(storage.options):
        from delta_ds.kernel.storage.dynamodb_log_store import DynamoDBLogStore, DynamoDBStorage

        if isinstance(storage, DynamoDBStorage):
            return DynamoDBLogStore(storage)
    storage.check_create()
    if storage.address.scheme == "s3":
        from delta_ds.kernel.storage.conditional_put import check_endpoint
        from delta_ds.kernel.storage.log_store import S3LogStore

        check_endpoint(storage)
        return S3LogStore(storage)
    return ConditionalLogStore(storage)
