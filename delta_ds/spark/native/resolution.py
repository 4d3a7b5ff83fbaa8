"""Resolve users' expressions by Spark once, so that they mean the same wherever they are evaluated.

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

    from delta_ds.spark.native.settled import Settled


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


def resolve(frame: DataFrame, selected: DataFrame, settled: Settled | None = None) -> list[Expression] | None:
    """The expressions of a projection.

    Parameters
    ----------
    selected
        A `frame.select(...)` in which every column is an expression with an alias.
    settled
        What stands in them for the time and its like; None: each query finds that anew.

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
    projected = (settled(plan) if settled else plan).projectList()
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


def same_output(one: DataFrame, other: DataFrame) -> bool:
    """Whether two frames have the same columns by their ids, in the same order."""
    jvm = Jvm.of(one.sparkSession)
    outputs = [jvm.logical_plan(frame).output() for frame in (one, other)]
    ids = [[output.apply(at).exprId() for at in range(output.size())] for output in outputs]
    return len(ids[0]) == len(ids[1]) and all(a.equals(b) for a, b in zip(*ids, strict=True))


def under_ids(frame: DataFrame, ids: DataFrame) -> DataFrame:
    """The rows of a frame under the ids that columns of the same names have in another one.

    What was resolved on the other frame means the same on this one.
    """
    jvm = Jvm.of(frame.sparkSession)
    plan, wanted = jvm.logical_plan(frame), jvm.logical_plan(ids).output()
    catalyst = jvm.jvm.org.apache.spark.sql.catalyst
    known = {str(wanted.apply(at).name()): wanted.apply(at).exprId() for at in range(wanted.size())}
    named = []
    for at in range(plan.output().size()):
        column = plan.output().apply(at)
        name, metadata = str(column.name()), jvm.some(column.metadata())
        ident = known.get(name)
        if ident is not None:
            column = catalyst.expressions.Alias(column, name, ident, jvm.seq([]), metadata, jvm.seq([]))
        named.append(column)
    return jvm.data_frame(catalyst.plans.logical.Project(jvm.seq(named), plan))


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
