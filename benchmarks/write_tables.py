"""The small table that commits are measured on, and what they add to it. Standard library only, for the peers too."""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

FIELDS = [("id", "long"), ("event_time", "timestamp"), ("user", "string")]
ROWS = 10
CREATED_MS = 1_760_000_000_000


def write_small_table(root: Path, checkpoint_interval: int) -> Path:
    """Version 0 of a table without files, as an old writer would leave it: any engine can go on from there."""
    log = root / "_delta_log"
    log.mkdir(parents=True)
    schema = {"type": "struct", "fields": [_field(name, kind) for name, kind in FIELDS]}
    metadata = {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, "delta_ds benchmarks")),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": [],
        "configuration": {"delta.checkpointInterval": str(checkpoint_interval)},
        "createdTime": CREATED_MS,
    }
    info = {"timestamp": CREATED_MS, "operation": "CREATE TABLE", "operationParameters": {}}
    actions: list[dict[str, Any]] = [
        {"commitInfo": info},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": metadata},
    ]
    (log / f"{0:020d}.json").write_text("".join(json.dumps(action) + "\n" for action in actions))
    return root


def on_small_table(beside: str, do: Callable[[str], object]) -> None:
    """Do something on a small table in a folder beside another table, gone afterwards: it loads what is needed."""
    with tempfile.TemporaryDirectory(dir=Path(beside).parent) as folder:
        do(str(write_small_table(Path(folder) / "warm", 1000)))


def _field(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def add_body() -> dict[str, Any]:
    """The `add` of a file that only the log knows."""
    stats = {
        "numRecords": ROWS,
        "minValues": {"id": 0, "event_time": "2025-01-01T00:00:00.000Z", "user": "user-0"},
        "maxValues": {"id": 9, "event_time": "2025-01-01T00:09:00.000Z", "user": "user-9"},
        "nullCount": {"id": 0, "event_time": 0, "user": 0},
    }
    return {
        "path": f"part-00000-{uuid.uuid4()}.c000.zstd.parquet",
        "partitionValues": {},
        "size": 1234,
        "modificationTime": CREATED_MS,
        "dataChange": True,
        "stats": json.dumps(stats, separators=(",", ":")),
    }


def rows() -> Any:
    """Ten rows of the table, a `pyarrow.Table`."""
    import pyarrow as pa

    columns = [
        pa.array(range(ROWS), pa.int64()),
        pa.array([1_735_689_600_000_000 + n for n in range(ROWS)], pa.timestamp("us", tz="UTC")),
        pa.array([f"user-{n}" for n in range(ROWS)]),
    ]
    return pa.table(columns, names=[name for name, _ in FIELDS])


def commits_of(root: Path) -> list[int]:
    """The versions in the log of a table."""
    return sorted(int(file.stem) for file in (root / "_delta_log").glob("*.json") if file.stem.isdigit())


def added_in(root: Path) -> int:
    """How many files the commits of a table add, with a path of their own each."""
    paths = []
    for version in commits_of(root):
        text = (root / "_delta_log" / f"{version:020d}.json").read_text()
        actions = [json.loads(line) for line in text.splitlines()]
        paths += [action["add"]["path"] for action in actions if "add" in action]
    if len(set(paths)) != len(paths):
        raise RuntimeError(f"{root} has a file added twice")
    return len(paths)
