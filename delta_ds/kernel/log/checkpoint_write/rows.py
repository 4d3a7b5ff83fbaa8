"""File actions of a checkpoint with all their fields, a few thousand rows at a time.

`checkpoint.py` reads what a scan needs; this is for the next checkpoint, which must lose nothing.

Source: PROTOCOL.md, "Checkpoint Schema"; protocol-checklist CKP-R-06, CKP-R-11.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.base.arrow_buffers import field_of, fields_of
from delta_ds.kernel.base.nested_arrays import as_text_map, map_of_struct
from delta_ds.kernel.log.checkpoint import remove_leaves, removed_by
from delta_ds.kernel.log.checkpoint_files import CheckpointFiles, open_file
from delta_ds.kernel.log.checkpoint_write.schema import ADD_FIELDS, REMOVE_FIELDS, field_type, text_map
from delta_ds.kernel.log.file_actions import as_vectors
from delta_ds.kernel.storage.filesystem import Storage

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# Rows read at once; with statistics a row takes about a kilobyte.
_ROWS = 32_768


def read_checkpoint_rows(
    storage: Storage, files: CheckpointFiles, partition_keys: Sequence[str], parsed_statistics: bool
) -> Iterator[tuple[str, pa.Table]]:
    """The adds and removes of a checkpoint, file by file.

    Parameters
    ----------
    partition_keys
        The keys of partition values, for checkpoints that have them in typed form only.
    parsed_statistics
        Whether to read `stats_parsed` also where every file has its statistics as text.

    Yields
    ------
    kind, table
        `add` or `remove`, and its fields as `schema.field_type` has them; of adds also `stats`, and
        `stats_parsed` in the file's own type where it is read.

    Raises
    ------
    UnreadableCheckpointError
        A file cannot be read.
    """
    for path in files.paths:
        with open_file(storage, files, path) as opened:
            parsed = parsed_statistics or _lacks_text(opened.metadata)
            leaves = _leaves(opened.schema, parsed, f"{path} of {storage.url}")
            for batch in opened.batches(_ROWS, leaves) if leaves else ():
                yield from opened.translated(
                    functools.partial(_split, batch, partition_keys, opened.written_ms)
                )


def _lacks_text(metadata: pq.FileMetaData) -> bool:
    """Whether some `add` may have no statistics as text."""
    nulls = {"add.path": 0, "add.stats": 0}
    found = set()
    for g in range(metadata.num_row_groups):
        group = metadata.row_group(g)
        for i in range(group.num_columns):
            chunk = group.column(i)
            if chunk.path_in_schema in nulls:
                statistics = chunk.statistics
                if statistics is None or not statistics.has_null_count:
                    return True
                found.add(chunk.path_in_schema)
                nulls[chunk.path_in_schema] += statistics.null_count
    return "add.stats" not in found or nulls["add.stats"] > nulls["add.path"]


def _leaves(schema: pa.Schema, parsed_statistics: bool, where: str) -> list[str]:
    out = []
    if "add" in schema.names:
        present = {f.name for f in schema.field("add").type}
        wanted = {*ADD_FIELDS, "stats"} - {"dataChange"}
        if parsed_statistics:
            wanted.add("stats_parsed")
        if "partitionValues" not in present:
            wanted.add("partitionValues_parsed")
        out += [f"add.{name}" for name in sorted(wanted & present)]
    return out + remove_leaves(schema, [name for name in REMOVE_FIELDS if name != "dataChange"], where)


def _split(
    batch: pa.RecordBatch, partition_keys: Sequence[str], written_ms: int
) -> list[tuple[str, pa.Table]]:
    found = []
    for kind in ("add", "remove"):
        if kind not in batch.schema.names:
            continue
        rows = batch.column(kind)
        valid = pc.is_valid(pc.struct_field(rows, "path"))
        if valid.true_count == 0:
            continue
        if valid.false_count:
            rows = rows.filter(valid)
        fields = (*ADD_FIELDS, "stats") if kind == "add" else REMOVE_FIELDS
        found.append((kind, _conform(rows, fields, partition_keys, written_ms)))
    return found


def _conform(
    rows: pa.StructArray, fields: Sequence[str], partition_keys: Sequence[str], written_ms: int
) -> pa.Table:
    present = {f.name for f in rows.type}
    columns: dict[str, pa.Array] = {}
    for name in fields:
        if name == "dataChange":
            continue
        kind = field_type(name)
        if name in present:
            columns[name] = _as(field_of(rows, name), kind)
        elif name == "partitionValues" and "partitionValues_parsed" in present:
            columns[name] = _from_parsed(pc.struct_field(rows, "partitionValues_parsed"), partition_keys)
        elif name == "deletionTimestamp":
            columns[name] = removed_by(written_ms, len(rows))
        else:
            columns[name] = pa.nulls(len(rows), kind)
    if "stats_parsed" in present:
        columns["stats_parsed"] = pc.struct_field(rows, "stats_parsed")
    return pa.table(columns)


def _as(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_map(kind):
        return as_text_map(values, kind)
    return as_vectors(values, kind) if pa.types.is_struct(kind) else values.cast(kind)


def _from_parsed(values: pa.StructArray, keys: Sequence[str]) -> pa.MapArray:
    wanted = pa.struct([(name, pa.string()) for name in keys])
    texts = pa.StructArray.from_arrays(fields_of(values, wanted), fields=list(wanted))
    return map_of_struct(texts, lambda name: True, text_map())
