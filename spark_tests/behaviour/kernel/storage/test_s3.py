"""Tables on S3, against moto's server on loopback."""

from __future__ import annotations

import io
import itertools
import uuid
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds.exceptions import StorageError
from delta_ds.kernel.log.checkpoint_files import CheckpointFiles, CheckpointReplacedError, open_file
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import open_storage
from spark_tests.behaviour.kernel.storage.contract import Put, StorageContract
from spark_tests.behaviour.kernel.storage.write_contract import WriteContract, race_processes

pytest.importorskip("s3fs", reason="s3fs is not installed")
pytest.importorskip("moto.server", reason="moto[server] is not installed")

pytestmark = pytest.mark.stores

BUCKET = "tables"


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, Any]]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield {"key": "test-key", "secret": "test-secret", "endpoint_url": f"http://{host}:{port}"}
    server.stop()


@pytest.fixture(scope="module")
def filesystem(options: dict[str, Any]) -> Any:
    import s3fs

    filesystem = s3fs.S3FileSystem(use_listings_cache=False, **options)
    filesystem.mkdir(BUCKET)
    return filesystem


@pytest.fixture
def storage(options: dict[str, Any], filesystem: Any) -> Storage:
    return open_storage(f"s3a://{BUCKET}/{uuid.uuid4()}/t 1", options)


@pytest.fixture
def put(storage: Storage, filesystem: Any) -> Put:
    base = storage.url.removeprefix("s3://")

    def write(path: str, data: bytes) -> None:
        filesystem.pipe_file(f"{base}/{path}", data)

    return write


class TestS3(StorageContract):
    pass


class TestS3Writes(WriteContract):
    pass


@pytest.mark.slow
def test_of_eight_processes_that_create_one_object_one_wins_and_keeps_it(storage: Storage) -> None:
    won = race_processes(storage, "_delta_log/0.json", 8)
    assert len(won) == 1
    assert storage.read("_delta_log/0.json") == won[0]


def test_more_files_than_a_request_takes_are_deleted(storage: Storage, filesystem: Any) -> None:
    paths = [f"d/{i}" for i in range(1003)]
    for path in paths[-4:]:
        storage.write(path, b"1")
    storage.delete(paths)
    with pytest.raises(FileNotFoundError):
        storage.list_from("d")


def test_a_refused_create_says_that_nothing_was_written(options: dict[str, Any]) -> None:
    with pytest.raises(
        StorageError, match=r"cannot write s3://no-such-bucket/t/x.*nothing was written"
    ) as caught:
        open_storage("s3://no-such-bucket/t", options).create("x", b"1")
    assert type(caught.value) is StorageError


def test_a_long_log_is_listed_whole_and_only_from_the_key(storage: Storage, put: Put) -> None:
    from concurrent.futures import ThreadPoolExecutor

    names = [f"{version:020}.json" for version in range(1050)]  # a page of S3 holds 1,000
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: put(f"_delta_log/{name}", b""), names))
    assert [s.path for s in storage.list_from("_delta_log")] == [f"_delta_log/{name}" for name in names]
    asked = _requests(storage, lambda: storage.list_from("_delta_log", names[1040]))
    assert [r["StartAfter"].endswith("1040.jsom") for r in asked] == [True]


def _requests(storage: Any, call: Any) -> list[dict[str, Any]]:
    """The listing requests that S3 gets during a call."""
    filesystem = storage._fs
    asked: list[dict[str, Any]] = []
    real = filesystem.call_s3

    def spy(method: str, **request: Any) -> Any:
        asked.append(request)
        return real(method, **request)

    filesystem.call_s3 = spy
    try:
        call()
    finally:
        del filesystem.call_s3
    return asked


def test_a_folder_marker_is_not_a_file_but_makes_the_folder_exist(storage: Storage, filesystem: Any) -> None:
    filesystem.call_s3("put_object", Bucket=BUCKET, Key=storage.address.path[1:] + "/_delta_log/", Body=b"")
    assert storage.list_from("_delta_log") == []
    assert storage.list_from("_delta_log", "0") == []


def test_a_missing_bucket_is_not_an_empty_folder(options: dict[str, Any]) -> None:
    with pytest.raises(StorageError, match="there is no bucket 'no-such-bucket'"):
        open_storage("s3://no-such-bucket/t", options).list_from("_delta_log")


def test_an_unreachable_endpoint_gives_a_storage_error_without_secrets() -> None:
    options = {
        "key": "my-key", "secret": "my-secret", "endpoint_url": "http://127.0.0.1:1",
        "config_kwargs": {"retries": {"max_attempts": 0}, "connect_timeout": 1},
    }  # fmt: skip
    storage = open_storage(f"s3://{BUCKET}/t", options)
    storage._fs.retries = 1  # type: ignore[attr-defined]
    with pytest.raises(StorageError, match="127.0.0.1:1") as caught:
        storage.read("x")
    assert "my-key" not in str(caught.value)
    assert "my-secret" not in str(caught.value)


@pytest.mark.parametrize("seconds", [0, 5], ids=["within a second", "later"])
def test_a_checkpoint_that_is_written_again_is_told_from_one_that_the_store_does_not_give(
    storage: Storage, put: Put, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    moto = pytest.importorskip("moto.s3.models")
    times = itertools.count(moto.utcnow().timestamp(), seconds)
    monkeypatch.setattr(
        moto, "utcnow", lambda: datetime.fromtimestamp(next(times), timezone.utc).replace(tzinfo=None)
    )
    put("c.parquet", _checkpoint("a"))
    files = CheckpointFiles(("c.parquet",))
    with open_file(storage, files, "c.parquet") as opened:
        assert opened.read(["add.path"])["add"].to_pylist()[:1] == [{"path": "a0"}]
    assert files.are_certain
    with open_file(storage, files, "c.parquet") as opened:
        put("c.parquet", _checkpoint("b"))
        with pytest.raises(CheckpointReplacedError):
            list(opened.batches(1000, ["add.path"]))
    with pytest.raises(CheckpointReplacedError):
        open_file(storage, files, "c.parquet")
    with open_file(storage, CheckpointFiles(("c.parquet",)), "c.parquet") as opened:
        assert opened.read(["add.path"])["add"].to_pylist()[:1] == [{"path": "b0"}]


def _checkpoint(prefix: str) -> bytes:
    """More than a client reads ahead."""
    rows = [{"path": f"{prefix}{n}", "stats": uuid.uuid4().hex * 100} for n in range(10_000)]
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"add": rows}), sink, compression="none", use_dictionary=False, row_group_size=1000
    )
    return sink.getvalue()
