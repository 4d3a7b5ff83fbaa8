"""The live files of a version as Arrow tables: the input of every scan.

Base columns are in memory; statistics come when asked for, since few queries need more than a column
of them: the JSON text of files added by commits is at hand, that of files in a checkpoint is read from
it on first use, and its typed form (`stats_parsed`) leaf by leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from delta_ds.kernel.arrow_buffers import numbers
from delta_ds.kernel.log.checkpoint import CheckpointFiles, read_leaves
from delta_ds.kernel.log.paths import canonical_paths
from delta_ds.kernel.storage.filesystem import Storage

if TYPE_CHECKING:
    import pyarrow as pa


class LiveFiles:
    """The live files of one version.

    Attributes
    ----------
    table
        One row a file: `path` string (as in the log, URI-encoded), `partitionValues` struct of strings by
        physical name (absent for unpartitioned tables), `size` and `modificationTime` int64 (bytes,
        ms), `dataChange` bool, `deletionVector` struct (null for none), `baseRowId` and
        `defaultRowCommitVersion` int64 (null for none).
    """

    def __init__(
        self,
        storage: Storage,
        table: pa.Table,
        stats: pa.ChunkedArray,
        row: pa.ChunkedArray,
        checkpoint: CheckpointFiles | None,
    ) -> None:
        self._storage = storage
        self.table = table
        # Of equal length with the table: JSON statistics of files from commits, row in the checkpoint of the others.
        self._stats = stats
        self._row = row
        self._checkpoint = checkpoint
        self._leaves: dict[str, pa.ChunkedArray | None] = {}

    @property
    def num_rows(self) -> int:
        """How many files are live."""
        return int(self.table.num_rows)

    @cached_property
    def canonical_paths(self) -> pa.ChunkedArray:
        """`path` in the form by which files are compared; see `paths.canonical_path`."""
        return canonical_paths(self.table["path"], self._storage)

    def stats_json(self, rows: pa.Array | None = None) -> pa.ChunkedArray:
        """The `stats` JSON text of files, null where there is none.

        Parameters
        ----------
        rows
            int64 row numbers into `table`; None for all, in order.
        """
        import pyarrow.compute as pc

        own = self._stats if rows is None else self._stats.take(rows)
        stored = self._from_checkpoint("stats", rows)
        if stored is None:
            return own
        stored = stored.cast(own.type)
        return stored if own.null_count == len(own) else pc.coalesce(own, stored)

    def stats_parsed(self, leaves: Sequence[str], rows: pa.Array | None = None) -> pa.Table | None:
        """Typed statistics from the struct form of a checkpoint.

        Parameters
        ----------
        leaves
            Dotted physical paths below `stats_parsed`: `numRecords`, `minValues.a.b`, ...
        rows
            int64 row numbers into `table`; None for all, in order.

        Returns
        -------
        pyarrow.Table or None
            A column a leaf that exists, named by it, null for files that are not from the checkpoint.
        """
        import pyarrow as pa

        self._load([f"stats_parsed.{leaf}" for leaf in leaves])
        found = {leaf: self._from_checkpoint(f"stats_parsed.{leaf}", rows) for leaf in leaves}
        present = {leaf: column for leaf, column in found.items() if column is not None}
        return pa.table(present) if present else None

    def _load(self, leaves: Sequence[str]) -> None:
        missing = [leaf for leaf in leaves if leaf not in self._leaves]
        if not missing:
            return
        table = None
        if self._checkpoint is not None and self._row.null_count < len(self._row):
            table = read_leaves(self._storage, self._checkpoint, missing)
        for leaf in missing:
            self._leaves[leaf] = table[leaf] if table is not None and leaf in table.column_names else None

    def _from_checkpoint(self, leaf: str, rows: pa.Array | None) -> pa.ChunkedArray | None:
        self._load([leaf])
        column = self._leaves[leaf]
        if column is None:
            return None
        return _take(column, self._row if rows is None else self._row.take(rows))

    @property
    def parts(self) -> tuple[pa.ChunkedArray, pa.ChunkedArray, CheckpointFiles | None]:
        """What the statistics come from (JSON of commits, checkpoint rows, checkpoint): for replay and cache."""
        return self._stats, self._row, self._checkpoint


def _take(column: pa.ChunkedArray, rows: pa.ChunkedArray) -> pa.ChunkedArray:
    """The rows of a column; a run of consecutive ones, as after a fresh checkpoint, without copying."""
    import numpy as np

    if len(rows) and rows.null_count == 0:
        wanted = numbers(rows)
        if (np.diff(wanted) == 1).all():
            return column.slice(int(wanted[0]), len(wanted))
    return column.take(rows)
