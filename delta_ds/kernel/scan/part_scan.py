"""Replay and skipping of one part of a checkpoint, in any process: which of its files may hold matching rows.

The parts together, then the files of the commits after the checkpoint, are what `prune` keeps of all live files, in the
same order: reconciliation goes by the key of a file and skipping looks at one file at a time.

Source: PROTOCOL.md, "Action Reconciliation", "Per-file Statistics".
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from delta_ds.kernel.expressions.tree import Expression, columns
from delta_ds.kernel.log.file_actions import working_schema
from delta_ds.kernel.log.file_selection import select_in_checkpoint
from delta_ds.kernel.log.live_files import LiveFiles
from delta_ds.kernel.log.reconcile import files_of_tables
from delta_ds.kernel.scan.skipping import row_numbers, skipping_rules
from delta_ds.kernel.schema.types import DOUBLE, FLOAT, StructType
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.log.checkpoint_files import CheckpointFiles
    from delta_ds.kernel.log.live_files import FileFilter
    from delta_ds.kernel.log.replay import ReplayHead
    from delta_ds.kernel.log.snapshot import Snapshot
    from delta_ds.kernel.storage.filesystem import Storage


@dataclass(frozen=True, slots=True)
class PartScan:
    """What a process needs to know to find the files of a part. Can be pickled.

    Attributes
    ----------
    storage
        The table's.
    touched, partition_keys
        See `ReplayHead.touched`, and `State.partition_columns`.
    predicate
        Bound; None for all live files.
    schema, partition_columns, mapping_mode, timezone, counts_nan
        See `skipping_rules`.
    statistics
        Whether the files that are found come with their statistics.
    """

    storage: Storage
    touched: pa.StringArray
    partition_keys: tuple[str, ...]
    predicate: Expression | None
    schema: StructType
    partition_columns: tuple[str, ...]
    mapping_mode: str
    timezone: str | None
    counts_nan: bool
    statistics: bool

    @classmethod
    def of(
        cls,
        version: Snapshot,
        head: ReplayHead,
        predicate: Expression | None,
        timezone: str | None,
        *,
        statistics: bool,
    ) -> PartScan:
        """The scan of a version with a bound predicate."""
        floats = predicate is not None and any(c.type in (FLOAT, DOUBLE) for c in columns(predicate))
        return cls(
            storage=version.storage,
            touched=head.touched,
            partition_keys=head.state.partition_columns,
            predicate=predicate,
            schema=version.schema,
            partition_columns=tuple(version.partition_columns),
            mapping_mode=version.mapping_mode,
            timezone=timezone,
            counts_nan=floats and version.statistics_count_nan,
            statistics=statistics,
        )

    def of_part(self, part: CheckpointFiles) -> pa.Table:
        """The files of a part: the columns of `LiveFiles.table`, and `stats`."""
        keys = self.partition_keys
        with ThreadPoolExecutor(1) as reader:
            tables = select_in_checkpoint(self.storage, part, self.touched, keys, self._keep(), reader)
        files = files_of_tables(self.storage, tables, part, working_schema(keys))
        return files.table.append_column("stats", self._statistics(files))

    def of_commits(self, files: LiveFiles) -> pa.Table:
        """The same of the commits after the checkpoint."""
        kept = files.take(self._keep()(files))
        return kept.table.append_column("stats", kept.stats_json())

    def joined(self, tables: Sequence[pa.Table]) -> LiveFiles:
        """What parts and commits gave, in their order, as live files."""
        import pyarrow as pa

        table = pa.concat_tables(tables)
        none = pa.chunked_array([pa.nulls(table.num_rows, pa.int64())])
        return LiveFiles(self.storage, table.drop_columns(["stats"]), table["stats"], none, None)

    def _keep(self) -> FileFilter:
        if self.predicate is None:
            return lambda files: row_numbers(files.num_rows)
        rules = skipping_rules(
            self.predicate,
            schema=self.schema,
            partition_columns=self.partition_columns,
            mapping_mode=self.mapping_mode,
            timezone=self.timezone,
            counts_nan=lambda: self.counts_nan,
        )
        return lambda files: rules.apply(files).rows

    def _statistics(self, files: LiveFiles) -> pa.ChunkedArray:
        """The statistics as text, also where the checkpoint has them as columns only."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self.statistics or not files.num_rows:
            return pa.chunked_array([pa.nulls(files.num_rows, pa.string())])
        text = files.stats_json()
        if not text.null_count:
            return text
        typed = files.stats_structs()
        if typed is None:
            return text
        from delta_ds.kernel.data.write.checkpoint_columns import statistics_text

        return pc.coalesce(text, pa.chunked_array([statistics_text(typed).cast(pa.string())]))
