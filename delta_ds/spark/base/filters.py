"""Filters that Spark pushes into the data source: when they may be used, and as expressions of the kernel.

Up to Spark 4.3 every use of one DataFrame (or view) shares one read plan, made by whichever filter was
pushed last: after `df.where("a = 1").count()`, `df.count()` reads only the files that were planned for
`a = 1`, and in `df.where("a = 1").union(df.where("a = 2"))` both halves read the files of one of them.
Skipping files by pushed filters then loses rows, so it happens only

- where Spark plans each scan by itself (it then has `DataSourceReader.pushLimit`, SPARK-58551), or
- in a session that vouches for using each DataFrame in one scan: `register(spark, pushdown=True)`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from decimal import Decimal, getcontext
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource as spark

from delta_ds.events.spark import FILTER_NOT_PUSHED
from delta_ds.exceptions import PredicateError
from delta_ds.kernel.format.expressions.tree import Call, Column, Expression, Literal, conjunction
from delta_ds.kernel.format.schema.char_varchar import path_compares_by_bytes
from delta_ds.kernel.format.schema.types import StructType

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter


_COMPARISONS: dict[type, str] = {
    spark.EqualTo: "=",
    spark.EqualNullSafe: "<=>",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
    spark.StringStartsWith: "startswith",
    spark.StringEndsWith: "endswith",
    spark.StringContains: "contains",
}
_NULL_TESTS: dict[type, str] = {spark.IsNull: "isnull", spark.IsNotNull: "isnotnull"}


def to_expression(
    filters: Sequence[Filter], schema: StructType, bind: Callable[[Expression], Expression]
) -> Expression | None:
    """The conjunction of the filters, as far as the kernel can express it.

    Leaving one out only means that less is skipped: Spark evaluates every filter again.

    Parameters
    ----------
    filters
        All of them must hold.
    schema
        The table's logical schema.
    bind
        Resolves columns and literals against that schema.

    Returns
    -------
    Expression or None
        A bound conjunction; None when nothing can be used.
    """
    parts = [_bind_filter(pushed, schema, bind) for pushed in filters]
    return conjunction([part for part in parts if part is not None])


def _bind_filter(
    pushed: Filter, schema: StructType, bind: Callable[[Expression], Expression]
) -> Expression | None:
    part = _translate(pushed, schema)
    try:
        return None if part is None else bind(part)
    except PredicateError as error:
        FILTER_NOT_PUSHED.log(filter=type(pushed).__name__, reason=error)
        return None


def _translate(pushed: Filter, schema: StructType) -> Expression | None:
    if isinstance(pushed, spark.Not):
        inner = _translate(pushed.child, schema)
        return None if inner is None else Call("not", (inner,))
    attribute: tuple[str, ...] | None = getattr(pushed, "attribute", None)
    if attribute is None or not path_compares_by_bytes(attribute, schema):
        return None
    column = Column(tuple(attribute))
    kind = type(pushed)
    if kind in _NULL_TESTS:
        return Call(_NULL_TESTS[kind], (column,))
    value: Any = getattr(pushed, "value", None)
    if any(map(_may_be_rounded, value if isinstance(pushed, spark.In) else (value,))):
        return None
    if kind in _COMPARISONS:
        return Call(_COMPARISONS[kind], (column, Literal(value)))
    if isinstance(pushed, spark.In):
        return Call("in", (column, *(Literal(v) for v in value)))
    return None


def _may_be_rounded(value: Any) -> bool:
    """Whether pyspark may have rounded a constant: it computes decimals in Python's context, of 28 digits."""
    return isinstance(value, Decimal) and len(value.as_tuple().digits) >= getcontext().prec


PUSHDOWN_CONF = "spark.sql.python.filterPushdown.enabled"

PUSHDOWN_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


def plans_each_scan() -> bool:
    """Whether this Spark keeps the read plans of different scans of one DataFrame apart."""
    from pyspark.sql.datasource import DataSourceReader

    return hasattr(DataSourceReader, "pushLimit")


def in_pushdown_worker() -> bool:
    """Whether this process is the one in which Spark pushes filters.

    Spark starts it only while the configuration allows pushdown. In the other one, which plans reads
    without filters, a reader that overrides `pushFilters` makes the query fail if the configuration does
    not allow it, so no reader may do so there.
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    # Its daemon imports it by name; without a daemon (on Windows) it is the main module.
    return PUSHDOWN_WORKER in sys.modules or getattr(main, "name", None) == PUSHDOWN_WORKER
