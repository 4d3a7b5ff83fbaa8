"""From the names of tables to the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_ds.spark.catalog.classes import static
from delta_ds.spark.catalog.entries import Entry, Metastore
from delta_ds.spark.catalog.tables import OpenTable, opened
from delta_ds.spark.engines.catalogs import knows_names
from delta_ds.spark.native.jvm import Jvm
from delta_ds.spark.table_names import is_ours

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession


def name_parts(spark: SparkSession, name: str) -> list[str]:
    """The parts of a name as Spark's parser reads it: ``a.`b.c` `` has two."""
    parts = spark._jsparkSession.sessionState().sqlParser().parseMultipartIdentifier(name)
    return [parts.apply(number) for number in range(parts.size())]


def find_entry(spark: SparkSession, parts: Sequence[str]) -> Entry | None:
    """The entry of the session catalog with a name, whatever its source; None where there is none."""
    *namespace, name = parts
    if namespace and namespace[0].lower() == "spark_catalog":
        namespace = namespace[1:]
    if len(namespace) > 1:
        return None
    return Metastore(Jvm.of(spark)).find(namespace, name)


def find_table(spark: SparkSession, parts: Sequence[str], *, views: bool = False) -> OpenTable | None:
    """The table of a name.

    Parameters
    ----------
    views
        Whether the name of a view stands for the table that it shows as it is.

    Returns
    -------
    OpenTable or None
        None where the name is that of no table, or of one of another source.
    """
    jvm = Jvm.of(spark)
    found = static(jvm, "Names").find(spark._jsparkSession, jvm.seq(parts), views)
    return None if found is None else opened(found)


def is_view(spark: SparkSession, parts: Sequence[str]) -> bool:
    """Whether a name is that of a view, temporary or of the session catalog."""
    jvm = Jvm.of(spark)
    if spark._jsparkSession.sessionState().catalog().isTempView(jvm.seq(parts)):
        return True
    found = None if len(parts) == 2 and is_ours(parts[0]) else find_entry(spark, parts)
    return found is not None and found.provider is None


def foreign_entry(spark: SparkSession, parts: Sequence[str]) -> Entry | None:
    """The entry of a table of another source; None for ours, for views, for paths and for names that are not there."""
    if not knows_names(spark):
        return None
    if len(parts) == 2 and is_ours(parts[0]):
        return None
    found = find_entry(spark, parts)
    return None if found is None or found.provider is None or is_ours(found.provider) else found
