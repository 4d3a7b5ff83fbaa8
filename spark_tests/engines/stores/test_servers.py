"""The storage contracts on MinIO, fake-gcs-server, Azurite and HDFS, as programs of their own on loopback."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from delta_ds import DeltaLog
from delta_ds.exceptions import StorageError
from delta_ds.kernel.storage.filesystem import Storage
from delta_ds.kernel.storage.log_store import relative_commit_path
from delta_ds.kernel.storage.open import log_store_for, open_storage
from spark_tests.behaviour.kernel.storage.contract import Put, StorageContract, files_below
from spark_tests.behaviour.kernel.storage.write_contract import WriteContract, race_processes
from spark_tests.engines.stores.servers import free_port, mini_hdfs, module, program, running

pytestmark = pytest.mark.stores

BUCKET = "tables"

# The account that every Azure emulator has; its key is public.
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class ServerContract(StorageContract, WriteContract):
    """Both contracts, and what is asked of a real server besides."""

    @pytest.fixture
    def put(self, storage: Storage) -> Put:
        return storage.write

    def test_of_eight_processes_that_create_one_object_one_wins_and_keeps_it(self, storage: Storage) -> None:
        won = race_processes(storage, relative_commit_path(0), 8)
        assert len(won) == 1
        assert storage.read(relative_commit_path(0)) == won[0]

    def test_a_large_replaced_file_arrives_whole(self, storage: Storage) -> None:
        piece = os.urandom(1 << 20)
        with storage.replace_file("_delta_log/large") as stream:
            for _ in range(120):
                stream.write(piece)
        assert storage.status("_delta_log/large").size == 120 << 20
        assert storage.read_range("_delta_log/large", 119 << 20, 1 << 20) == piece

    def test_a_bucket_that_does_not_exist_is_refused(self, storage: Storage) -> None:
        import pyarrow as pa

        elsewhere = open_storage(storage.url.replace(BUCKET, "no-such-bucket", 1), storage.options)
        for _ in range(2):  # the first write has made nothing
            with pytest.raises(StorageError, match="cannot write"):
                log_store_for(elsewhere).publish(0, b"")
            for call in (
                DeltaLog(elsewhere).snapshot,
                lambda: DeltaLog(elsewhere).write(pa.table({"a": [1]})),
            ):
                with pytest.raises(
                    StorageError, match="there is no (bucket|container) 'no-such-bucket'"
                ) as caught:
                    call()
                assert caught.value.condition == "DELTA_STORAGE_ERROR.BUCKET_NOT_FOUND"


def _refused_for(storage: Storage, options: dict[str, Any], condition: str) -> None:
    """Reads, and a commit, with these options are refused for this reason, and nothing is written."""
    options = {name: value for name, value in options.items() if value is not None}
    other = open_storage(storage.url, options)
    for call in (DeltaLog(other).snapshot, lambda: other.create("_delta_log/x", b"1")):
        with pytest.raises(StorageError) as caught:
            call()
        assert caught.value.condition == f"DELTA_STORAGE_ERROR.{condition}"
        assert "\n" not in str(caught.value)
        assert "wrong" not in str(caught.value).replace("secret is wrong", "")
    assert not storage.exists("_delta_log/x")


@pytest.fixture(scope="module")
def minio_options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    module("s3fs")
    import s3fs

    minio, port, folder = program("minio"), free_port(), tmp_path_factory.mktemp("minio")
    command = [minio, "server", str(folder / "data"), "--address", f"127.0.0.1:{port}"]
    login = {"MINIO_ROOT_USER": "test-user", "MINIO_ROOT_PASSWORD": "test-password"}
    with running(command, port, folder / "log", **login):
        options = {
            "key": "test-user", "secret": "test-password", "endpoint_url": f"http://127.0.0.1:{port}",
        }  # fmt: skip
        s3fs.S3FileSystem(**options).mkdir(BUCKET)
        yield options


class TestMinio(ServerContract):
    @pytest.fixture
    def storage(self, minio_options: dict[str, Any]) -> Storage:
        return open_storage(f"s3a://{BUCKET}/{uuid.uuid4()}/t 1", minio_options)

    @pytest.mark.parametrize(
        ("given", "condition"),
        [
            ({"key": "wrong-key"}, "INVALID_CREDENTIALS"),
            ({"secret": "wrong-secret"}, "INVALID_CREDENTIALS"),
            ({"token": "wrong-token"}, "INVALID_CREDENTIALS"),
            ({"key": None, "secret": None, "anon": True}, "ACCESS_DENIED"),
        ],
    )
    def test_credentials_that_do_not_count_say_so(
        self, storage: Storage, given: dict[str, Any], condition: str
    ) -> None:
        _refused_for(storage, {**storage.options, **given}, condition)


@pytest.fixture(scope="module")
def gcs_options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    module("gcsfs")
    os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"
    import gcsfs

    server, port = program("fake-gcs-server"), free_port()
    command = [
        server, "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", str(port),
        "-public-host", f"127.0.0.1:{port}",
    ]  # fmt: skip
    with running(command, port, tmp_path_factory.mktemp("gcs") / "log"):
        options = {"endpoint_url": f"http://127.0.0.1:{port}", "token": "anon", "project": "p"}
        gcsfs.GCSFileSystem(**options).mkdir(BUCKET)
        yield options


class TestFakeGcsServer(ServerContract):
    @pytest.fixture
    def storage(self, gcs_options: dict[str, Any]) -> Storage:
        return open_storage(f"gs://{BUCKET}/{uuid.uuid4()}/t 1", gcs_options)


@pytest.fixture(scope="module")
def azurite_options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    module("adlfs")
    import adlfs

    server, port = program("azurite-blob"), free_port()
    command = [
        server, "--inMemoryPersistence", "--blobHost", "127.0.0.1", "--blobPort", str(port),
        "--skipApiVersionCheck", "--silent",
    ]  # fmt: skip
    with running(command, port, tmp_path_factory.mktemp("azurite") / "log"):
        connection = (
            f"DefaultEndpointsProtocol=http;AccountName={AZURE_ACCOUNT};AccountKey={AZURE_KEY};"
            f"BlobEndpoint=http://127.0.0.1:{port}/{AZURE_ACCOUNT};"
        )
        adlfs.AzureBlobFileSystem(connection_string=connection).mkdir(BUCKET)
        yield {"connection_string": connection}


class TestAzurite(ServerContract):
    @pytest.fixture
    def storage(self, azurite_options: dict[str, Any]) -> Storage:
        return open_storage(
            f"abfss://{BUCKET}@{AZURE_ACCOUNT}.dfs.core.windows.net/{uuid.uuid4()}/t 1", azurite_options
        )

    def test_a_wrong_key_says_so(self, storage: Storage) -> None:
        wrong = storage.options["connection_string"].replace(AZURE_KEY, "d3Jvbmc=")
        _refused_for(storage, {"connection_string": wrong}, "INVALID_CREDENTIALS")


@pytest.fixture(scope="module")
def hdfs_ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    with mini_hdfs(tmp_path_factory.mktemp("hdfs")) as ports:
        yield ports


class HdfsContract(ServerContract):
    """What is true of HDFS besides: files grow while they are written, and a rename decides who has a version."""

    def test_a_bucket_that_does_not_exist_is_refused(self, storage: Storage) -> None:
        pytest.skip("HDFS has no buckets")

    def test_a_folder_in_the_place_of_a_commit_takes_no_commit_into_it(self, storage: Storage) -> None:
        storage.write(f"{relative_commit_path(0)}/inner", b"1")
        with pytest.raises((FileExistsError, StorageError)):
            storage.create(relative_commit_path(0), b"commit")
        assert list(files_below(storage)) == [f"{relative_commit_path(0)}/inner"]


class TestHdfs(HdfsContract):
    @pytest.fixture
    def storage(self, hdfs_ports: tuple[int, int]) -> Storage:
        module("hdfs_native")
        return open_storage(f"hdfs://127.0.0.1:{hdfs_ports[0]}/{uuid.uuid4()}/t 1")

    def test_nothing_of_a_commit_is_seen_before_it_is_whole(
        self, storage: Storage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = log_store_for(storage)
        store.publish(0, b"first")

        def killed(self: Any, *_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(type(storage._fs), "rename_if_absent", killed)  # type: ignore[attr-defined]
            patch.setattr(type(storage._fs), "rm_file", killed)  # type: ignore[attr-defined]
            with pytest.raises(KeyboardInterrupt):
                store.publish(1, b"second")
        found = [status.path for status in storage.list_from("_delta_log", "0")]
        assert found == [relative_commit_path(0)]
        left = [path for path in files_below(storage) if path != relative_commit_path(0)]
        assert len(left) == 1
        assert left[0].startswith("_delta_log/.") and left[0].endswith(".tmp")
        store.publish(1, b"third")
        assert storage.read(relative_commit_path(1)) == b"third"

    def test_a_file_that_is_being_written_is_listed_without_its_last_bytes(self, storage: Storage) -> None:
        with storage.open_output("data/part-0.parquet") as stream:
            stream.write(b"12345")
            assert storage.status("data/part-0.parquet").size == 0
        assert storage.status("data/part-0.parquet").size == 5

    def test_only_empty_folders_are_deleted(self, storage: Storage) -> None:
        storage.write("a/b/x", b"1")
        storage.write("c/d/x", b"1")
        storage.delete(["c/d/x"])
        assert storage.delete_empty_folders(["a/b", "c", "c/d", "e"]) == ["c/d", "c"]
        assert storage.read("a/b/x") == b"1"

    def test_a_namenode_that_is_not_there_is_one_line_that_names_it(self) -> None:
        port = free_port()
        with pytest.raises(StorageError) as caught:
            open_storage(f"hdfs://127.0.0.1:{port}/t").exists("_delta_log")
        assert "\n" not in str(caught.value)
        assert str(port) in str(caught.value)


class TestWebHdfs(HdfsContract):
    @pytest.fixture
    def storage(self, hdfs_ports: tuple[int, int]) -> Storage:
        return open_storage(f"webhdfs://127.0.0.1:{hdfs_ports[1]}/{uuid.uuid4()}/t 1", {"user": "root"})
