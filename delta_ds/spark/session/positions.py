"""Match columns by position instead of name, for `insertInto`, and cast values to the types of the table's columns.

Source: delta-spark, `DeltaInsertCastSupport`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from delta_ds.conditions.session import INSERT_COLUMN_ARITY_MISMATCH
from delta_ds.exceptions import SchemaError
from delta_ds.kernel.properties import ENABLE_TYPE_WIDENING
from delta_ds.spark.session.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ANSI_CONF = "spark.sql.ansi.enabled"
_POLICY_CONF = "spark.sql.storeAssignmentPolicy"


def by_position(df: DataFrame, table: Table, options: Mapping[str, str]) -> DataFrame:
    """The rows under the names and types of the table's columns, matched by position.

    Where all names are the table's and their types fit, nothing is done: fields of structs then go by their names.
    Columns beyond the table's keep their names, for `mergeSchema` to take or refuse. Values are cast as Spark casts
    them in ANSI mode; in a session without it types stay, and the write takes or refuses them.

    Raises
    ------
    SchemaError
        There are fewer columns, or fields of a struct, than the table has.
    """
    given, wanted = df.schema.fields, table.schema.fields
    if len(given) < len(wanted):
        raise _too_few(table, None, len(given), len(wanted))
    pairs = list(zip(given, wanted, strict=False))
    if all(g.name == w.name and _fits(g.dataType, w.dataType) for g, w in pairs):
        return df
    casts = _casts(df, table, options)
    # By their places: names may be there more than once.
    places = df.toDF(*[f"c{i}" for i in range(len(given))])
    columns: list[Column] = []
    for place, field in enumerate(given):
        column = F.col(f"c{place}")
        if place < len(wanted):
            target = wanted[place]
            stored = _place_type(field.dataType, target.dataType, table, target.name, casts)
            column = column if stored == field.dataType else column.cast(stored)
            columns.append(column.alias(target.name))
        else:
            columns.append(column.alias(field.name))
    return places.select(*columns)


def by_name(df: DataFrame, table: Table, options: Mapping[str, str]) -> DataFrame:
    """The rows of `INSERT ... BY NAME`, and of one that lists columns: cast to the types of the table's columns.

    Columns are matched by their names, fields of structs by their places. Other columns stay, for the write to take or
    to refuse.

    Raises
    ------
    SchemaError
        A struct has fewer fields than in the table.
    """
    wanted = {field.name.lower(): field for field in table.schema.fields}
    casts = _casts(df, table, options)
    places = df.toDF(*[f"c{i}" for i in range(len(df.columns))])
    columns: list[Column] = []
    for place, field in enumerate(df.schema.fields):
        column = F.col(f"c{place}")
        target = wanted.get(field.name.lower())
        if target is not None:
            stored = _place_type(field.dataType, target.dataType, table, target.name, casts)
            column = column if stored == field.dataType else column.cast(stored)
        columns.append(column.alias(field.name))
    return places.select(*columns)


def with_types(df: DataFrame, table: Table, options: Mapping[str, str]) -> DataFrame:
    """The rows of `df.writeTo(...)` and of an append by `saveAsTable`: cast to the types of the table's columns.

    Columns, and fields of structs at any depth, are matched by their names, whatever their order; what the table lacks
    stays as it is, and so does everything in a session without ANSI mode or with another policy of store assignment:
    the write takes or refuses it. A value that does not fit fails the query, before anything is committed.
    """
    policy = str(df.sparkSession.conf.get(_POLICY_CONF, "ANSI")).upper()
    if policy != "ANSI" or not _casts(df, table, options):
        return df
    given = df.schema.fields
    wanted = {field.name.lower(): field.dataType for field in table.schema.fields}
    stored = [_named_type(f.dataType, wanted.get(f.name.lower(), f.dataType)) for f in given]
    if all(field.dataType == kind for field, kind in zip(given, stored, strict=True)):
        return df
    places = df.toDF(*[f"c{i}" for i in range(len(given))])
    columns = [
        (F.col(f"c{i}") if field.dataType == kind else F.col(f"c{i}").cast(kind)).alias(field.name)
        for i, (field, kind) in enumerate(zip(given, stored, strict=True))
    ]
    return places.select(*columns)


def _named_type(given: DataType, wanted: DataType) -> DataType:
    """The given type with the table's types in it, where names are the same."""
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        fields = {field.name.lower(): field.dataType for field in wanted.fields}
        return StructType(
            [
                StructField(
                    f.name, _named_type(f.dataType, fields.get(f.name.lower(), f.dataType)), f.nullable
                )
                for f in given.fields
            ]
        )
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return ArrayType(_named_type(given.elementType, wanted.elementType), given.containsNull)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        key, value = (
            _named_type(given.keyType, wanted.keyType),
            _named_type(given.valueType, wanted.valueType),
        )
        return MapType(key, value, given.valueContainsNull)
    return wanted


def _casts(df: DataFrame, table: Table, options: Mapping[str, str]) -> bool:
    ansi = str(df.sparkSession.conf.get(_ANSI_CONF, "true")).lower() == "true"
    return ansi and not _widens(table, options)


def _fits(given: DataType, wanted: DataType) -> bool:
    """Whether values of a type can be taken by the names of their fields, without a cast."""
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        fields = {field.name.lower(): field for field in wanted.fields}
        return all(
            (target := fields.get(field.name.lower())) is not None and _fits(field.dataType, target.dataType)
            for field in given.fields
        )
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return _fits(given.elementType, wanted.elementType)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        return _fits(given.keyType, wanted.keyType) and _fits(given.valueType, wanted.valueType)
    return given.simpleString() == wanted.simpleString()


def _place_type(given: DataType, wanted: DataType, table: Table, path: str, casts: bool) -> DataType:
    """The type that a column is cast to: the table's names at the places of the given ones, and its types."""
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        if len(given.fields) < len(wanted.fields):
            raise _too_few(table, path, len(given.fields), len(wanted.fields))
        fields = [
            StructField(
                wanted.fields[i].name,
                _place_type(field.dataType, wanted.fields[i].dataType, table, f"{path}.{field.name}", casts),
            )
            if i < len(wanted.fields)
            else field
            for i, field in enumerate(given.fields)
        ]
        return StructType(fields)
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        inner = _place_type(given.elementType, wanted.elementType, table, f"{path}.element", casts)
        return ArrayType(inner, given.containsNull)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        key = _place_type(given.keyType, wanted.keyType, table, f"{path}.key", casts)
        value = _place_type(given.valueType, wanted.valueType, table, f"{path}.value", casts)
        return MapType(key, value, given.valueContainsNull)
    return wanted if casts else given


def _widens(table: Table, options: Mapping[str, str]) -> bool:
    """Whether the table's types follow wider ones, which must not be cast away then."""
    merges = any(k.lower() == "mergeschema" and v.strip().lower() == "true" for k, v in options.items())
    enabled = table.properties.get(ENABLE_TYPE_WIDENING.name, "false")
    return merges and enabled.strip().lower() == "true"


def _too_few(table: Table, path: str | None, given: int, wanted: int) -> SchemaError:
    where, what = (f"column {path} of {table.address}", "fields") if path else (table.address, "columns")
    return INSERT_COLUMN_ARITY_MISMATCH(
        where=where, columns=wanted, what=what, given=given, table=table.address
    )
