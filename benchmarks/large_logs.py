"""Logs of millions of files in seconds: a V2 checkpoint with statistics as text, and commits after it.

As `log_tables.py`, but a column at a time: each file's content follows from its number alone. Paths are random, as
names with UUIDs are, so that they compress as badly.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.log_tables import (
    CREATED_MS,
    DAYS,
    FIRST_DAY,
    PARTITION,
    ROWS_PER_FILE,
    SIDECAR_ROWS,
    FileRange,
    add_lines,
    commit_info,
    header_lines,
    remove_lines,
    stable_uuid,
    write_commit,
)

_FIRST_DAY = FIRST_DAY.toordinal() - 719_163  # days since 1970
_FIRST_MS = _FIRST_DAY * 86_400_000
_NULL_COUNT = '{"id":0,"event_time":0,"user":0,"city":0,"amount":0,"price":0,"quantity":0,"sold_on":0}'
FILES_OF_COMMIT = 11


def write_large_log(root: Path, files: int, commits: int = 0) -> Path:
    """Write a table of `files` live files that is only a log.

    Parameters
    ----------
    commits
        So many commits after the checkpoint add eleven files each and remove one of the commit before.
    """
    in_checkpoint = max(files - (FILES_OF_COMMIT - 1) * commits - 1, 0) if commits else files
    log = root / "_delta_log"
    (log / "_sidecars").mkdir(parents=True)
    write_commit(log, 1, [commit_info(1)])
    lines = [json.dumps({"checkpointMetadata": {"version": 1}}), *header_lines(["v2Checkpoint"])]
    for start in range(0, in_checkpoint, SIDECAR_ROWS):
        name = f"{stable_uuid(start, salt=7)}.parquet"
        file = log / "_sidecars" / name
        pq.write_table(_adds(start, min(start + SIDECAR_ROWS, in_checkpoint)), file, compression="snappy")
        body = {"path": name, "sizeInBytes": file.stat().st_size, "modificationTime": CREATED_MS}
        lines.append(json.dumps({"sidecar": body}))
    name = f"{1:020d}.checkpoint.{stable_uuid(1, salt=8)}.json"
    (log / name).write_text("\n".join(lines) + "\n")
    (log / "_last_checkpoint").write_text(json.dumps({"version": 1, "size": len(lines)}))
    for n in range(commits):
        start = in_checkpoint + FILES_OF_COMMIT * n
        added = add_lines(FileRange(start, start + FILES_OF_COMMIT))
        removed = remove_lines(FileRange(start - 1, start)) if n else []
        write_commit(log, 2 + n, [commit_info(2 + n), *added, *removed])
    return root


def live_files(files: int, commits: int) -> int:
    """How many files are live in a table that `write_large_log` made."""
    return files if not commits else max(files, (FILES_OF_COMMIT - 1) * commits + 1)


def _adds(start: int, stop: int) -> pa.Table:
    numbers = np.arange(start, stop, dtype=np.int64)
    days = pa.array((numbers % DAYS + _FIRST_DAY).astype(np.int32)).cast(pa.date32()).cast(pa.string())
    chance = np.random.default_rng(start)
    names = [_text(chance.integers(10**15, 10**16, len(numbers))) for _ in range(2)]
    path = _join("day=", days, "/part-", _text(10_000 + numbers % 200), "-", *names, ".c000.snappy.parquet")
    values = pa.MapArray.from_arrays(
        pa.array(range(len(numbers) + 1), pa.int32()), pa.array([PARTITION] * len(numbers)), days
    )
    columns = {
        "path": path,
        "partitionValues": values,
        "size": pa.array(30_000 + numbers % 5000),
        "modificationTime": pa.array(CREATED_MS + numbers),
        "dataChange": pa.array(np.zeros(len(numbers), dtype=bool)),
        "stats": _stats(numbers, days),
    }
    return pa.table({"add": pa.StructArray.from_arrays(list(columns.values()), list(columns))})


def _stats(numbers: Any, days: pa.Array) -> pa.Array:
    low = _bounds(numbers, days, 0, 0, ("Aachen", 0.25, 1))
    high = _bounds(numbers, days, ROWS_PER_FILE - 1, 59_000, ("Zwolle", 99.75, 99))
    head = f'{{"numRecords":{ROWS_PER_FILE},"minValues":'
    return _join(head, low, ',"maxValues":', high, f',"nullCount":{_NULL_COUNT}}}')


def _bounds(numbers: Any, days: pa.Array, last: int, last_ms: int, fixed: tuple[str, float, int]) -> pa.Array:
    city, amount, quantity = fixed
    times = pa.array(_FIRST_MS + 60_000 * numbers + last_ms).cast(pa.timestamp("ms", "UTC"))
    return _join(
        '{"id":', _text(numbers * ROWS_PER_FILE + last),
        ',"event_time":"', pc.strftime(times, "%Y-%m-%dT%H:%M:%SZ"),
        '","user":"user-', _text(100_000_000 + numbers), f'","city":"{city}","amount":', _text(numbers + amount),
        ',"price":', _text(numbers % 900), f'.25,"quantity":{quantity},"sold_on":"', days, '"}',
    )  # fmt: skip


def _text(values: Any) -> pa.Array:
    return pa.array(values).cast(pa.string())


def _join(*parts: str | pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*(pa.scalar(p) if isinstance(p, str) else p for p in parts), "")
