"""The adds of a checkpoint, some row groups at a time: for filters that keep few files, and need few columns to decide.

A part is a run of row groups of one file. What was read of it goes with it, so memory is bounded by the parts that
are looked at at the same time.

Source: PROTOCOL.md, "Checkpoints", "V2 Spec", "Sidecar Files".
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.arrow_buffers import flags, integers, map_values, numbers
from delta_ds.kernel.log.checkpoint import add_leaves, conform_adds, descend, has_leaf
from delta_ds.kernel.log.checkpoint_files import CheckpointFiles, open_file
from delta_ds.kernel.log.file_actions import files_schema
from delta_ds.kernel.log.kept_columns import KeptColumns
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    Numbers = np.ndarray[Any, np.dtype[np.int64]]

# Smaller row groups go together: each part has a fixed cost, each row some hundred bytes of statistics.
_PART_ROWS = 1 << 16
# Of one text column so many rows are in memory at once.
_TEXT_ROWS = 1 << 12


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Consecutive row groups of one file of a checkpoint.

    Attributes
    ----------
    files
        Of the checkpoint, or of a part of it.
    footer
        Of the file.
    first_row, num_rows
        Their rows, counted through all files of the checkpoint.
    """

    files: CheckpointFiles
    path: str
    footer: pq.FileMetaData
    groups: tuple[int, ...]
    first_row: int
    num_rows: int

    @property
    def place(self) -> str | None:
        """A name of its own, which no row groups of a file have that takes the place of this one.

        None where the store cannot tell such a file.
        """
        seen = self.files.seen[self.path]
        if not seen.is_certain:
            return None
        status = seen.status
        named = f"{self.path}:{status.size}:{status.modified_ms}:{status.etag}"
        return f"{named}:{self.groups[0]}:{self.groups[-1]}"


def parts_of(storage: Storage, files: CheckpointFiles, workers: Executor) -> list[RowGroups]:
    """The parts of a checkpoint, in order; row groups that say they hold no add are left out.

    Raises
    ------
    UnreadableCheckpointError
        The footer of a file cannot be read.
    """

    def footer(path: str) -> pq.FileMetaData:
        with open_file(storage, files, path) as opened:
            if "add" in opened.schema.names:
                add_leaves(opened.schema.field("add").type)
            return opened.metadata

    parts: list[RowGroups] = []
    base = 0
    for path, found in zip(files.paths, workers.map(footer, files.paths), strict=True):
        groups = range(found.num_row_groups) if files.groups is None else files.groups
        parts += _parts_of_file(files, path, found, groups, base)
        base += sum(found.row_group(group).num_rows for group in groups)
    return parts


def _parts_of_file(
    files: CheckpointFiles, path: str, footer: pq.FileMetaData, groups: Sequence[int], base: int
) -> Iterator[RowGroups]:
    column = _column_number(footer, "add.path")
    if column is None:
        return
    open_: list[int] = []
    first = base
    rows = 0
    for group in groups:
        described = footer.row_group(group)
        empty = _nulls(described, column) == described.num_rows
        if open_ and (empty or rows + described.num_rows > _PART_ROWS):
            yield RowGroups(files, path, footer, tuple(open_), first, rows)
            open_, rows = [], 0
        if not open_:
            first = base
        if not empty:
            open_.append(group)
            rows += described.num_rows
        base += described.num_rows
    if open_:
        yield RowGroups(files, path, footer, tuple(open_), first, rows)


def _column_number(footer: pq.FileMetaData, path: str) -> int | None:
    schema = footer.schema
    return next((n for n in range(len(schema)) if schema.column(n).path == path), None)


def _nulls(group: pq.RowGroupMetaData, column: int) -> int | None:
    """How many rows of a column are null; None if the footer does not say."""
    statistics = group.column(column).statistics
    return statistics.null_count if statistics is not None and statistics.has_null_count else None


class CheckpointPart:
    """The adds of a run of row groups: what pruning asks of them, and the live files that a filter keeps.

    Rows are numbered through the adds of the part. A context manager.
    """

    def __init__(
        self,
        storage: Storage,
        part: RowGroups,
        partition_columns: Sequence[str],
        kept: KeptColumns | None = None,
    ) -> None:
        self._kept = kept
        self._part = part
        self._partition_columns = partition_columns
        self._opened = open_file(storage, part.files, part.path, part.footer)
        self._schema = self._opened.schema
        self._values: pa.MapArray | None = None

    def __enter__(self) -> CheckpointPart:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def num_rows(self) -> int:
        """How many adds there are."""
        return self._part.num_rows if self._adds is None else len(self._adds)

    @functools.cached_property
    def _adds(self) -> pa.Int64Array | None:
        """The rows that are adds, as numbers within the part; None: all of them."""
        import numpy as np
        import pyarrow.compute as pc

        column = _column_number(self._part.footer, "add.path")
        assert column is not None  # else the row groups were left out
        groups = [self._part.footer.row_group(group) for group in self._part.groups]
        if all(_nulls(group, column) == 0 for group in groups):
            return None
        lengths = pc.binary_length(self._read("path"))
        return integers(np.flatnonzero(flags(pc.is_valid(lengths))))

    def _read(self, leaf: str) -> pa.Array:
        """A column inside `add`, of all rows."""
        table = self._opened.read([f"add.{leaf}"], self._part.groups, threads=False)
        return descend(table["add"], leaf.split(".")).combine_chunks()

    def _of_adds(self, column: pa.Array, rows: pa.Int64Array | None = None) -> pa.Array:
        if self._adds is not None:
            rows = self._adds if rows is None else self._adds.take(rows)
        return column if rows is None or len(rows) == len(column) else column.take(rows)

    def partition_texts(self, physical: str) -> pa.Array:
        """See `FilesToPrune`."""
        import pyarrow as pa

        names = {field.name for field in self._schema.field("add").type}
        if physical in self._partition_columns:
            if "partitionValues" in names:
                if self._values is None:
                    self._values = self._of_adds(self._read("partitionValues"))
                return map_values(self._values, physical)
            if "partitionValues_parsed" in names:
                leaf = f"partitionValues_parsed.{physical}"
                if has_leaf(self._schema, leaf):
                    return self._opened.translated(lambda: self._of_adds(self._read(leaf)).cast(pa.string()))
        return pa.nulls(self.num_rows, pa.string())

    def stats_parsed(self, leaves: Sequence[str], rows: pa.Int64Array) -> pa.Table | None:
        """See `FilesToPrune`."""
        import pyarrow as pa

        found = [leaf for leaf in leaves if has_leaf(self._schema, f"stats_parsed.{leaf}")]
        if not found:
            return None
        columns = [f"add.stats_parsed.{leaf}" for leaf in found]
        table = self._opened.read(columns, self._part.groups, threads=False)
        typed = {leaf: descend(table["add"], ["stats_parsed", *leaf.split(".")]) for leaf in found}
        return pa.table(
            {leaf: self._of_adds(column.combine_chunks(), rows) for leaf, column in typed.items()}
        )

    def stats_texts(self, rows: pa.Int64Array) -> Iterator[pa.Array]:
        """See `FilesToPrune`."""
        return self.texts_at(numbers(rows if self._adds is None else self._adds.take(rows)))

    def texts_at(self, rows: Numbers, paths: pa.Array | None = None) -> Iterator[pa.Array]:
        """The JSON text of statistics.

        Parameters
        ----------
        rows
            Ascending int64 numbers through all rows of the part, adds or not.
        paths
            Those that the rows must have, for stores that cannot tell a file that takes the place of another one.

        Raises
        ------
        CheckpointReplacedError
            They have others.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = ["stats"] if has_leaf(self._schema, "stats") else []
        if paths is not None:
            wanted.append("path")
        if not wanted:
            yield pa.nulls(len(rows), pa.string())
            return
        done = 0
        for within, adds in self._batches([f"add.{name}" for name in wanted], rows, _TEXT_ROWS):
            chosen = adds if len(within) == len(adds) else adds.take(integers(within))
            if paths is not None:
                self._check_paths(pc.struct_field(chosen, "path"), paths.slice(done, len(within)))
            done += len(within)
            yield (
                pc.struct_field(chosen, "stats") if "stats" in wanted else pa.nulls(len(within), pa.string())
            )

    def _check_paths(self, found: pa.Array, expected: pa.Array) -> None:
        if not self._opened.translated(lambda: found.cast(expected.type)).equals(expected):
            raise self._opened.replaced()

    def _batches(
        self, columns: Sequence[str], rows: Numbers, size: int
    ) -> Iterator[tuple[Numbers, pa.StructArray]]:
        """Some columns of all rows, batch by batch, every text checked to be text, and which rows in it are wanted.

        Parameters
        ----------
        rows
            Ascending numbers of those wanted; batches without any are left out.
        """
        import numpy as np

        start = 0
        for batch in self._opened.batches(size, columns, self._part.groups, threads=False):
            end = start + batch.num_rows
            within = rows[np.searchsorted(rows, start) : np.searchsorted(rows, end)]
            if len(within):
                yield within - start, batch["add"]
            start = end

    def kept(self, names: Sequence[str]) -> dict[str, pa.Array] | None:
        """See `FilesToPrune`."""
        place = self._part.place
        return None if self._kept is None or place is None else self._kept.get(place, names)

    def keep(self, columns: Mapping[str, pa.Array]) -> None:
        """See `FilesToPrune`."""
        place = self._part.place
        if self._kept is not None and place is not None:
            self._kept.put(place, columns)

    def live_files(self, rows: pa.Int64Array) -> pa.Table:
        """Some of the adds as live files.

        Returns
        -------
        pyarrow.Table
            The columns of `files_schema`; `row` counts through all files of the checkpoint.
        """
        import pyarrow as pa

        chosen = numbers(rows if self._adds is None else self._adds.take(rows))
        tables = []
        done = 0
        columns = add_leaves(self._schema.field("add").type)
        for within, adds in self._batches(columns, chosen, _PART_ROWS) if len(chosen) else ():
            table = pa.table({"add": adds if len(within) == len(adds) else adds.take(integers(within))})
            number = integers(chosen[done : done + len(within)] + self._part.first_row)
            conform = functools.partial(conform_adds, table, self._partition_columns, number)
            tables.append(self._opened.translated(conform))
            done += len(within)
        return pa.concat_tables([pa.Table.from_batches([], files_schema(self._partition_columns)), *tables])
