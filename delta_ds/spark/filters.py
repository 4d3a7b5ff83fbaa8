"""Pushed filters of Spark as expressions of the kernel."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from decimal import Decimal, getcontext
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource as spark

from delta_ds.exceptions import PredicateError
from delta_ds.kernel.expressions.tree import Call, Column, Expression, Literal, conjunction
from delta_ds.kernel.schema.types import StructField, StructType

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

logger = logging.getLogger("delta_ds")

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
    """What the filters demand together, as far as the kernel can express it.

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
    parts = [_bound(pushed, schema, bind) for pushed in filters]
    return conjunction([part for part in parts if part is not None])


def _bound(pushed: Filter, schema: StructType, bind: Callable[[Expression], Expression]) -> Expression | None:
    part = _translate(pushed, schema)
    try:
        return None if part is None else bind(part)
    except PredicateError as error:
        logger.warning("filter_not_pushed filter=%s reason=%s", type(pushed).__name__, error.text)
        return None


def _translate(pushed: Filter, schema: StructType) -> Expression | None:
    if isinstance(pushed, spark.Not):
        inner = _translate(pushed.child, schema)
        return None if inner is None else Call("not", (inner,))
    attribute: tuple[str, ...] | None = getattr(pushed, "attribute", None)
    if attribute is None or not _compares_by_bytes(attribute, schema):
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


def _compares_by_bytes(path: Sequence[str], schema: StructType) -> bool:
    """Whether values in files compare as Spark compares the column.

    Not so under a collation, and not for CHAR, whose padding is added while reading.
    """
    level: object = schema
    for name in path:
        field: StructField | None = level.find(name) if isinstance(level, StructType) else None
        if field is None:
            return True
        if "__COLLATIONS" in field.metadata or "char(" in _declared(field).replace("varchar(", ""):
            return False
        level = field.type
    return True


def _declared(field: StructField) -> str:
    return str(field.metadata.get("__CHAR_VARCHAR_TYPE_STRING", "")).lower()
