"""What Spark says of the columns that a new table of its catalog is partitioned or clustered by.

Its versions differ: 4.3 has no name for a column that is not there. These are the conditions of 4.2, which users of
delta-spark know.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from delta_ds.conditions.schema import (
    ALL_PARTITION_COLUMNS,
    CLUSTERING_COLUMN_NOT_IN_NEW_TABLE,
    DUPLICATE_CLUSTER_BY,
)
from delta_ds.kernel.format.schema.column_paths import find, parse_path, show
from delta_ds.spark.base.schema import from_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_layout(
    spark: SparkSession, table: str, schema: str, clustering: Sequence[str], partitions: Sequence[str]
) -> None:
    """Refuse clustering columns that are not there, or are named twice, and all columns as partition columns.

    Parameters
    ----------
    table
        Its name, for messages.
    schema
        Of the new table, as Spark's JSON.
    clustering, partitions
        Columns as SQL spells them.

    Raises
    ------
    SchemaError
        As above; nothing was written.
    """
    columns = from_spark(StructType.fromJson(json.loads(schema)))
    paths = []
    for column in clustering:
        found = find(columns, parse_path(column))
        if found is None:
            raise CLUSTERING_COLUMN_NOT_IN_NEW_TABLE(table=table, column=column, columns=columns.names)
        if found[0] in paths:
            raise DUPLICATE_CLUSTER_BY(table=table, duplicateCols=show(found[0]))
        paths.append(found[0])
    names = {name.strip("`").lower() for name in partitions}
    if names and names >= {field.name.lower() for field in columns}:
        raise ALL_PARTITION_COLUMNS(table=table, columns=columns.names)
