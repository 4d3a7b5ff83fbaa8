"""Small tables for transactions to meet on; their data files are never opened, so there are none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.format.actions import Metadata, Protocol

Action = dict[str, dict[str, Any]]

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "p", "type": "integer", "nullable": True, "metadata": {}},
        ],
    }
)
LEGACY = Protocol(1, 2)
SERIALIZABLE = {"delta.isolationLevel": "Serializable"}


def features(*names: str, reader: Sequence[str] = ()) -> Protocol:
    """A protocol that lists features, the usual ones included."""
    writer = frozenset(["appendOnly", "invariants", *names, *reader])
    return Protocol(3 if reader else 1, 7, frozenset(reader) if reader else None, writer)


def metadata(
    configuration: Mapping[str, str] | None = None, partitioned: bool = True, schema: str = SCHEMA
) -> Metadata:
    return Metadata(
        "the-table", schema, ("p",) if partitioned else (), dict(configuration or {}), created_time=1
    )


def add(path: str, p: int | None = None, *, partitioned: bool = True, **more: Any) -> dict[str, Any]:
    values = {"p": None if p is None else str(p)} if partitioned else {}
    return {
        "path": path, "partitionValues": values, "size": 100, "modificationTime": 1, "dataChange": True, **more,
    }  # fmt: skip


def remove(path: str, p: int | None = None, **more: Any) -> dict[str, Any]:
    return {
        "path": path, "deletionTimestamp": 2, "dataChange": True, "extendedFileMetadata": True,
        "partitionValues": {"p": None if p is None else str(p)}, "size": 100, **more,
    }  # fmt: skip


def stats(low: int, high: int, rows: int = 10) -> str:
    return json.dumps(
        {"numRecords": rows, "minValues": {"id": low}, "maxValues": {"id": high}, "nullCount": {"id": 0}}
    )


def make_table(
    path: Path,
    adds: Iterable[Mapping[str, Any]] = (),
    *,
    configuration: Mapping[str, str] | None = None,
    partitioned: bool = True,
    protocol: Protocol = LEGACY,
    more: Iterable[Action] = (),
) -> DeltaLog:
    """Write version 0, and open it."""
    (path / "_delta_log").mkdir(parents=True)
    actions: list[Any] = [
        {"commitInfo": {"timestamp": 1, "operation": "CREATE TABLE", "inCommitTimestamp": 1000}},
        {"protocol": protocol.to_action()},
        {"metaData": metadata(configuration, partitioned).to_action()},
        *({"add": body} for body in adds),
        *more,
    ]
    write_commit(path, 0, actions)
    return DeltaLog(path)


def write_commit(path: Path, version: int, actions: Iterable[Mapping[str, Any]]) -> None:
    """Put a commit there as another engine would have."""
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (path / "_delta_log" / f"{version:020d}.json").write_text(text)


def info(operation: str = "WRITE", *, blind: bool | None = False, **more: Any) -> Action:
    body: dict[str, Any] = {"timestamp": 5, "operation": operation, **more}
    return {"commitInfo": body if blind is None else {**body, "isBlindAppend": blind}}


def read_commit(path: Path, version: int) -> list[Action]:
    text = (path / "_delta_log" / f"{version:020d}.json").read_text()
    return [json.loads(line) for line in text.split("\n") if line]


def bodies(actions: Iterable[Action], name: str) -> list[dict[str, Any]]:
    return [action[name] for action in actions if name in action]
