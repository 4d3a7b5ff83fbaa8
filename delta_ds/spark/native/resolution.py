"""Expressions that users write, resolved by Spark once: what they mean stays, wherever they are evaluated.

A resolved expression names its columns by id. So it can be evaluated in any frame that has these columns, also where
another column has the same name, as in the join of a MERGE.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from delta_ds.spark.native.jvm import Jvm

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


@dataclass(frozen=True)
class Expression:
    """A resolved expression and what Spark knows about it.

    Attributes
    ----------
    column
        To be used in every frame that has the columns of the one it was resolved in.
    text
        As Spark shows it in plans, with the ids of columns.
    deterministic
        Whether it is the same each time.
    subquery
        Whether it holds one.
    """

    column: Column
    text: str
    deterministic: bool
    subquery: bool


def resolve(frame: DataFrame, selected: DataFrame) -> list[Expression] | None:
    """The expressions of a projection.

    Parameters
    ----------
    selected
        A `frame.select(...)` in which every column is an expression with an alias.

    Returns
    -------
    list of Expression or None
        None: one of them cannot be computed row by row (an aggregate, a window function, a generator).
    """
    jvm = Jvm.of(frame.sparkSession)
    plan = jvm.logical_plan(selected)
    if plan.nodeName() != "Project" or not plan.child().fastEquals(jvm.logical_plan(frame)):
        return None
    subqueries = jvm.module("org.apache.spark.sql.catalyst.expressions.SubqueryExpression$")
    projected = plan.projectList()
    found = []
    for at in range(projected.size()):
        expression = projected.apply(at).child()
        subquery = bool(subqueries.hasSubquery(expression))
        found.append(
            Expression(
                jvm.column(expression), _shown(jvm, expression), bool(expression.deterministic()), subquery
            )
        )
    return found


def attributes(frame: DataFrame) -> list[Column]:
    """The columns of a frame in order, each by its id, however they are called."""
    jvm = Jvm.of(frame.sparkSession)
    output = jvm.logical_plan(frame).output()
    return [jvm.column(output.apply(at)) for at in range(output.size())]


def joins(joined: DataFrame, left: DataFrame, right: DataFrame) -> bool:
    """Whether a frame has the columns of two others, by ids that tell the two apart."""
    jvm = Jvm.of(joined.sparkSession)
    sides = [jvm.logical_plan(frame).outputSet() for frame in (left, right)]
    whole = jvm.logical_plan(joined).outputSet()
    return bool(sides[0].intersect(sides[1]).isEmpty()) and all(side.subsetOf(whole) for side in sides)


def _shown(jvm: Jvm, expression: Any) -> str:
    return str(expression.simpleString(int(jvm.spark.conf.get("spark.sql.debug.maxToStringFields") or 25)))


def same_column(spark: SparkSession, values: Sequence[Column]) -> bool:
    """Whether all of some resolved expressions are one and the same column, and nothing else."""
    jvm = Jvm.of(spark)
    found = [jvm.expression(value) for value in values]
    return all(f.nodeName() == "AttributeReference" and f.semanticEquals(found[0]) for f in found)
