"""The columns of a data file: from the table's rows to physical names, ids and Parquet types.

Names become physical, fields get their ids, void columns vanish and partition columns move to the end or
out. No value is copied: an Arrow batch is handed over with another schema.
Source: PROTOCOL.md, "Column Mapping", "Void Type" and "Delta Data Type to Parquet Type Mappings"
(protocol-checklist CM-W-06, SCH-RW-05, SCH-RW-06, MPC-W-01).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.data import MISSING_PARTITION_COLUMN
from delta_ds.conditions.schema import COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE, NON_PARTITION_COLUMN_ABSENT
from delta_ds.exceptions import SchemaError
from delta_ds.kernel.files.read.column_conversion import struct_array
from delta_ds.kernel.files.write.write_spec import WriteSpec
from delta_ds.kernel.format.schema.column_mapping import nested_ids, physical_name
from delta_ds.kernel.format.schema.field_metadata import FIELD_ID, NESTED_IDS
from delta_ds.kernel.format.schema.types import (
    BINARY,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    UserDefinedType,
    arrow_schema,
    arrow_type,
)
from delta_ds.records import dataclass, replace

_PARQUET_ID = "PARQUET:field_id"
_TEXTS = (STRING, BINARY)


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns of the files of a table.

    Attributes
    ----------
    rows
        The Arrow schema of the rows to write: the table's columns, then the extra ones.
    fields
        The columns of a file: physical names, no void anywhere. The data columns come first, then
        materialised partition columns, then the extra ones.
    schema
        The Arrow schema of `fields`, with field ids. All is nullable but keys of maps: as in delta-spark, a
        constraint that is dropped later must not make old and new files differ.
    sources
        The number among `rows` of each of `fields`.
    thinned
        The numbers among `fields` of structs that lose void fields.
    variants
        The numbers among `fields` of columns that hold variants, at any depth.
    partitions
        The numbers among `rows` of the partition columns, in the order of partitioning.
    emptied
        The numbers among `fields` of partition columns whose empty values are null, as they are in the log.
    """

    rows: pa.Schema
    fields: tuple[StructField, ...]
    schema: pa.Schema
    sources: tuple[int, ...]
    thinned: tuple[int, ...]
    variants: tuple[int, ...]
    partitions: tuple[int, ...]
    emptied: tuple[int, ...] = ()

    def physical(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows as a file holds them, partition values left out; only null variants cost a copy."""
        columns = [batch.column(i) for i in self.sources]
        for i in self.thinned:
            columns[i] = _without_void(columns[i])
        for i in self.variants:
            columns[i] = _filled_variants(columns[i], self.fields[i].type)
        for i in self.emptied:
            columns[i] = _without_empty(columns[i])
        named = pa.RecordBatch.from_arrays(columns, names=self.schema.names)
        _, array = named.__arrow_c_array__()
        return pa.record_batch(_Relabelled(self.schema, array))


class _Relabelled:
    """Arrow data with another schema of the same layout, by the Arrow PyCapsule interface."""

    __slots__ = ("_array", "_schema")

    def __init__(self, schema: pa.Schema, array: Any) -> None:
        self._schema = schema
        self._array = array

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        return self._schema.__arrow_c_schema__(), self._array


def file_columns(plan: WriteSpec, *, none_will_do: bool = False) -> FileColumns:
    """The columns of the files that a plan asks for.

    Parameters
    ----------
    none_will_do
        No file is written by them: where a table has dropped all columns but those that it is partitioned by, there
        are none.

    Raises
    ------
    SchemaError
        Void sits inside an array or map or is all that a struct has, or a file would have no column at all.
    """
    logical = [*plan.schema, *plan.extra_columns]
    numbers = {f.name: i for i, f in enumerate(plan.schema)}
    partitions = tuple(_number(numbers, name, plan) for name in plan.partition_columns)
    data = [i for i in range(len(plan.schema)) if i not in partitions]
    fields = {i: _physical(logical[i], plan.mapping_mode, plan) for i in range(len(plan.schema))}
    fields |= {i: _extra(logical[i], plan) for i in range(len(plan.schema), len(logical))}
    materialized = list(partitions) if plan.writes_partition_columns else []
    sources = [*data, *materialized, *range(len(plan.schema), len(logical))]
    sources = [i for i in sources if fields[i].type != VOID]
    if not (none_will_do or any(i in sources for i in data)):
        raise NON_PARTITION_COLUMN_ABSENT(table=plan.table)
    stored = tuple(fields[i] for i in sources)
    return FileColumns(
        rows=arrow_schema(StructType(tuple(logical))),
        fields=stored,
        schema=pa.schema([_arrow_field(f) for f in stored]),
        sources=tuple(sources),
        thinned=tuple(n for n, i in enumerate(sources) if _has_void(logical[i].type)),
        variants=tuple(n for n, field in enumerate(stored) if _holds_variant(field.type)),
        partitions=partitions,
        emptied=tuple(n for n, i in enumerate(sources) if i in materialized and logical[i].type in _TEXTS),
    )


def _number(numbers: dict[str, int], name: str, plan: WriteSpec) -> int:
    if name not in numbers:
        raise MISSING_PARTITION_COLUMN(table=plan.table, column=name)
    return numbers[name]


def _extra(field: StructField, plan: WriteSpec) -> StructField:
    """A column beside those of the table: some readers of Iceberg want an id for each column, or for none."""
    number = plan.reserved_ids.get(field.name)
    stored = _physical(field, "none", plan)
    return stored if number is None else replace(stored, metadata={FIELD_ID: number})


def _physical(field: StructField, mode: str, plan: WriteSpec) -> StructField:
    """The field as files have it: physical names all the way down, of metadata only the id."""
    type_ = _physical_type(field.type, mode, plan, field.name)
    keys = (FIELD_ID, NESTED_IDS) if plan.writes_nested_ids else (FIELD_ID,)
    ids = {key: field.metadata[key] for key in keys if mode != "none" and key in field.metadata}
    return StructField(physical_name(field, mode), type_, True, ids)


def _physical_type(data_type: DataType, mode: str, plan: WriteSpec, path: str) -> DataType:
    if isinstance(data_type, StructType):
        fields = [_physical(f, mode, plan) for f in data_type]
        stored = tuple(f for f in fields if f.type != VOID)
        if not stored:
            raise _no_void(f"struct {path} has no field that is not void", path, data_type, plan)
        return StructType(stored)
    if isinstance(data_type, ArrayType):
        return ArrayType(_fill_void(data_type.element, mode, plan, f"{path}.element"), True)
    if isinstance(data_type, MapType):
        key = _fill_void(data_type.key, mode, plan, f"{path}.key")
        return MapType(key, _fill_void(data_type.value, mode, plan, f"{path}.value"), True)
    if isinstance(data_type, UserDefinedType):
        return replace(data_type, stored=_physical_type(data_type.stored, "none", plan, path))
    return data_type


def _fill_void(data_type: DataType, mode: str, plan: WriteSpec, path: str) -> DataType:
    if _has_void(data_type):
        raise _no_void(f"{path} is {data_type}: void cannot be inside an array or map", path, data_type, plan)
    return _physical_type(data_type, mode, plan, path)


def _no_void(why: str, path: str, data_type: DataType, plan: WriteSpec) -> SchemaError:
    return COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE(table=plan.table, reason=why, column=path, type=data_type)


def _has_void(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return any(f.type == VOID or _has_void(f.type) for f in data_type)
    if isinstance(data_type, ArrayType):
        return data_type.element == VOID or _has_void(data_type.element)
    if isinstance(data_type, MapType):
        return any(part == VOID or _has_void(part) for part in (data_type.key, data_type.value))
    return data_type == VOID


def _without_empty(array: pa.Array) -> pa.Array:
    """The values, null in place of empty ones: a reader that goes by the file must see what the log says."""
    empty = pc.equal(pc.binary_length(array), pa.scalar(0, pc.binary_length(array).type))
    if not pc.any(empty, min_count=0).as_py():
        return array
    return pc.if_else(empty, pa.scalar(None, array.type), array)


def _without_void(array: pa.Array) -> pa.Array:
    """A struct array without its void fields, at any depth of structs."""
    if not pa.types.is_struct(array.type):
        return array
    stored = [(f, i) for i, f in enumerate(array.type) if not pa.types.is_null(f.type)]
    children = [_without_void(array.field(i)) for _, i in stored]
    fields = [f.with_type(child.type) for (f, _), child in zip(stored, children, strict=True)]
    return struct_array(children, pa.struct(fields), array)


def _holds_variant(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return any(_holds_variant(f.type) for f in data_type)
    if isinstance(data_type, ArrayType):
        return _holds_variant(data_type.element)
    if isinstance(data_type, MapType):
        return _holds_variant(data_type.value)
    return data_type == VARIANT


def _filled_variants(array: pa.Array, data_type: DataType, hidden: pa.Array | None = None) -> pa.Array:
    """The column with no bytes, in place of nulls, inside variants that are null.

    A file has no place for nulls there, and Spark sends them. Inside a variant that is there a null stays, so that
    writing it fails.

    Parameters
    ----------
    hidden
        Which rows are null in an enclosing struct.
    """
    if isinstance(data_type, ArrayType):
        return _over(array, [_filled_variants(array.values, data_type.element)])
    if isinstance(data_type, MapType):
        entries = array.values
        values = _filled_variants(entries.field(1), data_type.value)
        return _over(
            array, [pa.StructArray.from_arrays([entries.field(0), values], fields=list(entries.type))]
        )
    if not (isinstance(data_type, StructType) or data_type == VARIANT):
        return array
    gone = array.is_null() if hidden is None else pc.or_(array.is_null(), hidden)
    inside = [array.field(i) for i in range(array.type.num_fields)]
    if isinstance(data_type, StructType):
        parts = zip(inside, data_type, strict=True)
        return _struct_like(array, [_filled_variants(part, f.type, gone) for part, f in parts])
    return _struct_like(array, [pc.if_else(gone, b"", part) if part.null_count else part for part in inside])


def _struct_like(array: pa.Array, children: list[pa.Array]) -> pa.Array:
    return struct_array(children, array.type, array)


def _over(array: pa.Array, values: list[pa.Array]) -> pa.Array:
    """The same lists or maps over other values."""
    return pa.Array.from_buffers(
        array.type, len(array), array.buffers()[:2], array.null_count, array.offset, children=values
    )


def _arrow_field(field: StructField) -> pa.Field:
    metadata = {_PARQUET_ID: str(field.metadata[FIELD_ID])} if FIELD_ID in field.metadata else None
    kind = _arrow_type(field.type, nested_ids(field), field.name)
    return pa.field(field.name, kind, field.nullable, metadata)


def _arrow_type(data_type: DataType, ids: Mapping[str, int], path: str) -> pa.DataType:
    """As `arrow_type`, with the ids of nested fields.

    Parameters
    ----------
    ids
        Of elements, keys and values inside the nearest field above, by their paths from there.
    path
        From there, with its name.
    """
    if isinstance(data_type, StructType):
        return pa.struct([_arrow_field(f) for f in data_type])
    if isinstance(data_type, ArrayType):
        return pa.list_(_arrow_part("element", data_type.element, True, ids, path))
    if isinstance(data_type, MapType):
        key = _arrow_part("key", data_type.key, False, ids, path)
        return pa.map_(key, _arrow_part("value", data_type.value, True, ids, path))
    if isinstance(data_type, UserDefinedType):
        return _arrow_type(data_type.stored, {}, path)
    if data_type == VARIANT:
        return pa.struct([f.with_metadata(None) for f in arrow_type(VARIANT)])
    return arrow_type(data_type)


def _arrow_part(name: str, part: DataType, nullable: bool, ids: Mapping[str, int], path: str) -> pa.Field:
    here = f"{path}.{name}"
    metadata = {_PARQUET_ID: str(ids[here])} if here in ids else None
    return pa.field(name, _arrow_type(part, ids, here), nullable, metadata)


def leaf_count(data_type: DataType) -> int:
    """How many Parquet leaf columns a column of this type takes."""
    if isinstance(data_type, StructType):
        return sum(leaf_count(f.type) for f in data_type)
    if isinstance(data_type, ArrayType):
        return leaf_count(data_type.element)
    if isinstance(data_type, MapType):
        return leaf_count(data_type.key) + leaf_count(data_type.value)
    if isinstance(data_type, UserDefinedType):
        return leaf_count(data_type.stored)
    return 2 if data_type == VARIANT else 1


def leaves(field: pa.Field) -> list[tuple[str, pa.DataType]]:
    """The Parquet leaf columns of a column: their dotted paths, as Parquet spells them, and types."""
    return _leaves(field.name, field.type)


def _leaves(path: str, kind: pa.DataType) -> list[tuple[str, pa.DataType]]:
    if pa.types.is_struct(kind):
        return [leaf for f in kind for leaf in _leaves(f"{path}.{f.name}", f.type)]
    if pa.types.is_map(kind):
        inner = f"{path}.key_value"
        return _leaves(f"{inner}.key", kind.key_type) + _leaves(f"{inner}.value", kind.item_type)
    if pa.types.is_list(kind):
        return _leaves(f"{path}.list.element", kind.value_type)
    return [(path, kind)]
