"""What writing to every storage must do. A backend's test class inherits this and gives `storage`."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from delta_ds.exceptions import StorageError
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.log_store import relative_commit_path
from delta_ds.kernel.storage.open import log_store_for


class WriteContract:
    """Needs the fixture `storage`: a table folder with nothing in it, which may be missing itself."""

    committers = 8
    commits_each = 4

    def test_a_created_object_can_be_read_and_listed(self, storage: Storage) -> None:
        storage.create("_delta_log/0.json", b"a\nb")
        assert storage.read("_delta_log/0.json") == b"a\nb"
        assert [(s.path, s.size) for s in storage.list_from("_delta_log")] == [("_delta_log/0.json", 3)]

    def test_an_existing_object_is_never_created_anew(self, storage: Storage) -> None:
        storage.create("_delta_log/0.json", b"first")
        with pytest.raises(FileExistsError, match=r"0\.json"):
            storage.create("_delta_log/0.json", b"second")
        assert storage.read("_delta_log/0.json") == b"first"
        assert [s.path for s in storage.list_from("_delta_log")] == ["_delta_log/0.json"]

    def test_an_empty_and_a_large_object_are_created_whole(self, storage: Storage) -> None:
        large = bytes(range(256)) * 20_000
        storage.create("_delta_log/0.json", b"")
        storage.create("_delta_log/1.json", large)
        assert storage.read("_delta_log/0.json") == b""
        assert storage.read("_delta_log/1.json") == large

    def test_of_eight_threads_that_create_one_object_one_wins_and_keeps_it(self, storage: Storage) -> None:
        for version in range(5):
            won = race_threads(storage, f"_delta_log/{version}.json", 8)
            assert len(won) == 1
            assert storage.read(f"_delta_log/{version}.json") == won[0]

    def test_commits_are_published_once_each(self, storage: Storage) -> None:
        store = log_store_for(storage)
        store.publish(0, b"a")
        store.publish(1, b"b")
        with pytest.raises(FileExistsError, match="00000000000000000001"):
            store.publish(1, b"c")
        names = [s.path for s in storage.list_from("_delta_log")]
        assert names == [relative_commit_path(0), relative_commit_path(1)]
        assert storage.read(relative_commit_path(1)) == b"b"

    def test_many_committers_publish_every_commit_without_a_gap(self, storage: Storage) -> None:
        with ThreadPoolExecutor(self.committers) as pool:
            list(
                pool.map(
                    lambda writer: publish_all(storage, writer, self.commits_each), range(self.committers)
                )
            )
        found = [s.path for s in storage.list_from("_delta_log")]
        wanted = self.committers * self.commits_each
        assert found == [relative_commit_path(version) for version in range(wanted)]
        assert len(set(storage.read_many(found))) == wanted

    def test_a_written_object_replaces_the_old_one(self, storage: Storage) -> None:
        storage.write("_delta_log/_last_checkpoint", b"a longer first one")
        storage.write("_delta_log/_last_checkpoint", b"new")
        assert storage.read("_delta_log/_last_checkpoint") == b"new"
        assert [s.path for s in storage.list_from("_delta_log")] == ["_delta_log/_last_checkpoint"]

    def test_an_output_stream_makes_its_folders_and_a_file(self, storage: Storage) -> None:
        with storage.open_output("p=a b%2Fc/x=1/+é.parquet") as stream:
            stream.write(b"01234")
            stream.write(memoryview(b"56789"))
            assert stream.tell() == 10
        assert storage.read("p=a b%2Fc/x=1/+é.parquet") == b"0123456789"

    def test_parquet_is_written_through_an_output_stream(self, storage: Storage) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({"a": range(100_000)})
        with storage.open_output("data.parquet") as stream:
            pq.write_table(table, stream)
        with storage.open("data.parquet") as file:
            assert pq.ParquetFile(file).read() == table

    def test_a_replaced_file_appears_when_the_block_ends(self, storage: Storage) -> None:
        storage.write("_delta_log/x.checkpoint.parquet", b"old")
        with storage.replace_file("_delta_log/x.checkpoint.parquet") as stream:
            stream.write(b"new" * 1000)
            assert storage.read("_delta_log/x.checkpoint.parquet") == b"old"
        assert storage.read("_delta_log/x.checkpoint.parquet") == b"new" * 1000

    @pytest.mark.parametrize("before", [None, b"old"])
    def test_a_replaced_file_stays_as_it_was_when_the_block_fails(
        self, storage: Storage, before: bytes | None
    ) -> None:
        path = "_delta_log/x.checkpoint.parquet"
        if before is not None:
            storage.write(path, before)
        with pytest.raises(KeyError, match="midway"), storage.replace_file(path) as stream:
            stream.write(b"new" * 1000)
            raise KeyError("midway")
        if before is None:
            assert not storage.exists(path)
        else:
            assert [s.path for s in storage.list_from("_delta_log")] == [path]
            assert storage.read(path) == before

    def test_deleted_files_are_gone_and_missing_ones_are_fine(self, storage: Storage) -> None:
        paths = [f"d/f {i} [a]*?.parquet" for i in range(20)]
        for path in paths:
            storage.write(path, b"1")
        storage.write("d/kept.parquet", b"1")
        storage.delete([*paths, "d/never.parquet", "nowhere/x"])
        assert [s.path for s in storage.list_from("d")] == ["d/kept.parquet"]
        storage.delete([])

    @pytest.mark.parametrize("path", ["", "../x", "a/../../x", "/etc/x", "s3://other/x", "file:/x"])
    def test_nothing_outside_the_table_is_written_or_deleted(self, storage: Storage, path: str) -> None:
        calls: list[Any] = [
            lambda: storage.create(path, b""), lambda: storage.write(path, b""),
            lambda: storage.open_output(path), lambda: storage.delete([path]),
            lambda: storage.replace_file(path).__enter__(),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(StorageError):
                call()

    def test_a_pickled_copy_writes_to_the_same_table(self, storage: Storage) -> None:
        storage.create("a", b"1")
        copy = pickle.loads(pickle.dumps(storage))
        with pytest.raises(FileExistsError):
            copy.create("a", b"2")


def race_threads(storage: Storage, path: str, writers: int) -> list[bytes]:
    """Create one object from many threads at once; what the winners wrote."""
    barrier = threading.Barrier(writers)

    def create(writer: int) -> bytes | None:
        data = f"written by {writer} ".encode() * 100
        barrier.wait()
        try:
            storage.create(path, data)
        except FileExistsError:
            return None
        return data

    with ThreadPoolExecutor(writers) as pool:
        return [data for data in pool.map(create, range(writers)) if data is not None]


def publish_all(storage: Storage, writer: int, commits: int) -> None:
    """Publish so many commits, each on the next free version."""
    store = log_store_for(storage)
    version = 0
    for commit in range(commits):
        while True:
            try:
                store.publish(version, f"{writer}-{commit}".encode())
                break
            except FileExistsError:
                version += 1


def race_processes(storage: Storage, path: str, writers: int) -> list[bytes]:
    """As `race_threads`, with processes that start when all of them are ready."""
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        barrier = manager.Barrier(writers)
        with context.Pool(writers) as pool:
            jobs = [(pickle.dumps(storage), path, writer, barrier) for writer in range(writers)]
            return [data for data in pool.starmap(_create_in_process, jobs) if data is not None]


def _create_in_process(pickled: bytes, path: str, writer: int, barrier: Any) -> bytes | None:
    storage: Storage = pickle.loads(pickled)
    data = f"written by process {writer} ".encode() * 100
    storage.exists(path)
    barrier.wait(60)
    try:
        storage.create(path, data)
    except FileExistsError:
        return None
    return data
