"""Checks of a new or changed schema: names, types, nesting.

Source: delta-spark, `OptimisticTransaction.assertMetadata`, `PartitionUtils.validatePartitionColumn`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from delta_ds.conditions.schema import (
    CANNOT_USE_ALL_COLUMNS_FOR_PARTITION,
    COMPLEX_TYPE_COLUMN_CONTAINS_VOID,
    DUPLICATE_COLUMNS_FOUND_METADATA_UPDATE,
    DUPLICATE_COLUMNS_FOUND_PARTITION_COLUMNS,
    INVALID_CHARACTERS_IN_COLUMN_NAMES,
    INVALID_PARTITION_COLUMN,
    NESTED_NOT_NULL_CONSTRAINT,
    PARTITION_COLUMN_NOT_FOUND,
    RESERVED_CDC_COLUMNS_ON_WRITE,
)
from delta_ds.exceptions import SchemaError
from delta_ds.kernel.format.properties import ENABLE_CHANGE_DATA_FEED
from delta_ds.kernel.format.schema.column_paths import show
from delta_ds.kernel.format.schema.evolution import as_nullable, check_duplicates
from delta_ds.kernel.format.schema.types import (
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructType,
    walk,
)

# The columns of the change data feed. Differs: delta-spark lets other spellings (`_Change_Type`) pass.
CHANGE_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
INVALID_NAME_CHARACTERS = " ,;{}()\n\t="


def check_new_schema(
    schema: StructType,
    partition_columns: Sequence[str],
    mapping_mode: str,
    table_name: str,
    *,
    properties: Mapping[str, str] | None = None,
    is_new: bool = True,
) -> None:
    """Refuse a schema that no table may have.

    Parameters
    ----------
    schema
        The whole schema the table would have.
    partition_columns
        Its partition columns, top-level names.
    mapping_mode
        `none`, `name` or `id`: with column mapping names may hold any character.
    table_name
        For messages.
    properties
        The table's properties; those of the change data feed reserve names.
    is_new
        Whether it is one to write rows by. A table may drop columns until its partition columns are all there is.

    Raises
    ------
    SchemaError
        Duplicate names, invalid characters, partition columns that are missing, repeated, all there is or of
        a type without order, `NOT NULL` inside arrays and maps, reserved names.

    Source: protocol-checklist CM-W-10, SCH-RW-03, SCH-RW-05, CON-W-02.
    """
    check_duplicates(schema, DUPLICATE_COLUMNS_FOUND_METADATA_UPDATE, f"the schema of {table_name}")
    if mapping_mode == "none":
        check_names(schema, table_name)
    check_partitioning(schema, partition_columns, table_name, is_new=is_new)
    _check_collections(schema, table_name)
    check_reserved(schema, properties or {}, table_name)


def check_names(schema: StructType, table_name: str) -> None:
    """Refuse the characters that Parquet names cannot have; with column mapping all are fine."""
    invalid = [show(p) for p, _ in walk(schema) if any(c in INVALID_NAME_CHARACTERS for c in p[-1])]
    if invalid:
        raise INVALID_CHARACTERS_IN_COLUMN_NAMES(table=table_name, invalidColumnNames=invalid)


def partition_columns_of(schema: StructType, names: Sequence[str], table_name: str) -> tuple[str, ...]:
    """The partition columns a write asks for, in the case the schema of its data has.

    Raises
    ------
    SchemaError
        `DELTA_PARTITION_COLUMN_NOT_FOUND`: one is not a column of the data.
    """
    out = []
    for name in names:
        found = schema.find(name)
        if found is None:
            raise partition_column_not_found(name, schema, table_name)
        out.append(found.name)
    return tuple(out)


def partition_column_not_found(name: str, schema: StructType, table_name: str) -> SchemaError:
    """The error for data without a partition column."""
    return PARTITION_COLUMN_NOT_FOUND(
        table=table_name,
        name=name,
        names=", ".join(schema.names) or "none",
        columnName=f"`{name}`",
        schemaMap=schema.names,
    )


def check_partitioning(
    schema: StructType, partition_columns: Sequence[str], table_name: str, *, is_new: bool = True
) -> None:
    """Refuse partition columns that are repeated, missing, not sortable values, or (`is_new`) all columns there are."""
    counts = Counter(name.lower() for name in partition_columns)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise DUPLICATE_COLUMNS_FOUND_PARTITION_COLUMNS(table=table_name, columns=twice)
    for name in partition_columns:
        found = schema.find(name)
        if found is None:
            raise partition_column_not_found(name, schema, table_name)
        if isinstance(found.type, StructType | ArrayType | MapType) or found.type in (VARIANT, VOID):
            raise INVALID_PARTITION_COLUMN(table=table_name, column=found.name, type=str(found.type))
    if is_new and partition_columns and len(partition_columns) == len(schema):
        raise CANNOT_USE_ALL_COLUMNS_FOR_PARTITION(table=table_name, partition_columns=partition_columns)


def _check_collections(schema: StructType, table_name: str) -> None:
    for path, field in walk(schema):
        for step, inside in _inside(field.type):
            if as_nullable(inside) != inside:
                raise NESTED_NOT_NULL_CONSTRAINT(
                    column=show(path), table=table_name, nestType=step, inside=inside
                )


def _inside(data_type: DataType) -> list[tuple[str, DataType]]:
    # What is in an array itself may be NOT NULL (`containsNull`), the fields of structs in it may not.
    if isinstance(data_type, ArrayType):
        return [("element", data_type.element)]
    if isinstance(data_type, MapType):
        return [("key", data_type.key), ("value", data_type.value)]
    return []


def check_void(schema: StructType, table_name: str) -> None:
    """Refuse data with `void` where no file can hold it: in arrays and maps, or as all there is.

    A schema may have such columns, they are read as null.

    Raises
    ------
    SchemaError
        `DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE`, with the column.

    Source: PROTOCOL.md, "Void Type" (protocol-checklist SCH-RW-05).
    """
    for path, field in walk(schema):
        inside = any(_has_void(part) for _, part in _inside(field.type))
        empty = isinstance(field.type, StructType) and len(field.type) and _is_void(field.type)
        if inside or empty:
            where = "inside an array or map" if inside else "in all of its fields"
            raise COMPLEX_TYPE_COLUMN_CONTAINS_VOID(
                column=show(path), table=table_name, where=where, type=field.type
            )


def _has_void(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return any(_has_void(f.type) for f in data_type)
    return data_type == VOID or any(_has_void(inside) for _, inside in _inside(data_type))


def _is_void(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return all(_is_void(f.type) for f in data_type)
    return data_type == VOID


def check_reserved(schema: StructType, properties: Mapping[str, str], table_name: str) -> None:
    """Refuse the change data feed's own columns where the table records changes."""
    if properties.get(ENABLE_CHANGE_DATA_FEED.name, "false").lower() != "true":
        return
    used = [name for name in schema.names if name.lower() in CHANGE_COLUMNS]
    if used:
        raise RESERVED_CDC_COLUMNS_ON_WRITE(table=table_name, columns=used)
