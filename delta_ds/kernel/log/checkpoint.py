"""Read checkpoints to Arrow: V1 classic and multi-part, V2 with Parquet or JSON manifest and sidecars.

Only the columns that are asked for leave the Parquet files. Statistics are not among them at first:
they are read later, for the columns of a predicate, by the row numbers kept here.

Source: PROTOCOL.md, "Checkpoints", "V2 Spec", "Sidecar Files".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from delta_ds.exceptions import CorruptLogFileError, DeltaError
from delta_ds.kernel.actions import SINGLE_ACTIONS, Action, Sidecar
from delta_ds.kernel.arrow_buffers import fields_of, integers, map_values
from delta_ds.kernel.log.file_actions import deletion_vector_type, files_schema
from delta_ds.kernel.log.filenames import SIDECAR_DIRECTORY
from delta_ds.kernel.log.json_actions import find_actions, is_whole
from delta_ds.kernel.log.segment import Checkpoint
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


class UnreadableCheckpointError(CorruptLogFileError):
    """A file of a checkpoint is missing, truncated or damaged; an older checkpoint can be used instead."""


@dataclass(frozen=True, slots=True)
class CheckpointFiles:
    """The Parquet files that hold the file actions, in the order that row numbers count through.

    With `groups` only those row groups of the one file.
    """

    paths: tuple[str, ...]
    groups: tuple[int, ...] | None = None


def read_single_actions(
    storage: Storage, checkpoint: Checkpoint, names: Sequence[str] = SINGLE_ACTIONS
) -> list[Action]:
    """The actions of a checkpoint that are not file actions, as `{name: body}`.

    Raises
    ------
    UnreadableCheckpointError
        A file of the checkpoint cannot be read.
    """
    out: list[Action] = []
    for file in checkpoint.files:
        if file.is_json:
            out += find_actions(_read_manifest(storage, file.path), names, file.path)
            continue
        with open_file(storage, file.path) as parquet:
            for name in names:
                groups = _groups_with(parquet.metadata, name)
                if groups:
                    column = read_columns(storage, file.path, parquet, [name], groups)[name].drop_null()
                    out += [cast("Action", {name: _plain(body)}) for body in column.to_pylist()]
    return out


def _groups_with(footer: pq.FileMetaData, name: str) -> list[int]:
    """The row groups that may hold actions of a name: of most the footer says that they hold files only."""
    schema = footer.schema
    leaves = [n for n in range(len(schema)) if schema.column(n).path.split(".")[0] == name]

    def may_hold(group: pq.RowGroupMetaData) -> bool:
        for leaf in map(group.column, leaves):
            found = leaf.statistics
            if found is None or not found.has_null_count or found.null_count < leaf.num_values:
                return True
        return False

    return [group for group in range(footer.num_row_groups) if may_hold(footer.row_group(group))]


def _plain(value: Any) -> Any:
    """Maps, which Arrow hands out as lists of pairs, as dictionaries."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list) and value and all(isinstance(v, tuple) for v in value):
        return dict(value)
    return value


def locate_files(storage: Storage, checkpoint: Checkpoint) -> CheckpointFiles | None:
    """The files that hold the file actions of a checkpoint: its own, or its sidecars.

    None for a JSON manifest that holds its file actions inline.
    """
    sidecars = read_single_actions(storage, checkpoint, ("sidecar",))
    if sidecars:
        # A sidecar that is named twice still holds each of its files once.
        paths = dict.fromkeys(sidecar_path(storage, a["sidecar"], checkpoint) for a in sidecars)
        return CheckpointFiles(tuple(paths))
    if checkpoint.files[0].is_json:
        return None
    return CheckpointFiles(tuple(file.path for file in checkpoint.files))


def sidecar_path(storage: Storage, sidecar: Sidecar, checkpoint: Checkpoint) -> str:
    from urllib.parse import unquote

    path = sidecar.get("path")
    if not isinstance(path, str) or not path:
        raise UnreadableCheckpointError(
            f"checkpoint {checkpoint.version} of {storage.url} names a sidecar without a path"
        )
    if "/" in unquote(path):
        return storage.resolve(path)
    return f"{SIDECAR_DIRECTORY}/{unquote(path)}"


def read_adds(
    storage: Storage, files: CheckpointFiles, partition_columns: Sequence[str]
) -> Iterator[pa.Table]:
    """The `add` actions of each checkpoint file.

    Yields
    ------
    pyarrow.Table
        The columns of `LiveFiles.table` without `stats`, and `row`: the int64 number of the row, counted
        through all files in order.
    """
    import numpy as np
    import pyarrow as pa

    base = 0
    for path in files.paths:
        with open_file(storage, path) as parquet:
            rows = rows_of(parquet, files.groups)
            table = pa.table({})
            if "add" in parquet.schema_arrow.names:
                columns = add_leaves(parquet.schema_arrow.field("add").type)
                table = read_columns(storage, path, parquet, columns, files.groups)
            row = integers(np.arange(base, base + rows))
            yield with_checkpoint_errors(
                storage, path, functools.partial(conform_adds, table, partition_columns, row)
            )
        base += rows


_ADD_FIELDS = (
    "path", "partitionValues", "size", "modificationTime", "dataChange", "deletionVector", "baseRowId",
    "defaultRowCommitVersion",
)  # fmt: skip


def add_leaves(add: pa.StructType) -> list[str]:
    """The columns of a checkpoint file from which `conform_adds` makes live files."""
    present = {f.name for f in add}
    if "path" not in present:
        raise UnreadableCheckpointError("the add column of a checkpoint has no path")
    names = [f"add.{name}" for name in _ADD_FIELDS if name in present]
    if "partitionValues" not in present and "partitionValues_parsed" in present:
        names.append("add.partitionValues_parsed")
    return names


def conform_adds(table: pa.Table, partition_columns: Sequence[str], row: pa.Int64Array) -> pa.Table:
    """The adds among some rows of a checkpoint file, in a table of `files_schema`; `row` numbers the rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    schema = files_schema(partition_columns)
    if "add" not in table.column_names:
        return pa.Table.from_batches([], schema)
    add = table["add"]
    path = pc.struct_field(add, "path")
    live = pc.is_valid(path)
    number = pa.chunked_array([row])
    if not pc.all(live, min_count=0).as_py():
        add, path, number = add.filter(live), path.filter(live), number.filter(live)
    present = {f.name for f in add.type}
    columns: dict[str, Any] = {}
    for field in schema:
        if field.name == "row":
            columns["row"] = number
        elif field.name == "partitionValues":
            columns[field.name] = _partition_values(add, partition_columns, field.type)
        elif field.name == "deletionVector" and field.name in present:
            columns[field.name] = _conform_vector(pc.struct_field(add, field.name))
        elif field.name in present:
            columns[field.name] = pc.struct_field(add, field.name).cast(field.type)
        else:
            columns[field.name] = pa.nulls(add.length(), field.type)
    return pa.table(columns, schema=schema)


def _partition_values(add: pa.ChunkedArray, columns: Sequence[str], wanted: pa.DataType) -> pa.ChunkedArray:
    """The partition values as a struct of strings, one field a column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    present = {f.name for f in add.type}
    chunks = []
    for chunk in add.chunks:
        if "partitionValues" in present:
            values = pc.struct_field(chunk, "partitionValues")
            fields = [map_values(values, name).cast(pa.string()) for name in columns]
        elif "partitionValues_parsed" in present:
            fields = fields_of(pc.struct_field(chunk, "partitionValues_parsed"), wanted)
        else:
            fields = [pa.nulls(len(chunk), pa.string()) for _ in columns]
        chunks.append(pa.StructArray.from_arrays(fields, fields=list(wanted)))
    return pa.chunked_array(chunks, type=wanted)


def _conform_vector(vectors: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = deletion_vector_type()
    chunks = []
    for chunk in vectors.chunks:
        fields = fields_of(chunk, wanted)
        # Some writers store a struct of nulls where there is no vector.
        absent = pc.is_null(fields[0])
        chunks.append(pa.StructArray.from_arrays(fields, fields=list(wanted), mask=absent))
    return pa.chunked_array(chunks, type=wanted)


def inline_actions(storage: Storage, checkpoint: Checkpoint) -> bytes | None:
    """The bytes of a JSON manifest, whose file actions may stand inline; None for Parquet."""
    file = checkpoint.files[0]
    return _read_manifest(storage, file.path) if file.is_json else None


def _read_manifest(storage: Storage, path: str) -> bytes:
    try:
        data = storage.read(path)
    except FileNotFoundError as error:
        raise UnreadableCheckpointError(f"{path} of {storage.url} is gone") from error
    if not is_whole(data):
        raise UnreadableCheckpointError(f"{path} of {storage.url} is cut off")
    return data


def open_file(storage: Storage, path: str, footer: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """Open a Parquet file of a checkpoint.

    Parameters
    ----------
    footer
        Its footer, where it has been read before.

    Raises
    ------
    UnreadableCheckpointError
        The file is missing, damaged, or holds what are no actions.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    def open_() -> pq.ParquetFile:
        file = pq.ParquetFile(
            storage.open(path),
            metadata=footer,
            coerce_int96_timestamp_unit="us",
        )
        for field in file.schema_arrow:
            if not pa.types.is_struct(field.type):
                raise ValueError(f"its column {field.name} is {field.type}, not an action")
        return file

    return with_checkpoint_errors(storage, path, open_)


def rows_of(parquet: pq.ParquetFile, groups: Sequence[int] | None) -> int:
    """How many rows a file has, or some row groups of it."""
    if groups is None:
        return int(parquet.metadata.num_rows)
    return sum(parquet.metadata.row_group(group).num_rows for group in groups)


def read_columns(
    storage: Storage,
    path: str,
    parquet: pq.ParquetFile,
    columns: Sequence[str],
    groups: Sequence[int] | None = None,
    *,
    threads: bool = True,
) -> pa.Table:
    """Columns of a file of a checkpoint, named by dotted paths, every text in them checked to be text.

    Parameters
    ----------
    groups
        Row groups to read; None for all.
    threads
        Whether on all cores, or in this thread alone.

    Raises
    ------
    UnreadableCheckpointError
        The file is damaged.
    """

    def read() -> pa.Table:
        if groups is None:
            table = parquet.read(columns=columns, use_threads=threads)
        else:
            table = parquet.read_row_groups(groups, columns, use_threads=threads)
        expected = rows_of(parquet, groups)
        if table.num_rows != expected:
            raise ValueError(f"it has {table.num_rows} rows, its footer says {expected}")
        table.validate(full=True)  # Arrow takes any bytes of a file for text
        return table

    return with_checkpoint_errors(storage, path, read)


def with_checkpoint_errors(storage: Storage, path: str, action: Callable[[], Any]) -> Any:
    """Run a read; errors of Parquet or the store become an UnreadableCheckpointError."""
    import pyarrow as pa

    try:
        return action()
    except DeltaError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError) as error:
        raise UnreadableCheckpointError(
            f"checkpoint file {path} of {storage.url} cannot be read ({error}); "
            "an older checkpoint is used where the log still allows it"
        ) from error
