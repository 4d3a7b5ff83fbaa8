"""SHOW PARTITIONS: the partition values that a table has.

Source: delta-spark, `ShowDeltaTablePartitionsCommand`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pyspark.sql.types import StructType

from delta_ds.conditions.catalog import (
    SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN,
    SHOW_PARTITION_IN_NON_PARTITIONED_TABLE,
    TRUNCATE_TABLE_PARTITION,
)
from delta_ds.kernel.commands.dml.candidates import distinct_partitions
from delta_ds.spark.base import schema as schemas
from delta_ds.spark.base.kinds.frames import frame_of
from delta_ds.spark.base.schema import quoted
from delta_ds.spark.base.session_conf import time_zone
from delta_ds.spark.engines.classic.jvm import Jvm
from delta_ds.spark.session.catalog.tables import OpenTable, opened

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from delta_ds.spark.base.kinds.java_object import JavaObject

SHOW_PARTITIONS, TRUNCATE_PARTITION = "SHOW PARTITIONS", "TRUNCATE PARTITION"


def refuse_truncate(table: OpenTable) -> NoReturn:
    """Say what to write in the place of TRUNCATE TABLE ... PARTITION."""
    raise TRUNCATE_TABLE_PARTITION(table=table.name)


def partition_columns(table: OpenTable) -> StructType:
    """The columns of the answer.

    Raises
    ------
    UnsupportedOperationError
        The table has no partitions.
    """
    names = table.snapshot.metadata.partition_columns
    if not names:
        raise SHOW_PARTITION_IN_NON_PARTITIONED_TABLE(table=table.name)
    columns = {field.name: field for field in schemas.to_spark(table.snapshot.schema).fields}
    return StructType([columns[name] for name in names])


def show_partitions(spark: SparkSession, statement: JavaObject) -> DataFrame:
    """The partitions, those that the statement names or all."""
    plan, jtable, _ = statement
    table = opened(jtable)
    columns = partition_columns(table)
    found, _ = distinct_partitions(table.snapshot, time_zone(spark))
    # Without rows, Spark could not know the types of an empty table.
    rows = frame_of(spark, found.to_pylist(), columns) if found.num_rows else frame_of(spark, [], columns)
    rows = (
        rows.select(*(quoted(name) for name in columns.names)).distinct().orderBy(*map(quoted, columns.names))
    )
    if plan.pattern().isDefined():
        for name, text in _wanted(spark, table, plan.pattern().get()).items():
            column = rows[quoted(name)]
            kind = rows.schema[name].dataType
            rows = rows.where(column.isNull() if text is None else column == _literal(text, kind))
    return rows


def _wanted(spark: SparkSession, table: OpenTable, spec: JavaObject) -> dict[str, str | None]:
    jvm = Jvm.of(spark)
    given = dict(jvm.jvm.scala.jdk.javaapi.CollectionConverters.asJava(spec.spec()))
    known = {name.lower(): name for name in table.snapshot.metadata.partition_columns}
    unknown = [name for name in given if name.lower() not in known]
    if unknown:
        raise SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN(columns=unknown, table=table.name)
    return {known[name.lower()]: text for name, text in given.items()}


def _literal(text: str, kind: DataType) -> Column:
    from pyspark.sql import functions as F

    return F.lit(text).cast(kind)
