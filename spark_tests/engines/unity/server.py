"""The open-source Unity Catalog server as a process on this machine, or the reason why it cannot be had.

`scripts/install_unity_catalog.sh` installs it into the folder that `DELTA_DS_UNITY_SERVER` names: its jars in `lib`,
its settings in `etc`. With `DELTA_DS_REQUIRE_UNITY=1` a missing one fails the tests instead of skipping them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from spark_tests.engines.stores.servers import free_port

FOLDER = "DELTA_DS_UNITY_SERVER"
REQUIRE = "DELTA_DS_REQUIRE_UNITY"
_START_SECONDS = 90


def jars() -> Path:
    """The folder of the server's jars; skips or fails if there is none."""
    named = os.environ.get(FOLDER)
    lib = Path(named or "", "lib")
    if not named or not list(lib.glob("unitycatalog-server*.jar")):
        why = f"there is no Unity Catalog server in the folder {FOLDER} (scripts/install_unity_catalog.sh)"
        pytest.fail(why) if os.environ.get(REQUIRE) == "1" else pytest.skip(why)
    if shutil.which("java") is None:
        pytest.skip("there is no java")
    return lib


class Process:
    """A server with its state in a folder; it can be killed and started again.

    Parameters
    ----------
    folder
        Of its database, settings and managed tables.
    settings
        Of `server.properties`, besides those that it has.
    """

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._lib = jars()
        self._process: subprocess.Popen[bytes] | None = None
        conf = folder / "etc/conf"
        conf.mkdir(parents=True)
        shutil.copytree(self._lib.parent / "etc/conf", conf, dirs_exist_ok=True)
        # What is confirmed survives a kill: by default H2 writes half a second later.
        database = conf / "hibernate.properties"
        database.write_text(
            database.read_text().replace("DB_CLOSE_DELAY=-1", "DB_CLOSE_DELAY=-1;WRITE_DELAY=0")
        )
        with (conf / "server.properties").open("a") as file:
            file.writelines(f"\n{name.replace('_', '.')}={value}" for name, value in settings.items())

    def start(self) -> None:
        """Start it, and wait until it answers."""
        log = self.folder / "server.out"
        command = [
            "java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{self._lib}/*",
            "io.unitycatalog.server.UnityCatalogServer", "--port", str(self.port),
        ]  # fmt: skip
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, cwd=self.folder
            )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                pytest.fail(f"the server ended with {self._process.returncode}: {log.read_text()[-2000:]}")
            try:
                self.ask("GET", "/catalogs")
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.1)
        pytest.fail(f"the server does not answer: {log.read_text()[-2000:]}")

    def kill(self) -> None:
        """End it as a power failure does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(30)

    def stop(self) -> None:
        """End it."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON of an answer; an error's as well."""
        request = urllib.request.Request(
            f"{self.url}/api/2.1/unity-catalog{path}",
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None


@contextmanager
def running(folder: Path, **settings: str) -> Iterator[Process]:
    """A server with a catalog `main` and its schema `sales`."""
    process = Process(folder, **settings)
    try:
        process.start()
        process.ask("POST", "/catalogs", {"name": "main", "storage_root": f"file://{folder}/managed"})
        process.ask("POST", "/schemas", {"name": "sales", "catalog_name": "main"})
        yield process
    finally:
        process.stop()
