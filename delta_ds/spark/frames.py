"""DataFrames of rows on the driver that leave no trace in the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from delta_ds.spark.connect_bridge import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame_of(spark: SparkSession, rows: Any, schema: Any = None) -> DataFrame:
    """`createDataFrame`, which in a classic session also makes that session the active one.

    Parameters
    ----------
    rows
        Tuples, or a `pyarrow.Table`.
    schema
        As of `createDataFrame`; None: that of the table.
    """
    if is_connect(spark):
        return spark.createDataFrame(rows, schema)
    kind = type(spark)
    jvm = spark._jvm
    assert jvm is not None
    sessions = kind._get_j_spark_session_class(jvm)
    in_python, in_jvm = kind._activeSession, sessions.getActiveSession()
    try:
        return spark.createDataFrame(rows, schema)
    finally:
        kind._activeSession = in_python
        if in_jvm.isDefined():
            sessions.setActiveSession(in_jvm.get())
        else:
            sessions.clearActiveSession()
