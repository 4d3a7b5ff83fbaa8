"""The source of a MERGE, evaluated once."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.expressions.coercion import INTEGRAL
from delta_ds.kernel.expressions.tree import Call, Column, Expression, Literal
from delta_ds.kernel.schema.types import DATE, STRING, DataType, DecimalType
from delta_ds.spark.commands.file_scan_source import HIDDEN
from delta_ds.spark.engine import is_connect

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

# Whether a row of the join has a row of the source.
SOURCE = f"{HIDDEN}source"
_EPOCH = datetime.date(1970, 1, 1).toordinal()
# Reading these again gives the same rows, at no cost worth speaking of.
_CONSTANTS = frozenset(["LocalRelation", "Range", "OneRowRelation"])


@dataclass(frozen=True)
class SourceStats:
    """The number of rows of the source, and the bounds of its keys.

    Attributes
    ----------
    rows
        How many.
    bounds
        For each key the smallest and the largest value, None without any; dates as days since 1970, text in UTF-8.
    """

    rows: int
    bounds: list[tuple[Any, Any]]


def materialize_source(source: DataFrame) -> DataFrame:
    """The source's rows, the same each time they are read.

    A merge reads its source more than once. What is not a constant is evaluated once and kept, as delta-spark does.
    """
    if not is_connect(source.sparkSession) and _is_constant(source):
        return source
    return source.localCheckpoint(eager=True)


def same_columns(given: DataFrame, kept: DataFrame) -> bool:
    """Whether expressions resolved on the original source hold for the materialized one too."""
    from delta_ds.spark.native.resolution import same_output

    return given is kept or same_output(given, kept)


def _is_constant(source: DataFrame) -> bool:
    plan = source._jdf.queryExecution().analyzed()
    while plan.nodeName() == "SubqueryAlias":
        plan = plan.child()
    return plan.nodeName() in _CONSTANTS


def source_stats(source: DataFrame, keys: Sequence[tuple[DataType, SparkColumn]]) -> SourceStats:
    """Count the rows and find the bounds of keys, in one pass."""
    from pyspark.sql import functions as F

    wanted = [_as_python(kind, bound(key)) for kind, key in keys for bound in (F.min, F.max)]
    found = source.agg(F.count(F.lit(1)), *wanted).collect()[0]
    bounds = list(zip(found[1::2], found[2::2], strict=True))
    return SourceStats(found[0], bounds)


def _as_python(kind: DataType, bound: SparkColumn) -> SparkColumn:
    """A bound in a form that Python can hold for every value of Spark."""
    from pyspark.sql import functions as F

    if kind == DATE:
        return F.unix_date(bound)
    return bound.cast("binary") if kind == STRING else bound


def _as_literal(kind: DataType, bound: Any) -> Any:
    """A bound as a literal of the kernel; None if there is none for it."""
    if kind == DATE:
        day = bound + _EPOCH
        return datetime.date.fromordinal(day) if 1 <= day <= datetime.date.max.toordinal() else None
    if kind == STRING:
        try:
            return bytes(bound).decode()
        except UnicodeDecodeError:
            return None
    return bound


def has_usable_bounds(kind: DataType) -> bool:
    """Whether the bounds of a key are the same to Spark, Python and the kernel."""
    return kind in INTEGRAL or kind in (STRING, DATE) or isinstance(kind, DecimalType)


def between(name: str, kind: DataType, low: Any, high: Any) -> list[Expression]:
    """The predicate that a column lies between bounds of `source_stats`; without bounds no row can match."""
    if low is None:
        return [Literal(False)]
    column = Column((name,))
    known = ((comparison, _as_literal(kind, bound)) for comparison, bound in ((">=", low), ("<=", high)))
    return [
        Call(comparison, (column, Literal(bound, kind))) for comparison, bound in known if bound is not None
    ]
