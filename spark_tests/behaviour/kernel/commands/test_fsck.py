"""FSCK finds what is wrong with a table, names it, and finds nothing in a table that is right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import NotADeltaTableError
from delta_ds.kernel.commands.dml.delete import delete
from delta_ds.kernel.commands.fsck import check
from delta_ds.kernel.log.filenames import checksum_path
from delta_ds.kernel.storage.log_store import relative_commit_path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Versions up to 15: partitions with odd names, a checkpoint, removed files and a deletion vector."""
    log = DeltaLog(tmp_path / "t")
    options = {"partitionBy": "p", "delta.enableDeletionVectors": "true"}
    for version in range(12):
        rows = pa.table({"id": [version, version + 100], "p": ["a b", "ü%/c"]})
        log.write(rows, options=options if version == 0 else {})
    log.write(pa.table({"id": [1], "p": ["a b"]}), "overwrite", {"replaceWhere": "id < 3"})
    log.write(pa.table({"id": range(1000, 2000), "p": ["a b"] * 1000}))
    for rest in range(2):
        delete(log, f"id >= 1000 AND id % 2 = {rest} AND id < {1998 + rest}")
    return tmp_path / "t"


def found(table: Path, **how: bool) -> list[tuple[str, str]]:
    return [(finding.kind.name, finding.path) for finding in check(DeltaLog(table), **how)]


def data_file(table: Path) -> Path:
    return next(
        path
        for path in sorted(table.rglob("*.parquet"))
        if "_delta_log" not in str(path) and _is_live(table, path)
    )


def _is_live(table: Path, path: Path) -> bool:
    live = DeltaLog(table).open_snapshot().live_files().table
    plain = [
        live["path"][n].as_py() for n in range(live.num_rows) if live["deletionVector"][n].as_py() is None
    ]
    return any(path.name in name for name in plain)


@pytest.mark.parametrize("contents", [False, True])
def test_nothing_is_found_in_a_table_that_is_right(table: Path, contents: bool) -> None:
    assert found(table, contents=contents) == []


def test_a_missing_data_file_is_damage(table: Path) -> None:
    gone = data_file(table)
    gone.unlink()
    ((kind, path),) = found(table)
    assert kind == "missing_file"
    assert path.endswith(gone.name)


def test_a_missing_deletion_vector_is_damage(table: Path) -> None:
    vectors = sorted(table.rglob("deletion_vector_*.bin"), key=lambda path: path.stat().st_mtime_ns)
    vectors[-1].unlink()
    assert [kind for kind, _ in found(table)] == ["missing_deletion_vector"]


def test_a_file_that_was_cut_off_is_damage(table: Path) -> None:
    short = data_file(table)
    short.write_bytes(short.read_bytes()[:-8])
    assert [kind for kind, _ in found(table)] == ["wrong_size"]
    kinds = [kind for kind, _ in found(table, contents=True)]
    assert kinds == ["wrong_size", "unreadable_file"]


def test_a_file_of_no_version_is_told_however_young(table: Path) -> None:
    (table / "p=x").mkdir()
    (table / "p=x" / "orphan.parquet").write_bytes(b"123")
    findings = list(check(DeltaLog(table)))
    assert [(f.kind.name, f.path, f.kind.damage) for f in findings] == [
        ("unreferenced_file", "p=x/orphan.parquet", False)
    ]


def test_statistics_that_count_other_rows_are_damage(table: Path) -> None:
    commit = table / relative_commit_path(15)
    text = commit.read_text()
    assert '\\"numRecords\\":1000' in text
    commit.write_text(text.replace('\\"numRecords\\":1000', '\\"numRecords\\":999'))
    findings = list(check(DeltaLog(table), contents=True))
    assert [(f.kind.name, f.detail) for f in findings] == [
        ("wrong_statistics", "1000 rows, and the log says 999")
    ]


def test_files_without_statistics_are_odd(table: Path) -> None:
    lines = (table / relative_commit_path(15)).read_text().splitlines()
    actions = [json.loads(line) for line in lines]
    for action in actions:
        action.get("add", {}).pop("stats", None)
    (table / relative_commit_path(15)).write_text("".join(json.dumps(action) + "\n" for action in actions))
    assert [kind for kind, _ in found(table, contents=True)] == ["no_statistics"]


def _gap_between_checkpoints(table: Path) -> None:
    last = DeltaLog(table).checkpoint()
    assert sum(1 for _ in (table / "_delta_log").glob("*.checkpoint*.parquet")) == 2
    (table / relative_commit_path(last - 1)).unlink()


LOG_DAMAGE: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    "a commit is gone": (lambda t: (t / relative_commit_path(4)).unlink(), ["missing_commit"]),
    "two commits are gone": (
        lambda t: [(t / relative_commit_path(v)).unlink() for v in (4, 5)] and None,
        ["missing_commit"],
    ),
    "a commit between two checkpoints is gone": (_gap_between_checkpoints, ["missing_commit"]),
    "a commit is cut off": (
        lambda t: (t / relative_commit_path(4)).write_bytes((t / relative_commit_path(4)).read_bytes()[:-20]) and None,
        ["unreadable_commit"],
    ),
    "a commit is no JSON": (
        lambda t: (t / relative_commit_path(4)).write_bytes(b"not json\n") and None,
        ["unreadable_commit"],
    ),
    "a checkpoint is damaged": (
        lambda t: next((t / "_delta_log").glob("*.checkpoint*.parquet")).write_bytes(b"PAR1 nothing PAR1") and None,
        ["unreadable_checkpoint"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("damage", LOG_DAMAGE)
def test_damage_of_the_log_is_named(table: Path, damage: str) -> None:
    harm, kinds = LOG_DAMAGE[damage]
    harm(table)
    assert [kind for kind, _ in found(table)] == kinds


def test_a_checkpoint_that_lost_a_file_is_held_against_the_commits(table: Path) -> None:
    checkpoint = next((table / "_delta_log").glob("*.checkpoint*.parquet"))
    rows = pq.read_table(checkpoint)
    adds = [n for n in range(rows.num_rows) if rows["add"][n].as_py() is not None]
    pq.write_table(rows.take([n for n in range(rows.num_rows) if n != adds[0]]), checkpoint)
    kinds = [kind for kind, _ in found(table)]
    assert kinds[0] == "wrong_checkpoint"
    assert "unreferenced_file" not in kinds[:1]


def test_a_checksum_that_counts_other_files_is_odd(table: Path) -> None:
    path = table / checksum_path(DeltaLog(table).snapshot().version)
    body = json.loads(path.read_text())
    path.write_text(json.dumps({**body, "numFiles": 99}))
    assert [kind for kind, _ in found(table)] == ["wrong_checksum"]


def test_a_newest_version_that_cannot_be_read_is_told_with_the_log(table: Path) -> None:
    newest = sorted((table / "_delta_log").glob("*.json"))[-1]
    newest.write_bytes(b"{")
    kinds = [kind for kind, _ in found(table)]
    assert kinds[0] == "unreadable_version"
    assert "unreadable_commit" in kinds


def test_a_folder_without_a_log_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(NotADeltaTableError):
        list(check(DeltaLog(tmp_path)))
