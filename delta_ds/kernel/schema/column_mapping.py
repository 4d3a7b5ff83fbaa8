"""Column mapping: from the names users see to the names and ids in the files.

Source: PROTOCOL.md, "Column Mapping".
"""

from __future__ import annotations

from collections.abc import Mapping

from delta_ds.exceptions import SchemaError, UnsupportedFeatureError
from delta_ds.kernel.schema.types import StructField, StructType

MODE_PROPERTY = "delta.columnMapping.mode"
PHYSICAL_NAME = "delta.columnMapping.physicalName"
FIELD_ID = "delta.columnMapping.id"


def mapping_mode(properties: Mapping[str, str], supported: bool) -> str:
    """`none`, `name` or `id`: how the columns of this table are found in its files.

    The property counts only where the protocol supports the feature (protocol-checklist CM-RW-01).
    """
    mode = properties.get(MODE_PROPERTY, "none").lower()
    if mode not in ("none", "name", "id"):
        raise UnsupportedFeatureError(
            f"the table's {MODE_PROPERTY} is {mode!r}; known are none, name and id",
            condition="DELTA_UNKNOWN_COLUMN_MAPPING_MODE",
        )
    return mode if supported else "none"


def physical_name(field: StructField, mode: str) -> str:
    """The name of a field in files, statistics and partition values."""
    if mode == "none":
        return field.name
    name = field.metadata.get(PHYSICAL_NAME)
    if not isinstance(name, str):
        raise SchemaError(
            f"column {field.name!r} of a table with column mapping {mode!r} has no {PHYSICAL_NAME}",
            condition="DELTA_MISSING_PHYSICAL_NAME",
        )
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
