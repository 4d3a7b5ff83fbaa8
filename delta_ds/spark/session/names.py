"""Tables of the catalog, for calls that take names: found by whoever knows catalogs, if anybody does.

The session integration stands below the catalog, and streams by name have to ask it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from delta_ds.spark.base.kinds.catalogs import knows_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class Catalog(Protocol):
    """What knows the tables of a session's catalog."""

    def options(self, spark: SparkSession, name: str) -> dict[str, str] | None:
        """The `path` and the store's options of the table of a name; None where it is that of no table of ours."""

    def create(
        self,
        spark: SparkSession,
        name: str,
        location: str | None,
        schema: StructType,
        partition_by: Sequence[str],
        cluster_by: Sequence[str],
    ) -> dict[str, str]:
        """Make an empty table under a name, at a location or where the catalog has it; its options, as above."""


_catalogs: list[Catalog] = []


def use_catalog(catalog: Catalog) -> None:
    """Say who knows catalogs, in all sessions that have ours."""
    _catalogs[:] = [catalog]


def catalog_of(spark: SparkSession) -> Catalog | None:
    """Who knows a session's catalog; None where our tables are not in it."""
    return _catalogs[0] if _catalogs and knows_names(spark) else None


def options_named(spark: SparkSession, name: object) -> dict[str, str] | None:
    """The `path` and the store's options of the table of a name; None where it is that of no table of ours."""
    catalog = catalog_of(spark)
    return None if catalog is None or not isinstance(name, str) else catalog.options(spark, name)
