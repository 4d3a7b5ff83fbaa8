"""`Snapshot`: one version of a table, as users hold it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.api.frames import Frames
from delta_ds.kernel.base.arguments import checked
from delta_ds.kernel.base.card import Card, Shown, listed, size_text
from delta_ds.kernel.log import history

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.commands.blame.blame import Blame
    from delta_ds.kernel.commands.layout.column import ColumnLayout
    from delta_ds.kernel.commands.layout.timeline import Timeline
    from delta_ds.kernel.commands.plot.plots import Plots
    from delta_ds.kernel.files.scan.scan import Scan
    from delta_ds.kernel.format.actions import Metadata, Protocol
    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.kernel.format.schema.types import StructType
    from delta_ds.kernel.log.replay import State
    from delta_ds.kernel.log.snapshot import Snapshot as Version


@checked
class Snapshot(Shown, Frames):
    """The state of a table at one version.

    Made by `DeltaLog.snapshot`. Opening reads protocol and metadata only and refuses what cannot be
    read; files are replayed on first use.

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
        """Which versions and features a client must have."""
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
        """When the version was committed, ms since 1970: in-commit where enabled, else the file's time."""
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
        """The live files, or those that may hold rows matching a predicate.

        Parameters
        ----------
        predicate
            Spark SQL text or a tree; None for every file.
        timezone
            The session time zone in which the predicate is meant.

        Returns
        -------
        pyarrow.Table
            A row a file: `path`, `size` in bytes, `partitionValues`, `modificationTime` in ms; `stats` is JSON text.

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
        """A scan of this version: which files, in which slices, to which rows.

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
        from delta_ds.kernel.files.scan.scan import Scan

        return Scan(self._version, predicate, columns, timezone, tuple(metadata_columns))

    def blame(
        self,
        predicate: str | Expression | None = None,
        columns: Sequence[str] | None = None,
        *,
        timezone: str = "UTC",
    ) -> Blame:
        """The rows of this version, each with the commit that last wrote it: version, time, operation, user, job.

        Copying a row is not writing it: rows that OPTIMIZE moves, or that a command leaves as they are in a file that
        it rewrites, keep their commit. Of commits that the log no longer has only the version is known.

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
            A column does not exist, or has a name that is one of this answer's own.
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
        from delta_ds.kernel.commands.blame.blame import Blame

        return Blame(self._version, predicate, columns, timezone)

    def column_layout(self, column: str, *, timezone: str = "UTC") -> ColumnLayout:
        """The range of a column's values in each file, and how many files lookups by it read.

        Parameters
        ----------
        column
            Its name as in SQL: a field of a struct as `s.a`, backticks around odd names.
        timezone
            The zone of a partition column of timestamps whose values name none.

        Raises
        ------
        SchemaError
            There is no such column.
        UnsupportedOperationError
            Logs hold no bounds of values of its type.

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
            At most so many versions, the newest ones; None for all that the log still holds.

        Examples
        --------
        >>> snapshot = DeltaLog("/data/orders").snapshot()
        >>> snapshot.timeline().versions["version"].to_pylist()
        [0, 1]
        """
        from delta_ds.kernel.commands.layout.timeline import timeline

        return timeline(self._version, limit)

    def detail(self) -> dict[str, Any]:
        """The table's description under the keys of `DESCRIBE DETAIL`; sizes in bytes, times in ms since 1970.

        Returns
        -------
        dict
            `format`, `id`, `location`, `numFiles`, `sizeInBytes`, `partitionColumns`, `properties`, ...

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


def _dotted(paths: Sequence[Sequence[str]]) -> list[str]:
    return [".".join(path) for path in paths]


def _files_text(state: State) -> str:
    import pyarrow.compute as pc

    size = pc.sum(state.files.table["size"]).as_py() or 0
    return f"{state.files.num_rows:,}, {size_text(size)}"
