"""Match the columns of rows with those of a table, and cast values to their types, as the way of writing has it.

Source: delta-spark, `DeltaAnalysis` and `DeltaInsertCastSupport`.

Cast values to the types of a table's columns by the session's store assignment policy.

Source: Spark, `TableOutputResolver`, `UpCastRule` and `CheckOverflowInTableInsert`; delta-spark, `castIfNeeded`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from delta_ds.conditions.data import CANNOT_UP_CAST_DATATYPE
from delta_ds.conditions.schema import METADATA_MISMATCH
from delta_ds.conditions.session import INSERT_COLUMN_ARITY_MISMATCH, INSERT_COLUMN_MISMATCH
from delta_ds.exceptions import SchemaError
from delta_ds.kernel.format.options.settings import STRICT, SessionFacts
from delta_ds.kernel.format.options.write import WriteOptions
from delta_ds.kernel.format.properties import ENABLE_TYPE_WIDENING
from delta_ds.kernel.format.schema.evolution import can_widen
from delta_ds.records import dataclass
from delta_ds.spark.base.schema import from_spark
from delta_ds.spark.engines.seam.choice import engine_of
from delta_ds.spark.engines.seam.engine import Matched, is_same
from delta_ds.spark.session.writes.request import BY_NAME, BY_PLACE, Table, Way

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_WHOLE_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")


def cast_columns(rows: DataFrame, columns: Sequence[Matched], facts: SessionFacts) -> DataFrame:
    """The matched columns of rows, cast; the rows themselves where nothing is to be done.

    Parameters
    ----------
    facts
        Of the session, whose policy says how: `ANSI` fails on values that do not fit, `LEGACY` makes null of them, or
        their last bits (but on Spark Connect in an ANSI session, whose casts fail), `STRICT` casts nothing that could
        lose anything.

    Raises
    ------
    SchemaError
        `STRICT`, and a type is not an upcast of the other.
    """
    given = rows.schema.fields
    kept = [c.place == at and c.name == given[at].name and is_same(given[at].dataType, c.kind)
            for at, c in enumerate(columns) if at < len(given)]  # fmt: skip
    if len(columns) == len(given) and all(kept):
        return rows
    if facts.store_assignment == STRICT:
        for column in columns:
            if column.place is not None:
                check_upcast(given[column.place].dataType, column.kind, column.name)
    return engine_of(rows.sparkSession).writes.cast(rows, columns, facts)


# --- which casts lose nothing


def check_upcast(given: DataType, wanted: DataType, path: str) -> None:
    """Refuse to store values of a type as another one that cannot hold each of them, as `STRICT` does.

    Raises
    ------
    SchemaError
        The type is no upcast of the other.
    """
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        for one, other in zip(given.fields, wanted.fields, strict=False):
            check_upcast(one.dataType, other.dataType, f"{path}.{other.name}")
    elif isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        check_upcast(given.elementType, wanted.elementType, f"{path}.element")
    elif isinstance(given, MapType) and isinstance(wanted, MapType):
        check_upcast(given.keyType, wanted.keyType, f"{path}.key")
        check_upcast(given.valueType, wanted.valueType, f"{path}.value")
    elif not _is_upcast(given, wanted):
        raise CANNOT_UP_CAST_DATATYPE(
            expression=path,
            sourceType=f'"{given.simpleString().upper()}"',
            targetType=f'"{wanted.simpleString().upper()}"',
        )


def _is_upcast(given: DataType, wanted: DataType) -> bool:
    """Spark's `UpCastRule.canUpCast`, of types without parts."""
    if isinstance(given, NullType) or is_same(given, wanted):
        return True
    if isinstance(wanted, DecimalType):
        return _fits_decimal(given, wanted)
    if isinstance(given, DecimalType) and isinstance(wanted, NumericType):
        return _holds_decimal(given, wanted)
    if given.simpleString() in _NUMBERS and wanted.simpleString() in _NUMBERS:
        return _NUMBERS.index(given.simpleString()) <= _NUMBERS.index(wanted.simpleString())
    if isinstance(given, DateType):
        return isinstance(wanted, TimestampType | TimestampNTZType | StringType)
    if (isinstance(given, TimestampNTZType) and isinstance(wanted, TimestampType)) or (
        isinstance(given, TimestampType) and isinstance(wanted, TimestampNTZType)
    ):
        return True
    return (
        isinstance(wanted, StringType) and isinstance(given, AtomicType) and not isinstance(given, BinaryType)
    )


def _fits_decimal(given: DataType, wanted: DecimalType) -> bool:
    whole = wanted.precision - wanted.scale
    if isinstance(given, DecimalType):
        return given.precision - given.scale <= whole and given.scale <= wanted.scale
    return isinstance(given, IntegralType) and _WHOLE_DIGITS[given.simpleString()] <= whole


def _holds_decimal(given: DecimalType, wanted: NumericType) -> bool:
    if isinstance(wanted, FractionalType):
        return wanted.simpleString() == "double" and given.precision <= 15 or given.precision <= 7
    digits = {"tinyint": 2, "smallint": 4, "int": 9, "bigint": 18}.get(wanted.simpleString(), 0)
    return given.scale == 0 and given.precision <= digits


def align(rows: DataFrame, table: Table, way: Way, options: WriteOptions, facts: SessionFacts) -> DataFrame:
    """The rows under the names and types of the table's columns, as far as the way of writing matches them.

    Columns and fields that the table lacks keep their names and types, for `mergeSchema` to take or refuse.

    Parameters
    ----------
    rows
        As they came in.
    table
        The table that they go to.
    way
        How they came in.
    options
        Of the write.
    facts
        What the session says.

    Raises
    ------
    SchemaError
        There are fewer columns, or fields of a struct, than the table has, where places count; or a column that must
        have values has none.
    """
    if options.overwrite_schema and way.columns == BY_NAME:
        return rows  # the table takes the types of the rows
    matching = _Matching(table, way, _widens(table, options))
    source = rows.schema.fields
    if matching.is_as_it_stands(source):
        found = [Matched(at, field.name, field.dataType) for at, field in enumerate(source)]
    else:
        found = matching.columns(source)
    if way.fills:
        found += matching.missing(source)
    return cast_columns(rows, found, facts)


@dataclass(frozen=True, slots=True)
class _Matching:
    """How the columns of rows find those of a table."""

    table: Table
    way: Way
    widens: bool

    def is_as_it_stands(self, given: Sequence[StructField]) -> bool:
        """Whether all columns, where names or places find them, can be stored by the names of their fields."""
        wanted = self.table.schema.fields
        if self.way.columns == BY_PLACE:
            if len(given) < len(wanted):
                raise self._too_few(None, len(given), len(wanted))
            pairs = list(zip(given, wanted, strict=False))
            return all(g.name == w.name and _fits(g.dataType, w.dataType) for g, w in pairs)
        if self.way.is_listed:
            return False
        by_name = {field.name.lower(): field for field in wanted}
        found = [(g, by_name.get(g.name.lower())) for g in given]
        if self.way.is_statement and any(w is not None and g.name != w.name for g, w in found):
            return False  # delta-spark then casts, as names that differ in case are others to it
        return all(w is None or _fits(g.dataType, w.dataType) for g, w in found)

    def columns(self, given: Sequence[StructField]) -> list[Matched]:
        """The columns of the rows, each with the name and type that it is to have."""
        wanted = self.table.schema.fields
        by_name = {field.name.lower(): field for field in wanted}
        found = []
        for at, field in enumerate(given):
            if self.way.columns == BY_PLACE:
                target = wanted[at] if at < len(wanted) else None
                name = field.name if target is None else target.name
            else:
                target, name = by_name.get(field.name.lower()), field.name
            kind = (
                field.dataType if target is None else self._type(field.dataType, target.dataType, target.name)
            )
            found.append(Matched(at, name, kind))
        return found

    def missing(self, given: Sequence[StructField]) -> list[Matched]:
        """The columns that the rows lack and that nothing else gives a value to, to be null."""
        names = {field.name.lower() for field in given}
        found = []
        for field in self.table.schema.fields:
            if field.name.lower() in names or field.name in self.table.own_values:
                continue
            if field.nullable:
                found.append(Matched(None, field.name, field.dataType))
            elif self.way.is_statement:
                raise INSERT_COLUMN_MISMATCH(columnName=field.name, table=self.table.address)
        return found

    def _type(self, given: DataType, wanted: DataType, path: str) -> DataType:
        if isinstance(given, StructType) and isinstance(wanted, StructType):
            by_place = self.way.fields == BY_PLACE
            return (
                self._struct_by_place(given, wanted, path) if by_place else self._struct(given, wanted, path)
            )
        if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
            inner = self._type(given.elementType, wanted.elementType, f"{path}.element")
            return ArrayType(inner, given.containsNull)
        if isinstance(given, MapType) and isinstance(wanted, MapType):
            key = self._type(given.keyType, wanted.keyType, f"{path}.key")
            value = self._type(given.valueType, wanted.valueType, f"{path}.value")
            return MapType(key, value, given.valueContainsNull)
        # Values are not cast away where the column becomes wider.
        return given if self.widens and _may_widen(wanted, given) else wanted

    def _struct(self, given: StructType, wanted: StructType, path: str) -> StructType:
        by_name = {field.name.lower(): field for field in wanted.fields}
        fields = []
        for field in given.fields:
            target = by_name.get(field.name.lower())
            kind = field.dataType
            if target is not None:
                kind = self._type(kind, target.dataType, f"{path}.{field.name}")
            fields.append(StructField(field.name, kind, field.nullable))
        return StructType(fields)

    def _struct_by_place(self, given: StructType, wanted: StructType, path: str) -> StructType:
        if len(given.fields) < len(wanted.fields):
            raise self._too_few(path, len(given.fields), len(wanted.fields))
        fields = []
        for field, target in zip(given.fields, wanted.fields, strict=False):
            kind = self._type(field.dataType, target.dataType, f"{path}.{field.name}")
            fields.append(StructField(target.name, kind))
        known = {field.name.lower() for field in wanted.fields}
        for field in given.fields[len(wanted.fields) :]:
            if field.name.lower() in known:
                line = f"{path} has {len(wanted.fields)} fields, {len(given.fields)} in the rows; they go by place"
                lines = f"{self.table.address}: {line}. Nothing was written"
                raise METADATA_MISMATCH(lines=lines, differences=[line])
            fields.append(field)
        return StructType(fields)

    def _too_few(self, path: str | None, given: int, wanted: int) -> SchemaError:
        address = self.table.address
        where, what = (f"column {path} of {address}", "fields") if path else (address, "columns")
        return INSERT_COLUMN_ARITY_MISMATCH(
            where=where, columns=wanted, what=what, given=given, table=address
        )


def _may_widen(old: DataType, new: DataType) -> bool:
    before, after = from_spark(StructType([StructField("v", old), StructField("v2", new)]))
    return can_widen(before.type, after.type)


def _fits(given: DataType, wanted: DataType) -> bool:
    """Whether values of a type have all that a type wants, found by the names of fields, without a cast."""
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        fields = {field.name.lower(): field for field in given.fields}
        return all(
            (source := fields.get(field.name.lower())) is not None and _fits(source.dataType, field.dataType)
            for field in wanted.fields
        )
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return _fits(given.elementType, wanted.elementType)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        return _fits(given.keyType, wanted.keyType) and _fits(given.valueType, wanted.valueType)
    return is_same(given, wanted)


def _widens(table: Table, options: WriteOptions) -> bool:
    """Whether the table's types follow wider ones, which must not be cast away then."""
    return options.merge_schema and ENABLE_TYPE_WIDENING.of(table.properties)
