"""Column paths: parse them as Spark SQL writes them, find and replace the fields they name.

A path is a tuple of names. Below an array comes the step `element`, below a map `key` or `value`, so that
`l.element.x` names the field `x` of the structs in the array `l`.

Source: Spark, `StructType.findNestedField` and the multipart identifiers of its parser.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

from delta_ds.conditions.schema import (
    INVALID_FIELD_NAME,
    NOT_A_COLUMN_NAME,
    UNRESOLVED_COLUMN_WITH_SUGGESTION,
    UNRESOLVED_COLUMN_WITHOUT_SUGGESTION,
)
from delta_ds.exceptions import SchemaError
from delta_ds.kernel.format.schema.types import ArrayType, DataType, MapType, StructField, StructType
from delta_ds.records import replace

Path = tuple[str, ...]
# Names that begin so are those of the columns that scans and commands add for themselves.
HIDDEN = "__pydelta_"


def parse_path(text: str) -> Path:
    """The names of a column written as in Spark SQL: parts between dots, backticks around odd names.

    Raises
    ------
    SchemaError
        An empty part, an unclosed backtick, or text after one.

    >>> parse_path("s.`a.b`.c")
    ('s', 'a.b', 'c')
    """
    parts: list[str] = []
    at = 0
    while True:
        part, at = _quoted(text, at) if text[at : at + 1] == "`" else _plain(text, at)
        parts.append(part)
        if at == len(text):
            return tuple(parts)
        if text[at] != ".":
            raise _not_a_name(text)
        at += 1


def _plain(text: str, at: int) -> tuple[str, int]:
    end = text.find(".", at)
    part = text[at:end].strip() if end >= 0 else text[at:].strip()
    if not part or "`" in part:
        raise _not_a_name(text)
    return part, end if end >= 0 else len(text)


def _quoted(text: str, at: int) -> tuple[str, int]:
    end = text.find("`", at + 1)
    while end >= 0 and text[end + 1 : end + 2] == "`":
        end = text.find("`", end + 2)
    if end < 0:
        raise _not_a_name(text)
    return text[at + 1 : end].replace("``", "`"), end + 1


def _not_a_name(text: str) -> SchemaError:
    return NOT_A_COLUMN_NAME(name=text)


def parse_path_list(text: str) -> list[Path]:
    """The paths of a comma-separated list, as `delta.dataSkippingStatsColumns` holds them.

    >>> parse_path_list("id, s.a,`x,y`")
    [('id',), ('s', 'a'), ('x,y',)]
    """
    pieces, quoted = [""], False
    for character in text:
        quoted ^= character == "`"
        if character == "," and not quoted:
            pieces.append("")
        else:
            pieces[-1] += character
    return [parse_path(piece.strip()) for piece in pieces if piece.strip()]


def show(path: Path) -> str:
    """A path for messages and history: backticks only around names that hold a dot, as delta-spark does."""
    return ".".join(f"`{name}`" if "." in name else name for name in path)


def quote(path: Path) -> str:
    """A path as SQL text: backticks around everything that is not a plain name; `parse_path` reads it."""
    return ".".join(map(_quote_name, path))


def _quote_name(name: str) -> str:
    plain = name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()
    return name if plain else "`" + name.replace("`", "``") + "`"


def child(data_type: DataType, name: str) -> StructField | None:
    """One step down; the element, key or value of a collection comes as a field of that name."""
    if isinstance(data_type, StructType):
        return data_type.find(name)
    if isinstance(data_type, ArrayType) and name == "element":
        return StructField("element", data_type.element, data_type.contains_null)
    if isinstance(data_type, MapType) and name == "key":
        return StructField("key", data_type.key, False)
    if isinstance(data_type, MapType) and name == "value":
        return StructField("value", data_type.value, data_type.value_contains_null)
    return None


def find(schema: StructType, path: Path) -> tuple[Path, StructField] | None:
    """The field at a path, names ignoring case, and the path in the schema's own case; None without one."""
    exact: list[str] = []
    field = StructField("", schema)
    for name in path:
        below = child(field.type, name)
        if below is None:
            return None
        exact.append(below.name)
        field = below
    return tuple(exact), field


def resolve(schema: StructType, path: Path, table: str) -> tuple[Path, StructField]:
    """As `find`, for columns that have to be there.

    Raises
    ------
    SchemaError
        `UNRESOLVED_COLUMN.WITH_SUGGESTION` with the nearest name, or `INVALID_FIELD_NAME` where the path goes
        into something that is not a struct.
    """
    resolved = find(schema, path)
    if resolved is not None:
        return resolved
    for length in range(1, len(path)):
        above = find(schema, path[:length])
        if (
            above is not None
            and not isinstance(above[1].type, StructType)
            and not find(schema, path[: length + 1])
        ):
            raise not_a_struct(path, above[0], above[1].type, table)
    raise unresolved_column(schema, path, table)


def nearest_name(name: str, names: Sequence[str]) -> str | None:
    """The name that is most like another one, in any case; None where none is like it."""
    near = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.5)
    return next((n for n in names if near and n.lower() == near[0]), None)


def unresolved_column(schema: StructType, path: Path, table: str) -> SchemaError:
    """The error for a column that does not exist, with the nearest names of the level where it is missing."""
    level: StructType = schema
    above: Path = ()
    for length in range(1, len(path)):
        parent = find(schema, path[:length])
        if parent is None or not isinstance(parent[1].type, StructType):
            break
        level, above = parent[1].type, parent[0]
    name = ".".join(f"`{part}`" for part in path)
    if not len(level):
        return UNRESOLVED_COLUMN_WITHOUT_SUGGESTION(table=table, column=show(path), objectName=name)
    nearest = nearest_name(path[len(above)], level.names)
    hint = (
        f"did you mean {show((*above, nearest))!r}?"
        if nearest is not None
        else f"there are: {', '.join(level.names[:20])}"
    )
    return UNRESOLVED_COLUMN_WITH_SUGGESTION(
        table=table,
        column=show(path),
        hint=hint,
        objectName=name,
        proposal=[f"`{n}`" for n in ([nearest] if nearest else level.names[:20])],
    )


def not_a_struct(path: Path, parent: Path, parent_type: DataType, table: str) -> SchemaError:
    """The error for a path that enters a column without fields of that name."""
    inside = ""
    if isinstance(parent_type, ArrayType):
        inside = f"; its elements are {show((*parent, 'element'))}"
    elif isinstance(parent_type, MapType):
        inside = f"; its keys and values are {show((*parent, 'key'))} and {show((*parent, 'value'))}"
    return INVALID_FIELD_NAME(
        column=show(path), table=table, parent=show(parent), found=parent_type, inside=inside
    )


def replace_type(data_type: DataType, path: Path, change: Callable[[DataType], DataType]) -> DataType:
    """The tree with the type at a path (in the schema's own case) replaced; an empty path is the root."""
    if not path:
        return change(data_type)
    name, rest = path[0], path[1:]
    if isinstance(data_type, ArrayType):
        return replace(data_type, element=replace_type(data_type.element, rest, change))
    if isinstance(data_type, MapType):
        if name == "key":
            return replace(data_type, key=replace_type(data_type.key, rest, change))
        return replace(data_type, value=replace_type(data_type.value, rest, change))
    assert isinstance(data_type, StructType)
    return StructType(
        tuple(replace(f, type=replace_type(f.type, rest, change)) if f.name == name else f for f in data_type)
    )


def replace_fields(
    schema: StructType, parent: Path, change: Callable[[tuple[StructField, ...]], tuple[StructField, ...]]
) -> StructType:
    """The schema with the fields of the struct at `parent` replaced; an empty parent is the table itself."""

    def changed(data_type: DataType) -> DataType:
        assert isinstance(data_type, StructType)
        return StructType(change(data_type.fields))

    result = replace_type(schema, parent, changed)
    assert isinstance(result, StructType)
    return result
