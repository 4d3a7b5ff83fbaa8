"""What every storage must do. A backend's test class inherits this and gives the fixture `table`."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_ds.exceptions import StorageError
from delta_ds.kernel.storage.filesystem import Storage
from spark_tests.full_form import examples

Put = Callable[[str, bytes], Any]

NAMES = st.text(st.sampled_from("0123456789abzAZ._-+é€𝄞"), min_size=1, max_size=6).filter(
    lambda name: name.strip(".") != "" and not name.endswith(".")
)


class StorageContract:
    """Needs the fixtures `storage` (an empty table folder) and `put` (write an object into it)."""

    def test_listing_from_a_key_gives_that_name_and_later_ones_in_order(
        self, storage: Storage, put: Put
    ) -> None:
        for name in ("02.json", "10.json", "01.json", "01.checkpoint.parquet"):
            put(f"_delta_log/{name}", b"x")
        assert [s.path for s in storage.list_from("_delta_log", "01.json")] == [
            "_delta_log/01.json", "_delta_log/02.json", "_delta_log/10.json",
        ]  # fmt: skip

    def test_listing_leaves_out_folders_and_what_lies_deeper(self, storage: Storage, put: Put) -> None:
        put("_delta_log/1.json", b"x")
        put("_delta_log/_sidecars/2.parquet", b"x")
        put("_delta_log_other/3.json", b"x")
        assert [s.path for s in storage.list_from("_delta_log")] == ["_delta_log/1.json"]

    def test_listing_tells_size_and_time(self, storage: Storage, put: Put) -> None:
        put("_delta_log/1.json", b"12345")
        (listed,) = storage.list_from("_delta_log")
        assert listed.size == 5
        assert listed.modified_ms > 1_600_000_000_000
        assert listed == storage.status("_delta_log/1.json")

    def test_all_files_below_a_folder_are_listed_with_size_and_time(self, storage: Storage, put: Put) -> None:
        for name in ("a", "p=1/b c", "p=1/q=%2F/é", "p=10/x", "_delta_log/1.json"):
            put(name, name.encode())
        names = ["_delta_log/1.json", "a", "p=1/b c", "p=1/q=%2F/é", "p=10/x"]
        found = files_below(storage)
        assert sorted(found) == names
        assert all(found[name][0] == len(name.encode()) for name in names)
        assert all(found[name][1] > 1_600_000_000_000 for name in names)
        assert sorted(files_below(storage, "p=1/")) == ["p=1/b c", "p=1/q=%2F/é"]

    def test_below_a_missing_folder_there_is_nothing(self, storage: Storage, put: Put) -> None:
        put("a/b", b"x")
        assert files_below(storage, "missing") == {}

    def test_listing_a_missing_folder_raises_file_not_found(self, storage: Storage) -> None:
        with pytest.raises(FileNotFoundError):
            storage.list_from("_delta_log")
        with pytest.raises(FileNotFoundError):
            storage.list_from("_delta_log", "0001.json")

    def test_listing_from_after_the_last_name_is_empty(self, storage: Storage, put: Put) -> None:
        put("_delta_log/1.json", b"x")
        assert storage.list_from("_delta_log", "2") == []

    def test_listing_sees_what_was_written_after_an_earlier_listing(self, storage: Storage, put: Put) -> None:
        put("_delta_log/1.json", b"x")
        storage.list_from("_delta_log")
        put("_delta_log/2.json", b"xy")
        put("_delta_log/1.json", b"longer than before")
        assert [(s.path, s.size) for s in storage.list_from("_delta_log")] == [
            ("_delta_log/1.json", 18), ("_delta_log/2.json", 2),
        ]  # fmt: skip
        assert storage.status("_delta_log/1.json").size == 18

    @settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
    @given(names=st.sets(NAMES, min_size=1, max_size=6), start=NAMES | st.just(""))
    def test_listing_from_a_key_equals_the_sorted_names_not_before_it(
        self, storage: Storage, put: Put, names: set[str], start: str
    ) -> None:
        folder = uuid.uuid4()
        for name in names:
            put(f"{folder}/{name}", b"")
        found = [s.path.rpartition("/")[2] for s in storage.list_from(str(folder), start)]
        assert found == sorted(name for name in names if name >= start)

    def test_reading_gives_whole_objects_and_ranges(self, storage: Storage, put: Put) -> None:
        put("a b/x%y#z?.bin", b"0123456789")
        assert storage.read("a b/x%y#z?.bin") == b"0123456789"
        assert storage.read_range("a b/x%y#z?.bin", 2, 3) == b"234"
        assert storage.read_range("a b/x%y#z?.bin", 8, 30) == b"89"
        assert storage.read_range("a b/x%y#z?.bin", 4, 0) == b""

    @pytest.mark.parametrize(("offset", "length"), [(-1, 3), (0, -1)])
    def test_a_negative_range_is_refused(self, storage: Storage, put: Put, offset: int, length: int) -> None:
        put("x", b"0123456789")
        with pytest.raises(StorageError):
            storage.read_range("x", offset, length)

    def test_reading_many_keeps_the_order(self, storage: Storage, put: Put) -> None:
        paths = [f"f{i}" for i in range(30)]
        for path in paths:
            put(path, path.encode())
        assert storage.read_many(paths[::-1]) == [p.encode() for p in paths[::-1]]
        assert storage.read_many([]) == []

    def test_a_missing_object_raises_file_not_found_naming_its_address(self, storage: Storage) -> None:
        for call in (storage.read, storage.open, storage.status, lambda p: storage.read_range(p, 0, 1)):
            with pytest.raises(FileNotFoundError, match=r"gone\.parquet"):
                call("gone.parquet")
        with pytest.raises(FileNotFoundError):
            storage.read_many(["gone.parquet", "gone-too.parquet"])
        assert not storage.exists("gone.parquet")

    def test_status_of_a_folder_raises_file_not_found(self, storage: Storage, put: Put) -> None:
        put("_delta_log/1.json", b"x")
        with pytest.raises(FileNotFoundError):
            storage.status("_delta_log")
        assert storage.exists("_delta_log")
        assert storage.exists("_delta_log/1.json")

    def test_an_opened_file_can_be_read_as_parquet(self, storage: Storage, put: Put) -> None:
        import io

        import pyarrow as pa
        import pyarrow.parquet as pq

        buffer = io.BytesIO()
        pq.write_table(pa.table({"a": [1, 2, 3]}), buffer)
        put("data.parquet", buffer.getvalue())
        with storage.open("data.parquet") as file:
            assert pq.ParquetFile(file).read().to_pydict() == {"a": [1, 2, 3]}

    def test_an_open_file_is_told_from_the_one_that_takes_its_place(self, storage: Storage, put: Put) -> None:
        """Either all that is read is of the first one, or it is said, or the store refuses to go on."""
        put("_delta_log/1.parquet", b"first" * 100_000)
        opened = storage.open_known("_delta_log/1.parquet")
        assert opened.status.size == 500_000
        assert opened.is_same()
        assert storage.is_still(opened.status)
        assert opened.stream.read(5) == b"first"
        put("_delta_log/1.parquet", b"other" * 100_000)
        assert storage.open_known("_delta_log/1.parquet").status != opened.status
        assert not storage.is_still(opened.status)
        try:
            opened.stream.seek(499_995)
            last = opened.stream.read(5)
        except StorageError:
            return
        assert last == b"first" or not opened.is_same()

    def test_a_file_that_is_gone_is_not_what_it_was(self, storage: Storage, put: Put) -> None:
        put("_delta_log/1.parquet", b"first")
        opened = storage.open_known("_delta_log/1.parquet")
        storage.delete(["_delta_log/1.parquet"])
        assert not storage.is_still(opened.status)
        with pytest.raises(FileNotFoundError):
            storage.open_known("_delta_log/1.parquet")

    def test_a_pickled_copy_reads_the_same_table(self, storage: Storage, put: Put) -> None:
        put("x", b"1")
        storage.read("x")
        copy = pickle.loads(pickle.dumps(storage))
        assert copy.read("x") == b"1"
        assert (copy.url, copy.options) == (storage.url, storage.options)

    def test_resolved_paths_can_be_opened(self, storage: Storage, put: Put) -> None:
        put("p=a b%2Fc/+é.parquet", b"1")
        for log_path in (
            "p=a%20b%252Fc/+é.parquet", "p=a%20b%252Fc/%2B%C3%A9.parquet", "./p=a%20b%252Fc//x/../+é.parquet",
            quote(storage.url, safe="/:@") + "/p=a%20b%252Fc/+é.parquet",
        ):  # fmt: skip
            resolved = storage.resolve(log_path)
            assert resolved == "p=a b%2Fc/+é.parquet"
            assert storage.read(resolved) == b"1"

    @pytest.mark.parametrize("log_path", ["../x", "a/../../x", "%2E%2E/x", "..", ".", "a/..", "%2e%2e%2fx"])
    def test_a_relative_path_that_leaves_the_table_is_refused_naming_the_table(
        self, storage: Storage, log_path: str
    ) -> None:
        with pytest.raises(StorageError, match="leaves the table") as caught:
            storage.resolve(log_path)
        assert storage.url in str(caught.value)

    def test_an_unresolved_path_with_dots_is_not_followed(self, storage: Storage) -> None:
        with pytest.raises(StorageError):
            storage.read("a/../../etc/passwd")


def files_below(storage: Storage, folder: str = "") -> dict[str, tuple[int, int]]:
    """Size and time of each file that `list_below` gives."""
    rows = [row for batch in storage.list_below(folder) for row in batch.to_pylist()]
    return {row["path"]: (row["size"], row["modified_ms"]) for row in rows if not row["is_folder"]}
