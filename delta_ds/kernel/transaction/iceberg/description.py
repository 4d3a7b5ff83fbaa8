"""A table's description in Iceberg's words: schema, partition spec, name mapping and the address of the table.

Source: Iceberg Table Spec, "Schemas and Data Types", "Partitioning", "Column Projection"; delta-spark,
`IcebergSchemaUtils`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.format.iceberg_compatibility import RESERVED_IDS
from delta_ds.kernel.format.schema.column_mapping import nested_ids, physical_name
from delta_ds.kernel.format.schema.field_metadata import FIELD_ID
from delta_ds.kernel.format.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from delta_ds.kernel.storage.uri import has_scheme

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType, NestedField

    from delta_ds.kernel.format.table_state import TableState
    from delta_ds.kernel.storage.filesystem import Storage

_PRIMITIVES = {
    "byte": "int",
    "short": "int",
    "integer": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}
_FIRST_PARTITION_FIELD = 1000


def location_of(storage: Storage) -> str:
    """The address of a table as Iceberg spells it: not encoded, without a slash at the end."""
    address = storage.address
    if address.scheme == "file":
        # Readers take a `?` or `#` of a URL for its end.
        return address.path if any(sign in address.path for sign in "?#") else f"file:{address.path}"
    if address.scheme == "memory":
        return f"memory:/{address.path}"
    return f"{address.spelling or address.scheme}://{address.authority}{address.path}"


def file_location(storage: Storage, location: str, path: str) -> str:
    """The address of a data file as Iceberg spells it.

    Parameters
    ----------
    location
        Of the table, see `location_of`.
    path
        As the log spells it.
    """
    return resolved_location(storage, location, storage.resolve(path))


def resolved_location(storage: Storage, location: str, found: str) -> str:
    """As `file_location`, of a path as `Storage.resolve` gives it."""
    if has_scheme(found):
        return found
    if found.startswith("/"):
        return location[: len(location) - len(storage.address.path)] + found
    return f"{location}/{found}"


# --- schema


def iceberg_schema(schema: StructType, schema_id: int) -> Schema:
    """The schema of a table with column mapping, by its field ids."""
    from pyiceberg.schema import Schema

    return Schema(*_fields(schema), schema_id=schema_id)


def _fields(schema: StructType) -> list[NestedField]:
    from pyiceberg.types import NestedField

    return [
        NestedField(
            field_id=field.metadata[FIELD_ID],
            name=field.name,
            field_type=_type(field.type, nested_ids(field), physical_name(field, "name")),
            required=not field.nullable,
            doc=field.metadata.get("comment"),
        )
        for field in schema
    ]


def _type(data_type: DataType, ids: Mapping[str, int], path: str) -> IcebergType:
    from pyiceberg import types

    if isinstance(data_type, StructType):
        return types.StructType(*_fields(data_type))
    if isinstance(data_type, ArrayType):
        here = f"{path}.element"
        return types.ListType(
            element_id=ids[here],
            element=_type(data_type.element, ids, here),
            element_required=not data_type.contains_null,
        )
    if isinstance(data_type, MapType):
        key, value = f"{path}.key", f"{path}.value"
        return types.MapType(
            key_id=ids[key],
            key_type=_type(data_type.key, ids, key),
            value_id=ids[value],
            value_type=_type(data_type.value, ids, value),
            value_required=not data_type.value_contains_null,
        )
    iceberg_type: IcebergType = primitive(data_type)
    return iceberg_type


def primitive(data_type: DataType) -> Any:
    """The type of Iceberg for a type without parts; raises `ValueError` where there is none."""
    from pyiceberg import types

    if isinstance(data_type, DecimalType):
        return types.DecimalType(data_type.precision, data_type.scale)
    name = _PRIMITIVES.get(str(data_type))
    if name is None:
        raise ValueError(f"Iceberg has no type for {data_type}")
    return types.NestedField(1, "of", name, required=False).field_type


# --- partition spec


def partition_spec(state: TableState, spec_id: int, known: Mapping[int, int]) -> PartitionSpec:
    """The partition columns of a table, each by its own value.

    Parameters
    ----------
    known
        Ids of partition fields that were given out before, by the ids of their columns.
    """
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.transforms import IdentityTransform

    highest = max([_FIRST_PARTITION_FIELD - 1, *known.values()])
    fields = []
    for field in partition_fields(state):
        source = field.metadata[FIELD_ID]
        number = known.get(source)
        if number is None:
            highest += 1
            number = highest
        fields.append(
            PartitionField(source_id=source, field_id=number, transform=IdentityTransform(), name=field.name)
        )
    return PartitionSpec(*fields, spec_id=spec_id)


def partition_fields(state: TableState) -> list[StructField]:
    """The partition columns in order."""
    fields = (state.schema.find(name) for name in state.partition_columns)
    return [field for field in fields if field is not None]


# --- name mapping


def name_mapping(state: TableState, before: str | None = None) -> str:
    """How the columns of files without field ids are called, as `schema.name-mapping.default` has it.

    Some readers ask for a name for each column of a file that has one without an id: the columns that other engines
    keep row ids in have none.

    Parameters
    ----------
    before
        The mapping of an earlier version: columns that were dropped since stay known.
    """
    reserved = [(name.of(state.properties), number) for name, number in RESERVED_IDS]
    new = [_mapped(field) for field in state.schema]
    new += [{"field-id": number, "names": [name]} for name, number in reserved if name is not None]
    mapped = _joined(new, json.loads(before or "[]"))
    return json.dumps(mapped, separators=(",", ":"), ensure_ascii=False)


def _joined(new: list[dict[str, Any]], old: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The new entries, with what only the old ones have."""
    by_id = {entry["field-id"]: entry for entry in old}
    entries = []
    for entry in new:
        inside = _joined(entry.get("fields", []), by_id.pop(entry["field-id"], {}).get("fields", []))
        entries.append({**entry, "fields": inside} if inside else entry)
    return entries + list(by_id.values())


def _mapped(field: StructField) -> dict[str, Any]:
    name = physical_name(field, "name")
    return _entry(field.metadata[FIELD_ID], name, field.type, nested_ids(field), name)


def _entry(number: int, name: str, kind: DataType, ids: Mapping[str, int], path: str) -> dict[str, Any]:
    inside = list(_inside(kind, ids, path))
    return {"field-id": number, "names": [name], **({"fields": inside} if inside else {})}


def _inside(kind: DataType, ids: Mapping[str, int], path: str) -> Iterator[dict[str, Any]]:
    if isinstance(kind, StructType):
        yield from map(_mapped, kind)
    elif isinstance(kind, ArrayType):
        yield _entry(ids[f"{path}.element"], "element", kind.element, ids, f"{path}.element")
    elif isinstance(kind, MapType):
        yield _entry(ids[f"{path}.key"], "key", kind.key, ids, f"{path}.key")
        yield _entry(ids[f"{path}.value"], "value", kind.value, ids, f"{path}.value")
