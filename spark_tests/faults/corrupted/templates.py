"""Whole tables with all that a log can hold, for the tests that damage them: copies are made of each."""

from __future__ import annotations

import functools
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from delta_ds import DeltaLog
from delta_ds.kernel.commands.dml.delete import delete
from delta_ds.kernel.transaction.alter.definitions import add_constraint
from delta_ds.testing import CheckpointKind, TableBuilder, remove_action

FEATURES = ["deletionVectors", "v2Checkpoint", "timestampNtz"]
WRITER_FEATURES = [
    "appendOnly", "invariants", "changeDataFeed", "domainMetadata", "clustering", "rowTracking", "inCommitTimestamp",
]  # fmt: skip
PROPERTIES = {
    "delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true",
    "delta.enableInCommitTimestamps": "true", "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version",
}  # fmt: skip
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.date32()),
        ("s", pa.struct([("t", pa.string()), ("l", pa.list_(pa.float64()))])),
    ]
)
CHECKPOINTS: tuple[CheckpointKind, ...] = ("v1", "multi-part", "v2-parquet", "v2-json")
# Those of a `TableBuilder`, and one that this package has written.
KINDS = (*CHECKPOINTS, "own")


@functools.cache
def template(kind: str) -> Path:
    """The folder of a table, which nobody may change: one for each of `KINDS`."""
    return written_by_this_package() if kind == "own" else build(cast("CheckpointKind", kind))


def copy_of(kind: str, path: Path) -> Path:
    """A copy of a template at a path."""
    shutil.copytree(template(kind), path)
    return path


def build(kind: CheckpointKind) -> Path:
    """Seven versions, a checkpoint of the fourth, a compaction of the last two, a checksum."""
    table = TableBuilder(tempfile.mkdtemp(prefix="every-"))
    ids = iter(range(0, 10_000, 100))

    def file(*values: int) -> dict[str, Any]:
        rows = pa.table(
            {"id": list(values), "s": [{"t": "x", "l": [1.0]} for _ in values]},
            schema=pa.schema([SCHEMA.field("id"), SCHEMA.field("s")]),
        )
        add = table.write_file(rows, partition_values={"part": f"2024-01-0{values[0]}"})
        add["add"] |= {"baseRowId": next(ids), "defaultRowCommitVersion": 1, "tags": {"k": "v"}}
        return add

    def commit(*actions: dict[str, Any]) -> None:
        table.commit(*actions, inCommitTimestamp=1_700_000_000_000 + table.version)

    domains: dict[str, Any] = {"delta.rowTracking": {"rowIdHighWaterMark": 9999}}
    if kind != "multi-part":
        domains["delta.clustering"] = {"clusteringColumns": [["id"]]}
    table.create(
        SCHEMA, partition_columns=["part"], properties=PROPERTIES, reader_features=FEATURES,
        writer_features=[*FEATURES, *WRITER_FEATURES],
    )  # fmt: skip
    one, two, three = file(1, 2, 3), file(2, 4), file(3)
    first = table.commit_file(0)
    first.write_bytes(
        first.read_bytes().replace(b'{"timestamp"', b'{"inCommitTimestamp":1700000000000,"timestamp"', 1)
    )
    commit(one, two, *({"domainMetadata": {"domain": d, "configuration": json.dumps(c), "removed": False}}
                       for d, c in domains.items()))  # fmt: skip
    commit(remove_action(two), three, {"txn": {"appId": "app", "version": 1, "lastUpdated": 1}})
    commit(remove_action(one), {"add": {**one["add"], "deletionVector": table.deletion_vector([1])}})
    table.checkpoint(kind)
    commit(file(4))
    commit(file(5))
    table.compact(4, 5)
    six = file(6, 7)
    commit({"add": {**six["add"], "deletionVector": table.deletion_vector([0], "i")}})
    table.checksum()
    return table.path


def written_by_this_package() -> Path:
    """Mapped columns, a constraint, clustering, vectors, a feed of changes, a checkpoint and commits after it."""
    path = Path(tempfile.mkdtemp(prefix="every-"))
    log = DeltaLog(path)
    options = {
        "delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true",
        "delta.enableChangeDataFeed": "true", "delta.checkpointPolicy": "v2", "clusterBy": "id",
    }  # fmt: skip
    for number in range(3):
        log.write(rows(number * 10), options={} if number else options)
    add_constraint(log, "positive", "id >= 0", lambda expression: None)
    delete(log, "id IN (3, 14)")
    log.checkpoint()
    log.write(rows(30))
    delete(log, "id = 31")
    return path


def rows(first: int) -> pa.Table:
    """Ten rows for the table of this package."""
    numbers = range(first, first + 10)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": [f"name {n}" for n in numbers],
            "part": pa.array([n % 3 for n in numbers], pa.int32()).cast(pa.date32()),
            "s": [{"t": "x", "l": [float(n)]} for n in numbers],
        }
    )
