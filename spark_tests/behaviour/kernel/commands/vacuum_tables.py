"""Tables for VACUUM to clean: files of known age, and what is left of them afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from delta_ds import DeltaLog
from delta_ds.testing import Action, TableBuilder

HOUR = 3_600_000
NOW = 1_750_000_000_000
WEEK = 7 * 24
SCHEMA = pa.schema([("id", pa.int64())])


def age(path: Path, hours: float) -> None:
    """Make a file or folder so old, seen from `NOW`."""
    moment = int((NOW - hours * HOUR) * 1_000_000)
    os.utime(path, ns=(moment, moment))


def put(root: Path, path: str, hours: float = 1000, content: bytes = b"12345") -> str:
    """Write a file of an age into a table's folder."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    age(file, hours)
    return path


def add(path: str, **more: Any) -> Action:
    return {
        "add": {
            "path": quote(path, safe="/=-_.~"), "partitionValues": {}, "size": 5, "modificationTime": 1,
            "dataChange": True, **more,
        }
    }  # fmt: skip


def remove(path: str, hours: float | None, **more: Any) -> Action:
    body = {"path": quote(path, safe="/=-_.~"), "dataChange": True, "size": 5, **more}
    return {"remove": body if hours is None else {**body, "deletionTimestamp": int(NOW - hours * HOUR)}}


def cdc(path: str) -> Action:
    return {
        "cdc": {"path": quote(path, safe="/=-_.~"), "partitionValues": {}, "size": 5, "dataChange": False}
    }


def commit(table: TableBuilder, hours: float, *actions: Action) -> int:
    """Commit actions so many hours before `NOW`."""
    version = table.commit(*actions)
    age(table.commit_file(version), hours)
    return version


def new_table(path: Path, **how: Any) -> TableBuilder:
    table = TableBuilder(path)
    table.create(SCHEMA, **how)
    age(table.commit_file(0), 5000)
    return table


def files(root: Path) -> set[str]:
    """The files below a table's folder, but for the log."""
    found = (str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())
    return {path for path in found if not path.startswith("_delta_log/")}


def operations(path: Path) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The history, oldest first: operation, parameters, metrics."""
    entries = reversed(DeltaLog(path).history())
    return [(e["operation"], e["operationParameters"], e["operationMetrics"] or {}) for e in entries]


def texts_of(paths: Iterable[Any]) -> set[str]:
    return {path.as_py() for path in paths}
