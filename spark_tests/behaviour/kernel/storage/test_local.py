"""Tables on the local filesystem."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from delta_ds.exceptions import StorageError
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import open_storage
from spark_tests.behaviour.kernel.storage.contract import Put, StorageContract
from spark_tests.behaviour.kernel.storage.write_contract import WriteContract


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "tables" / "t 1%20"


@pytest.fixture
def storage(root: pathlib.Path) -> Storage:
    root.mkdir(parents=True)
    return open_storage(root)


@pytest.fixture
def put(root: pathlib.Path) -> Put:
    def write(path: str, data: bytes) -> None:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)

    return write


class TestLocal(StorageContract):
    pass


class TestLocalWrites(WriteContract):
    pass


def test_every_spelling_of_a_folder_opens_the_same_table(tmp_path: pathlib.Path) -> None:
    plain = str(tmp_path)
    for spelling in (
        plain,
        plain + "/",
        tmp_path,
        f"file:{plain}",
        f"file://{plain}",
        f"FILE://localhost{plain}//",
    ):
        assert open_storage(spelling).url == plain


def test_a_relative_path_is_made_absolute_at_once(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_storage("t").url == f"{tmp_path}/t"
    assert open_storage("~/t").url == f"{tmp_path}/~/t"
    assert open_storage("C=1:2/t").url == f"{tmp_path}/C=1:2/t"


@pytest.mark.parametrize("path", ["", " ", "a\0b", "file://host/x", "simplecache::s3://b/t"])
def test_a_malformed_path_is_refused(path: str) -> None:
    with pytest.raises(StorageError):
        open_storage(path)


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_absolute_paths_outside_the_table_are_followed(
    storage: Storage, tmp_path: pathlib.Path, prefix: str
) -> None:
    # Shallow clones name the files of the table they were made from.
    other = tmp_path / "base" / "x y.parquet"
    other.parent.mkdir()
    other.write_bytes(b"1")
    resolved = storage.resolve(f"{prefix}{tmp_path}/base/x%20y.parquet")
    assert resolved == str(other)
    assert storage.read(resolved) == b"1"


def test_an_absolute_path_that_walks_up_and_back_into_the_table_becomes_relative(
    storage: Storage, root: pathlib.Path
) -> None:
    encoded = str(root).replace("%", "%25").replace(" ", "%20")
    assert storage.resolve(f"{encoded}/a/../b") == "b"


@pytest.mark.parametrize(
    "log_path", ["s3://bucket/x", "http://host/x", "hdfs:///x", "file://host/x", "memory://x", "dbfs:/x"]
)
def test_a_url_of_another_store_is_refused(storage: Storage, log_path: str) -> None:
    with pytest.raises(StorageError):
        storage.resolve(log_path)


@pytest.mark.parametrize("log_path", ["", "a%00b", "%FF.parquet"])
def test_a_path_that_cannot_be_decoded_is_refused(storage: Storage, log_path: str) -> None:
    with pytest.raises(StorageError):
        storage.resolve(log_path)


def test_a_relative_name_that_reads_like_a_url_stays_relative(storage: Storage, put: Put) -> None:
    put("s3:/x", b"1")
    resolved = storage.resolve("s3%3A/x")
    assert storage.read(resolved) == b"1"
    assert storage.resolve("part:1.parquet") == "part:1.parquet"


def test_a_path_is_decoded_only_once(storage: Storage) -> None:
    assert storage.resolve("a%2520b+c%2Bd") == "a%20b+c+d"
    assert storage.resolve("100%.parquet") == "100%.parquet"


def test_an_unreadable_object_gives_a_storage_error_naming_it(storage: Storage, root: pathlib.Path) -> None:
    (root / "folder").mkdir()
    with pytest.raises(StorageError, match="folder"):
        storage.read("folder")
    with pytest.raises(StorageError, match="folder"):
        storage.open("folder")


def test_a_file_in_place_of_the_log_folder_counts_as_missing(storage: Storage, put: Put) -> None:
    put("_delta_log", b"")
    with pytest.raises(FileNotFoundError):
        storage.list_from("_delta_log")
    with pytest.raises(FileNotFoundError):
        storage.read("_delta_log/0.json")


def test_a_dangling_link_is_not_listed(storage: Storage, root: pathlib.Path, put: Put) -> None:
    put("_delta_log/1.json", b"x")
    os.symlink(root / "nowhere", root / "_delta_log" / "2.json")
    assert [s.path for s in storage.list_from("_delta_log")] == ["_delta_log/1.json"]


def test_a_rewritten_file_has_another_etag(storage: Storage, root: pathlib.Path, put: Put) -> None:
    put("x", b"1")
    os.utime(root / "x", ns=(10**18, 10**18))
    before = storage.status("x")
    os.utime(root / "x", ns=(10**18, 10**18 + 1))
    after = storage.status("x")
    assert before.modified_ms == after.modified_ms == 10**12
    assert before.etag != after.etag


def test_a_local_table_needs_neither_fsspec_nor_pyarrow_to_be_listed(tmp_path: pathlib.Path) -> None:
    (tmp_path / "x").write_bytes(b"1")
    code = (
        "import sys; from delta_ds.kernel.storage.open import open_storage\n"
        f"storage = open_storage({str(tmp_path)!r}); storage.list_from(''); storage.read('x')\n"
        "print([m for m in ('fsspec', 'pyarrow', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_folders_are_listed_and_those_of_no_interest_not_entered(storage: Storage, put: Put) -> None:
    put("a/b/c", b"1")
    put("skip/d", b"1")
    batches = storage.list_below(enter=lambda path: path != "skip")
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert {(row["path"], row["is_folder"]) for row in rows} == {
        ("a", True), ("a/b", True), ("a/b/c", False), ("skip", True),
    }  # fmt: skip


def test_links_to_folders_and_names_that_are_no_text_are_not_listed(
    storage: Storage, root: pathlib.Path, put: Put, caplog: pytest.LogCaptureFixture
) -> None:
    put("a/b", b"1")
    (root / "again").symlink_to(root / "a")
    (root / "file").symlink_to(root / "a" / "b")
    (root / "broken").symlink_to(root / "nothing")
    with open(os.path.join(os.fsencode(root), b"\xff"), "wb"):
        pass
    rows = [row["path"] for batch in storage.list_below() for row in batch.to_pylist()]
    assert sorted(rows) == ["a", "a/b", "file"]
    assert "file_name_not_utf8" in caplog.text


def test_only_empty_folders_are_deleted_inner_ones_first(
    storage: Storage, root: pathlib.Path, put: Put
) -> None:
    (root / "a" / "b").mkdir(parents=True)
    put("full/x", b"1")
    assert storage.delete_empty_folders(["a", "full", "missing", "a/b", "full/x"]) == ["a/b", "a"]
    assert (root / "full" / "x").exists()
    with pytest.raises(StorageError):
        storage.delete_empty_folders(["../out"])
