"""Pipes, sockets, devices and folders in the place of files: an answer or an error by name, at once, and no waiting."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import DataFileError, DeltaError, StorageError
from delta_ds.kernel.commands.dml.delete import delete
from delta_ds.kernel.storage.filesystem import NotAFileError
from delta_ds.kernel.storage.local import LocalStorage
from delta_ds.kernel.storage.open import open_storage
from delta_ds.testing import TableBuilder
from spark_tests.faults.corrupted.damage import NO_FILES, files_below, put_in_place
from spark_tests.faults.corrupted.every_command import EVERY, attempt_all, bounded
from spark_tests.faults.corrupted.tables import IDS, read_ids, rows
from spark_tests.faults.corrupted.templates import copy_of
from spark_tests.full_form import FULL

# What nothing lies behind is no file that is not there.
IN_THE_WAY = [kind for kind in NO_FILES if kind not in ("link to nothing", "link to itself")]
AT_ONCE_S = 20


@pytest.mark.parametrize("kind", IN_THE_WAY)
@pytest.mark.parametrize("version", [2, 3, 4])
def test_commit_that_is_no_file_is_named(table: TableBuilder, version: int, kind: str) -> None:
    put_in_place(table.commit_file(version), kind)
    with bounded(kind, AT_ONCE_S), pytest.raises(NotAFileError, match=f"{version:020d}.json") as caught:
        read_ids(table)
    assert caught.value.condition == "DELTA_STORAGE_ERROR.NOT_A_FILE"
    # A writer that took it for a commit of somebody else's would try again for ever.
    with bounded(kind, AT_ONCE_S), pytest.raises(DeltaError):
        DeltaLog(table.path).write(rows(9))


@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize("checkpoint", ["v1", "multi-part", "v2-parquet", "v2-json"])
def test_checkpoint_that_is_no_file_gives_way_to_the_commits(
    table: TableBuilder, checkpoint: str, kind: str
) -> None:
    for file in table.checkpoint(checkpoint):  # type: ignore[arg-type]
        (file.parent / ".a pipe").unlink(missing_ok=True)
        put_in_place(file, kind)
    with bounded(kind, AT_ONCE_S):
        assert read_ids(table) == IDS


@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize("name", ["_last_checkpoint", f"{3:020d}.crc", f"{4:020d}.crc"])
def test_what_only_helps_a_reader_is_passed_over(table: TableBuilder, name: str, kind: str) -> None:
    table.checkpoint()
    put_in_place(table.log / name, kind)
    with bounded(kind, AT_ONCE_S):
        assert read_ids(table) == IDS
        DeltaLog(table.path).write(rows(7))
        assert read_ids(table) == [*IDS, 7]


@pytest.mark.parametrize("kind", NO_FILES)
def test_data_file_that_is_none_is_named(table: TableBuilder, kind: str) -> None:
    file = sorted(table.path.glob("part-*.parquet"))[0]
    put_in_place(file, kind)
    with bounded(kind, AT_ONCE_S), pytest.raises((DataFileError, StorageError), match=file.name):
        read_ids(table)
    with bounded(kind, AT_ONCE_S), pytest.raises((DataFileError, StorageError), match=file.name):
        DeltaLog(table.path).snapshot().scan("id > 0 and name like 'n%'").to_arrow()


@pytest.mark.parametrize("kind", NO_FILES)
def test_deletion_vector_that_is_no_file_is_named(tmp_path: Path, kind: str) -> None:
    log = DeltaLog(tmp_path / "t")
    log.write(rows(*range(20)), options={"delta.enableDeletionVectors": "true"})
    delete(log, "id = 3")
    (file,) = (tmp_path / "t").glob("*.bin")
    put_in_place(file, kind)
    with bounded(kind, AT_ONCE_S), pytest.raises((DataFileError, StorageError), match=file.name):
        DeltaLog(tmp_path / "t").snapshot().scan().to_arrow()


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/full", "/dev/stdin", "/proc/kmsg"])
def test_a_device_outside_of_the_table_is_not_opened(
    table: TableBuilder, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not os.path.exists(path):
        pytest.skip(f"{path} is not there")
    add = table.write_file(rows(7))
    add["add"]["path"] = f"file://{path}"
    table.commit(add)
    with bounded(path, AT_ONCE_S), pytest.raises(DeltaError):
        read_ids(table)


@pytest.mark.parametrize("read", [
    lambda storage: storage.read("x"), lambda storage: storage.read_range("x", 0, 10),
    lambda storage: storage.open("x"), lambda storage: storage.read_many(["x"]),
])  # fmt: skip
@pytest.mark.parametrize("kind", IN_THE_WAY)
def test_a_disk_opens_files_only(tmp_path: Path, kind: str, read: Callable[[LocalStorage], object]) -> None:
    put_in_place(tmp_path / "x", kind)
    storage = open_storage(tmp_path)
    assert isinstance(storage, LocalStorage)
    with bounded(kind, AT_ONCE_S), pytest.raises(NotAFileError, match=r"it is a .*, not a file"):
        read(storage)
    with pytest.raises(FileNotFoundError, match="not a file"):
        storage.status("x")


def test_a_file_that_becomes_a_pipe_while_it_is_opened_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(tmp_path)
    (tmp_path / "x").write_bytes(b"content")
    found = os.stat(tmp_path / "x")
    put_in_place(tmp_path / "x", "pipe")
    monkeypatch.setattr(os, "stat", lambda *_, **__: found)
    with bounded("x", AT_ONCE_S), pytest.raises(NotAFileError):
        storage.read("x")


@pytest.mark.parametrize("kind", NO_FILES if FULL else ["pipe", "folder"])
def test_no_command_waits_for_what_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("DELTA_DS_CACHE", "off")
    whole = copy_of("v2-parquet", tmp_path / "whole")
    names = sorted(file.relative_to(whole) for file in files_below(whole))
    for number, name in enumerate(names[:: 1 if FULL else 6], start=1):
        path = copy_of("v2-parquet", tmp_path / str(number))
        put_in_place(path / name, kind)
        attempt_all(path, sorted(EVERY)[number % 7 :: 1 if FULL else 23])
