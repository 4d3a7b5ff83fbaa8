"""Cast values to the types of a table's columns by the session's store assignment policy.

Source: Spark, `TableOutputResolver`, `UpCastRule` and `CheckOverflowInTableInsert`; delta-spark, `castIfNeeded`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

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

from delta_ds.conditions.data import CANNOT_UP_CAST_DATATYPE, CAST_OVERFLOW_IN_TABLE_INSERT
from delta_ds.conditions.expressions import CAST_INVALID_INPUT
from delta_ds.kernel.options.session_facts import ANSI_POLICY, STRICT, SessionFacts
from delta_ds.records import dataclass
from delta_ds.spark.engines.kind import of_kind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_WHOLE_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")


@dataclass(frozen=True, slots=True)
class Matched:
    """A column of rows, as a table is to have it.

    Attributes
    ----------
    place
        Among the columns of the rows; None: they have none, and it is null.
    name, kind
        That it gets.
    """

    place: int | None
    name: str
    kind: DataType


def cast_columns(rows: DataFrame, columns: Sequence[Matched], facts: SessionFacts) -> DataFrame:
    """The matched columns of rows, cast; the rows themselves where nothing is to be done.

    Parameters
    ----------
    facts
        Of the session, whose policy says how: `ANSI` fails on values that do not fit, `LEGACY` casts as any cast of the
        session does, `STRICT` casts nothing that could lose anything.

    Raises
    ------
    SchemaError
        `STRICT`, and a type is not an upcast of the other.
    """
    given = rows.schema.fields
    kept = [c.place == at and c.name == given[at].name and _is_same(given[at].dataType, c.kind)
            for at, c in enumerate(columns) if at < len(given)]  # fmt: skip
    if len(columns) == len(given) and all(kept):
        return rows
    policy = facts.store_assignment
    if policy == STRICT:
        for column in columns:
            if column.place is not None:
                _check_upcast(given[column.place].dataType, column.kind, column.name)
    return of_kind(rows, classic=_cast_in_jvm, connect=_cast_by_api)(rows, columns, policy, facts)


def _cast_in_jvm(rows: DataFrame, columns: Sequence[Matched], policy: str, facts: SessionFacts) -> DataFrame:
    from delta_ds.spark.native.jvm import Jvm
    from delta_ds.spark.native.projection import ColumnAt, InsertedAt, Projected, project

    given = rows.schema.fields
    selected: list[Projected] = []
    for column in columns:
        if column.place is None:
            selected.append(_null(column))
        elif _is_same(given[column.place].dataType, column.kind):
            field = given[column.place]
            selected.append(ColumnAt(column.place, column.name, field.metadata or {}))
        else:
            selected.append(InsertedAt(column.place, column.name, column.kind.json(), policy == ANSI_POLICY))
    return project(Jvm.of(rows.sparkSession), rows, selected)


def _cast_by_api(rows: DataFrame, columns: Sequence[Matched], policy: str, facts: SessionFacts) -> DataFrame:
    from pyspark.sql import functions as F

    given = rows.schema.fields
    # By their places: names may be there more than once.
    places = rows.toDF(*[f"c{at}" for at in range(len(given))])
    selected: list[Column] = []
    for column in columns:
        if column.place is None:
            selected.append(_null(column))
            continue
        field, value = given[column.place], F.col(f"c{column.place}")
        if not _is_same(field.dataType, column.kind):
            if policy == ANSI_POLICY and not facts.ansi:
                value = _ansi_cast(value, field.dataType, column)
            else:
                value = value.cast(column.kind)
        selected.append(value.alias(column.name))
    return places.select(*selected)


def _ansi_cast(value: Column, source: DataType, column: Matched) -> Column:
    """A cast that fails on values which do not fit, in a session whose own casts make null of them."""
    from pyspark.sql import functions as F

    from delta_ds.spark.row_errors import error_column

    if not isinstance(column.kind, AtomicType):
        return value  # refused where it does not fit: null inside would be no error
    cast = value.try_cast(column.kind)
    refused = CAST_INVALID_INPUT if isinstance(source, StringType) else CAST_OVERFLOW_IN_TABLE_INSERT
    wrong = refused(
        sourceType=source.simpleString().upper(),
        targetType=column.kind.simpleString().upper(),
        columnName=column.name,
    )
    return F.when(value.isNull() | cast.isNotNull(), cast).otherwise(error_column(wrong))


def _null(column: Matched) -> Column:
    from pyspark.sql import functions as F

    return F.lit(None).cast(column.kind).alias(column.name)


def overflow_of_inserts(rows: DataFrame) -> AbstractContextManager[None]:
    """Raise the overflow of a cast of `cast_rows` as the one of an insert; in the JVM its casts do so themselves."""
    return of_kind(rows, classic=nullcontext(), connect=_overflow_of_public_casts())


@contextmanager
def _overflow_of_public_casts() -> Iterator[None]:
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        if _condition(error) != "CAST_OVERFLOW":
            raise
        told: dict[str, Any] = dict(error.getMessageParameters() or {})
        raise CAST_OVERFLOW_IN_TABLE_INSERT(
            sourceType=str(told.get("sourceType", "")).strip('"'),
            targetType=str(told.get("targetType", "")).strip('"'),
            columnName="of that type",
        ) from error


def _condition(error: Any) -> str | None:
    found: str | None = error.getCondition()
    return found


# --- which casts lose nothing


def _is_same(given: DataType, wanted: DataType) -> bool:
    """Whether types are the same but for nullability and metadata."""
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        pairs = zip(given.fields, wanted.fields, strict=False)
        return len(given.fields) == len(wanted.fields) and all(
            a.name == b.name and _is_same(a.dataType, b.dataType) for a, b in pairs
        )
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        return _is_same(given.elementType, wanted.elementType)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        return _is_same(given.keyType, wanted.keyType) and _is_same(given.valueType, wanted.valueType)
    return given.simpleString() == wanted.simpleString()


def _check_upcast(given: DataType, wanted: DataType, path: str) -> None:
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        for one, other in zip(given.fields, wanted.fields, strict=False):
            _check_upcast(one.dataType, other.dataType, f"{path}.{other.name}")
    elif isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        _check_upcast(given.elementType, wanted.elementType, f"{path}.element")
    elif isinstance(given, MapType) and isinstance(wanted, MapType):
        _check_upcast(given.keyType, wanted.keyType, f"{path}.key")
        _check_upcast(given.valueType, wanted.valueType, f"{path}.value")
    elif not _is_upcast(given, wanted):
        raise CANNOT_UP_CAST_DATATYPE(
            expression=path,
            sourceType=f'"{given.simpleString().upper()}"',
            targetType=f'"{wanted.simpleString().upper()}"',
        )


def _is_upcast(given: DataType, wanted: DataType) -> bool:
    """Spark's `UpCastRule.canUpCast`, of types without parts."""
    if isinstance(given, NullType) or _is_same(given, wanted):
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
