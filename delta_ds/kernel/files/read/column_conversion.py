"""Convert the columns of a file to those of the table: find, rename, widen, fill in by the exists default.

Everything is decided once per file (`select_leaves`, `compile_columns`); per batch only Arrow kernels run,
and an array that already has the wanted type passes through untouched.
Source: PROTOCOL.md, "Reader Requirements for Column Mapping" (protocol-checklist section 18).

Source: Spark, `ResolveDefaultColumns` (the metadata key and its SQL text); PROTOCOL.md, "Default Columns".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from delta_ds.conditions.data import INVALID_DEFAULT_VALUE
from delta_ds.exceptions import DataFileError, DeltaError, SchemaError
from delta_ds.kernel.base.arrow_buffers import flags
from delta_ds.kernel.base.arrow_buffers import mask as as_mask
from delta_ds.kernel.base.nested_arrays import over, plain_lists, plain_maps
from delta_ds.kernel.files.read import primitive_conversion, variant_shredding
from delta_ds.kernel.format.expressions.arrays import array_of
from delta_ds.kernel.format.expressions.zones import Rebase
from delta_ds.kernel.format.schema import char_varchar
from delta_ds.kernel.format.schema.column_mapping import physical_name
from delta_ds.kernel.format.schema.field_metadata import EXISTS_DEFAULT, FIELD_ID
from delta_ds.kernel.format.schema.from_arrow import is_list
from delta_ds.kernel.format.schema.types import (
    BINARY,
    STRING,
    VARIANT,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    UserDefinedType,
    arrow_type,
)
from delta_ds.kernel.format.values import partition_values
from delta_ds.records import dataclass, replace

_QUOTED = re.compile(r"(?:(date|timestamp|timestamp_ntz|timestamp_ltz)\s*)?'((?:[^'\\]|'')*)'", re.IGNORECASE)
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?:l|s|y|d|f|bd)?", re.IGNORECASE)
_HEX = re.compile(r"x'((?:[0-9a-f]{2})*)'", re.IGNORECASE)
_CAST = re.compile(r"cast\s*\((.*)\s+as\s+([a-z_]+(?:\s*\([\d\s,]*\))?)\s*\)", re.IGNORECASE | re.DOTALL)


def default_value(field: StructField, timezone: str = "UTC") -> pa.Array:
    """The value of a column that a file does not have, as an array of length one.

    Raises
    ------
    SchemaError
        The field's `EXISTS_DEFAULT` is not a constant that can be read.
    """
    text = field.metadata.get(EXISTS_DEFAULT)
    return _value(text, field, timezone) if isinstance(text, str) else pa.nulls(1, arrow_type(field.type))


def repeat(one: pa.Array, rows: int) -> pa.Array:
    """The only value of `one`, `rows` times."""
    return pa.repeat(one[0], rows) if one.null_count == 0 else pa.nulls(rows, one.type)


def _value(text: str, field: StructField, timezone: str) -> pa.Array:
    wanted = arrow_type(field.type)
    literal = text.strip()
    while cast := _CAST.fullmatch(literal):
        literal = cast[1].strip()
    if literal.lower() == "null":
        return pa.nulls(1, wanted)
    if match := _HEX.fullmatch(literal):
        return array_of([bytes.fromhex(match[1])], BINARY).cast(wanted)
    if match := _QUOTED.fullmatch(literal):
        return _parse(match[2].replace("''", "'"), text, field, timezone)
    if match := _NUMBER.fullmatch(literal):
        return _parse(match[1], text, field, timezone)
    if literal.lower() in ("true", "false"):
        return _parse(literal.lower(), text, field, timezone)
    return _evaluate(text, field)


def _parse(value: str, text: str, field: StructField, timezone: str) -> pa.Array:
    parsed = partition_values.parse(array_of([value], STRING), field.type, timezone)
    if parsed.null_count and (value or field.type == STRING):
        raise _unreadable(text, field)
    return parsed


def _evaluate(text: str, field: StructField) -> pa.Array:
    """The value of any other constant expression."""
    from delta_ds.kernel.format.expressions import bind, evaluate, sql
    from delta_ds.kernel.format.schema.types import StructType

    try:
        bound = bind.bind(sql.parse_predicate(text), StructType())
        one = pa.Array.from_buffers(pa.struct([]), 1, [None])
        result = evaluate.evaluate(bound, pa.RecordBatch.from_struct_array(one))
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        return result.cast(arrow_type(field.type))
    except (DeltaError, pa.ArrowException) as error:
        raise _unreadable(text, field) from error


def _unreadable(text: str, field: StructField) -> SchemaError:
    return INVALID_DEFAULT_VALUE(text=text, column=field.name, type=field.type)


Converter = Callable[[pa.Array], pa.Array]
_PARQUET_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True)
class Rules:
    """How the columns of one file are matched and converted: mapping mode and calendar."""

    mapping_mode: str = "none"
    rebase: Rebase = Rebase()
    timezone: str = "UTC"


def check_field_ids(schema: pa.Schema, mode: str) -> None:
    """Refuse a file without field ids where columns are found by id.

    Raises
    ------
    DataFileError
        Mode is `id` and no field of the file has an id: every column would silently read as null.
    """
    if mode == "id" and len(schema) and not any(_has_ids(f) for f in schema):
        raise DataFileError(
            "the table's column mapping mode is id, but the file has no field ids; "
            "rewrite the file with ids, or set the mode to name"
        )


def _has_ids(field: pa.Field) -> bool:
    return _id(field) is not None or any(_has_ids(child) for child in _children(field.type))


def _id(field: pa.Field) -> int | None:
    return int(field.metadata[_PARQUET_ID]) if field.metadata and _PARQUET_ID in field.metadata else None


def _children(kind: pa.DataType) -> list[pa.Field]:
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return [kind.field(i) for i in range(kind.num_fields)]


def select_leaves(schema: pa.Schema, table: StructType, mode: str) -> list[int]:
    """The Parquet leaf columns that the wanted columns need, ascending.

    Of a struct only the wanted fields are read; where the file has none of them, one leaf is, as it
    tells which structs are null.
    """
    return _select_fields(list(schema), table, 0, mode)


def first_leaves(fields: Iterable[pa.Field], first: int = 0) -> list[int]:
    """The number of the first Parquet leaf column of each field, counting from `first`."""
    starts = [first]
    for f in fields:
        starts.append(starts[-1] + _count_leaves(f.type))
    return starts


def _select_fields(fields: Sequence[pa.Field], table: StructType, first: int, mode: str) -> list[int]:
    starts = first_leaves(fields, first)
    chosen: list[int] = []
    for index, field in zip(match_fields(fields, table, mode), table, strict=True):
        if index is not None:
            chosen += _select(fields[index].type, field.type, starts[index], mode)
    return sorted(set(chosen))


def _select(file_type: pa.DataType, table_type: DataType, first: int, mode: str) -> list[int]:
    if isinstance(table_type, UserDefinedType):
        return _select(file_type, table_type.stored, first, "none")
    if isinstance(table_type, StructType) and pa.types.is_struct(file_type):
        return _select_fields(list(file_type), table_type, first, mode) or [first]
    if isinstance(table_type, ArrayType) and is_list(file_type):
        return _select(file_type.value_type, table_type.element, first, mode)
    if isinstance(table_type, MapType) and pa.types.is_map(file_type):
        value = first + _count_leaves(file_type.key_type)
        return [*range(first, value), *_select(file_type.item_type, table_type.value, value, mode)]
    return list(range(first, first + _count_leaves(file_type)))


def _count_leaves(file_type: pa.DataType) -> int:
    return sum(_count_leaves(child.type) for child in _children(file_type)) or 1


def match_fields(fields: Sequence[pa.Field], table: StructType, mode: str) -> list[int | None]:
    """For each wanted field the index of the file's field, or None where the file has none.

    By id in mode `id` (a field without one goes by name), else by physical name: exactly, then ignoring case.

    Raises
    ------
    DataFileError
        A name matches several fields of the file in different case and none exactly.

    Source: protocol-checklist CM-R-02, CM-R-03, SCH-RW-03.
    """
    exact = {f.name: i for i, f in enumerate(fields)}
    folded: dict[str, list[int]] = {}
    for i, f in enumerate(fields):
        folded.setdefault(f.name.lower(), []).append(i)
    ids = {_id(f): i for i, f in enumerate(fields) if _id(f) is not None}

    def find(field: StructField) -> int | None:
        if mode == "id" and FIELD_ID in field.metadata:
            return ids.get(int(field.metadata[FIELD_ID]))
        name = physical_name(field, mode)
        if name in exact:
            return exact[name]
        candidates = folded.get(name.lower(), [])
        if len(candidates) > 1:
            names = ", ".join(fields[i].name for i in candidates)
            raise DataFileError(f"column {name} matches several columns of the file: {names}")
        return candidates[0] if candidates else None

    return [find(field) for field in table]


def compile_columns(
    schema: pa.Schema, wanted: StructType, rules: Rules
) -> Callable[[pa.RecordBatch], list[pa.Array]]:
    """The function that makes the wanted columns of a batch of this file.

    Parameters
    ----------
    schema
        The schema of the file's batches (after `select_leaves`), with field ids as Arrow reads them.
    wanted
        Logical columns, in output order, with column mapping metadata.
    rules
        Mapping mode and calendar.

    Returns
    -------
    Callable
        RecordBatch -> arrays of `arrow_type(field.type)`, one per wanted column.

    Raises
    ------
    DataFileError
        A column of the file cannot be read as the table's type (`PARQUET_COLUMN_DATA_TYPE_MISMATCH`).
    """
    parts = _compile_fields(list(schema), wanted, rules, "")

    def convert(batch: pa.RecordBatch) -> list[pa.Array]:
        return [part(batch.num_rows, None if i is None else batch.column(i)) for i, part in parts]

    return convert


_Part = Callable[[int, "pa.Array | None"], pa.Array]


def _compile_fields(
    fields: Sequence[pa.Field], wanted: StructType, rules: Rules, path: str, chars: Sequence[str | None] = ()
) -> list[tuple[int | None, _Part]]:
    """Per wanted field where it is in the file, and the function of (row count, array found) for it."""
    parts: list[tuple[int | None, _Part]] = []
    found = match_fields(fields, wanted, rules.mapping_mode)
    for n, (index, field) in enumerate(zip(found, wanted, strict=True)):
        where = f"{path}.{field.name}" if path else field.name
        char = chars[n] if chars else char_varchar.declared_char_type(field)
        if index is None:
            parts.append((None, _absent(field, rules.timezone)))
        else:
            converter = _compile(fields[index].type, field.type, rules, where, char)
            parts.append((index, _present(converter)))
    return parts


def _present(converter: Converter | None) -> _Part:
    def part(_: int, array: pa.Array | None) -> pa.Array:
        return array if converter is None or array is None else converter(array)

    return part


def _absent(field: StructField, timezone: str) -> _Part:
    one = default_value(field, timezone)
    return lambda rows, _: repeat(one, rows)


def is_as_stored(stored: pa.Field, field: StructField, rules: Rules) -> bool:
    """Whether values of a file's field are those of a table's column as they are."""
    char = char_varchar.declared_char_type(field)
    return _compile(stored.type, field.type, rules, field.name, char) is None


def _compile(
    file_type: pa.DataType, wanted: DataType, rules: Rules, path: str, char: str | None
) -> Converter | None:
    """The conversion of one column, or None where the file's array is already what is wanted."""
    if pa.types.is_dictionary(file_type):
        inner = _compile(file_type.value_type, wanted, rules, path, char)
        return _then(lambda array: array.dictionary_decode(), inner)
    if isinstance(file_type, pa.BaseExtensionType):
        return _then(lambda array: array.storage, _compile(file_type.storage_type, wanted, rules, path, char))
    if pa.types.is_null(file_type):  # Parquet's type of a column that never had a value
        target = arrow_type(wanted)
        return None if file_type == target else lambda array: pa.nulls(len(array), target)
    if isinstance(wanted, UserDefinedType):
        return _compile(file_type, wanted.stored, replace(rules, mapping_mode="none"), path, char)
    if wanted == VARIANT:
        return variant_shredding.variant_converter(file_type, path)
    if isinstance(wanted, StructType) and pa.types.is_struct(file_type):
        return _struct(file_type, wanted, rules, path, char)
    if isinstance(wanted, ArrayType) and is_list(file_type):
        return _list(file_type, wanted, rules, path, char)
    if isinstance(wanted, MapType) and pa.types.is_map(file_type):
        return _map(file_type, wanted, rules, path, char)
    converter = primitive_conversion.primitive_converter(file_type, wanted, rules.rebase, path)
    width = char_varchar.char_width(char)
    return converter if width is None else _then(converter, char_varchar.pad(width))


def _then(first: Converter | None, second: Converter | None) -> Converter | None:
    if first is None or second is None:
        return first or second
    return lambda array: second(first(array))


def _struct(
    file_type: pa.StructType, wanted: StructType, rules: Rules, path: str, char: str | None
) -> Converter | None:
    target = arrow_type(wanted)
    fields = list(file_type)
    chars = char_varchar.of_struct(char, wanted)
    matched = match_fields(fields, wanted, rules.mapping_mode)
    if matched == list(range(len(fields))) and file_type.equals(target, check_metadata=True):
        inner = zip(fields, wanted, chars, strict=True)
        if all(_compile(f.type, w.type, rules, f"{path}.{w.name}", c) is None for f, w, c in inner):
            return None
    parts = _compile_fields(fields, wanted, rules, path, chars)

    def convert(array: pa.Array) -> pa.Array:
        children = [part(len(array), None if i is None else array.field(i)) for i, part in parts]
        return struct_array(children, target, array)

    return convert


def struct_array(children: list[pa.Array], target: pa.StructType, like: pa.Array) -> pa.Array:
    """A struct array of the target type with the null rows of another array."""
    mask = like.is_null() if like.null_count else None
    if children:
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)
    validity = None if mask is None else as_mask(flags(like.is_valid())).buffers()[1]
    return pa.Array.from_buffers(target, len(like), [validity])


def _list(
    file_type: pa.DataType, wanted: ArrayType, rules: Rules, path: str, char: str | None
) -> Converter | None:
    target = arrow_type(wanted)
    inner = _compile(
        file_type.value_type, wanted.element, rules, f"{path}.element", char_varchar.of_element(char)
    )
    if inner is None and file_type.equals(target, check_metadata=True):
        return None

    def convert(array: pa.Array) -> pa.Array:
        array = plain_lists(array)
        values = array.values if inner is None else inner(array.values)
        return over(array, target, values)

    return convert


def _map(
    file_type: pa.MapType, wanted: MapType, rules: Rules, path: str, char: str | None
) -> Converter | None:
    target = arrow_type(wanted)
    key_char, value_char = char_varchar.of_map(char)
    key = _compile(file_type.key_type, wanted.key, rules, f"{path}.key", key_char)
    value = _compile(file_type.item_type, wanted.value, rules, f"{path}.value", value_char)
    if key is None and value is None and file_type.equals(target, check_metadata=True):
        return None
    entry_type = pa.struct([target.key_field, target.item_field])

    def convert(array: pa.Array) -> pa.Array:
        array = plain_maps(array)
        keys, items = array.values.field(0), array.values.field(1)
        children = [keys if key is None else key(keys), items if value is None else value(items)]
        # Arrow up to 25 takes an unknown number of nulls for nulls among the keys, and ends the process where
        # chunks are joined. A cast leaves it unknown; once asked for, it is known.
        _ = children[0].null_count
        entries = pa.StructArray.from_arrays(children, fields=list(entry_type))
        return over(array, target, entries)

    return convert
