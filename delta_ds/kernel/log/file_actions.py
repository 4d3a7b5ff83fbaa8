"""File actions (`add`, `remove`, `cdc`) as Arrow tables: their columns, and the key of a file.

Source: PROTOCOL.md, "Add File and Remove File", "Deletion Vector Descriptor Schema", "Action Reconciliation".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_ds.kernel.arrow_buffers import texts
from delta_ds.kernel.log.paths import canonical_paths
from delta_ds.kernel.storage.filesystem import Storage

if TYPE_CHECKING:
    import pyarrow as pa

FILE_ACTIONS = ("add", "remove", "cdc")


def deletion_vector_type() -> pa.DataType:
    """The Arrow type of a deletion vector descriptor."""
    import pyarrow as pa

    return pa.struct(
        [
            ("storageType", pa.string()),
            ("pathOrInlineDv", pa.string()),
            ("offset", pa.int32()),
            ("sizeInBytes", pa.int32()),
            ("cardinality", pa.int64()),
        ]
    )


def file_action_fields(partition_columns: Sequence[str], *, stats: bool) -> list[pa.Field]:
    """The fields read from a file action; `partitionValues` is a struct of the physical names."""
    import pyarrow as pa

    fields = [pa.field("path", pa.string())]
    if partition_columns:
        values = pa.struct([(name, pa.string()) for name in partition_columns])
        fields.append(pa.field("partitionValues", values))
    fields += [
        pa.field("size", pa.int64()),
        pa.field("modificationTime", pa.int64()),
        pa.field("dataChange", pa.bool_()),
        pa.field("deletionVector", deletion_vector_type()),
        pa.field("baseRowId", pa.int64()),
        pa.field("defaultRowCommitVersion", pa.int64()),
    ]
    if stats:
        fields.append(pa.field("stats", pa.string()))
    return fields


def actions_schema(partition_columns: Sequence[str], *, changes: bool = False) -> pa.Schema:
    """The schema of parsed commits: `add`, `remove`, and with `changes` also `cdc`.

    Replay needs of a remove only its key; the change feed needs the rest and the `cdc` actions.
    """
    import pyarrow as pa

    add = file_action_fields(partition_columns, stats=not changes)
    if not changes:
        remove = [pa.field("path", pa.string()), pa.field("deletionVector", deletion_vector_type())]
        return pa.schema([pa.field("add", pa.struct(add)), pa.field("remove", pa.struct(remove))])
    return pa.schema([pa.field(name, pa.struct(add)) for name in FILE_ACTIONS])


def files_schema(partition_columns: Sequence[str]) -> pa.Schema:
    """The schema of checkpoint adds: the columns of `LiveFiles.table`, and `row`."""
    import pyarrow as pa

    fields = file_action_fields(partition_columns, stats=False)
    return pa.schema([*fields, pa.field("row", pa.int64())])


def working_schema(columns: Sequence[str]) -> pa.Schema:
    """The columns of live files as replay carries them: with JSON statistics and checkpoint row."""
    import pyarrow as pa

    fields = file_action_fields(columns, stats=True)
    return pa.schema([*fields, pa.field("row", pa.int64())])


def file_keys(actions: pa.Table, storage: Storage) -> pa.ChunkedArray:
    """(path, deletion vector) of file actions as one string; null for rows of other actions."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sides = [
        _keys(
            pc.struct_field(actions[name], "path"), pc.struct_field(actions[name], "deletionVector"), storage
        )
        for name in ("add", "remove")
    ]
    if sides[1].null_count == len(sides[1]):
        return sides[0]
    return pc.coalesce(*sides, memory_pool=pa.system_memory_pool())


def keys_of_files(files: pa.Table, storage: Storage) -> pa.ChunkedArray:
    """The same of rows that have the fields of an `add` as columns: `path` and `deletionVector`."""
    return _keys(files["path"], files["deletionVector"], storage)


def _keys(path: pa.ChunkedArray, vector: pa.ChunkedArray, storage: Storage) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    path = canonical_paths(path, storage)
    if vector.null_count == len(vector):
        return path
    unique = vector_ids(vector)
    # No file's name holds a NUL, so path and vector cannot run into each other.
    return pc.if_else(pc.is_valid(unique), pc.binary_join_element_wise(path, unique, _text("\0")), path)


def vector_ids(vectors: pa.ChunkedArray) -> pa.ChunkedArray:
    """The unique ids of deletion vectors as text; null for none. See `actions.vector_id`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    offset = pc.struct_field(vectors, "offset").cast(pa.string())
    unique = pc.binary_join_element_wise(
        pc.struct_field(vectors, "storageType"), pc.struct_field(vectors, "pathOrInlineDv"), _text("")
    )
    return pc.if_else(pc.is_valid(offset), pc.binary_join_element_wise(unique, offset, _text("@")), unique)


def _text(value: str) -> pa.StringScalar:
    return texts([value])[0]
