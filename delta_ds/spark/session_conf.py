"""The settings of this package, and those of Spark that it reads, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.conditions.options import INVALID_CONF_VALUE
from delta_ds.kernel.options import values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Read and write by Spark's own Parquet reader and writer.
NATIVE_SCAN_CONF = "spark.pydelta.nativeScan"
NATIVE_WRITE_CONF = "spark.pydelta.nativeWrite"

_TIME_ZONE = "spark.sql.session.timeZone"


def is_off(spark: SparkSession, name: str) -> bool:
    """Whether one of this package's settings of a session is `false`."""
    return str(spark.conf.get(name, "true")).strip().lower() == "false"


def is_set(spark: SparkSession, name: str, default: bool) -> bool:
    """Whether a setting of the session is true.

    Raises
    ------
    InvalidOptionError
        It is neither `true` nor `false`.
    """
    text = str(spark.conf.get(name, str(default).lower()))
    try:
        return values.boolean(text, values.zone_by_name("UTC"))
    except ValueError as error:
        raise INVALID_CONF_VALUE(setting=name, value=text, reason=error) from error


def time_zone(spark: SparkSession) -> str:
    """The session time zone: that of timestamps which users write without one."""
    return str(spark.conf.get(_TIME_ZONE))
