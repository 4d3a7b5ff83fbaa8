"""Single columns of the adds of a checkpoint, by dotted paths, for all of its rows.

Source: PROTOCOL.md, "Checkpoints", "Per-file Statistics".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.log.checkpoint import CheckpointFiles, open_file, read_columns, rows_of
from delta_ds.kernel.storage.filesystem import Storage

if TYPE_CHECKING:
    import pyarrow as pa


def read_leaves(storage: Storage, files: CheckpointFiles, leaves: Sequence[str]) -> pa.Table | None:
    """Columns inside `add`, named by dotted paths, for every row of the files (file order).

    Leaves that no file has are left out; files that lack one give nulls. None if no leaf was found.
    """
    import pyarrow as pa

    pieces: list[dict[str, pa.ChunkedArray | int]] = []
    types: dict[str, pa.DataType] = {}
    for path in files.paths:
        with open_file(storage, path) as parquet:
            schema = parquet.schema_arrow
            found = [leaf for leaf in leaves if has_leaf(schema, leaf)]
            columns = [f"add.{leaf}" for leaf in found]
            piece: dict[str, Any] = {"": rows_of(parquet, files.groups)}
            if columns:
                table = read_columns(storage, path, parquet, columns, files.groups)
                for leaf in found:
                    piece[leaf] = descend(table["add"], leaf.split("."))
                    types.setdefault(leaf, piece[leaf].type)
            pieces.append(piece)
    if not types:
        return None
    out = {}
    for leaf, kind in types.items():
        chunks: list[pa.Array] = []
        for piece in pieces:
            if leaf in piece:
                chunks += _cast_or_null(piece[leaf], kind).chunks
            else:
                chunks.append(pa.nulls(piece[""], kind))
        out[leaf] = pa.chunked_array(chunks, type=kind)
    return pa.table(out)


def read_typed_statistics(storage: Storage, part: CheckpointFiles) -> pa.ChunkedArray | None:
    """The structs `stats_parsed` of all rows of one file, or of some of its row groups; None where it has none."""
    import pyarrow.compute as pc

    (path,) = part.paths
    with open_file(storage, path) as parquet:
        schema = parquet.schema_arrow
        if "add" not in schema.names or schema.field("add").type.get_field_index("stats_parsed") < 0:
            return None
        table = read_columns(storage, path, parquet, ["add.stats_parsed"], part.groups)
    return pc.struct_field(table["add"], "stats_parsed")


def _cast_or_null(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    import pyarrow as pa

    if column.type == kind:
        return column
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # Parts written under different schemas: without a common type there are no bounds to use.
        return pa.chunked_array([pa.nulls(len(column), kind)])


def has_leaf(schema: pa.Schema, leaf: str) -> bool:
    """Whether a checkpoint file has a column that is no struct, list or map at a dotted path inside `add`."""
    import pyarrow as pa

    if "add" not in schema.names:
        return False
    kind = schema.field("add").type
    for name in leaf.split("."):
        index = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
        if index < 0:
            return False
        kind = kind.field(index).type
    return not pa.types.is_nested(kind)


def descend(column: pa.ChunkedArray, path: Sequence[str]) -> pa.ChunkedArray:
    """The field at a path through structs."""
    import pyarrow.compute as pc

    for name in path:
        column = pc.struct_field(column, name)
    return column
