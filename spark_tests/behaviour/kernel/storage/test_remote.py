"""Tables behind fsspec: memory here, S3 in `test_s3.py`; and what no message may show."""

from __future__ import annotations

import io
import pickle
import uuid
from contextlib import nullcontext
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_ds.exceptions import StorageError
from delta_ds.kernel.storage import remote
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.open import open_storage
from delta_ds.kernel.storage.remote_files import RemoteInput
from delta_ds.kernel.storage.store_options import SecretOptions
from delta_ds.kernel.storage.uri import parse_address
from spark_tests.behaviour.kernel.storage.contract import Put, StorageContract
from spark_tests.behaviour.kernel.storage.write_contract import WriteContract

SECRET = "s3cr3t-value"


@pytest.fixture
def storage() -> Storage:
    return open_storage(f"memory://{uuid.uuid4()}/t 1")


@pytest.fixture
def put(storage: Storage) -> Put:
    filesystem = fsspec.filesystem("memory")
    base = storage.url.removeprefix("memory:/")

    def write(path: str, data: bytes) -> None:
        filesystem.pipe_file(f"{base}/{path}", data)

    return write


class TestMemory(StorageContract):
    pass


class TestMemoryWrites(WriteContract):
    pass


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("s3a://bucket/t/", "s3://bucket/t"),
        ("S3N://bucket//t", "s3://bucket/t"),
        ("s3://bucket", "s3://bucket"),
        ("gcs://bucket/t", "gs://bucket/t"),
        ("abfss://box@account.dfs.core.windows.net/t", "abfs://box@account.dfs.core.windows.net/t"),
        ("wasbs://box@account.blob.core.windows.net/t", "abfs://box@account.blob.core.windows.net/t"),
        ("az://box/t", "abfs://box/t"),
        ("hdfs://name:8020/t", "hdfs://name:8020/t"),
        ("hdfs:///t", "hdfs:///t"),
        ("memory://a/b", "memory://a/b"),
        ("memory:///a/b", "memory://a/b"),
        (f"s3://user:{SECRET}@bucket/t", "s3://bucket/t"),
        (f"sftp://user:{SECRET}@host:22/t", "sftp://host:22/t"),
        (f"https://host/t?sig={SECRET}", "https://host/t"),
    ],
)
def test_an_address_is_shown_in_one_spelling_without_credentials(given: str, shown: str) -> None:
    storage = open_storage(given)
    assert storage.url == shown
    for text in (repr(storage), str(storage), repr(storage.address), f"{vars(storage)}"):
        assert SECRET not in text


@pytest.mark.parametrize(
    ("table", "log_path", "resolved"),
    [
        ("s3://b/t", "s3a://b/t/x%20y", "x y"),
        ("s3://b/t", "s3://other/x%20y", "s3://other/x y"),
        ("s3://b/t", "/t/x", "x"),
        ("s3://b/t", "/u/x", "s3://b/u/x"),
        ("s3://b/t", "s3://b/t2/x", "s3://b/t2/x"),
        ("s3://b", "s3://b/x", "x"),
        ("abfss://c@a.dfs.core.windows.net/t", "abfss://c@a.dfs.core.windows.net/t/x", "x"),
        ("abfss://c@a.dfs.core.windows.net/t", "abfs://d@a.dfs.core.windows.net/x", "abfs://d@a.dfs.core.windows.net/x"),
        ("hdfs://n:8020/t", "hdfs:///u/x", "hdfs://n:8020/u/x"),
        ("memory://m/t", "memory://m/u/x", "memory://m/u/x"),
        ("memory://m/t", "/m/t/x", "x"),
    ],
)  # fmt: skip
def test_absolute_paths_on_the_tables_own_store_are_followed(
    table: str, log_path: str, resolved: str
) -> None:
    assert open_storage(table).resolve(log_path) == resolved


@pytest.mark.parametrize(
    ("table", "log_path"),
    [
        ("s3://b/t", "file:///etc/passwd"),
        ("s3://b/t", "gs://b/t/x"),
        ("memory://m/t", "file:/etc/passwd"),
        ("abfss://c@a.dfs.core.windows.net/t", "abfss://c@evil.dfs.core.windows.net/t"),
        ("hdfs://n:8020/t", "hdfs://other:8020/t/x"),
        ("https://host/t", "https://evil/t/x"),
    ],
)
def test_paths_on_another_store_are_refused_naming_the_table(table: str, log_path: str) -> None:
    storage = open_storage(table)
    with pytest.raises(StorageError) as caught:
        storage.resolve(log_path)
    assert storage.url in str(caught.value)


def test_an_absolute_path_on_the_same_store_is_read(storage: Storage, put: Put) -> None:
    put("x", b"1")
    other = open_storage("memory://elsewhere/t")
    assert other.read(other.resolve(f"{storage.url}/x".replace(" ", "%20"))) == b"1"


class _Failing:
    """A filesystem whose every error quotes what it was given."""

    def __init__(self, text: str) -> None:
        self.text = text

    def _strip_protocol(self, path: str) -> str:
        return path

    def __getattr__(self, name: str) -> Any:
        def fail(*_: Any, **__: Any) -> Any:
            raise PermissionError(f"denied for {self.text}")

        return fail


def test_options_never_show_in_reprs_or_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"key": "AKIA123", "secret": SECRET, "client_kwargs": {"token": "t0ken", "region_name": "eu"}}
    storage = open_storage(f"x://user:{SECRET}2@host/t", options)
    failing = _Failing(f"AKIA123 {SECRET} t0ken eu user:{SECRET}2")
    monkeypatch.setattr(remote.clients, "client", lambda address, given: failing)
    assert dict(storage.options) == options
    calls = (
        lambda: storage.list_from("a"), lambda: storage.read("a"), lambda: storage.open("a"),
        lambda: storage.status("a"), lambda: storage.exists("a"), lambda: storage.read_range("a", 0, 1),
        lambda: storage.read_many(["a", "b"]),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(StorageError) as caught:
            call()
        assert "x://host/t/a" in str(caught.value)
        assert "eu" in str(caught.value)
        assert caught.value.__cause__ is None
        for text in (str(caught.value), repr(caught.value), str(caught.value.parameters)):
            assert not any(secret in text for secret in (SECRET, "AKIA123", "t0ken"))
    assert SECRET not in f"{storage!r} {storage.options!r} {storage.options} {vars(storage)}"


def test_options_are_pickled_and_stay_hidden() -> None:
    storage = pickle.loads(pickle.dumps(open_storage(f"s3://u:{SECRET}@b/t", {"secret": SECRET})))
    assert storage.options["secret"] == SECRET
    assert isinstance(storage.options, SecretOptions)
    assert storage.address.userinfo == f"u:{SECRET}"
    assert SECRET not in f"{storage!r} {vars(storage)}"


def test_a_login_in_an_s3_url_becomes_options(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def url_to_fs(url: str, **options: Any) -> tuple[None, str]:
        seen.update(options, url=url)
        return None, url

    monkeypatch.setattr(fsspec.core, "url_to_fs", url_to_fs)
    remote.clients.client(parse_address("s3://k%2Fey:se%2Bcret@b/t"), {"anon": False})
    assert seen == {
        "url": "s3://b/t", "key": "k/ey", "secret": "se+cret", "anon": False, "use_listings_cache": False,
        "skip_instance_cache": True,
    }  # fmt: skip


def test_an_unknown_scheme_is_refused_by_name() -> None:
    with pytest.raises(StorageError, match="'nosuch'"):
        open_storage("nosuch://host/t").read("x")


def test_a_store_whose_package_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def url_to_fs(url: str, **options: Any) -> Any:
        raise ImportError("Install gcsfs to access Google Storage")

    monkeypatch.setattr(fsspec.core, "url_to_fs", url_to_fs)
    with pytest.raises(StorageError, match=r"pip install 'delta_ds\[gcs\]'"):
        open_storage("gs://bucket/t").read("x")


def test_a_filesystem_is_opened_anew_after_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    monkeypatch.setattr(remote.clients, "client", lambda *args: opened.append(args) or object())
    storage = open_storage("x://host/t")
    assert isinstance(storage, remote.RemoteStorage)
    first = storage._fs
    assert storage._fs is first
    monkeypatch.setattr(remote.os, "getpid", lambda: -1)
    assert storage._fs is not first
    assert len(opened) == 2


def test_a_stream_that_does_not_say_where_it_went_is_read_by_arrow() -> None:
    class Silent(io.BytesIO):
        def seek(self, offset: int, whence: int = io.SEEK_SET) -> None:  # type: ignore[override]
            super().seek(offset, whence)

    written = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2]}), written)
    stream = RemoteInput(Silent(written.getvalue()), nullcontext)
    assert pq.read_table(stream).column("id").to_pylist() == [1, 2]
    assert stream.seek(-4, io.SEEK_END) == len(written.getvalue()) - 4
