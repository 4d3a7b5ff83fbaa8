"""Cast incoming rows to the table's columns: reordered, renamed, cast, filled in.

Fields are found by name ignoring case, also inside structs, arrays and maps; nested fields that the rows do
not have become null. Values change their type by Spark's rules for storing (ANSI): what a column cannot hold
is an error, never a null or a wrapped number. Everything is decided once per incoming schema; per batch only
Arrow kernels run, and an array that already has the table's type passes through untouched.
Source: Spark, `Cast.canANSIStoreAssign`; delta-spark, `SchemaUtils.normalizeColumnNames`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from delta_ds.conditions.data import (
    ARROW_VALUE_NOT_STORABLE,
    CAST_OVERFLOW_IN_TABLE_INSERT,
    CAST_OVERFLOW_IN_TABLE_WRITE,
)
from delta_ds.conditions.expressions import CAST_INVALID_INPUT
from delta_ds.conditions.schema import (
    DUPLICATE_COLUMNS_IN_ROWS,
    FAILED_TO_MERGE_FIELDS,
    METADATA_MISMATCH_UNKNOWN_COLUMNS,
)
from delta_ds.exceptions import InvariantViolationError, PredicateError, SchemaError
from delta_ds.kernel.base.nested_arrays import over, plain_lists, plain_maps
from delta_ds.kernel.files.read import primitive_conversion
from delta_ds.kernel.files.read.column_conversion import struct_array
from delta_ds.kernel.format.expressions import casts
from delta_ds.kernel.format.expressions.coercion import TEMPORAL, is_numeric
from delta_ds.kernel.format.expressions.zones import Rebase
from delta_ds.kernel.format.schema.from_arrow import is_list, primitive_from_arrow
from delta_ds.kernel.format.schema.types import (
    BINARY,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    UserDefinedType,
    arrow_type,
    is_nested,
    sql_name,
)
from delta_ds.records import dataclass

Converter = Callable[[pa.Array], pa.Array]


def can_store(source: DataType, target: DataType, implicit: bool = False) -> bool:
    """Whether values of one type are stored in a column of another, by Spark's ANSI rules.

    Structs match by field name: the incoming one may lack fields of the table's, but has no others.

    Parameters
    ----------
    implicit
        By the wider rules of streams instead: Spark's implicit casts, which also read numbers, timestamps and bytes
        from texts (delta-spark, `DeltaSink`; Spark, `TypeCoercion.implicitCast`).
    """
    if source in (target, VOID):
        return True
    if isinstance(source, StructType) and isinstance(target, StructType):
        fields = [(f, target.find(f.name)) for f in source]
        return all(
            counterpart is not None and can_store(f.type, counterpart.type, implicit)
            for f, counterpart in fields
        )
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return can_store(source.element, target.element, implicit)
    if isinstance(source, MapType) and isinstance(target, MapType):
        return can_store(source.key, target.key, implicit) and can_store(source.value, target.value, implicit)
    if is_nested(source) or is_nested(target) or VARIANT in (source, target):
        return False
    if target == STRING:
        return implicit or source != BINARY
    if implicit and source == STRING:
        return is_numeric(target) or target in TEMPORAL or target == BINARY
    return (is_numeric(source) and is_numeric(target)) or (source in TEMPORAL and target in TEMPORAL)


@dataclass(frozen=True, slots=True)
class Casting:
    """How values are cast: by the session time zone, and perhaps by the rules of streams."""

    timezone: str
    implicit: bool = False


def compile_column(
    data_type: pa.DataType, field: StructField, casting: Casting, path: str
) -> Converter | None:
    """The conversion of one incoming column, or None where its arrays are already what the table has.

    Parameters
    ----------
    data_type
        The Arrow type of the incoming arrays.
    field
        The column of the table.
    casting
        How values are cast.
    path
        The column's name in messages.

    Raises
    ------
    SchemaError
        Values of that type are not stored in such a column (`DELTA_FAILED_TO_MERGE_FIELDS`).
    """
    return _compile(data_type, field.type, casting, path)


def _compile(data_type: pa.DataType, table_type: DataType, casting: Casting, path: str) -> Converter | None:
    if pa.types.is_dictionary(data_type):
        inner = _compile(data_type.value_type, table_type, casting, path)
        return _then(lambda array: array.dictionary_decode(), inner)
    if pa.types.is_run_end_encoded(data_type):
        return _then(pc.run_end_decode, _compile(data_type.value_type, table_type, casting, path))
    if isinstance(data_type, pa.BaseExtensionType):
        return _then(lambda array: array.storage, _compile(data_type.storage_type, table_type, casting, path))
    if pa.types.is_null(data_type):
        target = arrow_type(table_type)
        return None if data_type == target else lambda array: pa.nulls(len(array), target)
    if isinstance(table_type, UserDefinedType):
        return _compile(data_type, table_type.stored, casting, path)
    if table_type == VARIANT:
        return _variant(data_type, path)
    if isinstance(table_type, StructType) and pa.types.is_struct(data_type):
        return _struct(data_type, table_type, casting, path)
    if isinstance(table_type, ArrayType) and is_list(data_type):
        return _list(data_type, table_type, casting, path)
    if isinstance(table_type, MapType) and pa.types.is_map(data_type):
        return _map(data_type, table_type, casting, path)
    return _primitive(data_type, table_type, casting, path)


def _then(first: Converter | None, second: Converter | None) -> Converter | None:
    if first is None or second is None:
        return first or second
    return lambda array: second(first(array))


# --- nested


def match_names(data_names: Sequence[str], table: StructType, path: str = "") -> list[int | None]:
    """For each field of the table the position of the incoming one, or None where there is none.

    Raises
    ------
    SchemaError
        An incoming field that the table does not have, or two that differ in case only.
    """
    places: dict[str, int] = {}
    for i, name in enumerate(data_names):
        if places.setdefault(name.lower(), i) != i:
            raise DUPLICATE_COLUMNS_IN_ROWS(path=path, name=name, column=f"{path}{name}")
    matched = [places.pop(f.name.lower(), None) for f in table]
    if places:
        names = ", ".join(path + data_names[i] for i in places.values())
        raise METADATA_MISMATCH_UNKNOWN_COLUMNS(columns=names)
    return matched


def _struct(
    data_type: pa.StructType, table_type: StructType, casting: Casting, path: str
) -> Converter | None:
    target = arrow_type(table_type)
    fields = list(data_type)
    matched = match_names([f.name for f in fields], table_type, f"{path}.")
    parts: list[tuple[pa.DataType, int | None, Converter | None]] = [
        (
            target.field(n).type,
            at,
            None if at is None else _compile(fields[at].type, f.type, casting, f"{path}.{f.name}"),
        )
        for n, (at, f) in enumerate(zip(matched, table_type, strict=True))
    ]
    in_place = matched == list(range(len(fields))) and all(part[2] is None for part in parts)
    if in_place and data_type.equals(target, check_metadata=True):
        return None

    def convert(array: pa.Array) -> pa.Array:
        # What a null struct hides need not fit into the column.
        inside = array.flatten() if array.null_count else [array.field(i) for i in range(len(fields))]
        children = [
            pa.nulls(len(array), kind) if at is None else _run(converter, inside[at])
            for kind, at, converter in parts
        ]
        return struct_array(children, target, array)

    return convert


def _run(converter: Converter | None, array: pa.Array) -> pa.Array:
    return array if converter is None else converter(array)


def _list(data_type: pa.DataType, table_type: ArrayType, casting: Casting, path: str) -> Converter | None:
    target = arrow_type(table_type)
    inner = _compile(data_type.value_type, table_type.element, casting, f"{path}.element")
    if inner is None and data_type.equals(target, check_metadata=True):
        return None

    def convert(array: pa.Array) -> pa.Array:
        array = plain_lists(array)
        return over(array, target, _run(inner, array.values))

    return convert


def _map(data_type: pa.MapType, table_type: MapType, casting: Casting, path: str) -> Converter | None:
    target = arrow_type(table_type)
    key = _compile(data_type.key_type, table_type.key, casting, f"{path}.key")
    value = _compile(data_type.item_type, table_type.value, casting, f"{path}.value")
    if key is None and value is None and data_type.equals(target, check_metadata=True):
        return None
    entry = [target.key_field, target.item_field]

    def convert(array: pa.Array) -> pa.Array:
        array = plain_maps(array)
        children = [_run(key, array.values.field(0)), _run(value, array.values.field(1))]
        return over(array, target, pa.StructArray.from_arrays(children, fields=entry))

    return convert


def _variant(data_type: pa.DataType, path: str) -> Converter | None:
    target = arrow_type(VARIANT)
    if pa.types.is_struct(data_type) and sorted(f.name for f in data_type) == ["metadata", "value"]:
        if data_type.equals(target, check_metadata=True):
            return None
        if all(pa.types.is_binary(f.type) or pa.types.is_large_binary(f.type) for f in data_type):
            at = [data_type.get_field_index(f.name) for f in target]
            return lambda array: struct_array([array.field(i).cast(pa.binary()) for i in at], target, array)
    raise _unstorable(str(data_type), VARIANT, path)


# --- primitives


def _primitive(data_type: pa.DataType, table_type: DataType, casting: Casting, path: str) -> Converter | None:
    source = primitive_from_arrow(data_type)
    if source is None or not can_store(source, table_type, casting.implicit):
        raise _unstorable(str(source or data_type), table_type, path)
    if source == table_type and data_type == arrow_type(source):
        return None
    own = _own(data_type, source, path)
    return own if source == table_type else _then(own, _cast(source, table_type, casting, path))


def _own(data_type: pa.DataType, source: DataType, path: str) -> Converter | None:
    """To the Arrow type in which the table has values of this type: of dates and timestamps there are several.

    Tables have days and microseconds. A part of a day, or of a microsecond, is refused, never cut off.
    """
    if pa.types.is_date64(data_type) or (pa.types.is_timestamp(data_type) and data_type.unit == "ns"):
        target = arrow_type(source)
        return _exactly(lambda array: pc.cast(array, target), data_type, source, path)
    converter = primitive_conversion.primitive_converter(data_type, source, Rebase(), path)
    return None if converter is None else _exactly(converter, data_type, source, path)


def _exactly(converter: Converter, data_type: pa.DataType, source: DataType, path: str) -> Converter:
    def convert(array: pa.Array) -> pa.Array:
        try:
            return converter(array)
        except pa.ArrowInvalid as error:
            raise ARROW_VALUE_NOT_STORABLE(
                columnName=path, sourceType=str(data_type), targetType=sql_name(source), reason=error
            ) from error

    return convert


def _cast(source: DataType, table_type: DataType, casting: Casting, path: str) -> Converter:
    def convert(array: pa.Array) -> pa.Array:
        try:
            result: pa.Array = casts.cast_value(array, source, table_type, False, casting.timezone)
        except (PredicateError, OverflowError, pa.ArrowException) as error:
            raise _overflow(source, table_type, path, casting.implicit) from error
        if result.null_count > array.null_count:  # as of NaN, for which no decimal is
            raise _overflow(source, table_type, path, casting.implicit)
        return result

    return convert


def _overflow(source: DataType, table_type: DataType, path: str, implicit: bool) -> InvariantViolationError:
    if source == STRING:
        return CAST_INVALID_INPUT(
            columnName=path, targetType=sql_name(table_type), sourceType=sql_name(source)
        )
    overflow = CAST_OVERFLOW_IN_TABLE_INSERT if implicit else CAST_OVERFLOW_IN_TABLE_WRITE
    return overflow(sourceType=sql_name(source), targetType=sql_name(table_type), columnName=path)


def _unstorable(source: str, table_type: DataType, path: str) -> SchemaError:
    return FAILED_TO_MERGE_FIELDS(
        currentField=path, tableType=str(table_type), dataType=source, updateField=path
    )
