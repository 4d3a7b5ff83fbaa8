"""The engine of a session: the one place above `engines`, `native` and `session` that asks of which kind it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.spark.base.kinds.kind import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_ds.spark.engines.seam.engine import Engine


def engine_of(spark: SparkSession) -> Engine:
    """A session as commands and writes see it."""
    if is_connect(spark):
        from delta_ds.spark.engines.seam.connect import Connect

        return Connect(spark)
    from delta_ds.spark.engines.seam.classic import Classic

    return Classic(spark)
