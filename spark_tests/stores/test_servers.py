"""The storage contracts on MinIO, fake-gcs-server and Azurite, as programs of their own on loopback."""

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
from spark_tests.kernel.storage.contract import Put, StorageContract
from spark_tests.kernel.storage.write_contract import WriteContract, race_processes
from spark_tests.stores.servers import free_port, module, program, running

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

    def test_a_bucket_that_does_not_exist_is_refused_and_not_made(self, storage: Storage) -> None:
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
