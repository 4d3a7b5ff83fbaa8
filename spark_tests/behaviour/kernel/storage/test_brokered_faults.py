"""A broker and a store that fail at any request of a commit: it is there in the end or not, as its writer was told."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from delta_ds.exceptions import StorageError, UncertainWriteError
from delta_ds.kernel.storage import store_errors as backoff
from delta_ds.kernel.storage.dynamodb import CommitEntry
from delta_ds.kernel.storage.dynamodb_log_store import DynamoDBStorage
from delta_ds.kernel.storage.filesystem import FileStatus, Storage
from delta_ds.kernel.storage.log_store import relative_commit_path
from delta_ds.kernel.storage.uri import Address

OURS, THEIRS, PLAIN = b"ours", b"theirs", b"of one who asks nobody"
REFUSED, LOST, REPEATED = (
    "refused",
    "lost",
    "repeated",
)  # not done; done without an answer; done, then refused
PUT, NAME = relative_commit_path(1), "00000000000000000001.json"


class Requests:
    """Requests so far, and the one that fails; afterwards some of them do, by their names."""

    def __init__(self, index: int, kind: str, down: Sequence[str]) -> None:
        self.index, self.kind, self.down = index, kind, down
        self.count = 0
        self.broken = self.online = False

    def run(self, name: str, action: Callable[[], Any]) -> Any:
        if self.online:
            return action()
        self.count += 1
        if self.broken and name in self.down:
            unknown = name in ("get", "add")
            raise UncertainWriteError("time-out") if unknown else StorageError("503 SlowDown")
        if self.count - 1 != self.index:
            return action()
        self.broken = True
        if self.kind != REFUSED:
            action()
        if self.kind == LOST and name in ("get", "add", "put", "complete"):
            raise UncertainWriteError("time-out")
        raise StorageError("503 SlowDown")


class Interrupted(Requests):
    """Requests before one of which somebody else does something."""

    def __init__(self, index: int, what: Callable[[], None]) -> None:
        super().__init__(-1, REFUSED, ())
        self.before, self.what = index, what
        self.done = False

    def run(self, name: str, action: Callable[[], Any]) -> Any:
        if not self.online and self.count == self.before:
            self.online = True  # what is done is not interrupted itself
            self.what()
            self.online, self.done = False, True
        return super().run(name, action)


class Entries:
    class settings:  # noqa: N801
        ttl, scheme, table, region = 1, "s3a", "t", "r"

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self.items: dict[str, CommitEntry] = {}

    def table_path(self, scheme: str | None = None) -> str:
        return "s3a://bucket/t"

    def latest(self, scheme: str | None = None) -> CommitEntry | None:
        return None if scheme else self.items.get(max(self.items, default=""))

    def get(self, name: str) -> CommitEntry | None:
        return self._requests.run("get", lambda: self.items.get(name))

    def add(self, entry: CommitEntry) -> None:
        def action() -> None:
            if entry.file_name in self.items:
                raise FileExistsError(entry.file_name)
            self.items[entry.file_name] = entry

        self._requests.run("add", action)

    def put(self, entry: CommitEntry) -> None:
        self._requests.run("complete", lambda: self.items.update({entry.file_name: entry}))


class Store(DynamoDBStorage):
    def __init__(self, requests: Requests) -> None:
        Storage.__init__(self, Address("s3", "bucket", "/t"), {})
        self._requests = requests
        self.objects = {relative_commit_path(0): b"0"}
        self.entries = Entries(requests)  # type: ignore[assignment]

    def exists(self, path: str) -> bool:
        return bool(self._requests.run("exists", lambda: path in self.objects))

    def read(self, path: str) -> bytes:
        if path not in self.objects:
            raise FileNotFoundError(path)
        return self.objects[path]

    def status(self, path: str) -> FileStatus:
        return FileStatus(path, len(self.read(path)), 1)

    def write(self, path: str, data: bytes) -> None:
        self._requests.run("write", lambda: self.objects.update({path: data}))

    def check_create(self) -> None:
        """It knows conditional puts."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        def action() -> None:
            if path in self.objects:
                raise FileExistsError(path)
            self.objects[path] = data

        self._requests.run("put", action)

    def delete(self, paths: Sequence[str]) -> None:
        self._requests.run("delete", lambda: [self.objects.pop(path, None) for path in paths])


@pytest.mark.parametrize(
    "down",
    [(), ("get",), ("add",), ("put",), ("get", "add"), ("get", "add", "put", "write", "delete", "exists")],
)
@pytest.mark.parametrize("kind", [REFUSED, LOST, REPEATED])
@pytest.mark.parametrize("rival", [False, True])
def test_a_commit_is_there_in_the_end_or_not_as_its_writer_was_told(
    kind: str, down: Sequence[str], rival: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "_sleep", lambda seconds: None)
    for index in itertools.count():
        requests = Requests(index, kind, down)
        store = Store(requests)
        if rival:
            store.objects["_delta_log/.tmp/rival"] = THEIRS
            store.entries.items[NAME] = CommitEntry(NAME, ".tmp/rival", complete=False)
        told: BaseException | None = None
        try:
            store.log_store().publish(1, OURS)
        except (StorageError, FileExistsError) as error:
            told = error
        requests.online = True
        latest = store.entries.latest()
        if latest is not None:
            store.log_store().finish(latest)  # as every reader does
        there = store.objects.get(PUT)
        where = (index, told)
        if told is None:
            assert there == OURS, where
        elif isinstance(told, UncertainWriteError):
            assert "version 1 was committed" in str(told), where
        else:
            assert there == (THEIRS if rival else None), where
        if not requests.broken:
            assert isinstance(told, FileExistsError) == rival
            break


@pytest.mark.parametrize("recovering", [False, True], ids=["", "another one recovers too"])
@pytest.mark.parametrize("rival", [False, True], ids=["alone", "with a rival"])
def test_a_writer_who_does_not_ask_dynamodb_loses_nothing_and_takes_nothing(
    rival: bool, recovering: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It puts its commit conditionally, before any of the steps of a brokered one."""
    monkeypatch.setattr(backoff, "_sleep", lambda seconds: None)
    for index in itertools.count():
        done, told, in_place = _race(index, rival, recovering)
        acknowledged = [data for data, error in told.items() if error is None]
        assert [in_place] == (acknowledged or [THEIRS]), (index, told)
        if not done:
            break
    assert index > 5
    assert "other_commit_in_place" in caplog.text


def _race(index: int, rival: bool, recovering: bool) -> tuple[bool, dict[bytes, BaseException | None], bytes]:
    """Whether there was such a step, what each writer was told, and which commit is there in the end."""
    told: dict[bytes, BaseException | None] = {}

    def plain() -> None:
        try:
            store.put_if_absent(PUT, PLAIN)
            told[PLAIN] = None
        except FileExistsError as error:
            told[PLAIN] = error
        latest = store.entries.latest()
        if recovering and latest is not None:
            store.log_store().finish(latest)

    requests = Interrupted(index, plain)
    store = Store(requests)
    if rival:
        store.objects[f"_delta_log/.tmp/{NAME}.rival"] = THEIRS
        store.entries.items[NAME] = CommitEntry(NAME, f".tmp/{NAME}.rival", complete=False)
    told[OURS] = None
    try:
        store.log_store().publish(1, OURS)
    except FileExistsError as error:
        told[OURS] = error
    requests.online = True
    latest = store.entries.latest()
    if latest is not None:
        store.log_store().finish(latest)
        assert store.entries.items[NAME].complete
    return requests.done, told, store.objects[PUT]


def test_what_a_dead_writer_left_does_not_go_over_the_commit_of_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Store(Requests(-1, REFUSED, ()))
    store.objects |= {f"_delta_log/.tmp/{NAME}.dead": THEIRS, PUT: PLAIN}
    store.entries.items[NAME] = CommitEntry(NAME, f".tmp/{NAME}.dead", complete=False)
    store.log_store().finish(store.entries.items[NAME])
    assert store.objects[PUT] == PLAIN and store.entries.items[NAME].complete
    assert "other_commit_in_place" in caplog.text
