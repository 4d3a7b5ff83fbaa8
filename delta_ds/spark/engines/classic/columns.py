"""The schema given to Spark's Parquet reader, and the projection from its columns to the table's.

Without column mapping the reader gives the table's columns as they are. With it, it is given physical names (in
mode `id` ids too, which is what counts then) and a projection renames them.
Source: PROTOCOL.md, "Reader Requirements for Column Mapping".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from delta_ds.kernel.format.schema.char_varchar import compares_by_bytes
from delta_ds.kernel.format.schema.column_mapping import every_field, physical_name
from delta_ds.kernel.format.schema.column_paths import HIDDEN
from delta_ds.kernel.format.schema.field_metadata import (
    CHAR_VARCHAR_TYPE,
    COLLATIONS,
    EXISTS_DEFAULT,
    FIELD_ID,
)
from delta_ds.kernel.format.schema.types import (
    PRIMITIVES,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    UserDefinedType,
)
from delta_ds.records import dataclass, replace
from delta_ds.spark.base import schema as schemas
from delta_ds.spark.engines.classic.jvm import Jvm, NotNative
from delta_ds.spark.engines.classic.projection import ColumnAt, Projected, project

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType as SparkStructType

    from delta_ds.kernel.log.snapshot import Snapshot

_PARQUET_ID = "parquet.field.id"
# What of a field's metadata changes how Spark reads it.
_READING = (EXISTS_DEFAULT, CHAR_VARCHAR_TYPE, COLLATIONS)
_PRIMITIVES = frozenset(kind for kind in PRIMITIVES.values() if kind != VOID)
# In mode id a nested field must not have its logical name in the reader's schema: Spark's pruning of nested
# columns drops their ids, and finds nothing (or worse, something else) by name. Another name keeps it away.
_BY_ID = "#"


@dataclass(frozen=True, slots=True)
class ScanColumns:
    """The columns of a native scan.

    Attributes
    ----------
    data
        The reader's schema: physical names, everything nullable. A reader that is told that a column has no
        nulls answers wrongly where a file has some.
    output
        What comes out of the relation, in the table's order, with the nullability that the table promises.
    partitions
        Physical names and types of the partition columns, in the order of partitioning.
    by_id
        Columns are found by their ids.
    """

    table: StructType
    partition_columns: tuple[str, ...]
    mode: str
    data: SparkStructType
    output: SparkStructType
    partitions: StructType
    by_id: bool
    renames: bool

    def project(self, jvm: Jvm, relation: DataFrame, extra: Sequence[Column] = ()) -> DataFrame:
        """The table's columns under their own names, then some more; hidden ones are left behind."""
        names = relation.schema.names
        if not self.renames and len(names) == len(self.table) + len(extra):
            return relation
        positions = {name: at for at, name in enumerate(names)}
        return project(jvm, relation, [*(self._column(f, relation, positions) for f in self.table), *extra])

    def _column(self, field: StructField, relation: DataFrame, positions: Mapping[str, int]) -> Projected:
        from pyspark.sql import functions as F

        if not self.renames:
            return ColumnAt(positions[field.name])
        name, metadata = field.name, dict(schemas.public_field(field).metadata)
        if field.type == VOID:
            return F.lit(None).alias(name, metadata=metadata)
        physical = physical_name(field, self.mode)
        if not _is_renamed_inside(field, self.mode, self.by_id):
            return ColumnAt(positions[physical], name, metadata)
        column = _rename_inside(relation[schemas.quoted(physical)], field, self.mode, self.by_id)
        return column.alias(name, metadata=metadata)

    def logical(self, path: tuple[str, ...]) -> tuple[str, ...] | None:
        """The table's path of a column of the relation, for skipping files.

        None where there is none, and where values in files do not compare as Spark compares the column.
        """
        out: list[str] = []
        level: DataType = self.table
        for name in path:
            found = _find(level, name, self.mode, self.by_id)
            if found is None or not compares_by_bytes(found):
                return None
            out.append(found.name)
            level = found.type
        return tuple(out)


def scan_columns(snapshot: Snapshot, table: StructType | None = None) -> ScanColumns:
    """How the columns of a version are read.

    Parameters
    ----------
    snapshot
        The version.
    table
        The columns: some of the version's, in any order, with some of their nested fields; None for all.

    Raises
    ------
    NotNative
        A column has a type that Spark's Parquet reader cannot be trusted with.
    """
    table, mode = table or snapshot.schema, snapshot.mapping_mode
    for field in table:
        _check_type(field.type, field.name, top=True)
    by_id = mode == "id"
    stored = StructType(tuple(f for f in table if f.type != VOID))
    names = [physical_name(f, mode) for f in stored]
    if len({name.lower() for name in names}) < len(names):
        raise NotNative("the names of columns in files differ in case only")
    own = [name for name in names if name.lower().startswith(HIDDEN)]
    if own:
        raise NotNative(f"a column is called {own[0]}, as those are that the scan adds")
    renames = by_id or len(stored) < len(table) or any(_is_renamed(f, mode) for f in table)
    output = StructType(tuple(_relation_field(f, mode, by_id, renames) for f in stored))
    partitions = StructType(
        tuple(
            StructField(physical_name(f, mode), f.type)
            for f in map(table.find, snapshot.partition_columns)
            if f
        )
    )
    keys = {f.name.lower() for f in partitions}
    data = StructType(tuple(_nullable_field(f) for f in output if f.name.lower() not in keys))
    return ScanColumns(
        table,
        tuple(f.name for f in map(table.find, snapshot.partition_columns) if f),
        mode,
        schemas.as_it_is_to_spark(data),
        schemas.as_it_is_to_spark(output),
        partitions,
        by_id,
        renames,
    )


def _check_type(data_type: DataType, where: str, top: bool = False) -> None:
    if isinstance(data_type, StructType):
        if not data_type.fields:
            raise NotNative(f"column {where} is a struct without fields")
        for field in data_type:
            _check_type(field.type, f"{where}.{field.name}")
    elif isinstance(data_type, ArrayType):
        _check_type(data_type.element, where)
    elif isinstance(data_type, MapType):
        _check_type(data_type.key, where)
        _check_type(data_type.value, where)
    elif isinstance(data_type, UserDefinedType):
        _check_type(data_type.stored, where)
    elif data_type == VOID:
        if not top:
            raise NotNative(f"column {where} holds a void type")
    elif not isinstance(data_type, DecimalType) and data_type not in _PRIMITIVES:
        raise NotNative(f"column {where} is of type {data_type}")


def _is_renamed(field: StructField, mode: str) -> bool:
    if mode == "none":
        return False
    fields = (field, *every_field(field.type))
    return any(physical_name(f, mode) != f.name for f in fields)


def _relation_field(field: StructField, mode: str, by_id: bool, renames: bool) -> StructField:
    """A column as the relation gives it. What is not renamed later brings its metadata along."""
    public = schemas.public_field(field)
    if not renames:
        return public
    metadata = {k: v for k, v in public.metadata.items() if k in _READING}
    if by_id:
        metadata[_PARQUET_ID] = field.metadata[FIELD_ID]
    nested = _relation_type(field.type, mode, by_id)
    return StructField(physical_name(field, mode), nested, field.nullable, metadata)


def _relation_type(data_type: DataType, mode: str, by_id: bool) -> DataType:
    if isinstance(data_type, StructType):
        return StructType(tuple(_nested_field(f, mode, by_id) for f in data_type))
    if isinstance(data_type, ArrayType):
        return replace(data_type, element=_relation_type(data_type.element, mode, by_id))
    if isinstance(data_type, MapType):
        key, value = (_relation_type(t, mode, by_id) for t in (data_type.key, data_type.value))
        return replace(data_type, key=key, value=value)
    return data_type


def _nested_field(field: StructField, mode: str, by_id: bool) -> StructField:
    metadata = {_PARQUET_ID: field.metadata[FIELD_ID]} if by_id else {}
    if COLLATIONS in field.metadata:
        metadata[COLLATIONS] = field.metadata[COLLATIONS]
    name = physical_name(field, mode) + (_BY_ID if by_id else "")
    return StructField(name, _relation_type(field.type, mode, by_id), field.nullable, metadata)


def _nullable_field(field: StructField) -> StructField:
    return replace(field, nullable=True, type=_nullable(field.type))


def _nullable(data_type: DataType) -> DataType:
    if isinstance(data_type, StructType):
        return StructType(tuple(_nullable_field(f) for f in data_type))
    if isinstance(data_type, ArrayType):
        return replace(data_type, element=_nullable(data_type.element), contains_null=True)
    if isinstance(data_type, MapType):
        return replace(
            data_type,
            key=_nullable(data_type.key),
            value=_nullable(data_type.value),
            value_contains_null=True,
        )
    return data_type


def _is_renamed_inside(field: StructField, mode: str, by_id: bool) -> bool:
    if isinstance(field.type, PrimitiveType | DecimalType | UserDefinedType):
        return False
    return by_id or any(physical_name(f, mode) != f.name for f in every_field(field.type))


def _rename_inside(column: Column, field: StructField, mode: str, by_id: bool) -> Column:
    """A column with its nested fields under their own names."""
    if by_id or not isinstance(field.type, StructType) or not _is_plain(field.type):
        # A cast renames by position and keeps nullability and comments, but reads the whole column.
        return column.cast(schemas.as_it_is_to_spark(StructType((schemas.public_field(field),)))[0].dataType)
    return _rebuilt(column, field.type, mode, field.nullable)


def _is_plain(data_type: DataType) -> bool:
    """A struct of structs whose fields promise and say nothing: it can be rebuilt field by field."""
    if isinstance(data_type, StructType):
        return all(
            f.nullable and not schemas.public_field(f).metadata and _is_plain(f.type) for f in data_type
        )
    return not isinstance(data_type, ArrayType | MapType) or not any(every_field(data_type))


def _rebuilt(column: Column, struct: StructType, mode: str, nullable: bool) -> Column:
    """A struct made anew of its fields, so that a query that needs one of them reads only that one."""
    from pyspark.sql import functions as F

    parts = []
    for field in struct:
        part = column.getField(physical_name(field, mode))
        if isinstance(field.type, StructType):
            part = _rebuilt(part, field.type, mode, True)
        parts.append(part.alias(field.name))
    whole = F.struct(*parts)
    return F.when(column.isNotNull(), whole) if nullable else whole


def _find(level: DataType, name: str, mode: str, by_id: bool) -> StructField | None:
    if not isinstance(level, StructType):
        return None
    folded = name.removesuffix(_BY_ID).lower() if by_id else name.lower()
    return next((f for f in level if physical_name(f, mode).lower() == folded), None)


def spark_schema(fields: Sequence[StructField]) -> SparkStructType:
    """The Spark schema of fields."""
    return schemas.as_it_is_to_spark(StructType(tuple(fields)))
