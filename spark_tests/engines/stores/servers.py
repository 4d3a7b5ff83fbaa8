"""Start real object store servers on loopback, or say why not.

A server's program is looked for in the folder `DELTA_DS_STORE_SERVERS` and on `PATH`. With
`DELTA_DS_REQUIRE_STORES=1` a missing one fails the tests instead of skipping them.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FOLDER = "DELTA_DS_STORE_SERVERS"
REQUIRE = "DELTA_DS_REQUIRE_STORES"

_START_SECONDS = 60


def missing(what: str) -> None:
    """Skip the test, or fail it where servers are required."""
    if os.environ.get(REQUIRE) == "1":
        pytest.fail(
            f"{what}; {REQUIRE}=1 requires it (scripts/install_store_servers.sh installs the servers)"
        )
    pytest.skip(what)


def program(name: str) -> str:
    """The path of a server's program; skips or fails if there is none."""
    folder = os.environ.get(FOLDER)
    places = [folder, os.path.join(folder, "node_modules", ".bin")] if folder else []
    found = shutil.which(name, path=os.pathsep.join([*places, os.environ.get("PATH", "")]))
    if found is None:
        missing(f"there is no {name} on PATH or in the folder {FOLDER}")
    assert found is not None
    return found


def module(name: str) -> None:
    """Skip or fail if a Python package is not installed."""
    import importlib.util

    if importlib.util.find_spec(name) is None:
        missing(f"the Python package {name} is not installed")


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def running(command: list[str], port: int, log: Path, **environment: str) -> Iterator[None]:
    """A server process that answers on its port; ended with the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            cwd=log.parent,
        )
        try:
            _wait(process, port, log)
            yield
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def mini_hdfs(folder: Path) -> Iterator[tuple[int, int]]:
    """A namenode and a datanode: the ports of the namenode's own protocol and of WebHDFS."""
    jars = Path(os.environ.get(FOLDER, "")) / "hdfs"
    if shutil.which("java") is None or not list(jars.glob("hadoop-client-minicluster*.jar")):
        missing(f"there is no java, or no hadoop-client-minicluster in the folder hdfs of {FOLDER}")
    ports = free_port(), free_port()
    source = Path(__file__).with_name("MiniHdfs.java")
    command = ["java", "-Xmx384m", "-cp", f"{jars}/*", str(source), str(folder / "hdfs"), *map(str, ports)]
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, cwd=folder
        )
        try:
            deadline = time.monotonic() + _START_SECONDS
            while b"ready" not in log.read_bytes():
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"the HDFS mini cluster does not start: {log.read_text()[-2000:]}")
                time.sleep(0.05)
            yield ports
        finally:
            process.terminate()
            process.wait(30)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"{process.args!r} ended with {process.returncode}: {log.read_text()[-2000:]}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=1).close()
            return
        except urllib.error.HTTPError:
            return  # it answers, if only that there is nothing at this address
        except OSError:
            time.sleep(0.05)
    pytest.fail(f"{process.args!r} does not answer: {log.read_text()[-2000:]}")
