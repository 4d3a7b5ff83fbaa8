"""What the tests of commands on whole tables share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_ds.api.delta_log import DeltaLog
from delta_ds.kernel.transaction.transaction import Transaction
from delta_ds.testing import TableBuilder

IDS = pa.schema([("id", pa.int64())])


def ids(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def rows(log: DeltaLog, version: int | None = None) -> list[int]:
    """The ids of a version, in order."""
    return sorted(log.snapshot(version).scan(columns=["id"]).to_arrow()["id"].to_pylist())


def bodies(log: DeltaLog, version: int, name: str) -> list[dict[str, Any]]:
    """The bodies of the actions of one kind in a commit."""
    lines = log.storage.read(f"_delta_log/{version:020}.json").decode().splitlines()
    return [action[name] for line in lines for action in [json.loads(line)] if name in action]


def with_vector(path: Path) -> tuple[TableBuilder, DeltaLog]:
    """Version 1: rows 1, 2, 3 in one file; version 2: its row 1 deleted by a deletion vector."""
    table = TableBuilder(path)
    table.create(IDS, properties={"delta.enableDeletionVectors": "true"}, reader_features=["deletionVectors"])
    add = table.write_file(ids(1, 2, 3))
    table.commit(add)
    table.delete_rows(add, [0])
    return table, DeltaLog(path)


def commit_before(monkeypatch: Any, other: DeltaLog, rows_of_it: pa.Table) -> None:
    """Let another writer append just before the next commit of a transaction."""
    own = Transaction.commit

    def late(self: Transaction, *args: Any, **how: Any) -> int:
        monkeypatch.setattr(Transaction, "commit", own)
        other.write(rows_of_it)
        return own(self, *args, **how)

    monkeypatch.setattr(Transaction, "commit", late)
