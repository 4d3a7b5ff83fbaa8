"""The snapshot cache: right, private, bounded, and never a reason to fail."""

from __future__ import annotations

import os
import shutil
import stat

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.kernel.log import cache, replay
from delta_ds.testing import TableBuilder, remove_action

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DELTA_DS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_WORTHWHILE_FILES", 0)
    return tmp_path / "cache"


@pytest.fixture
def table(tmp_path):
    builder = TableBuilder(tmp_path / "table")
    builder.create(SCHEMA)
    builder.adds = [builder.write_file(pa.table({"id": [i]})) for i in range(6)]
    for add in builder.adds[:4]:
        builder.commit(add)
    return builder


@pytest.fixture
def replayed(monkeypatch):
    """The versions of commits that were replayed."""
    seen = []
    original = replay._take_in

    def spy(commits, *rest):
        seen.extend(commit.version for commit in commits)
        return original(commits, *rest)

    monkeypatch.setattr(replay, "_take_in", spy)
    return seen


def paths(table, version=None):
    return sorted(DeltaLog(table.path).snapshot(version).files()["path"].to_pylist())


def entries(folder):
    return sorted(folder.glob("*/*.arrow"))


def test_a_second_open_replays_nothing(folder, table, replayed):
    first = DeltaLog(table.path).snapshot().files()
    replayed.clear()
    again = DeltaLog(table.path).snapshot().files()
    assert replayed == []
    assert again.equals(first)


def test_a_new_version_replays_only_what_is_new(folder, table, replayed):
    paths(table)
    table.commit(remove_action(table.adds[0]), table.adds[4])
    replayed.clear()
    assert len(paths(table)) == 4
    assert replayed == [5]


@pytest.mark.parametrize("kind", ["v1", "v2-parquet"])
def test_statistics_of_a_checkpoint_are_there_from_the_cache_too(folder, table, kind):
    table.checkpoint(kind)
    before = DeltaLog(table.path).snapshot().files()
    after = DeltaLog(table.path).snapshot().files()
    assert len(entries(folder)) == 1
    assert after["stats"].to_pylist() == before["stats"].to_pylist()
    assert after["stats"].null_count == 0


def test_an_older_version_is_not_answered_by_a_newer_entry(folder, table):
    paths(table)
    assert len(paths(table, 2)) == 2


def test_a_table_made_anew_at_the_same_path_is_not_answered_by_the_old_entry(folder, table):
    old = paths(table)
    shutil.rmtree(table.path)
    fresh = TableBuilder(table.path)
    fresh.create(SCHEMA)
    for i in range(4):
        fresh.append(pa.table({"id": [i]}))
    assert paths(table) == sorted(a["add"]["path"] for v in range(1, 5) for a in fresh._commits[v])
    assert paths(table) != old


@pytest.mark.parametrize("damage", ["truncate", "garbage", "empty", "flip"])
def test_a_corrupted_entry_is_ignored_and_replaced(folder, table, damage):
    good = paths(table)
    (entry,) = entries(folder)
    content = entry.read_bytes()
    at = content.index(b'"version"')
    changed = {
        "truncate": content[: len(content) // 2],
        "garbage": b"x" * len(content),
        "empty": b"",
        "flip": content[:at] + b'"verzion"' + content[at + 9 :],
    }[damage]
    entry.write_bytes(changed)
    assert paths(table) == good
    assert entries(folder)


@pytest.fixture
def entry(folder, table):
    """An entry and what is right, with statistics in it."""
    right = DeltaLog(table.path).snapshot().files()
    (path,) = entries(folder)
    content = path.read_bytes()

    def is_right(damaged):
        for other in entries(folder):
            other.unlink()
        path.write_bytes(damaged)
        return DeltaLog(table.path).snapshot().files().equals(right)

    assert is_right(content)
    return content, is_right


def test_no_flipped_bit_and_no_block_of_zeros_changes_an_answer(entry):
    content, is_right = entry
    for at in range(0, len(content), 61):
        assert is_right(content[:at] + bytes([content[at] ^ 64]) + content[at + 1 :])
    for at in range(0, len(content), 512):
        assert is_right(content[:at] + bytes(len(content[at : at + 512])) + content[at + 512 :])


def test_no_cut_and_nothing_behind_changes_an_answer(entry):
    content, is_right = entry
    for cut in (*range(0, len(content), 997), *range(len(content) - 40, len(content))):
        assert is_right(content[:cut])
    assert is_right(content + b"x")
    assert is_right(content + content)


def test_an_entry_of_many_blocks_is_checked_as_a_whole(folder, table, monkeypatch):
    monkeypatch.setattr(cache, "_BLOCK_BYTES", 512)
    right = paths(table)
    (path,) = entries(folder)
    content = path.read_bytes()
    for at in range(100, len(content), 499):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert paths(table) == right


def test_an_entry_is_on_the_disk_before_it_has_its_name(folder, table, monkeypatch):
    done = []
    fsync, rename = os.fsync, os.replace
    monkeypatch.setattr(cache.os, "fsync", lambda file: (done.append("fsync"), fsync(file)))
    monkeypatch.setattr(cache.os, "replace", lambda a, b: (done.append("replace"), rename(a, b)))
    paths(table)
    assert done == ["fsync", "replace"]


def test_the_folder_is_the_users_alone(folder, table):
    paths(table)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(e.stat().st_mode) == 0o600 for e in entries(folder))


def test_a_folder_that_others_can_enter_is_not_used(folder, table, caplog):
    folder.mkdir()
    os.chmod(folder, 0o755)
    assert len(paths(table)) == 4
    assert "cache_off" in caplog.text
    assert entries(folder) == []


def test_off_means_off(folder, table, monkeypatch):
    monkeypatch.setenv("DELTA_DS_CACHE", "off")
    assert len(paths(table)) == 4
    assert not folder.exists()


def test_the_least_recently_used_entries_go_first(folder, table, monkeypatch):
    paths(table)
    (old,) = entries(folder)
    os.utime(old, (1, 1))
    monkeypatch.setenv("DELTA_DS_CACHE_SIZE", str(old.stat().st_size * 3 // 2))
    table.commit(table.adds[4])
    # The entry of the version before is read on the way, which counts as use; make it old again.
    paths(table)
    assert len(entries(folder)) == 1
    assert entries(folder)[0].name.startswith(f"{5:020d}")


def test_only_its_own_entries_go_from_a_folder_that_holds_other_things(folder, table, monkeypatch, tmp_path):
    paths(table)
    (tmp_path / "home").mkdir()
    own = "0" * 20 + "-" + "a" * 16 + ".arrow"
    others = [folder / "figures" / "sales.arrow", folder / "figures" / own, tmp_path / "home" / own]
    for other in others:
        other.parent.mkdir(exist_ok=True)
        other.write_bytes(b"mine")
        os.utime(other, (1, 1))
    (folder / ("c" * 32)).symlink_to(tmp_path / "home")
    monkeypatch.setenv("DELTA_DS_CACHE_SIZE", "1")
    table.commit(table.adds[4])
    paths(table)
    assert all(other.read_bytes() == b"mine" for other in others)


def test_an_unwritable_cache_is_logged_and_of_no_matter(folder, table, monkeypatch, caplog):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(cache, "_write", fail)
    assert len(paths(table)) == 4
    assert "cache_write_failed" in caplog.text
