"""Test whether the native path works on the running Spark, unless its version is known to."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from delta_ds.spark.native.jvm import Jvm, NotNative

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TESTED = ("4.1.", "4.2.", "4.3.")
_ROWS = 5


def probe(spark: SparkSession) -> str:
    """Find out whether tables can be read and written natively.

    Returns
    -------
    str
        In what way it is known to work.

    Raises
    ------
    NotNative
        They cannot; with the reason.
    """
    Jvm.of(spark)
    if spark.version.startswith(TESTED):
        return "Spark's own Parquet reader and writer"
    _try(spark)
    return f"Spark's own Parquet reader and writer, tried out on Spark {spark.version}, which is not tested"


def _try(spark: SparkSession) -> None:
    """Write a small table and read it back."""
    from delta_ds.spark.native.scan import load
    from delta_ds.spark.native.writer import save

    with tempfile.TemporaryDirectory(prefix="delta-ds-probe-") as folder:
        try:
            rows = spark.range(_ROWS).selectExpr("id", "cast(id % 2 as string) as p")
            save(rows, {"path": folder, "partitionBy": "p"}, overwrite=False)
            found = load(spark, {"path": folder}).where("upper(p) = '1' or id = 4").orderBy("id").collect()
        except NotNative:
            raise
        except Exception as error:
            text = str(error).strip().partition("\n")[0]
            raise NotNative(f"on Spark {spark.version}, which is not tested, it fails: {text}") from error
    if [tuple(row) for row in found] != [(1, "1"), (3, "1"), (4, "0")]:
        raise NotNative(f"on Spark {spark.version}, which is not tested, it reads wrong rows")
