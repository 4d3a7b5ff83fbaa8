"""One commit, and trouble on its way that is chosen: whatever comes of it is what its writer was told."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_ds.api.delta_log import DeltaLog
from delta_ds.exceptions import StorageError, UncertainWriteError
from delta_ds.kernel.storage import log_store
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.log_store import relative_commit_path
from delta_ds.kernel.storage.open import log_store_for, open_storage
from spark_tests.engines.stores.servers import free_port
from spark_tests.faults.chaos import plan as plans
from spark_tests.faults.chaos.plan import Plan
from spark_tests.faults.chaos.proxy import Message, Proxy
from spark_tests.faults.chaos.stores import STORES, Options, Store

pytestmark = pytest.mark.stores

PATIENCE = 0.7  # seconds
OURS, THEIRS = b'{"commitInfo":{"txnId":"ours"}}\n', b'{"commitInfo":{"txnId":"theirs"}}\n'
COMMITTED, REFUSED, UNKNOWN, TAKEN = "committed", "refused", "unknown", "taken"
EXPIRED = plans.EXPIRED
# What the store does to the requests that write the commit, one after the other and then no more; what may come of it.
CASES: dict[str, tuple[list[str], set[str]]] = {
    "the answer is lost": ([plans.LOST], {COMMITTED}),
    "the answer is cut off": ([plans.CUT_ANSWER], {COMMITTED}),
    "the answer is lost, and the repetition refused by its condition": ([plans.LOST, "412"], {COMMITTED}),
    "the answer is lost, and every repetition refused": ([plans.LOST, *["503"] * 99], {COMMITTED}),
    "the request is done twice": ([plans.DOUBLED], {COMMITTED}),
    "the request is cut off": ([plans.CUT_REQUEST, plans.CUT_BEFORE], {COMMITTED}),
    "the store is busy": (["429", "429", "503"], {COMMITTED}),
    "the store answers with a conflict": (["409", "409"], {COMMITTED}),
    "the store says that it is there, and it is not": (["412"], {COMMITTED}),
    "nobody is let in": ([EXPIRED] * 99, {REFUSED}),
    "no answer, and then nobody is let in": ([plans.HUNG, *[EXPIRED] * 99], {UNKNOWN}),
    "it arrives late, and nobody is let in": ([plans.LATE, *[EXPIRED] * 99], {UNKNOWN, COMMITTED}),
    "it arrives late, and the store is busy": ([plans.LATE, *["429"] * 99], {UNKNOWN, COMMITTED}),
    "it arrives late, after its repetition": ([plans.LATE], {COMMITTED}),
}


class Script(Plan):
    """Trouble that is chosen, for requests that write a commit; none for others."""

    def __init__(self, kinds: list[str]) -> None:
        super().__init__(0)
        self.kinds = list(kinds)

    def choose(self, method: str, target: str, body: bytes = b"") -> str | None:
        writes = self.is_commit(method, target, body)
        return self.kinds.pop(0) if writes and self.kinds else None


@contextmanager
def in_between(server_port: int, flavour: str, plan: Plan, kind: type[Proxy] = Proxy) -> Iterator[int]:
    """A proxy in a thread; its port."""
    port, loop = free_port(), asyncio.new_event_loop()
    proxy = kind(server_port, flavour, plan, PATIENCE)
    server = loop.run_until_complete(asyncio.start_server(proxy.serve, "127.0.0.1", port, limit=1 << 18))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(server.close)
        asyncio.run_coroutine_threadsafe(_end_all(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end_all() -> None:
    """Everything that still waits, but for this."""
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture(scope="module", params=["moto", "minio", "fake-gcs-server", "azurite"])
def store(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with STORES[request.param](tmp_path_factory.mktemp("store"), 0, (0.0, 0.0)) as store:
        yield store


def impatient(store: Store, port: int) -> tuple[str, Options]:
    """The flavour of a store, and options of a client that goes through another proxy."""
    options = store.at(port)
    if "key" in options:
        patience = {"connect_timeout": PATIENCE, "read_timeout": PATIENCE, "retries": {"max_attempts": 4}}
        return "s3", {**options, "config_kwargs": patience}
    if "token" in options:
        return "gs", {**options, "requests_timeout": PATIENCE}
    return "abfs", {**options, "connection_timeout": PATIENCE, "read_timeout": PATIENCE}


@pytest.mark.parametrize("case", CASES)
def test_a_commit_is_there_or_not_as_its_writer_was_told(
    case: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_store, "_ATTEMPTS", 4)
    kinds, wanted = CASES[case]
    url, path, script = f"{store.url}/{uuid.uuid4()}", relative_commit_path(0), Script([])
    truth = open_storage(url, store.options)
    with in_between(store.server_port, store.flavour, script) as port:
        flavour, options = impatient(store, port)
        assert flavour == store.flavour
        commits = log_store_for(open_storage(url, options))
        script.kinds = list(kinds)
        told = outcome(lambda: commits.publish(0, OURS))
        time.sleep(2.5 * PATIENCE if plans.LATE in kinds else 0)
        script.kinds = []
        there = truth.exists(path) and truth.read(path) == OURS
        assert told in wanted, told
        assert told == UNKNOWN or there == (told == COMMITTED)
        # Whoever comes next gets the version, or learns that it is taken.
        again = outcome(lambda: commits.publish(0, THEIRS))
        assert again == (TAKEN if there else COMMITTED)
        assert truth.read(path) == (OURS if there else THEIRS)


def outcome(publish: Callable[[], None]) -> str:
    try:
        publish()
    except FileExistsError:
        return TAKEN
    except UncertainWriteError as error:
        assert "nothing was written" not in error.text
        return UNKNOWN
    except StorageError as error:
        assert error.text.endswith("nothing was written")
        return REFUSED
    return COMMITTED


def test_a_store_that_never_answers_holds_nobody_for_ever(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_store, "_LONGEST", 1.0)
    script = Script([plans.HUNG] * 99)
    with in_between(store.server_port, store.flavour, script) as port:
        _, options = impatient(store, port)
        commits = log_store_for(open_storage(f"{store.url}/{uuid.uuid4()}", options))
        began = time.monotonic()
        assert outcome(lambda: commits.publish(0, OURS)) == UNKNOWN
        assert time.monotonic() - began < 20


def test_a_file_that_cannot_be_read_now_is_no_damaged_file(store: Store) -> None:
    class Closed(Script):
        def choose(self, method: str, target: str, body: bytes = b"") -> str | None:
            return EXPIRED if self.kinds else None

    url, script = f"{store.url}/{uuid.uuid4()}", Closed([])
    open_storage(url, store.options).write("a", b"x" * 100)
    with in_between(store.server_port, store.flavour, script) as port:
        storage = open_storage(url, impatient(store, port)[1])
        with storage.open("a") as stream:
            script.kinds = [EXPIRED]
            with pytest.raises(StorageError, match="cannot read .*/a: .*(expired|Expired|on purpose)"):
                stream.read()
            script.kinds = []


class Rough(Plan):
    """Trouble for every other request, of kinds after which clients need not wait."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.rate = 0.0

    def choose(self, method: str, target: str, body: bytes = b"") -> str | None:
        if self.between(0, 1) >= self.rate:
            return None
        kinds = [plans.CUT_ANSWER, plans.LOST, plans.CUT_REQUEST, plans.DOUBLED, "503", "500", EXPIRED]
        return kinds[int(self.between(0, len(kinds)))]


@contextmanager
def rough(store: Store) -> Iterator[tuple[Storage, Storage, Rough]]:
    """A table's storage through trouble, and by itself."""
    url, plan = f"{store.url}/{uuid.uuid4()}", Rough(1)
    with in_between(store.server_port, store.flavour, plan) as port:
        yield open_storage(url, impatient(store, port)[1]), open_storage(url, store.options), plan


def attempts(action: Callable[[], object], times: int) -> Iterator[object]:
    """What an action answers, as often as it does; every error is the storage's own."""
    answered = 0
    for _ in range(times):
        try:
            found = action()
        except StorageError:
            continue
        answered += 1
        yield found
    assert answered, "no trouble was survived"


def test_a_listing_is_whole_or_an_error(store: Store) -> None:
    # More than a page of S3.
    count = 1005 if store.flavour == "s3" else 30
    with rough(store) as (storage, truth, plan):
        names = [f"_delta_log/{number:06}" for number in range(count)]
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda name: truth.write(name, b""), names))
        plan.rate = 0.3

        def below() -> list[str]:
            return sorted(p for batch in storage.list_below("") for p in batch["path"].to_pylist())

        for found in attempts(below, 4):
            assert found == names
        for found in attempts(lambda: [status.path for status in storage.list_from("_delta_log")], 4):
            assert found == names
        plan.rate = 0.0


def test_files_are_deleted_or_it_is_an_error(store: Store) -> None:
    with rough(store) as (storage, truth, plan):
        names = [f"{number:03}" for number in range(10)]

        def delete() -> bool:
            for name in names:
                truth.write(name, b"")
            plan.rate = 0.3
            try:
                storage.delete(names)
            finally:
                plan.rate = 0.0
            return not any(truth.exists(name) for name in names)

        assert all(attempts(delete, 6))


def test_a_file_is_written_whole_or_it_is_an_error(store: Store) -> None:
    # Of several parts.
    content = os.urandom(12 << 20)
    with rough(store) as (storage, truth, plan):

        def stream() -> bytes:
            path = f"{uuid.uuid4()}.parquet"
            plan.rate = 0.3
            try:
                with storage.open_output(path) as output:
                    for start in range(0, len(content), 1 << 20):
                        output.write(content[start : start + (1 << 20)])
            finally:
                plan.rate = 0.0
            return truth.read(path)

        def replace() -> bytes:
            plan.rate = 0.3
            try:
                with storage.replace_file("_delta_log/x") as output:
                    output.write(content)
            finally:
                plan.rate = 0.0
            return truth.read("_delta_log/x")

        assert all(found == content for found in attempts(stream, 8))
        assert all(found == content for found in attempts(replace, 8))


def test_credentials_that_expire_are_an_error_and_new_ones_in_the_file_are_taken(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if store.options.get("key") != "test-key":
        pytest.skip("the other servers know one login")
    file, expired = tmp_path / "credentials", {"none"}

    def login(key: str) -> None:
        file.write_text(f"[default]\naws_access_key_id={key}\naws_secret_access_key=secret\n")

    class Doorkeeper(Proxy):
        def trouble(self, request: Message) -> str | None:
            said = (request.header(b"authorization") or b"").decode()
            return EXPIRED if any(f"Credential={key}/" in said for key in expired) else None

    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    url = f"{store.url}/{uuid.uuid4()}"
    with in_between(store.server_port, store.flavour, Plan(0), Doorkeeper) as port:
        options = {name: value for name, value in store.at(port).items() if name not in ("key", "secret")}
        log = DeltaLog(url, options)
        login("first")
        assert log.write(pa.table({"id": [1]})) == 0
        expired.add("first")
        with pytest.raises(StorageError, match="expired|Expired") as refused:
            log.write(pa.table({"id": [2]}))
        assert not isinstance(refused.value, UncertainWriteError)
        login("second")
        assert log.write(pa.table({"id": [3]})) == 1
        assert sorted(log.snapshot().scan().to_arrow()["id"].to_pylist()) == [1, 3]
