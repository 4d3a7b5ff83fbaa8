"""The columns of a checkpoint as Arrow types and as Spark's schema JSON.

Names, order and types are delta-spark's, so that whatever reads its checkpoints reads these.

Source: PROTOCOL.md, "Checkpoint Schema"; protocol-checklist CKP-W-07 to CKP-W-12, SCM-RW-01.
"""

from __future__ import annotations

import functools
import json
from typing import Any, Protocol

import pyarrow as pa

from delta_ds.kernel.log.file_actions import deletion_vector_type

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
