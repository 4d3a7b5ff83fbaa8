"""The source of a merge: evaluated once, whatever it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.expressions.coercion import INTEGRAL
from delta_ds.kernel.expressions.tree import Call, Column, Expression, Literal
from delta_ds.kernel.schema.types import DATE, STRING, DataType, DecimalType
from delta_ds.spark.commands.target_source import HIDDEN
from delta_ds.spark.server import is_connect

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

# Whether a row of the join has a row of the source.
SOURCE = f"{HIDDEN}source"
# Reading these again gives the same rows, at no cost worth speaking of.
_STEADY = frozenset(["LocalRelation", "Range", "OneRowRelation"])


@dataclass(frozen=True)
class SourceFacts:
    """What one look at the source tells.

    Attributes
    ----------
    rows
        How many.
    bounds
        For each key the smallest and the largest value, None without any.
    """

    rows: int
    bounds: list[tuple[Any, Any]]


def steady(source: DataFrame) -> DataFrame:
    """The same rows, and the same each time they are read.

    A merge reads its source more than once. What is not a constant is evaluated once and kept, as delta-spark does.
    """
    if not is_connect(source.sparkSession) and _is_steady(source):
        return source
    return source.localCheckpoint(eager=True)


def _is_steady(source: DataFrame) -> bool:
    plan = source._jdf.queryExecution().analyzed()
    while plan.nodeName() == "SubqueryAlias":
        plan = plan.child()
    return plan.nodeName() in _STEADY


def look_at(source: DataFrame, keys: Sequence[SparkColumn]) -> SourceFacts:
    """Count the rows and find the bounds of keys, in one pass."""
    from pyspark.sql import functions as F

    wanted = [bound(key) for key in keys for bound in (F.min, F.max)]
    found = source.agg(F.count(F.lit(1)), *wanted).collect()[0]
    bounds = list(zip(found[1::2], found[2::2], strict=True))
    return SourceFacts(found[0], bounds)


def has_usable_bounds(kind: DataType) -> bool:
    """Whether the bounds of a key are the same to Spark, Python and the kernel."""
    return kind in INTEGRAL or kind in (STRING, DATE) or isinstance(kind, DecimalType)


def within(name: str, kind: DataType, low: Any, high: Any) -> list[Expression]:
    """That a column lies between bounds; without bounds no row has a key that equals anything."""
    if low is None:
        return [Literal(False)]
    column = Column((name,))
    return [
        Call(">=", (column, Literal(low, kind))),
        Call("<=", (column, Literal(high, kind))),
    ]
