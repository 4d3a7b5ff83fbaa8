"""What users without Spark hold takes and gives what they hold, and shows nothing of what lies below."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_ds import ChangeFeed, DeltaLog, Scan, Snapshot, Transaction
from delta_ds.api.snapshot import Blame
from delta_ds.testing import TableBuilder


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    log = DeltaLog(tmp_path)
    options = {"delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true"}
    log.write(pa.table({"id": [1, 2]}), options=options)
    log.write(pa.table({"id": [3]}))
    return log


def test_a_scan_is_made_of_a_snapshot_and_knows_it(log: DeltaLog) -> None:
    snapshot = log.snapshot()
    scan = Scan(snapshot, "id > 1", ["id"])
    assert scan.snapshot is snapshot
    assert scan.to_arrow().equals(snapshot.scan("id > 1", ["id"]).to_arrow())
    assert (scan.schema.names, str(scan.predicate)) == (["id"], "(id > 1L)")
    assert snapshot.scan("id > 1").snapshot is snapshot


def test_a_blame_is_made_of_a_snapshot(log: DeltaLog) -> None:
    snapshot = log.snapshot()
    assert Blame(snapshot, "id > 1").to_arrow().equals(snapshot.blame("id > 1").to_arrow())


def test_a_transaction_is_made_of_a_snapshot_and_gives_it_back(log: DeltaLog) -> None:
    snapshot = log.snapshot()
    transaction = Transaction(log.storage, snapshot)
    assert transaction.snapshot is snapshot
    scan = transaction.scan("id > 1")
    assert isinstance(scan, Scan)
    assert scan.snapshot is snapshot
    add = TableBuilder(log.storage.url).write_file(pa.table({"id": [9]}))
    DeltaLog(log.storage.url).write(pa.table({"id": [4]}))
    # What was scanned counts: the other commit brings a row that matches.
    with pytest.raises(Exception, match="DELTA_CONCURRENT_APPEND"):
        transaction.add(add["add"]).remove_live().commit("UPDATE")


def test_a_transaction_on_no_table_has_no_snapshot(tmp_path: Path) -> None:
    assert DeltaLog(tmp_path / "new").start_transaction(create=True).snapshot is None


@pytest.mark.parametrize("kind", [Scan, Blame, ChangeFeed, Snapshot])
def test_nothing_of_the_kernel_is_offered(log: DeltaLog, kind: type) -> None:
    made = {
        Scan: lambda: log.snapshot().scan(), Blame: log.blame, ChangeFeed: lambda: log.changes(0),
        Snapshot: log.snapshot,
    }[kind]()  # fmt: skip
    assert isinstance(made, kind)
    offered = {name for name in dir(made) if not name.startswith("_")}
    below = {"matching", "plan", "pruning", "storage", "reader", "plan_for", "table_state", "live_files"}
    assert offered & below == set()
    assert offered == {name for name in dir(kind) if not name.startswith("_")}
