"""Schema evolution: the schema of a table after a write with other columns, and the changes of type that are allowed.

A widened type is recorded in `delta.typeChanges`. Source: PROTOCOL.md, "Type Widening"; delta-spark,
`SchemaMergingUtils.mergeSchemas`, `DeltaColumnMapping.assignColumnIdAndPhysicalName`, `TypeWidening` and
`TypeWideningMetadata`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from delta_ds.conditions.record import ErrorCondition
from delta_ds.conditions.schema import DUPLICATE_COLUMNS_FOUND_DATA, FAILED_TO_MERGE_TYPES
from delta_ds.exceptions import SchemaError
from delta_ds.kernel.format.schema.column_mapping import transform_fields
from delta_ds.kernel.format.schema.column_paths import Path, find, show
from delta_ds.kernel.format.schema.field_metadata import FIELD_ID, NESTED_IDS, PHYSICAL_NAME, TYPE_CHANGES
from delta_ds.kernel.format.schema.types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    walk,
)
from delta_ds.records import dataclass, replace

# The three are the same in Parquet, so delta-spark lets each take the others' values and keeps the widest.
_SMALL_INTEGERS: tuple[DataType, ...] = (BYTE, SHORT, INTEGER)


def merge_schemas(
    table: StructType,
    data: StructType,
    *,
    widening: bool = False,
    table_version: int | None = None,
) -> StructType:
    """The table's schema with what the data has beyond it.

    Columns of both keep the table's name, nullability and metadata; new ones come last, at every level, as
    the data has them. Names are the same ignoring case.

    Parameters
    ----------
    widening
        Whether a type of the table may be widened to the data's; the change is noted in `delta.typeChanges`.
        Without it only byte, short and integer give way to each other.
    table_version
        See `record_changes`.

    Raises
    ------
    SchemaError
        `DELTA_FAILED_TO_MERGE_FIELDS` with the path of the column and both types, or
        `DELTA_DUPLICATE_COLUMNS_FOUND.DATA`.

    Source: delta-spark, `SchemaMergingUtils.mergeSchemas`.
    """
    check_duplicates(data, DUPLICATE_COLUMNS_FOUND_DATA, "the data that is written")
    merged = _Merge(widening).structs(table, data, ())
    return record_changes(merged, table, table_version=table_version) if widening else merged


@dataclass(frozen=True, slots=True)
class _Merge:
    widening: bool

    def structs(self, table: StructType, data: StructType, path: Path) -> StructType:
        incoming = {f.name.lower(): f for f in data}
        known = {f.name.lower() for f in table}
        kept = [
            replace(f, type=self.types(f.type, incoming[f.name.lower()].type, (*path, f.name)))
            if f.name.lower() in incoming
            else f
            for f in table
        ]
        return StructType((*kept, *(f for f in data if f.name.lower() not in known)))

    def types(self, table: DataType, data: DataType, path: Path) -> DataType:
        if isinstance(table, StructType) and isinstance(data, StructType):
            return self.structs(table, data, path)
        if isinstance(table, ArrayType) and isinstance(data, ArrayType):
            return replace(table, element=self.types(table.element, data.element, (*path, "element")))
        if isinstance(table, MapType) and isinstance(data, MapType):
            key = self.types(table.key, data.key, (*path, "key"))
            return replace(table, key=key, value=self.types(table.value, data.value, (*path, "value")))
        if table == data or data == VOID:
            return table
        if table == VOID:
            return data
        if self.widening and can_widen(table, data):
            return data
        if table in _SMALL_INTEGERS and data in _SMALL_INTEGERS:
            return max(table, data, key=_SMALL_INTEGERS.index)
        raise _cannot_merge(path, table, data)


def _cannot_merge(path: Path, table: DataType, data: DataType) -> SchemaError:
    hint = "cast the column to the table's type"
    if can_widen(table, data):
        hint += ", or set the table property delta.enableTypeWidening=true and write with mergeSchema"
    reason = "incompatible data types"
    if isinstance(table, DecimalType) and isinstance(data, DecimalType):
        reason = "decimal types of other precision or scale"
    return FAILED_TO_MERGE_TYPES(
        currentField=show(path),
        reason=reason,
        tableType=str(table),
        dataType=str(data),
        hint=hint,
        updateField=show(path),
    )


def check_duplicates(schema: StructType, condition: ErrorCondition[SchemaError], what: str) -> None:
    """Refuse names that are the same ignoring case at one level.

    Parameters
    ----------
    condition
        `DELTA_DUPLICATE_COLUMNS_FOUND`, with the place as delta-spark names it.
    what
        What has the schema, for the message.

    Raises
    ------
    SchemaError
        The condition, with all such names.
    """
    counts = Counter(tuple(name.lower() for name in path) for path, _ in walk(schema))
    twice = [show(path) for path, count in counts.items() if count > 1]
    if twice:
        raise condition(what=what, duplicateCols=twice)


def as_nullable(data_type: DataType) -> DataType:
    """The type with nulls allowed everywhere: what a query says about nullability is not trusted."""
    if isinstance(data_type, StructType):
        return StructType(tuple(replace(f, type=as_nullable(f.type), nullable=True) for f in data_type))
    if isinstance(data_type, ArrayType):
        return ArrayType(as_nullable(data_type.element), True)
    if isinstance(data_type, MapType):
        return MapType(as_nullable(data_type.key), as_nullable(data_type.value), True)
    return data_type


def reuse_column_ids(new: StructType, old: StructType) -> StructType:
    """A schema that replaces another, with the ids and physical names of columns that stay what they were.

    A column stays if a column of its name (ignoring case) was there and its type holds the old one.
    The others are left without; `column_mapping.assign` gives them new ones.

    Source: delta-spark, `assignColumnIdAndPhysicalNameToSchema` with `isOverwritingSchema`.
    """
    result = _reuse(new, old, ())
    assert isinstance(result, StructType)
    return result


def _reuse(data_type: DataType, old: StructType, path: Path) -> DataType:
    if isinstance(data_type, StructType):
        return StructType(tuple(_reuse_field(f, old, (*path, f.name)) for f in data_type))
    if isinstance(data_type, ArrayType):
        return replace(data_type, element=_reuse(data_type.element, old, (*path, "element")))
    if isinstance(data_type, MapType):
        key = _reuse(data_type.key, old, (*path, "key"))
        return replace(data_type, key=key, value=_reuse(data_type.value, old, (*path, "value")))
    return data_type


def _reuse_field(field: StructField, old: StructType, path: Path) -> StructField:
    metadata = dict(field.metadata)
    before = find(old, path)
    if before is not None and _holds(before[1].type, field.type):
        for key in (FIELD_ID, PHYSICAL_NAME, NESTED_IDS):
            if key in before[1].metadata:
                metadata.setdefault(key, before[1].metadata[key])
    return replace(field, type=_reuse(field.type, old, path), metadata=metadata)


def _holds(old: DataType, new: DataType) -> bool:
    """Whether the types are equal but for nulls that only the new one allows."""
    if isinstance(old, StructType) and isinstance(new, StructType):
        return old.names == new.names and all(
            (b.nullable or not a.nullable) and _holds(a.type, b.type) for a, b in zip(old, new, strict=True)
        )
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return (new.contains_null or not old.contains_null) and _holds(old.element, new.element)
    if isinstance(old, MapType) and isinstance(new, MapType):
        nulls = new.value_contains_null or not old.value_contains_null
        return nulls and _holds(old.key, new.key) and _holds(old.value, new.value)
    return old == new


_INTEGERS: tuple[DataType, ...] = (BYTE, SHORT, INTEGER, LONG)
# The decimals that hold every value of an integer type in its Parquet form (INT32, INT64).
_AS_DECIMAL: Mapping[DataType, DecimalType] = {
    BYTE: DecimalType(10, 0),
    SHORT: DecimalType(10, 0),
    INTEGER: DecimalType(10, 0),
    LONG: DecimalType(20, 0),
}


def can_widen(old: DataType, new: DataType) -> bool:
    """Whether a column of one type may become the other, by `ALTER COLUMN ... TYPE` or `mergeSchema`.

    Only types without parts are compared; equal types are not a change.

    Source: PROTOCOL.md, "Type Widening" (protocol-checklist TW-RW-02).
    """
    if old in _INTEGERS and new in _INTEGERS:
        return _INTEGERS.index(old) < _INTEGERS.index(new)
    if isinstance(old, DecimalType) and isinstance(new, DecimalType):
        return old != new and _can_hold(old, new)
    if (old, new) in ((FLOAT, DOUBLE), (DATE, TIMESTAMP_NTZ)):
        return True
    if old in (BYTE, SHORT, INTEGER) and new == DOUBLE:
        return True
    return isinstance(new, DecimalType) and old in _AS_DECIMAL and _can_hold(_AS_DECIMAL[old], new)


def is_wider(old: DataType, new: DataType) -> bool:
    """Whether Spark calls the change an upcast although Delta has no widening for it."""
    numbers = (*_INTEGERS, FLOAT, DOUBLE)
    if old in numbers and new in numbers:
        return numbers.index(old) < numbers.index(new)
    return (old, new) in ((DATE, TIMESTAMP), (TIMESTAMP_NTZ, TIMESTAMP), (TIMESTAMP, TIMESTAMP_NTZ))


def _can_hold(old: DecimalType, new: DecimalType) -> bool:
    return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale


def without_changes(schema: StructType) -> StructType:
    """The schema without the record of what its types were, as a table without files of those types has it."""

    def bare(field: StructField) -> StructField:
        return replace(field, metadata={k: v for k, v in field.metadata.items() if k != TYPE_CHANGES})

    return transform_fields(schema, bare)


def record_changes(new: StructType, old: StructType, *, table_version: int | None = None) -> StructType:
    """The new schema with each widening since the old one noted in the nearest struct field.

    Parameters
    ----------
    table_version
        The version that is being committed, for tables with the preview of the feature; else None.

    Source: PROTOCOL.md, "Type Change Metadata" (protocol-checklist TW-W-03).
    """
    result = _record(new, old, table_version)
    assert isinstance(result, StructType)
    return result


def _record(new: DataType, old: DataType, version: int | None) -> DataType:
    if isinstance(new, StructType) and isinstance(old, StructType):
        before = {f.name: f for f in old}
        return StructType(
            tuple(_record_field(f, before[f.name], version) if f.name in before else f for f in new)
        )
    if isinstance(new, ArrayType) and isinstance(old, ArrayType):
        return replace(new, element=_record(new.element, old.element, version))
    if isinstance(new, MapType) and isinstance(old, MapType):
        return replace(
            new, key=_record(new.key, old.key, version), value=_record(new.value, old.value, version)
        )
    return new


def _record_field(new: StructField, old: StructField, version: int | None) -> StructField:
    changes = [_change(path, a, b, version) for path, a, b in _changes(old.type, new.type, ())]
    metadata = dict(new.metadata)
    if changes:
        metadata[TYPE_CHANGES] = [*metadata.get(TYPE_CHANGES, []), *changes]
    return replace(new, type=_record(new.type, old.type, version), metadata=metadata)


def _changes(
    old: DataType, new: DataType, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], DataType, DataType]]:
    """The widenings inside one field, arrays and maps included; structs below have fields of their own."""
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        yield from _changes(old.element, new.element, (*path, "element"))
    elif isinstance(old, MapType) and isinstance(new, MapType):
        yield from _changes(old.key, new.key, (*path, "key"))
        yield from _changes(old.value, new.value, (*path, "value"))
    elif can_widen(old, new):
        yield path, old, new


def _change(path: tuple[str, ...], old: DataType, new: DataType, version: int | None) -> dict[str, Any]:
    change: dict[str, Any] = {} if version is None else {"tableVersion": version}
    change |= {"fromType": str(old), "toType": str(new)}
    if path:
        change["fieldPath"] = ".".join(path)
    return change
