"""The columns of a checkpoint as Arrow types and as Spark's schema JSON; its file actions with all their fields.

Names, order and types are delta-spark's, so that whatever reads its checkpoints reads these. `checkpoint.py` reads what
a scan needs of file actions; here is what the next checkpoint needs, which must lose nothing.

Source: PROTOCOL.md, "Checkpoint Schema"; protocol-checklist CKP-W-07 to CKP-W-12, CKP-R-06, CKP-R-11, SCM-RW-01.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.kernel.base.arrow_buffers import field_of, fields_of
from delta_ds.kernel.base.nested_arrays import as_text_map, map_of_struct
from delta_ds.kernel.log.checkpoint import remove_leaves, removed_by
from delta_ds.kernel.log.checkpoint_files import CheckpointFiles, open_file
from delta_ds.kernel.log.file_actions import as_vectors, deletion_vector_type
from delta_ds.kernel.storage.filesystem import Storage

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# The struct fields of a file action in checkpoint order, without what depends on the table.
ADD_FIELDS = (
    "path", "partitionValues", "size", "modificationTime", "dataChange", "tags", "deletionVector", "baseRowId",
    "defaultRowCommitVersion", "clusteringProvider",
)  # fmt: skip
REMOVE_FIELDS = (
    "path", "deletionTimestamp", "dataChange", "extendedFileMetadata", "partitionValues", "size",
    "deletionVector", "baseRowId", "defaultRowCommitVersion",
)  # fmt: skip


class TypedColumns(Protocol):
    """Makes the typed columns of a checkpoint from the text of the log.

    The kernel's room for data implements it, which knows how statistics and partition values are read.

    Attributes
    ----------
    statistics
        The type of `add.stats_parsed`; without fields where nothing is indexed but `numRecords`.
    partitions
        The type of `add.partitionValues_parsed`; None for an unpartitioned table.
    """

    @property
    def statistics(self) -> pa.StructType: ...

    @property
    def partitions(self) -> pa.StructType | None: ...

    def parse_statistics(self, text: pa.StringArray) -> pa.StructArray:
        """JSON statistics to `statistics`; null where there is no text."""

    def fit_statistics(self, parsed: pa.StructArray) -> pa.StructArray:
        """Typed statistics of an older schema of the table to `statistics`."""

    def statistics_text(self, parsed: pa.StructArray) -> pa.StringArray:
        """Typed statistics as JSON text; null where the struct is."""

    def parse_partitions(self, values: pa.MapArray) -> pa.StructArray:
        """Partition values to `partitions`."""


def text_map() -> pa.MapType:
    """`map<string, string>`."""
    return pa.map_(pa.string(), pa.string())


@functools.cache
def vector_type() -> pa.StructType:
    """A deletion vector descriptor as checkpoints have it: also with the obsolete `maxRowIndex`."""
    return pa.struct([*deletion_vector_type(), pa.field("maxRowIndex", pa.int64())])


@functools.cache
def _file_field_types() -> dict[str, pa.DataType]:
    return {
        "path": pa.string(), "partitionValues": text_map(), "size": pa.int64(), "modificationTime": pa.int64(),
        "dataChange": pa.bool_(), "tags": text_map(), "deletionVector": vector_type(), "baseRowId": pa.int64(),
        "defaultRowCommitVersion": pa.int64(), "clusteringProvider": pa.string(),
        "deletionTimestamp": pa.int64(), "extendedFileMetadata": pa.bool_(), "stats": pa.string(),
    }  # fmt: skip


def field_type(name: str) -> pa.DataType:
    """The type of a field of `add` or `remove` in a checkpoint."""
    return _file_field_types()[name]


def add_type(
    *, stats: bool, statistics: pa.StructType | None = None, partitions: pa.StructType | None = None
) -> pa.StructType:
    """The type of the column `add`: with JSON statistics, typed ones, typed partition values, or none."""
    fields = [pa.field(name, field_type(name)) for name in ADD_FIELDS]
    if stats:
        fields.append(pa.field("stats", pa.string()))
    if statistics is not None:
        if partitions is not None:
            fields.append(pa.field("partitionValues_parsed", partitions))
        fields.append(pa.field("stats_parsed", statistics))
    return pa.struct(fields)


def remove_type() -> pa.StructType:
    """The type of the column `remove`."""
    return pa.struct([pa.field(name, field_type(name)) for name in REMOVE_FIELDS])


@functools.cache
def single_types() -> dict[str, pa.StructType]:
    """The types of the columns that are no file actions."""
    texts, names = text_map(), pa.list_(pa.field("element", pa.string()))
    form = pa.struct([("provider", pa.string()), ("options", texts)])
    return {
        "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
        "metaData": pa.struct(
            [("id", pa.string()), ("name", pa.string()), ("description", pa.string()), ("format", form),
             ("schemaString", pa.string()), ("partitionColumns", names), ("configuration", texts),
             ("createdTime", pa.int64())]
        ),
        "protocol": pa.struct(
            [("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32()), ("readerFeatures", names),
             ("writerFeatures", names)]
        ),
        "domainMetadata": pa.struct(
            [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]
        ),
        "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", texts)]),
        "sidecar": pa.struct(
            [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", texts)]
        ),
    }  # fmt: skip


def checkpoint_schema(add: pa.StructType, *, v2: bool) -> pa.Schema:
    """The schema of a checkpoint file that is no sidecar."""
    single = single_types()
    kinds = {"txn": single["txn"], "add": add, "remove": remove_type()}
    kinds |= {name: single[name] for name in ("metaData", "protocol", "domainMetadata")}
    if v2:
        kinds |= {name: single[name] for name in ("checkpointMetadata", "sidecar")}
    return pa.schema(list(kinds.items()))


def sidecar_schema(add: pa.StructType) -> pa.Schema:
    """The schema of a sidecar: file actions only."""
    return pa.schema([("add", add), ("remove", remove_type())])


def spark_schema(schema: pa.Schema) -> dict[str, Any]:
    """An Arrow schema as Spark's schema JSON, for `_last_checkpoint` and the tags of V2 checkpoints."""
    return {"type": "struct", "fields": [_spark_field(field) for field in schema]}


def spark_schema_text(schema: pa.Schema) -> str:
    """`spark_schema` as text without blanks."""
    return json.dumps(spark_schema(schema), separators=(",", ":"), ensure_ascii=False)


def _spark_field(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "type": _spark_type(field.type), "nullable": True, "metadata": {}}


_SPARK_NAMES = {
    "string": "string", "int64": "long", "int32": "integer", "int16": "short", "int8": "byte", "bool": "boolean",
    "double": "double", "float": "float", "date32[day]": "date", "binary": "binary",
}  # fmt: skip


def _spark_type(kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [_spark_field(field) for field in kind]}
    if pa.types.is_map(kind):
        key, value = _spark_type(kind.key_type), _spark_type(kind.item_type)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _spark_type(kind.value_type), "containsNull": True}
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    return _SPARK_NAMES[str(kind)]


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
