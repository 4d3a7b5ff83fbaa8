"""INSERT in all forms, `df.writeTo(name)`, and rows for a table that comes to be with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_ds.conditions.session import INSERT_COLUMN_MISMATCH
from delta_ds.kernel.schema.field_metadata import CURRENT_DEFAULT, GENERATION_EXPRESSION, IDENTITY_STEP
from delta_ds.kernel.schema.types import StructType
from delta_ds.spark.catalog.tables import OpenTable, opened
from delta_ds.spark.native.jvm import Jvm
from delta_ds.spark.schema import to_spark
from delta_ds.spark.session.conditions import sql_of_resolved
from delta_ds.spark.session.positions import by_name, by_position, with_types
from delta_ds.spark.session.tables import Table
from delta_ds.spark.session.writing import APPEND, OF_EVERY_WRITE, OVERWRITE, save, with_settings
from delta_ds.spark.sql.create import create_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EVERYTHING = "true"
_OWN_VALUES = frozenset([CURRENT_DEFAULT, GENERATION_EXPRESSION, IDENTITY_STEP])
_STATEMENT_OPTIONS = ("replacewhere", "partitionoverwritemode")


def insert(spark: SparkSession, statement: Any) -> None:
    """Run a write that Spark has analysed.

    Parameters
    ----------
    statement
        As `Relations.java` gives it: the table, the rows, the condition of what is replaced (null: nothing is), details
        (`byName`, `sql`, `evolve`, `dynamic`) and options.
    """
    jtable, query, replaced, details, options = statement
    rows = Jvm.of(spark).data_frame(query)
    if jtable.getClass().getSimpleName() == "NewTable":
        create_table(spark, jtable.definition(), rows)
        jtable.done()
        return
    given = {k: v for k, v in dict(options).items() if k.lower() != "path"}
    if details["evolve"]:
        given["mergeSchema"] = "true"
    _write(spark, opened(jtable), rows, replaced, dict(details), given)


def _write(
    spark: SparkSession,
    table: OpenTable,
    rows: DataFrame,
    replaced: Any,
    details: Mapping[str, Any],
    options: dict[str, str],
) -> None:
    mode = APPEND
    if details["dynamic"]:
        mode, options["partitionOverwriteMode"] = OVERWRITE, "dynamic"
    elif replaced is not None:
        mode = OVERWRITE
        predicate = sql_of_resolved(Jvm.of(spark), replaced)
        named = {name.lower() for name in options}
        if predicate != _EVERYTHING:
            options["replaceWhere"] = predicate
        elif not named.intersection(_STATEMENT_OPTIONS):
            options["partitionOverwriteMode"] = "static"
    if not details["byName"] or details["sql"]:
        complete = with_settings(spark, options, OF_EVERY_WRITE)
        if details["byName"]:
            rows = _completed(table, rows)
        align = by_name if details["byName"] else by_position
        rows = align(rows, _as_known(table), complete)
    else:
        rows = with_types(rows, _as_known(table), with_settings(spark, options, OF_EVERY_WRITE))
    save(rows, table.path, mode, {**options, **table.store})


def _completed(table: OpenTable, rows: DataFrame) -> DataFrame:
    """Rows of a statement that names its columns, with null in those that it leaves out and that have no other value.

    Raises
    ------
    SchemaError
        One of these must have values.
    """
    from pyspark.sql import functions as F

    given = {name.lower() for name in rows.columns}
    missing = [
        field
        for field in table.snapshot.schema
        if field.name.lower() not in given and _OWN_VALUES.isdisjoint(field.metadata)
    ]
    for field in missing:
        if not field.nullable:
            raise INSERT_COLUMN_MISMATCH(columnName=field.name, table=table.name)
    nulls = {field.name: field.dataType for field in to_spark(StructType(tuple(missing))).fields}
    return rows.select("*", *(F.lit(None).cast(kind).alias(name) for name, kind in nulls.items()))


def _as_known(table: OpenTable) -> Table:
    snapshot = table.snapshot
    return Table(snapshot.storage.url, to_spark(snapshot.schema), dict(snapshot.metadata.configuration))
