"""Read a table by Spark's own Parquet reader where possible, else by the data source."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from delta_ds.exceptions import InvalidOptionError
from delta_ds.spark.connect_bridge import is_connect
from delta_ds.spark.errors import delta_errors
from delta_ds.spark.hadoop_settings import with_session_settings
from delta_ds.spark.session.monkeypatch import call_original
from delta_ds.spark.source import FORMAT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

logger = logging.getLogger("delta_ds")

NATIVE_SCAN_CONF = "spark.pydelta.nativeScan"
_PATHS = ("path", "paths")


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
        No table there, a version or moment out of reach, a feature or option that is not known. On Connect
        this shows when the rows, or their schema, are asked for.
    """
    if is_connect(spark) or is_off(spark, NATIVE_SCAN_CONF):
        return _portable(spark, options, schema)
    from delta_ds.spark.native import scan
    from delta_ds.spark.native.jvm import NotNative

    try:
        return scan.load(spark, options, schema)
    except NotNative as why:
        logger.warning("portable_scan reason=%s", why.reason)
        # Spark shows it in `explain(extended=True)`, and it has no part in the plan that is executed.
        return _portable(spark, options, schema).alias(f"pydelta portable scan: {why.reason}")


def is_off(spark: SparkSession, conf: str) -> bool:
    """Whether one of this package's settings of a session is `false`."""
    return str(spark.conf.get(conf, "true")).strip().lower() == "false"


def with_path(options: Mapping[str, str], path: str | Sequence[str] | None, call: str) -> dict[str, str]:
    """Options with the path that a call was given.

    Parameters
    ----------
    options
        With a path of their own, or without.
    path
        None: the call was given none. A list has to be one of a single path.
    call
        For the message: `load` or `save`.

    Raises
    ------
    InvalidOptionError
        Both name a path.
    """
    if path is None:
        return dict(options)
    if any(name.lower() in _PATHS for name in options):
        raise InvalidOptionError(
            f"the path is given twice, by the option 'path' and in {call}(...); give it once",
            parameters={"option": "path"},
        )
    if isinstance(path, str):
        return {**options, "path": path}
    return {**options, "paths": json.dumps([str(one) for one in path])}


def _portable(spark: SparkSession, options: Mapping[str, str], schema: StructType | None) -> DataFrame:
    reader = spark.read.format(FORMAT).options(**with_session_settings(spark, options))
    if schema is not None:
        reader = reader.schema(schema)
    with delta_errors():
        frame: DataFrame = call_original(reader, "load")
    return frame
