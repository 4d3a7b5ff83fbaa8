"""A step of a stream costs what is new, however long the table's history and however many files it has."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from delta_ds.kernel.commands.streaming.offsets import StreamOffset
from delta_ds.kernel.files.read.reader import read_slices
from delta_ds.kernel.storage.filesystem import FileStatus
from delta_ds.kernel.storage.local import LocalStorage
from delta_ds.testing import TableBuilder
from spark_tests.behaviour.kernel.commands.streaming.streams import again, ids, open_source, rows, table

COMMITS = 10_000


class Calls:
    """What a storage was asked for: listings with their start, files looked for, and files read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.listed: list[str] = []
        self.looked: list[str] = []
        self.read: Counter[str] = Counter()
        list_from, status, read = LocalStorage.list_from, LocalStorage.status, LocalStorage.read

        def counted_list(storage: LocalStorage, directory: str, start: str = "") -> list[FileStatus]:
            self.listed.append(start)
            return list_from(storage, directory, start)

        def counted_status(storage: LocalStorage, path: str) -> FileStatus:
            self.looked.append(path)
            return status(storage, path)

        def counted_read(storage: LocalStorage, path: str) -> bytes:
            self.read[path] += 1
            return read(storage, path)

        monkeypatch.setattr(LocalStorage, "list_from", counted_list)
        monkeypatch.setattr(LocalStorage, "status", counted_status)
        monkeypatch.setattr(LocalStorage, "read", counted_read)

    def clear(self) -> None:
        self.listed.clear()
        self.looked.clear()
        self.read.clear()


@pytest.fixture(scope="module")
def long_table(tmp_path_factory: pytest.TempPathFactory) -> TableBuilder:
    """A table of many commits of one file each: all the same file, since its rows are of no matter here."""
    builder = table(tmp_path_factory.mktemp("long"))
    builder.append(rows(1))
    line = json.dumps(builder.state()[-1]).encode()
    for version in range(2, COMMITS):
        content = line.replace(b"part-", b"part-%d-" % version)
        (builder.log / f"{version:020d}.json").write_bytes(content + b"\n")
    builder.version = COMMITS - 1
    return builder


def commit(builder: TableBuilder, *numbers: int) -> str:
    version = builder.append(rows(*numbers))
    return f"_delta_log/{version:020d}.json"


def test_a_step_of_a_tailing_stream_touches_new_commits_only(
    long_table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_source(long_table.path, startingVersion="latest")
    at = source.initial_offset()
    calls = Calls(monkeypatch)
    assert source.latest_offset(at) == at
    assert (calls.listed, calls.read) == ([f"{COMMITS - 1:020d}"], Counter())
    calls.clear()
    # Two looks instead of a listing, which of a folder gets longer with the history.
    assert source.latest_offset(at) == at
    assert (calls.listed, len(calls.looked), calls.read) == ([], 2, Counter())
    for number in (5, 6):
        new = commit(long_table, number)
        calls.clear()
        end = source.latest_offset(at)
        assert ids(source, at, end) == [number]
        assert (calls.listed, len(calls.looked), calls.read) == ([], 3, Counter([new]))
        at = end
    calls.clear()
    # In a process of its own every call does the same: list from the last version, read what is new.
    new = commit(long_table, 7)
    end = again(source).latest_offset(at)
    fresh = again(source)
    plan, slices = fresh.tasks(at, end)
    assert sum(b.num_rows for b in read_slices(fresh.storage, plan, slices)) == 1
    assert (set(calls.listed), calls.read) == ({f"{at.version - 1:020d}"}, Counter({new: 2}))


def test_asking_for_the_end_looks_behind_the_last_version(
    long_table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_source(long_table.path)
    start, end = source.initial_offset(), source.available_now()
    calls = Calls(monkeypatch)
    for _ in range(2):
        assert source.available_now() == end
    new = commit(long_table, 8)
    later = source.available_now()
    assert ids(source, end, later) == [8]
    assert (end.version, later.version) == (start.version + 1, start.version + 2)
    assert (calls.listed, calls.read) == ([], Counter([new]))


def test_a_backlog_is_read_once_and_as_far_as_the_limit(
    long_table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_source(long_table.path, maxFilesPerTrigger=300)
    start = StreamOffset.beginning(source.read_state.metadata.id, 2, snapshot=False)
    # The first call of a query looks up the schema at its start, which no other does.
    end = source.latest_offset(start)
    source = again(source)
    calls = Calls(monkeypatch)
    assert source.latest_offset(start) == end
    assert end.position == (302, 0, False)
    _, slices = source.tasks(start, end)
    assert (len(slices), len(calls.read), max(calls.read.values())) == (300, 300, 1)
    assert len(calls.listed) == 1
