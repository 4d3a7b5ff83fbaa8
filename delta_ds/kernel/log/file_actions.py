"""Actions in Arrow: `add`, `remove` and `cdc` as tables, the key of a file; and what the columns of checkpoints may be.

The columns of a checkpoint are held against the protocol, and made plain, before anything is read of them.

Source: PROTOCOL.md, "Add File and Remove File", "Deletion Vector Descriptor Schema", "Action Reconciliation",
"Checkpoint Schema".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from delta_ds.kernel.base.arrow_buffers import fields_of, integers, texts
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.uri import canonical_paths

if TYPE_CHECKING:
    import pyarrow as pa

    Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)

FILE_ACTIONS = ("add", "remove", "cdc")
# No data file is larger: a pebibyte.
LARGEST_FILE = 1 << 50


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


def as_vectors(values: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    """Deletion vectors of a checkpoint in a type of them; some writers store a struct of nulls where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    fields = fields_of(values, kind)
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=pc.is_null(fields[0]))


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


def with_believable_sizes(files: pa.Table) -> pa.Table:
    """Files with 0 in place of a size that none can have: what is planned by sizes must not grow with it."""
    import pyarrow.compute as pc

    bounds = pc.min_max(files["size"]).as_py()
    if bounds["min"] is None or (bounds["min"] >= 0 and bounds["max"] < LARGEST_FILE):
        return files
    none, most = integers([0, LARGEST_FILE])
    wrong = pc.or_(pc.less(files["size"], none), pc.greater_equal(files["size"], most))
    place = files.column_names.index("size")
    return files.set_column(place, files.schema.field(place), pc.if_else(wrong, none, files["size"]))


# ---------------------------------------------------------------- the columns of checkpoints

_TEXT, _LONG, _FLAG, _TEXTS, _NAMES, _STRUCT = (
    "text",
    "a whole number",
    "a boolean",
    "a map of texts",
    "texts",
    "a struct",
)
_Wanted = str | dict[str, Any]

_VECTOR: dict[str, _Wanted] = {
    "storageType": _TEXT, "pathOrInlineDv": _TEXT, "offset": _LONG, "sizeInBytes": _LONG, "cardinality": _LONG,
    "maxRowIndex": _LONG,
}  # fmt: skip
_FILE: dict[str, _Wanted] = {
    "path": _TEXT, "partitionValues": _TEXTS, "size": _LONG, "modificationTime": _LONG, "dataChange": _FLAG,
    "tags": _TEXTS, "deletionVector": _VECTOR, "baseRowId": _LONG, "defaultRowCommitVersion": _LONG,
    "clusteringProvider": _TEXT, "deletionTimestamp": _LONG, "extendedFileMetadata": _FLAG, "stats": _TEXT,
    "stats_parsed": _STRUCT, "partitionValues_parsed": _STRUCT,
}  # fmt: skip
_ACTIONS: dict[str, dict[str, _Wanted]] = {
    "add": _FILE,
    "remove": _FILE,
    "txn": {"appId": _TEXT, "version": _LONG, "lastUpdated": _LONG},
    "metaData": {
        "id": _TEXT, "name": _TEXT, "description": _TEXT, "format": {"provider": _TEXT, "options": _TEXTS},
        "schemaString": _TEXT, "partitionColumns": _NAMES, "configuration": _TEXTS, "createdTime": _LONG,
    },
    "protocol": {
        "minReaderVersion": _LONG, "minWriterVersion": _LONG, "readerFeatures": _NAMES, "writerFeatures": _NAMES,
    },
    "domainMetadata": {"domain": _TEXT, "configuration": _TEXT, "removed": _FLAG},
    "checkpointMetadata": {"version": _LONG, "tags": _TEXTS},
    "sidecar": {"path": _TEXT, "sizeInBytes": _LONG, "modificationTime": _LONG, "tags": _TEXTS},
}  # fmt: skip

# The actions of which a checkpoint consists.
ACTIONS = frozenset(_ACTIONS)

# So many types of columns are looked at once: checkpoints of a table have the same, and look the same each time.
_REMEMBERED = 256


def check_types(schema: pa.Schema) -> None:
    """Refuse a checkpoint file whose columns are not what the protocol says; others may be anything.

    Raises
    ------
    ValueError
        A column, or a field in one, has another type. The message names it.
    """
    for field in schema:
        _check_action(field.name, field.type)


@functools.lru_cache(maxsize=_REMEMBERED)
def _check_action(name: str, kind: pa.DataType) -> None:
    import pyarrow as pa

    if not pa.types.is_struct(kind):
        raise ValueError(f"its column {name} is {kind}, not an action")
    _check_fields(name, kind, _ACTIONS.get(name, {}))


def _check_fields(path: str, kind: pa.StructType, wanted: Mapping[str, _Wanted]) -> None:
    names = [field.name for field in kind]
    if len(set(names)) < len(names):
        raise ValueError(f"its column {path} has two fields of one name")
    for field in kind:
        want = wanted.get(field.name)
        if isinstance(want, dict):
            if not _is("struct", field.type):
                raise ValueError(f"its column {path}.{field.name} is {field.type}, not a struct")
            _check_fields(f"{path}.{field.name}", field.type, want)
        elif want is not None and not _fits(field.type, want):
            raise ValueError(f"its column {path}.{field.name} is {field.type}, not {want}")


def _fits(kind: pa.DataType, wanted: str) -> bool:
    kind = plain_type(kind)
    if wanted == _TEXTS:
        return _is("map", kind) and _fits(kind.key_type, _TEXT) and _fits(kind.item_type, _TEXT)
    if wanted == _NAMES:
        return _is("list", kind) and _fits(kind.value_type, _TEXT)
    if wanted == _STRUCT:
        return _is("struct", kind)
    if _is("null", kind):
        return True
    # Text without its logical type is binary; it is checked to be text when it is read.
    kinds = {_TEXT: ("string", "binary"), _LONG: ("integer",), _FLAG: ("boolean",)}[wanted]
    return any(_is(each, kind) for each in kinds)


def _is(name: str, kind: pa.DataType) -> bool:
    import pyarrow as pa

    check: Callable[[pa.DataType], bool] = getattr(pa.types, f"is_{name}")
    return check(kind)


@functools.lru_cache(maxsize=_REMEMBERED)
def plain_type(kind: pa.DataType) -> pa.DataType:
    """A type without what only says how Arrow holds it: dictionaries, views, and offsets of 64 bits."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_struct(kind):
        fields = [field.with_type(plain_type(field.type)) for field in kind]
        return (
            pa.struct(fields)
            if any(new.type != old.type for new, old in zip(fields, kind, strict=True))
            else kind
        )
    if types.is_map(kind):
        key, item = plain_type(kind.key_type), plain_type(kind.item_type)
        return kind if (key, item) == (kind.key_type, kind.item_type) else pa.map_(key, item)
    if types.is_list(kind) or types.is_large_list(kind):
        value = plain_type(kind.value_type)
        return kind if types.is_list(kind) and value == kind.value_type else pa.list_(value)
    return kind


def as_plain(rows: Rows) -> Rows:
    """Rows of a checkpoint file in plain types, every text in them checked to be text.

    Raises
    ------
    pyarrow.ArrowInvalid
        A text is none, or too long.
    """
    import pyarrow as pa

    rows.validate(full=True)  # Arrow takes any bytes of a file for text
    schema = pa.schema([field.with_type(plain_type(field.type)) for field in rows.schema])
    return rows if schema.equals(rows.schema) else rows.cast(schema)
