"""Column mapping: logical names to the physical names and ids in files.

Source: PROTOCOL.md, "Column Mapping".
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping

from delta_ds.conditions.schema import MISSING_COLUMN_ID, MISSING_PHYSICAL_NAME, UNKNOWN_COLUMN_MAPPING_MODE
from delta_ds.kernel.format.properties import COLUMN_MAPPING_MODE
from delta_ds.kernel.format.schema.field_metadata import (
    COLUMN_MAPPING_PREFIX,
    FIELD_ID,
    NESTED_IDS,
    PHYSICAL_NAME,
)
from delta_ds.kernel.format.schema.types import ArrayType, DataType, MapType, StructField, StructType
from delta_ds.records import replace


def mapping_mode(properties: Mapping[str, str], supported: bool) -> str:
    """`none`, `name` or `id`: how the columns of this table are found in its files.

    The property counts only where the protocol supports the feature (protocol-checklist CM-RW-01).
    """
    mode = properties.get(COLUMN_MAPPING_MODE.name, "none").lower()
    if mode not in ("none", "name", "id"):
        raise UNKNOWN_COLUMN_MAPPING_MODE(mode=mode)
    return mode if supported else "none"


def physical_name(field: StructField, mode: str) -> str:
    """The name of a field in files, statistics and partition values."""
    if mode == "none":
        return field.name
    name = field.metadata.get(PHYSICAL_NAME)
    if not isinstance(name, str):
        raise MISSING_PHYSICAL_NAME(column=field.name, mode=mode)
    return name


def physical_path(schema: StructType, path: tuple[str, ...], mode: str) -> tuple[str, ...] | None:
    """The physical path of a logical path through structs; None where there is no such field."""
    out: list[str] = []
    level: object = schema
    for name in path:
        field = level.find(name) if isinstance(level, StructType) else None
        if field is None:
            return None
        out.append(physical_name(field, mode))
        level = field.type
    return tuple(out)


def assign(schema: StructType, max_id: int, *, keep_names: bool) -> tuple[StructType, int]:
    """Give an id and a physical name to every field that has none, nested ones included.

    Parameters
    ----------
    schema
        The logical schema; fields that have an id or a physical name keep it.
    max_id
        The highest id the table has ever given out (`delta.columnMapping.maxColumnId`); 0 for none.
    keep_names
        Whether the logical name becomes the physical one, as when the mapping is switched on for a table that
        has files. Otherwise names are `col-<uuid>`.

    Returns
    -------
    tuple
        The schema with all ids, and the highest id given out now.

    Source: PROTOCOL.md, "Column Mapping"; protocol-checklist CM-W-04, CM-W-05, CM-W-08.
    """
    highest = max(max_id, highest_id(schema))

    def complete(field: StructField) -> StructField:
        nonlocal highest
        metadata = dict(field.metadata)
        if FIELD_ID not in metadata:
            highest += 1
            metadata[FIELD_ID] = highest
        if PHYSICAL_NAME not in metadata:
            metadata[PHYSICAL_NAME] = field.name if keep_names else f"col-{uuid.uuid4()}"
        return replace(field, metadata=metadata)

    return transform_fields(schema, complete), highest


def assign_nested(schema: StructType, max_id: int) -> tuple[StructType, int]:
    """Give an id to every element of arrays, and to keys and values of maps, that has none.

    Parameters
    ----------
    schema
        Whose fields all have physical names; see `assign`.
    max_id
        The highest id the table has ever given out.

    Returns
    -------
    tuple
        The schema, whose fields all have `delta.columnMapping.nested.ids`, and the highest id given out now.

    Source: PROTOCOL.md, "Writer Requirements for IcebergCompatV2"; protocol-checklist ICE-W-02.
    """
    highest = max(max_id, highest_id(schema))

    def complete(field: StructField) -> StructField:
        nonlocal highest
        ids = dict(nested_ids(field))
        for key in nested_keys(field.type, physical_name(field, "name")):
            if key not in ids:
                highest += 1
                ids[key] = highest
        return replace(field, metadata={**field.metadata, NESTED_IDS: ids})

    return transform_fields(schema, complete), highest


def nested_ids(field: StructField) -> Mapping[str, int]:
    """The ids of what lies in the arrays and maps of a field, by their keys; none where it has none."""
    ids = field.metadata.get(NESTED_IDS)
    if ids is None:
        return {}
    if not isinstance(ids, Mapping) or not all(type(number) is int for number in ids.values()):
        raise MISSING_COLUMN_ID(column=field.name, number=ids)
    return ids


def nested_keys(data_type: DataType, prefix: str) -> Iterator[str]:
    """The keys of `nested_ids` that a type needs; structs inside have fields with ids of their own.

    Parameters
    ----------
    prefix
        The physical name of the field that has the type.
    """
    if isinstance(data_type, ArrayType):
        parts = [("element", data_type.element)]
    elif isinstance(data_type, MapType):
        parts = [("key", data_type.key), ("value", data_type.value)]
    else:
        return
    for name, part in parts:
        yield f"{prefix}.{name}"
        yield from nested_keys(part, f"{prefix}.{name}")


def highest_id(schema: StructType) -> int:
    """The highest column mapping id in a schema, those inside arrays and maps included; 0 if it has none."""
    return max((max([_id(f), *nested_ids(f).values()]) for f in every_field(schema)), default=0)


def strip(schema: StructType) -> StructType:
    """The schema without ids and physical names."""

    def bare(field: StructField) -> StructField:
        metadata = {k: v for k, v in field.metadata.items() if not k.startswith(COLUMN_MAPPING_PREFIX)}
        return field if len(metadata) == len(field.metadata) else replace(field, metadata=metadata)

    return transform_fields(schema, bare)


def every_field(data_type: DataType) -> Iterator[StructField]:
    """Every field at every depth, a parent before its children."""
    if isinstance(data_type, StructType):
        for field in data_type:
            yield field
            yield from every_field(field.type)
    elif isinstance(data_type, ArrayType):
        yield from every_field(data_type.element)
    elif isinstance(data_type, MapType):
        yield from every_field(data_type.key)
        yield from every_field(data_type.value)


def transform_fields(schema: StructType, change: Callable[[StructField], StructField]) -> StructType:
    """The schema with `change` applied to every field at every depth, a parent before its children."""
    fields = []
    for field in schema:
        changed = change(field)
        fields.append(replace(changed, type=_transform(changed.type, change)))
    return StructType(tuple(fields))


def _transform(data_type: DataType, change: Callable[[StructField], StructField]) -> DataType:
    if isinstance(data_type, StructType):
        return transform_fields(data_type, change)
    if isinstance(data_type, ArrayType):
        return replace(data_type, element=_transform(data_type.element, change))
    if isinstance(data_type, MapType):
        key = _transform(data_type.key, change)
        return replace(data_type, key=key, value=_transform(data_type.value, change))
    return data_type


def _id(field: StructField) -> int:
    number = field.metadata.get(FIELD_ID, 0)
    if isinstance(number, bool) or not isinstance(number, int):
        raise MISSING_COLUMN_ID(column=field.name, number=number)
    return number
