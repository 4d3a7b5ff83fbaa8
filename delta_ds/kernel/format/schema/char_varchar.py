"""`char(n)` and `varchar(n)`: strings in the schema, with the declared type in the field's metadata.

Source: Spark, `CharVarcharUtils`; protocol-checklist SCH-RW-02.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    UserDefinedType,
    is_nested,
    parse_schema,
    walk,
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
    if isinstance(data_type, UserDefinedType):
        return catalog_name(data_type.stored)
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


# --- the declared type of a column spells its fields, and follows them

# Names with these cannot be told apart in the text of a declared type, which quotes nothing.
_SYNTAX = frozenset("<>(),:`")


def with_settled_declarations(schema: StructType, before: StructType | None) -> StructType:
    """The schema whose declared types name the fields of their columns, all of them, in their order.

    The declared type of a struct is read by position. After a field was added, dropped, moved or renamed, the text
    that was right before it would give its lengths to other fields, or to none.

    Parameters
    ----------
    schema
        With the declared types of before the change.
    before
        What held until now: a field that has lost a length of its own has none, whatever is said above it.
    """
    return StructType(tuple(_settled(f, None if before is None else before.find(f.name)) for f in schema))


def declared_lengths(field: StructField) -> dict[tuple[str, ...], tuple[str, int] | None]:
    """Of each string of a column, by its path in small letters: `char` or `varchar` and its length; None: no length."""
    return dict(_lengths(field.type, declared_type(field), (field.name.lower(),)))


def _lengths(
    kind: DataType, text: str | None, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, int] | None]]:
    if isinstance(kind, StructType):
        for field, own, _ in _said_of_fields(kind, text, StructType()):
            yield from _lengths(field.type, own, (*path, field.name.lower()))
    elif isinstance(kind, ArrayType):
        yield from _lengths(kind.element, of_element(text), (*path, "element"))
    elif isinstance(kind, MapType):
        for name, inside, said in zip(("key", "value"), (kind.key, kind.value), of_map(text), strict=True):
            yield from _lengths(inside, said, (*path, name))
    elif kind == STRING:
        yield path, length_limit(text)


def with_lengths(
    field: StructField, lengths: Mapping[tuple[str, ...], tuple[str, int] | None]
) -> StructField:
    """The column declared with these lengths of its strings, as `declared_lengths` gives them."""

    def spelled(kind: DataType, path: tuple[str, ...]) -> str:
        if isinstance(kind, StructType):
            return (
                "struct<"
                + ",".join(f"{f.name}:{spelled(f.type, (*path, f.name.lower()))}" for f in kind)
                + ">"
            )
        if isinstance(kind, ArrayType):
            return f"array<{spelled(kind.element, (*path, 'element'))}>"
        if isinstance(kind, MapType):
            return f"map<{spelled(kind.key, (*path, 'key'))},{spelled(kind.value, (*path, 'value'))}>"
        limit = lengths.get(path) if kind == STRING else None
        return catalog_name(kind) if limit is None else f"{limit[0]}({limit[1]})"

    text = spelled(field.type, (field.name.lower(),))
    return with_declared_type(field, text if "char(" in text else None)


def spells_its_fields(field: StructField) -> bool:
    """Whether the declared type of a column can name the fields in it: none has a name with syntax of types."""
    return all(_SYNTAX.isdisjoint(f.name) for _, f in list(walk(StructType((field,))))[1:])


def _settled(field: StructField, before: StructField | None) -> StructField:
    inside = list(walk(StructType((field,))))
    if not is_nested(field.type) or not any(declared_type(f) for _, f in inside):
        return field
    if not spells_its_fields(field):
        return field
    settled, spelled = _declared_anew(field, declared_type(field), before)
    return with_declared_type(settled, spelled if "char(" in spelled else None)


def _declared_anew(
    field: StructField, text: str | None, before: StructField | None
) -> tuple[StructField, str]:
    """A field declared anew, where it was, with all fields inside; and how it is declared."""
    kind, spelled = _spelled(field.type, text, None if before is None else before.type)
    own = spelled if declared_type(field) is not None and "char(" in spelled else None
    return with_declared_type(replace(field, type=kind), own), spelled


def _spelled(kind: DataType, text: str | None, before: DataType | None) -> tuple[DataType, str]:
    """A type whose fields inside are declared anew, and how it is declared itself."""
    if isinstance(kind, StructType):
        said = _said_of_fields(kind, text, before if isinstance(before, StructType) else StructType())
        anew = [_declared_anew(*each) for each in said]
        spelled = ",".join(f"{field.name}:{part}" for field, part in anew)
        return StructType(tuple(field for field, _ in anew)), f"struct<{spelled}>"
    if isinstance(kind, ArrayType):
        old = before.element if isinstance(before, ArrayType) else None
        element, spelled = _spelled(kind.element, of_element(text), old)
        return replace(kind, element=element), f"array<{spelled}>"
    if isinstance(kind, MapType):
        olds = (before.key, before.value) if isinstance(before, MapType) else (None, None)
        texts = of_map(text)
        key, first = _spelled(kind.key, texts[0], olds[0])
        value, second = _spelled(kind.value, texts[1], olds[1])
        return replace(kind, key=key, value=value), f"map<{first},{second}>"
    return kind, text if kind == STRING and text and length_limit(text) else catalog_name(kind)


def _said_of_fields(
    struct: StructType, text: str | None, before: StructType
) -> list[tuple[StructField, str | None, StructField | None]]:
    """Each field, how it was declared, and the field of that name until now."""
    above = _declared_fields(text)
    news = [f for f in struct if f.name.lower() not in above]
    gone = above.keys() - {f.name.lower() for f in struct}
    if len(news) == len(gone) == 1:
        # Renamed.
        above[news[0].name.lower()] = above[next(iter(gone))]
    said: list[tuple[StructField, str | None, StructField | None]] = []
    for field in struct:
        old, own = before.find(field.name), declared_type(field)
        lost = own is None and old is not None and declared_type(old) is not None
        said.append((field, own if own or lost else above.get(field.name.lower()), old))
    return said


def _declared_fields(text: str | None) -> dict[str, str]:
    """The declared types in a declared struct type, by the names of its fields in small letters."""
    parts = [part.partition(":") for part in _parts(text, "struct")] if text else []
    return {name.strip().lower(): kind for name, _, kind in parts if kind}


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
        from delta_ds.events.commands import CHAR_PADDING_SKIPPED

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
