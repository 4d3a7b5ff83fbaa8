"""CREATE TABLE ... LIKE: a table without rows with the description of another one.

Source: delta-spark, `DeltaCatalog`, `CreateTableLikeCommand`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_ds.conditions.session import TABLE_NAME_ALREADY_EXISTS
from delta_ds.kernel.properties import PROPERTIES
from delta_ds.spark.catalog.creation import create_empty
from delta_ds.spark.catalog.places import CREATE, place_of
from delta_ds.spark.catalog.tables import opened
from delta_ds.spark.ddl_types import to_kernel
from delta_ds.spark.schema import quoted
from delta_ds.spark.writes.new_table import NewTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_ds.spark.engines.java_object import JavaObject


def create_like(spark: SparkSession, statement: JavaObject) -> None:
    """Create a table like one of ours, with its properties and constraints, or like any other, with its columns.

    Parameters
    ----------
    statement
        As `UnresolvedCommands.java` gives it: the names of the table and of its model, the model if it is one of ours,
        the location, properties, and whether a table that is there stays.
    """
    name, model, jtable, location, properties, if_not_exists = statement
    place = place_of(spark, _dotted(name), location, CREATE)
    if place.entry is not None or place.is_there:
        if if_not_exists:
            return
        raise TABLE_NAME_ALREADY_EXISTS(relationName=place.shown)
    if jtable is None:
        like = spark.table(_dotted(model))
        partitioning = _partitioning(spark, model)
        table = NewTable(CREATE, to_kernel(like.schema.fields), partitioning, properties=dict(properties))
    else:
        metadata = opened(jtable).snapshot.metadata
        table = NewTable(
            mode=CREATE,
            schema=metadata.schema,
            partitioning=tuple(metadata.partition_columns),
            properties={**_own(metadata.configuration), **dict(properties)},
            comment=metadata.description,
        )
    create_empty(spark, place, table)
    place.register(spark)


def _own(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties but for those that only the table itself can have, such as the highest column id."""
    return {
        name: text for name, text in properties.items() if name not in PROPERTIES or PROPERTIES[name].settable
    }


def _partitioning(spark: SparkSession, name: JavaObject) -> tuple[str, ...]:
    columns = spark.catalog.listColumns(_dotted(name))
    return tuple(column.name for column in columns if column.isPartition)


def _dotted(parts: JavaObject) -> str:
    return ".".join(quoted(parts.apply(number)) for number in range(parts.size()))
