"""The live files of a version as Arrow tables: the input of every scan.

Base columns are in memory; statistics come when asked for, since few queries need more than a column
of them: the JSON text of files added by commits is at hand, that of files in a checkpoint is read from
it, piece by piece and never kept, and its typed form (`stats_parsed`) leaf by leaf.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from delta_ds.kernel.arrow_buffers import integers, mask, numbers
from delta_ds.kernel.log.checkpoint import CheckpointFiles
from delta_ds.kernel.log.checkpoint_adds import CheckpointPart, RowGroups, parts_of
from delta_ds.kernel.log.checkpoint_columns import read_leaves
from delta_ds.kernel.log.kept_columns import KeptColumns
from delta_ds.kernel.log.paths import canonical_paths
from delta_ds.kernel.storage.filesystem import Storage

if TYPE_CHECKING:
    import pyarrow as pa


# Of the text of commits so many files at once.
_TEXT_ROWS = 1 << 16


class FilesToPrune(Protocol):
    """What deciding about files takes: their partition values and statistics, each when it is asked for."""

    @property
    def num_rows(self) -> int:
        """How many files there are."""
        ...

    def partition_texts(self, physical: str) -> pa.Array:
        """The values of a partition column as strings; null for none."""
        ...

    def stats_parsed(self, leaves: Sequence[str], rows: pa.Int64Array) -> pa.Table | None:
        """Typed statistics; see `LiveFiles.stats_parsed`."""
        ...

    def stats_texts(self, rows: pa.Int64Array) -> Iterator[pa.Array]:
        """The `stats` JSON text of the files with these ascending numbers, in order, piece by piece; null for none."""
        ...

    def kept(self, names: Sequence[str]) -> dict[str, pa.Array] | None:
        """What `keep` was given under these names, one value a file; None if any of it is not there any more."""
        ...

    def keep(self, columns: Mapping[str, pa.Array]) -> None:
        """Keep columns for the next time that somebody asks about the same files, if there is room."""
        ...


# Tells of some files the ascending numbers of those to keep.
FileFilter = Callable[[FilesToPrune], "pa.Int64Array"]


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
        self._kept = KeptColumns()

    @property
    def num_rows(self) -> int:
        """How many files are live."""
        return int(self.table.num_rows)

    @cached_property
    def canonical_paths(self) -> pa.ChunkedArray:
        """`path` in the form by which files are compared; see `paths.canonical_path`."""
        return canonical_paths(self.table["path"], self._storage)

    def take(self, rows: pa.Int64Array) -> LiveFiles:
        """Some of the files, by their ascending row numbers."""
        import numpy as np

        wanted = np.zeros(self.num_rows, dtype=bool)
        wanted[numbers(rows)] = True
        # `take` of Arrow makes one piece of a column first, all of its text.
        kept = self.working_table().filter(mask(wanted))
        base = kept.drop_columns(["stats", "row"])
        return LiveFiles(self._storage, base, kept["stats"], kept["row"], self._checkpoint)

    def partition_texts(self, physical: str) -> pa.Array:
        """See `FilesToPrune`."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if "partitionValues" in self.table.column_names:
            column = self.table["partitionValues"]
            if column.type.get_field_index(physical) >= 0:
                return pc.struct_field(column, physical).cast(pa.string()).combine_chunks()
        return pa.nulls(self.num_rows, pa.string())

    def stats_json(self, rows: pa.Array | None = None) -> pa.ChunkedArray:
        """The `stats` JSON text of files, null where there is none.

        Parameters
        ----------
        rows
            int64 row numbers into `table`; None for all, in order.
        """
        import pyarrow as pa

        kind = self._stats.type
        return pa.chunked_array([piece.cast(kind) for piece in self.stats_texts(rows)], kind)

    def stats_texts(self, rows: pa.Int64Array | None = None) -> Iterator[pa.Array]:
        """See `FilesToPrune`; None for all files, and numbers may come in any order."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = np.arange(self.num_rows) if rows is None else numbers(rows)
        if self._row.null_count == len(self._row):
            yield from self._own_texts(wanted)
            return
        if len(wanted) and (np.diff(wanted) < 0).any():
            order = np.argsort(wanted, kind="stable")
            texts = pa.concat_arrays(self.stats_texts(integers(wanted[order])))
            yield texts.take(integers(np.argsort(order, kind="stable")))
            return
        stored = numbers(pc.fill_null(_take(self._row, integers(wanted)), integers([-1])[0]))
        # By the part of the checkpoint that holds a row: one run each, and one for the files of commits.
        part = np.searchsorted([p.first_row for p in self._parts], stored, side="right") - 1
        ends = [*(np.flatnonzero(np.diff(part)) + 1), len(part)]
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            if start == end:
                continue
            if part[start] < 0:
                yield from self._own_texts(wanted[start:end])
                continue
            groups = self._parts[part[start]]
            with CheckpointPart(self._storage, groups, ()) as opened:
                for texts in opened.texts_at(stored[start:end] - groups.first_row):
                    yield texts.cast(self._stats.type)

    def kept(self, names: Sequence[str]) -> dict[str, pa.Array] | None:
        """See `FilesToPrune`."""
        return self._kept.get("", names)

    def keep(self, columns: Mapping[str, pa.Array]) -> None:
        """See `FilesToPrune`."""
        self._kept.put("", columns)

    def _own_texts(self, rows: Any) -> Iterator[pa.Array]:
        for start in range(0, len(rows), _TEXT_ROWS):
            yield _take(self._stats, integers(rows[start : start + _TEXT_ROWS])).combine_chunks()

    @cached_property
    def _parts(self) -> list[RowGroups]:
        if self._checkpoint is None:
            return []
        with ThreadPoolExecutor(os.cpu_count()) as workers:
            return parts_of(self._storage, self._checkpoint, workers)

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

    def working_table(self) -> pa.Table:
        """The files with JSON statistics and checkpoint row, as replay carries them: see `working_schema`."""
        return self.table.append_column("stats", self._stats).append_column("row", self._row)

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
