"""Action reconciliation: which `add` and `remove` of each file is the newest.

A file action's key is its path and deletion vector; the newest action of a key wins, and only winning adds
are live. Commits are reconciled among themselves by one dictionary encoding, then knock out rows of the
older state by one hash lookup: O(actions), no Python object per file.

Source: PROTOCOL.md, "Action Reconciliation"; protocol-checklist REC-*.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.arrow_buffers import fields_of, flags, integers
from delta_ds.kernel.arrow_buffers import mask as as_mask
from delta_ds.kernel.log.file_actions import file_keys, keys_of_files, working_schema
from delta_ds.kernel.log.live_files import LiveFiles
from delta_ds.kernel.storage.filesystem import Storage

if TYPE_CHECKING:
    import pyarrow as pa

    from delta_ds.kernel.log.checkpoint import CheckpointFiles


@dataclass(slots=True)
class OlderFiles:
    """The files before some commits, in tables of `working_schema`, and the checkpoint their rows count in."""

    tables: list[pa.Table]
    checkpoint: CheckpointFiles | None


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
    storage: Storage, older: OlderFiles, parsed: list[pa.Table], columns: Sequence[str]
) -> LiveFiles:
    """The live files after some commits.

    Parameters
    ----------
    older
        The files that were live before them.
    parsed
        The file actions of the commits, oldest first, as `parse_file_actions` gives them; given up on the way,
        since two copies of a long log need not be in memory.
    columns
        Every physical partition column that the log has had.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    schema = working_schema(columns)
    adds: list[pa.Table] = []
    touched = None
    if parsed:
        key = join_keys([file_keys(t, storage) for t in parsed])
        newest = newest_rows(key)
        touched = key.filter(as_mask(newest)) if older.tables else None
        del key
        ends = np.cumsum([table.num_rows for table in parsed])
        masks = np.split(newest, ends[:-1])
        pending: list[pa.ChunkedArray | None] = [table["add"] for table in parsed]
        parsed.clear()

        def live(index: int) -> pa.Table:
            add, pending[index] = pending[index], None
            return align(_live_adds(add, masks[index]), schema)

        with ThreadPoolExecutor(os.cpu_count()) as workers:
            adds = list(workers.map(live, range(len(masks))))
    survivors = []
    for table in older.tables:
        if touched is not None and len(touched):
            dead = pc.is_in(keys_of_files(table, storage), value_set=touched)
            if pc.any(dead).as_py():
                table = table.filter(pc.invert(dead))
        survivors.append(table)
    whole = pa.concat_tables([*survivors, *adds]) if survivors or adds else pa.Table.from_batches([], schema)
    for name in ("size", "modificationTime"):
        if whole[name].null_count:
            whole = whole.set_column(
                whole.schema.get_field_index(name),
                schema.field(name),
                pc.fill_null(whole[name], integers([0])[0]),
            )
    base = whole.drop_columns(["stats", "row"])
    return LiveFiles(storage, base, whole["stats"], whole["row"], older.checkpoint)


def _live_adds(add: pa.ChunkedArray, newest: Any) -> pa.Table:
    """The columns of the adds that are the newest of their key."""
    import pyarrow as pa
    import pyarrow.compute as pc

    live = pc.and_(as_mask(newest), pc.is_valid(add).combine_chunks())
    if not pc.all(live, min_count=0).as_py():
        add = pc.filter(add, live, memory_pool=pa.system_memory_pool())
    return pa.table({f.name: pc.struct_field(add, f.name) for f in add.type})


def join_keys(keys: list[pa.ChunkedArray]) -> pa.StringArray:
    import pyarrow as pa

    chunks = [chunk for key in keys for chunk in key.chunks]
    # From the allocator that parsing used (see `parse_file_actions`): what that freed is used again.
    return pa.concat_arrays(chunks, memory_pool=pa.system_memory_pool())


def newest_rows(keys: pa.StringArray) -> Any:
    """A mask of the last row of each key; rows without a key are False."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    encoded = pc.dictionary_encode(keys, memory_pool=pa.system_memory_pool())
    codes = encoded.indices
    numbers = np.frombuffer(codes.buffers()[1], dtype=np.int32)[codes.offset : codes.offset + len(codes)]
    rows = np.flatnonzero(flags(pc.is_valid(codes)))
    last = np.full(len(encoded.dictionary), -1, dtype=np.int64)
    # With repeated indices the last assignment stays, which is the newest row.
    last[numbers[rows]] = rows
    mask = np.zeros(len(keys), dtype=bool)
    mask[last] = True
    return mask
