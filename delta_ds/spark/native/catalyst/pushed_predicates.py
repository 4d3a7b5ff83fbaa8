"""The kernel's form of a condition that Spark has resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.spark.native.catalyst.filters import Paths, translate
from delta_ds.spark.native.jvm import Jvm

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from delta_ds.kernel.expressions.tree import Expression


def implied(spark: SparkSession, condition: Column, paths: Paths, timezone: str) -> list[Expression]:
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


def referenced(spark: SparkSession, condition: Column) -> set[str]:
    """The names of the columns that a resolved condition reads."""
    references = Jvm.of(spark).expression(condition).references().toSeq()
    return {str(references.apply(i).name()) for i in range(references.size())}
