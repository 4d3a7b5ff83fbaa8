"""Projections of many columns, sent to the JVM in one call; columns cast to the types of a table, as Spark expressions.

The casts are the twin of `kernel/files/rows/casts.py`: fields are found by name ignoring case, missing ones become
null, and a value that its column cannot hold is an error with the same text, whatever the session's ANSI setting.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from delta_ds.conditions.data import CAST_OVERFLOW_IN_TABLE_WRITE
from delta_ds.exceptions import DeltaError
from delta_ds.kernel.files.rows.casts import can_store, match_names
from delta_ds.kernel.format.expressions.coercion import INTEGER_BITS
from delta_ds.kernel.format.schema.types import (
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    schema_to_json,
    sql_name,
    without_metadata,
)
from delta_ds.records import dataclass, field
from delta_ds.spark.engines.classic.jvm import Jvm, NotNative
from delta_ds.spark.errors.row_errors import error_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from delta_ds.spark.base.kinds.java_object import JavaObject

_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}  # decimal digits of the largest integer of so many bits


@dataclass(frozen=True, slots=True)
class ColumnAt:
    """A column as it is.

    Attributes
    ----------
    position
        Among the columns of the frame.
    name
        That it gets; None: name, metadata and identity are what they are.
    metadata
        Of the column, instead of what it has.
    """

    position: int
    name: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CastTo:
    """A resolved expression of Catalyst, cast.

    Attributes
    ----------
    expression
        The JVM's.
    kind
        The JSON of Spark's type.
    name
        Of the column.
    """

    expression: JavaObject
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Guarded:
    """A column as it is, of rows that break no check.

    Attributes
    ----------
    position
        Among the columns of the frame.
    checks
        Whether a row breaks it, and what raises an error then: SQL, or a `Column`.
    """

    position: int
    checks: Sequence[tuple[Column | str, Column | str]]


@dataclass(frozen=True, slots=True)
class InsertedAt:
    """A column, cast as INSERT casts it.

    Attributes
    ----------
    position
        Among the columns of the frame.
    name
        That it gets.
    kind
        The JSON of Spark's type.
    ansi
        Whether a value that does not fit is an error, in any session; else it becomes null, or its last bits.
    """

    position: int
    name: str
    kind: str
    ansi: bool


# A `Column` has a name.
Projected: TypeAlias = "ColumnAt | CastTo | Guarded | InsertedAt | Column"


def project(
    jvm: Jvm, frame: DataFrame, columns: Sequence[Projected], session: JavaObject | None = None
) -> DataFrame:
    """Some columns of a frame, and columns made of them.

    Parameters
    ----------
    session
        The session of the JVM that resolves them; None for the user's.
    """
    from pyspark.sql import DataFrame

    others: list[object] = []
    entries = [_entry(column, others) for column in columns]
    made = jvm.projections.select(
        jvm.spark._jsparkSession if session is None else session,
        jvm.logical_plan(frame),
        json.dumps(entries),
        others,
    )
    return DataFrame(made, jvm.spark)


def _entry(column: Projected, others: list[object]) -> Sequence[object]:
    """A column as `Projection.java` takes it; objects of the JVM go to `others`."""
    if isinstance(column, ColumnAt):
        return (column.position, column.name, json.dumps(dict(column.metadata)))
    if isinstance(column, CastTo):
        others.append(column.expression)
        return (-2, column.name, column.kind)
    if isinstance(column, InsertedAt):
        return (-4, column.position, [column.name, column.kind, column.ansi])
    if isinstance(column, Guarded):
        checks = [[part if isinstance(part, str) else None for part in check] for check in column.checks]
        others += [part._jc for check in column.checks for part in check if not isinstance(part, str)]
        return (-3, column.position, checks)
    others.append(column._jc)
    return (-1, "", "")


@dataclass(frozen=True)
class Caster:
    """Makes the expressions; `jvm` gives Spark's data types."""

    jvm: Jvm

    def null(self, kind: DataType) -> Column:
        """The null of a type."""
        from pyspark.sql import functions as F

        return self.cast(F.lit(None), kind)

    def cast(self, value: Column, kind: DataType, *, safe: bool = False) -> Column:
        """`CAST`, or `TRY_CAST`, to a type without metadata in which all is nullable."""
        wanted = self.spark_type(kind)
        method = "try_cast" if safe else "cast"
        return type(value)(getattr(value._jc, method)(wanted))

    def spark_type(self, kind: DataType) -> JavaObject:
        """The JVM's data type, all nullable and without metadata."""
        return self.jvm.struct(type_json(kind))

    def convert(self, value: Column, source: DataType, target: DataType, path: str) -> Column:
        """The value of a column as the table stores it.

        Parameters
        ----------
        value, source
            What comes in.
        target
            The type in the table.
        path
            The column's name in messages.

        Raises
        ------
        SchemaError
            Inside a struct a field is there twice, or the table does not have it.
        NotNative
            Spark has no such cast.
        """
        from pyspark.sql import functions as F

        if source == VOID:
            return self.cast(value, target)  # it may be an expression that raises
        if source == target and without_metadata(source) == source:
            return value
        if _alike(source, target):
            return self.cast(value, target)
        if isinstance(source, StructType) and isinstance(target, StructType):
            return self._struct(value, source, target, path)
        if isinstance(source, ArrayType) and isinstance(target, ArrayType):
            inner = self._inner(source.element, target.element, f"{path}.element")
            return F.transform(value, inner)
        if isinstance(source, MapType) and isinstance(target, MapType):
            return self._map(value, source, target, path)
        if not can_store(source, target):
            raise NotNative(f"column {path}: values of type {source} are not cast to {target}")
        if not may_overflow(source, target):
            return self.cast(value, target)
        cast = self.cast(value, target, safe=True)
        return F.when(value.isNotNull(), F.coalesce(cast, error_column(overflow(source, target, path))))

    def _inner(self, source: DataType, target: DataType, path: str) -> Callable[[Column], Column]:
        return lambda value: self.convert(value, source, target, path)

    def _struct(self, value: Column, source: StructType, target: StructType, path: str) -> Column:
        from pyspark.sql import functions as F

        fields = []
        for f, at in zip(target, match_names(source.names, target, f"{path}."), strict=True):
            if at is None:
                part = self.null(f.type)
            else:
                given = source.fields[at]
                part = self.convert(value.getField(given.name), given.type, f.type, f"{path}.{f.name}")
            fields.append(part.alias(f.name, metadata={}))
        return F.when(value.isNotNull(), F.struct(*fields))

    def _map(self, value: Column, source: MapType, target: MapType, path: str) -> Column:
        from pyspark.sql import functions as F

        of_key = self._inner(source.key, target.key, f"{path}.key")
        of_value = self._inner(source.value, target.value, f"{path}.value")
        if source.key == target.key and without_metadata(source.key) == source.key:
            return F.transform_values(value, lambda _, item: of_value(item))
        return F.map_from_entries(
            F.transform(
                F.map_entries(value),
                lambda entry: F.struct(
                    of_key(entry.getField("key")).alias("key"),
                    of_value(entry.getField("value")).alias("value"),
                ),
            )
        )


def type_json(kind: DataType) -> str:
    """The JSON of Spark's data type, all nullable and without metadata."""
    wrapped = schema_to_json(StructType((StructField("v", without_metadata(kind)),)))
    return json.dumps(json.loads(wrapped)["fields"][0]["type"])


def overflow(source: DataType, target: DataType, path: str) -> DeltaError:
    """The error for a value that its column cannot hold."""
    return CAST_OVERFLOW_IN_TABLE_WRITE(
        sourceType=sql_name(source), targetType=sql_name(target), columnName=path
    )


def may_overflow(source: DataType, target: DataType) -> bool:
    """Whether a cast has values that it cannot hold, somewhere inside."""
    if source in (VOID, target):
        return False
    if isinstance(source, StructType) and isinstance(target, StructType):
        pairs = ((f.type, target.find(f.name)) for f in source)
        return any(wanted is not None and may_overflow(kind, wanted.type) for kind, wanted in pairs)
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return may_overflow(source.element, target.element)
    if isinstance(source, MapType) and isinstance(target, MapType):
        return may_overflow(source.key, target.key) or may_overflow(source.value, target.value)
    if isinstance(target, DecimalType):
        return not _fits_decimal(source, target)
    if target in INTEGER_BITS:
        return not (source in INTEGER_BITS and INTEGER_BITS[source] <= INTEGER_BITS[target])
    return False


def _fits_decimal(source: DataType, target: DecimalType) -> bool:
    whole = target.precision - target.scale
    if isinstance(source, DecimalType):
        return source.precision - source.scale <= whole and source.scale <= target.scale
    return source in INTEGER_BITS and _DIGITS[INTEGER_BITS[source]] <= whole


def _alike(source: DataType, target: DataType) -> bool:
    """Whether a cast by position changes no value: the same leaves in the same order, named alike."""
    if isinstance(source, StructType) and isinstance(target, StructType):
        return [n.lower() for n in source.names] == [n.lower() for n in target.names] and all(
            _alike(a.type, b.type) for a, b in zip(source, target, strict=True)
        )
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return _alike(source.element, target.element)
    if isinstance(source, MapType) and isinstance(target, MapType):
        return _alike(source.key, target.key) and _alike(source.value, target.value)
    return source == target
