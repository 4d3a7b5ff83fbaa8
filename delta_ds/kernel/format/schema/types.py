"""The types of a Delta schema: `schemaString` to a tree, and the tree to Arrow.

Source: PROTOCOL.md, "Schema Serialization Format" and "Delta Data Type to Parquet Type Mappings".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.protocol import GEOSPATIAL_COLUMN
from delta_ds.conditions.schema import UNKNOWN_DATA_TYPE, UNSUPPORTED_DATA_TYPES, USER_DEFINED_TYPE
from delta_ds.exceptions import SchemaError
from delta_ds.kernel.base.card import Card, CardTable, Shown, table_of
from delta_ds.kernel.base.json_text import parse_json, to_json
from delta_ds.kernel.format.schema.field_metadata import check_field_metadata
from delta_ds.records import dataclass, field

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """A type without parts, by its name in the schema JSON (`long`, `string`, `timestamp_ntz`, ...)."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DecimalType:
    """`decimal(precision, scale)`, precision at most 38."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class ArrayType:
    element: DataType
    contains_null: bool = True

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapType:
    key: DataType
    value: DataType
    value_contains_null: bool = True

    def __str__(self) -> str:
        return f"map<{self.key},{self.value}>"


@dataclass(frozen=True, slots=True)
class StructField:
    """One field; `metadata` is kept untouched, unknown keys included (protocol-checklist SCH-RW-04)."""

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class StructType(Shown):
    fields: tuple[StructField, ...] = ()

    def __iter__(self) -> Iterator[StructField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def names(self) -> list[str]:
        return [f.name for f in self.fields]

    def find(self, name: str) -> StructField | None:
        """The field of that name; names match exactly, else ignoring case (Spark's rule)."""
        for f in self.fields:
            if f.name == name:
                return f
        folded = name.lower()
        return next((f for f in self.fields if f.name.lower() == folded), None)

    def card_table(self) -> CardTable:
        """The fields as a table of a card."""
        return table_of(
            ("column", "type", "nullable", "comment"),
            self.fields,
            lambda f: (f.name, str(f.type), "yes" if f.nullable else "no", f.metadata.get("comment")),
        )

    def _card(self) -> Card:
        return Card(f"Schema, {len(self.fields):,} columns", (), (self.card_table(),))

    def __str__(self) -> str:
        return "struct<" + ",".join(f"{f.name}:{f.type}" for f in self.fields) + ">"


@dataclass(frozen=True, slots=True)
class UserDefinedType:
    """A user-defined type of Spark, as the vectors of `pyspark.ml`: a class over a type of Delta.

    The log and the files know the stored type. What is inside it is no column: it has no mapped names, no
    statistics and no path, and it changes only as a whole.

    Source: Spark, `UserDefinedType.jsonValue`; the protocol does not mention it, and delta-spark keeps it.

    Attributes
    ----------
    python_class
        The name of the class with its module.
    jvm_class
        The name of the class in Java; None for a type of Python alone.
    pickled
        What Spark keeps of a class of Python alone. It is passed on, and never loaded here.
    stored
        The type that its values are stored as.
    """

    python_class: str
    jvm_class: str | None
    pickled: str | None = field(compare=False, repr=False)
    stored: DataType

    def __str__(self) -> str:
        return self.python_class


DataType = PrimitiveType | DecimalType | ArrayType | MapType | StructType | UserDefinedType


def holds(data_type: DataType, part_type: DataType) -> bool:
    """Whether a type is the wanted one, or has it at any depth."""
    if isinstance(data_type, StructType):
        parts = [field.type for field in data_type]
    elif isinstance(data_type, MapType):
        parts = [data_type.key, data_type.value]
    elif isinstance(data_type, UserDefinedType):
        parts = [data_type.stored]
    else:
        parts = [data_type.element] if isinstance(data_type, ArrayType) else []
    return data_type == part_type or any(holds(part, part_type) for part in parts)


BOOLEAN = PrimitiveType("boolean")
BYTE = PrimitiveType("byte")
SHORT = PrimitiveType("short")
INTEGER = PrimitiveType("integer")
LONG = PrimitiveType("long")
FLOAT = PrimitiveType("float")
DOUBLE = PrimitiveType("double")
STRING = PrimitiveType("string")
BINARY = PrimitiveType("binary")
DATE = PrimitiveType("date")
TIMESTAMP = PrimitiveType("timestamp")
TIMESTAMP_NTZ = PrimitiveType("timestamp_ntz")
VARIANT = PrimitiveType("variant")
VOID = PrimitiveType("void")

PRIMITIVES: dict[str, PrimitiveType] = {
    t.name: t
    for t in (
        BOOLEAN, BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ,
        VARIANT, VOID,
    )
}  # fmt: skip

_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
# Deeper than any table, and shallow enough for all that walks a schema.
_DEEPEST = 100
_CHAR_VARCHAR = re.compile(r"(char|varchar)\(\s*\d+\s*\)")


def parse_schema(text: str) -> StructType:
    """The tree of a `schemaString`.

    Raises
    ------
    SchemaError
        The text is not the JSON of a struct.
    UnsupportedFeatureError
        It holds a type that is not known, which is named with its column.
    """
    try:
        node = parse_json(text)
    except ValueError as error:
        raise SchemaError(f"the table's schemaString is not JSON: {error}") from error
    parsed = _parse(node, "")
    if not isinstance(parsed, StructType):
        raise SchemaError(f"the table's schemaString is a {parsed}, not a struct")
    return parsed


def _parse(node: Any, path: str, depth: int = 0) -> DataType:
    if depth > _DEEPEST:
        raise SchemaError(f"the table's schema is nested more than {_DEEPEST} levels deep")
    try:
        if isinstance(node, str):
            return _parse_primitive(node, path)
        kind = node["type"]
        if kind == "struct":
            return StructType(tuple(_parse_field(f, path, depth) for f in node["fields"]))
        if kind == "array":
            element = _parse(node["elementType"], path + ".element", depth + 1)
            return ArrayType(element, bool(node["containsNull"]))
        if kind == "map":
            return MapType(
                _parse(node["keyType"], path + ".key", depth + 1),
                _parse(node["valueType"], path + ".value", depth + 1),
                bool(node["valueContainsNull"]),
            )
        if kind == "udt":
            return _parse_user_defined(node, path, depth)
    except (KeyError, TypeError, AttributeError) as error:
        raise SchemaError(
            f"the schema is malformed at {path.lstrip('.') or 'its root'}: {error!r}"
        ) from error
    raise UNKNOWN_DATA_TYPE(column=path.lstrip("."), type=kind)


def _parse_user_defined(node: Any, path: str, depth: int) -> UserDefinedType:
    in_python, in_java, pickled = (node.get(key) for key in ("pyClass", "class", "serializedClass"))
    for name in (in_python, in_java, pickled):
        if name is not None and not isinstance(name, str):
            raise TypeError(f"the class {name!r} is not a string")
    if not in_python:
        raise USER_DEFINED_TYPE(column=path.lstrip("."), type=node["class"])
    return UserDefinedType(in_python, in_java, pickled, _parse(node["sqlType"], path, depth + 1))


def _parse_field(node: Any, path: str, depth: int) -> StructField:
    name = node["name"]
    if not isinstance(name, str):
        raise TypeError(f"field name {name!r} is not a string")
    nullable = node.get("nullable", True)
    kind = _parse(node["type"], f"{path}.{name}", depth + 1)
    metadata = node.get("metadata") or {}
    if metadata:
        check_field_metadata(name, metadata)
    return StructField(name, kind, bool(nullable), metadata)


def _parse_primitive(name: str, path: str) -> DataType:
    primitive = PRIMITIVES.get(name)
    if primitive is not None:
        return primitive
    if name == "decimal":
        return DecimalType(10, 0)
    match = _DECIMAL.fullmatch(name)
    if match and 0 < int(match[1]) <= 38 and 0 <= int(match[2]) <= int(match[1]):
        return DecimalType(int(match[1]), int(match[2]))
    if name.startswith("string collate ") or _CHAR_VARCHAR.fullmatch(name):
        return STRING
    if name in ("null", "NullType"):
        return VOID
    if name.startswith(("geometry", "geography")):
        raise GEOSPATIAL_COLUMN(column=path.lstrip("."), type=name)
    raise UNSUPPORTED_DATA_TYPES(column=path.lstrip("."), type=name)


def schema_to_json(schema: StructType) -> str:
    """The `schemaString` of a tree; `parse_schema` is its inverse.

    Raises
    ------
    SchemaError
        A name or the metadata of a field is no JSON.
    """
    try:
        return to_json(_to_node(schema))
    except ValueError as error:
        raise SchemaError(f"the schema cannot be written to a log: {error}") from error


def _to_node(data_type: DataType) -> Any:
    if isinstance(data_type, StructType):
        fields = [
            {"name": f.name, "type": _to_node(f.type), "nullable": f.nullable, "metadata": dict(f.metadata)}
            for f in data_type
        ]
        return {"type": "struct", "fields": fields}
    if isinstance(data_type, ArrayType):
        return {
            "type": "array",
            "elementType": _to_node(data_type.element),
            "containsNull": data_type.contains_null,
        }
    if isinstance(data_type, MapType):
        return {
            "type": "map",
            "keyType": _to_node(data_type.key),
            "valueType": _to_node(data_type.value),
            "valueContainsNull": data_type.value_contains_null,
        }
    if isinstance(data_type, UserDefinedType):
        named = {
            "class": data_type.jvm_class,
            "pyClass": data_type.python_class,
            "serializedClass": data_type.pickled,
        }
        given = {key: value for key, value in named.items() if value is not None}
        return {"type": "udt", **given, "sqlType": _to_node(data_type.stored)}
    return str(data_type)


_SQL_NAMES = {"byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT"}


def sql_name(data_type: DataType) -> str:
    """The type as Spark's messages write it.

    >>> sql_name(StructType((StructField("a", ArrayType(LONG, True)),)))
    'STRUCT<a: ARRAY<BIGINT>>'
    """
    if isinstance(data_type, StructType):
        return f"STRUCT<{', '.join(f'{field.name}: {sql_name(field.type)}' for field in data_type)}>"
    if isinstance(data_type, ArrayType):
        return f"ARRAY<{sql_name(data_type.element)}>"
    if isinstance(data_type, MapType):
        return f"MAP<{sql_name(data_type.key)}, {sql_name(data_type.value)}>"
    text = str(data_type)
    return _SQL_NAMES.get(text) or text.upper()


def arrow_type(data_type: DataType) -> pa.DataType:
    """The Arrow type that carries a Delta type, equal to what Spark's Arrow exchange uses.

    Timestamps are `timestamp[us, UTC]`, `timestamp_ntz` is `timestamp[us]`, variants are
    `struct<value: binary not null, metadata: binary not null>` marked as Spark marks them.
    """
    import pyarrow as pa

    if isinstance(data_type, StructType):
        return pa.struct([arrow_field(f) for f in data_type])
    if isinstance(data_type, ArrayType):
        return pa.list_(pa.field("element", arrow_type(data_type.element), data_type.contains_null))
    if isinstance(data_type, MapType):
        return pa.map_(
            arrow_type(data_type.key),
            pa.field("value", arrow_type(data_type.value), data_type.value_contains_null),
        )
    if isinstance(data_type, UserDefinedType):
        return arrow_type(data_type.stored)
    if isinstance(data_type, DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    return _arrow_primitives()[data_type.name]


def arrow_field(field_: StructField) -> pa.Field:
    """The Arrow field of a schema field: name, type and nullability; metadata stays in the Delta schema."""
    import pyarrow as pa

    return pa.field(field_.name, arrow_type(field_.type), field_.nullable)


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of a Delta schema, in the order of its fields."""
    import pyarrow as pa

    return pa.schema([arrow_field(f) for f in schema])


_PRIMITIVES_IN_ARROW: dict[str, Any] = {}


def _arrow_primitives() -> dict[str, Any]:
    if not _PRIMITIVES_IN_ARROW:
        import pyarrow as pa

        _PRIMITIVES_IN_ARROW.update(
            boolean=pa.bool_(), byte=pa.int8(), short=pa.int16(), integer=pa.int32(), long=pa.int64(),
            float=pa.float32(), double=pa.float64(), string=pa.string(), binary=pa.binary(),
            date=pa.date32(), timestamp=pa.timestamp("us", "UTC"), timestamp_ntz=pa.timestamp("us"),
            void=pa.null(),
            variant=pa.struct(
                [
                    pa.field("value", pa.binary(), False),
                    pa.field("metadata", pa.binary(), False, {"variant": "true"}),
                ]
            ),
        )  # fmt: skip
    return _PRIMITIVES_IN_ARROW


def walk(data_type: DataType, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], StructField]]:
    """Every field at every level with its path, parents before children, in the order of the schema."""
    if isinstance(data_type, StructType):
        for field in data_type:
            yield (*path, field.name), field
            yield from walk(field.type, (*path, field.name))
    elif isinstance(data_type, ArrayType):
        yield from walk(data_type.element, (*path, "element"))
    elif isinstance(data_type, MapType):
        yield from walk(data_type.key, (*path, "key"))
        yield from walk(data_type.value, (*path, "value"))


def without_metadata(kind: DataType) -> DataType:
    """The type without metadata, all nullable."""
    if isinstance(kind, StructType):
        return StructType(tuple(StructField(f.name, without_metadata(f.type)) for f in kind))
    if isinstance(kind, ArrayType):
        return ArrayType(without_metadata(kind.element))
    if isinstance(kind, MapType):
        return MapType(without_metadata(kind.key), without_metadata(kind.value))
    return kind


def is_nested(data_type: DataType | None) -> bool:
    """Whether it is a struct, array, map or user-defined type."""
    return isinstance(data_type, (StructType, ArrayType, MapType, UserDefinedType))


def is_key_type(data_type: DataType) -> bool:
    """Whether values of a type can be keys: all but structs, arrays, maps, variants and user-defined types."""
    return not is_nested(data_type) and str(data_type) not in ("variant", "void")
