"""Cast values of UPDATE and MERGE to the types of their columns, by the store assignment policy; and values as stored.

Structs match by the names of their fields, also inside arrays and maps. By `ANSI` any ANSI cast is taken, unlike in an
append, and a value that its column cannot hold is an error; by `LEGACY` it becomes null, or what its last bits say; by
`STRICT` only what loses nothing is cast. The session's ANSI setting does not matter.

Source: delta-spark, `UpdateExpressionsSupport.castIfNeeded`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from delta_ds.conditions.dml import (
    DATATYPE_MISMATCH_CAST_WITHOUT_SUGGESTION,
    UPDATE_SCHEMA_MISMATCH_EXPRESSION,
)
from delta_ds.conditions.expressions import CAST_INVALID_INPUT_EMPTY
from delta_ds.exceptions import InvariantViolationError, SchemaError
from delta_ds.kernel.format.expressions.coercion import INTEGRAL, TEMPORAL, is_numeric
from delta_ds.kernel.format.options.settings import ANSI_POLICY, LEGACY, STRICT
from delta_ds.kernel.format.schema import char_varchar
from delta_ds.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    is_nested,
    sql_name,
    without_metadata,
)
from delta_ds.records import dataclass
from delta_ds.spark.base.schema import to_spark
from delta_ds.spark.engines.classic.projection import may_overflow, overflow
from delta_ds.spark.errors.row_errors import ReportedValue, error_column
from delta_ds.spark.session.writes.columns import check_upcast

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql import types as T

    from delta_ds.spark.commands.dml_target import DmlTarget


@dataclass(frozen=True)
class Before:
    """The value that a column or field has before it is assigned to.

    Attributes
    ----------
    value, type
        As the table has it now, which may be without fields that the command adds.
    """

    value: Column
    type: DataType

    def field(self, name: str) -> Before | None:
        """That of a field of a struct; None without one."""
        found = self.type.find(name) if isinstance(self.type, StructType) else None
        return None if found is None else Before(self.value.getField(found.name), found.type)


@dataclass(frozen=True)
class StoreCast:
    """Casts values to the types of columns.

    Attributes
    ----------
    table
        For messages.
    evolve
        Whether fields of the column's structs may be missing in the value: they become null.
    policy
        Of store assignment.
    without_ansi
        See `Expressions.cast_without_ansi`.
    exact_names
        Whether columns that are assigned to have to be named in their own case.
    """

    table: str
    evolve: bool = False
    policy: str = ANSI_POLICY
    without_ansi: Callable[[Column, T.DataType], Column] | None = None
    exact_names: bool = False

    @classmethod
    def of(cls, target: DmlTarget, *, evolve: bool = False) -> StoreCast:
        """The casts of a command."""
        facts, without_ansi = target.facts, target.engine.expressions.cast_without_ansi
        return cls(target.handle.where, evolve, facts.command_assignment, without_ansi, facts.case_sensitive)

    def null(self, kind: DataType) -> Column:
        """The null of a type."""
        from pyspark.sql import functions as F

        return F.lit(None).cast(spark_type(kind))

    def cast(
        self, value: Column, source: DataType, target: DataType, path: str, before: Before | None = None
    ) -> Column:
        """The value as its column stores it.

        Parameters
        ----------
        value, source
            What is assigned.
        target
            The type of the column.
        path
            The column's name in messages.
        before
            What fields of structs keep that the value does not have; None: they become null.

        Raises
        ------
        SchemaError
            There is no such cast, or a struct has other fields than the column.
        """
        from pyspark.sql import functions as F

        if source == VOID:
            return value.cast(spark_type(target))  # it may be an expression that raises
        if _shape(source) == _shape(target):
            return (
                value
                if without_metadata(source) == without_metadata(target)
                else value.cast(spark_type(target))
            )
        if isinstance(source, StructType) and isinstance(target, StructType):
            return self._struct(value, source, target, path, before)
        if isinstance(source, ArrayType) and isinstance(target, ArrayType):
            inner, wanted = source.element, target.element
            return F.transform(value, lambda item: self.cast(item, inner, wanted, f"{path}.element"))
        if isinstance(source, MapType) and isinstance(target, MapType):
            return self._map(value, source, target, path)
        if self.policy == LEGACY and self.without_ansi is not None:
            return self.without_ansi(value, spark_type(target))
        if self.policy == STRICT:
            check_upcast(spark_type(source), spark_type(target), path)
        elif not can_assign(source, target):
            raise self._no_cast(source, target, path)
        return self._leaf(value, source, target, path)

    def _leaf(self, value: Column, source: DataType, target: DataType, path: str) -> Column:
        from pyspark.sql import functions as F

        if not may_fail(source, target):
            return value.cast(spark_type(target))
        if source == STRING:
            error = error_column(
                malformed_text_error(source, target, path), {"value": ReportedValue.of(value, source)}
            )
        else:
            error = error_column(overflow(source, target, path))
        return F.when(value.isNotNull(), F.coalesce(value.try_cast(spark_type(target)), error))

    def _struct(
        self, value: Column, source: StructType, target: StructType, path: str, before: Before | None
    ) -> Column:
        from pyspark.sql import functions as F

        self._check_fields(source, target, path)
        parts = []
        for f in target:
            given = source.find(f.name)
            kept = before.field(f.name) if before is not None else None
            if given is not None:
                part = self.cast(value.getField(given.name), given.type, f.type, f"{path}.{f.name}", kept)
            elif kept is not None:
                part = self.cast(kept.value, kept.type, f.type, f"{path}.{f.name}")
            else:
                part = self.null(f.type)
            parts.append(part.alias(f.name, metadata={}))
        there = value.isNotNull()
        if before is not None and _has_more(target, source):
            there = there | before.value.isNotNull()
        return F.when(there, F.struct(*parts))

    def _check_fields(self, source: StructType, target: StructType, path: str) -> None:
        unknown = [f.name for f in source if target.find(f.name) is None]
        if unknown or (len(source) != len(target) and not self.evolve):
            missing = [f.name for f in target if source.find(f.name) is None]
            wrong = (
                f"it has no field {', '.join(unknown)}" if unknown else f"{', '.join(missing)} is not given"
            )
            raise UPDATE_SCHEMA_MISMATCH_EXPRESSION(
                sourceType=str(source), column=path, table=self.table, targetType=str(target), wrong=wrong
            )

    def _map(self, value: Column, source: MapType, target: MapType, path: str) -> Column:
        from pyspark.sql import functions as F

        keys, items = (source.key, target.key), (source.value, target.value)
        if _shape(keys[0]) != _shape(keys[1]):
            value = F.transform_keys(value, lambda key, _: self.cast(key, *keys, f"{path}.key"))
        if _shape(items[0]) != _shape(items[1]):
            value = F.transform_values(value, lambda _, item: self.cast(item, *items, f"{path}.value"))
        return value

    def _no_cast(self, source: DataType, target: DataType, path: str) -> SchemaError:
        return DATATYPE_MISMATCH_CAST_WITHOUT_SUGGESTION(
            column=path, table=self.table, targetType=str(target), sourceType=str(source)
        )


def can_assign(source: DataType, target: DataType) -> bool:
    """Whether Spark's ANSI `CAST` takes these types, of which not both are structs, arrays or maps.

    Source: Spark, `Cast.canAnsiCast`.
    """
    if source in (target, VOID) or target == STRING or VARIANT in (source, target):
        return True  # which variants there can be, Spark says itself
    if is_nested(source) or is_nested(target):
        return False
    if source == STRING:
        return True
    if is_numeric(source) or source == BOOLEAN:
        return is_numeric(target) or target == BOOLEAN or (target == TIMESTAMP and source != BOOLEAN)
    if source in TEMPORAL:
        return target in TEMPORAL or (source == TIMESTAMP and is_numeric(target))
    return False


def may_fail(source: DataType, target: DataType) -> bool:
    """Whether a cast of a type without parts has values that it cannot take."""
    if target in (STRING, BINARY) or (target == BOOLEAN and source != STRING):
        return False
    if source == STRING:
        return True
    if source in TEMPORAL and target in INTEGRAL:
        return True
    if source == BOOLEAN and isinstance(target, DecimalType):
        return target.precision == target.scale
    if source == BOOLEAN or target == DATE:
        return False
    return may_overflow(source, target)


def malformed_text_error(source: DataType, target: DataType, path: str) -> InvariantViolationError:
    """The error for text that cannot be read as the column's type."""
    return CAST_INVALID_INPUT_EMPTY(sourceType=sql_name(source), targetType=sql_name(target), columnName=path)


def spark_type(kind: DataType) -> T.DataType:
    """Spark's data type, all nullable and without metadata."""
    return to_spark(StructType((StructField("v", without_metadata(kind)),))).fields[0].dataType


def _shape(kind: DataType) -> DataType:
    """The type without nullability, metadata and the case of names: what a cast by position leaves as it is."""
    if isinstance(kind, StructType):
        return StructType(tuple(StructField(f.name.lower(), _shape(f.type)) for f in kind))
    if isinstance(kind, ArrayType):
        return ArrayType(_shape(kind.element))
    if isinstance(kind, MapType):
        return MapType(_shape(kind.key), _shape(kind.value))
    return kind


def _has_more(target: DataType, source: DataType) -> bool:
    """Whether a column has fields that a value does not have, also in structs inside structs."""
    if not (isinstance(target, StructType) and isinstance(source, StructType)):
        return False
    pairs = ((f.type, source.find(f.name)) for f in target)
    return any(given is None or _has_more(kind, given.type) for kind, given in pairs)


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
