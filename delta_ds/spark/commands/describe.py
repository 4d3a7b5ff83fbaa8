"""`history` and `detail`.

`changes`: the change data feed between two versions or timestamps.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.commands.changes.net import check_net
from delta_ds.kernel.log.history import History, datetime_of
from delta_ds.spark.base.kinds.frames import frame
from delta_ds.spark.base.schema import quoted_list
from delta_ds.spark.base.session_conf import time_zone
from delta_ds.spark.engines.connect import log_calls
from delta_ds.spark.engines.connect.connect_bridge import ask
from delta_ds.spark.session.reading import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_ds.spark.commands.handle import Handle
    from delta_ds.spark.session.catalog.entries import Entry


# Column for column what delta-spark 4.4 answers.
HISTORY = {
    "version": "long",
    "timestamp": "timestamp",
    "userId": "string",
    "userName": "string",
    "operation": "string",
    "operationParameters": "map<string,string>",
    "job": "struct<jobId:string,jobName:string,jobRunId:string,runId:string,jobOwnerId:string,"
    "triggerType:string>",
    "notebook": "struct<notebookId:string>",
    "clusterId": "string",
    "readVersion": "long",
    "isolationLevel": "string",
    "isBlindAppend": "boolean",
    "operationMetrics": "map<string,string>",
    "userMetadata": "string",
    "engineInfo": "string",
}
DETAIL = {
    "format": "string",
    "id": "string",
    "name": "string",
    "description": "string",
    "location": "string",
    "createdAt": "timestamp",
    "lastModified": "timestamp",
    "partitionColumns": "array<string>",
    "clusteringColumns": "array<string>",
    "numFiles": "long",
    "sizeInBytes": "long",
    "properties": "map<string,string>",
    "minReaderVersion": "int",
    "minWriterVersion": "int",
    "tableFeatures": "array<string>",
}


def run_history(handle: Handle, limit: int | None) -> DataFrame:
    """What was committed, newest first; a limit below 1 leaves nothing, as in delta-spark."""
    entries = []
    if limit is None or limit > 0:
        entries = ask(handle.log, DeltaLog.history, limit)
    found = frame(handle.spark, entries, HISTORY)
    # The rows are here already: a notebook shows them without a job, where a DataFrame shows its columns.
    vars(found)["_repr_html_"] = History(entries)._card().html
    return found


def run_detail(handle: Handle) -> DataFrame:
    """One row about the latest version."""
    detail = ask(handle.log, log_calls.detail)
    if handle.name is not None:
        detail["name"] = handle.name
    location = detail["location"]
    if location.startswith("/"):
        detail["location"] = f"file:{location}"
    for column in ("createdAt", "lastModified"):
        if isinstance(detail[column], int):
            detail[column] = datetime_of(detail[column])
    return frame(handle.spark, [detail], DETAIL)


def foreign_detail(spark: SparkSession, entry: Entry) -> DataFrame:
    """One row about a table of another source, of which only its entry in the catalog is known."""
    known: dict[str, Any] = {
        "format": entry.provider,
        "name": entry.full_name,
        "description": "",
        "location": entry.location,
        "partitionColumns": list(entry.partition_columns),
        "clusteringColumns": [],
        "properties": {},
    }
    return frame(spark, [{column: known.get(column) for column in DETAIL}], DETAIL)


def run_changes(
    handle: Handle,
    start: int | str | datetime | None,
    end: int | str | datetime | None,
    net: str | None,
    keys: Sequence[str] | None,
) -> DataFrame:
    """The change feed of a range of versions; see `DeltaTable.changes`."""
    kind = check_net(net, keys)
    options = {**handle.options, "readChangeFeed": "true", "timeZone": time_zone(handle.spark)}
    options |= _boundary("starting", 0 if start is None else start)
    if end is not None:
        options |= _boundary("ending", end)
    if kind is not None:
        options |= {"net": kind, "keys": quoted_list(keys or ())}
    rows = read(handle.spark, options)
    return rows.alias(handle.alias) if handle.alias else rows


def _boundary(which: str, value: int | str | datetime) -> dict[str, str]:
    if isinstance(value, int):
        return {f"{which}Version": str(value)}
    return {f"{which}Timestamp": value if isinstance(value, str) else value.isoformat()}
