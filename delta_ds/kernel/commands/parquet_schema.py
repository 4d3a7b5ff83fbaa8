"""The Spark schema of a Parquet file, from its footer.

Spark writes its own schema into the files it makes; for files of others the Parquet types tell.

Source: Spark, "Parquet Files" (data type mapping); Apache Parquet, LogicalTypes.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_ds.conditions.commands import FAILED_MERGE_SCHEMA_FILE
from delta_ds.conditions.schema import UNSUPPORTED_PARQUET_TYPE
from delta_ds.exceptions import DeltaError, SchemaError
from delta_ds.kernel.format.schema.column_mapping import transform_fields
from delta_ds.kernel.format.schema.evolution import as_nullable, merge_schemas
from delta_ds.kernel.format.schema.field_metadata import CHAR_VARCHAR_TYPE
from delta_ds.kernel.format.schema.from_arrow import primitive_from_arrow
from delta_ds.kernel.format.schema.types import (
    INTEGER,
    LONG,
    SHORT,
    TIMESTAMP,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    parse_schema,
)
from delta_ds.records import replace

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
_KEPT_METADATA = (
    "comment",
    CHAR_VARCHAR_TYPE,
)  # any other belongs to the table that the file was written for
_UNSIGNED: tuple[tuple[pa.DataType, DataType], ...] = (
    (pa.uint8(), SHORT),
    (pa.uint16(), INTEGER),
    (pa.uint32(), LONG),
    (pa.uint64(), DecimalType(20, 0)),
)


def schema_key(footer: pq.FileMetaData) -> str:
    """A text that is equal for files of equal schemas."""
    spark = (footer.metadata or {}).get(_SPARK_SCHEMA, b"").decode(errors="replace")
    return f"{spark}\n{footer.schema}"


def file_schema(footer: pq.FileMetaData) -> StructType:
    """The columns of a file; all of them may hold nulls, as other files need not have them.

    Raises
    ------
    SchemaError
        A column has a type that Spark does not read.
    UnsupportedFeatureError
        Spark's own schema names a type that is not known.
    """
    arrow = footer.schema.to_arrow_schema()
    text = (footer.metadata or {}).get(_SPARK_SCHEMA)
    found = parse_schema(text.decode()) if text is not None else None
    if found is None or sorted(found.names) != sorted(arrow.names):
        leaves = iter(footer.schema.column(i).physical_type for i in range(len(footer.schema)))
        found = StructType(tuple(_field(field, leaves, "") for field in arrow))
    nullable = as_nullable(found)
    assert isinstance(nullable, StructType), "a struct stays a struct"
    return transform_fields(nullable, _plain)


def _plain(field: StructField) -> StructField:
    return replace(field, metadata={k: field.metadata[k] for k in _KEPT_METADATA if k in field.metadata})


def _field(field: pa.Field, leaves: Iterator[str], above: str) -> StructField:
    return StructField(field.name, _type(field.type, leaves, f"{above}{field.name}"), True)


def _type(kind: pa.DataType, leaves: Iterator[str], path: str) -> DataType:
    if pa.types.is_struct(kind):
        return StructType(tuple(_field(f, leaves, f"{path}.") for f in kind))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return ArrayType(_type(kind.value_type, leaves, f"{path}.element"), True)
    if pa.types.is_map(kind):
        key = _type(kind.key_type, leaves, f"{path}.key")
        return MapType(key, _type(kind.item_type, leaves, f"{path}.value"), True)
    physical = next(leaves, "")
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if physical == "INT96":
        return TIMESTAMP
    unsigned = next((delta for arrow, delta in _UNSIGNED if kind == arrow), None)
    if unsigned is not None:
        return unsigned
    if pa.types.is_null(kind):
        return INTEGER  # the physical type of a column that never had a value, which Spark goes by
    found = None
    if not (pa.types.is_timestamp(kind) and kind.unit == "ns"):
        found = primitive_from_arrow(kind)
    if found is None:
        raise UNSUPPORTED_PARQUET_TYPE(column=path, type=str(kind), physical=physical)
    return found


def part_in(schema: StructType, file: StructType) -> StructType | None:
    """The part of a table's schema that a file has, in the file's order; None where names differ in case.

    Types are the table's, as far as a struct's fields are in the file.
    """
    try:
        return _part(schema, file)
    except _OtherSpelling:
        return None


class _OtherSpelling(DeltaError):
    """A column is spelled in other case than the table's."""


def _part(schema: StructType, file: StructType) -> StructType:
    out = []
    for field in file:
        own = next((f for f in schema if f.name == field.name), None)
        if own is None:
            raise _OtherSpelling(f"{field.name} is not a column of the table in this spelling")
        out.append(replace(own, type=_part_type(own.type, field.type)))
    return StructType(tuple(out))


def _part_type(own: DataType, file: DataType) -> DataType:
    if isinstance(own, StructType) and isinstance(file, StructType):
        return _part(own, file)
    if isinstance(own, ArrayType) and isinstance(file, ArrayType):
        return replace(own, element=_part_type(own.element, file.element))
    if isinstance(own, MapType) and isinstance(file, MapType):
        return replace(own, key=_part_type(own.key, file.key), value=_part_type(own.value, file.value))
    return own


def merge_file_schemas(table: str, schemas: Sequence[tuple[str, StructType]]) -> StructType:
    """The columns of files together.

    Parameters
    ----------
    table
        Its address, for messages.
    schemas
        Path of a file, and its columns.

    Raises
    ------
    SchemaError
        The columns of a file do not go together with those of the ones before.
    """
    merged = schemas[0][1]
    for path, schema in schemas[1:]:
        merged = _merge_field(merged, schema, path, table)
    return merged


def _merge_field(merged: StructType, schema: StructType, path: str, table: str) -> StructType:
    try:
        return merge_schemas(merged, schema)
    except SchemaError as error:
        raise FAILED_MERGE_SCHEMA_FILE(
            table=table, file=path, schema=str(schema), merged=merged, reason=error.text
        ) from error
