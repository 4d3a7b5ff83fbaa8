"""A process that appends to one table again and again; each row tells who wrote it."""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.base.arrow_buffers import integers
from delta_ds.kernel.storage.filesystem import Storage
from spark_tests.faults.concurrency.workers import serve

SCHEMA = pa.schema([("writer", pa.int64()), ("number", pa.int64())])
NO_ROWS = pa.Table.from_batches([], SCHEMA)

# By what an append goes: a new handle each time, one handle, or a transaction and a file of one's own.
WAYS = ("cold", "handle", "transaction")


def row(writer: int, number: int) -> pa.RecordBatch:
    return pa.record_batch([integers([writer]), integers([number])], schema=SCHEMA)


def write_file(storage: Storage, batch: pa.RecordBatch, **partition_values: str) -> dict[str, Any]:
    """Write a data file, and return the body of its `add`."""
    path, content = f"{uuid.uuid4()}.parquet", io.BytesIO()
    pq.write_table(pa.Table.from_batches([batch]), content)
    with storage.open_output(path) as stream:
        stream.write(content.getbuffer())
    return {
        "path": path, "partitionValues": partition_values, "size": content.tell(), "modificationTime": 0,
        "dataChange": True, "stats": json.dumps({"numRecords": batch.num_rows}),
    }  # fmt: skip


def append(log: DeltaLog, way: str, batch: pa.RecordBatch) -> int:
    """Append rows; the version."""
    if way == "transaction":
        add = write_file(log.storage, batch)
        return log.start_transaction().add(add).commit("WRITE", {"mode": "Append"})
    version = (DeltaLog(log.storage.url, log.storage.options) if way == "cold" else log).write(batch)
    assert version is not None
    return version


def work(job: dict[str, Any]) -> Callable[[], list[int]]:
    log = DeltaLog(job["url"], job.get("options"))
    writer = job["writer"]
    log.snapshot()
    return lambda: [append(log, job["way"], row(writer, number)) for number in range(job["commits"])]


def rehearse(folder: Path) -> None:
    DeltaLog(folder).write(NO_ROWS)
    for way in WAYS:
        work({"url": str(folder), "writer": 0, "commits": 5, "way": way})()


if __name__ == "__main__":
    serve(work, rehearse)
