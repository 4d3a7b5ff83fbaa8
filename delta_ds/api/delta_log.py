"""`DeltaLog`: the handle on a table; snapshots by version and timestamp, history, changes, writes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from delta_ds.api.description import Described
from delta_ds.api.frames import Frames
from delta_ds.api.maintenance import Maintained
from delta_ds.exceptions import InvalidOptionError
from delta_ds.kernel.base.arguments import checked, internal
from delta_ds.kernel.base.card import Card, Shown
from delta_ds.kernel.log import history
from delta_ds.kernel.log.segment import list_log
from delta_ds.kernel.log.snapshot import open_table_state
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import open_storage

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.api.change_feed import ChangeFeed
    from delta_ds.api.merge import TableMerger
    from delta_ds.api.snapshot import Blame, Snapshot
    from delta_ds.api.transaction import Transaction
    from delta_ds.kernel.commands.dml.delete import DeleteResult, UpdateResult
    from delta_ds.kernel.commands.layout.timeline import Timeline
    from delta_ds.kernel.commands.plot.plots import Plots
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.log.history import History
    from delta_ds.kernel.log.snapshot import Snapshot as Version
    from delta_ds.kernel.transaction.write.arrow import ArrowStream


@internal("newest", "open_snapshot", "storage")
@checked
class DeltaLog(Shown, Maintained, Described, Frames):
    """The transaction log of the table at a path.

    Parameters
    ----------
    path
        A local path or a URL (`s3://`, `gs://`, `abfss://`, `hdfs://`, `memory://`, ...).
    storage_options
        Options of the filesystem (keys, endpoints, tokens). Never logged or shown.

    Examples
    --------
    >>> from delta_ds import DeltaLog
    >>> log = DeltaLog("examples/data/sales")
    >>> log.snapshot(version=0).version
    0
    """

    def __init__(
        self, path: str | os.PathLike[str] | Storage, storage_options: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(open_storage(path, storage_options))

    def snapshot(self, version: int | None = None, timestamp: datetime | int | None = None) -> Snapshot:
        """Return the table at a version or timestamp; without either, its newest version.

        Parameters
        ----------
        version
            The version to read.
        timestamp
            An aware datetime, or milliseconds since 1970 in UTC: the newest version at or before it.

        Raises
        ------
        NotADeltaTableError
            The path does not exist or holds no log.
        VersionNotFoundError, TimestampOutOfRangeError
            The version or timestamp cannot be reached; the message names the range that can.
        UnsupportedFeatureError
            Reading the table needs a feature this package does not have.
        LogError
            The log is damaged; the message names the file and what to do.

        Examples
        --------
        >>> log = DeltaLog("/data/orders")
        >>> log.snapshot().version, log.snapshot(version=0).scan().count()
        (1, 2)
        """
        from delta_ds.api.snapshot import Snapshot

        return Snapshot(self.open_snapshot(version, timestamp))

    def _pinned(self) -> Version:
        return self.open_snapshot()

    def history(self, limit: int | None = None) -> History:
        """Return the commits, newest first.

        It needs no columns: tables whose schema this package cannot read have a history too.

        Parameters
        ----------
        limit
            Maximum number of commits; None for all that the log still holds.

        Returns
        -------
        History
            A list of dictionaries with the keys of `DESCRIBE HISTORY`, such as version, timestamp (aware, UTC) and
            operation. Notebooks and `print` show it as a table.

        Examples
        --------
        >>> log = DeltaLog("/data/orders")
        >>> [(commit["version"], commit["operation"]) for commit in log.history()]
        [(1, 'WRITE'), (0, 'WRITE')]
        """
        _check_from_zero(limit=limit)
        latest = open_table_state(self.storage)
        return history.describe(self.storage, list_log(self.storage), latest, limit)

    @property
    def plot(self) -> Plots:
        """Pictures of the table: `Plots.history`, `Plots.layout` and `Plots.skipping`.

        They need matplotlib: `pip install "delta-ds[plot]"`.
        """
        from delta_ds.kernel.commands.plot.plots import Plots

        return Plots(lambda function, *arguments: function(self.open_snapshot(), *arguments))

    def timeline(self, limit: int | None = None) -> Timeline:
        """Return the number of files and bytes at each version; reads the log only.

        Parameters
        ----------
        limit
            Maximum number of versions, the newest ones; None for all that the log still holds.

        Returns
        -------
        Timeline
            `versions` is an Arrow table with one row per version: time, operation, live files and bytes, added and
            removed ones.

        Examples
        --------
        >>> from delta_ds import DeltaLog
        >>> DeltaLog("examples/data/sales").timeline().versions["version"].to_pylist()[:3]
        [0, 1, 2]
        """
        return self.snapshot().timeline(limit)

    def changes(
        self,
        start: int | None = None,
        end: int | None = None,
        *,
        starting_timestamp: datetime | int | None = None,
        ending_timestamp: datetime | int | None = None,
        timezone: str = "UTC",
        net: str | None = None,
        keys: Sequence[str] | None = None,
    ) -> ChangeFeed:
        """Return the change data feed of a range of versions, both ends inclusive.

        Parameters
        ----------
        start, end
            The first and last version; an end after the latest version means the latest. A missing end is
            the latest version.
        starting_timestamp, ending_timestamp
            Timestamps instead of versions: the first version at or after, the last at or before.
        timezone
            The session time zone, for partition timestamps in local form.
        net
            How the changes of one key are reduced. `net`: their effect over the whole range, an insert, a delete,
            or both sides of an update; nothing if a row was inserted and deleted, or did not change. `latest`: the
            last change. Rows carry the version and time of the last change. None: all changes.
        keys
            With `net`: the columns that identify rows, of any type but nested ones. Null is a value like any other.

        Raises
        ------
        ChangeDataError
            The range is empty or out of reach, or changes were not recorded in all of it.
        InvalidOptionError, SchemaError
            `net` without `keys` or the reverse; a key is not a column.

        Examples
        --------
        >>> log = DeltaLog("/data/orders")
        >>> log.changes(1).to_arrow().select(["id", "_change_type", "_commit_version"]).to_pylist()[0]
        {'id': 3, '_change_type': 'insert', '_commit_version': 1}
        >>> log.changes(0, net="net", keys=["id"]).to_arrow().num_rows
        4
        """
        from delta_ds.api.change_feed import ChangeFeed
        from delta_ds.kernel.commands.changes import open_changes

        _check_from_zero(start=start, end=end)
        feed = open_changes(
            self.storage,
            start,
            end,
            starting_timestamp,
            ending_timestamp,
            timezone,
            net,
            keys,
        )
        return ChangeFeed(feed)

    def blame(
        self,
        predicate: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        *,
        version: int | None = None,
        timestamp: datetime | int | None = None,
        timezone: str = "UTC",
    ) -> Blame:
        """The rows of the table, each with the commit that last wrote it; see `Snapshot.blame`.

        Parameters
        ----------
        predicate, columns, timezone
            As in `Snapshot.blame`.
        version, timestamp
            The version or time to read, as in `snapshot`.

        Raises
        ------
        DeltaError
            As `snapshot` and `Snapshot.blame`.

        Examples
        --------
        >>> import pyarrow as pa
        >>> log = DeltaLog("/data/tracked")
        >>> version = log.write(pa.table({"id": [1]}), options={"delta.enableRowTracking": "true"})
        >>> version = log.write(pa.table({"id": [2]}))
        >>> log.blame().to_arrow()["_commit_version"].to_pylist()
        [0, 1]
        >>> log.blame(version=0).to_arrow()["_commit_version"].to_pylist()
        [0]
        """
        return self.snapshot(version, timestamp).blame(predicate, columns, timezone=timezone)

    def start_transaction(
        self,
        version: int | None = None,
        *,
        create: bool = False,
        engine_info: str | None = None,
        use_statistics: bool = False,
    ) -> Transaction:
        """Start a transaction on the table: it collects reads and actions, and commits once.

        Parameters
        ----------
        version
            The version to read; None for the latest. Later commits are checked for conflicts.
        create
            Whether the table may be missing: the transaction then has no snapshot, and commits version 0.
        engine_info
            The name of the writer in the commit; by default this package.
        use_statistics
            Whether a file that another commit added is no conflict if its statistics prove that it holds no row of
            the reads. By default only its partition values count, as in delta-spark.

        Raises
        ------
        NotADeltaTableError
            There is no table, and `create` is False.
        DeltaError
            As `snapshot`.

        Examples
        --------
        >>> transaction = DeltaLog("/data/orders").start_transaction()
        >>> transaction.read_version
        1
        """
        from delta_ds.api.transaction import Transaction

        started = super().start_transaction(
            version, create=create, engine_info=engine_info, use_statistics=use_statistics
        )
        return Transaction(
            self.storage,
            started.base,
            engine_info=engine_info,
            use_statistics=use_statistics,
            current=self._current,
        )

    def write(
        self,
        rows: pa.Table | pa.RecordBatch | pa.RecordBatchReader | ArrowStream,
        mode: str = "append",
        options: Mapping[str, Any] | None = None,
        **misnamed: Any,
    ) -> int | None:
        """Write rows to the table, or to a new one, as one commit.

        Parameters
        ----------
        rows
            Columns by name; a reader is read only once the write is planned. DataFrames of pandas (without their
            index) and polars, relations of DuckDB and everything else with `__arrow_c_stream__` work too. Timestamps of
            nanoseconds are stored as the table's microseconds.
        mode
            `append`, `overwrite`, `ignore` (an existing table stays unchanged), `error` or `errorifexists`.
        options
            Those of `df.write`: `mergeSchema`, `replaceWhere`, `partitionBy`, ...; see `WRITE_OPTIONS`. Pass `path`
            and options of the store to `DeltaLog`.
        misnamed
            Not accepted: arguments of other names are refused, with the nearest name.

        Returns
        -------
        int or None
            The version; None if there was nothing to commit.

        Raises
        ------
        SchemaError
            The rows do not fit the table.
        InvariantViolationError
            A row breaks a constraint, or a value does not fit into its column, as a part of a microsecond.
        DeltaConcurrentModificationException
            Another commit came first and conflicts with the write.

        Examples
        --------
        >>> import tempfile, pyarrow as pa
        >>> from delta_ds import DeltaLog
        >>> log = DeltaLog(tempfile.mkdtemp())
        >>> log.write(pa.table({"id": [1, 2]})), log.write(pa.table({"id": [3]}))
        (0, 1)
        """
        from delta_ds.kernel.transaction.write.arrow import arrow_intent, write_arrow

        if misnamed:
            raise _misnamed_error(misnamed)
        intent = arrow_intent(self.storage.url, mode, options)
        transaction = super().start_transaction(intent.options.read_version, create=True)
        if transaction.base is not None and intent.replaces_matches and intent.options.key_columns:
            from delta_ds.kernel.commands.merge.command import replace_using

            return replace_using(self, rows, intent)
        return write_arrow(transaction, rows, mode, options)

    def delete(
        self,
        predicate: str | Expression | None = None,
        *,
        timezone: str = "UTC",
        user_metadata: str | None = None,
        engine_info: str | None = None,
        txn: tuple[str, int] | None = None,
        retries: int = 0,
    ) -> DeleteResult:
        """Delete the rows for which a predicate is true, as one commit.

        Files that hold no such row stay as they are. Where the table has deletion vectors, no file is rewritten.

        Parameters
        ----------
        predicate
            In Spark SQL, with its meaning in ANSI mode; None: all rows.
        timezone
            The session time zone in which the predicate is meant.
        user_metadata
            Free text for the history.
        engine_info
            What the commit calls its writer; this package by default.
        txn
            Application and version that the command counts as: a table that has it, or a later one, is left alone.
        retries
            How often the command is done again, on the newest version, after commits of others contradicted it.

        Returns
        -------
        DeleteResult
            The version, or None where no row matched and there is no `txn`; how many rows went, and what became of
            files.

        Raises
        ------
        PredicateError, SchemaError
            The predicate cannot be parsed, names no column, or uses what only Spark can evaluate.
        AppendOnlyError
            Rows of the table must not be deleted.
        DeltaConcurrentModificationException
            Another commit contradicts the deletion. Nothing was deleted, nothing is left behind, as with all errors.

        Examples
        --------
        >>> log = DeltaLog("/data/orders")
        >>> result = log.delete("country = 'DE' AND amount > 20")
        >>> result.version, result.num_deleted_rows, result.num_copied_rows
        (2, 1, 0)
        """
        from delta_ds.kernel.commands.dml.delete import delete

        _check_from_zero(retries=retries)
        return delete(
            self,
            predicate,
            timezone=timezone,
            user_metadata=user_metadata,
            engine_info=engine_info,
            txn=txn,
            retries=retries,
        )

    def update(
        self,
        updates: Mapping[str, Any] | None = None,
        new_values: Mapping[str, Any] | None = None,
        predicate: str | Expression | None = None,
        *,
        timezone: str = "UTC",
        user_metadata: str | None = None,
        engine_info: str | None = None,
        txn: tuple[str, int] | None = None,
        retries: int = 0,
    ) -> UpdateResult:
        """Give columns new values in the rows for which a predicate is true, as one commit.

        Values are cast to the type of their column; one that does not fit is an error, never a null.

        Parameters
        ----------
        updates
            By column (`s.a` for a field of a struct) an expression in Spark SQL over the row as it was, or `DEFAULT`.
        new_values
            By column a value of Python.
        predicate, timezone, user_metadata, engine_info, txn, retries
            As in `delete`.

        Returns
        -------
        UpdateResult
            The version, or None where no row matched and there is no `txn`; how many rows changed, and what became of
            files.

        Raises
        ------
        InvalidOptionError
            No column is given a value, or a value is none for its column.
        PredicateError, UnsupportedFeatureError
            An expression cannot be read, or evaluated without Spark, or not on some row.
        SchemaError
            A column is not there or is given twice, or a value does not fit.
        InvariantViolationError
            A new row breaks a constraint, or a value does not fit into its column.
        AppendOnlyError
            Rows of the table must not be changed.
        DeltaConcurrentModificationException
            Another commit contradicts the update. Nothing was changed, nothing is left behind, as with all errors.

        Examples
        --------
        >>> log = DeltaLog("/data/orders")
        >>> result = log.update({"amount": "amount * 2"}, predicate="id = 1")
        >>> result.version, result.num_updated_rows
        (2, 1)
        >>> log.update(new_values={"amount": 5}).rows
        4
        """
        from delta_ds.kernel.commands.dml.update import update

        _check_from_zero(retries=retries)
        return update(
            self,
            updates,
            new_values,
            predicate,
            timezone=timezone,
            user_metadata=user_metadata,
            engine_info=engine_info,
            txn=txn,
            retries=retries,
        )

    def merge(
        self,
        source: pa.Table | pa.RecordBatch | pa.RecordBatchReader | ArrowStream,
        predicate: str,
        source_alias: str | None = None,
        target_alias: str | None = None,
        merge_schema: bool = False,
        *,
        timezone: str = "UTC",
        user_metadata: str | None = None,
        engine_info: str | None = None,
        txn: tuple[str, int] | None = None,
        retries: int = 0,
    ) -> TableMerger:
        """A merge of rows into the table, in this process, without Spark: what is answered takes the clauses.

        Parameters
        ----------
        source
            Columns by name; whatever `write` takes. It is read when the merge runs, and held in memory.
        predicate
            The search condition in Spark SQL, over both sides. Columns that equal an expression of the source find
            their rows by hashes; without any, each row meets each other one.
        source_alias, target_alias
            By which their columns are qualified; `source` and `target` by default.
        merge_schema
            Whether the table takes columns of the source that it does not have, and wider types.
        timezone, user_metadata, engine_info, txn, retries
            As in `delete`.

        Examples
        --------
        >>> import pyarrow as pa
        >>> log = DeltaLog("/data/orders")
        >>> new = pa.table({"id": [1, 5], "country": ["DE", "FR"], "amount": [15.0, 50.0]})
        >>> merger = log.merge(new, "target.id = source.id")
        >>> merger.when_matched_update_all().when_not_matched_insert_all().execute().version
        2
        """
        from delta_ds.api.merge import TableMerger
        from delta_ds.kernel.commands.dml.in_process import CommandSettings
        from delta_ds.kernel.commands.merge.clauses import MergeRequest

        _check_from_zero(retries=retries)
        request = MergeRequest(
            predicate=predicate,
            source_alias="source" if source_alias is None else source_alias,
            target_alias="target" if target_alias is None else target_alias,
            merge_schema=merge_schema,
            settings=CommandSettings(timezone, user_metadata, engine_info, txn, retries),
        )
        return TableMerger(self, source, request)

    def checkpoint(self) -> int:
        """Write a checkpoint of the latest version, from which readers begin.

        Returns
        -------
        int
            The version.

        Raises
        ------
        UnsupportedFeatureError
            The table needs a writer feature that is not supported.

        Examples
        --------
        >>> log = DeltaLog("/data/orders")
        >>> log.checkpoint()
        1
        """
        from delta_ds.kernel.base.work import Work
        from delta_ds.kernel.log.segment import find_segment
        from delta_ds.kernel.transaction.post_commit import write_checkpoint

        with Work("CHECKPOINT", self.storage.url) as work:
            segment = find_segment(self.storage, None)
            with work.phase("writing", unit="checkpoints"):
                write_checkpoint(self.storage, segment)
        return segment.version

    def _card(self) -> Card:
        return Card(
            f"Delta log of {self.storage.url}",
            (
                ("look", "snapshot() is the table as it is now; history(), changes(), timeline(), plot"),
                ("rows", "to_polars(), to_duckdb(), to_pandas(), to_arrow(), to_pyarrow_dataset()"),
                ("write", "write(), optimize(), vacuum(), restore(), clone() and more"),
            ),
            note="The table was not asked for this; snapshot() asks it.",
        )

    def __repr__(self) -> str:
        return f"DeltaLog({self.storage.url!r})"


def _misnamed_error(given: Mapping[str, Any]) -> InvalidOptionError:
    """The error of what was given by name and is no parameter of a write: options, as a rule."""
    import difflib

    from delta_ds.kernel.format.options.parsing import is_of_store
    from delta_ds.kernel.format.options.write import WRITE_OPTIONS

    known = {option.name.lower(): option.name for option in WRITE_OPTIONS}
    near = {n: difflib.get_close_matches(n.lower(), [*known, "rows", "mode", "options"], n=1) for n in given}
    meant = {
        known.get(found[0], found[0]): "..." if is_of_store(name) else given[name]
        for name, found in near.items()
        if found
    }
    hint = f"; did you mean options={meant}?" if meant else "."
    return InvalidOptionError(
        f"DeltaLog.write() has no parameter {', '.join(map(repr, given))}: options of a write are given as "
        f"options={{...}}{hint} Nothing was written",
        parameters={"options": sorted(given)},
    )


def _check_from_zero(**numbers: int | None) -> None:
    for name, number in numbers.items():
        if number is not None and number < 0:
            raise InvalidOptionError(
                f"{name} must not be negative, and is {number}", parameters={name: number}
            )
