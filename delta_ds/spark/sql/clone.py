"""CREATE TABLE ... SHALLOW CLONE and DEEP CLONE, into a path or a name of the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from delta_ds.conditions.catalog import CLONE_UNSUPPORTED_SOURCE, CREATE_TABLE_SET_LOCATION
from delta_ds.conditions.classes import CLONE_OVER_TABLE
from delta_ds.conditions.session import UNSUPPORTED_DEEP_CLONE
from delta_ds.kernel.commands.clone import RESULT_COLUMNS
from delta_ds.kernel.schema.types import StructType
from delta_ds.spark.catalog.names import foreign_entry, is_view
from delta_ds.spark.catalog.places import CREATE, Place, place_of
from delta_ds.spark.commands.clone import clone_parquet, clone_table
from delta_ds.spark.commands.handle import open_name
from delta_ds.spark.ddl_types import to_kernel
from delta_ds.spark.engines.catalogs import knows_names, server_holds_tables
from delta_ds.spark.engines.frames import frame, nothing
from delta_ds.spark.schema import dotted
from delta_ds.spark.sql_grammar.statements import Clone
from delta_ds.spark.table_names import format_and_path, path_of_parts, unknown_to_catalogs
from delta_ds.spark.writes.target import find_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_PARQUET = "parquet"


def clone(spark: SparkSession, said: Clone) -> DataFrame:
    """Make a clone, and its entry in the catalog; arguments and errors as for `DeltaTable.clone`."""
    target = _target(spark, said)
    if said.if_not_exists and target.name is None and find_table(spark, {"path": target.path}) is not None:
        return nothing(spark)
    if target.entry is not None and said.mode == CREATE:
        if said.if_not_exists:
            return nothing(spark)
        raise CLONE_OVER_TABLE(tableName=target.shown)
    how: dict[str, Any] = {"version": said.version, "timestamp": said.timestamp}
    parquet = _parquet_source(spark, said)
    if parquet is not None:
        if not said.shallow:
            raise UNSUPPORTED_DEEP_CLONE(table=dotted(said.source), target=target.path)
        path, partitions = parquet
        counts = clone_parquet(
            spark, path, partitions, target.path, said.mode != CREATE, said.properties, **how
        )
    else:
        if knows_names(spark) and is_view(spark, said.source):
            raise CLONE_UNSUPPORTED_SOURCE(name=dotted(said.source), format="view")
        source = open_name(spark, dotted(said.source))
        counts = clone_table(source, target.path, said.shallow, said.mode != CREATE, said.properties, **how)
    target.register(spark)
    return frame(spark, [counts], dict.fromkeys(RESULT_COLUMNS, "long"))


def _target(spark: SparkSession, said: Clone) -> Place:
    path, shown = path_of_parts(said.target), dotted(said.target)
    if path is None and server_holds_tables(spark):
        raise unknown_to_catalogs(shown)
    if path is None:
        return place_of(spark, shown, said.location, said.mode)
    if said.location not in (None, path):
        raise CREATE_TABLE_SET_LOCATION(table=shown, location=path, given=said.location)
    return Place(path)


def _parquet_source(spark: SparkSession, said: Clone) -> tuple[str, StructType | None] | None:
    """The folder of a source of Parquet files and its partition columns; None for a table of ours.

    On Spark Connect there is none: the files are the server's, and are looked at in this process.
    """
    format_, path = format_and_path(dotted(said.source))
    if format_ == _PARQUET and not server_holds_tables(spark):
        return path, None
    entry = foreign_entry(spark, said.source)
    if entry is None or entry.provider != _PARQUET:
        return None
    schema = spark.table(dotted(said.source)).schema
    partitions = to_kernel([schema[name] for name in entry.partition_columns])
    return entry.path, partitions if entry.partition_columns else None
