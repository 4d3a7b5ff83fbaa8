"""A Spark Connect server whose Python has only this package, and a client, each in a process and folder of its own.

Not in the tests' process: a session of Spark Connect changes what pyspark's functions do in all of it. And not by
`builder.remote("local")`: servers that are started so all want the same port.
"""

from __future__ import annotations

import importlib.metadata
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import venv
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ("delta_ds", "pyspark_pydelta.py")
# Those of pyproject.toml. What pandas, grpcio and so on are for, only a client needs.
DEPENDENCIES = ("pyspark", "numpy", "pyarrow", "fsspec", "sqlglot", "pyroaring", "tzdata")
SECONDS = 300

_SERVER = """
import sys
from pyspark.sql import SparkSession
port, folder = sys.argv[1:]
session = (SparkSession.builder.master("local[2]")
    .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
    .config("spark.connect.grpc.binding.port", port)
    .config("spark.driver.memory", "1g").config("spark.ui.enabled", "false")
    .config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.warehouse.dir", folder + "/warehouse").getOrCreate())
session.sparkContext.setLogLevel("OFF")
print("ready", flush=True)
sys.stdin.read()
session.stop()
"""


@dataclass(frozen=True)
class Server:
    """Where clients find a server of Spark Connect, and the folder that it runs in."""

    url: str
    folder: Path


@dataclass(frozen=True)
class Failure:
    """How a call in the client ended.

    Attributes
    ----------
    kind
        The class that was raised.
    text
        What it says.
    recognised
        What `as_delta_error` makes of it.
    """

    kind: str
    text: str
    recognised: BaseException | None


class Client:
    """A process with a session of Spark Connect: `client(function, ...)` is `function(spark, ...)` there."""

    def __init__(self, pool: ProcessPoolExecutor, server_folder: Path, folder: Path) -> None:
        self._pool = pool
        self.server_folder = server_folder
        self.folder = folder

    def __call__(self, function: Callable[..., T], *arguments: Any) -> T:
        """What the function returns, or an error of this package that it raises."""
        from pyspark import cloudpickle

        called = self._pool.submit(_call, cloudpickle.dumps((function, arguments)))
        result: T = cloudpickle.loads(called.result(SECONDS))
        return result

    def failure(self, function: Callable[..., object], *arguments: Any) -> Failure:
        """How the function fails; that it does is made sure of."""
        failure = self(_failure, function, arguments)
        assert failure is not None, "nothing was raised"
        return failure


@contextmanager
def server_of_others(folder: Path) -> Iterator[Server]:
    """Start a server that knows nothing of this package below a folder, and end it."""
    server_folder = folder / "server"
    server_folder.mkdir()
    python = make_python(folder / "python")
    port = _free_port()
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    with (
        open(folder / "server.log", "w") as log,
        subprocess.Popen(
            [python, "-c", _SERVER, str(port), str(folder)],
            cwd=server_folder,
            env={**environment, "PYSPARK_PYTHON": str(python)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        started = server.stdout.readline()
        assert started == "ready\n", (folder / "server.log").read_text()[-4000:]
        yield Server(f"sc://127.0.0.1:{port}", server_folder)
        server.stdin.close()
        server.wait(SECONDS)


@contextmanager
def connect_client(server: Server, folder: Path) -> Iterator[Client]:
    """A client of a server of the run, in a process, folder and session of its own."""
    with client_of(server.url, server.folder, folder) as client:
        yield client


def register(spark: SparkSession) -> None:
    """Register this package in the session of a client."""
    import delta_ds

    delta_ds.register(spark)


@contextmanager
def registered_client(server: Server, folder: Path) -> Iterator[Client]:
    """As `connect_client`, with this package registered in the session."""
    with connect_client(server, folder) as client:
        client(register)
        yield client


@contextmanager
def server_of_ours(folder: Path) -> Iterator[str]:
    """Run `python -m delta_ds connect-server` in a folder; what clients give to `SparkSession.builder.remote`."""
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
    }
    command = [sys.executable, "-m", "delta_ds", "connect-server", "--port", "0"]
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    with (
        open(folder / "server.log", "w") as log,
        subprocess.Popen(
            command, cwd=folder, env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            stdout=subprocess.PIPE, stderr=log, text=True,
        ) as process,
    ):  # fmt: skip
        assert process.stdout is not None
        started = process.stdout.readline()
        assert started.startswith("serving sc://"), (folder / "server.log").read_text()[-4000:]
        yield started.split()[1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0


@contextmanager
def client_of_ours(folder: Path) -> Iterator[Client]:
    """A server of ours in a folder, and a client of it; the test is skipped where there is no Spark Connect."""
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: install delta-ds[connect]")
    (folder / "client").mkdir()
    with server_of_ours(folder) as url, client_of(url, folder, folder / "client") as client:
        yield client


def run(spark: SparkSession, *texts: str) -> list[list[tuple[Any, ...]]]:
    """The rows that statements answer."""
    return [[tuple(row) for row in spark.sql(text).collect()] for text in texts]


@contextmanager
def client_of(url: str, server_folder: Path, folder: Path) -> Iterator[Client]:
    """A client of a server, in a process and folder of its own."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, _connect, (url, str(folder))) as pool:
        yield Client(pool, server_folder, folder)


class CuttingProxy:
    """A proxy in front of a port of loopback, which can cut all connections that pass it."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: set[socket.socket] = set()
        self._changing = threading.Lock()

    def serve(self) -> None:
        """Let connections through until the listener is closed."""
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                return
            with self._changing:
                self._open |= {client, server}
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(1 << 16):
                other.sendall(data)
        except OSError:
            pass
        finally:
            self._end({one, other})

    def cut(self) -> int:
        """Cut the connections that there are; how many sockets they had."""
        with self._changing:
            ends = set(self._open)
        self._end(ends)
        return len(ends)

    def _end(self, ends: set[socket.socket]) -> None:
        with self._changing:
            self._open -= ends
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        self._listener.close()
        self.cut()


@contextmanager
def cutting_proxy(port: int) -> Iterator[CuttingProxy]:
    """A proxy in front of a port of loopback, until the block ends."""
    running = CuttingProxy(port)
    threading.Thread(target=running.serve, daemon=True).start()
    try:
        yield running
    finally:
        running.close()


def make_python(folder: Path) -> Path:
    """A Python that can import this package and what it depends on, by links to what is installed here."""
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in PACKAGE:
        (site / name).symlink_to(ROOT / name)
    for distribution in closure(DEPENDENCIES):
        tops = {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}
        for top in tops:
            (site / top).symlink_to(str(distribution.locate_file(top)))
    return folder / "bin" / "python"


def closure(names: tuple[str, ...]) -> list[importlib.metadata.Distribution]:
    """These distributions and all that they require, as far as they are installed here."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = list(names)
    while waiting:
        match = re.match(r"[\w.-]+", waiting.pop())
        assert match is not None
        name = match.group().lower().replace("_", "-")
        installed = name not in found and next(iter(importlib.metadata.distributions(name=name)), None)
        if installed:
            found[name] = installed
            waiting += [text for text in installed.requires or () if "extra ==" not in text]
    return list(found.values())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


_sessions: list[Any] = []
_others: list[Any] = []
_urls: list[str] = []


def another_session() -> Any:
    """A second session of the client that this is called in, until the call ends; `newSession` is new in Spark 4.3."""
    from pyspark.sql import SparkSession

    _others.append(SparkSession.builder.remote(_urls[0]).create())
    return _others[-1]


def _connect(url: str, folder: str) -> None:
    _urls.append(url)
    os.chdir(folder)
    # Of another server, that another test started in this process's parent.
    os.environ.pop("SPARK_CONNECT_AUTHENTICATE_TOKEN", None)
    from pyspark.sql import SparkSession

    _sessions.append(SparkSession.builder.remote(url).getOrCreate())


def _call(pickled: bytes) -> bytes:
    from pyspark import cloudpickle
    from pyspark.errors import PySparkException

    from delta_ds.exceptions import DeltaError

    function, arguments = cloudpickle.loads(pickled)
    try:
        return bytes(cloudpickle.dumps(function(_sessions[0], *arguments)))
    except DeltaError:
        raise
    except PySparkException as error:
        # Others of Spark cannot be pickled, which would end this process.
        raise RuntimeError(f"{type(error).__name__}: {error}") from None
    finally:
        # One that outlives its server has the client ask for that again and again when it ends.
        while _others:
            _others.pop().stop()


def _failure(spark: Any, function: Callable[..., object], arguments: tuple[Any, ...]) -> Failure | None:
    from delta_ds.spark.errors.translation import as_delta_error

    try:
        function(spark, *arguments)
    except Exception as error:
        return Failure(type(error).__name__, str(error), as_delta_error(error))
    return None


if __name__ == "__main__":
    print(make_python(Path(sys.argv[1])))
