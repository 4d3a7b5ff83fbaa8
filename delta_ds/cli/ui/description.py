"""What a version of a table is, for its page: detail, columns, properties, features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from delta_ds.api.snapshot import Snapshot
from delta_ds.kernel.format.features import FEATURES
from delta_ds.kernel.format.properties import PROPERTIES
from delta_ds.kernel.format.schema.column_paths import Path
from delta_ds.kernel.format.schema.types import ArrayType, DataType, MapType, StructType
from delta_ds.kernel.log.history import datetime_of

if TYPE_CHECKING:
    from delta_ds.cli.ui.view import TableView

# A page of a thousand columns is long enough.
_MOST_FIELDS = 1000


def describe(view: TableView, at: str) -> dict[str, Any]:
    """A version, named by number or time, and the newest there is."""
    newest = view.newest()
    snapshot = view.resolve(at) if at.strip() or view.start is not None else newest
    detail: dict[str, Any] = {**Snapshot(snapshot).detail()}
    detail["createdAt"] = None if detail["createdAt"] is None else datetime_of(detail["createdAt"])
    detail["lastModified"] = datetime_of(detail["lastModified"])
    columns = list(_fields(snapshot.schema, ()))
    return {
        **detail,
        **view.figures(snapshot.version).totals(),
        "version": snapshot.version,
        "newest": newest.version,
        "zone": view.zone,
        "columns": columns[:_MOST_FIELDS],
        "numColumns": len(columns),
        "properties": [
            {
                "name": name,
                "value": value,
                "meaning": PROPERTIES[name].meaning if name in PROPERTIES else None,
            }
            for name, value in sorted(snapshot.properties.items())
        ],
        "features": [_feature(name, snapshot.properties) for name in detail["tableFeatures"]],
        "domains": sorted(snapshot.domains),
        "applications": len(snapshot.txns),
    }


def _fields(schema: StructType, inside: Path) -> Iterator[dict[str, Any]]:
    for field in schema.fields:
        yield {
            "name": field.name,
            "depth": len(inside),
            "type": _type_name(field.type),
            "nullable": field.nullable,
            "comment": field.metadata.get("comment"),
            "metadata": {key: value for key, value in field.metadata.items() if key != "comment"},
        }
        nested = _struct_in(field.type)
        if nested is not None:
            yield from _fields(nested, (*inside, field.name))


def _struct_in(data_type: DataType) -> StructType | None:
    """The struct that a type is, or has as its elements."""
    if isinstance(data_type, ArrayType):
        return _struct_in(data_type.element)
    if isinstance(data_type, MapType):
        return _struct_in(data_type.value)
    return data_type if isinstance(data_type, StructType) else None


def _type_name(data_type: DataType) -> str:
    if isinstance(data_type, StructType):
        return "struct"
    if isinstance(data_type, ArrayType):
        return f"array<{_type_name(data_type.element)}>"
    if isinstance(data_type, MapType):
        return f"map<{_type_name(data_type.key)},{_type_name(data_type.value)}>"
    return str(data_type)


def _feature(name: str, properties: dict[str, str]) -> dict[str, Any]:
    known = FEATURES.get(name)
    if known is None:
        return {"name": name, "kind": None, "property": None, "on": None}
    return {
        "name": name,
        "kind": known.kind,
        "property": None if known.enabled_by is None else known.enabled_by.name,
        "on": known.is_turned_on(properties),
    }
