"""Put catalogs beside the session's into a classic session, and take them out."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from delta_ds.spark.catalog.classes import static
from delta_ds.spark.catalog.named import NAMED_CLASS, SPARK_PREFIX, named_catalogs
from delta_ds.spark.native.jvm import Jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What the settings of the catalogs were before, by session; None: nothing.
_before: WeakKeyDictionary[SparkSession, dict[str, str | None]] = WeakKeyDictionary()


def install_catalogs(spark: SparkSession) -> list[str]:
    """Make the catalogs known that settings name; their names. Sessions made later are registered themselves.

    Raises
    ------
    InvalidOptionError
        A setting does not fit; nothing was made known.
    """
    catalogs = named_catalogs(spark)
    before = _before.setdefault(spark, {})
    install = static(Jvm.of(spark), "Install")
    for name in catalogs:
        setting = f"{SPARK_PREFIX}{name}"
        if setting not in before:
            before[setting] = spark.conf.get(setting, None)
            spark.conf.set(setting, NAMED_CLASS)
        install.bindCatalog(spark._jsparkSession, name)
    return sorted(catalogs)


def uninstall_catalogs(spark: SparkSession) -> None:
    """Set the catalogs back to what they were."""
    for setting, text in _before.pop(spark, {}).items():
        if text is None:
            spark.conf.unset(setting)
        else:
            spark.conf.set(setting, text)
        static(Jvm.of(spark), "Install").forgetCatalog(
            spark._jsparkSession, setting.removeprefix(SPARK_PREFIX)
        )
