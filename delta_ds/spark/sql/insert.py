"""INSERT in all forms, `df.writeTo(name)`, and rows for a table that comes to be with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_ds.kernel.write.intent import APPEND, OVERWRITE
from delta_ds.spark.catalog.tables import opened
from delta_ds.spark.native.jvm import Jvm
from delta_ds.spark.session.conditions import sql_of_resolved
from delta_ds.spark.sql.create import create_table
from delta_ds.spark.table_names import without_path
from delta_ds.spark.writes.request import (
    INSERT,
    INSERT_BY_NAME,
    INSERT_INTO,
    INSERT_LISTED,
    WRITE_PARTITIONS,
    WRITE_TO,
    Way,
    WriteRequest,
)
from delta_ds.spark.writes.write import write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_ds.spark.engines.java_object import JavaObject


def insert(spark: SparkSession, statement: JavaObject) -> None:
    """Run a write that Spark has analysed.

    Parameters
    ----------
    statement
        As `Relations.java` gives it: the table, the rows, the condition of what is replaced (null: nothing is), details
        (`byName`, `sql`, `listed`, `evolve`, `dynamic`) and options.
    """
    jtable, query, replaced, details, options = statement
    rows = Jvm.of(spark).data_frame(query)
    given = without_path(dict(options))
    if jtable.getClass().getSimpleName() == "NewTable":
        create_table(spark, jtable.definition(), rows, given)
        jtable.done()
        return
    if details["evolve"]:
        given["mergeSchema"] = "true"
    table = opened(jtable)
    overwrites = details["dynamic"] or replaced is not None
    request = WriteRequest(
        rows,
        _way(details),
        OVERWRITE if overwrites else APPEND,
        {**given, **table.store, "path": table.path},
        replaced=None if replaced is None else sql_of_resolved(Jvm.of(spark), replaced),
        by_partition=bool(details["dynamic"]),
    )
    write(request)


def _way(details: Mapping[str, Any]) -> Way:
    if details["sql"]:
        if not details["byName"]:
            return INSERT
        return INSERT_LISTED if details["listed"] else INSERT_BY_NAME
    if not details["byName"]:
        return INSERT_INTO
    return WRITE_PARTITIONS if details["dynamic"] else WRITE_TO
