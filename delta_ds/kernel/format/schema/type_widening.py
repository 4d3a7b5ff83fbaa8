"""Type widening: the changes of type that are allowed, and their record in `delta.typeChanges`.

Source: PROTOCOL.md, "Type Widening"; delta-spark, `TypeWidening` and `TypeWideningMetadata`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from delta_ds.kernel.format.schema.column_mapping import transform_fields
from delta_ds.kernel.format.schema.field_metadata import TYPE_CHANGES
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
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from delta_ds.records import replace

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
        return old != new and _holds(old, new)
    if (old, new) in ((FLOAT, DOUBLE), (DATE, TIMESTAMP_NTZ)):
        return True
    if old in (BYTE, SHORT, INTEGER) and new == DOUBLE:
        return True
    return isinstance(new, DecimalType) and old in _AS_DECIMAL and _holds(_AS_DECIMAL[old], new)


def is_wider(old: DataType, new: DataType) -> bool:
    """Whether Spark calls the change an upcast although Delta has no widening for it."""
    numbers = (*_INTEGERS, FLOAT, DOUBLE)
    if old in numbers and new in numbers:
        return numbers.index(old) < numbers.index(new)
    return (old, new) in ((DATE, TIMESTAMP), (TIMESTAMP_NTZ, TIMESTAMP), (TIMESTAMP, TIMESTAMP_NTZ))


def _holds(old: DecimalType, new: DecimalType) -> bool:
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
