"""The table that a write goes to, and whether there is anything to do."""

from __future__ import annotations

from delta_ds.conditions.commands import CREATE_TABLE_OVER_TABLE
from delta_ds.conditions.write import PATH_EXISTS
from delta_ds.exceptions import DeltaError, NotADeltaTableError
from delta_ds.kernel.format.options.write import ERROR, IGNORE, NewTableOptions, WriteOptions
from delta_ds.kernel.log.snapshot import Snapshot, open_snapshot
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.transaction.alter.place import check_place_is_free
from delta_ds.kernel.transaction.transaction import Transaction
from delta_ds.kernel.transaction.write.intent import WriteIntent
from delta_ds.records import dataclass


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """The table that a write goes to.

    Attributes
    ----------
    intent
        What the write is asked to do.
    storage
        The table's, or where it shall be.
    snapshot
        The version to start from; None for a new table.
    nothing_to_do
        The table has the write's transaction already, or the save mode is `ignore` and there is a table.
    """

    intent: WriteIntent
    storage: Storage
    snapshot: Snapshot | None
    nothing_to_do: bool = False


def find_target(intent: WriteIntent, transaction: Transaction | None = None) -> WriteTarget:
    """The table that a write goes to.

    Parameters
    ----------
    transaction
        On the version to start from, where one is open already; else the newest is looked up.

    Raises
    ------
    TableExistsError
        The save mode is `errorifexists`, and there is one; or a statement creates a table where other files are.
    """
    options = intent.options
    if transaction is not None:
        storage, snapshot = transaction.storage, transaction.base
    else:
        storage = open_storage(options.path, options.storage_options)
        snapshot = newest_snapshot(storage)
    if snapshot is None and options.definition is not None and options.if_exists is not None:
        check_place_is_free(storage)
    nothing = snapshot is not None and (
        has_transaction(snapshot, options.txn) or keeps_existing_table(options, snapshot.version, storage.url)
    )
    return WriteTarget(intent, storage, snapshot, nothing)


def newest_snapshot(storage: Storage) -> Snapshot | None:
    """The newest version of the table, which a write starts from; None where there is no table."""
    try:
        return open_snapshot(storage)
    except NotADeltaTableError:
        return None


def has_transaction(snapshot: Snapshot, txn: tuple[str, int] | None) -> bool:
    """Whether the table has an application's transaction, or a later one (protocol-checklist TXN-W-02)."""
    if txn is None:
        return False
    application, version = txn
    recorded = snapshot.txns.get(application)
    return recorded is not None and recorded >= version


def keeps_existing_table(options: WriteOptions, version: int, table: str) -> bool:
    """Whether a write leaves the table that it found as it is.

    Parameters
    ----------
    options
        Of the write.
    version
        Of the table that is there.
    table
        Its address, for messages.

    Raises
    ------
    TableExistsError
        `ifExists` is `error`.
    """
    if options.if_exists == ERROR:
        raise table_exists(options.definition, version, table)
    return options.if_exists == IGNORE


def table_exists(definition: NewTableOptions | None, version: int, table: str) -> DeltaError:
    """The error of a write that makes a table where there is one; see `keeps_existing_table`."""
    if definition is not None and definition.name is not None:
        return CREATE_TABLE_OVER_TABLE(tableId=definition.name, tableLocation=table, version=version)
    return PATH_EXISTS(path=table, version=version)
