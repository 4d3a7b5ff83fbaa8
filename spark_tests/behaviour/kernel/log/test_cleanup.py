"""Log clean-up deletes what is old enough, and never what a kept version needs."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds.kernel.log.cleanup import clean_up
from delta_ds.kernel.log.segment import find_segment
from delta_ds.kernel.log.snapshot import open_snapshot
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.transaction.post_commit import write_checkpoint
from delta_ds.testing import TableBuilder, protocol_action, remove_action

DAY_MS = 86_400_000
# Midnight UTC.
START_MS = 20_000 * DAY_MS
SCHEMA = pa.schema([("id", pa.int64())])
RETENTION = {"delta.logRetentionDuration": "interval 2 days"}


def _table(
    folder: Path,
    commits: int = 8,
    checkpoints: tuple[int, ...] = (3, 6),
    features: tuple[str, ...] = (),
    **more: str,
) -> TableBuilder:
    """A commit a day at noon from `START_MS` on."""
    table = TableBuilder(folder)
    table.create(SCHEMA, properties={**RETENTION, **more}, writer_features=features or None)
    if "v2Checkpoint" in features:
        table = TableBuilder(folder)
        table.create(
            SCHEMA, properties={**RETENTION, **more}, reader_features=features, writer_features=features
        )
    for number in range(1, commits):
        table.commit({"add": {"path": f"f{number}", "partitionValues": {}, "size": 1, "modificationTime": 0}})
    storage = open_storage(folder)
    for version in checkpoints:
        write_checkpoint(storage, find_segment(storage, version), now_ms=START_MS)
    _set_times(table)
    return table


def _set_times(table: TableBuilder) -> None:
    for version in range(table.version + 1):
        moment = (START_MS + version * DAY_MS + DAY_MS // 2) * 1_000_000
        os.utime(table.commit_file(version), ns=(moment, moment))


def _names(table: TableBuilder) -> list[str]:
    return sorted(p.name for p in table.log.iterdir() if p.is_file())


def _commits(table: TableBuilder) -> list[int]:
    return [int(name[:20]) for name in _names(table) if name.endswith(".json") and name[:20].isdigit()]


def _clean(table: TableBuilder, day: float, **how: timedelta) -> list[str]:
    return clean_up(open_storage(table.path), int(START_MS + day * DAY_MS), **how)


def _readable(table: TableBuilder) -> list[int]:
    """The versions that can be read, each with all the files it had."""
    storage = open_storage(table.path)
    return [v for v in _commits(table) if open_snapshot(storage, v).live_files().num_rows == v]


@pytest.mark.parametrize(
    ("day", "first"), [(4.0, 0), (6.9, 3), (6.0, 3), (5.9, 0), (8.9, 3), (9.0, 6), (50.0, 6)]
)
def test_everything_before_the_newest_expired_checkpoint_goes(tmp_path: Path, day: float, first: int) -> None:
    # Version v is a day and a half behind the midnight cut-off of day v + 3 with two days of retention.
    table = _table(tmp_path)
    deleted = _clean(table, day)
    assert _commits(table) == list(range(first, 8))
    assert _readable(table) == _commits(table)
    assert len(deleted) == {0: 0, 3: 3, 6: 7}[first]


def test_checksums_compactions_and_torn_parts_go_with_their_versions(tmp_path: Path) -> None:
    table = _table(tmp_path)
    for version in (1, 6, 7):
        table.checksum(version)
    table.compact(1, 2)
    table.compact(6, 7)
    (table.log / f"{2:020d}.checkpoint.{1:010d}.{2:010d}.parquet").write_bytes(b"x")
    (table.log / f".{1:020d}.json.crc").write_bytes(b"x")
    (table.log / "notes.txt").write_bytes(b"x")
    _clean(table, 50)
    stem = "00000000000000000006"
    assert _names(table) == [
        f"{stem}.checkpoint.parquet", f"{stem}.crc", f"{stem}.json", f"{7:020d}.crc", f"{7:020d}.json",
        "_last_checkpoint", "notes.txt",
    ]  # fmt: skip


def test_without_a_checkpoint_nothing_goes(tmp_path: Path) -> None:
    table = _table(tmp_path, checkpoints=())
    assert _clean(table, 50) == []
    assert _commits(table) == list(range(8))


@pytest.mark.parametrize("damage", ["torn", "truncated"])
def test_damaged_checkpoint_is_not_relied_on(tmp_path: Path, damage: str) -> None:
    table = _table(tmp_path)
    file = table.log / f"{6:020d}.checkpoint.parquet"
    file.write_bytes(b"" if damage == "torn" else file.read_bytes()[:-30])
    _clean(table, 50)
    assert _commits(table) == [3, 4, 5, 6, 7]


@pytest.mark.parametrize("features", [(), ("v2Checkpoint",)])
@pytest.mark.parametrize("column", ["add.path", "add.size", "add.stats", "remove.path"])
def test_checkpoint_whose_rows_are_damaged_is_not_relied_on(
    tmp_path: Path, column: str, features: tuple[str, ...]
) -> None:
    table = _table(tmp_path, checkpoints=(3,), features=features)
    table.commit(remove_action({"add": {"path": "f1", "size": 1}}, START_MS), {"add": _STATISTICS})
    storage = open_storage(tmp_path)
    write_checkpoint(storage, find_segment(storage), now_ms=START_MS)
    _set_times(table)
    found = [*table.log.glob(f"{8:020d}.checkpoint*"), *table.log.glob("_sidecars/*")]
    assert any(_spoil(file, column) for file in found)
    _clean(table, 50)
    assert _commits(table) == [3, 4, 5, 6, 7, 8]
    assert open_snapshot(storage).live_files().num_rows == 7


_STATISTICS = {
    "path": "f8", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True,
    "stats": '{"numRecords":1,"minValues":{"id":1},"maxValues":{"id":1},"nullCount":{"id":0}}',
}  # fmt: skip


def _spoil(file: Path, column: str) -> bool:
    """Turn the bits of a column's pages; its footer, and all else, stays as it is."""
    data, footer = bytearray(file.read_bytes()), pq.read_metadata(file)
    spoiled = False
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.path_in_schema == column and chunk.statistics.null_count < group.num_rows:
                start = chunk.dictionary_page_offset or chunk.data_page_offset
                for at in range(start, start + chunk.total_compressed_size):
                    data[at] ^= 0x55
                spoiled = True
    file.write_bytes(data)
    return spoiled


def test_switched_off_nothing_goes_unless_a_retention_is_given(tmp_path: Path) -> None:
    table = _table(tmp_path, **{"delta.enableExpiredLogCleanup": "false"})
    assert _clean(table, 50) == []
    assert _clean(table, 50, retention=timedelta(days=2))


def test_times_that_run_backwards_count_as_increasing(tmp_path: Path) -> None:
    table = _table(tmp_path)
    late = (START_MS + 40 * DAY_MS) * 1_000_000
    os.utime(table.commit_file(4), ns=(late, late))
    _clean(table, 30)
    assert _commits(table) == [3, 4, 5, 6, 7]


@pytest.mark.parametrize(("before", "first"), [(6, 6), (7, 0)])
def test_protected_history_goes_in_one_pass_or_stays(tmp_path: Path, before: int, first: int) -> None:
    protection = {"delta.requireCheckpointProtectionBeforeVersion": str(before)}
    table = _table(tmp_path, features=("checkpointProtection",), **protection)
    _clean(table, 50)
    assert _commits(table) == list(range(first, 8))


def _v2(folder: Path) -> TableBuilder:
    return _table(folder, features=("v2Checkpoint",), **{"delta.checkpointPolicy": "v2"})


def _age(table: TableBuilder, day: float) -> None:
    for file in (table.log / "_sidecars").iterdir():
        moment = int(START_MS + day * DAY_MS) * 1_000_000
        os.utime(file, ns=(moment, moment))


def test_sidecars_go_with_the_last_checkpoint_that_names_them(tmp_path: Path) -> None:
    table = _v2(tmp_path)
    before = {p.name for p in (table.log / "_sidecars").iterdir()}
    (table.log / "_sidecars" / "lost.parquet").write_bytes(b"x")
    _age(table, 40)
    _clean(table, 50)
    left = {p.name for p in (table.log / "_sidecars").iterdir()}
    assert len(left) == 1 and left < before
    assert _readable(table) == [6, 7]


def test_sidecars_of_the_last_day_stay(tmp_path: Path) -> None:
    table = _v2(tmp_path)
    (table.log / "_sidecars" / "unfinished.parquet").write_bytes(b"x")
    _age(table, 49.5)
    _clean(table, 50)
    assert (table.log / "_sidecars" / "unfinished.parquet").exists()


def test_without_the_feature_only_sidecars_that_an_expired_checkpoint_names_go(tmp_path: Path) -> None:
    """What else is in such a folder has never been the log's."""
    table = _v2(tmp_path)
    table.commit(protocol_action())
    write_checkpoint(open_storage(tmp_path), find_segment(open_storage(tmp_path), 8), now_ms=START_MS)
    _set_times(table)
    before = {p.name for p in (table.log / "_sidecars").iterdir()}
    (table.log / "_sidecars" / "family.parquet").write_bytes(b"x")
    _age(table, 40)
    _clean(table, 50)
    assert len(before) == 2
    assert [p.name for p in (table.log / "_sidecars").iterdir()] == ["family.parquet"]


def test_a_table_that_never_had_sidecars_loses_none(tmp_path: Path) -> None:
    table = _table(tmp_path)
    (table.log / "_sidecars").mkdir()
    (table.log / "_sidecars" / "family.parquet").write_bytes(b"x")
    _age(table, 40)
    assert _clean(table, 50)
    assert (table.log / "_sidecars" / "family.parquet").exists()


def test_old_clients_find_a_classic_name_before_v2_logs_shrink(tmp_path: Path) -> None:
    table = _v2(tmp_path)
    _clean(table, 50)
    classic = table.log / f"{6:020d}.checkpoint.parquet"
    rows = pq.read_table(classic, columns=["protocol"]).to_pylist()
    (protocol,) = [row["protocol"] for row in rows if row["protocol"]]
    assert "v2Checkpoint" in protocol["readerFeatures"]
    (unique,) = [p for p in table.log.glob("*.checkpoint.*-*.parquet")]
    unique.unlink()
    assert _readable(table) == [6, 7]
