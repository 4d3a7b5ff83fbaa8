"""Commits on stores whose answers get lost, on stores that cannot commit, and who tells which is which."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import fsspec
import pytest

from delta_ds.exceptions import InvalidOptionError, StorageError, UncertainWriteError
from delta_ds.kernel.storage import conditional_put, remote
from delta_ds.kernel.storage import store_errors as backoff
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.log_store import relative_commit_path
from delta_ds.kernel.storage.open import log_store_for, open_storage
from delta_ds.kernel.storage.remote import RemoteStorage

OURS, THEIRS = b"ours", b"theirs"


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "_sleep", lambda seconds: None)


class LossyStorage(RemoteStorage):
    """A store whose answers are scripted: each step is called with the put that would have happened."""

    creates_exactly = False  # type: ignore[assignment]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.script: list[Callable[[Callable[[], None]], None]] = []
        self.reads: list[Exception] = []

    def create(self, path: str, data: bytes) -> None:
        put = lambda: super(LossyStorage, self).create(path, data)  # noqa: E731
        if self.script:
            self.script.pop(0)(put)
        else:
            put()

    def read(self, path: str) -> bytes:
        if self.reads:
            raise self.reads.pop(0)
        return super().read(path)


@pytest.fixture
def storage() -> LossyStorage:
    plain = open_storage(f"memory://{uuid.uuid4()}/t")
    return LossyStorage(plain.address, plain.options)


def lost_after(put: Callable[[], None]) -> None:
    put()
    raise UncertainWriteError("time-out")


def lost_before(put: Callable[[], None]) -> None:
    raise UncertainWriteError("time-out")


def repeated_by_the_client(put: Callable[[], None]) -> None:
    put()
    put()


def refused(put: Callable[[], None]) -> None:
    raise StorageError("access denied")


def refused_after_a_lost_answer(put: Callable[[], None]) -> None:
    put()
    raise StorageError("the token has expired")


@pytest.mark.parametrize(
    "script",
    [
        [], [lost_after], [lost_before], [lost_before, lost_after], [lost_before] * 4, [repeated_by_the_client],
        [lost_before, repeated_by_the_client], [refused_after_a_lost_answer],
    ],
)  # fmt: skip
def test_a_commit_that_is_there_in_the_end_succeeds(storage: LossyStorage, script: list[Any]) -> None:
    storage.script = list(script)
    log_store_for(storage).publish(7, OURS)
    assert storage.read(relative_commit_path(7)) == OURS


@pytest.mark.parametrize("script", [[], [lost_before], [lost_before, lost_before], [refused]])
def test_a_version_that_another_writer_has_is_told_from_a_lost_answer(
    storage: LossyStorage, script: list[Any]
) -> None:
    storage.write(relative_commit_path(7), THEIRS)
    storage.script = list(script)
    with pytest.raises(FileExistsError, match="00000000000000000007"):
        log_store_for(storage).publish(7, OURS)
    assert storage.read(relative_commit_path(7)) == THEIRS


def test_a_commit_that_cannot_be_read_back_at_first_is_found(storage: LossyStorage) -> None:
    storage.script = [lost_after, lost_before]
    storage.reads = [StorageError("down")]
    log_store_for(storage).publish(7, OURS)


def test_a_commit_that_is_cut_when_it_is_read_back_is_not_taken_for_that_of_another_writer(
    storage: LossyStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, cut = RemoteStorage.read, []

    def shorter(self: RemoteStorage, path: str) -> bytes:
        cut.append(path)
        return read(self, path)[: 3 if len(cut) < 3 else None]

    storage.script = [lost_after, lost_before, lost_before]
    monkeypatch.setattr(RemoteStorage, "read", shorter)
    log_store_for(storage).publish(7, OURS)
    assert len(cut) == 3


def test_a_store_that_never_answers_leaves_it_open_naming_the_version(storage: LossyStorage) -> None:
    storage.script = [lost_before] * 50
    with pytest.raises(UncertainWriteError, match=r"version 7 was committed.*time-out.*history") as caught:
        log_store_for(storage).publish(7, OURS)
    assert caught.value.parameters == {"table": storage.url, "version": 7}
    assert 40 < len(storage.script) < 50


def test_a_refusal_after_a_lost_answer_is_not_called_a_failure(storage: LossyStorage) -> None:
    storage.script = [lost_before, *[refused] * 50]
    with pytest.raises(UncertainWriteError):
        log_store_for(storage).publish(7, OURS)


@pytest.mark.parametrize("unreadable", [1, 4, 50])
def test_a_refusal_is_no_failure_while_the_commit_cannot_be_read_back(
    storage: LossyStorage, unreadable: int
) -> None:
    storage.script = [refused_after_a_lost_answer, *[refused] * 50]
    storage.reads = [StorageError("down") for _ in range(unreadable)]
    if unreadable < 5:
        log_store_for(storage).publish(7, OURS)
    else:
        with pytest.raises(UncertainWriteError, match="version 7 was committed"):
            log_store_for(storage).publish(7, OURS)
    storage.reads = []
    assert storage.read(relative_commit_path(7)) == OURS


def test_a_refusal_is_passed_on(storage: LossyStorage) -> None:
    storage.script = [refused]
    with pytest.raises(StorageError, match="access denied"):
        log_store_for(storage).publish(7, OURS)
    assert not storage.exists(relative_commit_path(7))


@pytest.mark.parametrize("scheme", ["sftp", "ftp", "github"])
def test_a_store_without_exclusive_create_is_refused_before_it_is_opened(scheme: str) -> None:
    storage = open_storage(f"{scheme}://host/t")
    with pytest.raises(StorageError, match=rf"{scheme}:// cannot.*nothing was written.*allowUnsafeCommits"):
        log_store_for(storage)
    with pytest.raises(StorageError, match="nothing was written"):
        storage.create("x", b"")


def test_allowing_unsafe_commits_looks_and_then_writes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(remote.clients, "client", lambda *_: Renaming())
    storage = open_storage(f"nosuch://host/{uuid.uuid4()}", {"allowUnsafeCommits": True})
    store = log_store_for(storage)
    store.publish(0, OURS)
    with pytest.raises(FileExistsError):
        store.publish(0, THEIRS)
    assert storage.read(relative_commit_path(0)) == OURS
    assert [s.path for s in storage.list_from("_delta_log")] == [relative_commit_path(0)]
    assert "unsafe_commits" in caplog.text


class Renaming(type(fsspec.filesystem("memory"))):  # type: ignore[misc]
    """A filesystem with folders and renames, and nothing that is exclusive."""

    protocol = "nosuch"
    cachable = False
    store: dict[str, Any] = {}
    pseudo_dirs = [""]


@pytest.mark.parametrize("value", ["maybe", "1"])
def test_an_option_that_is_neither_true_nor_false_is_refused(value: str) -> None:
    with pytest.raises(InvalidOptionError, match="allowUnsafeCommits"):
        log_store_for(open_storage("sftp://host/t", {"allowUnsafeCommits": value}))


def test_an_unknown_log_store_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="zookeeper.*conditional, dynamodb"):
        open_storage("s3://bucket/t", {"logStore": "zookeeper"})


def test_own_options_are_not_handed_to_the_filesystem(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setattr(
        fsspec.core, "url_to_fs", lambda url, **options: seen.update(options) or (object(), "")
    )
    open_storage("memory://t", {"logStore": "conditional", "allowunsafecommits": "false", "x": 1})._fs  # type: ignore[attr-defined] # noqa: B018
    assert seen == {"x": 1, "use_listings_cache": False, "skip_instance_cache": True}


class Answer(Exception):
    """A store's answer: botocore's, azure-core's or gcsfs' way."""

    def __init__(self, code: str = "", status: int | None = None, response: bool = True) -> None:
        super().__init__(code)
        if response:
            self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
        else:
            self.status_code = status


@pytest.mark.parametrize(
    ("outer", "cause", "meaning"),
    [
        (FileExistsError("x"), None, "exists"),
        (OSError(22, "At least one of the pre-conditions"), Answer("PreconditionFailed", 412), "exists"),
        (OSError(16, "busy"), Answer("ConditionalRequestConflict", 409), "conflict"),
        (PermissionError("x"), Answer("AccessDenied", 403), "refused"),
        (FileNotFoundError("x"), Answer("NoSuchBucket", 404), "refused"),
        (OSError(16, "slow down"), Answer("SlowDown", 503), "busy"),
        (OSError(16, "x"), Answer("", 429, response=False), "busy"),
        (OSError(38, "x"), Answer("NotImplemented", 501), "refused"),
        (OSError(5, "x"), Answer("InternalError", 500), "unknown"),
        (TimeoutError("x"), Answer("RequestTimeout", 408), "unknown"),
        (TimeoutError("x"), None, "unknown"),
        (ConnectionResetError("x"), None, "unknown"),
        (OSError("Forbidden: https://..."), None, "refused"),
        (Answer("", 412, response=False), None, "exists"),
        (Answer("", 403, response=False), None, "refused"),
        (Answer("", 503, response=False), None, "unknown"),
        (RuntimeError("x"), None, "unknown"),
        (ValueError("no such endpoint"), None, "refused"),
        (json.JSONDecodeError("an answer cut off", "", 0), None, "unknown"),
    ],
)
def test_what_a_store_answers_is_understood(outer: Exception, cause: Exception | None, meaning: str) -> None:
    outer.__cause__ = cause
    assert conditional_put.meaning_of_error(outer) == meaning


@pytest.fixture
def failing_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Exception]]:
    """A memory store that raises these errors first."""
    errors: list[Exception] = []

    def put(fs: Any, path: str, data: bytes) -> None:
        if errors:
            raise errors.pop(0)
        fs.pipe_file(path, data, mode="create")

    monkeypatch.setitem(conditional_put._PUTS, "memory", put)
    yield errors


def conflict() -> OSError:
    error = OSError(16, "busy")
    error.__cause__ = Answer("ConditionalRequestConflict", 409)
    return error


def test_a_conflict_of_two_requests_is_asked_again(failing_memory: list[Exception]) -> None:
    storage = open_storage(f"memory://{uuid.uuid4()}")
    failing_memory += [conflict() for _ in range(9)]
    storage.create("x", b"1")
    assert storage.read("x") == b"1"


def test_endless_conflicts_leave_it_open_as_the_other_request_may_be_ours(
    failing_memory: list[Exception],
) -> None:
    storage = open_storage(f"memory://{uuid.uuid4()}")
    failing_memory += [conflict() for _ in range(50)]
    with pytest.raises(UncertainWriteError, match="10 times.*may or may not"):
        storage.create("x", b"1")


def test_errors_of_a_write_hide_secrets(failing_memory: list[Exception]) -> None:
    storage = open_storage(f"memory://{uuid.uuid4()}", {"password": "s3cr3t-value"})
    for error in (TimeoutError("login s3cr3t-value"), PermissionError("login s3cr3t-value")):
        failing_memory.append(error)
        with pytest.raises(StorageError, match=r"login \*\*\*") as caught:
            storage.create("x", b"1")
        assert caught.value.__suppress_context__
        assert "cannot read" not in str(caught.value)


def test_a_server_that_ignores_the_condition_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = S3Like(honours=False)
    with pytest.raises(StorageError, match=r"overwrites.*nothing was written.*logStore=dynamodb"):
        conditional_put.check_endpoint(storage)  # type: ignore[arg-type]
    assert storage.objects == {}


def test_a_server_that_honours_the_condition_is_asked_once() -> None:
    storage = S3Like(honours=True)
    conditional_put.check_endpoint(storage)  # type: ignore[arg-type]
    assert storage.objects == {}
    puts = storage.puts
    conditional_put.check_endpoint(storage)  # type: ignore[arg-type]
    assert storage.puts == puts == 2


@pytest.mark.parametrize("written", [True, False], ids=["written", "not written"])
@pytest.mark.parametrize("honours", [True, False], ids=["honours", "overwrites"])
@pytest.mark.parametrize("lost", [{0}, {1}, {0, 1, 2}, {1, 2}, {0, 2}], ids=str)
def test_a_lost_answer_does_not_decide_whether_a_server_overwrites(
    honours: bool, written: bool, lost: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditional_put, "pause", lambda attempt: None)
    storage = S3Like(honours=honours)
    create = storage.create

    def losing(path: str, data: bytes) -> None:
        is_lost = storage.puts in lost
        if written or not is_lost:
            create(path, data)
        else:
            storage.puts += 1
        if is_lost:
            raise UncertainWriteError("no answer")

    monkeypatch.setattr(storage, "create", losing)
    if honours:
        conditional_put.check_endpoint(storage)  # type: ignore[arg-type]
    else:
        with pytest.raises(StorageError, match="overwrites"):
            conditional_put.check_endpoint(storage)  # type: ignore[arg-type]
    assert storage.objects == {}


def test_a_server_that_only_the_environment_names_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    storage = open_storage("s3://b/t")
    assert isinstance(storage, RemoteStorage)
    assert storage.endpoint == "http://127.0.0.1:1"
    asked: list[str] = []
    monkeypatch.setattr(RemoteStorage, "create", lambda self, path, data: asked.append(path))
    monkeypatch.setattr(RemoteStorage, "delete", lambda self, paths: None)
    with pytest.raises(StorageError, match="overwrites"):
        conditional_put.check_endpoint(storage)
    assert len(asked) == 2


def test_a_server_of_amazon_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RemoteStorage, "endpoint", "https://s3.eu-west-1.amazonaws.com")
    monkeypatch.setattr(RemoteStorage, "create", lambda *_: pytest.fail("asked"))
    conditional_put.check_endpoint(open_storage(f"s3://{uuid.uuid4()}/t"))


def test_a_probe_that_cannot_be_deleted_or_got_no_answer_is_no_uncertain_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(error: Exception) -> Callable[..., None]:
        def call(*_: object) -> None:
            raise error

        return call

    storage = S3Like(honours=True)
    monkeypatch.setattr(storage, "delete", fails(StorageError("not allowed to delete")))
    conditional_put.check_endpoint(storage)  # type: ignore[arg-type]
    storage = S3Like(honours=True)
    monkeypatch.setattr(conditional_put, "pause", lambda attempt: None)
    monkeypatch.setattr(storage, "create", fails(UncertainWriteError("time-out")))
    with pytest.raises(StorageError, match="time-out; no commit was written") as caught:
        conditional_put.check_endpoint(storage)  # type: ignore[arg-type]
    assert type(caught.value) is StorageError


class S3Like:
    """As much of a storage on S3 as the probe needs."""

    def __init__(self, honours: bool) -> None:
        self.honours = honours
        self.url = "s3://b/t"
        self.address = open_storage("s3://b/t").address
        self.endpoint = f"http://{uuid.uuid4()}"
        self.objects: dict[str, bytes] = {}
        self.puts = 0

    def create(self, path: str, data: bytes) -> None:
        self.puts += 1
        if self.honours and path in self.objects:
            raise FileExistsError(path)
        self.objects[path] = data

    def delete(self, paths: list[str]) -> None:
        for path in paths:
            self.objects.pop(path, None)

    def describe(self, path: str) -> str:
        return f"{self.url}/{path}"


def test_old_clients_that_would_overwrite_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditional_put, "_s3_knows_condition", lambda fs: False)
    monkeypatch.setattr(remote.clients, "client", lambda *_: object())
    storage: Storage = open_storage("s3://b/t")
    with pytest.raises(StorageError, match=r"pip install 'botocore>=1\.35\.20'"):
        storage.create("x", b"")
    with pytest.raises(StorageError, match="nothing was written"):
        log_store_for(storage)
