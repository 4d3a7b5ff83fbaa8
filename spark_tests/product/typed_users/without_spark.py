"""What a user writes without Spark. Type checkers read this file, nothing runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from typing_extensions import assert_type

from delta_ds import ChangeFeed, DeltaLog, Scan, Snapshot, Transaction
from delta_ds.exceptions import InvalidOptionError, VersionNotFoundError
from delta_ds.testing import TableBuilder, protocol_action, remove_action


def look(path: Path) -> Sequence[Mapping[str, object]]:
    log = DeltaLog(path, {"key": "secret"})
    snapshot = log.snapshot()
    assert_type(snapshot, Snapshot)
    assert_type(log.snapshot(3), Snapshot)
    assert_type(log.snapshot(timestamp=datetime.now(timezone.utc)), Snapshot)
    assert_type(snapshot.version, int)
    assert_type(snapshot.timestamp, int)
    assert_type(snapshot.schema.names, "list[str]")
    assert_type(snapshot.partition_columns, "list[str]")
    assert_type(snapshot.properties, "dict[str, str]")
    assert_type(snapshot.txns, "dict[str, int]")
    assert_type(snapshot.domains, "dict[str, str]")
    assert_type(snapshot.protocol.min_reader, int)
    assert_type(snapshot.detail()["numFiles"], int)
    assert_type(log.history()[0]["operation"], "str | None")
    assert_type(log.checkpoint(), int)
    return log.history(limit=5)


def read(log: DeltaLog) -> None:
    scan = log.snapshot().scan("id > 3", ["id", "name"], timezone="UTC", metadata_columns=["file_path"])
    assert_type(scan, Scan)
    assert_type(scan.count(), int)
    assert_type(scan.num_files, int)
    scan.to_arrow()
    scan.to_reader(max_bytes=1 << 20)
    scan.to_pandas()
    scan.to_polars()
    scan.to_duckdb()
    scan.files()
    scan.explain()
    scan.min("id")
    scan.max("id")
    for batch in scan.to_batches():
        print(batch.num_rows)
    log.snapshot().files("id > 3")
    feed = log.changes(0, 3)
    assert_type(feed, ChangeFeed)
    assert_type(feed.start, int)
    feed.to_arrow()
    log.changes(starting_timestamp=datetime.now(timezone.utc), ending_timestamp=0)


def frames(table: DeltaLog | Snapshot) -> None:
    table.to_pandas("id > 3", ["id"])
    table.to_polars("id > 3", ["id"], timezone="UTC")
    table.to_duckdb()
    table.to_pyarrow_dataset(columns=["id"])
    table.to_arrow()


def maintain(log: DeltaLog, path: Path) -> None:
    assert_type(log.optimize("day = 1", max_file_size=1 << 20).version, "int | None")
    assert_type(log.zorder(["id"]).metrics, "dict[str, object]")
    assert_type(log.vacuum(24, dry_run=True, mode="lite").num_files, int)
    assert_type(log.add_constraint("positive", "id > 0"), int)
    assert_type(log.drop_constraint("positive", if_exists=True), int)
    assert_type(log.set_properties({"delta.appendOnly": True}), int)
    assert_type(log.unset_properties(["delta.appendOnly"]), int)
    assert_type(log.add_feature("deletionVectors"), int)
    assert_type(log.clone(path, shallow=True, replace_existing=True).version, int)
    restored = log.restore(timestamp="2026-01-01")
    converted = log.convert()
    if restored is not None and converted is not None:
        assert_type(restored.version, int)
        assert_type(converted.num_converted_files, int)


def write(log: DeltaLog, rows: Any) -> int | None:
    version = log.write(rows, mode="append", options={"mergeSchema": True})
    assert_type(version, "int | None")
    transaction = log.start_transaction(create=True, engine_info="mine")
    assert_type(transaction, Transaction)
    assert_type(transaction.read_version, int)
    assert_type(transaction.scan("id = 1"), Scan)
    assert_type(transaction.read_app_id("app"), "int | None")
    committed = transaction.set_txn("app", 1).remove_live().commit("DELETE", {"predicate": "[]"})
    assert_type(committed, int)
    return version


def build(path: Path, rows: Any) -> None:
    table = TableBuilder(path)
    assert_type(table.version, int)
    assert_type(table.append(rows, partition_values={"day": "1"}), int)
    add = table.write_file(rows, stats=False)
    assert_type(add, "dict[str, dict[str, Any]]")
    assert_type(table.commit(add, remove_action(add), protocol_action(["deletionVectors"])), int)
    assert_type(table.delete_rows(add, [1, 2]), int)
    assert_type(table.raw_commit(b"{"), int)
    assert_type(table.checkpoint("v2-json", parts=3), "list[Path]")


def fail(log: DeltaLog) -> None:
    try:
        log.snapshot(99)
    except VersionNotFoundError as error:
        assert_type(error.parameters, "dict[str, Any]")
    except (InvalidOptionError, FileNotFoundError) as error:
        raise SystemExit(1) from error
