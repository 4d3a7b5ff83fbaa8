"""`char(n)` and `varchar(n)`: strings in the schema, with the declared type in the field's metadata.

Source: Spark, `CharVarcharUtils`; protocol-checklist SCH-RW-02.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.format.schema.field_metadata import CHAR_VARCHAR_TYPE, COLLATIONS
from delta_ds.kernel.format.schema.types import (
    STRING,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    parse_schema,
)
from delta_ds.records import replace

if TYPE_CHECKING:
    import pyarrow as pa

_CHAR_VARCHAR = re.compile(r"(char|varchar)\(\s*(\d+)\s*\)")
_CHAR = re.compile(r"char\(\s*(\d+)\s*\)")
_HOLDS_CHAR = re.compile(r"\bchar(acter)?\(", re.IGNORECASE)
# How Spark's `catalogString` names types that the schema JSON names otherwise.
_CATALOG_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def declared_type(field: StructField) -> str | None:
    """The declared type of a column that is or holds a char or varchar, in Spark's words; else None."""
    text = field.metadata.get(CHAR_VARCHAR_TYPE)
    return text if isinstance(text, str) else None


def compares_by_bytes(field: StructField) -> bool:
    """Whether strings of a field compare by the bytes that were written.

    Not so for `char(n)`, which is read padded with blanks that files, statistics and partition values need not have,
    nor under a collation, which has an order of its own.
    """
    return COLLATIONS not in field.metadata and not _HOLDS_CHAR.search(declared_type(field) or "")


def char_length(field: StructField) -> int | None:
    """n of a `char(n)` column; None for every other, and for one with a collation, which Spark does not pad."""
    limit = length_limit(declared_type(field))
    if limit is None or limit[0] != "char" or field.type != STRING or COLLATIONS in field.metadata:
        return None
    return limit[1]


def with_declared_type(field: StructField, text: str | None) -> StructField:
    """The field with that declared type; None for a plain string."""
    metadata = {k: v for k, v in field.metadata.items() if k != CHAR_VARCHAR_TYPE}
    return replace(field, metadata=metadata if text is None else {**metadata, CHAR_VARCHAR_TYPE: text})


def length_limit(text: str | None) -> tuple[str, int] | None:
    """`char` or `varchar` and its length, of a declared type that is nothing else; None otherwise."""
    match = _CHAR_VARCHAR.fullmatch(text.strip().lower()) if text else None
    return (match[1], int(match[2])) if match else None


def schema_of(node: Mapping[str, Any]) -> StructType:
    """The schema of a struct in Spark's JSON form, where char and varchar are types of their own.

    Raises
    ------
    SchemaError, UnsupportedFeatureError
        See `parse_schema`.
    """
    import json

    return parse_schema(json.dumps(_with_declared_types(dict(node))))


def _with_declared_types(node: Any) -> Any:
    """The JSON of a type with the declared type in the metadata of every field that holds a char or varchar."""
    if not isinstance(node, Mapping):
        return node
    out = {
        k: _with_declared_types(v) if k in ("elementType", "keyType", "valueType") else v
        for k, v in node.items()
    }
    if "fields" in node:
        out["fields"] = [_field_with_declared_type(f) for f in node["fields"]]
    return out


def _field_with_declared_type(node: Mapping[str, Any]) -> dict[str, Any]:
    out = {**node, "type": _with_declared_types(node["type"])}
    if _has_length(node["type"]):
        out["metadata"] = {**(node.get("metadata") or {}), CHAR_VARCHAR_TYPE: _catalog(node["type"])}
    return out


def _has_length(node: Any) -> bool:
    if isinstance(node, str):
        return _CHAR_VARCHAR.fullmatch(node) is not None
    inside = [node[k] for k in ("elementType", "keyType", "valueType") if k in node]
    return any(map(_has_length, [*inside, *(f["type"] for f in node.get("fields", ()))]))


def _catalog(node: Any) -> str:
    if isinstance(node, str):
        return _CATALOG_NAMES.get(node, node)
    if node["type"] == "array":
        return f"array<{_catalog(node['elementType'])}>"
    if node["type"] == "map":
        return f"map<{_catalog(node['keyType'])},{_catalog(node['valueType'])}>"
    return "struct<" + ",".join(f"{f['name']}:{_catalog(f['type'])}" for f in node["fields"]) + ">"


def catalog_name(data_type: DataType) -> str:
    """A type as Spark SQL writes it: `bigint`, `array<int>`, `struct<a:tinyint>`.

    >>> from delta_ds.kernel.format.schema.types import LONG
    >>> catalog_name(ArrayType(LONG))
    'array<bigint>'
    """
    if isinstance(data_type, PrimitiveType):
        return _CATALOG_NAMES.get(data_type.name, data_type.name)
    if isinstance(data_type, ArrayType):
        return f"array<{catalog_name(data_type.element)}>"
    if isinstance(data_type, MapType):
        return f"map<{catalog_name(data_type.key)},{catalog_name(data_type.value)}>"
    if isinstance(data_type, StructType):
        return "struct<" + ",".join(f"{f.name}:{catalog_name(f.type)}" for f in data_type) + ">"
    return str(data_type)


def path_compares_by_bytes(path: Sequence[str], schema: StructType) -> bool:
    """Whether values in files compare as Spark compares the column of a path, see `compares_by_bytes`."""
    level: object = schema
    for name in path:
        field: StructField | None = level.find(name) if isinstance(level, StructType) else None
        if field is None:
            return True
        if not compares_by_bytes(field):
            return False
        level = field.type
    return True


# --- strings of `char(n)` are padded with blanks to n characters when they are read, as Spark does
# The declared type is of the whole column where the `char` is nested.
# Source: Spark, `CharVarcharUtils` and `ApplyCharTypePadding`.


def declared_char_type(field: StructField) -> str | None:
    """The declared type of a column that holds a `char` somewhere, else None."""
    text = field.metadata.get(CHAR_VARCHAR_TYPE)
    return text if isinstance(text, str) and re.search(r"\bchar\(", text) else None


def char_width(text: str | None) -> int | None:
    """n of `char(n)`; None for any other declared type."""
    match = _CHAR.fullmatch(text.strip()) if text else None
    return int(match[1]) if match else None


def pad(characters: int) -> Callable[[pa.Array], pa.Array]:
    """The conversion of a string array that pads with blanks; longer texts stay."""
    import pyarrow.compute as pc

    return lambda array: pc.utf8_rpad(array, characters, " ")


def of_element(text: str | None) -> str | None:
    """The declared element type of a declared array type."""
    return _parts(text, "array")[0] if text else None


def of_map(text: str | None) -> tuple[str | None, str | None]:
    """The declared key and value types of a declared map type."""
    parts = _parts(text, "map") if text else []
    return (parts[0], parts[1]) if len(parts) == 2 else (None, None)


def of_struct(text: str | None, struct: StructType) -> list[str | None]:
    """The declared types of a declared struct type's fields, by position."""
    if not text:
        return [None] * len(struct)
    parts = _parts(text, "struct")
    if len(parts) != len(struct):
        from delta_ds.events.reading import CHAR_PADDING_SKIPPED

        CHAR_PADDING_SKIPPED.log(declared=text, schema=struct)
        return [None] * len(struct)
    return [part.partition(":")[2] if part else None for part in parts]


def _parts(text: str, kind: str) -> list[str]:
    """The comma-separated arguments between the outermost angle brackets."""
    text = text.strip()
    if not (text.startswith(f"{kind}<") and text.endswith(">")):
        return [""]
    parts, depth = [""], 0
    for character in text[len(kind) + 1 : -1]:
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
