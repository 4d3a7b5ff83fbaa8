"""Commits brokered by DynamoDB, against moto's server: the protocol of delta-storage's `S3DynamoDBLogStore`."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import InvalidOptionError, StorageError, UncertainWriteError
from delta_ds.kernel.storage import conditional_put
from delta_ds.kernel.storage import store_errors as backoff
from delta_ds.kernel.storage.dynamodb import CommitEntries, CommitEntry
from delta_ds.kernel.storage.dynamodb_log_store import DynamoDBStorage
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.log_store import relative_commit_path
from delta_ds.kernel.storage.open import log_store_for, open_storage
from spark_tests.behaviour.kernel.storage.write_contract import WriteContract, race_processes

pytest.importorskip("s3fs", reason="s3fs is not installed")
pytest.importorskip("moto.server", reason="moto[server] is not installed")

pytestmark = pytest.mark.stores

BUCKET = "brokered"  # all moto servers of a process share their buckets
SECRETS = {"key": "test-key", "secret": "test-secret"}


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, Any]]:
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    s3fs.S3FileSystem(endpoint_url=endpoint, **SECRETS).mkdir(BUCKET)
    yield {
        **SECRETS, "endpoint_url": endpoint, "logStore": "dynamodb", "ddbTableName": "commits",
        "ddbRegion": "eu-west-1", "ddbEndpoint": endpoint, "ddbCreateTable": "true",
    }  # fmt: skip
    server.stop()


@pytest.fixture
def storage(options: dict[str, Any]) -> DynamoDBStorage:
    storage = open_storage(f"s3a://{BUCKET}/{uuid.uuid4()}/t 1", options)
    assert isinstance(storage, DynamoDBStorage)
    return storage


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "_sleep", lambda seconds: None)


def items(storage: DynamoDBStorage) -> list[dict[str, Any]]:
    answer = storage.entries._client.query(
        TableName="commits",
        KeyConditionExpression="tablePath = :p",
        ExpressionAttributeValues={":p": {"S": storage.entries.table_path()}},
    )
    return list(answer["Items"])


class TestBrokeredWrites(WriteContract):
    committers = 4
    commits_each = 2

    def test_of_eight_threads_that_create_one_object_one_wins_and_keeps_it(self, storage: Storage) -> None:
        """Only commits are created by one of many; see below."""


@pytest.mark.slow
def test_of_eight_processes_that_commit_one_version_one_wins_and_keeps_it(storage: DynamoDBStorage) -> None:
    assert items(storage) == []
    won = race_processes(storage, relative_commit_path(0), 8)
    assert len(won) == 1
    assert storage.read(relative_commit_path(0)) == won[0]


def test_an_entry_has_the_layout_of_delta_storage(storage: DynamoDBStorage) -> None:
    before = int(time.time())
    log_store_for(storage).publish(0, b"1")
    (item,) = items(storage)
    name = "00000000000000000000.json"
    expires = int(item.pop("expireTime")["N"])
    assert before + 86_400 <= expires <= time.time() + 86_400
    temporary = item.pop("tempPath")["S"]
    assert re.fullmatch(rf"\.tmp/{re.escape(name)}\.[0-9a-f-]{{36}}", temporary)
    assert item == {
        "tablePath": {"S": storage.url.replace("s3://", "s3a://")}, "fileName": {"S": name},
        "complete": {"S": "true"},
    }  # fmt: skip
    assert storage.read(f"_delta_log/{temporary}") == b"1"


def test_the_time_that_entries_are_kept_can_be_set(options: dict[str, Any]) -> None:
    storage = open_storage(f"s3://{BUCKET}/{uuid.uuid4()}", {**options, "ddbTtlSeconds": "60"})
    log_store_for(storage).publish(0, b"1")
    assert isinstance(storage, DynamoDBStorage)
    assert int(items(storage)[0]["expireTime"]["N"]) <= time.time() + 60


def leave_incomplete(storage: DynamoDBStorage, version: int, data: bytes) -> CommitEntry:
    """What another writer leaves that dies right after its entry."""
    name = relative_commit_path(version).rpartition("/")[2]
    entry = CommitEntry(name, f".tmp/{name}.{uuid.uuid4()}", complete=False)
    storage.write(f"_delta_log/{entry.temp_path}", data)
    storage.entries.add(entry)
    return entry


def test_a_listing_finishes_the_commit_of_a_writer_that_died(storage: DynamoDBStorage) -> None:
    log_store_for(storage).publish(0, b"0")
    left = leave_incomplete(storage, 1, b"1")
    assert not storage.exists(relative_commit_path(1))
    assert [s.path for s in storage.list_from("_delta_log")] == [
        relative_commit_path(0),
        relative_commit_path(1),
    ]
    assert storage.read(relative_commit_path(1)) == b"1"
    found = storage.entries.get(left.file_name)
    assert found is not None
    assert (found.complete, found.temp_path) == (True, left.temp_path)


def test_a_first_commit_of_a_writer_that_died_is_finished_by_a_listing(storage: DynamoDBStorage) -> None:
    leave_incomplete(storage, 0, b"0")
    assert [s.path for s in storage.list_from("_delta_log")] == [relative_commit_path(0)]


def test_the_next_commit_finishes_the_one_before(storage: DynamoDBStorage) -> None:
    leave_incomplete(storage, 0, b"0")
    log_store_for(storage).publish(1, b"1")
    assert storage.read_many([relative_commit_path(0), relative_commit_path(1)]) == [b"0", b"1"]
    assert [item["complete"]["S"] for item in items(storage)] == ["true", "true"]


def test_a_version_with_an_incomplete_entry_belongs_to_that_writer(storage: DynamoDBStorage) -> None:
    left = leave_incomplete(storage, 0, b"theirs")
    with pytest.raises(FileExistsError):
        log_store_for(storage).publish(0, b"ours")
    assert storage.read(relative_commit_path(0)) == b"theirs"
    assert [s.path for s in storage.list_from("_delta_log/.tmp")] == [f"_delta_log/{left.temp_path}"]


def test_a_finished_commit_is_not_copied_again(storage: DynamoDBStorage) -> None:
    entry = leave_incomplete(storage, 0, b"0")
    storage.write(relative_commit_path(0), b"0")
    storage.delete([f"_delta_log/{entry.temp_path}"])
    storage.list_from("_delta_log")
    assert items(storage)[0]["complete"]["S"] == "true"


def test_an_entry_whose_content_is_gone_is_reported(storage: DynamoDBStorage) -> None:
    entry = leave_incomplete(storage, 0, b"0")
    storage.delete([f"_delta_log/{entry.temp_path}"])
    with pytest.raises(StorageError, match=r"does not exist; restore it"):
        storage.list_from("_delta_log")


def test_expired_entries_are_not_needed_to_go_on(storage: DynamoDBStorage) -> None:
    store = log_store_for(storage)
    store.publish(0, b"0")
    store.publish(1, b"1")
    forget(storage)
    with pytest.raises(FileExistsError):
        store.publish(1, b"other")
    store.publish(2, b"2")
    assert [s.path for s in storage.list_from("_delta_log")] == [relative_commit_path(v) for v in range(3)]


def forget(storage: DynamoDBStorage) -> None:
    for item in items(storage):
        key = {name: item[name] for name in ("tablePath", "fileName")}
        storage.entries._client.delete_item(TableName="commits", Key=key)


def test_a_gap_is_refused(storage: DynamoDBStorage) -> None:
    log_store_for(storage).publish(0, b"0")
    with pytest.raises(StorageError, match=r"version 2 cannot be committed.*nothing was written"):
        log_store_for(storage).publish(2, b"2")


def test_a_new_table_where_entries_of_an_old_one_are_left_is_refused(storage: DynamoDBStorage) -> None:
    log_store_for(storage).publish(0, b"0")
    storage.delete([relative_commit_path(0)])
    with pytest.raises(StorageError, match="entries of an earlier table.*nothing was written"):
        log_store_for(storage).publish(0, b"0")


def test_a_table_that_others_spell_differently_is_refused(
    options: dict[str, Any], storage: DynamoDBStorage
) -> None:
    other = open_storage(storage.url, {**options, "ddbScheme": "s3"})
    log_store_for(other).publish(0, b"0")
    with pytest.raises(StorageError, match=r"nothing was written.*ddbScheme=s3"):
        log_store_for(storage).publish(1, b"1")
    log_store_for(other).publish(1, b"1")


def timing_out(real: Callable[..., Any], after: bool) -> Callable[..., Any]:
    calls: list[int] = []

    def call(*args: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            return real(*args)
        if after:
            real(*args)
        raise UncertainWriteError("time-out")

    return call


@pytest.mark.parametrize("after", [True, False])
def test_an_entry_whose_answer_got_lost_is_recognised(
    storage: DynamoDBStorage, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    monkeypatch.setattr(storage.entries, "add", timing_out(storage.entries.add, after))
    log_store_for(storage).publish(0, b"0")
    assert storage.read(relative_commit_path(0)) == b"0"
    assert items(storage)[0]["complete"]["S"] == "true"


def test_an_entry_that_the_client_sent_twice_is_recognised(
    storage: DynamoDBStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = storage.entries.add

    def twice(entry: CommitEntry) -> None:
        real(entry)
        real(entry)

    monkeypatch.setattr(storage.entries, "add", twice)
    log_store_for(storage).publish(0, b"0")
    assert storage.read(relative_commit_path(0)) == b"0"


def test_a_broker_that_never_answers_leaves_it_open(
    storage: DynamoDBStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_answer(*_: Any) -> Any:
        raise UncertainWriteError("time-out")

    monkeypatch.setattr(storage.entries, "add", no_answer)
    with pytest.raises(UncertainWriteError, match="version 0 was committed"):
        log_store_for(storage).publish(0, b"0")


@pytest.mark.parametrize("step", ["copy", "acknowledge"])
def test_a_failure_after_the_entry_is_a_commit_that_the_next_listing_finishes(
    storage: DynamoDBStorage, monkeypatch: pytest.MonkeyPatch, step: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One that is not in its place yet is not acknowledged: who does not ask DynamoDB may take the place."""

    def fails(*_: Any) -> None:
        raise StorageError("down")

    with monkeypatch.context() as patch:
        patch.setattr(*((storage, "put_if_absent") if step == "copy" else (storage.entries, "put")), fails)
        if step == "copy":
            with pytest.raises(UncertainWriteError, match="version 0 was committed: down"):
                log_store_for(storage).publish(0, b"0")
        else:
            log_store_for(storage).publish(0, b"0")
    assert ("commit_left_to_recovery" in caplog.text) == (step == "acknowledge")
    assert [s.path for s in storage.list_from("_delta_log")] == [relative_commit_path(0)]
    assert items(storage)[0]["complete"]["S"] == "true"


def plain(storage: DynamoDBStorage, options: dict[str, Any]) -> Storage:
    """The same table for one who does not ask DynamoDB."""
    given = {k: v for k, v in options.items() if k != "logStore" and not k.startswith("ddb")}
    return open_storage(storage.url, given)


@pytest.mark.parametrize("step", ["add", "put_if_absent", "put"])
def test_beside_a_writer_who_does_not_ask_dynamodb_no_commit_is_lost(
    storage: DynamoDBStorage, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    other = plain(storage, options)
    log_store_for(other).publish(0, b"0")
    owner: Any = storage if step == "put_if_absent" else storage.entries
    real, told = getattr(owner, step), {b"brokered": True, b"plain": True}

    def meanwhile(*given: Any) -> None:
        monkeypatch.setattr(owner, step, real)
        try:
            log_store_for(other).publish(1, b"plain")
        except FileExistsError:
            told[b"plain"] = False
        real(*given)

    monkeypatch.setattr(owner, step, meanwhile)
    try:
        log_store_for(storage).publish(1, b"brokered")
    except FileExistsError:
        told[b"brokered"] = False
        log_store_for(storage).publish(2, b"brokered")
    assert sum(told.values()) == 1
    assert told[storage.read(relative_commit_path(1))]
    log_store_for(other).publish(3 - told[b"brokered"], b"the next one")
    assert all(item["complete"]["S"] == "true" for item in items(storage))


def test_a_server_that_knows_no_conditional_puts_is_looked_at_first(
    storage: DynamoDBStorage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from botocore.exceptions import ClientError

    def refuses(*_: Any) -> None:
        said = {"Error": {"Code": "NotImplemented"}, "ResponseMetadata": {"HTTPStatusCode": 501}}
        raise ClientError(said, "PutObject")

    monkeypatch.setattr(conditional_put, "put_if_absent", refuses)
    log_store_for(storage).publish(0, b"0")
    assert storage.read(relative_commit_path(0)) == b"0"
    with pytest.raises(FileExistsError):
        log_store_for(storage).publish(0, b"1")
    assert "put_not_conditional" in caplog.text


def test_who_does_not_ask_dynamodb_is_told_of_those_who_do(
    storage: DynamoDBStorage, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    log_store_for(storage).publish(0, b"0")
    other = plain(storage, options)
    for version in (1, 2):
        log_store_for(other).publish(version, b"1")
    told = [r for r in caplog.records if getattr(r, "event", "") == "dynamodb_writers_found"]
    assert len(told) == 1


def test_who_has_not_used_dynamodb_for_long_is_not_told_of_it(
    storage: DynamoDBStorage, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    storage.write(f"_delta_log/.tmp/{0:020}.json.{uuid.uuid4()}", b"of times gone by")
    log_store_for(plain(storage, options)).publish(7, b"7")
    assert "dynamodb_writers_found" not in caplog.text


def test_a_commit_that_was_written_over_is_told_to_who_has_seen_it(
    options: dict[str, Any], storage: DynamoDBStorage, caplog: pytest.LogCaptureFixture
) -> None:
    """As delta-spark's log store does, or an older version of this package."""
    log = DeltaLog(plain(storage, options))
    log.write(pa.table({"id": [1]}))
    assert log.start_transaction().read_version == 0
    first = relative_commit_path(0)
    log.storage.write(first, log.storage.read(first) + b"\n")
    assert log.start_transaction().read_version == 0
    assert "commit_replaced" in caplog.text


def test_a_missing_dynamodb_table_is_named_with_the_way_out(options: dict[str, Any]) -> None:
    given = {**options, "ddbTableName": "typo", "ddbCreateTable": "false"}
    storage = open_storage(f"s3://{BUCKET}/{uuid.uuid4()}", given)
    for call in (lambda: log_store_for(storage).publish(0, b""), lambda: storage.list_from("_delta_log")):
        with pytest.raises(StorageError, match=r"'typo' in eu-west-1.*does not exist.*ddbCreateTable=true"):
            call()
    assert not storage.exists("_delta_log")


def test_an_unreachable_broker_is_reported_without_secrets(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {**options, "ddbEndpoint": "http://127.0.0.1:1", "ddbCreateTable": "false"}
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    storage = open_storage(f"s3://{BUCKET}/{uuid.uuid4()}", given)
    with pytest.raises(StorageError, match="gave no answer") as caught:
        storage.list_from("_delta_log")
    assert not any(secret in str(caught.value) for secret in SECRETS.values())


def test_a_table_that_is_not_on_s3_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="is for tables on S3"):
        open_storage("gs://bucket/t", {"logStore": "dynamodb"})


def test_the_key_of_a_table_hides_who_opens_it() -> None:
    address = open_storage("s3a://user:p4ssw0rd@bucket/a b/t/").address
    assert CommitEntries(address, {}).table_path() == "s3a://bucket/a b/t"
