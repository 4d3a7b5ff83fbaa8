"""Resolved conditions of commands to expressions of the kernel: of a whole condition, and of one side of a join."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from delta_ds.spark.engines.classic.catalyst.filters import Paths, translate, translate_whole
from delta_ds.spark.engines.classic.jvm import Jvm

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from delta_ds.kernel.format.expressions.tree import Expression
    from delta_ds.spark.base.kinds.java_object import JavaObject


def implied_predicates(
    spark: SparkSession, condition: Column, paths: Paths, timezone: str
) -> list[Expression]:
    """Expressions that hold wherever a condition is true.

    Parameters
    ----------
    spark
        A classic session.
    condition
        Resolved.
    paths, timezone
        See `translate`.

    Returns
    -------
    list of Expression
        Not bound; none where the condition says nothing that the kernel knows.
    """
    jvm = Jvm.of(spark)
    return translate(jvm.seq([jvm.expression(condition)]), paths, timezone)


def whole_expression(
    spark: SparkSession,
    column: Column,
    paths: Paths,
    timezone: str,
    names: Mapping[int, str] | None = None,
) -> Expression:
    """The kernel's expression that has the values of a resolved one in all rows.

    Parameters as of `translate_whole`, and `spark` a classic session.

    Raises
    ------
    OnlySpark
        There is none.
    """
    return translate_whole(Jvm.of(spark).expression(column), paths, timezone, names)


def referenced_columns(spark: SparkSession, condition: Column) -> set[str]:
    """The names of the columns that a resolved condition reads."""
    references = Jvm.of(spark).expression(condition).references().toSeq()
    return {str(references.apply(i).name()) for i in range(references.size())}


def demands_of(condition: Column, side: DataFrame, paths: Paths, timezone: str) -> list[Expression]:
    """The conjuncts of a join condition on one side only, as the kernel can express them.

    Parameters
    ----------
    condition
        Resolved in the join.
    side
        The side.
    paths, timezone
        See `translate`.
    """
    jvm = Jvm.of(side.sparkSession)
    output = jvm.logical_plan(side).outputSet()
    own = [part for part in _conjuncts(jvm.expression(condition)) if _is_of(part, output)]
    return translate(jvm.seq(own), paths, timezone) if own else []


def equal_keys(condition: Column, side: DataFrame, other: DataFrame) -> list[tuple[str, Column]]:
    """The columns of one side that have to equal an expression over the other side.

    Returns
    -------
    list of tuple
        Name of the column and the expression, of the same type.
    """
    jvm = Jvm.of(side.sparkSession)
    mine, theirs = (jvm.logical_plan(frame).outputSet() for frame in (side, other))
    found = []
    for part in _conjuncts(jvm.expression(condition)):
        if part.nodeName() != "EqualTo":
            continue
        for column, value in ((part.left(), part.right()), (part.right(), part.left())):
            if column.nodeName() != "AttributeReference" or not _is_of(column, mine):
                continue
            if _is_of(value, theirs) and value.dataType().equals(column.dataType()):
                found.append((str(column.name()), jvm.column(value)))
    return found


def _conjuncts(expression: JavaObject) -> Iterator[JavaObject]:
    if expression.nodeName() == "And":
        yield from _conjuncts(expression.left())
        yield from _conjuncts(expression.right())
    else:
        yield expression


def _is_of(expression: JavaObject, output: JavaObject) -> bool:
    references = expression.references()
    return bool(references.nonEmpty()) and bool(references.subsetOf(output))
