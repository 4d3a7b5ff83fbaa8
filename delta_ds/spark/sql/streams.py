"""Streams by name: `readStream.table` and `writeStream.toTable`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_ds.spark.catalog.creation import NewTable, create_empty
from delta_ds.spark.catalog.names import find_table, name_parts
from delta_ds.spark.catalog.places import CREATE, place_of
from delta_ds.spark.ddl_types import to_kernel

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class StreamCatalog:
    """The session catalog, as streams need it; see `session.names.Catalog`."""

    def options(self, spark: SparkSession, name: str) -> dict[str, str] | None:
        """The `path` and the store's options of the table of a name; None where it is that of no table of ours."""
        found = find_table(spark, name_parts(spark, name))
        return None if found is None else {**found.store, "path": found.path}

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
        place = place_of(spark, name, location, CREATE)
        table = NewTable(
            mode=CREATE,
            schema=to_kernel(schema.fields),
            partitioning=tuple(partition_by),
            clustering=tuple(cluster_by) or None,
        )
        create_empty(spark, place, table)
        place.register(spark)
        return {**place.store, "path": place.path}
