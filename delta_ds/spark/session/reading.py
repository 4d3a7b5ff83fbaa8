"""Read a table by Spark's own Parquet reader where possible, else by the data source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_ds.exceptions import NotADeltaTableError
from delta_ds.kernel.commands.changes.net import check_net
from delta_ds.kernel.format.options.read import ReadOptions
from delta_ds.spark.base.kinds.session_facts import parse_options_of_read
from delta_ds.spark.base.kinds.session_kind import server_holds_tables
from delta_ds.spark.base.schema import find_columns, from_spark, quoted, select_columns
from delta_ds.spark.engines.net_changes import net_of_table
from delta_ds.spark.engines.portable.batch import Changes
from delta_ds.spark.engines.portable.source import open_read
from delta_ds.spark.engines.seam.choice import engine_of
from delta_ds.spark.errors.translation import delta_errors
from delta_ds.spark.session.writes.write import insert_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def read(spark: SparkSession, options: Mapping[str, str], schema: StructType | None = None) -> DataFrame:
    """The rows that read options ask for.

    Works in every session, registered or not, classic or Connect.

    Parameters
    ----------
    spark
        The session.
    options
        As of `spark.read`, `path` among them.
    schema
        Columns to read, as given to `spark.read.schema(...)`; None for all, or for what `columns` says.

    Raises
    ------
    DeltaError
        No table there, a version or timestamp out of reach, a feature or option that is not known. On Connect
        this shows when the rows, or their schema, are asked for.
    """
    if any(name.lower() == "net" for name in options):
        return _net(spark, options, schema)
    return _rows(spark, options, schema)


def _net(spark: SparkSession, options: Mapping[str, str], schema: StructType | None) -> DataFrame:
    """Net changes: by the data source in one task where that reads no more than a task does, else by Spark."""
    parsed = parse_options_of_read(spark, options)
    net, keys = check_net(parsed.net, parsed.keys), parsed.keys or ()
    assert net is not None
    if not server_holds_tables(spark) and _bytes(parsed) <= parsed.max_partition_bytes:
        return _rows(spark, options, schema)
    # The others, which say what of the net changes is wanted.
    of_result = ("net", "keys", "columns")
    feed = _rows(spark, {n: text for n, text in options.items() if n.lower() not in of_result}, None)
    with delta_errors():
        rows = net_of_table(feed, keys, net, parsed.path)
        available, table = from_spark(feed.schema), f"the changes of {parsed.path}"
        if schema is not None:
            return rows.select(*map(quoted, find_columns(schema, available, table)))
        if parsed.columns is not None:
            names = select_columns(list(parsed.columns), available, table).names
            return rows.select(*map(quoted, names))
    return rows


def _bytes(parsed: ReadOptions) -> int:
    """How large the files of a change feed are."""
    with delta_errors():
        opened = open_read(parsed, None)
    assert isinstance(opened, Changes)
    return sum(piece.size for piece in opened.feed.slices())


def _rows(spark: SparkSession, options: Mapping[str, str], schema: StructType | None) -> DataFrame:
    engine = engine_of(spark)
    try:
        return engine.read(options, schema, insert_rows)
    except NotADeltaTableError:
        # Looked for now only: a path with a table is the path of that table.
        from delta_ds.spark.session.partition_paths import read_partition

        found = read_partition(spark, options, schema, lambda above: engine.read(above, None, insert_rows))
        if found is None:
            raise
        return found
