"""Small tables written by the kernel, for the tests of this folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_ds import DeltaLog
from delta_ds.kernel.format.schema.types import StructType, parse_schema
from delta_ds.kernel.transaction.alter.create import create_table


def write(path: Path | str, data: pa.Table, mode: str = "append", **options: Any) -> int | None:
    """Write a table of Arrow data as `df.write` would."""
    return DeltaLog(path).write(data, mode, options)


def create(path: Path | str, *fields: dict[str, Any], **how: Any) -> None:
    """Make an empty table of fields in the form of schema JSON; `how` as for `create_table`."""
    create_table(DeltaLog(path), schema(*fields), **how)


def schema(*fields: dict[str, Any]) -> StructType:
    complete = [{"nullable": True, "metadata": {}, **f} for f in fields]
    return parse_schema(json.dumps({"type": "struct", "fields": complete}))


def rows(path: Path | str, version: int | None = None) -> list[dict[str, Any]]:
    """The rows of a version, in a fixed order."""
    found = DeltaLog(path).snapshot(version).scan().to_arrow().to_pylist()
    return sorted(found, key=repr)


def commit(path: Path | str, version: int) -> list[dict[str, Any]]:
    """The actions of a version."""
    text = (Path(path) / "_delta_log" / f"{version:020d}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def actions(path: Path | str, version: int, kind: str) -> list[dict[str, Any]]:
    return [action[kind] for action in commit(path, version) if kind in action]


def info(path: Path | str, version: int) -> dict[str, Any]:
    (found,) = actions(path, version, "commitInfo")
    return found


def data_files(path: Path | str) -> set[str]:
    """Every Parquet file below the table, whether the log refers to it or not."""
    root = Path(path)
    return {str(f.relative_to(root)) for f in root.rglob("*.parquet") if "_delta_log" not in f.parts}
