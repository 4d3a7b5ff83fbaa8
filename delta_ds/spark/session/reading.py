"""Read a table by Spark's own Parquet reader where possible, else by the data source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_ds.events.spark import PORTABLE_SCAN
from delta_ds.spark.engine import is_connect
from delta_ds.spark.errors import delta_errors
from delta_ds.spark.hadoop_settings import with_session_settings
from delta_ds.spark.session.monkeypatch import call_original
from delta_ds.spark.session.writing import insert_rows
from delta_ds.spark.session_conf import NATIVE_SCAN_CONF, is_off
from delta_ds.spark.table_names import FORMAT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def read(spark: SparkSession, options: Mapping[str, str], schema: StructType | None = None) -> DataFrame:
    """The rows that read options ask for.

    Works in every session, registered or not, classic or Connect.

    Parameters
    ----------
    spark
        The session.
    options
        As of `spark.read`, `path` among them.
    schema
        Columns to read, as given to `spark.read.schema(...)`; None for all, or for what `columns` says.

    Raises
    ------
    DeltaError
        No table there, a version or timestamp out of reach, a feature or option that is not known. On Connect
        this shows when the rows, or their schema, are asked for.
    """
    if is_connect(spark) or is_off(spark, NATIVE_SCAN_CONF):
        return _portable(spark, options, schema)
    from delta_ds.spark.native.jvm import NotNative
    from delta_ds.spark.native.load import load

    try:
        return load(spark, options, schema, insert=insert_rows)
    except NotNative as why:
        PORTABLE_SCAN.log(reason=why.reason)
        # Spark shows it in `explain(extended=True)`, and it has no part in the plan that is executed.
        return _portable(spark, options, schema).alias(f"pydelta portable scan: {why.reason}")


def _portable(spark: SparkSession, options: Mapping[str, str], schema: StructType | None) -> DataFrame:
    reader = spark.read.format(FORMAT).options(**with_session_settings(spark, options))
    if schema is not None:
        reader = reader.schema(schema)
    with delta_errors():
        frame: DataFrame = call_original(reader, "load")
    return frame
