"""Arrow schemas to Delta schemas, for rows that come from Arrow.

Source: PROTOCOL.md, "Delta Data Type to Parquet Type Mappings".
"""

from __future__ import annotations

import pyarrow as pa

from delta_ds.conditions.schema import UNSUPPORTED_ARROW_TYPE
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    arrow_type,
)

_PRIMITIVES = (
    (pa.types.is_null, VOID),
    (pa.types.is_boolean, BOOLEAN),
    (pa.types.is_int8, BYTE),
    (pa.types.is_int16, SHORT),
    (pa.types.is_int32, INTEGER),
    (pa.types.is_int64, LONG),
    (pa.types.is_float32, FLOAT),
    (pa.types.is_float64, DOUBLE),
    (pa.types.is_date, DATE),
    (pa.types.is_string, STRING),
    (pa.types.is_large_string, STRING),
    (pa.types.is_string_view, STRING),
    (pa.types.is_binary, BINARY),
    (pa.types.is_large_binary, BINARY),
    (pa.types.is_binary_view, BINARY),
    (pa.types.is_fixed_size_binary, BINARY),
)
_LISTS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def schema_from_arrow(schema: pa.Schema) -> StructType:
    """The Delta schema of an Arrow schema, nullability included.

    Raises
    ------
    SchemaError
        A column has a type without a counterpart, such as an unsigned number.
    """
    return StructType(tuple(_field(field) for field in schema))


def delta_schema(columns: pa.Schema | StructType) -> StructType:
    """The Delta schema of columns that are described by either."""
    return columns if isinstance(columns, StructType) else schema_from_arrow(columns)


def primitive_from_arrow(kind: pa.DataType) -> DataType | None:
    """The Delta type of an Arrow type without children; None where there is none."""
    if pa.types.is_decimal(kind) and 0 < kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        return DecimalType(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return TIMESTAMP_NTZ if kind.tz is None else TIMESTAMP
    return next((delta for is_kind, delta in _PRIMITIVES if is_kind(kind)), None)


def is_list(kind: pa.DataType) -> bool:
    """Whether an Arrow type is that of lists, in whatever layout."""
    return any(is_kind(kind) for is_kind in _LISTS)


def _field(field: pa.Field, path: str = "") -> StructField:
    name = f"{path}{field.name}"
    return StructField(field.name, _type(field.type, name), field.nullable)


def _type(kind: pa.DataType, path: str) -> DataType:
    if kind.equals(arrow_type(VARIANT), check_metadata=True):
        return VARIANT
    if pa.types.is_struct(kind):
        return StructType(tuple(_field(field, f"{path}.") for field in kind))
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _type(kind.value_type, path)
    if is_list(kind):
        return ArrayType(_type(kind.value_type, f"{path}.element"), kind.value_field.nullable)
    if pa.types.is_map(kind):
        return MapType(
            _type(kind.key_type, f"{path}.key"),
            _type(kind.item_type, f"{path}.value"),
            kind.item_field.nullable,
        )
    found = primitive_from_arrow(kind)
    if found is None:
        raise UNSUPPORTED_ARROW_TYPE(column=path, type=str(kind))
    return found
