"""Who holds tables, and can look them up by their names: this process and its JVM, or the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.spark.base.kinds.kind import is_connect
from delta_ds.spark.base.session_conf import has_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def server_holds_tables(spark: SparkSession | None) -> bool:
    """Whether logs are read and written by a server, whose paths and files they are; None: without a session."""
    return spark is not None and is_connect(spark)


def knows_names(spark: SparkSession) -> bool:
    """Whether our tables are in a session's catalog, where this process can look them up."""
    return not is_connect(spark) and has_catalog(spark)


def server_knows_names(spark: SparkSession) -> bool:
    """Whether our tables are in the catalog of a server, which has to be asked for them."""
    return is_connect(spark) and has_catalog(spark)
