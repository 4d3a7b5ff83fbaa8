"""The stores of a load: a server of its own each, the proxy in front of it, and how clients get there."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spark_tests.engines.stores.servers import free_port, mini_hdfs, module, program, running
from spark_tests.faults.chaos.proxy import PATIENCE
from spark_tests.faults.concurrency.workers import ROOT

BUCKET = "tables"

# The account that every Azure emulator has; its key is public.
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

Options = dict[str, Any]


@dataclass(frozen=True)
class Store:
    """A running store.

    Attributes
    ----------
    url
        Of the folder for tables; of clients that go through the proxy, where that is another one, `troubled_url`.
    options
        Of clients that go to the server itself, and of those that go through the proxy.
    modules
        What clients import.
    proxy
        The trouble; None where there is nothing between.
    flavour
        In whose words it refuses.
    server_port, at
        Of the server itself, and the options of clients that go to another port.
    """

    url: str
    options: Options = field(default_factory=dict)
    troubled: Options = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    proxy: Trouble | None = None
    flavour: str = ""
    server_port: int = 0
    at: Callable[[int], Options] = lambda port: {}
    troubled_url: str = ""


class Trouble:
    """A proxy process; see `proxy`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def say(self, *words: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()

    def counts(self) -> dict[str, int]:
        self.say("counts")
        assert self._process.stdout is not None
        found: dict[str, int] = json.loads(self._process.stdout.readline())
        return found


@contextmanager
def trouble(
    port: int, server_port: int, flavour: str, seed: int, rates: tuple[float, float]
) -> Iterator[Trouble]:
    """A proxy that answers on a port."""
    command = [
        sys.executable, "-m", "spark_tests.faults.chaos.proxy", str(port), str(server_port), flavour, str(seed),
        *map(str, rates),
    ]  # fmt: skip
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        proxy = Trouble(process)
        proxy.counts()  # it answers when it is ready
        yield proxy
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()
        process.terminate()
        process.wait(30)


Rates = tuple[float, float]


@contextmanager
def local(folder: Path, seed: int, rates: Rates) -> Iterator[Store]:
    """A folder of this machine, where calls of the operating system fail."""
    yield Store(str(folder / "tables"))


@contextmanager
def _s3(server: AbstractContextManager[int], login: Options, seed: int, rates: Rates) -> Iterator[Store]:
    import s3fs

    def options(port: int) -> Options:
        patience = {"connect_timeout": PATIENCE, "read_timeout": PATIENCE}
        return {**login, "endpoint_url": f"http://127.0.0.1:{port}", "config_kwargs": patience}

    port = free_port()
    with server as server_port, trouble(port, server_port, "s3", seed, rates) as proxy:
        s3fs.S3FileSystem(**options(server_port)).mkdir(BUCKET)
        modules = ("s3fs", "aiobotocore.session", "aiobotocore.httpsession")
        ways = options(server_port), options(port)
        yield Store(f"s3a://{BUCKET}", *ways, modules, proxy, "s3", server_port, options)


def moto(folder: Path, seed: int, rates: Rates) -> AbstractContextManager[Store]:
    """An emulated S3 in Python."""
    module("s3fs")
    module("moto.server")

    @contextmanager
    def server() -> Iterator[int]:
        port = free_port()
        command = [sys.executable, "-m", "spark_tests.faults.concurrency.moto_server", str(port)]
        with running(command, port, folder / "log", PYTHONPATH=str(ROOT)):
            yield port

    return _s3(server(), {"key": "test-key", "secret": "test-secret"}, seed, rates)


def minio(folder: Path, seed: int, rates: Rates) -> AbstractContextManager[Store]:
    """MinIO."""
    module("s3fs")

    @contextmanager
    def server() -> Iterator[int]:
        port = free_port()
        command = [program("minio"), "server", str(folder / "data"), "--address", f"127.0.0.1:{port}"]
        login = {"MINIO_ROOT_USER": "test-user", "MINIO_ROOT_PASSWORD": "test-password"}
        with running(command, port, folder / "log", **login):
            yield port

    return _s3(server(), {"key": "test-user", "secret": "test-password"}, seed, rates)


@contextmanager
def fake_gcs_server(folder: Path, seed: int, rates: Rates) -> Iterator[Store]:
    """An emulated Google Cloud Storage."""
    module("gcsfs")
    os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"
    import gcsfs

    def options(port: int) -> Options:
        return {
            "endpoint_url": f"http://127.0.0.1:{port}", "token": "anon", "project": "p",
            "requests_timeout": PATIENCE,
        }  # fmt: skip

    port, server_port = free_port(), free_port()
    # Where uploads go on is said by the server: through the proxy.
    command = [
        program("fake-gcs-server"), "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1",
        "-port", str(server_port), "-public-host", f"127.0.0.1:{port}",
    ]  # fmt: skip
    with (
        running(command, server_port, folder / "log"),
        trouble(port, server_port, "gs", seed, rates) as proxy,
    ):
        gcsfs.GCSFileSystem(**options(server_port)).mkdir(BUCKET)
        ways = options(server_port), options(port)
        yield Store(f"gs://{BUCKET}", *ways, ("gcsfs",), proxy, "gs", server_port, options)


@contextmanager
def azurite(folder: Path, seed: int, rates: Rates) -> Iterator[Store]:
    """An emulated Azure Blob Storage."""
    module("adlfs")
    import adlfs

    def options(port: int) -> Options:
        connection = (
            f"DefaultEndpointsProtocol=http;AccountName={AZURE_ACCOUNT};AccountKey={AZURE_KEY};"
            f"BlobEndpoint=http://127.0.0.1:{port}/{AZURE_ACCOUNT};"
        )
        return {
            "connection_string": connection, "connection_timeout": PATIENCE, "read_timeout": PATIENCE,
        }  # fmt: skip

    port, server_port = free_port(), free_port()
    command = [
        program("azurite-blob"), "--inMemoryPersistence", "--blobHost", "127.0.0.1", "--blobPort", str(server_port),
        "--skipApiVersionCheck", "--silent",
    ]  # fmt: skip
    with (
        running(command, server_port, folder / "log"),
        trouble(port, server_port, "abfs", seed, rates) as proxy,
    ):
        adlfs.AzureBlobFileSystem(**options(server_port)).mkdir(BUCKET)
        url = f"abfss://{BUCKET}@{AZURE_ACCOUNT}.dfs.core.windows.net"
        ways = options(server_port), options(port)
        modules = ("adlfs", "azure.storage.blob.aio")
        yield Store(url, *ways, modules, proxy, "abfs", server_port, options)


@contextmanager
def hdfs(folder: Path, seed: int, rates: Rates) -> Iterator[Store]:
    """HDFS, by WebHDFS: the proxy is before the namenode, which decides; data goes to the datanode without it."""
    port, options = free_port(), {"user": getpass.getuser()}
    with mini_hdfs(folder) as (_, server_port), trouble(port, server_port, "webhdfs", seed, rates) as proxy:
        url = f"webhdfs://127.0.0.1:{server_port}/{BUCKET}"
        modules = ("fsspec.implementations.webhdfs",)
        through = f"webhdfs://127.0.0.1:{port}/{BUCKET}"
        yield Store(
            url, options, options, modules, proxy, "webhdfs", server_port, lambda port: options, through
        )


STORES: dict[str, Callable[[Path, int, Rates], AbstractContextManager[Store]]] = {
    "local": local, "moto": moto, "minio": minio, "fake-gcs-server": fake_gcs_server, "azurite": azurite, "hdfs": hdfs,
}  # fmt: skip
