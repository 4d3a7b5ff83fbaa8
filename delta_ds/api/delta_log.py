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
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import open_storage

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.api.snapshot import Snapshot
    from delta_ds.api.transaction import Transaction
    from delta_ds.kernel.commands.blame.blame import Blame
    from delta_ds.kernel.commands.changes import ChangeFeed
    from delta_ds.kernel.commands.layout.timeline import Timeline
    from delta_ds.kernel.commands.plot.plots import Plots
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.log.history import History
    from delta_ds.kernel.log.snapshot import Snapshot as Version
    from delta_ds.kernel.transaction.write.arrow import ArrowStream


@internal("open_snapshot", "storage")
@checked
class DeltaLog(Shown, Maintained, Described, Frames):
    """The transaction log of the table at a path.

    Parameters
    ----------
    path
        A local path or a URL (`s3://`, `gs://`, `abfss://`, `hdfs://`, `memory://`, ...).
    storage_options
        Handed to the filesystem as they are (keys, endpoints, tokens). Never logged or shown.

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
        """The table at a version, at a timestamp, or (neither given) as it is now.

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
        """What was committed, newest first.

        Parameters
        ----------
        limit
            At most so many commits; None for all that the log still holds.

        Returns
        -------
        History
            A list of dictionaries with the keys of `DESCRIBE HISTORY`: version, timestamp (aware, UTC), operation, ...
            Notebooks and `print` show it as a table.

        Examples
        --------
        >>> log = DeltaLog("/data/orders")
        >>> [(commit["version"], commit["operation"]) for commit in log.history()]
        [(1, 'WRITE'), (0, 'WRITE')]
        """
        _check_from_zero(limit=limit)
        latest = self.open_snapshot()
        return history.describe(self.storage, list_log(self.storage), latest.table_state, limit)

    @property
    def plot(self) -> Plots:
        """Pictures of the table: `plot.history()`, `plot.layout(column)`, `plot.skipping(predicate)`; see `Plots`.

        They need matplotlib: `pip install "delta-ds[plot]"`.
        """
        from delta_ds.kernel.commands.plot.plots import Plots

        return Plots(lambda function, *arguments: function(self.open_snapshot(), *arguments))

    def timeline(self, limit: int | None = None) -> Timeline:
        """How many files and bytes the table had at each version, by the log alone.

        Parameters
        ----------
        limit
            At most so many versions, the newest ones; None for all that the log still holds.

        Returns
        -------
        Timeline
            `versions` is an Arrow table of one row a version: time, operation, live files and bytes, and what came
            and went.

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
        """The change data feed of a range of versions, both ends inclusive.

        Parameters
        ----------
        start, end
            The first and last version; an end after the latest version means the latest. A missing end is
            the latest version.
        starting_timestamp, ending_timestamp
            Moments in their place: the first version at or after, the last at or before.
        timezone
            The session time zone, for partition timestamps in local form.
        net
            What becomes of the changes of one key. `net`: their effect on the range as a whole, an insert, a delete, or
            both sides of an update; nothing where a row came and went, or is as it was. `latest`: the last of them.
            They carry the version and time of the last change. None: each change counts.
        keys
            With `net`: the columns that tell rows apart, of any type but nested ones. Null is a value like any other.

        Raises
        ------
        ChangeDataError
            The range is empty or out of reach, or changes were not recorded in all of it.
        InvalidOptionError, SchemaError
            `net` without `keys` or the other way round; a key is no column.

        Examples
        --------
        >>> log = DeltaLog("/data/orders")
        >>> log.changes(1).to_arrow().select(["id", "_change_type", "_commit_version"]).to_pylist()[0]
        {'id': 3, '_change_type': 'insert', '_commit_version': 1}
        >>> log.changes(0, net="net", keys=["id"]).to_arrow().num_rows
        4
        """
        from delta_ds.kernel.commands.changes import open_changes

        _check_from_zero(start=start, end=end)
        return open_changes(
            self.storage,
            start,
            end,
            None if starting_timestamp is None else history.milliseconds(starting_timestamp),
            None if ending_timestamp is None else history.milliseconds(ending_timestamp),
            timezone,
            net,
            keys,
        )

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
            As in `snapshot`: the table as it was then.

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
        """A transaction on the table: what was read, the actions to commit, and `commit`.

        Parameters
        ----------
        version
            The version to read; None for the latest. Commits after it are checked for conflicts.
        create
            Whether the table may be missing: the transaction then has no snapshot, and commits version 0.
        engine_info
            What the commit calls its writer; this package by default.
        use_statistics
            Whether a file that another commit added may be let pass because its statistics prove that it holds no row
            that was looked for. By default only its partition values count, as in delta-spark.

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
            Columns by name; a reader is read only once the write is planned. DataFrames of pandas (without their index)
            and polars, relations of DuckDB and whatever else has `__arrow_c_stream__` do too.
        mode
            `append`, `overwrite`, `ignore` (where there is a table, nothing is written), `error` or `errorifexists`.
        options
            Those of `df.write`: `mergeSchema`, `replaceWhere`, `partitionBy`, ...; see `WRITE_OPTIONS`. The log has
            `path` and those of the store.
        misnamed
            None: what is given by another name is refused, with what may have been meant.

        Returns
        -------
        int or None
            The version; None where there was nothing to commit.

        Raises
        ------
        SchemaError
            The rows do not fit the table.
        InvariantViolationError
            A row breaks a constraint.
        DeltaConcurrentModificationException
            Another commit came first and contradicts the write.

        Examples
        --------
        >>> import tempfile, pyarrow as pa
        >>> from delta_ds import DeltaLog
        >>> log = DeltaLog(tempfile.mkdtemp())
        >>> log.write(pa.table({"id": [1, 2]})), log.write(pa.table({"id": [3]}))
        (0, 1)
        """
        from delta_ds.kernel.transaction.write.arrow import write_arrow

        if misnamed:
            raise _misnamed_error(misnamed)
        return write_arrow(self.start_transaction(create=True), rows, mode, options)

    def checkpoint(self) -> int:
        """Write a checkpoint of the latest version, from which readers begin.

        Returns
        -------
        int
            The version.

        Raises
        ------
        UnsupportedFeatureError
            The table needs something of writers that is not supported.

        Examples
        --------
        >>> log = DeltaLog("/data/orders")
        >>> log.checkpoint()
        1
        """
        from delta_ds.kernel.log.segment import find_segment
        from delta_ds.kernel.transaction.post_commit import write_checkpoint

        segment = find_segment(self.storage, None)
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
