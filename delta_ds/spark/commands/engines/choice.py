"""The engine of a session: asked for once, where a table is opened or a frame comes from its user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.spark.engines.kind import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_ds.spark.commands.engines.engine import Engine


def engine_of(spark: SparkSession) -> Engine:
    """A session as commands see it."""
    if is_connect(spark):
        from delta_ds.spark.commands.engines.connect import Connect

        return Connect()
    from delta_ds.spark.commands.engines.classic import Classic

    return Classic(spark)
