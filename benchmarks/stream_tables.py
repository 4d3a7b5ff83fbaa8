"""Tables for the part `streams`: many small commits, the last of them held back to be made at any moment."""

from __future__ import annotations

import json
import os
from pathlib import Path

from benchmarks.log_tables import write_commit

PENDING = "pending"
_FIELDS = (("id", "long"), ("word", "string"))
_CREATED_MS = 1_760_000_000_000


def write_stream_table(path: Path, commits: int, rows: int, pending: int) -> Path:
    """A table with `commits` commits after the first, and `pending` more that are not in its log yet.

    Parameters
    ----------
    rows
        Of each commit, in one file.
    """
    for folder in (path / "_delta_log", path / PENDING):
        folder.mkdir(parents=True)
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in _FIELDS]
    metadata = {
        "id": "0d3e5c1c-6a0e-4a58-9c39-7f2f8d3a8b11",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": _CREATED_MS,
    }
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    first = [json.dumps({"protocol": protocol}), json.dumps({"metaData": metadata})]
    write_commit(path / "_delta_log", 0, first)
    for version in range(1, commits + pending + 1):
        log = path / ("_delta_log" if version <= commits else PENDING)
        write_commit(log, version, [json.dumps({"add": _write_file(path, version, rows)})])
    return path


def _write_file(path: Path, version: int, rows: int) -> dict[str, object]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    first = version * rows
    ids = range(first, first + rows)
    file = path / f"part-{version:05}.parquet"
    pq.write_table(pa.table({"id": pa.array(ids), "word": [f"word {n % 97}" for n in ids]}), file)
    return {
        "path": file.name,
        "partitionValues": {},
        "size": file.stat().st_size,
        "modificationTime": _CREATED_MS + version,
        "dataChange": True,
        "stats": json.dumps({"numRecords": rows}),
    }


def commit_pending(path: Path, version: int) -> None:
    """Make one of the commits that were held back. Standard library only, for the peers too."""
    name = f"{version:020d}.json"
    os.rename(path / PENDING / name, path / "_delta_log" / name)
