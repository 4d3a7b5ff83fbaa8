"""Columns as the API spells them: the table's schema, but for the names of what arrays and maps have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_SPELLED = {
    "elementType": "element-type",
    "containsNull": "contains-null",
    "keyType": "key-type",
    "valueType": "value-type",
    "valueContainsNull": "value-contains-null",
}


def columns_of(schema: str) -> dict[str, Any]:
    """The columns of a `schemaString`."""
    return _spelled(json.loads(schema))  # type: ignore[no-any-return]


def _spelled(node: Any) -> Any:
    if not isinstance(node, Mapping):
        return node
    if "fields" in node:
        return {"type": "struct", "fields": [_field(field) for field in node["fields"]]}
    return {
        _SPELLED.get(name, name): _spelled(value) if name.endswith("Type") else value
        for name, value in node.items()
    }


def _field(field: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": field["name"],
        "type": _spelled(field["type"]),
        "nullable": field.get("nullable", True),
        "metadata": field.get("metadata") or {},
    }
