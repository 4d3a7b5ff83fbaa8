"""`WriteIntent`: what a write is asked to do, whichever way it came in, checked before any table is looked at.

Every way of writing rows makes one: `df.write` and statements, streams, `DeltaLog.write`, the rows of commands. What it
holds is all that `plan_write` goes by.

Source: delta-spark, `WriteIntoDelta` and `DeltaSink`.

The table that a write goes to, and whether there is anything to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delta_ds.conditions.commands import CREATE_TABLE_OVER_TABLE
from delta_ds.conditions.options import PATH_EXISTS, UNSUPPORTED_OUTPUT_MODE
from delta_ds.conditions.record import OUTPUT_MODE_NOT_ALLOWED
from delta_ds.conditions.session import INVALID_SAVE_MODE
from delta_ds.exceptions import DeltaError, InvalidOptionError, NotADeltaTableError
from delta_ds.kernel.format.options.settings import SessionFacts
from delta_ds.kernel.format.options.write import (
    BATCH_ONLY,
    ERROR,
    IGNORE,
    NewTableOptions,
    WriteOptions,
    parse_write_options,
    with_call,
    with_settings,
)
from delta_ds.kernel.log.snapshot import Snapshot, open_snapshot
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.transaction.alter.create import check_place_is_free
from delta_ds.kernel.transaction.transaction import Transaction
from delta_ds.records import dataclass, replace

APPEND, OVERWRITE = "append", "overwrite"
COMPLETE, UPDATE = "complete", "update"
_SAVE_MODES = {
    "append": APPEND,
    "overwrite": OVERWRITE,
    "ignore": IGNORE,
    "error": ERROR,
    "errorifexists": ERROR,
    "default": ERROR,
}
_NOT_OF_COMMANDS = ("txnAppId", "txnVersion", "compression")
# What Spark hands to a sink although it means the query.
_OF_THE_QUERY = frozenset(["checkpointlocation", "queryname", "outputmode"])


@dataclass(frozen=True, slots=True)
class WriteIntent:
    """What a write is asked to do. Can be pickled.

    Attributes
    ----------
    options
        Scope, schema rules, layout, the application transaction, and what the session says.
    overwrite
        Rows take the place of others; else they are added.
    streaming
        The rows are a batch of a stream: values of other types than the table's are cast where Spark casts
        implicitly (delta-spark, `DeltaSink.castDataIfNeeded`), otherwise they are refused; and an overwrite leaves
        the clustering columns alone.
    machine_time_zone
        The zone of local times where neither the options nor the session say one.
    """

    options: WriteOptions
    overwrite: bool = False
    streaming: bool = False
    machine_time_zone: str = "UTC"

    @property
    def said_time_zone(self) -> str | None:
        """The zone of local times by the options or the session; None: tasks have to ask theirs."""
        return self.options.time_zone or self.options.facts.time_zone

    @property
    def time_zone(self) -> str:
        """The zone of local times."""
        return self.said_time_zone or self.machine_time_zone

    @property
    def replaces_schema(self) -> bool:
        """Whether the rows bring schema and partitioning of their own to a table that stays."""
        options = self.options
        return self.overwrite and options.overwrite_schema and options.replace_where is None

    @property
    def replaces_matches(self) -> bool:
        """Whether written rows take the place of those rows of a table that is there which match them."""
        return self.overwrite and self.options.replaces_matches

    def with_transaction(self, application: str, version: int) -> WriteIntent:
        """The same as a transaction of an application."""
        return replace(self, options=replace(self.options, txn_app_id=application, txn_version=version))


def batch_intent(
    options: Mapping[str, Any], mode: str | None, *, time_zone: str = "UTC", unknown: str | None = None
) -> WriteIntent:
    """What a batch write is asked to do.

    Parameters
    ----------
    options
        See `parse_write_options`.
    mode
        See `save_mode`.
    time_zone
        The zone of local times where neither `timeZone` nor the facts of the session say one.
    unknown
        See `OptionSet.parse`.

    Raises
    ------
    InvalidOptionError
        As `parse_write_options`, or the mode is none.
    """
    word = save_mode(mode)
    if word in (ERROR, IGNORE):
        options = with_call(options, "ifExists", word)
    overwrite = word == OVERWRITE
    parsed = parse_write_options(options, overwrite=overwrite, session_time_zone=time_zone, unknown=unknown)
    return WriteIntent(parsed, overwrite, machine_time_zone=time_zone)


def stream_intent(options: Mapping[str, Any], mode: str, *, time_zone: str = "UTC") -> WriteIntent:
    """What every batch of a stream is asked to do; the options are those of a batch write that hold for all of them.

    Parameters
    ----------
    mode
        The output mode: `append`, or `complete`, by which a batch takes the place of all that the table holds.
    options, time_zone
        As for `batch_intent`.

    Raises
    ------
    InvalidOptionError
        As `parse_write_options`, or an option for batch writes only.
    UnsupportedOperationError
        The output mode is another one.
    """
    check_mode(mode)
    of_rows = {name: value for name, value in options.items() if name.lower() not in _OF_THE_QUERY}
    texts = {name.lower() for name, value in of_rows.items() if value is not None}
    for name, hint in BATCH_ONLY.items():
        if name.lower() in texts:
            raise InvalidOptionError(
                f"option {name!r} is for batch writes, not for streams: {hint}",
                parameters={"option": name},
            )
    overwrite = mode == COMPLETE
    parsed = parse_write_options(of_rows, overwrite=overwrite, session_time_zone=time_zone)
    # What the session says of overwrites holds for batches.
    parsed = replace(parsed, dynamic_partitions=False)
    return WriteIntent(parsed, overwrite, streaming=True, machine_time_zone=time_zone)


def command_intent(table: str, facts: SessionFacts) -> WriteIntent:
    """How the rows of a command (UPDATE, MERGE) are written to a table, by its address: as the session says.

    The transaction that the command counts as is the command's to say; the codec counts where it writes files.
    """
    options = with_settings({"path": table}, facts)
    intent = batch_intent({name: options[name] for name in options if name not in _NOT_OF_COMMANDS}, APPEND)
    # What the session says of overwrites holds for writes.
    return replace(intent, options=replace(intent.options, dynamic_partitions=False))


def save_mode(mode: str | None) -> str:
    """The save mode that a word stands for: `append`, `overwrite`, `ignore` or `error`, in any case.

    Raises
    ------
    InvalidOptionError
        The word stands for none.
    """
    if mode is None:
        return ERROR
    word = _SAVE_MODES.get(mode.strip().lower())
    if word is None:
        raise INVALID_SAVE_MODE(mode=mode)
    return word


def check_mode(mode: str) -> None:
    """Refuse an output mode that a table cannot take.

    Raises
    ------
    UnsupportedOperationError
        It is neither `append` nor `complete`.
    """
    if mode not in (APPEND, COMPLETE):
        raise (UNSUPPORTED_OUTPUT_MODE if mode == UPDATE else OUTPUT_MODE_NOT_ALLOWED)(mode=mode)


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
        On the version to start from, where one is open already; else it is the one that the rows come from, or the
        newest.

    Raises
    ------
    NotADeltaTableError, VersionNotFoundError
        There is no such version that the rows could have come from.
    TableExistsError
        The save mode is `errorifexists`, and there is one; or a statement creates a table where other files are.
    """
    options = intent.options
    if transaction is not None:
        storage, snapshot = transaction.storage, transaction.base
    else:
        storage = open_storage(options.path, options.storage_options)
        read = options.read_version
        snapshot = newest_snapshot(storage) if read is None else open_snapshot(storage, read)
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
