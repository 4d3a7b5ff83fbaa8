"""Names are deleted in folders that no link led to, whatever somebody puts there meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from delta_ds.exceptions import StorageError
from delta_ds.kernel.storage import deleter, local_output
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.local_output import Folders, LinkOnTheWayError, link_on_the_way
from delta_ds.kernel.storage.open import open_storage


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "inner").mkdir(parents=True)
    (tmp_path / "home" / "a").write_bytes(b"theirs")
    return tmp_path / "home"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "t" / "x" / "y").mkdir(parents=True)
    return tmp_path / "t"


@pytest.fixture(params=["by handle", "by path"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "by path":
        monkeypatch.setattr(local_output, "_BY_HANDLE", False)


@pytest.mark.usefixtures("both_ways")
def test_files_and_links_go_and_what_links_lead_to_stays(home: Path, root: Path) -> None:
    for name in ("a", "x/b", "x/y/c", "x/y/d"):
        (root / name).write_bytes(b"own")
    (root / "x" / "link").symlink_to(home / "a")
    (root / "x" / "folder").symlink_to(home)
    with Folders(str(root)) as folders:
        for name in ("x/y/c", "a", "x/b", "x/y/d", "x/link", "x/folder"):
            folders.unlink(name)
        folders.rmdir("x/y")
        with pytest.raises(OSError, match="empty|ENOTEMPTY|No such file") as caught:
            folders.rmdir("x/y")
        assert isinstance(caught.value, FileNotFoundError)
    assert list((root / "x").iterdir()) == []
    assert (home / "a").read_bytes() == b"theirs"


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("name", ["out/a", "x/out/a", "x/out/inner/b", "x/back/a"])
def test_nothing_is_deleted_behind_a_link(home: Path, root: Path, name: str) -> None:
    for at in (root, root / "x"):
        (at / "out").symlink_to(home)
    (root / "x" / "back").symlink_to(root)
    (root / "a").write_bytes(b"own")
    link = name[: name.index("out") + 3] if "out" in name else "x/back"
    with Folders(str(root)) as folders:
        for delete in (folders.unlink, folders.rmdir):
            with pytest.raises(LinkOnTheWayError) as caught:
                delete(name)
            assert caught.value.filename == link
    assert link_on_the_way(str(root), name.rpartition("/")[0]) == link
    assert (home / "a").exists() and (home / "inner").exists() and (root / "a").exists()


@pytest.mark.usefixtures("both_ways")
def test_a_file_where_a_folder_should_be_holds_nothing(root: Path) -> None:
    (root / "file").write_bytes(b"own")
    storage = open_storage(root)
    storage.delete(["file/a", "nowhere/a", "nowhere"])
    assert storage.delete_empty_folders(["file/a", "nowhere/a", "file"]) == []
    assert (root / "file").exists()


def test_the_folder_of_the_table_may_be_reached_by_links(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    (root / "x" / "a").write_bytes(b"own")
    storage = open_storage(tmp_path / "link")
    assert storage.link_on_the_way("x/y") is None
    storage.delete(["x/a"])
    assert storage.delete_empty_folders(["x/y", "x"]) == ["x/y", "x"]


def test_a_link_that_comes_between_the_look_and_the_act_is_not_followed(
    home: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(root)
    (root / "p=1").mkdir()
    (root / "p=1" / "a").write_bytes(b"own")
    looked = type(storage).link_on_the_way

    def swap(self: Storage, folder: str) -> str | None:
        found = looked(self, folder)
        os.rename(root / "p=1", root / "gone")
        (root / "p=1").symlink_to(home)
        return found

    monkeypatch.setattr(type(storage), "link_on_the_way", swap)
    with pytest.raises(StorageError) as caught:
        deleter.delete(storage, deleter.DATA_FILES, ["p=1/a"])
    assert caught.value.condition == "DELTA_STORAGE_ERROR.NOT_IN_TABLE"
    assert (home / "a").exists()


def test_handles_are_closed(root: Path) -> None:
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    for name in ("x/y/a", "x/a", "a"):
        (root / name).write_bytes(b"own")
    open_storage(root).delete(["x/y/a", "a", "x/a", "x/nowhere/b"])
    if before:
        assert len(os.listdir("/proc/self/fd")) == len(before)
