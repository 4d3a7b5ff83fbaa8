"""`Snapshot`: one version of a table, as users hold it, and what is read of it: `Scan` and `Blame`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from delta_ds.api.frames import Frames
from delta_ds.kernel.base.arguments import checked
from delta_ds.kernel.base.card import Card, Shown, listed, size_text
from delta_ds.kernel.files.scan.scan import DEFAULT_AHEAD_BYTES, DEFAULT_PARTITION_BYTES, package_of
from delta_ds.kernel.files.scan.scan import Scan as ScanOfLog
from delta_ds.kernel.log import history

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow as pa

    from delta_ds.api.description import TableDetail
    from delta_ds.kernel.commands.layout.column import ColumnLayout
    from delta_ds.kernel.commands.layout.timeline import Timeline
    from delta_ds.kernel.commands.plot.plots import Plots
    from delta_ds.kernel.files.read.plan import FileSlice
    from delta_ds.kernel.files.scan.explain import Explanation
    from delta_ds.kernel.format.actions import Metadata, Protocol
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.schema.types import StructType
    from delta_ds.kernel.log.replay import State
    from delta_ds.kernel.log.snapshot import Snapshot as Version


@checked
class Snapshot(Shown, Frames):
    """The state of a table at one version.

    Made by `DeltaLog.snapshot`. Opening reads protocol and metadata only, and refuses unsupported features; the
    files are read from the log on first use.

    Examples
    --------
    >>> from delta_ds import DeltaLog
    >>> snapshot = DeltaLog("examples/data/sales").snapshot()
    >>> snapshot.version > 0, len(snapshot.partition_columns)
    (True, 1)
    """

    def __init__(self, version: Version) -> None:
        self._version = version

    def _pinned(self) -> Version:
        return self._version

    @property
    def version(self) -> int:
        """The version of the table."""
        return self._version.version

    @property
    def protocol(self) -> Protocol:
        """The versions and features that a client must support."""
        return self._version.protocol

    @property
    def metadata(self) -> Metadata:
        """The `metaData` action: schema, partitioning and properties."""
        return self._version.metadata

    @property
    def schema(self) -> StructType:
        """Logical names, with the metadata of the fields."""
        return self._version.schema

    @property
    def mapping_mode(self) -> str:
        """`none`, `name` or `id`: how columns are found in files."""
        return self._version.mapping_mode

    @property
    def timestamp(self) -> int:
        """When the version was committed, ms since 1970: in-commit where enabled, else the file's time.

        Commits may have files of the same time, or of an earlier time than the commit before. The times of
        `DeltaLog.history`, which time travel uses, always increase.
        """
        return self._version.timestamp

    @property
    def partition_columns(self) -> list[str]:
        """The logical names of the partition columns, in order."""
        return self._version.partition_columns

    @property
    def properties(self) -> dict[str, str]:
        """The table properties (`metaData.configuration`)."""
        return self._version.properties

    @property
    def txns(self) -> dict[str, int]:
        """The latest version of each application's transactions."""
        return self._version.txns

    @property
    def domains(self) -> dict[str, str]:
        """The configuration of each live metadata domain."""
        return self._version.domains

    @property
    def clustering_columns(self) -> list[list[str]]:
        """The logical path of each clustering column; empty for a table that is not clustered."""
        return self._version.clustering_columns

    def files(self, predicate: str | Expression | None = None, *, timezone: str = "UTC") -> pa.Table:
        """Return the live files, or those that may hold rows matching a predicate.

        Parameters
        ----------
        predicate
            Spark SQL text or a tree; None for every file.
        timezone
            The session time zone in which the predicate is meant.

        Returns
        -------
        pyarrow.Table
            One row per file: `path`, `size` in bytes, `partitionValues`, `modificationTime` in ms; `stats` is JSON
            text.

        Examples
        --------
        >>> snapshot = DeltaLog("/data/orders").snapshot()
        >>> snapshot.files().num_rows, snapshot.files("country = 'DE'").num_rows
        (4, 2)
        """
        return self.scan(predicate, timezone=timezone).files()

    def scan(
        self,
        predicate: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        *,
        timezone: str = "UTC",
        metadata_columns: Sequence[str] = (),
    ) -> Scan:
        """Return a scan of this version, with a predicate and columns.

        Parameters
        ----------
        predicate
            Spark SQL text or a tree; files that cannot match are skipped, rows that do not match are not
            returned.
        columns
            Top-level columns to return, in order; None for all.
        timezone
            The session time zone: for the predicate, and for partition timestamps in local form.
        metadata_columns
            Fields of a struct column `_metadata` to append: file_path, file_name, file_size, row_index,
            row_id, row_commit_version.

        Raises
        ------
        PredicateError
            The predicate cannot be parsed or names an unknown column.
        SchemaError
            A column does not exist.

        Examples
        --------
        >>> snapshot = DeltaLog("/data/orders").snapshot()
        >>> snapshot.scan("country = 'DE' AND amount > 10", ["id", "amount"]).to_arrow().to_pylist()
        [{'id': 3, 'amount': 30.0}]
        """
        return Scan(self, predicate, columns, timezone, metadata_columns)

    def blame(
        self,
        predicate: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        *,
        timezone: str = "UTC",
    ) -> Blame:
        """The rows of this version, each with the commit that last wrote it: version, time, operation, user, job.

        Copying a row does not count as writing it: rows that OPTIMIZE moves, or that a command does not change in a
        file that it rewrites, keep their commit. For commits that the log no longer has, only the version is known.

        Parameters
        ----------
        predicate
            As in `scan`.
        columns
            Top-level columns to return, in order; None for all.
        timezone
            As in `scan`.

        Raises
        ------
        UnsupportedOperationError
            The table does not track rows.
        SchemaError
            A column does not exist, or has the name of a column of the result.
        PredicateError
            As in `scan`.

        Examples
        --------
        >>> import pyarrow as pa
        >>> log = DeltaLog("/data/tracked")
        >>> version = log.write(pa.table({"id": [1]}), options={"delta.enableRowTracking": "true"})
        >>> version = log.write(pa.table({"id": [2]}), options={"userMetadata": "late rows"})
        >>> rows = log.snapshot().blame("id = 2").to_arrow()
        >>> rows.select(["id", "_commit_version", "_commit_user_metadata"]).to_pylist()
        [{'id': 2, '_commit_version': 1, '_commit_user_metadata': 'late rows'}]
        """
        return Blame(self, predicate, columns, timezone)

    def column_layout(self, column: str, *, timezone: str = "UTC") -> ColumnLayout:
        """Return the range of a column in each file, and how many files lookups by it read.

        Parameters
        ----------
        column
            Its name as in SQL: a field of a struct as `s.a`, backticks around odd names.
        timezone
            The zone of a partition column of timestamps whose values name none.

        Raises
        ------
        SchemaError
            The column does not exist.
        UnsupportedOperationError
            The log has no minimum and maximum for its type.

        Examples
        --------
        >>> from delta_ds import DeltaLog
        >>> layout = DeltaLog("examples/data/sales").snapshot().column_layout("sold_on")
        >>> layout.num_files > layout.files_read() > 0
        True
        """
        from delta_ds.kernel.commands.layout.column import column_layout

        return column_layout(self._version, column, timezone=timezone)

    @property
    def plot(self) -> Plots:
        """Pictures of the table up to this version: `history()`, `layout(column)`, `skipping(predicate)`; see `Plots`.

        They need matplotlib: `pip install "delta-ds[plot]"`.
        """
        from delta_ds.kernel.commands.plot.plots import Plots

        return Plots(lambda function, *arguments: function(self._version, *arguments))

    def timeline(self, limit: int | None = None) -> Timeline:
        """How many files and bytes the table had at each version up to this one; see `DeltaLog.timeline`.

        Parameters
        ----------
        limit
            Maximum number of versions, the newest ones; None for all that the log still holds.

        Examples
        --------
        >>> snapshot = DeltaLog("/data/orders").snapshot()
        >>> snapshot.timeline().versions["version"].to_pylist()
        [0, 1]
        """
        from delta_ds.kernel.commands.layout.timeline import timeline

        return timeline(self._version, limit)

    def detail(self) -> TableDetail:
        """Describe the table, with the keys of `DESCRIBE DETAIL`; sizes in bytes, times in ms since 1970.

        Returns
        -------
        TableDetail
            A dictionary of `format`, `id`, `location`, `numFiles`, `sizeInBytes`, `partitionColumns`, `properties`, ...

        Examples
        --------
        >>> snapshot = DeltaLog("/data/orders").snapshot()
        >>> snapshot.detail()["numFiles"], snapshot.detail()["partitionColumns"]
        (4, ['country'])
        """
        import pyarrow.compute as pc

        files = self._version.live_files()
        return {
            "format": "delta",
            "id": self.metadata.id,
            "name": self.metadata.name,
            "description": self.metadata.description,
            "location": self._version.storage.address.as_written,
            "createdAt": self.metadata.created_time,
            "lastModified": self.timestamp,
            "partitionColumns": self.partition_columns,
            "clusteringColumns": [".".join(path) for path in self.clustering_columns],
            "numFiles": files.num_rows,
            "sizeInBytes": pc.sum(files.table["size"]).as_py() or 0,
            "properties": self.properties,
            "minReaderVersion": self.protocol.min_reader,
            "minWriterVersion": self.protocol.min_writer,
            "tableFeatures": sorted(self.protocol.supported),
        }

    def __repr__(self) -> str:
        return repr(self._version)

    def __str__(self) -> str:
        return self._card().text()

    def _card(self) -> Card:
        version, metadata = self._version, self.metadata
        state = version.known_state
        features = listed(sorted(self.protocol.supported)) or "no features"
        return Card(
            f"Delta table {version.storage.url}, version {self.version}",
            (
                ("name", metadata.name),
                ("description", metadata.description or None),
                ("committed", history.as_text(self.timestamp) if version.knows_timestamp else None),
                ("files", None if state is None else _files_text(state)),
                ("partitioned by", listed(self.partition_columns)),
                ("clustered by", None if state is None else listed(_dotted(state.table.clustering_columns))),
                ("properties", listed([f"{k}={v}" for k, v in sorted(metadata.configuration.items())])),
                ("protocol", f"{self.protocol.min_reader}, {self.protocol.min_writer}: {features}"),
            ),
            (self.schema.card_table(),),
        )


@checked
class Scan(Shown):
    """The read of a snapshot with a predicate and columns; made by `Snapshot.scan`.

    Skipping never changes the rows: it drops files whose partition values and statistics prove that no row
    matches. `to_batches` and `to_arrow` then apply the predicate to the rows themselves.

    Parameters
    ----------
    snapshot
        The version to read.
    predicate, columns, timezone, metadata_columns
        As in `Snapshot.scan`.

    Examples
    --------
    >>> from delta_ds import DeltaLog
    >>> scan = DeltaLog("/data/orders").snapshot().scan("country = 'DE'", ["id"])
    >>> scan.num_files, scan.to_arrow().to_pydict()
    (2, {'id': [1, 3]})
    """

    def __init__(
        self,
        snapshot: Snapshot,
        predicate: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        timezone: str = "UTC",
        metadata_columns: Sequence[str] = (),
    ) -> None:
        self._snapshot = snapshot
        self._scan = ScanOfLog(snapshot._version, predicate, columns, timezone, tuple(metadata_columns))

    @classmethod
    def _around(cls, snapshot: Snapshot, scan: ScanOfLog) -> Scan:
        """A scan of the kernel as users hold it."""
        made = cls.__new__(cls)
        made._snapshot, made._scan = snapshot, scan
        return made

    @property
    def snapshot(self) -> Snapshot:
        """The version that is read."""
        return self._snapshot

    @property
    def predicate(self) -> Expression | None:
        """As a tree; None for none."""
        return self._scan.predicate

    @property
    def schema(self) -> StructType:
        """Of the rows, without metadata columns."""
        return self._scan.schema

    def files(self) -> pa.Table:
        """The files that may hold matching rows.

        Returns
        -------
        pyarrow.Table
            As `Snapshot.files`, in log order.

        Examples
        --------
        >>> scan = DeltaLog("/data/orders").snapshot().scan("country = 'DE'")
        >>> scan.files()["partitionValues"].to_pylist()
        [{'country': 'DE'}, {'country': 'DE'}]
        """
        return self._scan.files()

    @property
    def num_files(self) -> int:
        """How many files may hold matching rows."""
        return self._scan.num_files

    def slices(self) -> list[FileSlice]:
        """One slice a file: whole files, in log order.

        Examples
        --------
        >>> scan = DeltaLog("/data/orders").snapshot().scan("country = 'DE'")
        >>> [piece.partition_values for piece in scan.slices()]
        [('DE',), ('DE',)]
        """
        return self._scan.slices()

    def tasks(
        self, max_partition_bytes: int = DEFAULT_PARTITION_BYTES, parallelism: int | None = None
    ) -> list[list[FileSlice]]:
        """The slices packed into tasks of about equal size, largest first.

        Parameters
        ----------
        max_partition_bytes
            Bytes of files a task reads at most; larger files are split by row groups.
        parallelism
            Tasks are made small enough for so many to run at once; None for the CPUs of this machine.

        Examples
        --------
        >>> scan = DeltaLog("/data/orders").snapshot().scan("country = 'DE'")
        >>> [len(task) for task in scan.tasks(max_partition_bytes=128 << 20, parallelism=1)]
        [2]
        """
        return self._scan.tasks(max_partition_bytes, parallelism)

    def to_batches(self, max_bytes: int = DEFAULT_AHEAD_BYTES) -> Iterator[pa.RecordBatch]:
        """The matching rows, as batches of the projected columns, file by file in log order.

        Threads read ahead, as many as there are CPUs.

        Parameters
        ----------
        max_bytes
            About so many bytes of rows wait to be taken at most, beside the batch, and on stores the row group, that
            each thread is at.

        Raises
        ------
        PredicateError
            The predicate uses a function that only Spark can evaluate.
        DataFileError
            A file is missing or damaged; the message names it.

        Examples
        --------
        >>> scan = DeltaLog("/data/orders").snapshot().scan("country = 'DE'")
        >>> sum(batch.num_rows for batch in scan.to_batches())
        2
        """
        yield from self._scan.to_batches(max_bytes)

    def to_arrow(self) -> pa.Table:
        """The matching rows as one Arrow table, in the order of `to_batches`, whose errors it has.

        Examples
        --------
        >>> scan = DeltaLog("/data/orders").snapshot().scan("country = 'DE'")
        >>> scan.to_arrow().select(["id", "amount"]).to_pydict()
        {'id': [1, 3], 'amount': [10.0, 30.0]}
        """
        return self._scan.to_arrow()

    def to_reader(self, max_bytes: int = DEFAULT_AHEAD_BYTES) -> pa.RecordBatchReader:
        """The matching rows as a stream that other libraries read from, as `to_batches` gives them.

        Parameters
        ----------
        max_bytes
            As in `to_batches`.

        Examples
        --------
        >>> scan = DeltaLog("/data/orders").snapshot().scan("country = 'DE'")
        >>> scan.to_reader().read_all().num_rows
        2
        """
        return self._scan.to_reader(max_bytes)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's PyCapsule interface: polars, DuckDB, pandas and others read a scan as it is, each time again.

        >>> import pyarrow as pa
        >>> from delta_ds import DeltaLog
        >>> scan = DeltaLog("examples/data/sales").snapshot().scan("country = 'DE'", ["order_id"])
        >>> pa.table(scan).num_rows == scan.count()
        True
        """
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pandas.DataFrame:
        """The matching rows as a DataFrame of pandas, types as pyarrow converts them.

        Raises
        ------
        ImportError
            pandas is not installed.
        DeltaError
            As `to_batches`.

        Examples
        --------
        >>> scan = DeltaLog("/data/orders").snapshot().scan("country = 'DE'")
        >>> scan.to_pandas()
           id country  amount
        0   1      DE    10.0
        1   3      DE    30.0
        """
        package_of("pandas", "to_pandas")
        found: pandas.DataFrame = self.to_arrow().to_pandas()
        return found

    def to_polars(self) -> polars.DataFrame:
        """The matching rows as a DataFrame of polars.

        Raises
        ------
        ImportError
            polars is not installed.
        DeltaError
            As `to_batches`.

        Examples
        --------
        >>> scan = DeltaLog("/data/orders").snapshot().scan("country = 'DE'")
        >>> scan.to_polars().shape
        (2, 3)
        """
        found: polars.DataFrame = package_of("polars", "to_polars").from_arrow(self.to_arrow())
        return found

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """The matching rows as a relation of DuckDB, held in memory.

        Parameters
        ----------
        connection
            The one that the relation belongs to; None for DuckDB's default.

        Raises
        ------
        ImportError
            DuckDB is not installed.
        DeltaError
            As `to_batches`.

        Examples
        --------
        >>> scan = DeltaLog("/data/orders").snapshot().scan("country = 'DE'")
        >>> scan.to_duckdb().sum("amount").fetchall()
        [(40.0,)]
        """
        package = package_of("duckdb", "to_duckdb")
        found: duckdb.DuckDBPyRelation = (connection or package).from_arrow(self.to_arrow())
        return found

    def count(self) -> int:
        """How many rows match: from the log without a predicate where it is certain, else by reading.

        What is read is footers, deletion vectors and the columns of the predicate. Errors as `to_batches`.

        Examples
        --------
        >>> scan = DeltaLog("/data/orders").snapshot().scan("country = 'DE'")
        >>> scan.count()
        2
        """
        return self._scan.count()

    def min(self, column: str) -> pa.Scalar:
        """The least value of a column in the rows that match, in Spark's order: NaN is the greatest, null no value.

        Without a predicate the log answers where it is certain, else the column is read.

        Parameters
        ----------
        column
            The name of a top-level column.

        Returns
        -------
        pyarrow.Scalar
            In the column's Arrow type; null where there is no value.

        Raises
        ------
        SchemaError
            There is no such column.
        UnsupportedOperationError
            Its values have no order here: structs, arrays, maps, variants.
        DataFileError, PredicateError
            As `to_batches`.

        Examples
        --------
        >>> scan = DeltaLog("/data/orders").snapshot().scan("country = 'DE'")
        >>> scan.min("amount").as_py()
        10.0
        """
        return self._scan.extreme("min", column)

    def max(self, column: str) -> pa.Scalar:
        """The greatest value of a column in the rows that match; see `min`.

        Parameters
        ----------
        column
            The name of a top-level column.

        Examples
        --------
        >>> scan = DeltaLog("/data/orders").snapshot().scan("country = 'DE'")
        >>> scan.max("amount").as_py()
        30.0
        """
        return self._scan.extreme("max", column)

    def explain(self) -> Explanation:
        """Why each file is read or skipped.

        Returns
        -------
        Explanation
            `files` is an Arrow table of one row a live file: `path` string, `kept` bool, `rule` string. `print` shows
            what each rule skips.

        Examples
        --------
        >>> from delta_ds import DeltaLog
        >>> print(DeltaLog("examples/data/sales").snapshot().scan("country = 'DE'").explain())
        6 of 18 files to read
          skipped 12: (country = 'DE'): partition values
          kept 6: may match
        """
        return self._scan.explain()

    def _card(self) -> Card:
        scan = self._scan
        return Card(
            f"Scan of {scan.snapshot.storage.url}, version {scan.snapshot.version}",
            (
                ("rows that match", scan.predicate_text),
                ("files to read", scan.known_num_files),
                ("with", ", ".join(f"_metadata.{name}" for name in scan.metadata_columns) or None),
            ),
            (self.schema.card_table(),),
            ""
            if scan.known_num_files is not None
            else "Its files have not been looked at yet. explain() shows which are read, and why.",
        )

    def __repr__(self) -> str:
        return repr(self._scan)


@checked
class Blame:
    """The rows of a version of a table, each with the commit that last wrote it; made by `Snapshot.blame`.

    Parameters
    ----------
    snapshot
        The version.
    predicate, columns, timezone
        As in `Snapshot.blame`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from delta_ds import DeltaLog
    >>> log = DeltaLog("/data/tracked")
    >>> options = {"delta.enableRowTracking": "true", "userMetadata": "first load"}
    >>> log.write(pa.table({"id": [1, 2]}), options=options), log.write(pa.table({"id": [3]}))
    (0, 1)
    >>> blame = log.blame("id > 1")
    >>> blame.to_arrow().select(["id", "_commit_version", "_commit_user_metadata"]).to_pylist()[0]
    {'id': 2, '_commit_version': 0, '_commit_user_metadata': 'first load'}
    """

    def __init__(
        self,
        snapshot: Snapshot,
        predicate: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        timezone: str = "UTC",
    ) -> None:
        from delta_ds.kernel.commands.blame import Blame as BlameOfLog

        self._blame = BlameOfLog(snapshot._version, predicate, columns, timezone)

    @property
    def schema(self) -> StructType:
        """The columns asked for, then those of the commits.

        `_row_id`, `_commit_version`, `_commit_timestamp`, `_commit_operation`, `_commit_user_id`, `_commit_user_name`,
        `_commit_user_metadata`, `_commit_engine_info`, `_commit_txn_id`, `_commit_application`, `_commit_job`,
        `_commit_notebook`.
        """
        return self._blame.schema

    def to_batches(self, max_bytes: int = DEFAULT_AHEAD_BYTES) -> Iterator[pa.RecordBatch]:
        """The rows as batches, file by file in log order.

        Parameters
        ----------
        max_bytes
            As in `Scan.to_batches`. In addition, a few texts are kept of each commit that a row names.

        Raises
        ------
        DeltaError
            As `Scan.to_batches`; a commit that rows name is damaged.

        Examples
        --------
        >>> import pyarrow as pa
        >>> log = DeltaLog("/data/tracked")
        >>> version = log.write(pa.table({"id": [1, 2]}), options={"delta.enableRowTracking": "true"})
        >>> [batch["_commit_operation"].to_pylist() for batch in log.blame().to_batches()]
        [['WRITE', 'WRITE']]
        """
        yield from self._blame.to_batches(max_bytes)

    def to_arrow(self) -> pa.Table:
        """The rows as one Arrow table, in the order of `to_batches`, whose errors it has.

        Examples
        --------
        >>> import pyarrow as pa
        >>> log = DeltaLog("/data/tracked")
        >>> version = log.write(pa.table({"id": [1, 2]}), options={"delta.enableRowTracking": "true"})
        >>> log.blame(columns=["id"]).to_arrow().select(["id", "_row_id", "_commit_version"]).to_pydict()
        {'id': [1, 2], '_row_id': [0, 1], '_commit_version': [0, 0]}
        """
        return self.to_reader().read_all()

    def to_reader(self, max_bytes: int = DEFAULT_AHEAD_BYTES) -> pa.RecordBatchReader:
        """The rows as a stream that other libraries read from, as `to_batches` gives them.

        Parameters
        ----------
        max_bytes
            As in `to_batches`.

        Examples
        --------
        >>> import pyarrow as pa
        >>> log = DeltaLog("/data/tracked")
        >>> version = log.write(pa.table({"id": [1, 2]}), options={"delta.enableRowTracking": "true"})
        >>> log.blame("id = 2").to_reader().read_all().num_rows
        1
        """
        import pyarrow as pa

        from delta_ds.kernel.format.schema.types import arrow_schema

        return pa.RecordBatchReader.from_batches(arrow_schema(self.schema), self.to_batches(max_bytes))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's PyCapsule interface: polars, DuckDB, pandas and others read it as it is, each time again."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return repr(self._blame)


def _dotted(paths: Sequence[Sequence[str]]) -> list[str]:
    return [".".join(path) for path in paths]


def _files_text(state: State) -> str:
    import pyarrow.compute as pc

    size = pc.sum(state.files.table["size"]).as_py() or 0
    return f"{state.files.num_rows:,}, {size_text(size)}"
