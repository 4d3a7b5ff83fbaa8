"""Read checkpoints to Arrow: V1 classic and multi-part, V2 with Parquet or JSON manifest and sidecars.

Only the columns that are asked for leave the Parquet files. Statistics are not among them at first:
they are read later, for the columns of a predicate, by the row numbers kept here.

Source: PROTOCOL.md, "Checkpoints", "V2 Spec", "Sidecar Files".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from delta_ds.exceptions import CorruptLogFileError, LogError
from delta_ds.kernel.base.arrow_buffers import field_of, fields_of, integers, map_values
from delta_ds.kernel.format.actions import SINGLE_ACTIONS, Action, Metadata, Protocol, Sidecar
from delta_ds.kernel.log.checkpoint_files import (
    CheckpointFiles,
    CheckpointReplacedError,
    UnreadableCheckpointError,
    open_file,
)
from delta_ds.kernel.log.file_actions import as_vectors, files_schema
from delta_ds.kernel.log.filenames import SIDECAR_DIRECTORY, LogFile
from delta_ds.kernel.log.json_actions import conform, find_actions, is_whole
from delta_ds.kernel.log.segment import Checkpoint, read_log_files
from delta_ds.kernel.storage.filesystem import NotAFileError, Storage

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from delta_ds.kernel.log.filenames import LogFile


def read_single_actions(
    storage: Storage, checkpoint: Checkpoint, names: Sequence[str] = SINGLE_ACTIONS
) -> list[Action]:
    """The actions of a checkpoint that are not file actions, as `{name: body}`.

    Raises
    ------
    UnreadableCheckpointError
        A file of the checkpoint cannot be read.
    """
    return _single_actions(storage, checkpoint, names, _own_files(checkpoint))


def read_head(
    storage: Storage, checkpoint: Checkpoint, names: Sequence[str] = SINGLE_ACTIONS
) -> tuple[list[Action], CheckpointFiles | None]:
    """What `read_single_actions` and `locate_files` find, in one reading of the checkpoint's own files.

    Raises
    ------
    UnreadableCheckpointError
        As these.
    """
    own = _own_files(checkpoint)
    found = _single_actions(storage, checkpoint, (*names, "sidecar"), own)
    sidecars = [action["sidecar"] for action in found if "sidecar" in action]
    single = [action for action in found if "sidecar" not in action]
    return single, _located(storage, checkpoint, sidecars, own)


def _own_files(checkpoint: Checkpoint) -> CheckpointFiles:
    return CheckpointFiles(tuple(file.path for file in checkpoint.files))


def _single_actions(
    storage: Storage, checkpoint: Checkpoint, names: Sequence[str], files: CheckpointFiles
) -> list[Action]:
    with damage_as_unreadable():
        found = [_actions_of(storage, file, names, files) for file in checkpoint.files]
    return [action for actions in found for action in actions]


@contextmanager
def damage_as_unreadable() -> Iterator[None]:
    """Within the block, what is damaged in a checkpoint makes it one that cannot be read: others, or commits, serve."""
    try:
        yield
    except UnreadableCheckpointError:
        raise
    except CorruptLogFileError as error:
        raise UnreadableCheckpointError(error.text) from error


def _actions_of(
    storage: Storage, file: LogFile, names: Sequence[str], files: CheckpointFiles
) -> list[Action]:
    where = f"checkpoint file {file.path} of {storage.url}"
    if file.is_json:
        found = find_actions(_read_manifest(storage, file), names, where)
    else:
        found = []
        with open_file(storage, files, file.path) as opened:
            for wanted, groups in _places(opened.metadata, names):
                table = opened.read(wanted, groups, threads=False)
                for name in wanted:
                    bodies = opened.translated(table[name].drop_null().to_pylist)
                    found += [cast("Action", {name: conform(name, _plain(body), where)}) for body in bodies]
            files.footers[file.path] = opened.metadata
    for action in found:
        # Other checkpoints, or the commits, may still say what is wrong in this one.
        if (protocol := action.get("protocol")) is not None:
            Protocol.from_action(protocol, where)
        if (metadata := action.get("metaData")) is not None:
            Metadata.from_action(metadata, where)
    return found


def _places(footer: pq.FileMetaData, names: Sequence[str]) -> list[tuple[list[str], list[int]]]:
    """Which actions are in which row groups: those that share theirs are read together."""
    places: dict[tuple[int, ...], list[str]] = {}
    for name in names:
        if groups := tuple(_groups_with(footer, name)):
            places.setdefault(groups, []).append(name)
    return [(together, list(groups)) for groups, together in places.items()]


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

    Its own have been opened: what is read of them from here on is of the same objects, all parts of one writing.
    None for a JSON manifest that holds its file actions inline.

    Raises
    ------
    UnreadableCheckpointError
        A file of the checkpoint cannot be read, or it has file actions both in itself and in sidecars: "not allowed".
        Nobody knows which of two actions of one file is the newer one then, so other files of the log have to serve.
    """
    return read_head(storage, checkpoint, ())[1]


def _located(
    storage: Storage, checkpoint: Checkpoint, sidecars: Sequence[Sidecar], own: CheckpointFiles
) -> CheckpointFiles | None:
    if sidecars:
        if any(_holds_file_actions(storage, file, own) for file in checkpoint.files):
            raise UnreadableCheckpointError(
                f"checkpoint {checkpoint.version} of {storage.url} has some of its file actions in itself and others "
                "in sidecars, which the protocol does not allow"
            )
        # A sidecar that is named twice still holds each of its files once.
        paths = dict.fromkeys(sidecar_path(storage, sidecar, checkpoint) for sidecar in sidecars)
        return CheckpointFiles(tuple(paths))
    return None if checkpoint.files[0].is_json else own


def _holds_file_actions(storage: Storage, file: LogFile, files: CheckpointFiles) -> bool:
    import pyarrow.compute as pc

    names = ("add", "remove")
    if file.is_json:
        return bool(find_actions(_read_manifest(storage, file), names, file.path))
    with open_file(storage, files, file.path) as opened:
        for name in names:
            groups = _groups_with(opened.metadata, name) if name in opened.schema.names else []
            if groups:
                paths = descend(opened.read([f"{name}.path"], groups)[name], ["path"])
                if pc.any(pc.is_valid(paths), min_count=0).as_py():
                    return True
    return False


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


_ADD_FIELDS = (
    "path", "partitionValues", "size", "modificationTime", "dataChange", "deletionVector", "baseRowId",
    "defaultRowCommitVersion",
)  # fmt: skip


def add_leaves(add: pa.StructType) -> list[str]:
    """The columns of a checkpoint file from which `conform_adds` makes live files."""
    present = {f.name for f in add}
    if "path" not in present:
        raise adds_without_path()
    names = [f"add.{name}" for name in _ADD_FIELDS if name in present]
    if "partitionValues" not in present and "partitionValues_parsed" in present:
        names.append("add.partitionValues_parsed")
    return names


def adds_without_path() -> UnreadableCheckpointError:
    """The error of a checkpoint file whose `add` column names no file."""
    return UnreadableCheckpointError("the add column of a checkpoint has no path")


def remove_leaves(schema: pa.Schema, wanted: Iterable[str], where: str) -> list[str]:
    """The columns of a checkpoint file from which removes are made: those of some fields that there are."""
    if "remove" not in schema.names:
        return []
    present = {f.name for f in schema.field("remove").type}
    if "path" not in present:
        raise UnreadableCheckpointError(f"the remove column of checkpoint file {where} has no path")
    return [f"remove.{name}" for name in wanted if name in present]


def removed_by(written_ms: int, count: int) -> pa.Int64Array:
    """The times of removes in a checkpoint whose `remove` column has none: when it was written, they had happened.

    As null they would count as removed long ago, and VACUUM would delete files that versions within the retention need.
    """
    import numpy as np

    return integers(np.full(count, written_ms))


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
            chunks = [as_vectors(chunk, field.type) for chunk in field_of(add, field.name).chunks]
            columns[field.name] = pa.chunked_array(chunks, type=field.type)
        elif field.name in present:
            columns[field.name] = field_of(add, field.name).cast(field.type)
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
    for name in path:
        column = field_of(column, name)
    return column


def inline_actions(storage: Storage, checkpoint: Checkpoint) -> bytes | None:
    """The bytes of a JSON manifest, whose file actions may stand inline; None for Parquet.

    Raises
    ------
    UnreadableCheckpointError
        It cannot be read, or has its file actions in sidecars by now.
    """
    file = checkpoint.files[0]
    if not file.is_json:
        return None
    data = _read_manifest(storage, file)
    with damage_as_unreadable():
        has_sidecars = bool(find_actions(data, ("sidecar",), file.path))
    if has_sidecars:
        raise CheckpointReplacedError(
            f"{file.path} of {storage.url} was written again while it was read; read the table again"
        )
    return data


def _read_manifest(storage: Storage, file: LogFile) -> bytes:
    try:
        (data,) = read_log_files(storage, [file])
    except (LogError, NotAFileError) as error:
        raise UnreadableCheckpointError(f"a checkpoint cannot be read: {error.text}") from error
    if not is_whole(data):
        raise UnreadableCheckpointError(f"{file.path} of {storage.url} is cut off")
    return data
