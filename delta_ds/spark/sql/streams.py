"""Streams that Spark itself resolves, told what the data source is told elsewhere.

A stream that the JVM has resolved (`SELECT * FROM STREAM t`, clients of a server that registered nothing, pipelines) is
read and written by the data source too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from delta_ds.exceptions import DeltaError
from delta_ds.kernel.transaction.write.intent import check_mode
from delta_ds.spark.base.table_names import FORMAT, without_path
from delta_ds.spark.engines.portable.source import DeltaSource
from delta_ds.spark.engines.portable.streaming.resolve_source import columns_of, open_source
from delta_ds.spark.session import streams
from delta_ds.spark.session.catalog.tables import StreamedTable, table_held

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# As Spark hands over `clusterBy`.
_CLUSTERING = "__clustering_columns"


def stream_source(spark: SparkSession, table: str | None, options: str) -> str:
    """The options that the data source reads a stream with, in JSON.

    Parameters
    ----------
    table
        The table that the JVM holds; None: there is none at the path of the options.
    options
        Of the query, in JSON.

    What is wrong with them the data source says.
    """
    complete = streams.source_options(spark, _with_place(table, json.loads(options)))
    _know_source(spark)
    return json.dumps(complete)


def stream_sink(spark: SparkSession, table: str | None, options: str, partition_by: str, mode: str) -> str:
    """The options that the data source writes a stream with, in JSON.

    Parameters
    ----------
    table
        The table that the JVM holds; None: the options name one by its path.
    options, partition_by
        Of the query, in JSON.
    mode
        Its output mode.

    Raises
    ------
    DeltaError
        See `sink_options`.
    """
    given = _with_place(table, json.loads(options))
    cluster_by = json.loads(given.pop(_CLUSTERING, "[]"))
    complete = streams.sink_options(spark, given, mode, json.loads(partition_by), cluster_by)
    _know_source(spark)
    return json.dumps(complete)


def check_stream_mode(spark: SparkSession, mode: str) -> None:
    """Refuse an output mode that a table cannot take, where nothing else of a stream is known yet."""
    check_mode(mode.lower())


def streamed_table(spark: SparkSession, name: str, options: Mapping[str, str]) -> StreamedTable | None:
    """A table as options of a stream describe it, which a batch read does not take; None where they describe none.

    Spark does not say what a source is asked for.
    """
    try:
        source = open_source(streams.source_options(spark, options))
    except DeltaError:
        return None
    return StreamedTable(name, options, columns_of(source))


def _with_place(table: str | None, given: dict[str, str]) -> dict[str, str]:
    if table is None:
        return given
    return {**table_held(table).options, **without_path(given)}


def _know_source(spark: SparkSession) -> None:
    """Make the data source known to a session that Spark has made, where it does not find it by itself."""
    if not spark._jsparkSession.sessionState().dataSourceManager().dataSourceExists(FORMAT):
        spark.dataSource.register(DeltaSource)
