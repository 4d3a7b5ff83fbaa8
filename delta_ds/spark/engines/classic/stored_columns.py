"""Rows as Spark's Parquet writer needs them: physical names, field ids, partition values as text.

The twin of the kernel's `file_columns` for files that Spark writes.
Source: PROTOCOL.md, "Column Mapping", "Partition Value Serialization".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.kernel.format.schema.column_mapping import every_field, nested_keys, physical_name
from delta_ds.kernel.format.schema.field_metadata import FIELD_ID
from delta_ds.kernel.format.schema.types import (
    BINARY,
    STRING,
    TIMESTAMP,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    holds,
)
from delta_ds.kernel.format.values.partition_values import NULL_DIRECTORY
from delta_ds.records import replace
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.engines.classic.columns import spark_schema
from delta_ds.spark.engines.classic.jvm import Jvm, NotNative
from delta_ds.spark.engines.classic.projection import ColumnAt, Projected, project

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.kernel.files.write.write_spec import WriteSpec

_PARQUET_ID = "parquet.field.id"
# No name of a column begins with it: Spark refuses the character in names of files' columns.
COPY = "\x01"


def check_writable(plan: WriteSpec) -> None:
    """Check that Spark's writer can make the files that a plan asks for.

    Raises
    ------
    NotNative
        What it cannot do.
    """
    if plan.data_pages_v2:
        raise NotNative("Spark writes data pages of Parquet 1 only")
    if plan.target_file_size:
        raise NotNative("delta.targetFileSize is set, and Spark does not close a file by its size")
    if plan.codec in ("brotli", "lz4"):
        raise NotNative(f"Spark has no {plan.codec} as other readers understand it")
    partitions = set(plan.partition_columns)
    for field in plan.schema:
        fields = (field, *every_field(field.type))
        nested = [f.type for f in fields[1:]]
        if holds(field.type, VARIANT):
            raise NotNative(f"column {field.name} holds variants, which Spark may shred")
        if plan.writes_nested_ids and any(next(nested_keys(f.type, f.name), None) for f in fields):
            raise NotNative(
                f"column {field.name} holds arrays or maps, whose inner field ids Spark does not write"
            )
        if VOID in nested:
            raise NotNative(f"column {field.name} holds void")
        if field.name in partitions and field.type == BINARY:
            raise NotNative(
                f"partition column {field.name} is binary, which the name of a folder cannot hold"
            )


def stored_columns(rows: DataFrame, plan: WriteSpec) -> tuple[DataFrame, list[str]]:
    """The columns to write, and the names of the last ones, by which files are partitioned.

    Spark takes the columns by which it partitions out of the files. Those that files hold all the same are there twice,
    before the last ones under names that begin with `COPY`, which `TableWrite` takes off in the files.

    Parameters
    ----------
    rows
        Exactly the table's columns, by their logical names.
    plan
        Of the files; `check_writable` has let it pass.
    """
    partitions = list(plan.partition_columns)
    fields = {f.name: f for f in plan.schema}
    positions = {name: at for at, name in enumerate(rows.schema.names)}
    data = [f for f in plan.schema if f.name not in partitions and f.type != VOID]
    names = [physical_name(fields[name], plan.mapping_mode) for name in partitions]
    columns = [_stored_column(rows, positions[f.name], f, plan.mapping_mode) for f in data]
    if plan.writes_partition_columns:
        copied = [fields[name] for name in partitions if fields[name].type != VOID]
        columns += [_copy(rows, positions[f.name], f, plan.mapping_mode) for f in copied]
    columns += [
        _text(rows[quoted(name)], fields[name].type).alias(physical, metadata={})
        for name, physical in zip(partitions, names, strict=True)
    ]
    return project(Jvm.of(rows.sparkSession), rows, columns), names


def _stored_column(rows: DataFrame, position: int, field: StructField, mode: str) -> Projected:
    if mode == "none":
        return ColumnAt(position, field.name)
    if not any(every_field(field.type)):
        return ColumnAt(position, physical_name(field, mode), _id(field))
    wanted = spark_schema([replace(field, type=_physical(field.type, mode))])[0].dataType
    cast = rows[quoted(field.name)].cast(wanted)
    return cast.alias(physical_name(field, mode), metadata=_id(field))


def _copy(rows: DataFrame, position: int, field: StructField, mode: str) -> Projected:
    """A partition column as data files hold it: its values are those that the log says."""
    name = COPY + physical_name(field, mode)
    if field.type != STRING:
        return ColumnAt(position, name, _id(field))
    return _text(rows[quoted(field.name)], STRING).alias(name, metadata=_id(field))


def _id(field: StructField) -> dict[str, int]:
    return {_PARQUET_ID: field.metadata[FIELD_ID]} if FIELD_ID in field.metadata else {}


def _physical(data_type: DataType, mode: str) -> DataType:
    if isinstance(data_type, StructType):
        return StructType(
            tuple(
                StructField(physical_name(f, mode), _physical(f.type, mode), True, _id(f)) for f in data_type
            )
        )
    if isinstance(data_type, ArrayType):
        return ArrayType(_physical(data_type.element, mode), True)
    if isinstance(data_type, MapType):
        return MapType(_physical(data_type.key, mode), _physical(data_type.value, mode), True)
    return data_type


def _text(column: Column, data_type: DataType) -> Column:
    """A partition value as text that means the same in every session; timestamps are in UTC."""
    from pyspark.sql import functions as F

    if data_type == STRING:
        # Both are null in the log; Spark would make them folders of the same name as that of null.
        return F.when(~column.isin("", NULL_DIRECTORY), column)
    if data_type == TIMESTAMP:
        since = F.make_timestamp_ntz(*(F.lit(part) for part in (1970, 1, 1, 0, 0, 0)))
        seconds = (F.unix_micros(column).cast("decimal(20,0)") / F.lit(1_000_000)).cast("decimal(18,6)")
        timestamp = since + F.make_dt_interval(secs=seconds)
        return F.concat(timestamp.cast("string"), F.lit("Z"))
    return column.cast("string")
