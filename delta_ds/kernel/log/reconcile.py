"""Action reconciliation: which `add` and `remove` of each file is the newest; the live files of a checkpoint, by part.

A file action's key is its path and deletion vector; the newest action of a key wins, and only winning adds
are live. Commits are reconciled among themselves by one dictionary encoding, then knock out rows of the
older state by one hash lookup: O(actions), no Python object per file.

A filter is asked about each part of a checkpoint, and what it keeps is compared with what newer commits name. A part
can be looked at anywhere: in turn, in threads, or in the tasks of a Spark job.

Source: PROTOCOL.md, "Action Reconciliation"; protocol-checklist REC-*.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.base.arrow_buffers import field_of, fields_of, flags, integers, numbers
from delta_ds.kernel.base.arrow_buffers import mask as as_mask
from delta_ds.kernel.log.checkpoint_adds import CheckpointPart, KeptColumns
from delta_ds.kernel.log.checkpoint_files import CheckpointFiles
from delta_ds.kernel.log.file_actions import file_keys, keys_of_files, with_believable_sizes, working_schema
from delta_ds.kernel.log.live_files import FileFilter, LiveFiles
from delta_ds.kernel.log.parts import Map, Part, pieces
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.log.checkpoint_files import CheckpointFiles

# Of the actions of a commit nearly all are live adds in a row, mostly: these are used as they were parsed. More than a
# third of them dead, or runs shorter than this, and the live ones are copied instead.
_LIVE_TO_SHARE = 1.5
_ROWS_OF_RUN = 64


def align(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the partition columns of a wider schema (a commit changed the partitioning)."""
    import pyarrow as pa

    if table.schema == schema:
        return table
    columns = []
    for wanted in schema:
        if wanted.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, wanted.type))
            continue
        column = table[wanted.name]
        if wanted.name == "partitionValues" and column.type != wanted.type:
            fields = fields_of(column.combine_chunks(), wanted.type)
            column = pa.StructArray.from_arrays(fields, fields=list(wanted.type))
        columns.append(column)
    return pa.table(columns, schema=schema)


def reconcile(
    storage: Storage, parsed: list[pa.Table], columns: Sequence[str], *, keys: bool
) -> tuple[list[pa.Table], pa.StringArray]:
    """Reconcile some commits among themselves.

    Parameters
    ----------
    parsed
        The file actions of the commits, oldest first, as `parse_file_actions` gives them; given up on the way,
        since two copies of a long log need not be in memory.
    columns
        Every physical partition column that the log has had.
    keys
        Whether to tell which files they name; else none.

    Returns
    -------
    adds, touched
        The files that are live after them, in tables of `working_schema`; the keys of all files that they add or
        remove, each once: no older action counts for these.
    """
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np
    import pyarrow as pa

    none = pa.nulls(0, pa.string())
    if not parsed:
        return [], none
    schema = working_schema(columns)
    key = join_keys([file_keys(t, storage) for t in parsed])
    newest = newest_rows(key)
    touched = keys_at(key, newest) if keys else none
    del key
    ends = np.cumsum([table.num_rows for table in parsed])
    masks = np.split(newest, ends[:-1])
    pending: list[pa.ChunkedArray | None] = [table["add"] for table in parsed]
    parsed.clear()

    def live(index: int) -> pa.Table:
        add, pending[index] = pending[index], None
        return align(_live_adds(add, masks[index]), schema)

    with ThreadPoolExecutor(os.cpu_count()) as workers:
        return list(workers.map(live, range(len(masks)))), touched


def keys_at(keys: pa.ChunkedArray, mask: Any) -> pa.StringArray:
    """The keys of the rows that a mask is true of, in one piece."""
    import pyarrow as pa

    return pa.concat_arrays(keys.filter(as_mask(mask)).chunks or [pa.nulls(0, pa.string())])


def untouched(table: pa.Table, touched: pa.StringArray, storage: Storage) -> pa.Table:
    """The rows of a table that has the fields of an `add`, but those whose keys are touched."""
    import pyarrow.compute as pc

    if not len(touched):
        return table
    dead = pc.is_in(keys_of_files(table, storage), value_set=touched)
    return table.filter(pc.invert(dead)) if pc.any(dead).as_py() else table


def files_of_tables(
    storage: Storage, tables: Sequence[pa.Table], checkpoint: CheckpointFiles | None, columns: Sequence[str]
) -> LiveFiles:
    """Live files from tables of `working_schema`; where they have a row, it counts in the checkpoint."""
    import pyarrow as pa
    import pyarrow.compute as pc

    schema = working_schema(columns)
    whole = pa.concat_tables(tables) if tables else pa.Table.from_batches([], schema)
    for name in ("size", "modificationTime"):
        if whole[name].null_count:
            whole = whole.set_column(
                whole.schema.get_field_index(name),
                schema.field(name),
                pc.fill_null(whole[name], integers([0])[0]),
            )
    whole = with_believable_sizes(whole)
    base = whole.drop_columns(["stats", "row"])
    return LiveFiles(storage, base, whole["stats"], whole["row"], checkpoint)


def _live_adds(add: pa.ChunkedArray, newest: Any) -> pa.Table:
    """The columns of the adds that are the newest of their key."""
    import pyarrow as pa
    import pyarrow.compute as pc

    live = pc.and_(as_mask(newest), pc.is_valid(add).combine_chunks())
    if not pc.all(live, min_count=0).as_py():
        add = _runs(add, live) or pc.filter(add, live, memory_pool=pa.system_memory_pool())
    return pa.table({f.name: field_of(add, f.name) for f in add.type})


def _runs(rows: pa.ChunkedArray, live: pa.BooleanArray) -> pa.ChunkedArray | None:
    """The live rows, not copied; None where they come in many runs, or too many others would stay in memory."""
    import numpy as np
    import pyarrow as pa

    if _LIVE_TO_SHARE * live.true_count < len(live):
        return None
    edges = np.flatnonzero(np.diff(flags(live), prepend=False, append=False))
    if len(edges) > 2 * (len(live) // _ROWS_OF_RUN + rows.num_chunks):
        return None
    runs = [rows.slice(start, end - start) for start, end in zip(edges[::2], edges[1::2], strict=True)]
    return pa.chunked_array([chunk for run in runs for chunk in run.chunks], rows.type)


def join_keys(keys: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    """The keys of several tables as one column, none of them copied."""
    import pyarrow as pa

    return pa.chunked_array([chunk for key in keys for chunk in key.chunks], pa.string())


def newest_rows(keys: pa.ChunkedArray) -> Any:
    """A mask of the last row of each key; rows without a key are False."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    # From the allocator that parsing used (see `parse_file_actions`): what that freed is used again.
    encoded = pc.dictionary_encode(keys, memory_pool=pa.system_memory_pool())
    # All chunks have one dictionary; -1 stands for rows without a key.
    codes = np.concatenate([np.empty(0, np.int32), *map(_codes, encoded.chunks)])
    rows = np.flatnonzero(codes >= 0)
    last = np.full(codes.max(initial=-1) + 1, -1, dtype=np.int64)
    # With repeated indices the last assignment stays, which is the newest row.
    last[codes[rows]] = rows
    mask = np.zeros(len(codes), dtype=bool)
    mask[last] = True
    return mask


def _codes(encoded: pa.DictionaryArray) -> Any:
    import numpy as np

    codes = encoded.indices
    found = np.frombuffer(codes.buffers()[1], dtype=np.int32)[codes.offset :][: len(codes)]
    return np.where(flags(codes.is_valid()), found, np.int32(-1)) if codes.null_count else found


@dataclass(frozen=True, slots=True)
class OlderFiles:
    """The files that a checkpoint adds, but those that commits after it name. Can be pickled.

    Attributes
    ----------
    checkpoint
        Its files.
    touched
        The keys of the files that the commits add or remove.
    partition_columns
        See `State.partition_columns`.
    """

    storage: Storage
    checkpoint: CheckpointFiles
    touched: pa.StringArray
    partition_columns: tuple[str, ...]


def select(
    older: OlderFiles,
    parts: Sequence[Part],
    keep: FileFilter | None,
    map: Map,
    kept_columns: KeptColumns | None = None,
    *,
    statistics: bool = False,
) -> Iterable[pa.Table]:
    """The live files in some parts of a checkpoint that a filter keeps.

    Parameters
    ----------
    keep
        Tells of some files the ascending numbers of those to keep; None: all. It can be pickled if `map` needs that.
    map
        Looks at the parts.
    kept_columns
        What filters found out about the parts before.
    statistics
        Whether the files come with their statistics, for who will not read the checkpoint for them: `stats`, and as
        last column `stats_parsed` where the text is not all.

    Returns
    -------
    iterable of pyarrow.Table
        One a part, in order, of `working_schema`.

    Raises
    ------
    UnreadableCheckpointError
        A file of the checkpoint cannot be read.
    """
    return map(_Selection(older, keep, kept_columns, statistics), parts)


@dataclass(frozen=True, slots=True)
class _Selection:
    older: OlderFiles
    keep: FileFilter | None
    kept_columns: KeptColumns | None
    statistics: bool

    def __call__(self, part: Part) -> pa.Table:
        import pyarrow as pa

        none = pa.Table.from_batches([], working_schema(self.older.partition_columns))
        files = [self._files(piece) for piece in pieces(self.older.storage, part) if "add" in piece.actions]
        return pa.concat_tables(files, promote_options="default") if files else none

    def _files(self, part: Part) -> pa.Table:
        import pyarrow as pa

        storage, columns = self.older.storage, self.older.partition_columns
        with CheckpointPart(storage, part, columns, self.kept_columns) as opened:
            found = opened.live_files(None if self.keep is None else self.keep(opened))
            files = untouched(found, self.older.touched, storage)
            if self.statistics:
                told = opened.statistics(numbers(files["row"]) - part.first_row)
            else:
                told = {"stats": pa.chunked_array([pa.nulls(files.num_rows, pa.string())])}
        for name, column in told.items():
            files = files.append_column(name, column)
        return files.select([*working_schema(columns).names, *list(told)[1:]])
