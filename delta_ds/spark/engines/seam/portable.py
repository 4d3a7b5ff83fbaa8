"""Rows of tables by the data source of this package: what every kind of session can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_ds.spark.base.kinds.hadoop_settings import with_session_settings
from delta_ds.spark.base.kinds.sealed import seal
from delta_ds.spark.base.table_names import FORMAT
from delta_ds.spark.engines.monkeypatch import call_original
from delta_ds.spark.engines.session_facts import with_facts_of_reads
from delta_ds.spark.errors.translation import delta_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def portable_rows(spark: SparkSession, options: Mapping[str, str], schema: StructType | None) -> DataFrame:
    """The rows that read options ask for; arguments as of `Engine.read`."""
    complete = seal(spark, with_session_settings(spark, with_facts_of_reads(spark, options)), FORMAT)
    reader = spark.read.format(FORMAT).options(**complete)
    if schema is not None:
        reader = reader.schema(schema)
    with delta_errors():
        frame: DataFrame = call_original(reader, "load")
    return frame
