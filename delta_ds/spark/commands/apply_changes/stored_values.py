"""Values of events as the table will hold them, so that they are compared with what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.kernel.format.schema import char_varchar
from delta_ds.kernel.format.schema.types import (
    BINARY,
    STRING,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from delta_ds.spark.base.schema import to_spark

if TYPE_CHECKING:
    from pyspark.sql import Column

_TEXTS = (STRING, BINARY)


def stored_value(value: Column, given: DataType, field: StructField, *, partitions: bool) -> Column:
    """A value of a source as a column of the table has it once it was written and is read again.

    Parameters
    ----------
    value, given
        The value, and its type: that of the column, or a narrower one.
    field
        The column.
    partitions
        Whether the table is partitioned by it: partition values that are empty are null.
    """
    from pyspark.sql import functions as F

    if str(given) != str(field.type):
        value = value.cast(to_spark(StructType((StructField("c", field.type),)))["c"].dataType)
    declared = char_varchar.declared_char_type(field)
    if declared is not None:
        value = _padded(value, field.type, declared)
    if partitions and field.type in _TEXTS:
        value = F.when(F.octet_length(value) > 0, value)
    return value


def _padded(value: Column, kind: DataType, declared: str | None) -> Column:
    """The value with texts of `char(n)` at any depth as they are read: with blanks up to n characters."""
    from pyspark.sql import functions as F

    if declared is None or "char(" not in declared:
        return value
    if isinstance(kind, StructType):
        inner = zip(kind, char_varchar.of_struct(declared, kind), strict=True)
        fields = [_padded(value.getField(f.name), f.type, text).alias(f.name) for f, text in inner]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(kind, ArrayType):
        element = char_varchar.of_element(declared)
        return F.transform(value, lambda item: _padded(item, kind.element, element))
    if isinstance(kind, MapType):
        of_keys, of_values = char_varchar.of_map(declared)
        keyed = F.transform_keys(value, lambda key, _: _padded(key, kind.key, of_keys))
        return F.transform_values(keyed, lambda _, item: _padded(item, kind.value, of_values))
    width = char_varchar.char_width(declared)
    if width is None:
        return value
    # Longer texts stay, to be refused where they are written.
    return F.when(F.length(value) < width, F.rpad(value, width, " ")).otherwise(value)
