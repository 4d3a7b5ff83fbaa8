"""Cast values to the types of a table's columns by the session's store assignment policy.

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
    StructType,
    TimestampNTZType,
    TimestampType,
)

from delta_ds.conditions.data import CANNOT_UP_CAST_DATATYPE
from delta_ds.kernel.format.options.session_facts import STRICT, SessionFacts
from delta_ds.spark.engines.seam.choice import engine_of
from delta_ds.spark.engines.seam.writes import Matched, is_same

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
