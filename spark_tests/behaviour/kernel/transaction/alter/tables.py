"""Small tables for the tests of this folder, and what their logs say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.format.schema.types import INTEGER, LONG, STRING, StructField, StructType
from delta_ds.kernel.transaction.alter.create import create_table
from delta_ds.testing import TableBuilder

PLAIN = StructType((StructField("id", LONG), StructField("v", INTEGER)))
NESTED = StructType(
    (
        StructField("id", LONG),
        StructField("s", StructType((StructField("a", INTEGER), StructField("b", STRING)))),
        StructField("p", INTEGER),
    )
)


def made(path: Path, schema: StructType = PLAIN, **how: Any) -> DeltaLog:
    """A table without rows."""
    log = DeltaLog(path)
    create_table(log, schema, **how)
    return log


def with_rows(path: Path, properties: Mapping[str, str] | None = None, files: int = 1) -> DeltaLog:
    """A legacy table (1, 2) of `id` and `v`, each file with the rows 1 and 2."""
    table = TableBuilder(str(path))
    table.create(pa.schema([("id", pa.int64()), ("v", pa.int32())]), properties=dict(properties or {}))
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "v": pa.array([1, 2], pa.int32())})
    for _ in range(files):
        table.append(rows)
    return DeltaLog(path)


def actions(log: DeltaLog, version: int) -> list[dict[str, Any]]:
    """The actions of a commit."""
    data = log.storage.read(f"_delta_log/{version:020}.json")
    return [json.loads(line) for line in data.decode().splitlines()]


def action(log: DeltaLog, version: int, name: str) -> Any:
    """The body of the only action of that name in a commit; None without one."""
    found = [a[name] for a in actions(log, version) if name in a]
    assert len(found) <= 1
    return found[0] if found else None


def protocol(log: DeltaLog) -> tuple[int, int, list[str] | None, list[str] | None]:
    """Versions and sorted feature lists."""
    found = log.snapshot().protocol
    lists = (found.reader_features, found.writer_features)
    readers, writers = (None if names is None else sorted(names) for names in lists)
    return found.min_reader, found.min_writer, readers, writers
