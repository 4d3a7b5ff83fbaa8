"""A process that appends to one table again and again; each row tells who wrote it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_ds.kernel.delta_log import DeltaLog
from delta_ds.kernel.log.arrays import integers
from delta_ds.kernel.schema.types import LONG, StructField, StructType
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.write.arrow import write_batches
from spark_tests.concurrency.workers import serve

SCHEMA = StructType((StructField("writer", LONG), StructField("number", LONG)))
ARROW = pa.schema([("writer", pa.int64()), ("number", pa.int64())])


def rows(writer: int, number: int) -> pa.RecordBatch:
    return pa.record_batch([integers([writer]), integers([number])], schema=ARROW)


def append_through_handle(log: DeltaLog, batch: pa.RecordBatch) -> int:
    """An append by a file and an `add` of one's own, through a handle that remembers the table."""
    add = write_file(log.storage, batch)
    return log.start_transaction().add(add).commit("WRITE", {"mode": "Append"})


def write_file(storage: Storage, batch: pa.RecordBatch, **partition_values: str) -> dict[str, Any]:
    """Write a data file, and return the body of its `add`."""
    path = f"{uuid.uuid4()}.parquet"
    with storage.open_output(path) as stream:
        pq.write_table(pa.table(batch), stream)
    return {
        "path": path, "partitionValues": partition_values, "size": storage.status(path).size,
        "modificationTime": 0, "dataChange": True, "stats": json.dumps({"numRecords": batch.num_rows}),
    }  # fmt: skip


def work(job: dict[str, Any]) -> Callable[[], list[int]]:
    log = DeltaLog(job["url"], job.get("options"))
    writer, commits = job["writer"], job["commits"]

    def append(number: int) -> int:
        batch = rows(writer, number)
        if job["through"] == "handle":
            return append_through_handle(log, batch)
        version = write_batches(log.storage, SCHEMA, [batch])
        assert version is not None
        return version

    log.snapshot()
    return lambda: [append(number) for number in range(commits)]


def rehearse(folder: Path) -> None:
    job = {"url": str(folder), "writer": 0, "commits": 11}
    write_batches(DeltaLog(folder).storage, SCHEMA, [])
    for through in ("handle", "write"):
        work({**job, "through": through})()


if __name__ == "__main__":
    serve(work, rehearse)
