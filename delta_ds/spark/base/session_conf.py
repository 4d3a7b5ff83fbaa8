"""The settings of this package, and those of Spark that it reads, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.conditions.options import INVALID_CONF_VALUE
from delta_ds.kernel.base.value_types import parse_boolean, parse_size
from delta_ds.kernel.format.options.settings import TIME_ZONE
from delta_ds.spark.base.table_names import FORMAT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Read and write by Spark's own Parquet reader and writer.
NATIVE_SCAN_CONF = "spark.pydelta.nativeScan"
NATIVE_WRITE_CONF = "spark.pydelta.nativeWrite"
# Of tables with so many file actions in their checkpoint, or more, the files of a query are found by tasks.
LARGE_TABLE_CONF = "spark.pydelta.largeTableFiles"
LARGE_TABLE_FILES = 5_000_000
# Rows that are plain Parquet files, and computed rows of partitions, are written by Arrow.
ARROW_WRITE_CONF = "spark.pydelta.arrowWrite"

# What rewrites or copies files up to this size, in all, does it by threads where it runs, not by the tasks of a job.
LOCAL_OPTIMIZE_CONF = "spark.pydelta.localOptimizeSize"
LOCAL_OPTIMIZE_SIZE = "256m"
_OPEN_BYTES = 64 << 10  # what opening a file costs, as bytes

# The source of a MERGE that is computed to at most so much Arrow is joined with the table's files by Arrow.
MERGE_SOURCE_CONF = "spark.pydelta.mergeSourceSize"
MERGE_SOURCE_SIZE = "256m"
# Spark's bound of what a job gives the driver, which its errors name.
RESULTS_BOUND = "spark.driver.maxResultSize"

# The session catalog: ours where register has put it there.
CATALOG_CONF = "spark.sql.catalog.spark_catalog"
# Stand in front of another catalog that is there, and hand on to it what is not ours.
WRAP_CATALOG_CONF = "spark.pydelta.catalog.wrap"
CATALOG_CLASS = "pydelta.Catalog"
# A note of a server of Spark Connect: in which form clients may call the Python that its sessions are registered in.
CLIENT_CALLS_CONF = "spark.pydelta.clientCalls"
CLIENT_CALLS = "1"
# The data source in Python on such a server, where the format `pydelta` is Spark's own reader and writer.
SOURCE_CLASS = "pydelta.PortableProvider"

# How often a command that is a pure function of the table is done again after a conflict.
RETRIES_CONF = "spark.pydelta.retries"
RETRIES = 0

# Whether commits say where they are made, and by whom.
ORIGIN_CONF = "spark.pydelta.commitInfo.origin"
USER_NAME_CONF = "spark.pydelta.commitInfo.userName"


def is_off(spark: SparkSession, name: str) -> bool:
    """Whether one of this package's settings of a session is `false`."""
    return str(spark.conf.get(name, "true")).strip().lower() == "false"


def has_catalog(spark: SparkSession) -> bool:
    """Whether tables of this package are known by names in a session."""
    return str(spark.conf.get(CATALOG_CONF, "")) == CATALOG_CLASS


def is_served(spark: SparkSession) -> bool:
    """Whether the session is one of a server of ours (`pydelta serve --connect`), or of its client."""
    return str(spark.conf.get(CLIENT_CALLS_CONF, "")) == CLIENT_CALLS


def source_in_python(spark: SparkSession) -> str:
    """The name that Spark finds the data source in Python by."""
    return SOURCE_CLASS if is_served(spark) else FORMAT


def is_set(spark: SparkSession | None, name: str, default: bool) -> bool:
    """Whether a setting of the session is true; without a session, what holds where it is not set.

    Raises
    ------
    InvalidOptionError
        It is neither `true` nor `false`.
    """
    if spark is None:
        return default
    text = str(spark.conf.get(name, str(default).lower()))
    try:
        return parse_boolean(text)
    except ValueError as error:
        raise INVALID_CONF_VALUE(setting=name, value=text, reason=error) from error


def size(spark: SparkSession, name: str, default: str) -> int:
    """The bytes that a setting of the session says, 0 among them.

    Raises
    ------
    InvalidOptionError
        It is no size.
    """
    text = str(spark.conf.get(name, default))
    try:
        return 0 if text.strip() == "0" else parse_size(text)
    except ValueError as error:
        raise INVALID_CONF_VALUE(setting=name, value=text, reason=error) from error


def whole_number(spark: SparkSession, name: str, default: int) -> int:
    """The number, 0 or more, that a setting of the session says.

    Raises
    ------
    InvalidOptionError
        It is none.
    """
    text = str(spark.conf.get(name, str(default))).strip()
    if not (text.isascii() and text.isdecimal()):
        raise INVALID_CONF_VALUE(setting=name, value=text, reason="it is a whole number, 0 or more")
    return int(text)


def time_zone(spark: SparkSession) -> str:
    """The session time zone: that of timestamps which users write without one."""
    return str(spark.conf.get(TIME_ZONE))


def is_little(spark: SparkSession, bytes_of_files: int, files: int, share: int = 1) -> bool:
    """Whether files are so small that threads rewrite or copy them where the command runs; see `LOCAL_OPTIMIZE_CONF`.

    Parameters
    ----------
    share
        Only such a part of the bound counts, where more is held in memory at a time.

    Raises
    ------
    InvalidOptionError
        The bound is no size.
    """
    most = size(spark, LOCAL_OPTIMIZE_CONF, LOCAL_OPTIMIZE_SIZE) // share
    return bytes_of_files + _OPEN_BYTES * files <= most
